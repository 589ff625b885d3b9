"""What statements and answers say alike: who speaks to whom, when, on what condition, and the payload; fields that are
given more than once, for every value is told; and what a message carries beyond its sentence, in short phrases.

Every piece is tied to the characters it came from; words of our own grammar have no span.

Specification: 0.4.0 Syntax Structure, which has no rule for a repeated field. The record holds the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from .._english import Sentence, join_words, say_instant, say_seconds
from .._record import Message, Segment, Span
from .contents import cite, is_too_long_to_cite, name, say_payload, say_sealed
from .payloads import Payload
from .statements import Part, Statement
from .tables import MODIFIER_MEANINGS, MODIFIERS, SIGILS, SUBMOLTS

# Modifiers as the end of a sentence; the others are said elsewhere in it, or beside it.
_ENDINGS = {
    "2": ", without notification",
    "3": ", as a batch",
    "4": ", as a dry run only",
    "5": ", as a retry",
    "6": ", asynchronously",
    "7": ", marked as encrypted",
    "8": ", marked as compressed",
    "9": ", with confirmation required",
}


class Sealed(NamedTuple):
    """What came of an encrypted payload: the payload inside, how many keys failed, and the opening key's label."""

    inner: Payload | None = None
    failed: int = 0


def span_of(part: Part | None) -> Span | None:
    return (0, part.start, part.end) if part else None


def code_span(statement: Statement, index: int) -> Span:
    return (0, *statement.codes[index])


def find_addressee(statement: Statement, message: Message) -> tuple[str, Span | None] | None:
    """Who is asked: the target where it is a party, else the receivers the envelope names."""
    part = statement.standing.get("target")
    target = message.target
    if target is not None and target.kind in ("agent", "all", "self"):
        words = {"all": "everyone", "self": "itself"}.get(target.kind) or name(target.name)
        return words, span_of(part)
    if message.receivers:
        return join_words([name(each) for each in message.receivers]), None
    return None


def names_session(statement: Statement) -> bool:
    return bool(statement.payload and statement.payload.kind == "encrypted")


def open_sentence(message: Message) -> Sentence:
    """A sentence that begins with the sender, or with someone where none is known."""
    return Sentence().say(name(message.sender) if message.sender else "Someone")


def say_rhythm(sentence: Sentence, statement: Statement, *, is_asked: bool = False) -> None:
    """Add how often, where that is said: before what is done, for after an object it would seem to belong to that.

    What is asked for is to be repeated; the asking is not.
    """
    time = statement.standing.get("time")
    if time is not None and _is_rhythm(statement, time):
        sentence.say(" (to be repeated " if is_asked else ", ")
        say_time(sentence, time)
        sentence.say(")" if is_asked else ",")


def _is_rhythm(statement: Statement, time: Part) -> bool:
    """Whether a time stands before the verb: it repeats, and is not the time of a reminder that is set."""
    is_reminder = statement.domain == "4" and statement.action in "25"
    return bool(time.time and time.time.moment.kind == "repeat") and not is_reminder


def say_circumstances(sentence: Sentence, statement: Statement, message: Message) -> None:
    time, condition = statement.standing.get("time"), statement.standing.get("condition")
    if time is not None and not _is_rhythm(statement, time):
        sentence.say(" ")
        say_time(sentence, time)
    if condition is not None:
        is_search = statement.action == "6" and message.performative == "query"
        say_condition(sentence, condition, is_filter=message.performative != "request", is_apart=is_search)


def say_time(sentence: Sentence, part: Part, *, link: str = "at") -> None:
    """Add the time: `in 30 minutes`, `1 hour before`, `every 4 hours`, `at …`; `link` stands before an exact one."""
    time, span = part.time, span_of(part)
    if time is None or time.moment.kind == "unread":
        sentence.say(f"{link} the time written ").say(cite(part.value), span, basis="unknown")
    elif time.moment.kind == "exact":
        written = name(part.value[1:])
        if time.moment.instant is None:
            sentence.say(f"{link} {written}", span)
            return
        moment = datetime.fromisoformat(time.moment.instant)
        is_guessed = any(note.code.endswith("time-without-zone") for note in time.notes)
        words = f"{link} {say_instant(moment)} (written {written})"
        sentence.say(words, span, basis="inferred" if is_guessed else "exact")
    else:
        length = say_seconds(int(time.moment.seconds or 0))
        said = {"delay": f"in {length}", "before": f"{length} before", "repeat": f"every {length}"}
        sentence.say(said[time.moment.kind], span)


def say_condition(sentence: Sentence, part: Part, *, is_filter: bool, is_apart: bool = False) -> None:
    """Add the condition: a filter on what is asked for, or what an action depends on.

    It stands apart where the object before it need not be what it filters.
    """
    condition, span = part.condition, span_of(part)
    if condition is None or condition.subject is None:
        sentence.say(" under the condition ").say(cite(part.value), span, basis="unknown")
    elif condition.relation is None:
        part_number, _, whole = condition.operand.partition("/")
        sentence.say(f", part {part_number} of {whole}", span)
    else:
        is_number = condition.operand.isdecimal()
        operand = condition.operand if is_number else cite(condition.operand)
        link = ", on the condition that" if is_apart else " where" if is_filter else " if"
        words = f"{link} {condition.subject} {condition.relation} {operand}"
        sentence.say(words, span, basis="inferred" if condition.notes else "exact")


