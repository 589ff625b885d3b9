"""Staging: a file's beginning is looked at before anything of it is in the log, and read again as it is chosen."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
import zstandard
from django.core.exceptions import ValidationError

from inspector.accounts.models import Channel
from inspector.intake import staging
from inspector.intake.containers import RefusedArchiveError
from inspector.intake.models import Chunk, Delivery, Job, Record, Scaffold, Sighting
from inspector.intake.selectors import find_delivery, list_deliveries
from inspector.intake.staging import Choices, NotStagedError
from inspector.pages.uploads import Foretold, foretell
from inspector.threads.models import Conversation, Message
from inspector.trail.acting import act_as
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all
from .test_containers import make_zip

pytestmark = pytest.mark.django_db

LOG = b"".join(f"2026-01-01T00:00:{number:02} oscar: all is well {number}\n".encode() for number in range(30))
DIALOGUE = b"All is well.\nIs it?\nIt is.\n"


def stage(cast: Cast, data: bytes, name: str = "a.log", **choices: Any) -> list[Delivery]:
    return staging.stage_file(
        membership=cast.auditor,
        channel=cast.channel,
        chunks=[data],
        choices=Choices(**choices),
        file_name=name,
        remote_address="192.0.2.7",
    )


def preview(delivery: Delivery) -> list[Foretold]:
    return foretell(records=staging.look_at(delivery=delivery).records, options=delivery.options)


def senders(delivery: Delivery) -> list[str | None]:
    return [line.reading.messages[0].sender for line in preview(delivery) if line.reading]


@pytest.mark.parametrize("fold", [bytes, gzip.compress, zstandard.ZstdCompressor().compress], ids=["", "gz", "zst"])
def test_the_first_twenty_are_shown_and_nothing_is_in_the_log(cast: Cast, fold: Any) -> None:
    (delivery,) = stage(cast, fold(LOG))
    beginning = staging.look_at(delivery=delivery)
    told = foretell(records=beginning.records, options=delivery.options)
    assert len(told) == 20
    assert (beginning.forecast.received, beginning.forecast.new, beginning.lines) == (30, 30, 30)
    assert (beginning.is_whole, beginning.failure, beginning.looked_bytes) == (True, "", len(LOG))
    first = told[0]
    assert first.reading is not None
    assert first.reading.messages[0].sender == "oscar"
    assert "all is well 0" in first.reading.messages[0].sentence
    assert (first.time, first.time_basis) == ("2026-01-01T00:00:00Z", "envelope")
    for model in (Record, Sighting, Scaffold, Job, Message, Conversation):
        assert not model._default_manager.exists()
    assert find_delivery(workspace=cast.workspace, delivery_id=delivery.pk) is None
    assert list_deliveries(workspace=cast.workspace) == []


def test_what_was_seen_is_what_is_loaded(cast: Cast) -> None:
    (delivery,) = stage(cast, LOG)
    told = [line.reading.messages[0].sentence for line in preview(delivery) if line.reading]
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    stored = Message.objects.order_by("order_index").values_list("english", flat=True)
    assert list(stored[:20]) == told
    delivery.refresh_from_db()
    assert (delivery.state, delivery.stored, delivery.received) == ("framed", 30, 30)
    assert delivery.remote_address == "192.0.2.7"
    assert not Chunk.objects.exists()


def test_what_a_message_refers_to_is_told_alike_before_and_after(cast: Cast) -> None:
    lines = (
        b"2026-11-17T09:14:06Z [desk] desk -> atlas: ?Uk/od",
        b"2026-11-17T09:14:03Z [desk] desk -> atlas: @v0.6#h !Iw/s ?Uc/la",
        b'2026-11-17T09:14:05Z [desk] atlas -> desk: {def:od="order 5521"}',
    )
    (delivery,) = stage(cast, b"\n".join(lines))
    told = [[each.sentence for each in line.reading.messages] for line in preview(delivery) if line.reading]
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    settled: dict[int, list[str]] = {}
    for index, english in Message.objects.order_by("order_index", "part").values_list("order_index", "english"):
        settled.setdefault(index, []).append(english)
    assert told == list(settled.values())
    assert "as defined by atlas in message" in told[0][0]


def test_each_file_of_an_archive_is_looked_at_on_its_own(cast: Cast) -> None:
    first, second = stage(cast, make_zip(("a.log", LOG), ("b.log", b"oscar: hello there\n")), "x.zip")
    assert (first.file_name, second.file_name) == ("x.zip/a.log", "x.zip/b.log")
    assert [staging.look_at(delivery=one).forecast.received for one in (first, second)] == [30, 1]
    assert list(staging.list_staged(membership=cast.auditor)) == [first, second]
    assert not staging.list_staged(membership=cast.owner).exists()
    assert not Job.objects.exists()


def test_a_refused_archive_leaves_nothing(cast: Cast) -> None:
    with pytest.raises(RefusedArchiveError):
        stage(cast, make_zip(("../evil.log", b"x")), "x.zip")
    assert not Delivery.objects.exists()


def test_a_large_file_is_looked_at_no_further_than_the_limit(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "LOOK_RECORDS", 500)
    (delivery,) = stage(cast, gzip.compress(b"x all is well\n" * 200_000))
    beginning = staging.look_at(delivery=delivery)
    assert not beginning.is_whole
    assert 500 <= beginning.forecast.received < 200_000
    assert len(beginning.records) == 20


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(gzip.compress(LOG, mtime=0), mtime=0), "within a container"),
        (gzip.compress(LOG, mtime=0)[:-20], "cut short"),
        (b"PK\x03\x04" + bytes(100), "no readable directory"),
    ],
)
def test_what_cannot_be_opened_says_so_beforehand_as_it_will_count(cast: Cast, data: bytes, words: str) -> None:
    (delivery,) = stage(cast, data)
    beginning = staging.look_at(delivery=delivery)
    assert words in beginning.failure
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    delivery.refresh_from_db()
    seen = beginning.forecast
    assert (delivery.received, delivery.quarantined) == (seen.received, seen.quarantined)
    assert delivery.state == Delivery.State.BROKEN


def test_bytes_that_are_no_text_say_why(cast: Cast) -> None:
    (delivery,) = stage(cast, b"fine here\n\xff\xfe broken\n")
    fine, broken = preview(delivery)
    assert fine.reading is not None
    assert broken.reading is None
    assert broken.record.problem is not None
    assert "UTF-8" in broken.record.problem.reason


def test_the_numbers_say_what_was_here_before(cast: Cast) -> None:
    deliver(cast, LOG[: len(LOG) // 2])
    (delivery,) = stage(cast, LOG)
    forecast = staging.look_at(delivery=delivery).forecast
    assert forecast.duplicate > 10
    assert forecast.new + forecast.duplicate == 30
    staging.choose(delivery=delivery, choices=Choices(channel="another"))
    delivery.refresh_from_db()
    assert staging.look_at(delivery=delivery).forecast.new == 30
    assert not Channel.objects.filter(name="another").exists()


def test_what_is_twice_in_a_file_is_counted_as_importing_counts_it(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"clowl":"0.2","mid":"m1","p":"INF","from":"a","to":"b","cid":"c"}\n'
    timed = b'{"clowl":"0.2","ts":1795251600,"p":"INF","from":"a","to":"b","cid":"c"}\n'
    log = line * 2 + b"all is well\n" * 2 + timed * 2 + b"\xff\n" * 2
    (delivery,) = stage(cast, log)
    # Whatever is looked at together: equal ones may be in two pieces.
    for size in (staging.PIECE_BYTES, 16):
        monkeypatch.setattr(staging, "PIECE_BYTES", size)
        seen = staging.look_at(delivery=delivery).forecast
        assert (seen.new, seen.duplicate, seen.quarantined) == (5, 1, 2)
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    delivery.refresh_from_db()
    assert (delivery.stored, delivery.duplicate, delivery.quarantined) == (5, 1, 2)
    # Of what is there by then, each is a duplicate, and once.
    (again,) = stage(cast, line * 2)
    assert staging.look_at(delivery=again).forecast.duplicate == 2


def test_a_dialect_for_the_whole_file(cast: Cast) -> None:
    (delivery,) = stage(cast, b"!nd hb ok\nplain words stand here too\n")
    delivery = staging.choose(delivery=delivery, choices=Choices(dialect="nslip"))
    readings = [line.reading for line in preview(delivery) if line.reading]
    assert {reading.dialect for reading in readings} == {"nslip"}
    assert {reading.candidates[0].why for reading in readings} == {"chosen by the sender of the delivery"}
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    assert set(Message.objects.values_list("dialect", flat=True)) == {"nslip"}


def test_prefixes_can_be_switched_off(cast: Cast) -> None:
    (delivery,) = stage(cast, LOG)
    assert set(senders(delivery)) == {"oscar"}
    delivery = staging.choose(delivery=delivery, choices=Choices(has_prefixes=False))
    assert set(senders(delivery)) == {None}


def test_one_speaker_or_two_or_nobody_known(cast: Cast) -> None:
    (delivery,) = stage(cast, DIALOGUE)
    assert senders(delivery) == [None, None, None]
    delivery = staging.choose(delivery=delivery, choices=Choices(speakers=("oscar",)))
    assert senders(delivery) == ["oscar"] * 3
    delivery = staging.choose(delivery=delivery, choices=Choices(speakers=("oscar", "radar")))
    assert senders(delivery) == ["oscar", "radar", "oscar"]
    first = preview(delivery)[0].reading
    assert first is not None
    assert set(first.from_envelope) == {"sender", "receivers"}
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    rows = Message.objects.order_by("place")
    assert [(row.sender, row.receivers) for row in rows] == [
        ("oscar", ["radar"]),
        ("radar", ["oscar"]),
        ("oscar", ["radar"]),
    ]
    assert Conversation.objects.get(message_count=3).agents == ["oscar", "radar"]


def test_who_speaks_never_overrides_what_the_log_says(cast: Cast) -> None:
    log = b'radar: Is it?\n{"raw": "It is.", "from": "muse"}\n@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"x"#\nNothing is said.\n'
    (delivery,) = stage(cast, b"2026-01-01T00:00:00Z " + log, speakers=("oscar",))
    told = [line.reading for line in preview(delivery) if line.reading]
    plain = (delivery.options | {"speakers": []}) and foretell(
        records=staging.look_at(delivery=delivery).records, options={}
    )
    said = [line.reading.messages[0].sender for line in plain if line.reading]
    assert [reading.messages[0].sender for reading in told] == [*said[:3], "oscar"]
    assert said[0] == "radar"
    assert said[1] == "muse"
    assert said[2] is not None
    assert not any(note.code == "envelope.disagrees" for reading in told for note in reading.notes)


def test_which_record_is_new_does_not_depend_on_what_is_said_of_it(cast: Cast) -> None:
    timed = b"2026-01-01T00:00:00Z All is well.\n"
    for data in (DIALOGUE, timed * 3):
        deliver(cast, data)
        (again,) = stage(cast, data, speakers=("oscar", "radar"), dialect="prose")
        staging.load(delivery=again)
        resolve_all(is_examined=False)
        again.refresh_from_db()
        assert (again.stored, again.duplicate) == (0, 3)
    assert Record.objects.count() == 6


def test_the_declared_start_orders_what_carries_no_time(cast: Cast) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    (delivery,) = stage(cast, DIALOGUE)
    staging.choose(delivery=delivery, choices=Choices(start=start))
    staging.load(delivery=delivery)
    resolve_all(is_examined=False)
    assert set(Message.objects.values_list("order_time", "order_basis")) == {(start, "start")}


def test_the_channel_is_made_when_the_file_is_loaded(cast: Cast) -> None:
    (delivery,) = stage(cast, DIALOGUE, channel="lab")
    loaded = staging.load(delivery=delivery)
    assert loaded.channel.name == "lab"
    (other,) = stage(cast, DIALOGUE, channel="\u200b")
    with pytest.raises(ValidationError):
        staging.load(delivery=other)
    other.refresh_from_db()
    assert other.state == Delivery.State.STAGED


def test_thrown_away_it_leaves_nothing(cast: Cast) -> None:
    (delivery,) = stage(cast, LOG)
    staging.discard(delivery=delivery)
    assert not Delivery.objects.exists()
    assert not Chunk.objects.exists()
    for act in (staging.load, staging.discard):
        with pytest.raises(NotStagedError):
            act(delivery=delivery)


def test_the_audit_log_has_what_came_of_it(cast: Cast) -> None:
    (kept,), (gone,), (old,) = stage(cast, LOG), stage(cast, DIALOGUE), stage(cast, b"old\n")
    with act_as(cast.auditor):
        staging.load(delivery=kept)
        staging.discard(delivery=gone)
    Delivery.objects.filter(pk=old.pk).update(received_at=old.received_at - timedelta(hours=25))
    staging.discard_expired()
    deeds = list(Deed.objects.filter(code__startswith="delivery.").order_by("sequence"))
    assert [(deed.code, deed.actor_name, deed.object_kind, deed.object_id) for deed in deeds] == [
        ("delivery.imported", "amir", "delivery", str(kept.pk)),
        ("delivery.discarded", "amir", "file", str(gone.pk)),
        ("delivery.discarded", "The product", "file", str(old.pk)),
    ]
    assert deeds[1].told == f"amir discarded the uploaded file “{gone.file_name}”"
    assert deeds[0].details == {
        "sha256": sha256(LOG).hexdigest(),
        "bytes": len(LOG),
        "channel": "main",
        "received_at": kept.received_at.isoformat(),
    }


def test_loaded_it_is_staged_no_more(cast: Cast) -> None:
    (delivery,) = stage(cast, LOG)
    staging.load(delivery=delivery)
    for act in (staging.load, staging.discard):
        with pytest.raises(NotStagedError):
            act(delivery=delivery)
    with pytest.raises(NotStagedError):
        staging.choose(delivery=delivery, choices=Choices())


def test_what_nobody_loads_is_gone_after_a_day(cast: Cast) -> None:
    (old,), (young,) = stage(cast, LOG), stage(cast, DIALOGUE)
    Delivery.objects.filter(pk=old.pk).update(received_at=old.received_at - timedelta(hours=25))
    loaded = deliver(cast, b"long ago\n")
    Delivery.objects.filter(pk=loaded.pk).update(received_at=old.received_at - timedelta(days=400))
    assert staging.discard_expired() == 1
    assert set(Delivery.objects.values_list("pk", flat=True)) == {young.pk, loaded.pk}
