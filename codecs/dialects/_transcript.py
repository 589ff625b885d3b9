"""A conversation as English alone: numbered lines with time and speaker, what each answers, and what to be careful of.

Every door that prints a conversation tells it by this: the shell, the copy as text, the HTTP interface, reports. Who is
answered the shell finds out by itself; a door that knows says it. A line is one paragraph: its number, its time, what
is said (it begins with its speaker), what it answers, what contradicts earlier lines, cautions, and remarks, of which
each is said once for a conversation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final

from ._dialect import Reply, all_dialects, get_dialect
from ._english import TRUTHS, join_words, quote, say_cautions, say_instant, say_name
from ._meant import OF_FORM, find_meant, write_content
from ._record import Message, Note

# So many lines of a conversation can be answered.
MAX_LINES: Final = 500
_MAX_TOPIC_LENGTH: Final = 80
_MAX_DIFFERENCES: Final = 3
# So many more are counted.
_MAX_COUNTED: Final = 100
# What is compared of two messages of one id, and how it is called.
_COMPARED: Final = {"sender": "sender ", "topic": "", "task_id": "task ", "parent_id": "in answer to "}
# Of two long texts so many characters before their first difference are shown.
_MAX_ALIKE: Final = 20
# So many other messages are named that an answer could answer as well.
_MAX_OTHERS: Final = 3
# Of so many receivers a name that reads like more is explained.
_MAX_NAMES: Final = 20

# What a message is called where another answers it.
_NOUNS: Final = {
    "request": "request", "query": "question", "propose": "proposal", "accept": "acceptance", "reject": "rejection",
    "done": "result", "failure": "failure", "cancel": "cancellation", "delegate": "delegation", "commit": "commitment",
    "progress": "progress report", "acknowledge": "acknowledgement", "handshake": "handshake", "evaluate": "evaluation",
    "observe": "observation", "advertise": "list of capabilities",
}  # fmt: skip
# Acts that an answer calls a message, where they are told from each other.
_RARE_NOUNS: Final = {
    "inform": "news", "control": "message of the protocol", "subscribe": "subscription",
    "unsubscribe": "cancelled subscription", "not-understood": "report that something was not understood",
}  # fmt: skip
# What stands beside a sentence and needs no place in a line. No name that a message gives begins so: a name with a
# space stands in quotation marks.
_IN_HEAD: Final = re.compile(
    r"turn \d+\Z|sent \d{1,2} \w+ \d{4}, |the answered message is not named\Z|it names no version of CLowl\Z"
    r"|it says that it answers no message \(pid null\)\Z"
    r"|CLowl version |in the form of |it has the message id |in conversation |closed by the signature line "
    r"|the whole SHA-256 is |public key in full: |the payload in full: "
)
# What a template has in the place of a name.
_BLANK: Final = re.compile(r"<[A-Za-z][\w .|-]*>\Z")
_ASKS: Final = frozenset({"request", "query", "propose", "delegate"})
_STATES: Final = frozenset({"inform", "observe"})
# What CLowl has beside a message that says so.
_ANSWERS_NONE: Final = "it says that it answers no message (pid null)"
_ANSWERS: Final = frozenset({"acknowledge", "done", "failure", "progress", "accept", "reject"})
# How an answer leaves what it answers, and how that is told of an earlier one.
_ENDS: Final = {"accept": "accepted", "done": "done", "reject": "rejected", "failure": "failed"}
_OPPOSITE: Final = {"accepted": ("rejected",), "done": ("rejected", "failed"), "rejected": ("accepted", "done"),
                    "failed": ("done",)}  # fmt: skip
_STATUS_ENDS: Final = {"agreed": "accepted", "disagreed": "rejected"}


@dataclass(slots=True)
class Line:
    """One message as it is told; `text` is what is printed.

    `wire` stands for its text, and `content` for what it says under a number of its own. `head` is its time and turn,
    `said` its sentence, `replies` what it answers, `places` what contradicts or repeats earlier lines, `cautions` and
    `remarks` what is known beside. The other names are for later lines.
    """

    number: int
    message: Message
    dialect: str
    wire: int
    content: int = 0
    head: str = ""
    said: str = ""
    replies: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    cautions: str = ""
    remarks: str = ""
    is_answered: bool = False
    # Whether several messages are meant by what it says of what it answers, and nobody can tell which.
    is_unclear: bool = False
    # The numbers of the messages that may answer it.
    perhaps: list[int] = field(default_factory=list)
    # The end that each sender who answered it gave it last, with the line that gave it.
    ends: dict[str | None, tuple[str, Line]] = field(default_factory=dict)

    @property
    def sender(self) -> str | None:
        """Who said it."""
        return self.message.sender

    @property
    def receivers(self) -> tuple[str, ...]:
        """To whom, by name."""
        return self.message.receivers

    @property
    def text(self) -> str:
        """The whole line."""
        said = " ".join((self.said, *self.replies, *self.places))
        return f"{self.number}. {self.head}: {said}{self.cautions}{self.remarks}"

    @property
    def doubts(self) -> tuple[str, ...]:
        """What other messages make of it: what it contradicts, and that nobody can tell what it answers."""
        unclear = self.replies if self.is_unclear else ()
        return (*unclear, *(place for place in self.places if place.startswith("Caution: ")))

    @property
    def name(self) -> str:
        """`message 1 (kim's request “burn”)`."""
        return name_message(self.number, self.message, dialect=self.dialect)


def name_message(number: int, message: Any, *, dialect: str) -> str:
    """What a message is called where another line speaks of it: `message 1 (kim's request “burn”)`.

    Args:
        number: of the line.
        message: its `performative`, `native_act`, `sender` and `topic` are asked for.
        dialect: what it speaks.
    """
    sender, topic = message.sender, message.topic
    whose = "the " if not sender else f"agent {sender}'s " if sender.isdecimal() else f"{say_name(sender)}'s "
    said = f" {quote(topic)}" if topic and len(topic) <= _MAX_TOPIC_LENGTH else ""
    nouns = next((each.nouns for each in all_dialects() if each.slug == dialect), {})
    noun = nouns.get(message.native_act or "") or _NOUNS.get(message.performative or "", "message")
    return f"message {number} ({whose}{noun}{said})"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a message answers: these lines (several where it is not known which), or what it cites and is not here.

    `basis` is that of a parent. `elsewhere` names a message that is answered and that this transcript neither tells nor
    recalls; `where` is where what it cites was looked for.
    """

    basis: str
    lines: tuple[Line, ...] = ()
    cited: str = ""
    elsewhere: str = ""
    where: str = "in this record"


