"""What no table of nSLIP vectors can hold: generated tags, look-alikes, names, blocks, writing and hostile input."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialects
from dialects import Context, Entry, Failure, Message, NoKeys, Priority
from dialects.nslip import DIALECT
from dialects.nslip.fields import read_number, write_number
from dialects.nslip.tables import ACTS, FRAMES, MAX_NUMBER, SLOTS
from tests.lanes import generated

from ..each import for_each
from ..timing import is_within
from .cases import Case, cases, load, plain
from .test_laws import assert_covers

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ACT_NAMES = ["OBSERVE", "INFORM", "ASK", "REQUEST", "PROPOSE", "COMMIT", "ACCEPT", "REJECT", "EVAL", "ERROR", "META"]
PERFORMATIVES = [
    *("observe", "inform", "query", "request", "propose", "commit"),
    *("accept", "reject", "evaluate", "failure", "control"),
]
FRAME_NAMES = ["TASK", "PLAN", "OBSERVATION", "EVALUATION", "CONTROL"]
HEADER = ("a", "f", "c", "S", "d", "T")

OWN_VALID = [case for case in cases("valid") if case.dialect == "nslip"]
OWN = [*OWN_VALID, *(case for case in cases("malformed") if case.dialect == "nslip")]
OTHERS = [case for case in cases("valid") if case.dialect != "nslip" and not re.search(r"@\|?a\w\|f\w", case.wire)]


def in_base62(number: int) -> str:
    """The test's own spelling of a number, from the definition and not from the codec."""
    digits = DIGITS[number % 62]
    while number := number // 62:
        digits = DIGITS[number % 62] + digits
    return digits


def in_quotes(text: str) -> str:
    return '"' + "".join("\\" + sign if sign in '\\"' else sign for sign in text) + '"'


def decode(wire: str, **given: Any) -> dialects.Reading:
    return dialects.decode(wire, **given)


def codes(reading: dialects.Reading) -> list[str]:
    return [note.code for message in reading.messages for note in message.notes]


numbers = st.one_of(st.integers(0, 99), st.integers(0, MAX_NUMBER))
texts = st.text(st.characters(codec="utf-8"), max_size=30)
optional = {
    "g": numbers,
    "k": numbers,
    "p": numbers,
    "r": numbers,
    "q": st.integers(1, 3),
    "s": st.integers(0, 10),
    "u": texts,
    "e": numbers,
    "t": texts,
}


