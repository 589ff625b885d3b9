"""What the markup of text from outside promises: everything escaped, nothing hidden, nothing left out in silence."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from inspector.characters import HIDDEN, is_hidden, name_of, spell_hidden
from inspector.pages.shown.markup import (
    Stretch,
    cut_segments,
    join_ranges,
    mark_ranges,
    write_english,
    write_visible,
    write_wire,
)
from tests.each import for_each

from .conftest import shows

TAGS = re.compile(r"<[^>]*>")
ANY_TEXT = st.text(st.characters(categories=None), max_size=60)
# Without a block of so many hidden characters in a row that only their number is told.
READABLE = ANY_TEXT.filter(lambda text: re.search(f"{HIDDEN.pattern}{{12,}}", text) is None)


def read_back(markup: str) -> str:
    """The text that a reader gets from the markup, badges as the characters they stand for."""
    badges = re.compile(r'<span class="hidden-character" title="[^"]*">U\+([0-9A-F]+)(?: × ([0-9,]+))?</span>')
    parts = badges.split(markup)
    plain = [html.unescape(TAGS.sub("", part)) for part in parts[::3]]
    counts = [int((count or "1").replace(",", "")) for count in parts[2::3]]
    marks = [chr(int(code, 16)) * count for code, count in zip(parts[1::3], counts, strict=True)] + [""]
    return "".join(text + mark for text, mark in zip(plain, marks, strict=True))


HIDDEN_CASES = {
    "null": ("a\x00b", "U+0000", "null"),
    "escape": ("\x1b[31mred", "U+001B", "escape"),
    "carriage-return": ("a\rb", "U+000D", "carriage return"),
    "delete": ("\x7f", "U+007F", "delete"),
    "c1": ("\x85", "U+0085", "control"),
    "soft-hyphen": ("pass\u00adword", "U+00AD", "soft hyphen"),
    "zero-width-space": ("rad\u200bar", "U+200B", "zero width space"),
    "right-to-left-override": ("\u202egnp.exe", "U+202E", "right-to-left override"),
    "isolate": ("\u2066x", "U+2066", "left-to-right isolate"),
    "line-separator": ("a\u2028b", "U+2028", "line separator"),
    "byte-order-mark": ("\ufeff{", "U+FEFF", "zero width no-break space"),
    "hangul-filler": ("\u3164", "U+3164", "hangul filler"),
    "lone-surrogate": ("\ud83d", "U+D83D", "lone surrogate"),
    "private-use": ("\ue000", "U+E000", "private use"),
    "noncharacter": ("\uffff", "U+FFFF", "not a character"),
    "tag-letter": ("\U000e0041", "U+E0041", "tag latin capital letter a"),
    "selector-after-a-letter": ("a\ufe0f", "U+FE0F", "variation selector-16"),
    "joiner-between-letters": ("a\u200db", "U+200D", "zero width joiner"),
    "joiner-at-the-end": ("👩\u200d", "U+200D", "zero width joiner"),
}


@for_each(HIDDEN_CASES.values())
def test_a_hidden_character_becomes_a_badge_that_names_it(text: str, code: str, name: str) -> None:
    assert f'<span class="hidden-character" title="{code} {name}">{code}</span>' in write_visible(text)
    assert f"[{code}]" in spell_hidden(text)


@for_each(["line\n\tindented", "👩\u200d💻", "✔️", "1️⃣", "👍🏽", "👽42|@S", "é", "e\u0301", "日本", "א", "\u00a0"])
def test_what_can_be_seen_is_left_alone(text: str) -> None:
    assert write_visible(text) == text
    assert spell_hidden(text) == text


@given(READABLE)
def test_no_character_is_lost_and_none_is_left_hidden(text: str) -> None:
    markup = write_visible(text)
    assert read_back(markup) == text
    assert not any(
        is_hidden(text, match.start()) and match[0] in TAGS.sub("", markup)
        for match in HIDDEN.finditer(text)
        if match[0] not in "\u200d\ufe0e\ufe0f"
    )


@given(ANY_TEXT)
def test_whatever_is_shown_can_be_sent(text: str) -> None:
    write_visible(text).encode("utf-8")
    spell_hidden(text).encode("utf-8")


@given(READABLE, st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), max_size=6), st.booleans())
def test_cutting_changes_no_character(text: str, ranges: list[tuple[int, int]], is_linked: bool) -> None:
    stretches = [
        Stretch(start=min(pair), end=max(pair), kind=kind, spans=((0, min(pair), max(pair)),))
        for pair, kind in zip(sorted(ranges), ["field", "syntax", "unread", "mark"] * 2, strict=False)
    ]
    assert read_back(write_wire(text, stretches, is_linked=is_linked)) == text


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{ x }} &amp;"


@for_each(["field", "syntax", "unread", "mark", "plain", "no-such-kind"])
def test_hostile_text_stays_text(kind: str) -> None:
    markup = write_wire(HOSTILE, [Stretch(start=3, end=40, kind=kind, spans=((0, 3, 40),))], is_linked=True)
    shows(markup, never=["<script", "<img"])
    assert read_back(markup) == HOSTILE


def test_braces_in_the_text_are_no_format() -> None:
    assert write_wire("{0}{nope}{", [Stretch(start=0, end=3, spans=((0, 0, 3),))], is_linked=True).endswith("{nope}{")


def test_a_piece_carries_its_span_and_can_take_the_focus() -> None:
    markup = write_wire(
        "@a3|f0#", [Stretch(start=1, end=3, spans=((0, 1, 3),)), Stretch(start=3, end=4, kind="syntax")], is_linked=True
    )
    assert markup == '@<span data-span="0:1-3" tabindex="0">a3</span><u>|</u><wbr>f0#'


WIRE = [Stretch(start=0, end=3, spans=((0, 0, 3),)), Stretch(start=3, end=4, kind="syntax")]
WIRE.append(Stretch(start=4, end=7, spans=((0, 4, 7),)))


@for_each(
    [
        ([(0, 1, 2)], 0, ["b"], 1),
        ([(0, 0, 3)], 0, [], 1),
        ([(0, 0, 7)], 0, [], 2),
        ([(0, 2, 5)], 0, ["c", "|", "d"], 2),
        ([(0, 0, 4)], 0, ["abc", "|"], 1),
        ([(0, 1, 2)], None, [], 1),
        ([(1, 1, 2)], 0, [], 0),
        ([(0, 6, 900)], 0, ["f"], 1),
    ]
)
def test_characters_of_a_piece_are_lit_exactly(
    light: list[tuple[int, int, int]], layer: int | None, exact: list[str], lit: int
) -> None:
    markup = write_wire("abc|def", WIRE, is_linked=True, light=light, layer=layer)
    assert re.findall(r'<span class="is-exact">([^<]*)</span>', markup) == exact
    assert markup.count('class="is-lit"') == lit
    assert read_back(markup) == "abc|def"


def test_an_unlinked_wire_has_nothing_to_focus() -> None:
    assert write_wire("@a3", [Stretch(start=1, end=3, spans=((0, 1, 3),))]) == "@a3"


def test_positions_count_code_points_and_not_utf_16() -> None:
    markup = write_wire("👽👽x", [Stretch(start=2, end=3, spans=((0, 2, 3),))], is_linked=True)
    assert markup == '👽👽<span data-span="0:2-3" tabindex="0">x</span>'


def test_a_masked_piece_gives_away_its_length_alone() -> None:
    markup = write_wire('"key":"hunter2"', [Stretch(start=7, end=14, kind="masked", spans=((0, 7, 14),))])
    shows(markup, '<span class="masked">masked, 7 characters</span>', never=["hunter2"])


def test_a_mask_that_the_fold_cuts_is_told_once_and_leaks_nothing() -> None:
    text = "a" * 8 + "secret" + "b" * 30
    markup = write_wire(text, [Stretch(start=8, end=14, kind="masked")], open_characters=10)
    assert markup.count("masked, 6 characters") == 1
    assert not set("secrt") & set(
        html.unescape(
            TAGS.sub("", markup)
            .replace("masked, 6 characters", "")
            .replace("characters folded", "")
            .replace("34 of 44", "")
        )
    )


def test_a_fold_says_how_much_it_holds() -> None:
    markup = write_wire("x" * 50, open_characters=10)
    assert '<details class="fold"><summary>40 of 50 characters folded</summary>' in markup
    assert markup.count("x") == 50


def test_a_fold_that_would_hide_little_is_none() -> None:
    assert write_wire("x" * 12, open_characters=10) == "x" * 12


def test_what_a_page_cannot_carry_is_counted() -> None:
    markup = write_wire("x" * 5_000, open_characters=100, page_characters=1_000)
    assert "4,000 more characters are not on this page." in markup


def test_overlapping_stretches_never_repeat_a_character() -> None:
    stretches = [Stretch(start=0, end=4, kind="mark"), Stretch(start=2, end=6, kind="mark")]
    assert write_wire("abcdefgh", stretches) == "<mark>abcd</mark><mark>ef</mark>gh"


def test_hits_that_touch_become_one() -> None:
    assert join_ranges([(4, 6), (0, 2), (1, 4), (9, 9)]) == [(0, 6), (9, 9)]
    assert mark_ranges("<b>stars", [(3, 6), (5, 8)]) == "&lt;b&gt;<mark>stars</mark>"


ENGLISH = [
    ("oscar asks ", ((0, 1, 3),), "exact"),
    ("the <planner>", ((0, 13, 15), (0, 20, 22)), "inferred"),
    (": ", (), "exact"),
    ("rad\u200bar", (), "unknown"),
]


def test_english_is_linked_by_segment_and_marks_what_is_not_exact() -> None:
    assert write_english(ENGLISH, is_linked=True) == (
        '<span data-span="0:1-3" data-basis="exact" tabindex="0">oscar asks</span> '
        '<span data-span="0:13-15 0:20-22" data-basis="inferred" tabindex="0">the &lt;planner&gt;</span>: '
        '<span data-basis="unknown">rad'
        '<span class="hidden-character" title="U+200B zero width space">U+200B</span>ar</span>'
    )


def test_english_without_links_keeps_every_space() -> None:
    assert read_back(write_english(ENGLISH, is_linked=False)) == "oscar asks the <planner>: rad\u200bar"
    assert read_back(write_english([("  ", (), "exact"), (" a ", (), "inferred")], is_linked=False)) == "   a "


def test_every_hidden_character_has_a_name() -> None:
    assert all(name_of(chr(code)) for code in (0, 0x1F, 0x7F, 0x9F, 0xD800, 0xE000, 0xFFFE, 0x10FFFF))


def test_many_equal_hidden_characters_are_counted() -> None:
    assert write_visible("\u202e" * 1200) == (
        '<span class="hidden-character" title="U+202E right-to-left override">U+202E × 1,200</span>'
    )
    mixed = write_visible("a" + "\u202e\u200b" * 100 + "b")
    assert mixed.count("U+202E</span>") == 6
    assert mixed.endswith(">188 more</span>b")
    assert write_visible("❤" + "\ufe0f" * 7).endswith(">U+FE0F × 6</span>")


def test_a_long_sentence_is_folded_and_cut_with_its_counts() -> None:
    segments = [("word ", ((0, index, index + 1),), "exact") for index in range(100)]
    markup = write_english(segments, is_linked=True, open_characters=52, page_characters=400)
    shows(markup, "<summary>448 of 500 characters folded</summary>", "100 more characters are not on this page.")
    assert read_back(markup.partition("<details")[0]) == "word " * 10 + "wo"
    assert list(cut_segments(segments, 3, 7)) == [("d ", ((0, 0, 1),), "exact"), ("wo", ((0, 1, 2),), "exact")]