class Transcript:
    """The lines of one conversation, told one after another in the order in which they stand."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque(maxlen=MAX_LINES)
        # The same with those before them that are recalled.
        self._known: deque[Line] = deque(maxlen=MAX_LINES)
        self._count = 0
        self._remarked: dict[str, int] = {}
        self._latest: Line | None = None

    def recall(
        self,
        message: Message,
        *,
        dialect: str,
        wire: str | bytes,
        number: int,
        answer: Answer | None = None,
        is_before: bool = False,
    ) -> Line:
        """A message that is told in no line here, and that lines are compared with: what one of them answers, an
        earlier answer to that, or (`is_before`) one of those right before them, in their order."""
        line = Line(number, message, dialect, hash(wire))
        if is_before:
            self._relate(line, answer)
        elif answer is not None:
            _say_reversal(line, answer.lines[0])
        return line

    def tell(
        self,
        message: Message,
        *,
        dialect: str,
        wire: str | bytes,
        notes: Iterable[Note] = (),
        number: int | None = None,
        answer: Answer | None = None,
    ) -> Line:
        """The next line.

        Args:
            message: with its sentence.
            dialect: what it speaks.
            wire: the text it was read from, or what stands for it: the same where it is the same.
            notes: of its message and, at its first part, of its record.
            number: of the message in its conversation; the next one where it is left out.
            answer: what it answers; `find_answer` says it of the lines told.
        """
        self._count = number if number is not None else self._count + 1
        line = Line(self._count, message, dialect, hash(wire))
        line.content = hash(write_content(message)) if get_dialect(dialect).numbers(message) else 0
        self._relate(line, answer)
        moment = say_instant(datetime.fromisoformat(message.sent_at)) if message.sent_at else "no time"
        line.head = moment if message.turn is None else f"{moment}, turn {message.turn}"
        line.said = _say_alone(message) if answer else message.sentence
        line.said = line.said or "Nothing can be said of it."
        line.cautions = self._say_cautions(line.number, [*notes])
        line.remarks = self._say_remarks(line.number, message)
        self.lines.append(line)
        return line

    def _relate(self, line: Line, answer: Answer | None) -> None:
        """Say what a line answers and what it contradicts, by what stands before it, and have later ones know it."""
        message = line.message
        line.replies = _say_answer(answer, line, self._known) if answer else _say_unnamed(line, self._known)
        answered = answer.lines[0] if answer and len(answer.lines) == 1 else None
        reversal: tuple[str, ...] = ()
        if answered:
            reversal = (*_say_reversal(line, answered), *_say_other_task(line, answered))
            answered.is_answered = True
        before = self._known[-1] if self._known else None
        times = (*_say_time(line, before, self._latest, answered), *_say_past(message))
        line.places = (*reversal, *_say_repetition(line, self.lines), *times)
        self._known.append(line)
        if message.sent_at and (self._latest is None or not _is_before(line, self._latest)):
            self._latest = line

    def _say_cautions(self, number: int, notes: list[Note]) -> str:
        """Each note; of a notice that an earlier line told in the same words, which line that was."""
        told, again = [], dict[int, None]()
        for note in notes:
            first = self._remarked.setdefault(note.text, number) if self._may_remember(note.text) else number
            if note.severity == "notice" and first != number:
                again[first] = None
            else:
                told.append(note)
        said = "".join(segment.text for segment in say_cautions(told))
        return said + "".join(f" Caution: as for message {first}." for first in again)

    def _say_remarks(self, number: int, message: Message) -> str:
        """What stands beside the sentence; what is not known, each once for the conversation."""
        told = [each for each in message.also if not _is_in_head(message, each.text)]
        carried = [each.text for each in told if each.basis != "unknown"]
        said = dict.fromkeys((*_say_names(message), *(each.text for each in told if each.basis == "unknown")))
        new = [text for text in said if not self._may_remember(text) or text not in self._remarked]
        self._remarked |= {text: number for text in new if self._may_remember(text)}
        also = f" Also: {'; '.join(carried)}." if carried else ""
        return also + "".join(f" Note: {text}." for text in new)

    def _may_remember(self, text: str) -> bool:
        return text in self._remarked or len(self._remarked) < MAX_LINES


def _say_names(message: Message) -> Iterator[str]:
    """Of names that read like more than a name, that they are names."""
    for name in dict.fromkeys((message.sender, *message.receivers[:_MAX_NAMES])):
        if name and (shown := say_name(name)) != name and not _BLANK.match(name):
            yield f"{shown} is the name of one agent"


def _is_in_head(message: Message, text: str) -> bool:
    """Whether the line or the conversation has it elsewhere: an id, a time, a version, a key or a hash in full."""
    ids = (
        ("message", message.message_id),
        ("in conversation", message.conversation_id),
        ("in trace", message.trace_id),
    )
    own = {f"{before} {say_name(name)}" for before, name in ids if name is not None}
    return text in own or _IN_HEAD.match(text) is not None


def _say_answer(answer: Answer, line: Line, lines: deque[Line]) -> tuple[str, ...]:
    message = line.message
    names = [answer.elsewhere] if answer.elsewhere else [each.name for each in answer.lines]
    if not names:
        return (f"{_say_missing(answer.cited, answer)}.",)
    if [(each.wire, each.message.part) for each in answer.lines] == [(line.wire, message.carrier_part)]:
        return (f"Within {names[0]}.",)
    if answer.basis == "turn":
        cited = message.correlation_id
        if cited is not None and not any(bears(each.message, cited) for each in answer.lines):
            return (f"{_say_missing(cited, answer)}; judging by the sequence, perhaps to {join_words(names)}.",)
        others = [each for each in lines if _could_be_answered(each, answer, message)][-_MAX_OTHERS:]
        if others:
            # Where several wait, the latest is a guess that no reader should take for more.
            meant = [*others, *answer.lines]
            is_open = not any(each.perhaps for each in meant)
            rest = "; no answer to any of them is known" if is_open else ""
            named = join_words([each.name if is_open else _name_open(each) for each in meant], last="or")
            _mark_perhaps(meant, line)
            line.is_unclear = True
            return (f"Which message it answers cannot be told: {named}{rest}.",)
        named = join_words(names, last="or")
        return (f"Judging by the sequence, in reply to {named}; the message itself does not say so.",)
    line.is_unclear = len(names) > 1
    doubt = "; which of them is unknown" if line.is_unclear else ""
    return (f"In reply to {join_words(names, last='or')}{doubt}.",)


def _name_open(line: Line) -> str:
    """A message that waits, with what may have answered it: `message 1 (kim's question; perhaps answered by message
    2)`."""
    numbers, more = join_words([*map(str, line.perhaps[:_MAX_OTHERS])], last="or"), len(line.perhaps) - _MAX_OTHERS
    numbers += "" if more < 1 else ", or by a later one" if more == 1 else f", or by one of {more} later ones"
    return f"{line.name[:-1]}; {f'perhaps answered by message {numbers}' if numbers else 'no answer to it is known'})"


def _mark_perhaps(asked: Iterable[Line], line: Line) -> None:
    for each in asked:
        each.perhaps.append(line.number)


def _say_missing(cited: str, answer: Answer) -> str:
    return f"In reply to message {say_name(cited)}, which is not {answer.where}"


def _could_be_answered(line: Line, answer: Answer, message: Message) -> bool:
    """Whether an answer that names nothing could answer this line, too: asked by the same, of the same, and open."""
    asked = line.message
    return (
        asked.performative in _ASKS
        and not line.is_answered
        and line not in answer.lines
        and asked.sender in {each.message.sender for each in answer.lines}
        and (message.sender in asked.receivers or not asked.receivers)
        and asked.task_id == message.task_id
    )


def _may_be_answered(line: Line, message: Message) -> bool:
    """Whether a statement reads like the answer to this line: of the one who was asked, to the one who asked."""
    asked = line.message
    return (
        asked.performative in _ASKS
        and not (line.is_answered or line.perhaps)
        and message.sender in asked.receivers
        and asked.sender in message.receivers
        and asked.task_id == message.task_id
    )


def bears(message: Message, handle: str) -> bool:
    """Whether a message bears an id, of its own, of what it acts on or of what it correlates with."""
    return handle in (message.correlation_id, message.object_id, message.message_id)


def _say_unnamed(line: Line, lines: deque[Line]) -> tuple[str, ...]:
    """That an answer names no message, where its sentence does not say so, and that one without an act may be one; of
    a statement to whoever asked its sender, once for what was asked, that nobody can tell whether it is the answer."""
    message = line.message
    if message.performative in (None, "unknown"):
        return ("Whether it answers a message cannot be told.",)
    if message.performative in _STATES:
        asked = [each for each in islice(reversed(lines), _MAX_COUNTED) if _may_be_answered(each, message)]
        if asked and any(each.text == _ANSWERS_NONE for each in message.also):
            return ("It says that it answers no message.",)
        _mark_perhaps(asked, line)
        line.is_unclear = bool(asked)
        names = join_words([each.name for each in asked[:_MAX_OTHERS][::-1]], last="or")
        return (f"Whether it answers {names} cannot be told.",) if asked else ()
    is_said = message.performative not in _ANSWERS or "not named" in message.sentence
    return () if is_said else ("It does not say which message it answers.",)


def _say_reversal(line: Line, answered: Line) -> tuple[str, ...]:
    """That its sender had ended otherwise what it answers."""
    message = line.message
    end = _ENDS.get(message.performative or "") or _STATUS_ENDS.get(message.status or "", "")
    before, earlier = answered.ends.get(message.sender, ("", line))
    if end:
        answered.ends[message.sender] = (end, line)
    if before not in _OPPOSITE.get(end, ()):
        return ()
    said = f"message {earlier.number}, by which the same sender had {_say_end(before)}"
    if _is_before(line, earlier):
        return (f"Caution: this and {said}, cannot both hold; by their times this one came first.",)
    if message.sent_at and earlier.message.sent_at and not _is_before(earlier, line):
        return (f"Caution: this and {said}, cannot both hold; they have the same time.",)
    return (f"Caution: this reverses {said}.",)


def _is_before(line: Line, other: Line) -> bool:
    """Whether its time is before that of another, where both have one."""
    at, then = line.message.sent_at, other.message.sent_at
    return bool(at and then and datetime.fromisoformat(at) < datetime.fromisoformat(then))


def _say_end(end: str) -> str:
    return {"done": "said that it was done", "failed": "said that it failed"}.get(end, f"{end} it")


def _say_alone(message: Message) -> str:
    """The sentence, without the id of the message that it answers, which is told with its number."""
    if message.parent_id is None:
        return message.sentence
    told = f", in reply to message {say_name(message.parent_id)}"
    return "".join(segment.text for segment in message.english if segment.text != told)


def _say_other_task(line: Line, answered: Line) -> tuple[str, ...]:
    """That an answer is about another task than what it answers, where the dialect's topics are tasks."""
    about, asked = line.message.topic, answered.message.topic
    is_answer = line.message.performative in _ANSWERS and answered.message.performative in _ASKS
    # An error may bear the word in place of its task.
    is_answer = is_answer and not (line.message.performative == "failure" and about == "error")
    if not is_answer or not about or not asked or about == asked or not get_dialect(line.dialect).topics_are_tasks:
        return ()
    return (f"Caution: it is about {_show(about)}, and what it answers is about {_show(asked)}.",)


