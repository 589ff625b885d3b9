"""What the shell prints: lines of JSON, and conversations in English."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from .._english import say_name
from .._exchange import show_json, write_json
from .._hidden import make_visible
from .._record import Reading
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
        messages = reading.messages
        name = messages[0].conversation_id if messages else None
        here = self._transcripts.setdefault(name, Transcript())
        self._transcripts.move_to_end(name)
        while self._held > MAX_LINES_OF_ALL and len(self._transcripts) > 1:
            self._held -= len(self._transcripts.popitem(last=False)[1].lines)
        if name != self._named:
            yield f"Conversation {say_name(name)}:" if name is not None else "In no conversation that is named:"
        self._named = name
        for message in messages:
            notes = [*message.notes, *(reading.notes if message is messages[0] else ())]
            dialect = message.dialect or reading.dialect
            answer = find_answer(message, dialect, here.lines)
            self._held += len(here.lines) < MAX_LINES
            yield here.tell(message, dialect=dialect, wire=reading.wire, notes=notes, answer=answer).text


def write_reading(index: int, reading: Reading, format_name: str, talks: Talks) -> Iterable[str]:
    """The lines a reading is printed as."""
    if format_name == "english":
        return map(make_visible, talks.write(reading))
    if format_name == "gloss":
        return [make_visible(message.gloss_line or message.sentence) for message in reading.messages]
    return [write_json(show_json(index, reading, is_tree=format_name == "tree"))]


def write_failure(shown: dict[str, Any], format_name: str) -> str:
    """The line that a record without a reading is printed as."""
    if format_name not in ("english", "gloss"):
        return write_json(shown)
    error = shown["error"]
    where = "" if error["offset"] is None else f", at {error['offset']}"
    return make_visible(f"Not read{where}: {error['reason']}.")
