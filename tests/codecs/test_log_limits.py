"""What cannot become text is quarantined with its place while the rest goes on; time and memory stay bounded."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import pytest

from dialects import LogOptions, LogReader, LogRecord, Piece, Problem, read_log
from tests.each import for_each
from tests.lanes import begin_with

MEGABYTE = 1024 * 1024


def records_of(log: bytes, **options: object) -> list[LogRecord]:
    return [item for item in read_log(log, LogOptions(**options)) if isinstance(item, LogRecord)]


@for_each(
    [
        (b"one\nbad \xe9 here\r\nthree", 8, 0xE9),
        (b"\xef\xbb\xbfone\n\xc3\nthree", 7, 0xC3),
        (b'["one", "a\xffb", "three"]', 10, 0xFF),
        (b"from,text\na,one\nb,\xed\xa0\x80\nc,three", 18, 0xED),
        (b'one\n{"a":\n"\xe9"}\nthree', None, None),
    ]
)
def test_bytes_that_are_not_utf_8_are_quarantined(log: bytes, place: int | None, byte: int | None) -> None:
    records = records_of(log)
    assert (records[0].wire, records[-1].wire) == ("one", "three")
    [bad] = [record for record in records if record.problem]
    assert bad.wire is None
    assert bad.problem is not None
    assert bad.problem.code == "not-utf-8"
    if place is not None:
        reason = f"byte 0x{byte:02x} at offset {place} is not UTF-8"
        assert bad.problem == Problem(code="not-utf-8", reason=reason, offset=place)


@pytest.mark.parametrize(
    "log",
    ["hello\nthere\n".encode("utf-16"), b"\xfe\xff" + "hi".encode("utf-16-be"), "h\u00ebllo there".encode("utf-16-le")],
    ids=["with its mark", "big-endian", "without a mark"],
)
def test_utf_16_is_quarantined_whole(log: bytes) -> None:
    [record] = records_of(log)
    assert (record.source, record.wire) == (log, None)
    assert record.problem is not None
    assert record.problem.code == "utf-16"


def test_a_long_utf_16_stream_is_handed_on_in_pieces() -> None:
    log = ("hello\n" * 500_000).encode("utf-16")
    items = list(read_log(log, LogOptions(max_record_bytes=MEGABYTE)))
    assert b"".join(item.data for item in items if isinstance(item, Piece)) == log
    assert items[-1].problem.code == "utf-16"


def test_an_array_that_breaks_off_keeps_its_complete_elements() -> None:
    reader = LogReader()
    items = [*reader.feed(b'["one", {"raw": "two"}, {"raw": "thr'), *reader.close()]
    records = [item for item in items if isinstance(item, LogRecord)]
    assert [record.wire for record in records] == ["one", "two", None]
    assert records[2].source == b'{"raw": "thr'
    assert records[2].problem.code == "cut"
    assert reader.ending is not None


def test_an_array_cut_between_elements_says_so() -> None:
    reader = LogReader()
    items = [*reader.feed(b'["one",\n'), *reader.close()]
    assert [item.wire for item in items if isinstance(item, LogRecord)] == ["one"]
    assert reader.ending == Problem(code="cut", reason="the JSON array is not closed", offset=8)


def test_a_whole_array_ends_well() -> None:
    reader = LogReader()
    reader.feed(b'["one"]')
    reader.close()
    assert reader.ending is None


@pytest.mark.parametrize(
    ("log", "start"),
    [(b"one\n%s\nthree", 4), (b'["one", "%s", "three"]', 8), (b"from,text\na,one\n%s\nb,three", 16)],
    ids=["a line", "an element", "a row"],
)
def test_a_record_over_the_limit_is_quarantined_in_pieces(log: bytes, start: int) -> None:
    log = log % (b"x" * 3_000_000)
    items = list(read_log(log, LogOptions(max_record_bytes=2_000_000)))
    first, long, last = [item for item in items if isinstance(item, LogRecord)]
    assert (first.wire, last.wire) == ("one", "three")
    assert (long.offset, long.source, long.wire) == (start, None, None)
    assert long.problem.code == "too-long"
    data = b"".join(item.data for item in items if isinstance(item, Piece))
    assert data == log[long.offset : long.offset + long.length]
    assert max(len(item.data) for item in items if isinstance(item, Piece)) == MEGABYTE


def test_a_record_of_exactly_the_limit_is_kept() -> None:
    assert [record.wire for record in records_of(b"abcd\r\nabc\n", max_record_bytes=4)] == ["abcd", "abc"]
    assert [record.wire for record in records_of(b"abcde\r\nabc\n", max_record_bytes=4)] == [None, "abc"]


def test_a_checkpoint_moves_on_within_a_long_record() -> None:
    reader = LogReader(LogOptions(max_record_bytes=MEGABYTE))
    reader.feed(b"x" * (5 * MEGABYTE))
    assert reader.state()["offset"] >= 4 * MEGABYTE


def long_line(size_megabytes: int) -> Iterator[bytes]:
    yield from (b"x" * MEGABYTE for _ in range(size_megabytes))
    yield b"\nend\n"


def test_a_line_of_forty_megabytes_passes_in_seconds_and_little_memory() -> None:
    started = time.thread_time()
    tracemalloc.start()
    wires = [item.wire for item in read_log(long_line(40)) if isinstance(item, LogRecord)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert wires == [None, "end"]
    assert peak < 48 * MEGABYTE
    assert time.thread_time() - started < 5


HARD = {
    "lines": b"a\n",
    "tags": b'@a3|f0|c1|S0|d1|T1|k1|t"x"#\n',
    "tags that never close": b'@a3|f0|c1|t"x\n',
    "objects that never close": b'{"a":\n',
    "lists that never close": b'{"a":[\n',
    "braces": b"{\n",
    "open strings": b'{"a": "\n',
    "fences": b"```json\n",
    "statements": "👽73|@1|$aGk=\n".encode(),
    "blocks of Lambda": b"!Ik/co {def:\n",
    "comments": b"x\n// y\n// z\n",
    "labels": b"[a] [b] [c] x\n",
}


@pytest.mark.parametrize("count", begin_with(1, (1000, 4000), seconds=10))
@pytest.mark.parametrize("line", HARD.values(), ids=HARD)
def test_time_grows_with_the_log_and_no_faster(line: bytes, count: int) -> None:
    def measure(count: int) -> float:
        log = line * count
        started = time.thread_time()
        assert records_of(log, max_block_lines=5000)
        return time.thread_time() - started

    measure(1000)
    small, large = min(measure(count) for _ in range(3)), measure(8 * count)
    # Eight times the lines; a square law would take sixty-four times as long.
    assert large < 32 * small + 0.2


@pytest.mark.long(seconds=10)
def test_a_log_of_a_hundred_thousand_lines() -> None:
    records = records_of(b"".join(b'@a3|f0|c1|S0|d1|T%d|k1|t"x"#\n' % number for number in range(100_000)))
    assert len(records) == 100_000
    assert records[-1].line == 100_000
    assert all(record.problem is None for record in records)
