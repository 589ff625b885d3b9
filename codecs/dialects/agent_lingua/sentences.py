"""The English of a statement, a response or an error: one sentence, each piece tied to its characters.

The verb comes from action and domain, then object, place, identifier, time, condition and modifiers, then the payload.
Nothing is said that the wire does not say; what the sentence leaves out is said beside it.

Specification: 0.4.0 Response Format, Error Codes.
"""

from __future__ import annotations

from .._english import Sentence, join_words, say_seconds
from .._record import Message, Segment, Span
from .circumstances import (
    BOARD,
    Sealed,
    code_span,
    find_addressee,
    names_session,
    open_sentence,
    say_circumstances,
    say_condition,
    say_content,
    say_modifiers,
    say_rhythm,
    say_time,
    span_of,
    tell_repeated,
)
from .contents import cite, name, say_label
from .messages import deny_success, is_session_end
from .statements import Part, Statement
from .tables import ACTIONS, DOMAINS, ERRORS, SUBMOLTS, SUBTYPES, idiom_of, phrase_of, search_of


def tell_statement(statement: Statement, message: Message, sealed: Sealed) -> tuple[Segment, ...]:
    """The sentence of a statement."""
    sentence = open_sentence(message)
    urgent = [(0, at, at + 1) for digit, at in statement.modifiers if digit == "1"]
    sentence.say(" urgently" if urgent else "", *urgent)
    if not _is_asked(statement, message):
        say_rhythm(sentence, statement)
    if is_session_end(statement):
        _say_session_end(sentence, statement, message)
    elif message.performative == "unknown":
        _say_unknown(sentence, statement, message)
    elif (statement.domain, statement.action) == ("0", "6"):
        _say_capability_query(sentence, statement, message)
    elif (statement.domain, statement.action) == ("1", "3"):
        _say_send(sentence, statement, message)
    elif statement.domain != "6" and statement.action in "0789A" and not _idiom(statement):
        _say_own_act(sentence, statement, message)
    elif (statement.domain, statement.action) == ("9", "3"):
        _say_submitting(sentence, statement, message)
    elif _asks_somebody(statement, message):
        _say_question(sentence, statement, message)
    else:
        _say_asking(sentence, statement, message)
    say_circumstances(sentence, statement, message)
    say_modifiers(sentence, statement)
    is_sealed = statement.payload is not None and statement.payload.sealed is not None and sealed.inner is None
    if is_sealed and message.performative != "unknown":
        domain, action = DOMAINS[statement.domain], ACTIONS[statement.action]
        words = f" (by the tables: domain “{domain.meaning}”, action “{action.meaning}”)"
        sentence.say(words, code_span(statement, 0), code_span(statement, 1))
    if (statement.domain, statement.action) == ("1", "3") and message.performative != "unknown":
        _say_that_text_follows(sentence, statement, message)
    say_content(sentence, statement, message, sealed)
    _say_missing(sentence, statement, message)
    return tell_repeated(statement, sentence.say(".").segments())


def _is_asked(statement: Statement, message: Message) -> bool:
    """Whether the sentence asks somebody for something, and so says how often before what is asked."""
    is_own = statement.domain != "6" and statement.action in "0789A" and not _idiom(statement)
    is_apart = (statement.domain, statement.action) in _TOLD_APART or _asks_somebody(statement, message)
    return message.performative != "unknown" and not is_own and not is_apart


_TOLD_APART = (("0", "6"), ("1", "3"), ("9", "3"))


def _asks_somebody(statement: Statement, message: Message) -> bool:
    """Whether a query among messages is a question: it has a text, and an agent to answer it."""
    is_query = statement.domain == "1" and message.performative == "query"
    is_agent = message.target is not None and message.target.kind == "agent"
    is_text = isinstance(message.content, str) and bool(message.content)
    return is_query and is_agent and statement.payload is not None and is_text


