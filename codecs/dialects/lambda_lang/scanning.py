"""The tokens of a statement's body: every character belongs to exactly one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .atoms import NAMES
from .statements import find_close


class Token(NamedTuple):
    """A stretch of a body: its kind and its range in the text."""

    kind: str
    start: int
    end: int
    text: str


_UNIT = r"(?:%|(?:ms|s|min|m|h|d|kb|mb|gb|tb|KB|MB|GB|TB|k|K|M|G|x)(?![A-Za-z0-9]))?"
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
|(?P<term>def:[A-Za-z]\w*)
|(?P<error>er:[a-z]{{2}}(?![a-z0-9]))
|(?P<domain>(?:a2a|[a-z]{{1,3}}):(?=[a-z(]))
|(?P<mixed>[a-z]+(?=[0-9])[A-Za-z0-9]+)
|(?P<word>[a-z]+)
|(?P<entity>[IUHAX](?![A-Z0-9]))
|(?P<name>[A-Z][A-Za-z0-9]*)
|(?P<quantity>[1239](?=[A-Za-z*]))
|(?P<nothing>0(?![0-9.:%A-Za-z]))
|(?P<number>\$?\d+(?:[.:]\d+)*{_UNIT}(?:[+\-](?=\Z|[\s)\]}},;]))?)
|(?P<quote>"(?:[^"\\]|\\.)*")
|(?P<escape>\\.)
|(?P<reference>\#id:[\w.\-]+|\#\d{{1,9}})
|(?P<emotion>:[()|?](?![A-Za-z0-9])|:o(?![A-Za-z0-9]))
|(?P<paraphrase>(?<![A-Za-z0-9\])])'[^'"\n\[({{]+'(?![A-Za-z0-9]))
|(?P<marker>'[EVSMR23](?![A-Za-z0-9]))
|(?P<passive>~v~)
|(?P<left>\.\.\.)
|(?P<demonstrative>\$(?:\$(?!\d)|[\^_](?![\^_])))
|(?P<star>\*(?!\*))
|(?P<open>[\[(])
|(?P<close>[\])])
|(?P<joiner><->|=>|<>|>>|<<|\.\.|\*\*|\^+|_+|!+|\?+|~+|\#\#|[/&|><;,.+\-=@%$':\#])
|(?P<unread>[^\s\w"\\\[\](){{}}/&|><;,.+\-=@%$':\#^!?~*]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_VALUE = re.compile(
    r"""(?P<quote>"(?:[^"\\]|\\.)*")
|(?P<url>[a-z][a-z0-9+.\-]{1,15}://(?:[^\s"<>{}\[\]|\\]|\\[^\s"<>{}\[\]|])+)
|(?P<number>[+\-]?\$?\d+(?:[.:]\d+)*(?:/\$?\d+(?:[.:]\d+)*)?(?:%|[A-Za-z]{1,3})?(?![A-Za-z0-9_]|[.:\-][A-Za-z0-9]))
|(?P<domain>(?:a2a|[a-z]{1,3}):[a-z]+(?![A-Za-z0-9]))
|(?P<text>[A-Za-z0-9_]+(?:[.\-:][A-Za-z0-9_]+)*)
|(?P<symbol>\^+)""",
    re.VERBOSE | re.DOTALL,
)
_DOMAIN_NAMES = frozenset(name for name, *_ in NAMES)


def scan_body(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of text[start:end], in order and without gaps.

    Kinds are the group names of the token table, and `block` for `{…}`, `value` for what stands after `=`
    (of the kinds `value-quote`, `value-url`, `value-number`, `value-domain`, `value-text`, `value-symbol`).
    The brackets of the text are known to close: it was cut by `cut_record`, which sees the same escapes and quotes.
    """
    at = start
    while at < end:
        if text[at] == "{":
            close = find_close(text, at)
            yield Token("block", at, close, text[at:close])
            at = close
            continue
        found = _TOKEN.match(text, at, end)
        if found is None:
            yield Token("unread", at, at + 1, text[at])
            at += 1
            continue
        kind, last = found.lastgroup or "unread", found.end()
        if kind == "domain" and found[0][:-1] not in _DOMAIN_NAMES:
            # Not a domain: the word stands alone, and the colon after it is a joiner.
            kind, last = "word", last - 1
        yield Token(kind, at, last, text[at:last])
        at = last
        if kind == "joiner" and found[0] == "=":
            value = _VALUE.match(text, at, end)
            if value:
                yield Token(f"value-{value.lastgroup}", at, value.end(), value[0])
                at = value.end()
