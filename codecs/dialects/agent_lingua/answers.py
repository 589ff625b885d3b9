"""The English of a response or an error: one sentence, each piece tied to its characters.

Specification: 0.4.0 Response Format, Error Codes.
"""

from __future__ import annotations

from .._english import Sentence, join_words, say_seconds
from .._record import Message, Segment
from .circumstances import (
    Sealed,
    code_span,
    find_addressee,
    names_session,
    open_sentence,
    say_condition,
    say_content,
    say_time,
    span_of,
)
from .contents import cite, name
from .labels import say_label
from .messages import deny_success
from .repetitions import tell_repeated
from .statements import Part, Statement
from .tables import ERRORS, SUBTYPES

# By status, without and with someone to tell it to.
_REPORTS = {
    "0": (" reports success", " reports success to {}"),
    "1": (" reports partial success", " reports partial success to {}"),
    "2": (" answers that it is waiting", " tells {} that it is waiting"),
    "3": (" answers that the request is queued", " tells {} that the request is queued"),
    "8": (" answers that a retry is needed", " tells {} that a retry is needed"),
    "9": (" reports a failure", " reports a failure to {}"),
    "A": (" sends a rejection", " sends {} a rejection"),
}

# How a status of success is told where the payload denies it: the payload wins, and the code is named.
_HOPEFUL = {
    "0": (" reports, under the code of success,", " reports to {}, under the code of success,"),
    "1": (" reports, under the code of partial success,", " reports to {}, under the code of partial success,"),
}

# By status, what is said where no correlation id names the request.
_UNNAMED = {**dict.fromkeys("01289A", " (what it answers is not named)"), "3": " (the request is not named)"}

# By status and `accepted`: a payload that says the contrary of its status must be heard as such.
_CONTRADICTIONS = {
    ("0", False): ", and yet says that it has not accepted",
    ("1", False): ", and yet says that it has not accepted",
    ("9", True): ", and yet says that it has accepted",
    ("A", True): ", and yet says that it has accepted",
}


def tell_response(
    statement: Statement,
    message: Message,
    sealed: Sealed,
    as_offered: frozenset[str] = frozenset(),
    offered_in: str = "",
) -> tuple[Segment, ...]:
    """The sentence of a response. Of a handshake that it accepts, `as_offered` are the keys that it only says again."""
    sentence = open_sentence(message)
    code, part = code_span(statement, 0), statement.standing.get("identifier")
    asked = find_addressee(statement, message)
    content = message.content if isinstance(message.content, dict) else {}
    skip: frozenset[str] = frozenset()
    unnamed, named = _UNNAMED.get(statement.status, ""), None
    if statement.status == "2" and content.get("accepted") is False and statement.payload:
        sentence.say(" acknowledges the handshake", code, statement.payload.span)
        sentence.say(" of " if asked else "").say(*(asked or ("", None)))
        sentence.say(" and has not accepted it yet: the sender is waiting", code, statement.payload.span)
        skip, unnamed = frozenset({"accepted"}), ""
    elif statement.status == "0" and "accepted" not in content and message.capabilities and statement.payload:
        sentence.say(" answers").say(" " if asked else "").say(*(asked or ("", None)))
        sentence.say(" with success (^0) and its capabilities", code, statement.payload.span)
        named, unnamed = "capabilities", ""
    elif statement.status == "0" and content.get("accepted") is True:
        sentence.say(" accepts the handshake", code, statement.payload.span if statement.payload else None)
        sentence.say(" of " if asked else "").say(*(asked or ("", None)))
        skip, unnamed = frozenset({"accepted"}) | as_offered, ""
    elif statement.status in _REPORTS:
        alone, told = _REPORTS[statement.status]
        denies = deny_success(statement, content)
        if denies:
            alone, told = _HOPEFUL[statement.status]
        if asked:
            before, _, after = told.partition("{}")
            sentence.say(before, code).say(*asked).say(after, code)
        else:
            sentence.say(alone, code)
        if denies and statement.payload:
            sentence.say(f" {denies}", statement.payload.span)
        accepted = content.get("accepted")
        contradiction = _CONTRADICTIONS.get((statement.status, accepted)) if isinstance(accepted, bool) else None
        if contradiction and statement.payload:
            sentence.say(contradiction, statement.payload.span)
            skip, unnamed = frozenset({"accepted"}), ""
    else:
        sentence.say(" answers")
        sentence.say(" " if asked else "").say(*(asked or ("", None)))
        sentence.say(" with the unknown status ").say(cite(statement.status), code, basis="unknown")
    if statement.status == "2" and content.get("learning") is True and statement.payload:
        sentence.say(" and learning the protocol", statement.payload.span)
        skip |= {"learning"}
    if part is not None and not names_session(statement):
        sentence.say(", in answer to ").say(name(part.value), span_of(part))
        unnamed = ""
    time, condition = statement.standing.get("time"), statement.standing.get("condition")
    if statement.status in "39A":
        sentence.say(unnamed, basis="unknown")
        unnamed = ""
    if time is not None:
        _say_time(sentence, statement.status, time)
    sentence.say(unnamed, basis="unknown")
    if condition is not None:
        say_condition(sentence, condition, is_filter=True)
    if statement.payload is None and statement.status == "0":
        sentence.say(", with no data")
    say_content(sentence, statement, message, sealed, skip, named)
    again = [say_label(key, content[key]) for key in content if key in skip & as_offered]
    if again and statement.payload:
        sentence.say(f"; {join_words(again)} as offered {offered_in}", statement.payload.span)
    return tell_repeated(statement, sentence.say(".").segments())


