"""The codecs from a shell: what `python -m dialects` does, apart from its arguments. Four commands, decode, detect,
encode and list, each yield the lines to print and count what went wrong. They read files or standard input, gzip opened
on the way, never more held than a chunk, and print lines of JSON, and conversations in English.
"""

from __future__ import annotations

import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import dialects

from ._decoding import Conversations
from ._english import join_words, make_visible, say_name
from ._errors import DialectsError
from ._exchange import EnvelopeError, decode_envelope, parse_json, show_failure, show_json, show_quarantined, write_json
from ._log import Item, LogOptions, LogReader, LogRecord, read_log
from ._record import Envelope, Message, Note, Reading, Segment
from ._transcript import MAX_LINES, Transcript, find_answer

_CHUNK_BYTES = 256 * 1024
_GZIP = b"\x1f\x8b"
# A delivery has no more (architecture, "Quarantined"): what unpacks to more is a bomb.
MAX_UNPACKED_BYTES = 2 * 1024**3


class InputError(DialectsError):
    """A file that cannot be opened, or that breaks off.

    Attributes:
        name: the file's name, `-` for standard input.
        is_usage: whether the caller named something that is not there, as against bytes that are wrong.
    """

    def __init__(self, name: str, reason: str, *, is_usage: bool) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.is_usage = is_usage


def read_items(name: str, *, prefixes: bool = True) -> Iterator[list[Item]]:
    """The items of the log of that name, in the batches in which they come.

    Raises:
        InputError: where the file cannot be opened, and after all whole records where it breaks off.
    """
    hint = name.removesuffix(".gz")
    reader = LogReader(LogOptions(name=None if name == "-" else hint, prefixes=prefixes))
    fault = None
    try:
        for chunk in _open_chunks(name):
            yield reader.feed(chunk)
    except InputError as error:
        if error.is_usage:
            raise
        fault = error
    yield reader.close()
    if fault is None and reader.ending is not None:
        fault = InputError(name, reader.ending.reason, is_usage=False)
    if fault is not None:
        raise fault


def _open_chunks(name: str) -> Iterator[bytes]:
    if name == "-":
        yield from _unpack(name, _chunks(sys.stdin.buffer))
        return
    try:
        with Path(name).open("rb") as stream:
            yield from _unpack(name, _chunks(stream))
    except OSError as error:
        raise InputError(name, error.strerror or str(error), is_usage=True) from error


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    # `read1` gives what is there, so that a pipe is shown as it fills.
    read = getattr(stream, "read1", stream.read)
    while chunk := read(_CHUNK_BYTES):
        yield chunk


