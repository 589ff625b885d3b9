"""From a statement to a message of the normalised record: its act, its fields, its payload, its failure.

Specification: 0.4.0 Syntax Structure, Response Format, Error Codes; references/handshake for what is lifted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._denials import FAILED, FAILED_IN_WHOLE, UNFINISHED, find_denial
from .._record import Failure, Message, Priority, Reading, Security
from . import notes as kinds
from .frames import open_marked, repair
from .statements import Statement
from .tables import ACTIONS, ALIENS, DOMAINS, ERRORS, IDIOMS, MODIFIERS, SIGILS, STATUSES, SUBTYPES

ReadInner = Callable[[str], Reading | None]


def build_message(
    wire: str, statement: Statement, part: int, signature: str | None, read_inner: ReadInner | None
) -> Message:
    given: dict[str, Any] = {"part": part, "notes": tuple(statement.notes)}
    attributes: dict[str, Any] = {}
    if statement.text is not None:
        text = wire[slice(*statement.text)]
        given |= {"performative": "inform", "content": repair(text) if statement.is_mangled else text}
        if statement.kind == "text":
            given["native_act"] = "👽"
    else:
        _fill_act(statement, given, attributes)
        _fill_fields(statement, given, attributes)
        _fill_payload(wire, statement, given, attributes)
        _fill_nested(statement, given, read_inner)
    if signature is not None:
        attributes["signature"] = signature
    if attributes:
        given["attributes"] = attributes
    return Message(**given)


def _fill_act(statement: Statement, given: dict[str, Any], attributes: dict[str, Any]) -> None:
    if statement.kind == "response":
        status = STATUSES.get(statement.status)
        given["native_act"] = f"^{statement.status}"
        given["performative"] = status.performative if status else "unknown"
        given["status"] = status.name if status else statement.status
        return
    if statement.kind == "error":
        given["native_act"] = f"!E{statement.error}{statement.subtype}"
        given["performative"] = "not-understood" if statement.error == "1" else "failure"
        return
    domain, action = DOMAINS.get(statement.domain), ACTIONS.get(statement.action)
    given["native_act"] = action.name if action else statement.action
    attributes["domain"] = domain.name if domain else statement.domain
    given["performative"] = find_performative(statement)
    if is_idiom(statement):
        attributes["idiom"] = IDIOMS[statement.action]
    if statement.modifiers:
        given["modifiers"] = tuple(MODIFIERS[digit] for digit, _ in statement.modifiers)
        if "1" in (digit for digit, _ in statement.modifiers):
            given["priority"] = Priority(raw="1", rank=1)


def is_idiom(statement: Statement) -> bool:
    """Whether Moltbook's idiom reads this otherwise than the tables: 71 on a post, and 79."""
    if statement.kind != "statement" or statement.domain != "7":
        return False
    return statement.action == "9" or (statement.action == "1" and "identifier" in statement.standing)


def is_session_end(statement: Statement) -> bool:
    """Whether it is `08` with the id of a session."""
    return (statement.domain, statement.action) == ("0", "8") and "identifier" in statement.standing


def find_performative(statement: Statement) -> str:
    """The act in the shared vocabulary: every execution is a request, and on Moltbook the idiom decides."""
    if statement.domain not in DOMAINS or statement.action not in ACTIONS:
        return "unknown"
    if statement.domain == "6" or is_idiom(statement):
        return "request"
    return "control" if is_session_end(statement) else ACTIONS[statement.action].performative


def _fill_fields(statement: Statement, given: dict[str, Any], attributes: dict[str, Any]) -> None:
    for role, part in statement.standing.items():
        if role == "target" and part.aim:
            target = part.aim.target
            given["target"] = target
            if target.kind == "agent":
                given["receivers"] = (target.name,)
            elif target.kind == "all":
                given["broadcast"] = True
        elif role == "identifier":
            _fill_identifier(statement, part.value, given)
        elif role == "time" and part.time and not _is_failure(statement):
            given["schedule"] = part.time.moment
        elif role == "condition" and part.condition:
            given["condition"] = part.condition.moment
    kept = [part for part in statement.parts if part.role == "unknown"]
    if kept:
        attributes["unknown"] = [part.value for part in kept]
    standing = {id(part) for part in statement.standing.values()}
    sigils = [_SIGIL_OF.get(part.role) for part in statement.parts]
    repeated = [
        sigil + part.value
        for sigil, part in zip(sigils, statement.parts, strict=True)
        if sigil is not None and id(part) not in standing
    ]
    if repeated:
        order = tuple(SIGILS)
        attributes["repeated"] = sorted(repeated, key=lambda written: order.index(written[0]))


_SIGIL_OF = {role: sigil for sigil, role in SIGILS.items()}


