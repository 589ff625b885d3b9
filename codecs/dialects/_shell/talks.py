"""The transcripts of a log under way: each record's lines in its own conversation, bounded in number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from .._english import say_name
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
            answer = find_answer(message, reading.dialect, here.lines)
            self._held += len(here.lines) < MAX_LINES
            yield here.tell(message, dialect=reading.dialect, wire=reading.wire, notes=notes, answer=answer).text
