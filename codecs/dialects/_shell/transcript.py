"""A log as English alone: numbered lines with time and speaker, what each answers, and what to be careful of."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from .._dialect import Reply
from .._english import join_words, quote, say_cautions, say_instant, say_name
from .._record import Message, Reading
from .._registry import get_dialect

# Of a conversation so many lines can be answered; of all together, those of the conversations that spoke last.
MOST_LINES = 500
MOST_LINES_OF_ALL = 20_000
_LONGEST_TOPIC = 80
_MOST_DIFFERENCES = 3

# What a message is called where another answers it.
_NOUNS = {
    "request": "request", "query": "question", "propose": "proposal", "accept": "acceptance", "reject": "rejection",
    "done": "result", "failure": "failure", "cancel": "cancellation", "delegate": "delegation", "commit": "commitment",
    "progress": "progress report", "acknowledge": "acknowledgement", "handshake": "handshake", "evaluate": "evaluation",
    "observe": "observation", "advertise": "capabilities",
}  # fmt: skip


class Line:
    """What later lines may say of a message."""

    def __init__(self, number: int, message: Message, wire: str) -> None:
        self.number = number
        self.message = message
        self.wire = hash(wire)
        self.is_answered = False

    def name(self) -> str:
        """`message 1 (kim's request “burn”)`."""
        message = self.message
        sender = message.sender
        whose = "the " if sender is None else f"agent {sender}'s " if sender.isdecimal() else f"{say_name(sender)}'s "
        topic = message.topic or ""
        said = f" {quote(topic)}" if 0 < len(topic) <= _LONGEST_TOPIC else ""
        return f"message {self.number} ({whose}{_NOUNS.get(message.performative or '', 'message')}{said})"


class _Conversation:
    def __init__(self) -> None:
        self.count = 0
        self.lines: deque[Line] = deque(maxlen=MOST_LINES)
        self.remarked: set[str] = set()

    def remark(self, message: Message) -> str:
        """What is not known beside the sentence, each once for the conversation."""
        new = [segment.text for segment in message.also if segment.basis == "unknown"]
        new = [text for text in dict.fromkeys(new) if text not in self.remarked]
        if len(self.remarked) < MOST_LINES:
            self.remarked.update(new)
        return "".join(f" Note: {text}." for text in new)


class Transcript:
    """The lines of a log, told one after another; a line in its own conversation."""

    def __init__(self) -> None:
        self._conversations: OrderedDict[str | None, _Conversation] = OrderedDict()
        self._named: str | None = None
        self._held = 0

    def write(self, reading: Reading) -> Iterator[str]:
        """The lines of a told record; before the first of another conversation than the last one's, its name."""
        messages = reading.messages
        name = messages[0].conversation_id if messages else None
        here = self._conversations.setdefault(name, _Conversation())
        self._conversations.move_to_end(name)
        while self._held > MOST_LINES_OF_ALL and len(self._conversations) > 1:
            self._held -= len(self._conversations.popitem(last=False)[1].lines)
        if name != self._named:
            yield f"Conversation {say_name(name)}:" if name is not None else "In no conversation that is named:"
        self._named = name
        for message in messages:
            here.count += 1
            line = Line(here.count, message, reading.wire)
            notes = [*message.notes, *(reading.notes if message is messages[0] else ())]
            reply = next(_say_reply(line, reading, here.lines), "") or _say_unnamed(message)
            places = [reply, *_say_repetition(line, here.lines), *_say_time(line, here.lines, reply)]
            said = " ".join([_say_alone(message, reply) or "Nothing can be said of it.", *filter(None, places)])
            cautions = "".join(segment.text for segment in say_cautions(notes))
            moment = say_instant(datetime.fromisoformat(message.sent_at)) if message.sent_at else "no time"
            turn = "" if message.turn is None else f", turn {message.turn}"
            yield f"{line.number}. {moment}{turn}: {said}{cautions}{here.remark(message)}"
            self._held += len(here.lines) < MOST_LINES
            here.lines.append(line)


def _say_alone(message: Message, reply: str) -> str:
    """The sentence, without the id of the message that it answers where that is told with its number."""
    if message.parent_id is None:
        return message.sentence
    told = f", in reply to message {say_name(message.parent_id)}"
    return "".join(segment.text for segment in message.english if segment.text != told)


