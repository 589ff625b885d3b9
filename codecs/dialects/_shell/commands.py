"""The four commands: decode, detect, encode, list. Each yields the lines to print and counts what went wrong."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dialects

from .._log import LogRecord
from .conversations import Conversations
from .inputs import read_items
from .outputs import (
    show_failure,
    show_quarantined,
    write_failure,
    write_json,
    write_reading,
)


class EnvelopeFault(dialects.DialectsError):
    """A line given as an envelope is none."""


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
                yield self._fail(show_quarantined(record, index))
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
                reading = decode_envelope(record.source or b"", self._dialect)
            except EnvelopeFault as error:
                yield self._fail(show_failure(index, "envelope", str(error), None))
                continue
            yield from self._write(index, reading)

    def _write(self, index: int, reading: dialects.Reading) -> Iterable[str]:
        self.failures += reading.error is not None
        return write_reading(index, reading, self._format)

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
                messages = dialects.messages_of(_parse(record))
                written = dialects.encode(messages, self._dialect)
                wire, losses = written.wire, [loss.to_dict() for loss in written.losses]
            except dialects.EncodeError as fault:
                error = {"kind": "encode", "reason": str(fault), "offset": None}
            except (EnvelopeFault, dialects.ShapeError) as fault:
                error = {"kind": "record", "reason": str(fault), "offset": None}
            self.failures += error is not None
            yield write_json({"index": index, "wire": wire, "losses": losses, "error": error})


def list_dialects() -> Iterator[str]:
    """A line for each dialect: slug, title, versions, summary, set apart by tabs."""
    for dialect in dialects.all_dialects():
        yield "\t".join((dialect.slug, dialect.title, " ".join(dialect.versions) or "-", dialect.summary))


def _parse(record: LogRecord) -> Any:
    if record.problem is not None or record.source is None:
        raise EnvelopeFault(record.problem.reason if record.problem else "no bytes")
    try:
        return json.loads(record.source)
    except (ValueError, RecursionError) as error:
        raise EnvelopeFault(f"not JSON: {error}") from error


def decode_envelope(source: bytes, dialect: str | None) -> dialects.Reading:
    """Decode one envelope of the HTTP contract, to which `prior` and `keys` may have been added.

    Raises:
        EnvelopeFault: where it is none.
    """
    try:
        given = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise EnvelopeFault(f"not JSON: {error}") from error
    wire, envelope = _read_prior(given, "the line")
    prior = given.get("prior") or []
    keys = given.get("keys") or []
    if not isinstance(prior, list) or not isinstance(keys, list):
        raise EnvelopeFault("prior and keys must be lists")
    return dialects.decode(
        wire,
        envelope,
        dialect=dialect,
        prior=[(item, None) if isinstance(item, str) else _read_prior(item, "a prior message") for item in prior],
        keys=dialects.KeyList([_read_key(item) for item in keys]),
    )


def _read_prior(given: Any, what: str) -> tuple[str, dialects.Envelope]:
    if not isinstance(given, dict) or not isinstance(given.get("raw"), str):
        raise EnvelopeFault(f"{what} is no envelope: an object with a text under raw is needed")
    return given["raw"], dialects.envelope_of(given)


def _read_key(given: Any) -> dialects.Key:
    if not isinstance(given, dict):
        raise EnvelopeFault("a key must be an object")
    try:
        parts: dict[str, Any] = {
            name: base64.b64decode(given[name], validate=True) for name in ("private", "peer", "psk") if name in given
        }
    except (binascii.Error, TypeError, ValueError) as error:
        raise EnvelopeFault(f"a key is not Base64: {error}") from error
    session = given.get("session")
    if session is not None and not isinstance(session, str):
        raise EnvelopeFault("a key's session must be text")
    return dialects.Key(session=session, **parts)