def _unpack(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= len(_GZIP):
            break
    if not head.startswith(_GZIP):
        yield head
        yield from chunks
        return
    yield from _inflate(name, head, chunks)


def _inflate(name: str, head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Every member of a gzip stream, a bounded piece at a time."""
    member, packed, total = zlib.decompressobj(wbits=31), head, 0
    while packed or (packed := next(chunks, b"")):
        if member.eof:
            # Zeros may pad the end of an archive.
            packed = packed.lstrip(b"\0")
            if not packed:
                continue
            member = zlib.decompressobj(wbits=31)
        try:
            plain = member.decompress(packed, _CHUNK_BYTES)
        except zlib.error as error:
            raise InputError(name, f"not a sound gzip stream ({error})", is_usage=False) from error
        packed = member.unused_data if member.eof else member.unconsumed_tail
        total += len(plain)
        if total > MAX_UNPACKED_BYTES:
            raise InputError(name, f"unpacks to more than {MAX_UNPACKED_BYTES} bytes", is_usage=False)
        yield plain
    # What zlib still holds comes out without more input.
    while not member.eof and (plain := member.decompress(b"", _CHUNK_BYTES)):
        yield plain
    if not member.eof:
        raise InputError(name, "the gzip stream breaks off", is_usage=False)


# Of all together so many lines can be answered: those of the conversations that spoke last.
MAX_LINES_OF_ALL = 20_000


class Talks:
    """The lines of a log, told one after another; a line in its own conversation."""

    def __init__(self) -> None:
        self._transcripts: OrderedDict[str | None, Transcript] = OrderedDict()
        self._named: str | None = None
        self._held = 0

    def write(self, reading: Reading) -> Iterator[str]:
        """The lines of a told record; before the first of another conversation than the last one's, its name."""
        yield from self._write(reading.messages, reading.notes, reading.dialect, reading.wire)

    def write_unread(self, record: LogRecord) -> Iterator[str]:
        """The line of a record whose bytes are no text: whose it is and when, as far as the log around them says."""
        envelope = _read_around(record.source or b"") or Envelope()
        whom = f" {join_words([say_name(name) for name in envelope.receivers])}" if envelope.receivers else ""
        who = say_name(envelope.sender) if envelope.sender else "Someone"
        count = f"{record.length:,} byte{'' if record.length == 1 else 's'}"
        problem = record.problem
        reason = problem.reason if problem else ""
        fault = "are not text" if problem and problem.code in ("not-utf-8", "utf-16") else "cannot be read"
        message = Message(
            performative="inform",
            sender=envelope.sender,
            receivers=envelope.receivers,
            conversation_id=envelope.conversation,
            sent_at=envelope.at,
            english=(Segment(text=f"{who} sends{whom} {count} that {fault}: {reason}."),),
        )
        yield from self._write((message,), (), "prose", record.source or reason)

    def _write(
        self, messages: Sequence[Message], shared: Sequence[Note], spoken: str, wire: str | bytes
    ) -> Iterator[str]:
        name = messages[0].conversation_id if messages else None
        here = self._transcripts.setdefault(name, Transcript())
        self._transcripts.move_to_end(name)
        while self._held > MAX_LINES_OF_ALL and len(self._transcripts) > 1:
            self._held -= len(self._transcripts.popitem(last=False)[1].lines)
        if name != self._named:
            yield f"Conversation {say_name(name)}:" if name is not None else "In no conversation that is named:"
        self._named = name
        for message in messages:
            notes = [*message.notes, *(shared if message is messages[0] else ())]
            dialect = message.dialect or spoken
            answer = find_answer(message, dialect, here.lines)
            self._held += len(here.lines) < MAX_LINES
            yield here.tell(message, dialect=dialect, wire=wire, notes=notes, answer=answer).text


def _read_around(source: bytes) -> Envelope | None:
    """The envelope of a record that is no text; a name that is none either is left out."""
    text = source.decode("utf-8", "replace")
    items = (item.envelope for item in read_log(text.encode()) if isinstance(item, LogRecord))
    envelope = next(items, None)
    if envelope is None:
        return None
    sender, conversation = (
        name if name and "\ufffd" not in name else None for name in (envelope.sender, envelope.conversation)
    )
    receivers = tuple(name for name in envelope.receivers if "\ufffd" not in name)
    return Envelope(at=envelope.at, sender=sender, receivers=receivers, conversation=conversation)


def write_reading(index: int, reading: Reading, format_name: str, talks: Talks) -> Iterable[str]:
    """The lines a reading is printed as."""
    if format_name == "english":
        return map(make_visible, talks.write(reading))
    if format_name == "gloss":
        return [make_visible(message.gloss_line or message.sentence) for message in reading.messages]
    return [write_json(show_json(index, reading, is_tree=format_name == "tree"))]


def write_unread(shown: dict[str, Any], record: LogRecord, format_name: str, talks: Talks) -> Iterable[str]:
    """The lines that a record is printed as whose bytes are no text."""
    if format_name == "english":
        return map(make_visible, talks.write_unread(record))
    return [write_failure(shown, format_name)]


def write_failure(shown: dict[str, Any], format_name: str) -> str:
    """The line that a record without a reading is printed as."""
    if format_name not in ("english", "gloss"):
        return write_json(shown)
    error = shown["error"]
    where = "" if error["offset"] is None else f", at {error['offset']}"
    return make_visible(f"Not read{where}: {error['reason']}.")


class Run:
    """One run of a command over its inputs.

    `failures` counts the records that were not read fully; `pause` is called whenever more must be read.
    """

    def __init__(
        self, names: Iterable[str], *, dialect: str | None, format_name: str, pause: Callable[[], object]
    ) -> None:
        self._names = names
        self._pause = pause
        self._dialect = dialect
        self._format = format_name
        self._talks = Talks()
        self.failures = 0

    def _records(self, *, prefixes: bool = True) -> Iterator[tuple[int, LogRecord]]:
        index = 0
        for name in self._names:
            for batch in read_items(name, prefixes=prefixes):
                for item in batch:
                    if isinstance(item, LogRecord):
                        yield index, item
                        index += 1
                self._pause()

    def decode_log(self) -> Iterator[str]:
        """Frame the inputs as an upload would be, and tell their records in order."""
        conversations = Conversations()
        for index, record in self._records():
            if record.wire is None:
                self.failures += 1
                yield from write_unread(show_quarantined(record, index), record, self._format, self._talks)
                continue
            reading = dialects.read(record.wire, record.envelope, dialect=self._dialect)
            yield from self._write(index, conversations.tell(reading, index))

    def decode_envelopes(self) -> Iterator[str]:
        """Decode each envelope by itself, with the prior messages and the keys that it carries."""
        for index, record in self._records(prefixes=False):
            if record.problem is not None:
                yield self._fail(show_quarantined(record, index))
                continue
            try:
                reading = decode_envelope(parse_json(record.source or b""), self._dialect)
            except EnvelopeError as error:
                yield self._fail(show_failure(index, "envelope", str(error), None))
                continue
            yield from self._write(index, reading)

    def _write(self, index: int, reading: dialects.Reading) -> Iterable[str]:
        self.failures += reading.error is not None
        return write_reading(index, reading, self._format, self._talks)

    def _fail(self, shown: dict[str, Any]) -> str:
        self.failures += 1
        return write_failure(shown, self._format)

    def detect(self) -> Iterator[str]:
        """The candidates of every record."""
        for index, record in self._records():
            if record.wire is None:
                self.failures += 1
                shown = show_quarantined(record, index)
                yield write_json({name: shown[name] for name in ("index", "dialect", "candidates", "error")})
                continue
            found = [candidate.to_dict() for candidate in dialects.detect(record.wire)]
            yield write_json({"index": index, "dialect": found[0]["dialect"], "candidates": found, "error": None})

    def encode(self) -> Iterator[str]:
        """The wire of every normalised record, with what it could not hold."""
        for index, record in self._records(prefixes=False):
            wire, losses, error = None, [], None
            try:
                given = _parse(record)
                spoken = given.get("dialect") if isinstance(given, dict) and "messages" in given else None
                written = dialects.encode(dialects.messages_of(given), self._dialect, spoken=spoken)
                wire, losses = written.wire, [loss.to_dict() for loss in written.losses]
            except dialects.EncodeError as fault:
                error = {"kind": "encode", "reason": str(fault), "offset": None}
            except (EnvelopeError, dialects.ShapeError) as fault:
                error = {"kind": "record", "reason": str(fault), "offset": None}
            self.failures += error is not None
            yield write_json({"index": index, "wire": wire, "losses": losses, "error": error})


def list_dialects() -> Iterator[str]:
    """A line for each dialect: slug, title, versions, summary, set apart by tabs."""
    for dialect in dialects.all_dialects():
        yield "\t".join((dialect.slug, dialect.title, " ".join(dialect.versions) or "-", dialect.summary))


def _parse(record: LogRecord) -> Any:
    if record.problem is not None or record.source is None:
        raise EnvelopeError(record.problem.reason if record.problem else "no bytes")
    return parse_json(record.source)
