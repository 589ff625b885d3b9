"""What statements and answers say alike: who speaks to whom, when, on what condition, and the payload.

Every piece is tied to the characters it came from; words of our own grammar have no span.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from .._english import Sentence, join_words, say_instant, say_seconds
from .._record import Message, Span
from .contents import cite, name, say_payload, say_sealed
from .payloads import Payload
from .statements import Part, Statement

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