def _say_question(sentence: Sentence, statement: Statement, message: Message) -> None:
    asked = find_addressee(statement, message)
    sentence.say(" asks ", code_span(statement, 1), code_span(statement, 0)).say(*(asked or ("", None)))
    # What is said to be read or verified is asked of somebody all the same.
    if statement.action != "6":
        sentence.say(f" (by the table, the action is “{ACTIONS[statement.action].meaning}”)", code_span(statement, 1))
    _say_own_number(sentence, statement)


def _say_own_number(sentence: Sentence, statement: Statement) -> None:
    """The `#` of a request is its own number, and never what is searched."""
    part = statement.standing.get("identifier")
    if part is not None and not names_session(statement):
        sentence.say(" (its number is ").say(name(part.value), span_of(part)).say(")")


def _say_submitting(sentence: Sentence, statement: Statement, message: Message) -> None:
    """A transaction goes to its target: that is who receives it, and never the transaction."""
    sentence.say(" submits ", code_span(statement, 1), code_span(statement, 0))
    part, target = statement.standing.get("target"), message.target
    if target is not None and target.kind == "object":
        message = message.replace(target=target.replace(kind="agent"))
    _say_object(sentence, statement, message, is_many=False)
    asked = find_addressee(statement, message)
    if target is not None and target.kind == "human":
        sentence.say(" to the human", span_of(part))
    elif asked:
        sentence.say(" to ").say(*asked)


def _say_missing(sentence: Sentence, statement: Statement, message: Message) -> None:
    """Add what an auditor would look for and the wire does not give: what is asked, or what to search for."""
    if message.performative == "unknown":
        sentence.say("; the request is therefore unknown", basis="unknown")
    elif _answers_nothing(statement):
        sentence.say("; the answered post is not named", basis="unknown")
    elif _is_search(statement, message) and statement.payload is None:
        has_object = bool({"target", "identifier"} & statement.standing.keys())
        sentence.say(f"; no {'' if has_object else 'target and no '}search text is given", basis="unknown")


def _answers_nothing(statement: Statement) -> bool:
    """Whether it is a comment or reply, by Moltbook's idiom, that names no post."""
    return statement.domain == "7" and statement.action == "9" and "identifier" not in statement.standing


def _is_search(statement: Statement, message: Message) -> bool:
    """Whether it is a query by its action, other than the capability query."""
    return statement.action == "6" and statement.domain != "0" and message.performative == "query"


def _idiom(statement: Statement) -> str | None:
    if statement.domain != "7":
        return None
    return idiom_of(statement.action, "identifier" in statement.standing)


def _say_asking(sentence: Sentence, statement: Statement, message: Message) -> None:
    domain, action = code_span(statement, 0), code_span(statement, 1)
    target = message.target
    is_on_moltbook = statement.domain == "7" and not _is_search(statement, message)
    if target is not None and target.kind == "self" and is_on_moltbook:
        sentence.say(" asks")
    elif target is not None and target.kind == "self":
        verb = " asks itself" if _is_search(statement, message) else " tells itself"
        sentence.say(verb, span_of(statement.standing.get("target")))
    else:
        asked = find_addressee(statement, message)
        sentence.say(" asks")
        if asked:
            sentence.say(" ").say(*asked)
    say_rhythm(sentence, statement, is_asked=True)
    if _is_search(statement, message):
        sentence.say(" for information from ", action)
        phrase = search_of(statement.domain)
    else:
        sentence.say(" to ")
        phrase = _idiom(statement) or phrase_of(statement.domain, statement.action)
    _say_phrase(sentence, statement, message, phrase, domain, action)
    if target is not None and target.kind == "self" and is_on_moltbook:
        sentence.say(f", target self (@{target.raw})", span_of(statement.standing.get("target")))


