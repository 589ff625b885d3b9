"""Text from outside as markup: every character escaped, hidden ones as badges, cut at the borders of spans, and no more
of it than a page can carry; and forms of markup filled with text.

The server cuts and names each piece, because positions count code points and a browser counts UTF-16. A piece
carries `data-span="layer:start-end"`; pieces that share characters belong together, in whatever pane they stand.
Nothing here marks input as safe: markup comes from format strings, text only ever goes in as their argument.

No window may weigh more than a reader's browser bears. A text weighs what its markup does, about: its bytes, six for a
character that is escaped, a badge for a hidden one. Whatever is left out is said.

A form is filled as Django's `format_html` does it, with a short way for what the signs of a page are made of: texts,
markup and whole numbers. A page of messages asks for it a thousand times; whatever else it is given goes Django's way.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

from inspector.characters import HIDDEN, HIDDEN_BLOCK, HIDDEN_RUN, code_of, is_hidden, name_of
from inspector.threads.selectors import CAUTION_MARK, split_mark

NOTHING = SafeString("")


def escape_text(text: str) -> SafeString:
    """A text with everything escaped that would be markup in it; markup as it is."""
    return text if isinstance(text, SafeString) else SafeString(html.escape(text))


def fill(form: str, *values: str | int) -> SafeString:
    """The form with these values in its places, as `str.format` puts them there."""
    return SafeString(form.format(*map(_escape, values)))


def _escape(value: Any) -> object:
    if isinstance(value, str):
        return escape_text(value)
    return value if type(value) is int else conditional_escape(value)


def join(pieces: Iterable[str]) -> SafeString:
    """Texts and markup one after the other."""
    return SafeString("".join([escape_text(piece) for piece in pieces]))


Range = tuple[int, int]


def find_exact(pieces: Iterable[Range], light: Iterable[Range]) -> list[Range]:
    """Those of the lit ranges of a text that begin or end within a piece, or in the signs between two.

    Args:
        pieces: where the pieces of the text stand that can be lit as wholes.
        light: the lit ranges of the same text.
    """
    known = list(pieces)
    starts, ends = {start for start, _ in known}, {end for _, end in known}
    return [(start, end) for start, end in light if start < end and (start not in starts or end not in ends)]


def cut_exact(start: int, end: int, exact: Sequence[Range]) -> Iterator[tuple[int, int, bool]]:
    """The stretch [start, end) cut where exact ranges begin and end: (start, end, whether it is in one)."""
    borders = sorted({start, end, *(place for each in exact for place in each if start < place < end)})
    for begins, ends in pairwise(borders):
        yield begins, ends, any(first <= begins and ends <= last for first, last in exact)


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
    write = partial(_write_rows, text, rows, is_linked=is_linked, light=light, exact=exact)
    return _fold(write, shown, open_characters, len(text))


def _fold(write: Callable[[int, int], SafeString], shown: int, open_characters: int, length: int) -> SafeString:
    """What is unfolded, what is folded behind its size, and how much is not on the page at all."""
    # A fold that hides a few words costs more than it saves.
    is_folded = shown > open_characters + open_characters // 4
    border = open_characters if is_folded else shown
    head, tail = write(0, border), write(border, shown)
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

    def write(start: int, end: int) -> SafeString:
        cut = cut_segments(rows, start, end)
        return join(_write_segment(*segment, is_linked=is_linked, light=light) for segment in cut)

    return _fold(write, min(length, page_characters), open_characters, length)


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


BADGE_BYTES: Final = 95
# What the texts of one page may weigh together; names, links and lines of a window come to about as much again.
PAGE_BYTES: Final = 100_000
# No text is cut below this.
MIN_BYTES: Final = 200


def weigh(text: str, max_characters: int) -> int:
    """What the first characters of a text weigh as markup."""
    shown = text[:max_characters]
    escaped = sum(shown.count(character) for character in "&<>\"'")
    return len(shown.encode("utf-8", "replace")) + 5 * escaped + BADGE_BYTES * sum(1 for _ in HIDDEN.finditer(shown))


def share_out(weights: Iterable[int], budget: int = PAGE_BYTES) -> int:
    """The most that each of these may weigh, so that all together stay within the budget: the light keep all."""
    left, rest = budget, sorted(weights)
    for count, weight in zip(range(len(rest), 0, -1), rest, strict=True):
        if weight * count > left:
            return max(MIN_BYTES, left // count)
        left -= weight
    return budget


def fit(text: str, max_bytes: int, max_characters: int) -> int:
    """How many characters of a text weigh at most so much: those before the hidden one that is over, or their share."""
    end = min(len(text), max_characters)
    if (weight := weigh(text, end)) <= max_bytes:
        return end
    plain = weight - BADGE_BYTES * sum(1 for _ in HIDDEN.finditer(text, 0, end))
    end = min(end, max(1, end * max_bytes // max(plain, 1)))
    spent_on_badges = 0
    for found in HIDDEN.finditer(text, 0, end):
        if found.start() + spent_on_badges + BADGE_BYTES > max_bytes:
            return found.start()
        spent_on_badges += BADGE_BYTES
    return max(0, min(end, max_bytes - spent_on_badges))


def shorten_name(name: str, max_bytes: int = 100) -> str:
    """A name or an id for a line: cut with an ellipsis where it is longer than anybody reads."""
    bare, mark = split_mark(name)
    end = fit(bare, max_bytes, max_bytes)
    return name if end >= len(bare) else f"{bare[: max(end, 1)]}…{mark}"


def mark_cut(told: str, bare: str, shown: int) -> str:
    """The mark of cautions, where those of a sentence do not all stand in the first characters of what is told."""
    return CAUTION_MARK if told != bare and len(told) > shown else ""


def join_texts(segments: Sequence[tuple[str, object, object]]) -> str:
    """The text of a sentence from its segments."""
    return "".join(text for text, _, _ in segments)