@st.composite
def tags(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a tag: a whole header and any of the slots."""
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    header = {"a": draw(st.integers(0, 10)), "f": draw(st.integers(0, 4))}
    return header | {name: draw(numbers) for name in "cSdT"} | {name: draw(optional[name]) for name in sorted(chosen)}


def expect_message(fields: dict[str, Any]) -> dict[str, Any]:
    """The record of these fields, built without the codec's tables."""
    places: dict[str, Callable[[Any], dict[str, Any]]] = {
        "a": lambda n: {"native_act": ACT_NAMES[n], "performative": PERFORMATIVES[n]},
        "f": lambda n: {"frame": FRAME_NAMES[n]},
        "c": lambda n: {"conversation_id": str(n)},
        "S": lambda n: {"sender": str(n)},
        "d": lambda n: {"receivers": [str(n)]},
        "T": lambda n: {"turn": n},
        "g": lambda n: {"trace_id": str(n)},
        "k": lambda n: {"task_id": str(n)},
        "p": lambda n: {"parent_task_id": str(n)},
        "r": lambda n: {"result_id": str(n)},
        "q": lambda n: {"priority": Priority(raw=str(n), rank=n).to_dict()},
        "s": lambda n: {"score": n},
        "u": lambda text: {"status": text},
        "e": lambda n: {"error": Failure(code=str(n)).to_dict()},
        "t": lambda text: {"topic": text},
    }
    expected: dict[str, Any] = {"performative": "unknown"}
    for prefix, value in fields.items():
        expected |= places[prefix](value)
    return expected


def write_tag(fields: dict[str, Any], order: list[str] | None = None) -> str:
    written = {name: in_quotes(value) if isinstance(value, str) else in_base62(value) for name, value in fields.items()}
    return f"@{'|'.join(name + written[name] for name in order or fields)}#"


@generated(300, fields=tags())
def test_a_tag_reads_as_the_record_it_was_written_from(fields: dict[str, Any]) -> None:
    wire = write_tag(fields)
    reading = decode(wire)
    assert reading.dialect == "nslip"
    assert codes(reading) == []
    assert [plain(message) for message in reading.messages] == [expect_message(fields)]
    assert_covers(reading)


@generated(300, fields=tags())
def test_the_sentence_and_what_it_leaves_out_name_every_value(fields: dict[str, Any]) -> None:
    (message,) = decode(write_tag(fields)).messages
    told = "\n".join([message.sentence, *(part.text for part in message.also)])
    for prefix, value in fields.items():
        if prefix not in "af":
            assert str(value) in told, f"{prefix}{value} is told nowhere in {told!r}"
    spans = {span[1:] for part in (*message.english, *message.also) for span in part.spans}
    assert len(spans) == len(fields)


@generated(300, fields=tags(), seed=st.randoms(use_true_random=False))
def test_fields_may_stand_in_any_order(fields: dict[str, Any], seed: random.Random) -> None:
    order = list(fields)
    seed.shuffle(order)
    reading = decode(write_tag(fields, order), dialect="nslip")
    assert [plain(message) for message in reading.messages] == [expect_message(fields)]
    assert len(reading.messages[0].gloss) == 2 * len(fields) - 1


@generated(200, fields=tags(), missing=st.sets(st.sampled_from(HEADER), min_size=1, max_size=2))
def test_a_missing_header_field_is_absent_and_noted(fields: dict[str, Any], missing: set[str]) -> None:
    # Without an upper-case S or T, a lower-case s would be the sender of v0.0; without act and frame, numbers that
    # look like words could be names.
    gone = missing | {"s"} if {"S", "T"} <= missing else missing
    gone = gone - {"f"} if {"a", "f"} <= gone else gone
    left = {name: value for name, value in fields.items() if name not in gone}
    reading = decode(write_tag(left), dialect="nslip")
    assert [plain(message) for message in reading.messages] == [expect_message(left)]
    assert codes(reading) == ["nslip.missing-header"] * len(gone & set(HEADER))
    if "S" in gone:
        assert reading.messages[0].sentence.startswith("Someone")
    if gone == {"f"}:
        assert [loss.name for loss in dialects.encode(reading).losses] == ["frame"]
    else:
        with pytest.raises(dialects.EncodeError):
            dialects.encode(reading)


@generated(200, fields=tags())
def test_the_short_way_and_the_long_way_agree(fields: dict[str, Any]) -> None:
    wire = write_tag(fields)
    assert DIALECT.read(wire, None).messages == DIALECT.read(f" {wire}", None).messages


@generated(200, fields=tags())
def test_writing_gives_the_wire_back(fields: dict[str, Any]) -> None:
    wire = write_tag({prefix: fields[prefix] for prefix in SLOTS if prefix in fields})
    written = dialects.encode(decode(wire))
    assert (written.wire, written.losses) == (wire, ())


@generated(
    200, first=tags(), second=tags(), between=st.sampled_from(["", " ", "\n", ", ", " then ", " 🛰 ", " a@b.org "])
)
def test_two_tags_are_two_messages_and_prose_between_is_one(
    first: dict[str, Any], second: dict[str, Any], between: str
) -> None:
    reading = decode(write_tag(first) + between + write_tag(second))
    expected = [expect_message(first), expect_message(second)]
    if between.strip(" \n,"):
        expected.insert(1, {"performative": "inform", "content": between.strip()})
    parts = [{"part": part, **message} if part > 1 else message for part, message in enumerate(expected, 1)]
    assert [plain(message) for message in reading.messages] == parts
    assert reading.dialect == "nslip"


@generated(200, fields=tags(), cut=st.integers(1, 40))
def test_a_tag_that_is_cut_off_is_malformed_where_it_ends(fields: dict[str, Any], cut: int) -> None:
    wire = write_tag(fields)
    cut = min(cut, len(wire) - 8)
    reading = decode(wire[:-cut])
    assert reading.dialect == "nslip"
    assert reading.is_malformed
    (message,) = reading.messages
    assert reading.error is not None
    assert reading.error.code in ("nslip.unclosed", "nslip.unclosed-quote")
    assert reading.error.span is not None
    assert reading.error.span[2] == len(wire) - cut
    assert message.performative is None
    assert message.content == wire[:-cut]
    assert wire[:-cut] in message.sentence


@generated(200, number=st.integers(0, MAX_NUMBER))
def test_a_number_is_written_and_read_alike(number: int) -> None:
    assert write_number(number) == in_base62(number)
    assert read_number(in_base62(number)) == number


@given(number=st.integers(MAX_NUMBER + 1, 2**80))
def test_a_number_beyond_64_bits_is_not_read(number: int) -> None:
    assert read_number(in_base62(number)) is None


@generated(200, text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_survives_its_quotes(text: str) -> None:
    wire = f"@a1|f0|c1|S2|d0|T1|t{in_quotes(text)}#"
    (message,) = decode(wire).messages
    assert message.topic == text
    assert DIALECT.encode([message]).wire == wire


SOUP = st.lists(
    st.sampled_from([*'@#|"\\ \nasdfcSTtkx09z-.', "@a3|f0|", "c1|S0|", 'd1|T1|t"', "@|a8|f3|s1"]), max_size=60
)


@generated(500, soup=SOUP.map("".join))
def test_no_soup_of_marks_makes_reading_raise(soup: str) -> None:
    DIALECT.identify(soup)
    DIALECT.sniff(soup)
    DIALECT.opens(soup)
    reading = decode(soup, dialect="nslip")
    assert_covers(reading)
    assert (reading.error is not None) == reading.is_malformed
    if not reading.is_malformed:
        for message in reading.messages:
            assert message.sentence
            assert all(0 <= start <= end <= len(soup) for part in message.english for _, start, end in part.spans)


# What the gate must let pass: (text, the dialect it must not be taken for).
LOOK_ALIKES = [
    "write to ops@example.org #urgent",
    "@alice thanks! #grateful",
    "@bob|carl please look #review",
    "@ann|dave|carl|tom #standup",
    "@al|dave|carl #lunch",
    "cc @sam | @deb | @cat #weekly",
    "@team #launch @press",
    "@here: see #4521 | thanks",
    "| @owner | status | #12 |",
    "| name | mail |\n|---|---|\n| ana | a@c.org | #1",
    "SLIP v1 alice bob RequestReview auth",
    "SLIP v3 planner critic Request Review auth42",
    "THOUGHT: ask @a first\nSLIP: SLIP v1 a b AskStatus #2",
    "@A1: !Uc/la",
    "@v0.6#h",
    "@vX#h<",
    "@A1>A2: .ta",
    "@a #b | c",
    "@a3",
    "@a3#",
    "@a3 #f0|c1",
    "@Sam|Tom|dan #x",
    "@sue|tom|cat|dan #x",
    "@a1st|f2nd #x",
    "#@|",
    "@param a|b the left side #note",
    "@@ -1,3 +1,4 @@ def run(a|b): # why",
    "user@host:~$ cat a|tee b # keep",
    "git@github.com:a/b.git#main|dev",
    "https://example.org/@a|f#c1",
    "@media (min-width: 3px) { a|b { color: #fff } }",
    "@dave|S|T|c|#",
    "see @a3|f0 for the header",
    "the form is @a<act>|f<frame>|c<conv>#",
    "@a|f|c|S|d|T#",
    "ssh-rsa AAAA@b|c|d#e",
    '{"to": "@ops", "tag": "#a|b"}',
]


@for_each(LOOK_ALIKES)
def test_look_alikes_are_not_taken_for_tags(text: str) -> None:
    candidate = DIALECT.sniff(text)
    assert candidate is None or candidate.score < 0.3, candidate


@for_each(OTHERS)
def test_other_dialects_messages_are_not_taken_for_tags(case: Case) -> None:
    candidate = DIALECT.sniff(case.wire)
    assert candidate is None or candidate.score < 0.3, candidate


@for_each(
    [
        ("@a3|f0|c1|S0|d1|T1#", 0.9),
        ("@|a8|f3|c3|s0|d1|t1|s8#", 0.9),
        ("@a3|f0|c1|S0", 0.9),
        ("@a3|f0|c1|d1#", 0.9),
        ("log: @a3|f0|c1|S0|d1|T1|k1# end", 0.5),
        *((f"@a3|f{'Z' * length}|c1|S0|d1|T1#", 0.9) for length in (500, 1000, 70_000)),
        (f"@a{'Z' * 600}|f{'Z' * 600}|c{'Z' * 600}|S0|d1|T1#", 0.9),
    ]
)
def test_tags_are_taken_for_tags(text: str, least: float) -> None:
    candidate = DIALECT.sniff(text)
    assert candidate is not None
    assert candidate.score >= least


def test_a_tag_among_prose_scores_lower_than_a_tag_alone() -> None:
    alone, among = DIALECT.sniff("@a3|f0|c1|S0|d1|T1#"), DIALECT.sniff("so @a3|f0|c1|S0|d1|T1# it went")
    assert alone is not None
    assert among is not None
    assert among.score < alone.score


def tell_with(context: Context, wire: str) -> Message:
    return DIALECT.tell(DIALECT.read(wire, None), context, NoKeys()).messages[0]


def test_a_channel_can_name_its_agents_and_the_number_stays_visible() -> None:
    named = Entry(kind="agent-name", name="0", value="Orion", source=("record-7", 1))
    message = tell_with(Context([named]), "@a3|f0|c1|S0|d7|T1|k1#")
    assert message.sentence == "Orion (agent 0) asks agent 7 to do task 1."
    assert message.english[0].source == ("record-7", 1)


def test_the_names_of_the_log_are_told_once_and_only_what_contradicts_them_is_a_caution() -> None:
    named = {"from": "kim", "to": ["bob"], "conversation": "order-9", "trace": "t-1"}
    conversations, transcript = dialects.Conversations(), dialects.Transcript()
    said = [(1, "kim"), (2, "kim"), (3, "eve")]
    lines = []
    for index, (turn, sender) in enumerate(said):
        reading = dialects.read(f"@a3|f0|c1|S0|d1|T{turn}|g1|k{turn}#", dialects.envelope_of({**named, "from": sender}))
        told = conversations.tell(reading, index)
        notes = [*told.messages[0].notes, *told.notes]
        lines.append(transcript.tell(told.messages[0], dialect="nslip", wire=told.wire, notes=notes))
    assert all(line.said.startswith("kim (agent 0) asks bob (agent 1)") for line in lines)
    assert [line.cautions for line in lines[:2]] == ["", ""]
    assert "Caution: the log calls agent 0 eve here, and kim before: the wire's number stands." in lines[2].cautions


def test_the_segments_stand_on_the_characters_that_justify_them() -> None:
    wire = '@a3|f0|c1|S0|d1|T1|g1|k2|q2|t"tidy"#'
    (message,) = decode(wire).messages
    found = {part.text.strip(): [wire[start:end] for _, start, end in part.spans] for part in message.english}
    assert found["The coordinator (agent 0)"] == ["S0"]
    assert found["the planner (agent 1)"] == ["d1"]
    assert found["asks"] == ["a3"]
    assert found["task 2"] == ["k2"]
    assert found["goal 1"] == ["g1"]
    assert found["priority 2 of 3"] == ["q2"]
    assert found["“tidy”"] == ['t"tidy"']
    assert [wire[part.spans[0][1] : part.spans[0][2]] for part in message.also] == ["c1", "T1", "q2"]


def test_the_gloss_goes_through_the_tag_in_wire_order() -> None:
    (message,) = decode('@a8|f3|cB|S3|d0|T4|k1|sA|x?|t"ok"#').messages
    assert message.gloss_line == (
        "EVAL · EVALUATION · conversation 11 · from agent 3 · to agent 0 · turn 4 · task 1 · score 10"
        " · unknown field x “?” · tag “ok”"
    )


def test_every_pair_of_act_and_frame_has_a_vector() -> None:
    seen = {
        (message.get("native_act"), message.get("frame"))
        for case in load("nslip")["valid"]
        for message in case["messages"]
    }
    assert {(act.name, frame.name) for act in ACTS.values() for frame in FRAMES.values()} <= seen


def test_every_note_is_shown_by_a_vector() -> None:
    vectors = load("nslip")
    shown = {code for case in vectors["valid"] for code in case["notes"]} | {x["note"] for x in vectors["malformed"]}
    too_large_for_a_table = {"nslip.too-many-fields", "nslip.too-many-tags"}
    shared = {"envelope.disagrees", "text.hidden"}
    assert {kind.code for kind in DIALECT.notes} == (shown - shared) | too_large_for_a_table


def test_the_glossary_holds_every_act_frame_and_field() -> None:
    terms = {term.code for term in DIALECT.glossary}
    assert {f"a{digit}" for digit in "0123456789A"} | {f"f{digit}" for digit in "01234"} <= terms
    assert set("afcSdTgkprqsuet") <= terms
    assert all(term.meaning for term in DIALECT.glossary)


def test_a_reply_is_sought_by_turn_and_then_by_neighbourhood() -> None:
    (message,) = decode("@a4|f1|c1|S1|d0|T2|k1#").messages
    first, second = DIALECT.replies(message)
    assert (first.whom, first.basis) == ("latest-to-me", "turn")
    assert "agent 1" in first.why
    assert "task 1" in first.why
    assert (second.whom, second.basis) == ("previous", "adjacency")
    assert DIALECT.orders_by_turn


def test_a_parent_from_the_envelope_goes_before_the_turns() -> None:
    reading = decode("@a4|f1|c1|S1|d0|T2#", envelope=dialects.Envelope(parent="m-1"))
    assert [reply.whom for reply in DIALECT.replies(reading.messages[0])] == ["message-id", "latest-to-me", "previous"]


def test_prose_and_malformed_text_answer_nothing_by_turn() -> None:
    for wire in ("so @a3|f0|c1|S0|d1|T1#", "@a3|f0|c1|S0|d1|T1"):
        assert DIALECT.replies(decode(wire).messages[0]) == ()


@for_each(
    [
        ("@a3|f0|cB|S0|d1|T1#", "11"),
        ("@T1|S0|d1|c10|f0|a3#", "62"),
        ("@a3|f0|c3|s0|d1|t1#", "3"),
        ("so @a3|f0|c4|S0|d1|T1#", "4"),
        ("@a3|f0|c4|S0", "4"),
        ("@a3|f0|S0|d1|T1#", None),
        ("@a3|f0|c-1|S0|d1|T1#", None),
        ("nothing here", None),
        ("", None),
    ]
)
def test_identity_is_the_conversation_alone(wire: str, conversation: str | None) -> None:
    identity = dialects.identify(wire, "nslip")
    assert (identity.conversation, identity.id, identity.time) == (conversation, None, None)


@for_each(OWN)
def test_identity_agrees_with_the_record(case: Case) -> None:
    read = (message.conversation_id for message in DIALECT.read(case.wire, None).messages)
    assert DIALECT.identify(case.wire).conversation == next((name for name in read if name is not None), None)


# Blocks over several lines.


def test_a_quoted_text_goes_on_over_lines() -> None:
    block = DIALECT.opens('@a1|f0|c1|S2|d0|T1|t"first')
    assert block is not None
    assert block.feed("second") == "more"
    assert block.feed('third"|k1#') == "last"
    assert block.is_complete


def test_a_separator_at_the_end_of_a_line_goes_on() -> None:
    block = DIALECT.opens("@a1|f0|c1|")
    assert block is not None
    assert block.feed("S2|d0|T1#") == "last"


@for_each(["@a1|f0|c1|S2|d0|T1#", "@a1|f0|c1|S2|d0", "mail a@b.org #x", "", '"quoted"'])
def test_a_line_that_is_whole_or_merely_cut_opens_no_block(line: str) -> None:
    assert DIALECT.opens(line) is None


def test_a_block_never_swallows_the_next_tag() -> None:
    block = DIALECT.opens('@a1|f0|c1|S2|d0|T1|t"cut')
    assert block is not None
    assert block.feed('@a4|f1|c1|S1|d0|T2|t"plan"#') == "not"
    assert not block.is_complete
    assert block.lines_if_cut == 1


def test_a_block_that_never_closes_gives_up() -> None:
    block = DIALECT.opens('@a1|f0|c1|S2|d0|T1|t"cut')
    assert block is not None
    answers = {block.feed(f"line {number}") for number in range(200)}
    assert answers == {"more", "not"}


# Writing what other dialects said.

FOREIGN = Message(
    performative="request",
    native_act="REQ",
    sender="4",
    receivers=("5",),
    conversation_id="12",
    turn=3,
    task_id="70",
)


def test_another_dialects_request_is_written_and_its_missing_frame_is_a_loss() -> None:
    written = DIALECT.encode([FOREIGN])
    assert written.wire == "@a3|f0|cC|S4|d5|T3|k18#"
    assert [loss.name for loss in written.losses] == ["frame"]


@for_each(list(zip(PERFORMATIVES, DIGITS, strict=False)))
def test_every_act_that_exists_here_is_written(performative: str, code: str) -> None:
    written = DIALECT.encode([FOREIGN.replace(performative=performative)])
    assert written.wire.startswith(f"@a{code}|f")


@for_each(
    [
        ("message_id", "m-1", "message_id"),
        ("sent_at", "2026-01-02T03:04:05Z", "sent_at"),
        ("content", {"q": 1}, "content"),
        ("task_id", "audit", "task_id"),
        ("trace_id", "t-0123456789ab", "trace_id"),
        ("parent_task_id", "007", "parent_task_id"),
        ("score", 0.5, "score"),
        ("score", -1, "score"),
        ("score", True, "score"),
        ("score", MAX_NUMBER + 1, "score"),
        ("priority", Priority(raw="high", rank=1), "priority"),
        ("priority", Priority(raw="some day"), "priority"),
        ("error", Failure(code="E004"), "error"),
        ("error", Failure(code="4", message="full"), "error"),
        ("attributes", {"offer": "x"}, "attributes"),
        ("attributes", {"unread": {"x": "1#@a3"}}, "attributes"),
        ("attributes", {"unread": {"f": "0.5"}}, "attributes"),
        ("references", (dialects.Reference(ref="a/b"),), "references"),
        ("path", ("1", "2"), "path"),
    ]
)
def test_what_a_tag_cannot_hold_is_listed(name: str, value: Any, lost: str) -> None:
    written = DIALECT.encode([FOREIGN.replace(frame="TASK", **{name: value})])
    assert [loss.name for loss in written.losses] == [lost]
    assert all(loss.reason and loss.part == 1 for loss in written.losses)
    before, after = FOREIGN.replace(frame="TASK", **{name: value}), decode(written.wire).messages[0]
    differing = {
        key for key in plain(before).keys() | plain(after).keys() if getattr(before, key) != getattr(after, key)
    }
    assert differing <= {lost, "native_act"}


@for_each(
    [
        {"sender": None},
        {"sender": "alice"},
        {"receivers": ()},
        {"receivers": ("1", "2")},
        {"receivers": (), "broadcast": True},
        {"conversation_id": None},
        {"conversation_id": "conv-001"},
        {"conversation_id": "01"},
        {"conversation_id": str(MAX_NUMBER + 1)},
        {"conversation_id": "9" * 5000},
        {"turn": None},
        {"turn": -1},
        {"performative": None},
        {"performative": "subscribe"},
        {"performative": "unknown", "native_act": "42"},
        {"performative": "unknown", "native_act": None, "frame": "TASK"},
    ]
)
def test_what_cannot_be_written_at_all_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(dialects.EncodeError) as caught:
        DIALECT.encode([FOREIGN.replace(**changes)])
    assert caught.value.dialect == "nslip"
    assert caught.value.reason


def test_text_that_would_read_as_a_tag_is_not_written_around_tags() -> None:
    prose = Message(performative="inform", content="so @a3|f0|c1|S0|d1|T1#")
    with pytest.raises(dialects.EncodeError):
        DIALECT.encode([prose, FOREIGN])
    with pytest.raises(dialects.EncodeError):
        DIALECT.encode([prose])


# Hostile input.


@for_each(["f", "c", "S", "d", "T"])
def test_a_number_of_100_kb_is_kept_as_text_at_once(prefix: str) -> None:
    header = {"f": "0", "c": "1", "S": "0", "d": "1", "T": "1"} | {prefix: "z" * 100_000}
    wire = "|".join(["@a3", *(f"{name}{value}" for name, value in header.items())]) + "#"
    assert is_within(0.25, lambda: measure(wire), tries=5)
    reading = decode(wire)
    assert codes(reading) == ["nslip.too-large"]
    assert reading.messages[0].attributes["unread"][prefix] == "z" * 100_000
    assert prefix != "c" or reading.messages[0].conversation_id is None


def test_zeros_of_100_kb_are_a_number() -> None:
    (message,) = decode(f"@a3|f0|c{'0' * 100_000}7|S0|d1|T1#").messages
    assert message.conversation_id == "7"


def test_a_tag_of_too_many_fields_names_the_limit() -> None:
    reading = decode("@a3|f0|c1|S0|d1|T1" + "|k1" * 5000 + "#")
    assert codes(reading).count("nslip.duplicate") == 193
    assert codes(reading)[-1] == "nslip.too-many-fields"
    assert reading.messages[0].also[-1].text == "4806 further fields are not read"
    assert_covers(reading)


def test_a_record_of_too_many_tags_keeps_the_rest_as_text() -> None:
    tag = "@a3|f0|c1|S0|d1|T1#"
    reading = DIALECT.read(tag * 10_002, None)
    assert len(reading.messages) == 10_001
    assert reading.messages[-1].content == tag * 2
    assert [note.code for note in reading.notes] == ["nslip.too-many-tags"]
    assert_covers(reading)


def measure(wire: str) -> float:
    """Processor seconds to read, tell and unfold a text; other work only adds to them."""
    start = time.thread_time()
    assert DIALECT.identify(wire) is not None
    DIALECT.sniff(wire)
    told = DIALECT.tell(DIALECT.read(wire, None), Context(), NoKeys())
    assert told.reading.fields
    return time.thread_time() - start


WORST = {
    "quotes": lambda n: '@a3|f0|t"' + '\\"' * n,
    "backslashes": lambda n: '@a3|f0|t"' + "\\" * n + "#",
    "open-quotes": lambda n: '@a3|f0|t"x ' * n,
    "separators": lambda n: "@a3|f0" + "|" * n + "#",
    "at-signs": lambda n: "@a3|f0|c1|" + "@" * n + "#",
    "half-openers": lambda n: "@a|@a|" * n,
    "quoted-openers": lambda n: '@a|"\\"' * n,
    "openers": lambda n: "@a3|f0|" * n,
    "mentions": lambda n: "@bob|carl #x " * n,
    "spaces": lambda n: "@a3|f0|" + " " * n + "c1|S0|d1|T1#",
    "zeros": lambda n: "@a3|f0|c1|S0|d1|T1|k" + "0" * n + "#",
    "digits": lambda n: "@a3|f0|c1|S0|d1|T1|k" + "z" * n + "#",
    "tags": lambda n: "@a3|f0|c1|S0|d1|T1#" * (n // 20),
    "escapes": lambda n: '@a3|f0|c1|S0|d1|T1|t"' + "\\n" * n + '"#',
    "escaped-quotes": lambda n: "@a3|f0|c1" + r"|t\"" * n,
    "escaped-openers": lambda n: r"@a3|f0|c1|t\"" + r"\\\"|t" * n + "#",
    "escaped-tags": lambda n: r'@a3|f0|c1|S0|d1|T1|t\"x"#' * (n // 20),
    "text": lambda n: "x" * n + "@",
}


@pytest.mark.long(seconds=4)
@for_each(WORST)
def test_time_grows_linearly(name: str) -> None:
    short, long = WORST[name](1_000), WORST[name](10_000)
    assert is_within(40 * min(measure(short) for _ in range(5)) + 0.02, lambda: measure(long), tries=5)


def test_json_shows_every_reading() -> None:
    for case in OWN:
        assert json.loads(json.dumps(case.decode().to_dict()))["dialect"] == "nslip"


def test_no_sentence_has_doubled_or_missing_spaces() -> None:
    for message in (message for case in OWN_VALID for message in case.decode().messages if message.native_act):
        told = re.sub("“.*?”", "“”", message.sentence, flags=re.DOTALL)
        assert not re.search(r"  | [,.:)]|\(\)|\{|\}", told), told
        assert told.endswith(".")


@generated(200, text=texts, plain_text=texts)
def test_escaped_quotes_read_as_plain_ones(text: str, plain_text: str) -> None:
    """A tag as a program's source holds it, every quote and backslash escaped once more, reads as the tag itself."""
    wire = f"@a1|f2|c7|S2|d0|T3|k5|u{in_quotes(plain_text)}|t{in_quotes(text)}#"
    escaped = wire.replace("\\", "\\\\").replace('"', '\\"')
    expected, found = decode(wire, dialect="nslip"), decode(escaped, dialect="nslip")
    assert [plain(message) for message in found.messages] == [plain(message) for message in expected.messages]
    assert codes(found) == ["nslip.escaped-quotes"]
    assert dialects.encode(found).wire == wire
    assert_covers(found)