def _say_time(line: Line, lines: deque[Line], reply: str) -> Iterator[str]:
    """That the clock contradicts the order of the lines, or does not decide on it."""
    at, before = line.message.sent_at, lines[-1] if lines else None
    if not at or before is None or not before.message.sent_at:
        return
    moment, earlier = datetime.fromisoformat(at), datetime.fromisoformat(before.message.sent_at)
    if moment < earlier:
        yield f"Caution: its time is before that of message {before.number}, which stands before it."
    elif moment == earlier and not reply and before.wire != line.wire:
        yield f"Its time is that of message {before.number} too: which was first is not known."


_ANSWERS = frozenset({"acknowledge", "done", "failure", "progress", "accept", "reject"})


def _say_unnamed(message: Message) -> str:
    """That an answer answers nothing that is known, where its sentence does not say so."""
    is_said = message.performative not in _ANSWERS or "not named" in message.sentence
    return "" if is_said else "Which message it answers is not known."


def _say_reply(line: Line, reading: Reading, lines: deque[Line]) -> Iterator[str]:
    for reply in get_dialect(reading.dialect).replies(line.message):
        if reply.basis == "adjacency":
            return
        found = [each for each in reversed([*lines]) if _is_meant(reply, each, line.message)]
        if not found:
            if reply.whom == "message-id" and reply.value is not None:
                where = "in this record" if len(lines) < MOST_LINES else f"among the {MOST_LINES} messages before it"
                yield f"In reply to message {say_name(reply.value)}, which is not {where}."
                return
            continue
        if reply.basis in ("explicit", "correlation"):
            names = [each.name() for each in reversed(found)]
            doubt = "" if len(found) == 1 else "; which of them is unknown"
            yield f"In reply to {join_words(names, last='or')}{doubt}."
        else:
            yield f"By order, in reply to {found[0].name()}; the message itself does not say so."
        found[0].is_answered = True
        return


def _is_meant(reply: Reply, line: Line, message: Message) -> bool:
    earlier = line.message
    is_others = earlier.sender != message.sender
    match reply.whom:
        case "message-id":
            return earlier.message_id == reply.value
        case "correlation-id":
            return reply.value in (earlier.correlation_id, earlier.object_id, earlier.message_id) and is_others
        case "latest-to-me":
            is_between = not message.receivers or earlier.sender in message.receivers
            return message.sender in earlier.receivers and is_between and earlier.task_id == message.task_id
        case "latest-of-other":
            return is_others
        case "latest-unanswered-of-other":
            return is_others and not line.is_answered
    return False


def _say_repetition(line: Line, lines: deque[Line]) -> Iterator[str]:
    """That an id, or a turn of the same sender, was used before: with the same text, or with which other content."""
    message = line.message
    if message.message_id is not None:
        same = [each for each in lines if each.message.message_id == message.message_id]
        own = f"the id {say_name(message.message_id)}"
    elif message.turn is not None:
        same = [each for each in lines if (each.message.sender, each.message.turn) == (message.sender, message.turn)]
        own = f"turn {message.turn}"
    else:
        return
    if not same:
        return
    first = same[0]
    if any(each.wire == line.wire and each.message.part == message.part for each in same):
        yield f"It repeats message {first.number} word for word."
    elif message.message_id is None:
        yield f"Caution: {own} of this sender was message {first.number} already: a new run of the turns begins here."
    else:
        differences = list(_find_differences(first.message, message))[:_MOST_DIFFERENCES]
        with_what = f" ({', '.join(differences)})" if differences else ""
        yield (
            f"Caution: {own} was used before, by message {first.number}, with other content{with_what}; "
            "which of the two is meant by replies is unknown."
        )


def _find_differences(first: Message, second: Message) -> Iterator[str]:
    """What is another thing in the second than in the first: `eur = 10000 instead of 10`."""
    for name in ("native_act", "sender", "topic"):
        before, after = getattr(first, name), getattr(second, name)
        if before != after:
            label = name.removeprefix("native_")
            yield f"{label} {_show(after)} instead of {_show(before)}"
    one, other = first.content, second.content
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*one, *other)):
            if one.get(key) != other.get(key):
                yield f"{say_name(str(key))} = {_show(other.get(key))} instead of {_show(one.get(key))}"


def _show(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    text = str(value)
    return quote(text) if len(text) <= _LONGEST_TOPIC else f"{quote(text[:_LONGEST_TOPIC])} …"
