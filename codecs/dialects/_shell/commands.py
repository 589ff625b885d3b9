"""The four commands: decode, detect, encode, list. Each yields the lines to print and counts what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dialects

from .._decoding import Conversations
from .._exchange import EnvelopeError, decode_envelope, parse_json, show_failure, show_quarantined, write_json
from .._log import LogRecord
from .inputs import read_items
from .outputs import Talks, write_failure, write_reading, write_unread


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
