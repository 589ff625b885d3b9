"""Characters that cannot be seen are a warning wherever they stand, and those that a writing needs are none."""

from __future__ import annotations

import base64

import dialects

from ..each import for_each

FLAG = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
FOOT = "\n--👽lingua/0.4@agent-lingua"
TELLING = [
    ("👽13|@bob|$j:", '{"c":"pay \\u202ebob"}', "U+202E"),
    ("👽13|@bob|$j:", '{"c":"pay \\udb40\\udc41bob"}', "U+E0041"),
    ("👽13|@bob|$", "pay\u200bpal", "U+200B"),
    ("👽13|@bob|$", "pay\U000e0041bob", "U+E0041"),
]


def find_warnings(wire: str, **envelope: object) -> list[dialects.Note]:
    reading = dialects.read(wire, dialects.envelope_of(envelope))
    return [note for note in reading.notes if note.code == "text.hidden"]


@for_each(TELLING)
def test_a_packed_text_that_hides_something_is_a_warning_in_its_layer(case: tuple[str, str, str]) -> None:
    before, inner, name = case
    (note,) = find_warnings(f"{before}{base64.b64encode(inner.encode()).decode()}{FOOT}")
    assert note.severity == "warning"
    assert note.text.endswith(f"the first {name}")
    assert note.span is not None
    assert note.span[0] > 0


@for_each(["from", "to", "conversation", "trace", "parent", "id"])
def test_a_name_in_the_log_that_hides_something_is_a_warning_in_every_dialect(name: str) -> None:
    for wire in ("@a3|f0|c1|S0|d1|T1|k1#", "!Ik/co", f"👽00{FOOT}", '{"clowl":"0.2","p":"INF"}', "hello"):
        for hidden in ("bo\u202eb", "\u2066bob", "bob\U000e0041", "b\u200cob"):
            (note,) = find_warnings(wire, **{name: hidden})
            assert "a name in the log around it holds" in note.text
        assert not find_warnings(wire, **{name: "bob"})


@for_each(["\u202e", "\U000e0041", "\u200d", "\u200f", "\ufeff", "\\udb40\\udc41"])
def test_a_text_that_hides_something_is_a_warning_with_its_place(hidden: str) -> None:
    (note,) = find_warnings(f'{{"to":"pay{hidden}pal"}}')
    assert note.span == (0, 10, 10 + len(hidden))


@for_each(
    [
        f"for {FLAG} too",
        '{"a":"\\ud83c\\udff4\\udb40\\udc67\\udb40\\udc62\\udb40\\udc7f"}',
        "pay bob now 👨\u200d👩\u200d👧",
        "\u0645\u06cc\u200c\u062e\u0648 and \u0915\u094d\u200d\u0937",
        "\u05e9\u05dc\u05d5\u05dd\u200f (1)",
        "\ufeffhello",
    ]
)
def test_what_a_writing_needs_is_no_warning(wire: str) -> None:
    assert not find_warnings(wire)
