"""Containers as streams: what they hold, where they stop, and the archives that are not taken at all."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import stat
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator

import pytest
import zstandard

from inspector.intake.containers import (
    MAX_MEMBERS,
    Archive,
    Arrival,
    ContainerError,
    RefusedArchiveError,
    name_container,
    peek,
    skip_bytes,
    unfold,
)
from tests.each import for_each

MAX_BYTES = 64 * 1024 * 1024
LOG = b"".join(f"record {number} {os.urandom(8).hex()}\n".encode() for number in range(20_000))


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


FOLDS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd}


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def read_all(kind: str, pieces: Iterator[bytes], *, max_bytes: int = MAX_BYTES) -> tuple[bytes, str]:
    """What came out, and why it ended (empty where it came to its end)."""
    got = bytearray()
    try:
        for piece in unfold(kind, pieces, max_bytes=max_bytes):
            got += piece
    except ContainerError as error:
        return bytes(got), str(error)
    return bytes(got), ""


@pytest.mark.parametrize("kind", FOLDS)
@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_a_stream_unfolds_however_it_is_cut(kind: str, size: int) -> None:
    log = LOG[: size * 3000]
    assert read_all(kind, cut(FOLDS[kind](log), size)) == (log, "")


@pytest.mark.parametrize("kind", FOLDS)
def test_members_one_after_the_other_are_one_stream(kind: str) -> None:
    whole = FOLDS[kind](b"one\n") + FOLDS[kind](b"") + FOLDS[kind](b"two\n")
    assert read_all(kind, cut(whole, 5)) == (b"one\ntwo\n", "")


def test_zeros_may_pad_a_gzip_and_frames_to_be_skipped_a_zstd() -> None:
    assert read_all("gzip", cut(gzip.compress(b"one\n") + bytes(500), 9)) == (b"one\n", "")
    skipped = b"\x53\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    assert name_container(skipped) == "zstd"
    assert read_all("zstd", cut(skipped + zstd(b"one\n"), 3)) == (b"one\n", "")


@pytest.mark.parametrize("kind", FOLDS)
def test_a_cut_stream_gives_what_it_held_and_says_so(kind: str) -> None:
    packed = FOLDS[kind](LOG)
    got, why = read_all(kind, cut(packed[: len(packed) // 2], 4096))
    assert LOG.startswith(got)
    assert len(got) > len(LOG) // 4
    assert why == f"the {kind} is cut short"


def test_every_cut_of_a_gzip_is_noticed() -> None:
    packed = gzip.compress(b"one\ntwo\n")
    for end in range(1, len(packed)):
        got, why = read_all("gzip", iter([packed[:end]]))
        assert b"one\ntwo\n".startswith(got)
        assert why, end


@pytest.mark.parametrize("kind", FOLDS)
def test_a_damaged_stream_says_so(kind: str) -> None:
    packed = bytearray(FOLDS[kind](LOG))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = bytes(64)
    got, why = read_all(kind, cut(bytes(packed), 4096))
    assert why.startswith(f"the {kind} is damaged")
    # Behind the damage a gzip may give other bytes until its checksum comes; what lies before is as it was.
    assert got[: len(LOG) // 3] == LOG[: len(LOG) // 3]


def test_what_follows_a_gzip_and_is_none_is_noticed() -> None:
    got, why = read_all("gzip", iter([gzip.compress(b"one\n") + b"junk"]))
    assert (got, "followed by bytes that are no gzip" in why) == (b"one\n", True)


@pytest.mark.parametrize("kind", FOLDS)
def test_a_bomb_stops_soon_and_holds_no_memory(kind: str) -> None:
    bomb = FOLDS[kind](bytes(1 << 28))
    started = time.thread_time()
    tracemalloc.start()
    try:
        got, why = read_all(kind, cut(bomb, 128 * 1024), max_bytes=2**31)
        assert "beyond the limits" in why
        assert tracemalloc.get_traced_memory()[1] < 3 * len(got) + 32 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert len(got) <= 64 * 1024 * 1024
    assert time.thread_time() - started < 2


def test_little_may_unfold_to_much_and_nothing_to_more_than_a_delivery() -> None:
    assert read_all("gzip", cut(gzip.compress(bytes(1 << 24)), 4096)) == (bytes(1 << 24), "")
    got, why = read_all("gzip", cut(gzip.compress(LOG), 4096), max_bytes=100_000)
    assert len(got) <= 100_000
    assert "at most 100,000 bytes" in why


@pytest.mark.parametrize(
    "inner", [gzip.compress(b"x"), zstd(b"x"), b"PK\x03\x04 and so on"], ids=["gzip", "zstd", "zip"]
)
@pytest.mark.parametrize("kind", FOLDS)
def test_a_container_in_a_container_is_not_opened(kind: str, inner: bytes) -> None:
    got, why = read_all(kind, cut(FOLDS[kind](inner), 2))
    assert (got, "within a container" in why) == (b"", True)


@for_each([b"", b"P", b"PK is short", b"{}", b"\x1f\x8b", b"@a1|f0#"])
def test_a_log_is_no_container(text: bytes) -> None:
    assert name_container(text) is None


def test_peeking_loses_nothing_and_skipping_takes_exactly_so_much() -> None:
    head, pieces = peek(iter([b"", b"a", b"bc", b"defg"]))
    assert (head, b"".join(pieces)) == (b"abcd", b"abcdefg")
    assert peek(iter([]))[0] == b""
    for count in range(9):
        assert b"".join(skip_bytes([b"abc", b"", b"defg"], count)) == b"abcdefg"[count:]


def test_an_arrival_is_counted_and_digested_to_its_end() -> None:
    arrival = Arrival([b"one", b"two"])
    assert next(arrival) == b"one"
    arrival.drain()
    assert arrival.size_bytes == 6
    other = Arrival([b"onetwo"])
    other.drain()
    assert arrival.sha256 == other.sha256


# ---------------------------------------------------------------- zip


def make_zip(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def open_zip(data: bytes, *, max_bytes: int = MAX_BYTES) -> Archive:
    return Archive(io.BytesIO(data), max_bytes=max_bytes)


def make_link() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    return out.getvalue()


def make_device() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        device = zipfile.ZipInfo("null")
        device.external_attr = (stat.S_IFCHR | 0o666) << 16
        archive.writestr(device, "")
    return out.getvalue()


def make_encrypted() -> bytes:
    data = bytearray(make_zip(("a.log", b"secret\n")))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + at] |= 1
    return bytes(data)


def make_overlap() -> bytes:
    """Two entries of the directory that mean the same bytes."""
    data = make_zip(("a.log", LOG))
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry = data[start:end]
    tail = bytearray(data[end:])
    struct.pack_into("<HHI", tail, 8, 2, 2, 2 * len(entry))
    return data[:end] + entry.replace(b"a.log", b"b.log") + bytes(tail)


def claim_entries(count: int) -> bytes:
    data = bytearray(make_zip(("a.log", b"x")))
    struct.pack_into("<HH", data, data.index(b"PK\x05\x06") + 8, count, count)
    return bytes(data)


def make_large_directory() -> bytes:
    """A million entries that one line of the end does not admit to."""
    data = make_zip(("a.log", b"x"))
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    directory = data[start:end] * 200_000
    tail = bytearray(data[end:])
    struct.pack_into("<HHI", tail, 8, 1, 1, len(directory))
    return data[:start] + directory + bytes(tail)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "leads out": (lambda: make_zip(("fine.log", b"x"), ("a/../../b.log", b"x")), "leads out of the archive"),
    "leads out backwards": (lambda: make_zip(("..\\b.log", b"x")), "leads out of the archive"),
    "absolute": (lambda: make_zip(("/etc/passwd", b"x")), "an absolute path"),
    "a drive": (lambda: make_zip(("C:/windows", b"x")), "an absolute path"),
    "a link": (make_link, "a symbolic link"),
    "a device": (make_device, "no ordinary file"),
    "encrypted": (make_encrypted, "is encrypted"),
    "another method": (lambda: make_zip(("a", b"x"), method=zipfile.ZIP_LZMA), "a method other than deflate"),
    "too many": (lambda: make_zip(*((f"{n}.log", b"") for n in range(MAX_MEMBERS + 1))), "at most 1,000"),
    "too many by its own count": (lambda: claim_entries(60_000), "at most 1,000"),
    "a directory beyond reason": (make_large_directory, "at most 1,000"),
    "overlapping": (make_overlap, "overlap"),
    "a bomb": (lambda: make_zip(("zeros.log", bytes(1 << 25))), "beyond the limits"),
    "no file": (lambda: make_zip(("folder/", b"")), "no file"),
    "empty": (lambda: make_zip(), "no file"),
}


@for_each(HOSTILE)
def test_a_hostile_archive_is_refused_with_a_reason(case: str) -> None:
    make, words = HOSTILE[case]
    started = time.thread_time()
    data = make()
    made = time.thread_time()
    with pytest.raises(RefusedArchiveError) as refused:
        open_zip(data)
    assert words in str(refused.value)
    assert time.thread_time() - made < 1, made - started


def test_an_archive_larger_than_a_delivery_is_refused() -> None:
    data = make_zip(("a.log", LOG), ("b.log", LOG))
    with pytest.raises(RefusedArchiveError, match="at most 800,000"):
        open_zip(data, max_bytes=800_000)
    assert len(open_zip(data).members) == 2


def test_a_million_entries_cost_no_memory() -> None:
    data = make_large_directory()
    tracemalloc.start()
    try:
        with pytest.raises(RefusedArchiveError):
            open_zip(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_files_of_an_archive_come_out_as_they_went_in(method: int) -> None:
    files = [("a.log", LOG), ("empty.log", b""), ("folder/b.log", b"one\n")]
    archive = open_zip(make_zip(*files, ("folder/", b""), method=method))
    assert [(member.filename, b"".join(archive.read(member))) for member in archive.members] == files


def test_an_archive_behind_other_bytes_is_read_all_the_same() -> None:
    archive = open_zip(b"#!/bin/sh\n" + make_zip(("a.log", b"one\n")))
    assert b"".join(archive.read(archive.members[0])) == b"one\n"


def test_a_damaged_file_gives_what_it_held() -> None:
    data = bytearray(make_zip(("a.log", LOG), method=zipfile.ZIP_STORED))
    data[len(LOG) // 2] ^= 1
    archive = open_zip(bytes(data))
    got: list[bytes] = []
    with pytest.raises(ContainerError, match="checksum"):
        got.extend(archive.read(archive.members[0]))
    assert sum(map(len, got)) == len(LOG)


def test_a_file_that_is_larger_than_its_directory_says_is_damaged() -> None:
    data = bytearray(make_zip(("a.log", LOG)))
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 1000)
    archive = open_zip(bytes(data))
    with pytest.raises(ContainerError, match="larger than"):
        b"".join(archive.read(archive.members[0]))


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_cut_archive_has_no_directory(share: float) -> None:
    data = make_zip(("a.log", LOG))
    with pytest.raises(ContainerError, match="no readable directory"):
        open_zip(data[: int(len(data) * share)])


def test_no_single_changed_byte_raises_anything_else() -> None:
    data = make_zip(("a.log", b"one\n" * 50), ("b.log", b"two\n"))
    outcomes = set()
    for at, flip in itertools.product(range(len(data)), (0x01, 0x80, 0xFF)):
        changed = bytearray(data)
        changed[at] ^= flip
        try:
            archive = open_zip(bytes(changed))
            for member in archive.members:
                b"".join(archive.read(member))
            outcomes.add("read")
        except ContainerError:
            outcomes.add("broken")
        except RefusedArchiveError:
            outcomes.add("refused")
    assert outcomes == {"read", "broken", "refused"}


def test_no_single_changed_byte_of_a_gzip_passes_for_another_text() -> None:
    packed = gzip.compress(b"one\n" * 50, mtime=0)
    for at, flip in itertools.product(range(3, len(packed)), (0x01, 0x80)):
        changed = bytearray(packed)
        changed[at] ^= flip
        got, why = read_all("gzip", iter([bytes(changed)]))
        assert why or got == b"one\n" * 50, at