def _say_time(sentence: Sentence, status: str, part: Part) -> None:
    """When to retry; with any other status, the time as it is given, for it does not say what it is the time of."""
    kind = part.time.moment.kind if part.time else "unread"
    if status in ("8", "9"):
        sentence.say(" " if status == "8" else ", retry ")
        say_time(sentence, part)
    elif kind == "delay" and part.time:
        sentence.say(f", with a delay of {say_seconds(int(part.time.moment.seconds or 0))}", span_of(part))
    else:
        sentence.say(", ")
        say_time(sentence, part, link="for")


def tell_error(statement: Statement, message: Message, sealed: Sealed) -> tuple[Segment, ...]:
    """The sentence of an error."""
    sentence = open_sentence(message)
    kind, subtype = code_span(statement, 0), code_span(statement, 1)
    asked, part = find_addressee(statement, message), statement.standing.get("identifier")
    if statement.error == "1":
        sentence.say(" could not read the message", kind)
        sentence.say(" from " if asked else "").say(*(asked or ("", None))).say(" (parse error)", kind)
    else:
        sentence.say(" reports an error")
        sentence.say(" to " if asked else "").say(*(asked or ("", None)))
        sentence.say(": " if statement.error in ERRORS else " of the unknown type ")
        if statement.error == "2" and statement.subtype in SUBTYPES:
            sentence.say(SUBTYPES[statement.subtype], subtype).say(" permission denied", kind)
        elif statement.error in ERRORS:
            sentence.say(ERRORS[statement.error], kind)
        else:
            sentence.say(statement.error, kind, basis="unknown")
    if statement.subtype and not (statement.error == "2" and statement.subtype in SUBTYPES):
        sentence.say(", with the unknown subtype ").say(cite(statement.subtype), subtype, basis="unknown")
    if part is not None and not names_session(statement):
        sentence.say(", in answer to ").say(name(part.value), span_of(part))
    time, condition = statement.standing.get("time"), statement.standing.get("condition")
    if time is not None:
        sentence.say(", retry ")
        say_time(sentence, time)
    if condition is not None:
        say_condition(sentence, condition, is_filter=True)
    for place, detail in enumerate(part for part in statement.parts if part.role == "detail"):
        sentence.say(", " if place else ", details ").say(cite(detail.value), span_of(detail))
    say_content(sentence, statement, message, sealed)
    return tell_repeated(statement, sentence.say(".").segments())