def _say_past(message: Message) -> Iterator[str]:
    """That a deadline or a time that it sets was over when it was sent."""
    for what, moment in (("deadline", message.deadline), ("time that it sets", message.schedule)):
        # A message that was stored has it as a mapping.
        written = moment.get("instant") if isinstance(moment, Mapping) else moment.instant if moment else None
        if written and message.sent_at:
            instant = datetime.fromisoformat(written)
            if instant < datetime.fromisoformat(message.sent_at):
                yield f"Caution: the {what}, {say_instant(instant)}, was over when it was sent."


def _say_time(line: Line, before: Line | None, latest: Line | None, answered: Line | None) -> Iterator[str]:
    """That the clock contradicts the order of the lines, or what is answered, or does not decide on the order."""
    if not line.message.sent_at or before is None:
        return
    if _is_before(line, before):
        yield f"Caution: its time is before that of message {before.number}, which stands before it."
    elif answered and _is_before(line, answered):
        yield f"Caution: its time is before that of message {answered.number}, which it answers."
    elif latest and _is_before(line, latest):
        yield f"Caution: its time is before that of message {latest.number}, which stands before it."
    elif (
        before.message.sent_at
        and (answered is None or before.number != answered.number)
        and before.wire != line.wire
        and not _is_before(before, line)
    ):
        yield f"Its time is that of message {before.number} too: which was first is not known."


