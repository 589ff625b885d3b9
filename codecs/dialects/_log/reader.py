"""The reader of logs: fed with bytes, it hands on records and what lies between them, and can go on elsewhere.

Nothing here opens a file. A reader holds the record at hand and no more; its state is a few numbers, from which
another reader, fed with the stream from `state["offset"]` on, hands on exactly what this one would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Self

from .forms import Form, find_form, load_form
from .items import Item, LogOptions, Problem
from .tape import Tape

_CHUNK_BYTES = 256 * 1024


class LogReader:
    """Frames a stream of bytes into records with their envelopes.

        reader = LogReader(LogOptions(name="agents.log"))
        items = [*reader.feed(b"..."), *reader.close()]

    Attributes:
        ending: after `close`, what is wrong with the end of the stream though its records are whole: the array was
            never closed. None otherwise.
    """

    def __init__(self, options: LogOptions | None = None) -> None:
        self._tape = Tape(options or LogOptions())
        self._form: Form | None = None

    @property
    def ending(self) -> Problem | None:
        """What is wrong with the end of the stream."""
        return self._tape.ending

    def feed(self, chunk: bytes) -> list[Item]:
        """Read on; what came to its end with these bytes, in the order of the stream.

        How the stream is cut into chunks makes no difference to the items.
        """
        self._tape.add(chunk)
        self._run(is_last=False)
        return self._tape.collect()

    def close(self) -> list[Item]:
        """The stream is over: the rest."""
        self._run(is_last=True)
        if self._form:
            # A form may have something to say of the end though no byte is left.
            self._form.run(self._tape, is_last=True)
        self._tape.finish()
        return self._tape.collect()

    def _run(self, *, is_last: bool) -> None:
        while self._tape.unread:
            if self._form is None:
                self._form = find_form(self._tape, is_last=is_last)
            if self._form is None or not self._form.run(self._tape, is_last=is_last):
                return
            self._form = None

    def state(self) -> dict[str, Any]:
        """A checkpoint of JSON types, after a `feed` whose items were all taken.

        `offset` is where the stream must be read on from. A record that is not complete is read again from its
        start, so the offset moves on at the latest after `max_record_bytes` and one chunk.
        """
        form = self._form
        return {
            "version": 1,
            "options": self._tape.options.to_dict(),
            **self._tape.to_state(),
            "form": form.name if form else None,
            "within": form.to_state(is_in_long=self._tape.is_in_long) if form else {},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """A reader that goes on where the checkpoint was made; it is fed with the stream from its `offset`."""
        reader = cls(LogOptions(**state["options"]))
        reader._tape.load_state(state)
        if state["form"]:
            reader._form = load_form(state["form"], state["within"])
        return reader


def read_log(source: bytes | BinaryIO | Iterable[bytes], options: LogOptions | None = None) -> Iterator[Item]:
    """Frame a whole log: the items of `LogReader`, one by one.

    Args:
        source: the bytes, a binary file, or chunks of bytes.
        options: how to frame it; without them all is found out.
    """
    reader = LogReader(options)
    for chunk in _chunks_of(source):
        yield from reader.feed(chunk)
    yield from reader.close()


def _chunks_of(source: bytes | BinaryIO | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(source, bytes):
        return (source[at : at + _CHUNK_BYTES] for at in range(0, len(source), _CHUNK_BYTES))
    if hasattr(source, "read"):
        return iter(lambda: source.read(_CHUNK_BYTES), b"")
    return source
