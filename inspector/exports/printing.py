"""A report as HTML: one file with its style in it, no script and no address, every text from outside escaped.

The style is named by its digest in the policy that the file carries and is served with, so that nothing else in it
can set a style, run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from inspector.characters import HIDDEN_BLOCK, code_of, is_hidden, spell_hidden

STYLE: Final = """
:root {
  color-scheme: light dark;
  --ink: #16181d; --quiet: #555b66; --paper: #fff; --line: #c9ccd3; --thin: #e3e5ea; --raw: #f4f5f7; --edge: #9aa0ab;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ec; --quiet: #a3a9b5; --paper: #14161a; --line: #454a54; --thin: #2c3038; --raw: #1d2026;
    --edge: #7b818d;
  }
}
body {
  margin: 0 auto; max-width: 60rem; padding: 1.5rem; font: 14px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper);
}
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h2, h3 { overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0; }
h4 { font-size: .8rem; margin: .75rem 0 .15rem; color: var(--quiet); }
p { margin: .25rem 0; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
pre, code { font: 12px/1.5 ui-monospace, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--raw); padding: .5rem .75rem; margin: .25rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 12px; table-layout: fixed; }
th, td { text-align: left; vertical-align: top; padding: .15rem .5rem .15rem 0; border-top: 1px solid var(--thin); }
th { font-weight: 500; }
td, th { overflow-wrap: anywhere; }
th.span, td.span { width: 7rem; text-align: right; padding-right: 0; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
article { margin: 1.25rem 0; padding-top: .75rem; border-top: 2px solid var(--ink); }
.said { font-size: 1.05rem; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
.hash { font-family: ui-monospace, monospace; font-size: 12px; overflow-wrap: anywhere; }
.masked { background: var(--thin); padding: 0 .25rem; }
.hidden { border: 1px solid var(--edge); border-radius: 3px; padding: 0 .2rem; font-size: .85em; }
.grave { font-weight: 600; }
.code { max-width: 14rem; }
.verdict { margin: .75rem 0; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: 6px; }
@media screen and (max-width: 40rem) {
  body { padding: .75rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .35rem; }
  table { font-size: 11px; }
  th.span, td.span { width: 4rem; }
}
@media print {
  @page {
    margin: 16mm;
    @bottom-right { content: counter(page) " of " counter(pages); font: 8pt system-ui, sans-serif; }
  }
  body { max-width: none; padding: 0; font-size: 10pt; orphans: 3; widows: 3; }
  h2, h3, h4, .said { break-after: avoid; }
  h3 + p { break-before: avoid; break-after: avoid; }
  tr, li, pre, .code, .verdict { break-inside: avoid; }
  .hash { font-size: 8pt; }
  pre, .masked { print-color-adjust: exact; }
}
"""
STYLE_DIGEST: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; base-uri 'none'; form-action 'none'; sandbox"
# A policy in the file itself cannot ask for a sandbox.
_OWN_POLICY: Final = POLICY.removesuffix("; sandbox")
# So many equal or other hidden characters in a row are named one by one.
_MAX_NAMED: Final = 8


def show(text: str, most: int | None = None) -> SafeString:
    """A text from outside: escaped, each hidden character by its code point, and what is left out said."""
    shown = text if most is None else text[:most]
    body = format_html_join("", "{}", ((piece,) for piece in _split(shown)))
    if len(shown) == len(text):
        return body
    return format_html('{} <span class="quiet">[{} more characters]</span>', body, f"{len(text) - len(shown):,}")


def _split(text: str) -> Iterator[str]:
    at = 0
    for block in HIDDEN_BLOCK.finditer(text):
        yield text[at : block.start()]
        places = [place for place in range(block.start(), block.end()) if is_hidden(text, place)]
        for place in places[:_MAX_NAMED]:
            yield format_html('<span class="hidden">{}</span>', code_of(text[place]))
        if len(places) > _MAX_NAMED:
            yield format_html('<span class="hidden">{} more</span>', f"{len(places) - _MAX_NAMED:,}")
        # A joiner within an emoji is seen by what it does.
        yield "".join(text[place] for place in range(block.start(), block.end()) if place not in set(places))
        at = block.end()
    yield text[at:]


def list_facts(facts: Iterable[tuple[str, Any]]) -> SafeString:
    """Facts as a list of names and values; one without a value is left out."""
    rows = [(name, value) for name, value in facts if value not in (None, "")]
    return format_html("<dl>{}</dl>", format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows)) if rows else SafeString("")


def list_lines(title: str, lines: Iterable[SafeString]) -> SafeString:
    """A titled list; nothing where it has no lines."""
    rows = [(line,) for line in lines]
    if not rows:
        return SafeString("")
    return format_html("<h4>{}</h4><ul>{}</ul>", title, format_html_join("", "<li>{}</li>", rows))


def begin(title: str) -> SafeString:
    """The beginning of a file, up to the first thing that it says."""
    return format_html(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="{}">'
        '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">'
        "<title>{}</title><style>{}</style></head>\n<body>\n",
        _OWN_POLICY,
        spell_hidden(title),
        SafeString(STYLE),
    )


END: Final = "</body></html>\n"


def encode(markup: str) -> bytes:
    """The markup as it is written; half a character was named before, and never comes here."""
    return markup.encode("utf-8")