def find_answer(message: Message, dialect: str, lines: deque[Line]) -> Answer | None:
    """Which of these lines a message answers, by the rules of its dialect; None where it answers nothing."""
    named: Reply | None = None
    # What is cited may come later.
    where = "among the messages before it"
    if len(lines) == lines.maxlen:
        where = f"among the {len(lines)} messages before it"
    for reply in get_dialect(dialect).replies(message):
        if reply.basis == "adjacency":
            break
        found = tuple(each for each in lines if _is_meant(reply, each, message, dialect))
        if reply.whom == "correlation-id":
            found = _find_meant(found, reply.value, message)
        if reply.basis in ("explicit", "correlation"):
            if found:
                if reply.basis == "explicit":
                    # One that is said again word for word is the same message.
                    found = tuple(reversed({each.wire: each for each in reversed(found)}.values()))
                return Answer(reply.basis, found)
            named = named or reply
        elif found:
            likeliest = max(reversed(found), key=lambda each: each.message.sender in message.receivers)
            if named is None or not _has_handle(likeliest.message):
                return Answer(reply.basis, (likeliest,), where=where)
    if named is None or not named.value:
        return None
    return Answer(named.basis, cited=named.value, where=where)


def _find_meant(bearers: tuple[Line, ...], name: str | None, message: Message) -> tuple[Line, ...]:
    def get_content(line: Line) -> int:
        return line.wire if line.message.message_id == name else line.content

    return tuple(find_meant(bearers, sender=message.sender, receivers=message.receivers, get_content=get_content))


