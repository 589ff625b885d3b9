"""The laws that hold for every vector, and for text that no table holds."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

import dialects
from dialects._record import leaves
from tests.lanes import generated

from ..each import for_each
from .cases import Case, cases, plain

EVERY = [*cases("valid"), *cases("malformed")]
SLUGS = [dialect.slug for dialect in dialects.all_dialects()]


@for_each(EVERY)
def test_the_field_tree_covers_the_wire(case: Case) -> None:
    assert_covers(case.decode())


def assert_covers(reading: dialects.Reading) -> None:
    at = 0
    for leaf in leaves(reading.fields):
        assert leaf.span[1] == at, f"a gap or an overlap at {at}: {leaf!r}"
        at = leaf.span[2]
        if not leaf.is_masked:
            assert leaf.raw == reading.wire[leaf.span[1] : leaf.span[2]]
    assert at == len(reading.wire)


@for_each(cases("valid"))
def test_a_valid_wire_leaves_nothing_unread_in_silence(case: Case) -> None:
    reading = case.decode()
    unread = [leaf for leaf in leaves(reading.fields) if leaf.name == "unread"]
    notes = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    for leaf in unread:
        assert any(
            note.span and note.span[0] == 0 and note.span[1] < leaf.span[2] and note.span[2] > leaf.span[1]
            for note in notes
        ), f"{leaf.raw!r} is neither read nor noted"


@for_each(EVERY)
def test_spans_lie_within_their_layer(case: Case) -> None:
    reading = case.decode()
    lengths = {layer.id: len(layer.text) for layer in reading.layers}
    spans = [note.span for note in reading.notes if note.span]
    spans += [layer.of for layer in reading.layers if layer.of]
    for message in reading.messages:
        spans += [note.span for note in message.notes if note.span]
        spans += [span for part in (*message.english, *message.also, *message.gloss) for span in part.spans]
    for layer, start, end in spans:
        assert 0 <= start <= end <= lengths[layer]


@for_each(EVERY)
def test_what_is_given_is_what_is_shown(case: Case) -> None:
    """The names a message gives are those of its dictionary that are not absent, made on demand or not."""
    for message in case.decode().messages:
        full, absent = message.to_dict(), dialects.Message().to_dict()
        expected = {name: value for name, value in full.items() if value != absent[name]}
        assert {name: dialects.to_json_type(value) for name, value in message.given().items()} == expected


# A vector that forces its dialect, or needs its conversation to be known, says nothing of detection.
DETECTED = [case for case in cases("valid") if not case.data.get("as") and not case.data.get("in_context")]


@for_each(DETECTED)
def test_detection_ranks_its_own_dialect_first(case: Case) -> None:
    assert dialects.detect(case.wire)[0].dialect == case.dialect


# A carrier is read and never written.
WRITTEN = [case for case in cases("valid") if not dialects.get_dialect(case.dialect).is_carrier]


@for_each(WRITTEN)
def test_encoding_gives_the_wire_back(case: Case) -> None:
    written = dialects.encode(case.decode())
    if "loss" in case.data:
        assert case.data["loss_reason"]
        assert sorted({loss.name for loss in written.losses}) == sorted(case.data["loss"])
    else:
        assert written.losses == ()
        assert written.wire == case.data.get("encodes_to", case.wire)


@for_each(WRITTEN)
def test_what_is_encoded_decodes_to_the_same(case: Case) -> None:
    before = case.decode()
    written = dialects.encode(before)
    again = Case(case.dialect, case.kind, case.data | {"wire": written.wire}).decode()
    lost = {loss.name for loss in written.losses}
    for one, other in zip(before.messages, again.messages, strict=True):
        first, second = plain(one), plain(other)
        differing = {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}
        assert differing <= lost, f"missing from both the result and the losses: {differing - lost}"


@for_each(EVERY)
def test_who_asks_what_waits_says_so(case: Case) -> None:
    """Threads keep what waits for an answer only of a dialect that says it asks for that."""
    dialect = dialects.get_dialect(case.dialect)
    asks = {way.whom for message in case.decode().messages for way in dialect.replies(message)}
    assert dialect.asks_what_waits or "latest-unanswered-of-other" not in asks


@for_each(SLUGS)
def test_at_most_one_vector_in_ten_states_a_loss(slug: str) -> None:
    own = [case for case in cases("valid") if case.dialect == slug]
    assert sum("loss" in case.data for case in own) * 10 <= len(own)


@for_each(EVERY)
def test_no_prefix_of_a_wire_makes_read_raise(case: Case) -> None:
    read_prefixes(case, 6)


@pytest.mark.long(seconds=30)
@for_each(EVERY)
def test_none_of_many_prefixes_of_a_wire_makes_read_raise(case: Case) -> None:
    read_prefixes(case, 60)


def read_prefixes(case: Case, count: int) -> None:
    for end in range(0, len(case.wire), max(1, len(case.wire) // count)):
        assert_covers(dialects.decode(case.wire[:end], dialect=case.dialect))


@generated(800, slug=st.sampled_from(SLUGS), text=st.text(max_size=300))
def test_no_random_text_makes_read_raise(slug: str, text: str) -> None:
    dialects.identify(text, slug)
    assert_covers(dialects.decode(text, dialect=slug))
