"""The laws of framing, over generated logs of every form: bytes come back, chunks and restarts change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hypothesis import strategies as st

from dialects import Item, LogOptions, LogReader, LogRecord, Piece, Scaffold, read_log
from dialects._log import blocks, tape
from dialects._log import reader as log_reader
from tests.each import for_each
from tests.lanes import generated

from .log_samples import OPENERS, logs, text_logs

# Limits so small that the generated logs pass them: records over the limit, cut blocks, scaffold in links.
options = st.builds(
    LogOptions,
    form=st.sampled_from([None, None, None, "lines", "ndjson", "array", "csv"]),
    name=st.sampled_from([None, None, "a.jsonl"]),
    prefixes=st.booleans(),
    max_record_bytes=st.sampled_from([1, 30, 64, 10_000]),
    max_block_lines=st.sampled_from([1, 3, 100]),
)


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "PIECE_BYTES", 16)
    monkeypatch.setattr(tape, "SCAFFOLD_BYTES", 8)
    monkeypatch.setattr(log_reader, "_LOOK_BYTES", 32)
    monkeypatch.setattr(blocks, "_openers", lambda: OPENERS)


def frame(data: bytes, chosen: LogOptions) -> list[Item]:
    """The items of a log that is fed as one chunk."""
    reader = LogReader(chosen)
    return [*reader.feed(data), *reader.close()]


def pieces_of(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted(cut % (len(data) + 1) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[start:end]


@generated(400, data=logs, chosen=options)
def test_scaffold_and_slices_give_the_stream_back(data: bytes, chosen: LogOptions) -> None:
    at = 0
    for item in frame(data, chosen):
        if isinstance(item, LogRecord):
            if item.source is None:
                assert item.offset + item.length == at
                assert item.length > chosen.max_record_bytes
                continue
            assert item.length == len(item.source) > 0
        given_bytes = item.source if isinstance(item, LogRecord) else item.data
        assert item.offset == at
        assert data[at : at + len(given_bytes)] == given_bytes
        at += len(given_bytes)
    assert at == len(data)


@generated(400, data=logs, chosen=options, cuts=st.lists(st.integers(0, 10_000), max_size=12))
def test_chunks_make_no_difference(data: bytes, chosen: LogOptions, cuts: list[int]) -> None:
    whole = LogReader(chosen)
    expected = [*whole.feed(data), *whole.close()]
    reader = LogReader(chosen)
    found = [item for chunk in pieces_of(data, cuts) for item in reader.feed(chunk)]
    assert [*found, *reader.close()] == expected
    assert reader.ending == whole.ending


@generated(400, data=logs, chosen=options)
def test_single_bytes_make_no_difference(data: bytes, chosen: LogOptions) -> None:
    assert list(read_log((data[at : at + 1] for at in range(len(data))), chosen)) == frame(data, chosen)


@generated(400, data=logs, chosen=options, cuts=st.lists(st.integers(0, 10_000), min_size=1, max_size=6))
def test_another_reader_goes_on_from_a_checkpoint(data: bytes, chosen: LogOptions, cuts: list[int]) -> None:
    expected = frame(data, chosen)
    reader, found, fed = LogReader(chosen), [], 0
    for cut in sorted(cut % (len(data) + 1) for cut in cuts):
        found += reader.feed(data[fed:cut])
        state = json.loads(json.dumps(reader.state()))
        reader, fed = LogReader.from_state(state), state["offset"]
        assert fed <= cut
    found += reader.feed(data[fed:])
    assert [*found, *reader.close()] == expected


# Logs in which what a reader knows beyond its place decides how it goes on.
KNOWING = {
    "a statement within a block that was cut": (b"% a\n% b\n%% c\n% d\nplain\n%% e\n% f\n", 10_000),
    "a text within an object that was cut": (b'{"a": {\n"k": [\n{"a": {\ntext\n', 10_000),
    "an element over the limit": (b"[{" + b'"k": [[1], {"x": "}"}], ' * 6 + b'"l": 0}, 2]', 30),
    "a quote within a row that was cut": (b'from,text\na,"\n' + b"bbbbbbbb\n" * 3 + b'c,"d\ne"\nf,g\n', 30),
    "a comment behind a text": (b"one\n// two\n", 10_000),
    "blank lines": (b"one" + b"\n" * 40 + b"two", 10_000),
}


@for_each(KNOWING.values())
def test_a_checkpoint_at_any_byte_knows_enough(case: tuple[bytes, int]) -> None:
    data, limit = case
    chosen = LogOptions(max_record_bytes=limit, max_block_lines=3)
    expected = frame(data, chosen)
    for cut in range(len(data) + 1):
        reader = LogReader(chosen)
        found = reader.feed(data[:cut])
        state = reader.state()
        other = LogReader.from_state(state)
        assert [*found, *other.feed(data[state["offset"] :]), *other.close()] == expected


@generated(400, data=logs, chosen=options)
def test_records_are_counted_and_placed(data: bytes, chosen: LogOptions) -> None:
    records = [item for item in frame(data, chosen) if isinstance(item, LogRecord)]
    assert [record.index for record in records] == list(range(len(records)))
    for record in records:
        assert record.line == 1 + data.count(b"\n", 0, record.offset)
        assert (record.wire is None) == (record.problem is not None)
        if record.problem:
            assert record.offset <= record.problem.offset <= record.offset + record.length


@generated(400, data=logs, chosen=options)
def test_the_chain_stands_for_all_bytes_so_far(data: bytes, chosen: LogOptions) -> None:
    items = frame(data, chosen)
    chain, waiting = bytes(32), b""
    for item, following in zip(items, [*items[1:], None], strict=False):
        if isinstance(item, LogRecord):
            if item.source is not None:
                chain, waiting = sha256(chain + waiting + item.source).digest(), b""
            assert item.chain == chain
        elif isinstance(item, Scaffold) and isinstance(following, LogRecord) and following.source is not None:
            waiting = item.data
            # A full scaffold was a link of its own before the record was known.
            if len(item.data) == tape.SCAFFOLD_BYTES:
                chain, waiting = sha256(chain + waiting).digest(), b""
        elif isinstance(item, (Scaffold, Piece)):
            chain = sha256(chain + item.data).digest()


@generated(400, data=text_logs, more=text_logs, chosen=options)
def test_a_grown_log_keeps_the_chains_of_what_stood_before(data: bytes, more: bytes, chosen: LogOptions) -> None:
    """Up to the last records of the shorter log, which may have been cut, the longer one begins alike."""
    chosen = chosen.replace(form="lines", max_block_lines=1)
    shorter = [item.chain for item in frame(data + b"\n", chosen) if isinstance(item, LogRecord)]
    longer = [item.chain for item in frame(data + b"\n" + more, chosen) if isinstance(item, LogRecord)]
    assert longer[: len(shorter)] == shorter