def _is_answer(line: Line) -> bool:
    """Whether it answers by its kind, as a response does. The threads decide the same by what is stored."""
    return any(way.basis in ("turn", "correlation") for way in get_dialect(line.dialect).replies(line.message))


def _has_handle(message: Message) -> bool:
    """Whether it bears an id of its own: an answer that cites another is none to it."""
    return any((message.correlation_id, message.object_id, message.message_id))


def _is_meant(reply: Reply, line: Line, message: Message, dialect: str) -> bool:
    earlier = line.message
    is_others = earlier.sender != message.sender
    # By order only what was said to its sender, or to nobody by name, is answered.
    is_to_me = message.sender is not None and (message.sender in earlier.receivers or not earlier.receivers)
    match reply.whom:
        case "message-id":
            return earlier.message_id == reply.value
        case "correlation-id":
            return reply.value is not None and bears(earlier, reply.value) and not _is_answer(line)
        case "latest-to-me":
            is_to_it = message.sender in earlier.receivers and earlier.task_id == message.task_id
            # Two that speak in one turn do not answer each other.
            is_earlier = not get_dialect(dialect).orders_by_turn or earlier.turn != message.turn
            return is_to_it and is_earlier
        case "latest-of-other":
            return is_others and is_to_me
        case "latest-unanswered-of-other":
            is_open = is_others and is_to_me and not line.is_answered and get_dialect(dialect).asks_what_waits
            is_text = earlier.performative in (None, "inform")
            return is_open and not is_text and line.dialect == dialect and not _is_answer(line)
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
    elif line.content:
        # What names an object may name it again; a number names one statement of its sender.
        same = [each for each in lines if each.content and _is_numbered_alike(each.message, message)]
        own = f"the number {say_name(message.object_id or '')}"
    else:
        return
    if not same:
        return
    first = same[0]
    if any(each.wire == line.wire and each.message.part == message.part for each in same):
        yield f"It repeats message {first.number} word for word."
    elif line.content and (again := next((each for each in same if each.content == line.content), None)):
        yield f"It says again what message {again.number} said."
    elif message.message_id is None and message.turn is not None and _comes_after_later(same[-1], message.turn, lines):
        yield f"Caution: {own} of this sender was message {first.number} already: a new run of the turns begins here."
    else:
        yield say_conflict(own, first.number, first.message, message)


