"""Which record is new: the four rules, for each door, for grown and overlapping files, channels and workspaces."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from inspector.accounts.services import ensure_channel
from inspector.intake import selectors
from inspector.intake.models import Delivery, Door, Record, Scaffold, Sighting

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db


def counts(delivery: Delivery) -> tuple[int, int, int, int]:
    delivery.refresh_from_db()
    return delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined


def envelope(raw: str, **names: object) -> bytes:
    return json.dumps({"raw": raw, **names}).encode() + b"\n"


def test_same_id_and_same_wire_is_a_duplicate(cast: Cast) -> None:
    line = envelope("The door is open.", id="m1", conversation="c1")
    assert counts(deliver(cast, line, door=Door.API)) == (1, 1, 0, 0)
    assert counts(deliver(cast, line, door=Door.API)) == (1, 0, 1, 0)
    assert counts(deliver(cast, line, door=Door.UPLOAD)) == (1, 0, 1, 0)


def test_same_id_with_another_envelope_is_a_duplicate_that_keeps_it(cast: Cast) -> None:
    deliver(cast, envelope("The door is open.", id="m1", **{"from": "ada"}))
    again = deliver(cast, envelope("The door is open.", id="m1", **{"from": "bob"}))
    assert counts(again) == (1, 0, 1, 0)
    assert '"sender":"bob"' in again.sightings.get().envelope


def test_same_id_with_other_bytes_keeps_both(cast: Cast) -> None:
    deliver(cast, envelope("The door is open.", id="m1"), envelope("The door is shut.", id="m1"))
    assert Record.objects.filter(workspace=cast.workspace).count() == 2


def test_the_same_id_in_another_conversation_is_another_record(cast: Cast) -> None:
    deliver(cast, envelope("Go.", id="m1", conversation="a"), envelope("Go.", id="m1", conversation="b"))
    assert Record.objects.count() == 2


def test_timed_records_without_id_are_counted_within_their_delivery(cast: Cast) -> None:
    beat = envelope("still here", at="2026-11-21T09:00:00Z")
    assert counts(deliver(cast, beat * 3)) == (3, 3, 0, 0)
    assert counts(deliver(cast, beat * 3)) == (3, 0, 3, 0)
    assert counts(deliver(cast, beat * 5)) == (5, 2, 3, 0)


def test_timed_records_are_counted_across_batches(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.intake.framing.BATCH_RECORDS", 2)
    monkeypatch.setattr("inspector.intake.framing.PIECE_BYTES", 100)
    beat = envelope("still here", at="2026-11-21T09:00:00Z")
    assert counts(deliver(cast, beat * 9)) == (9, 9, 0, 0)
    assert counts(deliver(cast, beat * 9)) == (9, 0, 9, 0)


def test_three_equal_heartbeats_of_a_file_stay_three(cast: Cast) -> None:
    assert counts(deliver(cast, b"beat\nbeat\nbeat\n")) == (3, 3, 0, 0)


@pytest.mark.parametrize("name", ["test.log", "renamed.log"])
def test_the_same_file_again_adds_nothing(cast: Cast, name: str) -> None:
    log = b"one\ntwo\nthree\n"
    deliver(cast, log)
    assert counts(deliver(cast, log, name=name)) == (3, 0, 3, 0)
    assert counts(deliver(cast, log, name=name, door=Door.UPLOAD)) == (3, 0, 3, 0)


def test_a_grown_file_adds_only_what_is_new(cast: Cast) -> None:
    deliver(cast, b"one\ntwo\n")
    assert counts(deliver(cast, b"one\ntwo\ntwo\nthree")) == (4, 2, 2, 0)


def test_a_grown_file_stays_one_conversation_in_order(cast: Cast) -> None:
    deliver(cast, b"one\ntwo\n")
    deliver(cast, b"one\ntwo\nthree\n")
    resolve_all(is_examined=False)
    conversation = cast.workspace.conversation_set.get()
    said = conversation.messages.order_by("place").values_list("english", flat=True)
    assert list(said) == [f"Someone writes plain text: “{word}”." for word in ("one", "two", "three")]


def test_what_is_posted_without_id_and_time_is_always_new(cast: Cast) -> None:
    assert counts(deliver(cast, b"one\none\n", door=Door.API)) == (2, 2, 0, 0)
    assert counts(deliver(cast, b"one\none\n", door=Door.API)) == (2, 2, 0, 0)


def test_channels_keep_ids_apart(cast: Cast) -> None:
    line = envelope("Go.", id="m1")
    second = ensure_channel(workspace=cast.workspace, name="second")
    assert counts(deliver(cast, line)) == (1, 1, 0, 0)
    assert counts(deliver(cast, line, channel=second)) == (1, 1, 0, 0)


def test_workspaces_keep_ids_apart(cast: Cast) -> None:
    line = envelope("Go.", id="m1")
    other = Cast(cast.stranger.workspace, cast.stranger, cast.stranger, cast.stranger, cast.stranger)
    assert counts(deliver(cast, line)) == (1, 1, 0, 0)
    assert counts(deliver(other, line)) == (1, 1, 0, 0)


def test_a_record_seen_twice_has_the_smallest_order_key(cast: Cast) -> None:
    late = envelope("Go.", id="m1", at="2026-11-21T10:00:00Z")
    early = envelope("Go.", id="m1", at="2026-11-21T09:00:00Z")
    deliver(cast, late)
    resolve_all(is_examined=False)
    deliver(cast, early)
    resolve_all(is_examined=False)
    record = Record.objects.get()
    assert record.order_time.hour == 9
    assert record.messages.get().order_time.hour == 9
    assert Sighting.objects.get(is_earlier=True).outcome == Sighting.Outcome.DUPLICATE


def test_order_basis_says_whence_the_time_is(cast: Cast) -> None:
    deliver(cast, envelope("a", at="2026-11-21T09:00:00Z"), b"b\n")
    assert set(Record.objects.values_list("order_basis", flat=True)) == {"envelope", "receipt"}


@pytest.mark.parametrize(
    "log",
    [
        b"one\ntwo\n\n\nthree",
        b"\xef\xbb\xbfone\r\ntwo\r\n",
        b'[{"raw": "a"},\n {"raw": "b"} , "c"]\n',
        b"fine\n\xff\xfe broken\nfine again\n",
        b'raw,from,at\nhello,ada,2026-11-21T09:00:00Z\n"two\nlines",bob,\n',
        b"",
    ],
)
def test_slices_and_scaffold_give_the_stream_back(cast: Cast, log: bytes) -> None:
    delivery = deliver(cast, log)
    assert b"".join(selectors.rebuild_stream(delivery=delivery)) == log
    received, stored, duplicate, quarantined = counts(delivery)
    assert received == stored + duplicate + quarantined


def test_line_ends_between_records_are_not_stored_and_were(cast: Cast) -> None:
    log = b"\none\ntwo\n\nthree\n\xff\xff\nfour\n"
    delivery = deliver(cast, log)
    kept = dict(delivery.scaffold.values_list("offset", "data"))
    assert sum(len(data) for data in kept.values()) == 3
    assert b"".join(selectors.rebuild_stream(delivery=delivery)) == log
    # Each of them had a row in an earlier version.
    missing = [at for at, byte in enumerate(log) if byte == 10 and not any(o <= at < o + len(kept[o]) for o in kept)]
    assert len(missing) == 4
    Scaffold.objects.bulk_create(Scaffold(delivery=delivery, offset=at, data=b"\n") for at in missing)
    assert b"".join(selectors.rebuild_stream(delivery=delivery)) == log


@pytest.mark.parametrize(
    "again",
    [
        envelope("Go.", id="m1", **{"from": "bob"}),
        b'{ "id" : "m1",  "raw" : "Go." }\n',
        b'[{"id": "m1", "raw": "Go."}]',
    ],
    ids=["other envelope", "other spaces", "in an array"],
)
def test_a_duplicate_written_otherwise_gives_its_own_stream_back(cast: Cast, again: bytes) -> None:
    deliver(cast, envelope("Go.", id="m1"))
    delivery = deliver(cast, b"before\n" * (again[:1] != b"[") + again)
    assert counts(delivery)[2] == 1
    assert b"".join(selectors.rebuild_stream(delivery=delivery)) == b"before\n" * (again[:1] != b"[") + again


def test_a_record_over_the_cap_is_quarantined_and_its_bytes_are_kept(cast: Cast, settings: object) -> None:
    settings.LIMITS = {**settings.LIMITS, "record_bytes": 1000}  # type: ignore[attr-defined]
    line = b"x" * 5000
    delivery = deliver(cast, b"before\n" + line + b"\nafter\n")
    assert counts(delivery) == (3, 2, 0, 1)
    problem = selectors.list_problems(delivery=delivery)[0]
    assert b"".join(selectors.read_source(record=problem.record)) == line
    assert b"".join(selectors.rebuild_stream(delivery=delivery)) == b"before\n" + line + b"\nafter\n"


def test_sightings_lie_one_after_the_other(cast: Cast) -> None:
    delivery = deliver(cast, b"one\ntwo\nthree\n")
    rows = list(delivery.sightings.order_by("index").values_list("index", "offset", "length"))
    assert [row[0] for row in rows] == [0, 1, 2]
    assert all(one[1] + one[2] <= other[1] for one, other in pairwise(rows))
