"""A span or a record of a log as a draft: who did what, for how long, how it ended, and what was said within it."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from .._denials import says_failure
from .._draft import Draft
from .._english import quote, say_name
from .._json import Path, write
from .._jsonrpc import say_values
from .._record import Failure, NoteKind
from .._time import instant_of_log
from .._turns import say_call
from .messages import draft_messages, note_not_offered
from .spans import NOTHING, Found, Record, Span, read_id
from .tables import AGENT, CONVERSATION, KEPT, OPERATIONS, TALKS, TOOL_CALL
from .texts import BACK, MAX_TEXTS, NO_TEXTS, Text, Texts, gather_texts, list_offered

BACKWARDS: Final = NoteKind(
    code="otel.ends-before-start",
    severity="warning",
    group="protocol",
    about="A span ends before it starts: the clocks disagree.",
    cites="OTLP, Span",
)
ODD_ID: Final = NoteKind(
    code="otel.odd-id",
    severity="warning",
    group="protocol",
    about="An id does not have the form that it must have.",
    cites="OTLP, Span; W3C Trace Context",
)
MORE: Final = NoteKind(
    code="otel.more-texts",
    severity="warning",
    group="undecoded",
    about=f"A span holds more than {MAX_TEXTS} texts; only the last are told.",
)
TOOL_FAILED: Final = NoteKind(
    code="otel.tool-failed",
    severity="notice",
    group="protocol",
    about="The span of a tool ended in an error, or what came back says that it failed.",
    cites="OTLP, Status; GenAI, execute_tool",
)
_SAYS: Final = {"text": "says", "thought": "thinks", "call": "calls the tool", "response": "gives"}


def draft_span(span: Span) -> list[Draft]:
    """The draft of a span, and of each message that is new in it."""
    operation = span.operation
    known = OPERATIONS.get(operation or "")
    texts = gather_texts(span) if span.is_of_genai else NO_TEXTS
    before, new = texts.part()
    # What is said to a model, and by it, messages of their own tell.
    is_talk = operation in TALKS or (isinstance(span, Record) and span.is_message)
    told = NO_TEXTS if is_talk else texts
    draft = Draft(_find_act(span), operation or ("log" if span.is_record else "span"), **_read_columns(span, told))
    draft.say_sender("An agent" if span.is_of_genai else "A program", _find_sender(span).path or None)
    if isinstance(span, Record) and known is None:
        _say_logged(draft, span)
    elif known is None:
        words = f" does {say_name(operation)}, in the span " if operation else " reports the span "
        draft.say(words).say(quote(str(span.name.data)), span.name.path)
    else:
        at = span.find("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
        draft.say(f" {known.says}", at.path or span.name.path)
        named = span.find(*known.named_by)
        if named.text is not None:
            draft.say(f" the {known.thing} {say_name(named.text)}", named.path)
        elif known.thing:
            draft.say(f" a {known.thing}, which it does not name")
        called = span.find(*TOOL_CALL)
        if _is_of_tool(span) and called.text is not None:
            # The same call that the span of the model tells of.
            say_call(draft, called.text, called.path)
    _say_length(draft, span)
    _say_end(draft, span)
    _nest_texts(draft, span, told)
    _say_texts(draft, span, before, is_before=True)
    messages: list[Draft] = []
    if is_talk:
        new = Texts(*(_take_last(draft, span, held) for held in new))
        draft.opened.extend(dict.fromkeys(text.opens for text in chain(*new) if text.opens))
        messages = [*draft_messages(span, new)]
        follow = f"{len(messages)} new messages follow" if len(messages) > 1 else "one new message follows"
        draft.say(f"; {follow}" if messages else "")
    else:
        _say_texts(draft, span, new)
    _note_ids(draft, span)
    return [draft.say("."), *messages]


def _say_logged(draft: Draft, record: Record) -> None:
    """Of a record that tells of no operation: its event, its level and its body."""
    if record.name.text is not None:
        draft.say(" reports the event ").say(quote(record.name.text), record.name.path)
    else:
        draft.say(" logs")
        if record.severity.text is not None:
            draft.say(f" at the level {say_name(record.severity.text)}", record.severity.path)
    if not record.is_event and record.body.data not in (None, ""):
        draft.say(": ").carry(record.body.path)


def _find_act(span: Span) -> str:
    if span.has_failed or _find_failure(span) is not None:
        return "failure"
    if not span.is_of_genai or span.operation is None:
        return "observe"
    return "done" if span.end.text is not None or span.is_record else "progress"


def _is_of_tool(span: Span) -> bool:
    known = OPERATIONS.get(span.operation or "")
    return known is not None and known.thing == "tool"


def _find_failure(span: Span) -> Path | None:
    """Where the span of a tool says that this failed, be it its status or what came back."""
    if not _is_of_tool(span):
        return None
    if span.has_failed:
        reason = _find_reason(span)
        return reason.path or span.status.path
    back = (found for name in BACK if (found := span.find(name)).data is not None)
    return next((found.path for found in back if says_failure(found.data)), None)


def _find_sender(span: Span) -> Found:
    named = span.find(*AGENT)
    if isinstance(named.data, str) and named.data:
        return named
    service = span.resource.get("service.name", NOTHING)
    # The SDK's own word for a program that nobody named.
    is_name = isinstance(service.data, str) and service.data and not service.data.startswith("unknown_service")
    return service if is_name else NOTHING


def _read_columns(span: Span, texts: Texts) -> dict[str, Any]:
    start = span.start.text
    kept = {name: found.data for name, names in KEPT.items() if (found := span.find(*names)).text is not None}
    taken = span.microseconds
    if taken is not None and taken >= 0:
        kept["duration_ms"] = round(taken / 1000, 3)
    said = [*chain(*texts)]
    told, lists = {text.opens or text.path for text in said}, {text.of[:-1] for text in said}
    content = {
        name: found.data
        for name, found in span.attributes.items()
        if found.path in told or (isinstance(found.data, list) and found.path in lists)
    }
    return {
        "topic": span.name.text,
        "content": content,
        "attributes": kept,
        "sender": _find_sender(span).data,
        "message_id": read_id(span.id, 16),
        "trace_id": read_id(span.trace, 32),
        "parent_id": read_id(span.parent, 16),
        "conversation_id": span.find(*CONVERSATION).text,
        "correlation_id": span.find(*TOOL_CALL).text,
        "sent_at": instant_of_log(start) if start else None,
        "sent_at_raw": start,
        "error": _read_failure(span),
    }


def _read_failure(span: Span) -> Failure | None:
    if not span.has_failed:
        return None
    return Failure(code=_find_error(span, "error.type", "exception.type").text, message=_find_reason(span).text)


def _find_error(span: Span, *names: str) -> Found:
    held = [span.attributes, *(event.attributes for event in span.events)]
    return next((each[name] for each in held for name in names if name in each), NOTHING)


def _find_reason(span: Span) -> Found:
    for key in ("message", "description"):
        if isinstance(span.status.data.get(key), str) and span.status.data[key]:
            return Found(span.status.data[key], (*span.status.path, key))
    return _find_error(span, "exception.message")


def _say_length(draft: Draft, span: Span) -> None:
    taken = span.microseconds
    if taken is None:
        if span.end.text is None and not span.is_record:
            draft.say(", which has not ended")
    elif taken < 0:
        draft.note(BACKWARDS, "it ends before it starts", span.end.path)
    elif taken < 1_000_000:
        draft.say(f", for {f'{taken / 1000:.3f}'.rstrip('0').rstrip('.')} ms", span.end.path)
    else:
        seconds = f"{taken / 1_000_000:.3f}".rstrip("0").rstrip(".")
        draft.say(f", for {seconds} second{'' if seconds == '1' else 's'}", span.end.path)


def _say_end(draft: Draft, span: Span) -> None:
    if not span.has_failed:
        return
    code, reason = _find_error(span, "error.type", "exception.type"), _find_reason(span)
    draft.say(", and fails", span.status.path)
    if code.text is not None:
        draft.say(f" with {say_name(code.text)}", code.path)
    if isinstance(reason.data, str):
        draft.say(": ").carry(reason.path)


def _say_texts(draft: Draft, span: Span, texts: Texts, *, is_before: bool = False) -> None:
    """What was said within a span, or what earlier spans have said before it."""
    # A tool, a model and whatever a client asks are given what the sender says, and an agent what it hears.
    known = OPERATIONS.get(span.operation or "")
    is_asking = span.is_client if known is None else known.thing in ("tool", "model")
    for words, held, is_said in (
        ("its instructions", texts.instructions, False),
        ("what was said before" if is_before else "what it is given", texts.given, is_asking),
        ("what comes back", texts.back, not is_asking),
    ):
        for index, text in enumerate(_take_last(draft, span, held)):
            draft.say(", " if index else f"; {words}: ")
            is_own = text.kind == "call" or text.is_answer if text.role or text.kind == "call" else is_said
            is_given = held is texts.given and _is_of_tool(span)
            _say_text(draft, text, is_heard=not is_own, is_repeated=is_before, is_given=is_given)


def _take_last(draft: Draft, span: Span, held: list[Text]) -> list[Text]:
    if len(held) > MAX_TEXTS:
        draft.note(MORE, f"{len(held) - MAX_TEXTS} earlier texts are not told", span.path)
    return held[-MAX_TEXTS:]


def _nest_texts(draft: Draft, span: Span, texts: Texts) -> None:
    """What is done within it for the first time: a call and its result, or what an agent or a model says and calls."""
    offered = list_offered(span)
    if _is_of_tool(span):
        named = span.find(*KEPT["tool"])
        given = [text.path for text in texts.given if text.path is not None] or [named.path or span.name.path]
        draft.nest("request", given[0], tool=named.text)
        failed = _find_failure(span)
        if failed is not None:
            draft.note(TOOL_FAILED, "the tool failed", failed)
        back = [*(text.path for text in texts.back[:MAX_TEXTS]), failed]
        for path in dict.fromkeys(path for path in back if path is not None):
            draft.nest("done" if failed is None else "failure", path)
        return
    for text in texts.back[-MAX_TEXTS:]:
        if text.kind == "call":
            draft.nest("request", text.path, tool=text.name)
            note_not_offered(draft, text, offered, text.path or span.path)
        elif text.kind == "text" and text.path is not None and text.role in (None, "assistant"):
            draft.nest("inform", text.path)


def _say_text(draft: Draft, text: Text, *, is_heard: bool, is_repeated: bool, is_given: bool) -> None:
    """What is said. What is repeated is quoted; of what a tool is given each value is read, too."""
    if text.opens is not None and text.opens not in draft.opened:
        draft.open(text.opens)
    who = f"{say_name(text.role)} " if text.role else ""
    if text.kind == "other":
        draft.say(f"{who}{'sends ' if who else ''}a part of the kind {say_name(str(text.name))}", text.path)
        return
    says = _SAYS[text.kind] if who or text.kind != "text" else ""
    named = f" {say_name(text.name)}" if text.name else ""
    draft.say(f"{who}{says}{named}")
    if text.path is not None:
        draft.say(" with " if text.kind == "call" else " " if says else "")
        if is_repeated:
            draft.quote(text.data if isinstance(text.data, str) else write(text.data), text.path)
        else:
            draft.carry(text.path, is_heard=is_heard)
            if is_given:
                say_values(draft, text.data, text.path, is_heard=is_heard)
    elif text.kind == "response":
        draft.say(" nothing")


def _note_ids(draft: Draft, span: Span) -> None:
    for found, size, what in (
        (span.trace, 32, "the trace"),
        (span.id, 16, "the span"),
        (span.parent, 16, "the span around it"),
    ):
        own = read_id(found, size)
        # Zeros are how some say that there is no parent, and of a record no span.
        is_absent = found.text is None or (own is None and (found is span.parent or span.is_record))
        if not is_absent and (own is None or len(own) != size or not set(own) <= set("0123456789abcdef")):
            draft.note(ODD_ID, f"the id of {what} is not {size} hexadecimal digits that are not all zero", found.path)