def say_conflict(own: str, number: int, first: Message, message: Message) -> str:
    """The caution of a message whose id or number, as `own` names it, the first message of this number used before."""
    found = list(islice(_find_differences(first, message), _MAX_COUNTED))
    more = len(found) - _MAX_DIFFERENCES
    differences = found[:_MAX_DIFFERENCES] + ([f"and {more} more"] if more > 0 else [])
    with_what = f" ({', '.join(differences)})" if differences else ""
    return (
        f"Caution: {own} was used before, by message {number}, with other content{with_what}; "
        "which of the two is meant by replies is unknown."
    )


def _comes_after_later(line: Line, turn: int, lines: deque[Line]) -> bool:
    """Whether a later turn was told since a line: only then the turns of it begin anew."""
    return any(each.number > line.number and (each.message.turn or 0) > turn for each in lines)


def _is_numbered_alike(earlier: Message, message: Message) -> bool:
    return (earlier.object_id, earlier.sender) == (message.object_id, message.sender)


def _find_differences(first: Message, second: Message) -> Iterator[str]:
    """What is another thing in the second than in the first: `eur = 10000 instead of 10`."""
    before, after = (_say_act(each) for each in (first, second))
    if before != after:
        yield f"{after} instead of {before}"
    elif first.native_act != second.native_act:
        yield f"{after} of another kind"
    for name, label in _COMPARED.items():
        before, after = getattr(first, name), getattr(second, name)
        if before != after:
            yield f"{label}{_show(after)} instead of {_show(before)}"
    if first.receivers != second.receivers:
        after, before = (
            join_words([say_name(name) for name in each.receivers]) or "nobody" for each in (second, first)
        )
        yield f"to {after} instead of {before}"
    yield from _compare("", first.content, second.content)
    yield from _compare("", _list_details(first), _list_details(second))