def _say_phrase(
    sentence: Sentence, statement: Statement, message: Message, phrase: str, domain: Span, action: Span
) -> None:
    is_many = "{many}" in phrase
    before, slot, after = phrase.replace("{many}", "{}").partition("{}")
    sentence.say(before, action, domain)
    if slot:
        _say_object(sentence, statement, message, is_many=is_many)
    sentence.say(after, action, domain)
    if slot and _is_search(statement, message):
        _say_own_number(sentence, statement)
    _say_place(sentence, statement, message)
    if not slot and "identifier" in statement.standing and not names_session(statement):
        part = statement.standing["identifier"]
        sentence.say(" (identifier ").say(name(part.value), span_of(part)).say(")")


def _say_object(sentence: Sentence, statement: Statement, message: Message, *, is_many: bool) -> None:
    row, span = DOMAINS.get(statement.domain), code_span(statement, 0)
    target, identifier = statement.standing.get("target"), statement.standing.get("identifier")
    if identifier is not None and (names_session(statement) or _is_search(statement, message)):
        identifier = None
    is_named = target is not None and message.target is not None and message.target.kind == "object"
    one = row.one if row else f"an item of the unknown domain {cite(statement.domain)}"
    many = row.many if row else f"items of the unknown domain {cite(statement.domain)}"
    the = row.the if row else f"the item of the unknown domain {cite(statement.domain)}"
    if is_named and target is not None:
        if identifier is None:
            sentence.say(f"{the} ", span).say(cite(target.value), span_of(target))
        else:
            # Neither is known to be what is acted on: both are said as they are.
            sentence.say(one, span).say(" (target ").say(cite(target.value), span_of(target))
            sentence.say(", identifier ").say(name(identifier.value), span_of(identifier)).say(")")
    elif identifier is not None:
        sentence.say(f"{the} ", span).say(name(identifier.value), span_of(identifier))
    else:
        sentence.say(many if is_many else one, span)


def _say_place(sentence: Sentence, statement: Statement, message: Message) -> None:
    part, target = statement.standing.get("target"), message.target
    is_place = part is not None and target is not None and target.kind == "place"
    domain = code_span(statement, 0)
    if statement.domain == "7":
        if is_place and part is not None and target is not None:
            sentence.say(" on Moltbook's ", domain)
            _say_board(sentence, part, target.name)
        else:
            sentence.say(" on Moltbook", domain)
    elif statement.domain == "8":
        if is_place and part is not None and target is not None:
            sentence.say(" at ").say(cite(target.name), span_of(part))
        sentence.say(" on another social platform", domain)
    elif is_place and part is not None and target is not None:
        sentence.say(" at ").say(cite(target.name), span_of(part))
    if target is not None and target.kind == "human":
        sentence.say(" for the human", span_of(part))


def _say_board(sentence: Sentence, part: Part, name: str) -> None:
    if part.value in SUBMOLTS:
        sentence.say(f"{name} board", span_of(part))
    elif part.value.isdecimal():
        sentence.say(f"board {name}", span_of(part))
    else:
        sentence.say(cite(name), span_of(part)).say(BOARD)


def _say_send(sentence: Sentence, statement: Statement, message: Message) -> None:
    action, domain = code_span(statement, 1), code_span(statement, 0)
    part, target = statement.standing.get("target"), message.target
    asked = find_addressee(statement, message)
    if target is None and not asked:
        sentence.say(" asks to post ", action, domain)
        _say_object(sentence, statement, message, is_many=False)
        sentence.say(", its target not given", basis="unknown")
        return
    sentence.say(" sends", action, domain)
    if target is not None and target.kind == "human":
        sentence.say(" the human", span_of(part))
    elif asked:
        sentence.say(" ").say(*asked)
    sentence.say(" a message", domain)
    _say_own_number(sentence, statement)


def _say_that_text_follows(sentence: Sentence, statement: Statement, message: Message) -> None:
    """What a message says is its text, and no order of the program's own sentence."""
    payload = statement.payload
    if payload is not None and payload.kind in ("text", "raw") and message.content and isinstance(message.content, str):
        is_apart = statement.modifiers or {"time", "condition"} & statement.standing.keys()
        sentence.say(f"{',' if is_apart else ''} with the text")


