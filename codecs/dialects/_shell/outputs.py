"""What the shell prints: lines of JSON, and conversations in English."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._english import join_words, say_name
from .._exchange import show_json, write_json
from .._hidden import make_visible
from .._log import LogRecord, read_log
from .._record import Envelope, Message, Note, Reading, Segment
from .._transcript import MAX_LINES, Transcript, find_answer

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
