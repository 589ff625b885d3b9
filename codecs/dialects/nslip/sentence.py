"""The sentence of one nSLIP message: act and frame as what the sender means to do, and every slot.

Every number and text keeps its characters. An agent goes by the name that its channel gave it, else by the
conventional one, and its number is always said.
"""

from __future__ import annotations

from .._context import Context
from .._english import Sentence, quote, say_name
from .._record import Message, Segment, Span
from .fields import Read, TagRead
from .tables import ACTS, AGENTS, FRAMES, MAX_NUMBER, PAIRS, RANGES, SLOTS

# The noun of a message that gives no task.
_NO_TASK = "a task with no number"

# A control message by act and frame: without a text of its own, what it is about is not on the wire.
_CONTROL = (10, 4)

# The slots that follow the task in the sentence, in this order.
_DETAILS = "qruse"

_MAX_DECIMAL_LENGTH = len(str(MAX_NUMBER))


class TagSentence:
    """The sentence of one tag under construction."""

    def __init__(self, message: Message, read: TagRead | None, context: Context) -> None:
        self.message = message
        self.context = context
        self.sentence = Sentence()
        self.used = read.used() if read else {}
        self.unread = {f.slot.prefix: f for f in read.fields if f.slot and f.role == "unread"} if read else {}
        self.unknown = [field for field in read.fields if field.slot is None and field.role == "unread"] if read else []

    def tell(self) -> tuple[Segment, ...]:
        """The whole sentence."""
        self._say_sender()
        verb, noun, link = self._choose_words()
        before, _, after = verb.partition("{whom}")  # the first one is the table's, whatever the wire holds
        self.sentence.say(f" {before}", self._span("a"))
        self._say_receiver()
        self.sentence.say(after, self._span("a"))
        self._say_matter(noun, link)
        for prefix in _DETAILS:
            self._say_detail(prefix)
        for field in self.unknown:
            self.sentence.say(f", field {say_name(field.prefix)} ", span_of(field), basis="unknown")
            words = f"{quote(field.written)} (a field that nSLIP does not define)"
            self.sentence.say(words, span_of(field), basis="unknown")
        if "t" in self.used:
            self.sentence.say("; tag ").say(quote(str(self.used["t"].value)), self._span("t"))
        elif (self._code("a"), self._code("f")) == _CONTROL and "u" not in self.used:
            self.sentence.say("; the updated part is not named", basis="unknown")
        return self.sentence.say(".").segments()

    def tell_sending(self) -> Sentence:
        """The beginning of a sentence on a message that cannot be read: who sends it, and to whom."""
        self._say_sender()
        self.sentence.say(" sends ")
        if self.message.receivers:
            self._say_receiver()
            self.sentence.say(" ")
        return self.sentence.say("a message")

    def _span(self, prefix: str) -> Span | None:
        field = self.used.get(prefix) or self.unread.get(prefix)
        return span_of(field) if field else None

    def _say_sender(self) -> None:
        sender = self.message.sender
        if sender is None:
            self._say_nobody("S", "Someone")
        else:
            self._say_agent(sender, "S", is_first=True)

    def _say_receiver(self) -> None:
        receivers = self.message.receivers
        if not receivers:
            self._say_nobody("d", "someone")
        for index, receiver in enumerate(receivers):
            if index:
                self.sentence.say(" and " if index == len(receivers) - 1 else ", ")
            if receiver == self.message.sender and _is_number(receiver):
                self.sentence.say(f"itself (agent {receiver})", self._span("d"))
            else:
                self._say_agent(receiver, "d", is_first=False)

    def _say_nobody(self, prefix: str, word: str) -> None:
        field = self.unread.get(prefix)
        self.sentence.say(word, basis="unknown")
        if field:
            words = f" (the {SLOTS[prefix].label} is written {quote(field.written)})"
            self.sentence.say(words, span_of(field), basis="unknown")

    def _say_agent(self, name: str, prefix: str, *, is_first: bool) -> None:
        entry = self.context.find("agent-name", name)
        if entry:
            self.sentence.say(f"{say_name(str(entry.value))} (agent {name})", self._span(prefix), source=entry.source)
        elif name in AGENTS:
            article = "The" if is_first else "the"
            self.sentence.say(f"{article} {AGENTS[name]} (agent {name})", self._span(prefix))
        elif _is_number(name):
            self.sentence.say(f"{'Agent' if is_first else 'agent'} {name}", self._span(prefix))
        else:
            self.sentence.say(say_name(name), self._span(prefix))

    def _choose_words(self) -> tuple[str, str, str]:
        """The verb with its `{whom}`, the noun before the task, and the word that ties the task to it."""
        code, frame_code = self._code("a"), self._code("f")
        act = None if code is None else ACTS.get(code)
        frame = None if frame_code is None else FRAMES.get(frame_code)
        article = act.article if act else "the"
        verb = act.verb if act else self._describe_act(code)
        if frame is None:
            return verb, self._describe_frame(frame_code), "on"
        if act and (act.code, frame.code) in PAIRS:
            return *PAIRS[act.code, frame.code], frame.link
        return verb, frame.a if article == "a" else frame.the, frame.link

    def _code(self, prefix: str) -> int | None:
        field = self.used.get(prefix)
        return field.value if field and isinstance(field.value, int) else None

    def _describe_act(self, code: int | None) -> str:
        if code is not None:
            return f"sends {{whom}} an act that nSLIP does not define (number {code}), about"
        if field := self.unread.get("a"):
            return f"sends {{whom}} a message whose act, written {quote(field.written)}, is not understood, about"
        return "sends {whom} a message whose act is not given, about"

    def _describe_frame(self, code: int | None) -> str:
        if code is not None:
            return f"something of a kind that nSLIP does not define (frame number {code})"
        if field := self.unread.get("f"):
            return f"something of a kind that is not understood (the frame is written {quote(field.written)})"
        return "something whose kind is not given (the frame is missing)"

    def _say_matter(self, noun: str, link: str) -> None:
        """The noun of the frame and the task it is about, with the task above it and the goal in brackets."""
        self.sentence.say(f" {noun}" if noun else "", self._span("f"))
        tie = f" {link} " if link and noun else " "
        rest = ["p", "g"]
        if "k" in self.used:
            self.sentence.say(tie, self._span("f"))
            self._say_number("k", "task {}")
        elif "k" in self.unread:
            self.sentence.say(tie, self._span("f"))
            self._say_written("k", "the task")
        elif not link:
            self.sentence.say(f" {_NO_TASK}", self._span("f"))
        elif "p" in self.used:
            rest = ["g"]
            self.sentence.say(tie, self._span("f"))
            self._say_number("p", "a part of task {}")
        elif "g" in self.used:
            rest = []
            self.sentence.say(tie, self._span("f"))
            self._say_number("g", "goal {}")
        self._say_brackets([prefix for prefix in rest if prefix in self.used])
        for prefix in "pg":
            self._say_unread(prefix)

    def _say_brackets(self, prefixes: list[str]) -> None:
        for index, prefix in enumerate(prefixes):
            self.sentence.say(", " if index else " (")
            self._say_number(prefix, "part of task {}" if prefix == "p" else "goal {}")
        if prefixes:
            self.sentence.say(")")

    def _say_number(self, prefix: str, words: str) -> None:
        self.sentence.say(words.format(self.used[prefix].value), self._span(prefix))

    def _say_detail(self, prefix: str) -> None:
        field = self.used.get(prefix)
        if field is None:
            self._say_unread(prefix)
            return
        value = field.value
        said = quote(value) if isinstance(value, str) else f"{value}{_range_of(prefix, value)}"
        number = " number" if prefix == "r" and not isinstance(value, str) else ""
        self.sentence.say(", ").say(f"{SLOTS[prefix].label}{number} {said}", span_of(field))

    def _say_unread(self, prefix: str) -> None:
        if prefix in self.unread:
            self.sentence.say(", ")
            self._say_written(prefix, SLOTS[prefix].label)

    def _say_written(self, prefix: str, what: str) -> None:
        field = self.unread[prefix]
        words = f"{what} written {quote(field.written)} (not understood)"
        self.sentence.say(words, span_of(field), basis="unknown")


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= _MAX_DECIMAL_LENGTH


def span_of(field: Read) -> Span:
    """The place of a field on the wire."""
    return (0, field.start, field.end)


def _range_of(prefix: str, number: int | None) -> str:
    """` of 3`: the range a slot has, or that the number is outside it."""
    if prefix not in RANGES or number is None:
        return ""
    low, high = RANGES[prefix]
    return f" of {high}" if low <= number <= high else f" (outside {low} to {high})"
