"""The reader of logs: fed with bytes, it tells from the first which form a log has, or that of bytes that are no text
at all; it hands on records and what lies between them, and can go on elsewhere.

Nothing here opens a file. A reader holds the record at hand and no more; its state is a few numbers, from which another
reader, fed with the stream from `state["offset"]` on, hands on exactly what this one would have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol, Self

from .blocks import Brackets
from .elements import ArrayForm, SpansForm
from .lines import CsvForm, LineForm, read_header
from .tape import Item, LogOptions, Problem, Tape

# No more is looked at to tell the form.
_LOOK_BYTES = 4096
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BLANK = re.compile(rb"[ \t\r\n\f\v]*+")
_KEY = re.compile(rb'\s*"((?>(?:[^"\\]++|\\.)*))"\s*:\s*(?=\S)', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,{}\[\]\"]++(?=[\s,}])")
_NEXT = re.compile(rb"\s*([,}])")
# Keys that say of an object that it is one record.
_RECORD_KEYS = frozenset((b"raw", b"clowl", b"cl", b"p", b"semantic"))
# A key before the messages of a chat that is told with them, and how such messages begin.
_INSTRUCTIONS = frozenset((b"system", b"instructions"))
_TURN = re.compile(rb'\[\s*\{\s*"role"\s*:')

# The keys of an export of spans, and of one of logs.
_EXPORT_KEYS = frozenset((b"resourceSpans", b"resource_spans", b"resourceLogs", b"resource_logs"))


class Form(Protocol):
    """One way to frame a stream. `run` reads what it can; True says that another form may begin at the cursor."""

    name: str

    def run(self, tape: Tape, *, is_last: bool) -> bool:
        """Read what can be read."""
        ...

    def to_state(self, *, is_in_long: bool) -> dict[str, Any]:
        """What must be known to go on at the cursor."""
        ...


class BinaryForm:
    """A stream that is not UTF-8 as a whole: one quarantined record."""

    name = "binary"

    def run(self, tape: Tape, *, is_last: bool) -> bool:
        """Read to the end of the stream."""
        reason = "the stream is UTF-16, and only UTF-8 is read"
        problem = Problem(code="utf-16", reason=reason, offset=0)
        if tape.is_in_long or tape.unread > tape.options.max_record_bytes:
            tape.take_long(len(tape.buffer), is_end=is_last, problem=problem)
        elif is_last and tape.unread:
            tape.take_to(len(tape.buffer), problem=problem)
        return False

    def to_state(self, *, is_in_long: bool) -> dict[str, Any]:
        """Nothing but the place matters."""
        return {}


def load_form(name: str, state: dict[str, Any]) -> Form:
    """The form of that name, as its `to_state` described it."""
    if name == "binary":
        return BinaryForm()
    forms: dict[str, Callable[[dict[str, Any]], Form]] = {
        "lines": LineForm,
        "array": ArrayForm,
        "spans": SpansForm,
        "csv": CsvForm,
    }
    return forms[name](state)


def find_form(tape: Tape, *, is_last: bool) -> Form | None:
    """The form of what lies at the cursor; None where more must be fed to tell. Blank lines are passed over."""
    is_enough = is_last or tape.unread >= _LOOK_BYTES
    if tape.position == 0 and not _pass_mark(tape, is_last=is_last):
        return None
    if tape.position == 0 and (is_binary := _is_utf_16(tape, is_last=is_last)) is not False:
        return BinaryForm() if is_binary else None
    buffer = tape.buffer
    start = _BLANK.match(buffer, tape.at).end()  # type: ignore[union-attr]  # it matches nothing, too
    line = buffer.rfind(b"\n", tape.at, start) + 1
    if line:
        tape.skip_to(line)
    if start >= len(buffer):
        return LineForm() if is_last or tape.unread >= _LOOK_BYTES else None
    wanted, first = tape.options.form, bytes(buffer[start : start + 1])
    if wanted in (None, "array") and first in (b"[", b"{"):
        look = _look_at_array if first == b"[" else _look_at_object
        return look(tape, start, is_enough=is_enough)
    if wanted == "csv":
        return CsvForm()
    if wanted is None and tape.index == 0:
        return _look_at_header(tape, is_enough=is_enough)
    return LineForm()


def _pass_mark(tape: Tape, *, is_last: bool) -> bool:
    """Pass over a byte order mark; False where more must be fed to tell."""
    head = bytes(tape.buffer[:3])
    if head == _BOM:
        tape.skip_to(3)
    return is_last or head == _BOM or not _BOM.startswith(head)


def _is_utf_16(tape: Tape, *, is_last: bool) -> bool | None:
    """Whether the stream is UTF-16: by its mark, or because every other one of its first bytes is NUL."""
    head = bytes(tape.buffer[:512])
    if len(head) < 2 and not is_last:
        return None if head in (b"\xff", b"\xfe", b"\0") or not head else False
    if head[:2] in _UTF_16:
        return True
    if 0 not in head[:2] or len(head) < 8:
        return None if 0 in head[:2] and not is_last else False
    if len(head) < 512 and not is_last:
        return None
    even, odd = head[::2], head[1::2]
    return (not any(even) and all(odd)) or (not any(odd) and all(even))


def _look_at_array(tape: Tape, start: int, *, is_enough: bool) -> Form | None:
    """An array where `[` is followed by what a JSON value of a log begins with; else a bracket before a text."""
    buffer = tape.buffer
    inner = _BLANK.match(buffer, start + 1).end()  # type: ignore[union-attr]
    if inner >= len(buffer) and not is_enough:
        return None
    if len(buffer) - inner == 1 and buffer[inner] == 0x2F and not is_enough:
        return None
    is_value = buffer[inner : inner + 1].startswith((b"{", b'"', b"]")) or buffer.startswith(b"//", inner)
    is_array = is_value or tape.options.form == "array"
    return ArrayForm(enter=start + 1 - tape.at) if is_array else LineForm()


def _look_at_object(tape: Tape, start: int, *, is_enough: bool) -> Form | None:
    """An object around an array where an array stands under `messages` before any key that makes it a record.

    A chat stays whole where its instructions stand before it, and in a file of lines, each of which is one.
    """
    buffer, at = tape.buffer, start + 1
    may_be_whole = (tape.options.name or "").lower().endswith((".jsonl", ".ndjson"))
    size = min(len(buffer), tape.at + _LOOK_BYTES)
    while key := _KEY.match(buffer, at, size):
        at = key.end()
        if key[1] in _RECORD_KEYS:
            return LineForm()
        may_be_whole = may_be_whole or key[1] in _INSTRUCTIONS
        if key[1] == b"messages" and buffer[at : at + 1] == b"[":
            if may_be_whole and _TURN.match(buffer, at, size):
                return LineForm()
            if may_be_whole and not is_enough:
                return None
            return ArrayForm(enter=at + 1 - tape.at, is_wrapped=True)
        if key[1] in _EXPORT_KEYS and buffer[at : at + 1] == b"[":
            return SpansForm()
        scalar = _SCALAR.match(buffer, at, size)
        if scalar:
            at = scalar.end()
        else:
            brackets = Brackets(in_string=buffer[at] == 0x22)
            at, is_closed = brackets.scan(buffer[:size], at + brackets.in_string)
            if not is_closed:
                break
        after = _NEXT.match(buffer, at, size)
        if not after or after[1] == b"}":
            is_enough = is_enough or after is not None
            break
        at = after.end()
    return LineForm() if is_enough or _is_no_object(tape, start) else None


def _is_no_object(tape: Tape, start: int) -> bool:
    """Whether what follows the brace is no key, so that waiting for more cannot make it one."""
    inner = _BLANK.match(tape.buffer, start + 1).end()  # type: ignore[union-attr]
    return inner < len(tape.buffer) and tape.buffer[inner] != 0x22


def _look_at_header(tape: Tape, *, is_enough: bool) -> Form | None:
    """CSV where the first line is a header; a name that says otherwise is believed."""
    name = (tape.options.name or "").lower()
    end = tape.buffer.find(b"\n", tape.at)
    if name.endswith((".jsonl", ".ndjson", ".json", ".log")) or (end < 0 and tape.unread >= _LOOK_BYTES):
        return LineForm()
    if end < 0 and not is_enough:
        return None
    line = bytes(tape.buffer[tape.at : end if end >= 0 else len(tape.buffer)]).removesuffix(b"\r")
    header = read_header(line.decode(errors="replace"), tape.options) if len(line) < _LOOK_BYTES else None
    return CsvForm() if header else LineForm()


_CHUNK_BYTES = 256 * 1024


class LogReader:
    """Frames a stream of bytes into records with their envelopes.

        reader = LogReader(LogOptions(name="agents.log"))
        items = [*reader.feed(b"..."), *reader.close()]

    Attributes:
        ending: after `close`, what is wrong with the stream though its records are whole: the array was never closed,
            or something in an export was passed over. None otherwise.
    """

    def __init__(self, options: LogOptions | None = None) -> None:
        self._tape = Tape(options or LogOptions())
        self._form: Form | None = None

    @property
    def ending(self) -> Problem | None:
        """What is wrong with the stream though its records are whole."""
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
