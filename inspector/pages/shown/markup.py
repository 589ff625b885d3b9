"""Text from outside as markup: every character escaped, hidden ones as badges, cut at the borders of spans.

The server cuts and names each piece, because positions count code points and a browser counts UTF-16. A piece
carries `data-span="layer:start-end"`; pieces that share characters belong together, in whatever pane they stand.
Nothing here marks input as safe: markup comes from format strings, text only ever goes in as their argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from inspector.hidden_characters import HIDDEN_BLOCK, HIDDEN_RUN, code_of, is_hidden, name_of

from .exact_light import cut_exact, find_exact
from .filling import NOTHING, escape_text, fill, join

Span = tuple[int, int, int]
# A piece of a sentence: its text, the spans it comes from, and how sure it is.
Segment = tuple[str, tuple[Span, ...], str]

# How much of a long text is unfolded, and how much of a raw text or a sentence a page carries at all.
OPEN_CHARACTERS = 2_000
PAGE_CHARACTERS = 50_000
SENTENCE_CHARACTERS = 20_000
HIT_CHARACTERS = 4_000
# So many equal hidden characters in a row are shown by their number.
MAX_RUN_LENGTH = 4
# So many kinds of hidden characters in a row are named one by one.
MAX_RUNS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """The characters [start, end) of a text, and what they are.

    `kind` is field, key, syntax, unread, masked or mark. `spans` is what it is linked to, if anything.
    """

    start: int
    end: int
    kind: str = "field"
    spans: tuple[Span, ...] = ()


# What has no form of its own is its characters alone.
_BARE: Final = "{0}"
_FORMS: Final = {
    # kind: (linked, not linked)
    "field": ('<span data-span="{1}" tabindex="0"{3}>{0}</span>', _BARE),
    "unread": (
        '<span data-span="{1}" tabindex="0" data-basis="unknown"{3}>{0}</span>',
        '<span data-basis="unknown">{0}</span>',
    ),
    "key": ('<b data-span="{1}" tabindex="0"{3}>{0}</b>', "<b>{0}</b>"),
    "syntax": ("<u>{0}</u><wbr>", "<u>{0}</u><wbr>"),
    "mark": ("<mark>{0}</mark>", "<mark>{0}</mark>"),
    "masked": (
        '<span class="masked{4}" data-span="{1}" tabindex="0">masked, {2} characters</span>',
        '<span class="masked">masked, {2} characters</span>',
    ),
}


LIT: Final = "is-lit"
EXACT: Final = "is-exact"


def share(some: Iterable[Span], others: Iterable[Span]) -> bool:
    """Whether any of these spans has a character in common with any of those."""
    wanted = tuple(others)
    return any(
        layer == other and start < other_end and other_start < end
        for layer, start, end in some
        for other, other_start, other_end in wanted
    )


def name_spans(spans: Iterable[Span]) -> str:
    """Spans as the value of `data-span`: `0:3-5 1:0-9`."""
    return " ".join(f"{layer}:{start}-{end}" for layer, start, end in spans)


def write_visible(text: str, start: int = 0, end: int | None = None) -> SafeString:
    """The characters [start, end) of the text, escaped, each hidden one as a badge that names it."""
    stop = len(text) if end is None else end
    if HIDDEN_BLOCK.search(text, start, stop) is None:
        return escape_text(text[start:stop])
    return join(_split_hidden(text, start, stop))


def _split_hidden(text: str, start: int, end: int) -> Iterator[str]:
    at = start
    for block in HIDDEN_BLOCK.finditer(text, start, end):
        yield text[at : block.start()]
        for count, run in enumerate(HIDDEN_RUN.finditer(text, block.start(), block.end())):
            if count == MAX_RUNS:
                yield fill(
                    '<span class="hidden-character" title="hidden characters of several kinds">{} more</span>',
                    f"{block.end() - run.start():,}",
                )
                break
            # Only the first of a run can belong to an emoji: what follows it has no pictograph before it.
            first = run.start() + (not is_hidden(text, run.start()))
            yield text[run.start() : first]
            yield from _write_badges(run[1], run.end() - first)
        at = block.end()
    yield text[at:end]


def _write_badges(character: str, count: int) -> Iterator[SafeString]:
    code, name = code_of(character), name_of(character)
    if count > MAX_RUN_LENGTH:
        yield fill('<span class="hidden-character" title="{0} {1}">{0} × {2}</span>', code, name, f"{count:,}")
        return
    for _ in range(count):
        yield fill('<span class="hidden-character" title="{0} {1}">{0}</span>', code, name)


def write_wire(
    text: str,
    stretches: Iterable[Stretch] = (),
    *,
    is_linked: bool = False,
    open_characters: int = OPEN_CHARACTERS,
    page_characters: int = PAGE_CHARACTERS,
    light: Sequence[Span] = (),
    layer: int | None = None,
) -> SafeString:
    """The text cut at the borders of its stretches.

    `stretches` are in order and do not overlap; what lies between them is plain. What is over `open_characters`
    is folded and says how much it holds; what is over `page_characters` is left out and says so. Linked pieces that
    share characters with `light` are lit. Where the text is that of a `layer`, character by character, what the light
    means of a piece is marked within it.
    """
    shown = min(len(text), page_characters)
    rows = list(_fill_gaps(len(text), stretches, shown))
    here = [(start, end) for of, start, end in light if of == layer]
    exact = find_exact(((row.start, row.end) for row in rows if row.spans), here) if here else []
    # A fold that hides a few words costs more than it saves.
    is_folded = shown > open_characters + open_characters // 4
    border = open_characters if is_folded else shown
    head = _write_rows(text, rows, 0, border, is_linked=is_linked, light=light, exact=exact)
    tail = _write_rows(text, rows, border, shown, is_linked=is_linked, light=light, exact=exact)
    return _fold(head, tail, border=border, shown=shown, length=len(text), is_folded=is_folded)


def _fold(head: SafeString, tail: SafeString, *, border: int, shown: int, length: int, is_folded: bool) -> SafeString:
    """What is unfolded, what is folded behind its size, and how much is not on the page at all."""
    rest = (
        fill('<span class="left-out">{} more characters are not on this page.</span>', f"{length - shown:,}")
        if shown < length
        else ""
    )
    if not is_folded:
        return fill("{}{}", head, rest)
    return fill(
        '{}<details class="fold"{}><summary>{} of {} characters folded</summary>{}{}</details>',
        head,
        # What is lit is seen.
        SafeString(" open") if LIT in tail or EXACT in tail else "",
        f"{length - border:,}",
        f"{length:,}",
        tail,
        rest,
    )


def _fill_gaps(length: int, stretches: Iterable[Stretch], shown: int) -> Iterator[Stretch]:
    at = 0
    for stretch in stretches:
        start, end = max(stretch.start, at), min(stretch.end, length)
        if start >= shown:
            break
        if start >= end:
            continue
        if start > at:
            yield Stretch(start=at, end=start, kind="plain")
        yield Stretch(start=start, end=end, kind=stretch.kind, spans=stretch.spans)
        at = end
    if at < length:
        yield Stretch(start=at, end=length, kind="plain")


def _write_rows(
    text: str,
    rows: list[Stretch],
    start: int,
    end: int,
    *,
    is_linked: bool,
    light: Sequence[Span],
    exact: Sequence[tuple[int, int]],
) -> SafeString:
    here = [(max(row.start, start), min(row.end, end), row) for row in rows if row.start < end and start < row.end]
    return join(
        _write_piece(text, row, begins, ends, is_linked=is_linked, light=light, exact=exact)
        for begins, ends, row in here
    )


def _write_piece(
    text: str,
    row: Stretch,
    start: int,
    end: int,
    *,
    is_linked: bool,
    light: Sequence[Span],
    exact: Sequence[tuple[int, int]],
) -> SafeString:
    linked, plain = _FORMS.get(row.kind, (_BARE, _BARE))
    form = linked if is_linked and row.spans else plain
    if row.kind == "masked" and start > row.start:
        return NOTHING  # Cut by the fold: its first half has already told its length.
    # A masked piece is named by its length alone: its characters never reach the page.
    shown = NOTHING if row.kind == "masked" else _write_exact(text, start, end, exact)
    if form == _BARE:
        return shown
    is_lit = bool(light) and share(row.spans, light)
    return fill(form, shown, name_spans(row.spans), f"{row.end - row.start:,}", *write_lit(is_lit=is_lit))


def _write_exact(text: str, start: int, end: int, exact: Sequence[tuple[int, int]]) -> SafeString:
    if not exact:
        return write_visible(text, start, end)
    forms = {True: SafeString(f'<span class="{EXACT}">{{}}</span>'), False: SafeString("{}")}
    parts = cut_exact(start, end, exact)
    return join(fill(forms[lit], write_visible(text, a, b)) for a, b, lit in parts)


def write_lit(*, is_lit: bool) -> tuple[SafeString, str]:
    """The class of a lit piece: as an attribute of its own, and behind another class."""
    return (SafeString(f' class="{LIT}"'), f" {LIT}") if is_lit else (NOTHING, "")


def mark_ranges(text: str, ranges: Iterable[tuple[int, int]], *, page_characters: int = HIT_CHARACTERS) -> SafeString:
    """The text with the given half-open ranges highlighted, for hits of a search."""
    stretches = [Stretch(start=start, end=end, kind="mark") for start, end in join_ranges(ranges)]
    return write_wire(text, stretches, open_characters=OPEN_CHARACTERS, page_characters=page_characters)


def join_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Half-open ranges in order, those that touch or overlap made one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def write_english(
    segments: Iterable[Segment],
    *,
    is_linked: bool,
    open_characters: int = OPEN_CHARACTERS,
    page_characters: int = SENTENCE_CHARACTERS,
    light: Sequence[Span] = (),
) -> SafeString:
    """A sentence from its segments; what is not exact carries its basis as an attribute.

    The spaces at a segment's ends stay outside its piece, so that an underline ends with the word. Long sentences are
    folded and cut as wires are, and pieces are lit as theirs.
    """
    rows = list(segments)
    length = sum(len(text) for text, _, _ in rows)
    shown = min(length, page_characters)
    is_folded = shown > open_characters + open_characters // 4
    border = open_characters if is_folded else shown
    head = _write_segments(cut_segments(rows, 0, border), is_linked=is_linked, light=light)
    tail = _write_segments(cut_segments(rows, border, shown), is_linked=is_linked, light=light)
    return _fold(head, tail, border=border, shown=shown, length=length, is_folded=is_folded)


def cut_segments(segments: Iterable[Segment], start: int, end: int) -> Iterator[Segment]:
    """The segments between two positions of their joined text, those at the borders cut."""
    at = 0
    for text, spans, basis in segments:
        piece = text[max(0, start - at) : max(0, end - at)]
        at += len(text)
        if piece:
            yield piece, spans, basis
        if at >= end:
            return


def _write_segments(segments: Iterable[Segment], *, is_linked: bool, light: Sequence[Span]) -> SafeString:
    return join(_write_segment(*segment, is_linked=is_linked, light=light) for segment in segments)


def _write_segment(
    text: str, spans: tuple[Span, ...], basis: str, *, is_linked: bool, light: Sequence[Span]
) -> SafeString:
    body = text.strip(" ")
    before, after = text[: len(text) - len(text.lstrip(" "))], text[len(text.rstrip(" ")) :] if body else ""
    shown = write_visible(body)
    if is_linked and spans and body:
        form = '{}<span data-span="{}" data-basis="{}" tabindex="0"{}>{}</span>{}'
        lit, _ = write_lit(is_lit=bool(light) and share(spans, light))
        return fill(form, before, name_spans(spans), basis, lit, shown, after)
    if basis == "exact" or not body:
        return fill("{}{}{}", before, shown, after)
    return fill('{}<span data-basis="{}">{}</span>{}', before, basis, shown, after)