def _say_capability_query(sentence: Sentence, statement: Statement, message: Message) -> None:
    action, domain = code_span(statement, 1), code_span(statement, 0)
    asked = find_addressee(statement, message)
    sentence.say(" asks ", action).say(*(asked or ("the other side", None)))
    sentence.say(" what it can do (capability query)", action, domain)
    if message.object_id is not None:
        part = statement.standing["identifier"]
        sentence.say(" about ").say(name(part.value), span_of(part))


def _say_own_act(sentence: Sentence, statement: Statement, message: Message) -> None:
    """Acts of the sender's own: heartbeat, subscription, handshake, rejection."""
    action = code_span(statement, 1)
    asked = find_addressee(statement, message)
    to = f" {asked[0]}" if asked else ""
    span = asked[1] if asked else None
    if statement.action in "78":
        verb = " to stop updates on " if statement.action == "8" else " for updates on "
        alone = " unsubscribes from updates on " if statement.action == "8" else " subscribes to updates on "
        if asked:
            sentence.say(" asks", action).say(to, span).say(verb, action)
        else:
            sentence.say(alone, action)
        _say_object(sentence, statement, message, is_many=True)
        _say_place(sentence, statement, message)
        return
    if statement.action == "A":
        if asked:
            sentence.say(" tells", action).say(to, span).say(" that it rejects ", action)
        else:
            sentence.say(" rejects ", action)
        _say_object(sentence, statement, message, is_many=False)
        _say_place(sentence, statement, message)
        return
    sentence.say(" sends" if statement.action == "0" else " offers", action).say(to, span)
    sentence.say(" a heartbeat (no operation)" if statement.action == "0" else " a handshake", action)
    has_more = bool({"identifier", "target"} & statement.standing.keys()) and not names_session(statement)
    is_party = bool(asked and span)
    if statement.domain != "0" or (has_more and ("identifier" in statement.standing or not is_party)):
        sentence.say(" about ")
        _say_object(sentence, statement, message, is_many=True)
        _say_place(sentence, statement, message)


def _say_session_end(sentence: Sentence, statement: Statement, message: Message) -> None:
    part = statement.standing["identifier"]
    asked = find_addressee(statement, message)
    sentence.say(" ends session ", code_span(statement, 0), code_span(statement, 1)).say(
        name(part.value), span_of(part)
    )
    if asked and message.target is not None and message.target.kind == "self":
        sentence.say(" for itself", asked[1])
    elif asked:
        sentence.say(" with ").say(*asked)


def _say_unknown(sentence: Sentence, statement: Statement, message: Message) -> None:
    """A statement whose codes the tables do not hold: its codes, as they are."""
    domain, action = DOMAINS.get(statement.domain), ACTIONS.get(statement.action)
    sentence.say(" sends")
    asked = find_addressee(statement, message)
    if asked:
        sentence.say(" ").say(*asked)
    sentence.say(" a code whose act is unknown, with ")
    if domain is None:
        sentence.say(f"the unknown domain {cite(statement.domain)}", code_span(statement, 0), basis="unknown")
    else:
        sentence.say(f"the domain “{domain.meaning}” ({domain.name})", code_span(statement, 0))
    sentence.say(" and ")
    if action is None:
        sentence.say(f"the unknown action {cite(statement.action)}", code_span(statement, 1), basis="unknown")
    else:
        sentence.say(f"the action “{action.meaning}” ({action.name})", code_span(statement, 1))
    part = statement.standing.get("identifier")
    if part is not None and not names_session(statement):
        sentence.say(" on ").say(name(part.value), span_of(part))
    target = statement.standing.get("target")
    if target is not None and message.target is not None and message.target.kind in ("object", "place", "human"):
        is_told = message.target.kind == "human" or message.target.name != target.value
        words = target.aim.meaning if target.aim and is_told else cite(target.value)
        sentence.say(" for ").say(words, span_of(target))


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