def _say_act(message: Message) -> str:
    """What a message is, where another of its id is something else: `a request`."""
    noun = _NOUNS.get(message.performative or "") or _RARE_NOUNS.get(message.performative or "", "unknown act")
    return noun if noun == "news" else f"{'an' if noun[0] in 'aeou' else 'a'} {noun}"


def _list_details(message: Message) -> dict[str, Any]:
    """The names of its own dialect, without those of how it is written."""
    return {key: value for key, value in (message.attributes or {}).items() if key not in OF_FORM}


def _compare(name: str, before: Any, after: Any) -> Iterator[str]:
    """Where two values differ: by the keys below which they do, and of anything but single values only that."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            own = say_name(str(key))
            yield from _compare(f"{own} of {name}" if name else own, before.get(key), after.get(key))
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        if isinstance(before, Mapping | list | tuple) or isinstance(after, Mapping | list | tuple):
            yield f"{name or 'the data'} differs"
        else:
            start = _find_difference(before, after)
            values = f"{_show(after, start)} instead of {_show(before, start)}"
            yield f"{name} = {values}" if name else values


def _find_difference(before: Any, after: Any) -> int:
    """From where on two long texts are shown, so that one sees in what they differ."""
    if not isinstance(before, str) or not isinstance(after, str):
        return 0
    pairs = enumerate(zip(before, after, strict=False))
    alike = next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))
    return max(0, alike - _MAX_ALIKE) if alike >= _MAX_TOPIC_LENGTH - _MAX_ALIKE else 0


def _show(value: Any, start: int = 0) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool | int | float):
        return TRUTHS.get(str(value).lower(), str(value))
    text = str(value)
    before, rest = "… " if start else "", text[start:]
    return (
        f"{before}{quote(rest)}" if len(rest) <= _MAX_TOPIC_LENGTH else f"{before}{quote(rest[:_MAX_TOPIC_LENGTH])} …"
    )