def _fill_identifier(statement: Statement, value: str, given: dict[str, Any]) -> None:
    payload = statement.payload
    if payload and payload.kind == "encrypted":
        return
    if statement.is_answer:
        given["correlation_id"] = value
        return
    given["object_id"] = value
    if is_session_end(statement):
        given["security"] = Security(session=value)


def _is_failure(statement: Statement) -> bool:
    return statement.kind == "error" or (statement.kind == "response" and statement.status in ("8", "9"))


def deny_success(statement: Statement, content: Mapping[str, Any]) -> str:
    """What the payload of a response says against its status of success; nothing where it does not."""
    if statement.kind != "response" or statement.status not in ("0", "1"):
        return ""
    if statement.status == "1":
        return "that it failed" if find_denial(content, FAILED_IN_WHOLE) else ""
    if content.get("er") or find_denial(content, FAILED):
        return "that it failed"
    return "that it is not done" if find_denial(content, UNFINISHED, 0) else ""


def _fill_payload(wire: str, statement: Statement, given: dict[str, Any], attributes: dict[str, Any]) -> None:
    payload = statement.payload
    if payload is not None:
        attributes["payload"] = payload.kind
        if payload.is_kept:
            attributes["payload_raw"] = payload.written
        if payload.hidden is not None:
            attributes["bytes"] = payload.hidden
        if payload.content is not None:
            given["content"] = payload.content
        if payload.kind == "encrypted":
            part = statement.standing.get("identifier")
            given["security"] = Security(encrypted=True, session=part.value if part else None)
            if payload.nonce is not None:
                (first, middle), _ = payload.parts
                attributes["nonce"] = wire[first:middle]
                attributes["nonce_bytes"] = len(payload.nonce)
            if payload.size_bytes is not None:
                attributes["size_bytes"] = payload.size_bytes
        if isinstance(payload.content, dict):
            _lift(statement, payload.content, given)
    if _is_failure(statement):
        _fill_failure(statement, given, attributes)


def _fill_nested(statement: Statement, given: dict[str, Any], read_inner: ReadInner | None) -> None:
    """Messages inside a payload's text are shown, one level deep, and never placed."""
    content = given.get("content")
    if not isinstance(content, str) or not any(alien in content for alien in ALIENS):
        return
    if read_inner is None:
        head = open_marked(content, 0)
        if head is not None and head.kind not in ("text", "bare") and statement.payload:
            text = "a message inside a message inside this payload is not opened"
            given["notes"] = (*given["notes"], kinds.NESTED_LIMIT.note(text, statement.payload.span))
        return
    reading = read_inner(content)
    if reading is not None:
        inner = reading.messages
        given["nested"] = tuple(show_nested(message) for message in inner)
        deeper = any(note.code == kinds.NESTED_LIMIT.code for message in inner for note in message.notes)
        if deeper and statement.payload:
            text = "messages nested more than one level deep are not opened"
            given["notes"] = (*given["notes"], kinds.NESTED_LIMIT.note(text, statement.payload.span))


def show_nested(message: Message) -> Mapping[str, Any]:
    """A nested message as JSON types: the names that were given, without notes, whose spans are its own."""
    full = message.to_dict()
    return {name: full[name] for name in full if name in message.__dict__ and name != "notes"}


def _lift(statement: Statement, content: Mapping[str, Any], given: dict[str, Any]) -> None:
    """Copies of what a handshake's JSON says that the record has a name for."""
    capabilities = content.get("capabilities")
    if isinstance(capabilities, list) and all(isinstance(code, str) for code in capabilities):
        given["capabilities"] = tuple(capabilities)
    session = content.get("session")
    if statement.kind == "response" and isinstance(session, str) and session:
        given["security"] = Security(session=session)


def _fill_failure(statement: Statement, given: dict[str, Any], attributes: dict[str, Any]) -> None:
    held: dict[str, Any] = {}
    if statement.kind == "error":
        held["code"] = f"{statement.error}{statement.subtype}"
        if statement.error in ERRORS:
            access = SUBTYPES.get(statement.subtype) if statement.error == "2" else None
            held["cause"] = f"{access} {ERRORS['2']}" if access else ERRORS[statement.error]
    elif statement.status == "8":
        held["retryable"] = True
    details = [part.value for part in statement.parts if part.role == "detail"]
    content = given.get("content")
    if details:
        held["message"] = "|".join(details)
        attributes["details"] = details
    elif isinstance(content, str):
        held["message"] = content
    elif isinstance(content, dict):
        said = next((content[key] for key in ("er", "error", "reason") if isinstance(content.get(key), str)), None)
        code = next((content[key] for key in ("cd", "code") if isinstance(content.get(key), (str, int))), None)
        held |= {"message": said} if said is not None else {}
        if code is not None and "code" not in held:
            held["code"] = str(code)
    part = statement.standing.get("time")
    if part and part.time:
        held["retry_after"] = {"raw": part.time.moment.raw, "seconds": part.time.moment.seconds}
    if held:
        given["error"] = Failure(**held)