def say_modifiers(sentence: Sentence, statement: Statement) -> None:
    kind = statement.payload.kind if statement.payload else None
    said: set[str] = set()
    for digit, _ in statement.modifiers:
        is_said_by_payload = (digit == "7" and kind == "encrypted") or (digit == "8" and kind == "zlib")
        if digit in said or digit not in _ENDINGS or is_said_by_payload:
            continue
        said.add(digit)
        sentence.say(_ENDINGS[digit], *((0, at, at + 1) for other, at in statement.modifiers if other == digit))


def say_content(
    sentence: Sentence,
    statement: Statement,
    message: Message,
    sealed: Sealed,
    skip: frozenset[str] = frozenset(),
    named: str | None = None,
) -> None:
    payload = statement.payload
    if payload is None:
        return
    if payload.kind != "encrypted":
        say_payload(sentence, payload, skip=skip, named=named)
        return
    part = statement.standing.get("identifier")
    if sealed.inner is not None:
        sentence.say(", encrypted", payload.span)
        if part is not None:
            sentence.say(" in session ").say(name(part.value), span_of(part))
        sentence.say(" and opened")
        say_payload(sentence, sealed.inner)
        return
    say_sealed(sentence, payload, part.value if part else None, span_of(part))
    if sealed.failed:
        which = "the key held does not open it" if sealed.failed == 1 else f"none of {sealed.failed} keys opens it"
        sentence.say(f"; it is not authentic: {which}", payload.span)
    elif payload.sealed is not None:
        sentence.say(", so its content cannot be read without the key")


# The noun after the quoted name of a board, a segment of its own so that the quotation has its exact span.
BOARD = " board"

_TIMES = {2: "twice"}


def tell_repeated(statement: Statement, said: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The sentence with every earlier value of a repeated field beside the one that it names.

    Where the sentence does not name the field, and for a payload, the earlier ones stand before the full stop.
    """
    for role in SIGILS.values():
        parts = [part for part in statement.parts if part.role == role]
        if len(parts) > 1:
            said = _insert(said, role, parts)
    return said


def _insert(said: tuple[Segment, ...], role: str, parts: Sequence[Part]) -> tuple[Segment, ...]:
    earlier = parts[:-1]
    spans = tuple(span for part in earlier if (span := span_of(part)) is not None)
    words = join_words([_say_value(part) for part in earlier], last="or")
    doubt = f"the {role} is given {_TIMES.get(len(parts), f'{len(parts)} times')}"
    standing = span_of(parts[-1])
    at = next((place for place, segment in enumerate(said, 1) if standing in segment.spans), 0)
    if role == "payload" or not at:
        also = Segment(text=f"; {doubt}, earlier as {words}", spans=spans)
        return (*said[:-1], also, said[-1])
    at += at < len(said) and said[at].text == BOARD
    also = Segment(text=f" (or {words}: {doubt})", spans=spans)
    return (*said[:at], also, *said[at:])


def _say_value(part: Part) -> str:
    if part.aim is None:
        return cite(part.value)
    target = part.aim.target
    if part.aim.is_board:
        board = target.name if part.value in SUBMOLTS else cite(target.name)
        return f"board {target.name}" if part.value.isdecimal() and part.value not in SUBMOLTS else f"{board} board"
    if target.kind in ("all", "self", "human"):
        return {"all": "everyone", "self": "itself", "human": "the human"}[target.kind]
    return name(target.name) if target.kind == "agent" else cite(target.name)


def tell_rest(statement: Statement, message: Message) -> tuple[Segment, ...]:
    """What the message carries beyond its sentence, each in a short phrase."""
    rest: list[Segment] = []
    if statement.kind == "statement":
        rest.extend(_rest_of_modifiers(statement))
    for part in statement.parts:
        span = (0, part.start, part.end)
        if part.role == "unknown":
            words = f"a field outside the grammar: {cite(part.value)}"
            rest.append(Segment(text=words, spans=(span,), basis="unknown"))
        elif part.role == "empty":
            role = SIGILS.get(part.value, "field")
            rest.append(Segment(text=f"an empty {role}", spans=(span,)))
    payload = statement.payload
    if payload is not None and is_too_long_to_cite(payload):
        rest.append(
            Segment(text=f"payload as written: {cite(payload.written)}", spans=(payload.span,), basis="unknown")
        )
    if statement.kind == "error" and statement.error == "0" and not statement.parts:
        rest.append(Segment(text="no details are given", spans=(code_span(statement, 0),)))
    return tuple(rest)


def _rest_of_modifiers(statement: Statement) -> list[Segment]:
    kind = statement.payload.kind if statement.payload else None
    rest = []
    for digit, at in statement.modifiers:
        is_marked = (digit == "7" and kind == "encrypted") or (digit == "8" and kind == "zlib")
        if digit == "0" or is_marked:
            words = f"modifier {digit}: {MODIFIER_MEANINGS[MODIFIERS[digit]]}"
            rest.append(Segment(text=words, spans=((0, at, at + 1),)))
    return rest
