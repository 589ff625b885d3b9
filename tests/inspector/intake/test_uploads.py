"""Uploaded containers as deliveries: one or several, whole or broken, resumed after a kill, or refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator

import pytest
import zstandard
from django.test import Client

from inspector import pipeline
from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.intake import framing, services
from inspector.intake.containers import RefusedArchiveError
from inspector.intake.framing import LAST_BYTES, take_stream
from inspector.intake.models import Chunk, Delivery, Door, Job, Record, Scaffold, Sighting
from inspector.intake.selectors import read_arrival, read_source, rebuild_stream
from inspector.intake.services import open_delivery, take_file
from inspector.threads.models import Message

from ..conftest import Cast, resolve_all
from .test_containers import make_zip

pytestmark = pytest.mark.django_db

# More than two batches of records and, packed or not, more than one piece of an upload.
COUNT = 2400
LINES = [f"record {number} {os.urandom(24).hex()}\n".encode() for number in range(COUNT)]
LOG = b"".join(LINES)
FOLDS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


def upload(cast: Cast, data: bytes, name: str = "a.log") -> list[Delivery]:
    delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD, file_name=name)
    return take_file(delivery=delivery, chunks=(data[at : at + 65536] for at in range(0, len(data), 65536)))


def counts(delivery: Delivery) -> tuple[int, int, int, int]:
    delivery.refresh_from_db()
    return (delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined)


@pytest.mark.parametrize("kind", FOLDS)
def test_a_packed_log_is_one_delivery_of_the_file_as_it_came(cast: Cast, kind: str) -> None:
    packed = FOLDS[kind](LOG)
    (delivery,) = upload(cast, packed, f"a.log.{kind}")
    resolve_all(is_examined=False)
    assert counts(delivery) == (COUNT, COUNT, 0, 0)
    assert (delivery.size_bytes, bytes(delivery.sha256 or b"")) == (len(packed), hashlib.sha256(packed).digest())
    assert delivery.framed_bytes == delivery.size_bytes
    assert b"".join(rebuild_stream(delivery=delivery)) == LOG
    assert not Chunk.objects.exists()


def test_the_same_log_packed_and_plain_is_stored_once(cast: Cast) -> None:
    for data in (LOG, gzip.compress(LOG), FOLDS["zstd"](LOG), make_zip(("a.log", LOG))):
        upload(cast, data)
    resolve_all(is_examined=False)
    assert Record.objects.count() == COUNT
    assert sorted(Delivery.objects.values_list("stored", "duplicate")) == [(0, COUNT)] * 3 + [(COUNT, 0)]


def test_a_name_promises_nothing(cast: Cast) -> None:
    (plain,) = upload(cast, b"one\n", "a.zip")
    (packed,) = upload(cast, gzip.compress(b"two\n"), "a.txt")
    resolve_all(is_examined=False)
    assert (counts(plain)[:2], counts(packed)[:2]) == ((1, 1), (1, 1))


@pytest.mark.parametrize("kind", FOLDS)
def test_a_packed_log_is_framed_in_slices(cast: Cast, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "SLICE_SECONDS", 0.02)
    (delivery,) = upload(cast, FOLDS[kind](LOG))
    slices = 0
    while not delivery.is_framed:
        Job.objects.filter(kind=Job.Kind.FRAME).update(due_at="2026-01-01T00:00:00Z")
        pipeline.run_due(only=(Job.Kind.FRAME,), seconds=0.001)
        delivery.refresh_from_db()
        assert delivery.framed_bytes <= delivery.size_bytes
        slices += 1
        assert slices < 100
    assert slices > 1
    assert counts(delivery) == (COUNT, COUNT, 0, 0)
    assert b"".join(rebuild_stream(delivery=delivery)) == LOG


class Killed(BaseException):
    """Stands for kill -9: nothing after it runs in its worker."""


@pytest.mark.parametrize("data", [gzip.compress(LOG), gzip.compress(LOG)[:-2000]], ids=["whole", "cut"])
def test_killed_at_any_piece_nothing_is_lost_or_doubled(
    cast: Cast, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (delivery,) = upload(cast, data)
    feed = framing.Framer.feed
    lives = deaths = left = 0

    def feed_and_die(self: framing.Framer, piece: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        feed(self, piece)

    monkeypatch.setattr(framing.Framer, "feed", feed_and_die)
    monkeypatch.setattr(framing, "BATCH_RECORDS", 500)
    while not delivery.is_framed:
        lives += 1
        assert lives < 50
        left = 1 + lives // 3
        Job.objects.filter(kind=Job.Kind.FRAME).update(
            due_at="2026-01-01T00:00:00Z", lease_until="2026-01-01T00:00:00Z", attempts=0
        )
        try:
            pipeline.run_due(only=(Job.Kind.FRAME,), seconds=0.001)
        except Killed:
            deaths += 1
        delivery.refresh_from_db()
    assert deaths > 1
    received, stored, duplicate, quarantined = counts(delivery)
    assert (received, duplicate) == (stored + quarantined, 0)
    indexes = list(Sighting.objects.filter(delivery=delivery).order_by("index").values_list("index", flat=True))
    assert indexes == list(range(received))
    stream = b"".join(rebuild_stream(delivery=delivery))
    assert LOG.startswith(stream)
    assert quarantined == (0 if stream == LOG else 2)


@pytest.mark.parametrize("kind", FOLDS)
def test_a_cut_file_keeps_its_whole_records_and_the_file(cast: Cast, kind: str) -> None:
    # A zstd gives its bytes in blocks of 128 KiB, so that the file has several.
    lines = [*LINES, *(f"again {number} {os.urandom(24).hex()}\n".encode() for number in range(COUNT))]
    packed = FOLDS[kind](b"".join(lines))
    packed = packed[: len(packed) * 3 // 4]
    (delivery,) = upload(cast, packed)
    # What it says is settled elsewhere.
    pipeline.run_due(seconds=60, only=(Job.Kind.FRAME, Job.Kind.INGEST))
    received, stored, _, quarantined = counts(delivery)
    assert delivery.state == Delivery.State.BROKEN
    assert f"the {kind} is cut short" in delivery.failure
    assert received == stored + quarantined > 1000
    wires = [bytes(source) + b"\n" for source in stored_sources(delivery)]
    assert wires == lines[:stored]
    problems = Sighting.objects.filter(delivery=delivery, outcome=Sighting.Outcome.QUARANTINED).order_by("index")
    *cut, rest = problems
    assert len(cut) == quarantined - 1 <= 1
    assert all("the record is cut" in one.reason and lines[stored].startswith(read(one)) for one in cut)
    assert read(rest) == b"".join(read_arrival(delivery=delivery)) == packed
    assert b"".join(lines).startswith(b"".join(rebuild_stream(delivery=delivery)))


def stored_sources(delivery: Delivery) -> list[bytes]:
    rows = Sighting.objects.filter(delivery=delivery, outcome=Sighting.Outcome.STORED).order_by("index")
    return list(rows.values_list("record__source", flat=True))


def read(sighting: Sighting) -> bytes:
    return b"".join(read_source(record=sighting.record))


BROKEN: dict[str, tuple[bytes, str]] = {
    "bomb": (gzip.compress(bytes(1 << 26)), "beyond the limits"),
    "bomb of zstd": (FOLDS["zstd"](bytes(1 << 26)), "beyond the limits"),
    "nested": (gzip.compress(gzip.compress(b"one\n")), "within a container"),
    "zip in gzip": (gzip.compress(make_zip(("a", b"one\n"))), "within a container"),
    "junk behind": (gzip.compress(b"one\n") + b"junk", "followed by bytes"),
    "no more than a beginning": (gzip.compress(LOG)[:5], "cut short"),
    "a cut zip": (make_zip(("a.log", LOG))[:-30], "no readable directory"),
    "no zip at all": (b"PK\x03\x04" + bytes(100), "no readable directory"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_opened_is_quarantined_and_can_be_fetched(cast: Cast, case: str) -> None:
    data, words = BROKEN[case]
    (delivery,) = upload(cast, data)
    resolve_all(is_examined=False)
    assert counts(delivery)[3] >= 1
    assert delivery.state == Delivery.State.BROKEN
    assert words in delivery.failure
    # Nobody can look through what cannot be opened, so its bytes go only to whom secrets may be shown.
    key = create_api_key(workspace=cast.workspace, name="test", scopes=["ingest", "read", "secrets"])[1]
    headers = {"Authorization": f"Bearer {key}"}
    said = Client().get(f"/api/v1/deliveries/{delivery.pk}", headers=headers).json()
    assert (said["state"], said["is_framed"], said["is_read"]) == ("broken", True, True)
    assert words in said["failure"]
    raw = Client().get(said["problems"][-1]["raw"], headers=headers)
    assert b"".join(raw.streaming_content) == data
    assert delivery.size_bytes == len(data)


def test_the_same_broken_file_again_is_quarantined_again(cast: Cast) -> None:
    packed = gzip.compress(LOG)[:-2000]
    for _ in range(2):
        upload(cast, packed)
    resolve_all(is_examined=False)
    first, second = Delivery.objects.order_by("received_at")
    assert (first.received, first.quarantined) == (second.received, second.quarantined)
    assert second.stored == 0
    assert Record.objects.filter(is_quarantined=True).count() == first.quarantined


def test_the_whole_file_after_its_cut_one_adds_only_what_was_missing(cast: Cast) -> None:
    upload(cast, gzip.compress(LOG)[:-2000])
    (whole,) = upload(cast, gzip.compress(LOG))
    resolve_all(is_examined=False)
    received, stored, duplicate, quarantined = counts(whole)
    assert (received, quarantined) == (COUNT, 0)
    assert stored < duplicate
    assert Record.objects.filter(is_quarantined=False).count() == COUNT


def test_a_line_that_was_cut_off_after_its_last_letter_is_read_when_the_whole_file_comes(cast: Cast) -> None:
    """The bytes are the same in both files; from the one that ends there nobody can know that the line is whole."""
    pack = zlib.compressobj(wbits=31)
    cut = pack.compress(b"one\ntwo\nthree") + pack.flush(zlib.Z_SYNC_FLUSH)
    (first,) = upload(cast, cut)
    (whole,) = upload(cast, cut + pack.compress(b"\nfour\n") + pack.flush())
    resolve_all(is_examined=False)
    # The line without an end, and the bytes of the file itself.
    assert counts(first) == (4, 2, 0, 2)
    assert counts(whole) == (4, 2, 2, 0)
    read = Record.objects.filter(is_quarantined=False)
    assert sorted(bytes(record.source) for record in read) == [b"four", b"one", b"three", b"two"]
    assert sorted(Message.objects.values_list("english", flat=True)) == [
        f"Someone writes plain text: “{word}”." for word in ("four", "one", "three", "two")
    ]


# ---------------------------------------------------------------- zip


def test_each_file_of_an_archive_is_a_delivery(cast: Cast) -> None:
    data = make_zip(("a.log", b"one\ntwo\n"), ("logs/b.csv", b"raw,from\nhello,ada\n"), ("logs/empty.log", b""))
    deliveries = upload(cast, data, "night.zip")
    resolve_all(is_examined=False)
    for delivery in deliveries:
        delivery.refresh_from_db()
    assert [(one.file_name, one.stored, one.state) for one in deliveries] == [
        ("night.zip/a.log", 2, "framed"),
        ("night.zip/logs/b.csv", 1, "framed"),
        ("night.zip/logs/empty.log", 0, "framed"),
    ]
    assert Delivery.objects.count() == 3
    first = deliveries[0]
    assert (first.size_bytes, bytes(first.sha256 or b"")) == (8, hashlib.sha256(b"one\ntwo\n").digest())
    archive = {"name": "night.zip", "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert all(one.options["archive"] == archive for one in deliveries)
    assert len({(one.door, one.channel_id, one.received_at) for one in deliveries}) == 1


def test_a_damaged_or_nested_file_of_an_archive_breaks_only_its_own_delivery(cast: Cast) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, inner in (("a.log", b"one\ntwo\nthree"), ("b.log.gz", gzip.compress(b"x\n")), ("c.log", b"four\n")):
            archive.writestr(name, inner)
    data = bytearray(out.getvalue())
    data[data.index(b"three")] ^= 1
    damaged, nested, fine = upload(cast, bytes(data), "x.zip")
    resolve_all(is_examined=False)
    assert (counts(damaged), damaged.state) == ((4, 2, 0, 2), "broken")
    assert "checksum" in damaged.failure
    assert (counts(nested), nested.state) == ((1, 0, 0, 1), "broken")
    assert "gzip within a zip" in nested.failure
    assert (counts(fine), fine.state) == ((1, 1, 0, 0), "framed")


def test_a_refused_archive_leaves_nothing(cast: Cast) -> None:
    with pytest.raises(RefusedArchiveError, match="leads out of the archive"):
        upload(cast, make_zip(("fine.log", LOG), ("../evil.log", b"x")))
    for model in (Delivery, Chunk, Record, Scaffold, Job):
        assert not model._default_manager.exists()


def test_an_archive_that_unfolds_too_far_leaves_nothing(cast: Cast, settings: object) -> None:
    settings.LIMITS = {**settings.LIMITS, "delivery_bytes": 100_000}  # type: ignore[attr-defined]
    with pytest.raises(RefusedArchiveError, match="at most 100,000"):
        upload(cast, make_zip(("a.log", LOG)))
    assert not Delivery.objects.exists()


def test_an_upload_is_read_up_to_a_number_of_records(cast: Cast, settings: object) -> None:
    settings.LIMITS = {**settings.LIMITS, "delivery_records": 50}  # type: ignore[attr-defined]
    (delivery,) = upload(cast, gzip.compress(b"a\n" * 9000))
    resolve_all(is_examined=False)
    received, stored, duplicate, quarantined = counts(delivery)
    assert (50 < stored <= 50 + LAST_BYTES, duplicate, delivery.state) == (True, 0, "broken")
    assert received == stored + quarantined
    assert "50 records" in delivery.failure
    # The rest is in the file, which is kept.
    assert delivery.chunks.exists()


def test_an_upload_of_a_list_that_is_not_closed_says_so(cast: Cast) -> None:
    (delivery,) = upload(cast, b'[{"raw": "a"},')
    resolve_all(is_examined=False)
    assert (counts(delivery), delivery.warnings["counts"]) == ((1, 1, 0, 0), {"cut": 1})


def test_a_browser_gets_400_for_a_refused_archive(cast: Cast, sign_in: Callable[[Membership], Client]) -> None:
    data = bytearray(make_zip(("a.log", b"x")))
    struct.pack_into("<HH", data, data.index(b"PK\x05\x06") + 8, 60_000, 60_000)
    file = io.BytesIO(bytes(data))
    file.name = "million.zip"
    said = {"logs": file, "channel": "main", "has_prefixes": "on"}
    response = sign_in(cast.auditor).post("/w/acme/upload/", said)
    assert response.status_code == 400
    assert not Delivery.objects.exists()


# ---------------------------------------------------------------- what was cut


@pytest.mark.parametrize(
    ("stream", "stored", "quarantined"),
    [
        (b"one\ntwo\n", [b"one", b"two"], []),
        (b"one\ntw", [b"one"], [b"tw"]),
        (b'{"raw": "one"}\n{"raw": "t', [b'{"raw": "one"}'], [b'{"raw": "t']),
        (b'"x"\n{\n  "raw": "one",\n  "from"', [b'"x"'], [b'{\n  "raw": "one",\n  "from"']),
        (b'[{"raw": "one"}, {"raw": "tw', [b'{"raw": "one"}'], [b'{"raw": "tw']),
        (b'[{"raw": "one"}, {"raw": "two"}', [b'{"raw": "one"}', b'{"raw": "two"}'], []),
        (b"raw,from\none,ada\ntw", [b"one,ada"], [b"tw"]),
        (b'raw,from\none,ada\n"tw\no', [b"one,ada"], [b'"tw\no']),
        (b"", [], []),
        (b"o", [], [b"o"]),
    ],
)
def test_what_was_cut_never_passes_for_whole(
    cast: Cast, stream: bytes, stored: list[bytes], quarantined: list[bytes]
) -> None:
    def break_off() -> Iterator[bytes]:
        yield stream
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        take_stream(
            delivery=open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.IMPORT),
            chunks=break_off(),
        )
    delivery = Delivery.objects.get()
    assert delivery.state == Delivery.State.BROKEN
    assert stored_sources(delivery) == stored
    rest = Sighting.objects.filter(delivery=delivery, outcome=Sighting.Outcome.QUARANTINED).order_by("index")
    assert [read(one) for one in rest] == quarantined
    assert b"".join(rebuild_stream(delivery=delivery)) == stream
