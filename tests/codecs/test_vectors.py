"""Each vector's wire decodes to its messages, its English and its notes, and is written back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import dialects

from ..each import for_each
from .cases import HOME, Case, cases, load, plain


@for_each([dialect.slug for dialect in dialects.all_dialects()])
def test_every_dialect_has_vectors(dialect: str) -> None:
    assert (HOME / f"{dialect}.json").exists(), f"{dialect} has no vector file"
    assert load(dialect)["spec"]


@for_each(cases("valid"))
def test_decodes_to_its_messages(case: Case) -> None:
    reading = case.decode()
    assert reading.dialect == case.dialect
    assert [plain(message) for message in reading.messages] == case.data["messages"]


@for_each([*cases("valid"), *(case for case in cases("malformed") if "english" in case.data)])
def test_reads_as_its_english(case: Case) -> None:
    assert [message.sentence for message in case.decode().messages] == case.data["english"]


@for_each(cases("valid"))
def test_carries_its_notes(case: Case) -> None:
    reading = case.decode()
    found = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    assert sorted(note.code for note in found) == sorted(case.data["notes"])


@for_each([case for case in cases("valid") if "also" in case.data])
def test_also_carries_what_it_says(case: Case) -> None:
    assert [[part.text for part in message.also] for message in case.decode().messages] == case.data["also"]


@for_each(cases("malformed"))
def test_malformed_is_shown_with_its_offset(case: Case) -> None:
    reading = case.decode()
    notes = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    expected = [note for note in notes if note.code == case.data["note"]]
    assert expected, f"no {case.data['note']} among {[note.code for note in notes]}"
    assert expected[0].span is not None
    assert expected[0].span[1] == case.data["offset"]


@for_each(cases("malformed"))
def test_malformed_says_whether_it_was_read(case: Case) -> None:
    """An error is a malformed record (one message, no act); an odd one that is read has its act."""
    reading = case.decode()
    error = reading.error
    assert (error is not None and error.group == "malformed") == reading.is_malformed
    if reading.is_malformed:
        assert len(reading.messages) == 1


_ERROR = '{"clowl":"0.2","mid":"m","p":"ERR","from":"a","cid":"k","body":{"t":"x","d":{"code":"%s","retry":%s}}}'


@for_each(
    [
        ('@a3|f0|c1|S0|d1|T1|t"a\\nb"#', "nslip.unknown-escape", "\\n", "no escape"),
        (
            "👽13|@bob|$r:cafe\n--ðŸ‘½lingua/0.4@agent-lingua",
            "agent_lingua.mojibake",
            "--ðŸ‘½lingua/",
            "wrong character",
        ),
        ("👽64|@runner|$/w==\n--👽lingua/0.4@agent-lingua", "agent_lingua.not-text", "/w==", "its 1 byte is"),
        (
            _ERROR % ("E002", "true"),
            "clowl.retry-disagrees",
            '"retry":true',
            "by the table E002 may not",
        ),
        (
            _ERROR % ("E001", "false"),
            "clowl.retry-disagrees",
            '"retry":false',
            "by the table E001 may be",
        ),
        ("👽64|@runner|$//8=\n--👽lingua/0.4@agent-lingua", "agent_lingua.not-text", "//8=", "its 2 bytes are"),
    ],
    of=("wire", "code", "marked", "words"),
)
def test_a_note_marks_what_it_is_about(wire: str, code: str, marked: str, words: str) -> None:
    reading = dialects.read(wire)
    notes = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    (note,) = [each for each in notes if each.code == code]
    assert note.span is not None
    layer, start, end = note.span
    assert (layer, wire[start:end]) == (0, marked)
    assert words in note.text


def test_items_of_a_list_are_counted_from_one() -> None:
    wire = '{"clowl":"0.2","mid":"m","p":"REQ","from":"a","to":["b","c"],"cid":"k","body":{"t":"x"}}'
    labels = [leaf.label for leaf in walk(dialects.read(wire).fields)]
    assert [label for label in labels if label.startswith("item ")] == ["item 1", "item 2"]


def walk(fields: Iterable[dialects.Field]) -> Iterator[dialects.Field]:
    for each in fields:
        yield each
        yield from walk(each.children)
