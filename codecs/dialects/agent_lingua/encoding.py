"""Writing a record as agent-lingua: its own records back to the character, others where the act exists.

Specification: 0.4.0 Syntax Structure. Fields are written in the order of the grammar, statements joined by `;;`,
human text above them, the signature last. What the wire cannot hold is listed as lost; sender, time and ids come
from the envelope for this dialect's own records, and are lost by any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import EncodeError
from .._json import write
from .._record import Encoded, Loss, Message
from .frames import open_answer, open_broken, open_marked
from .packing import encode_base64, pack
from .payloads import Layers, read_payload
from .tables import (
    ACTION_CODES,
    ALIEN,
    ALIENS,
    DEFAULT_SIGNATURE,
    DOMAIN_CODES,
    GENERAL_TARGETS,
    MODIFIER_CODES,
    STATUSES,
)

SLUG = "agent_lingua"
# What only the telling adds, or what is read from the others.
_TELLING = {"part", "english", "also", "gloss", "notes", "reference_line", "parent"}
# Names that this dialect always takes from the envelope.
_ENVELOPE = {"sender", "conversation_id", "trace_id", "parent_id", "message_id", "sent_at", "sent_at_raw", "receivers"}
_OWN = {
    "performative", "native_act", "modifiers", "content", "attributes", "broadcast", "target", "object_id",
    "correlation_id", "schedule", "condition", "status", "priority", "capabilities", "error", "security", "nested",
}  # fmt: skip
# For a record of another dialect: its act, and the statement that means the same.
_ACTS = {
    "request": "13",
    "query": "16",
    "subscribe": "17",
    "unsubscribe": "18",
    "handshake": "09",
    "reject": "^A",
    "done": "^0",
    "progress": "^1",
    "failure": "^9",
    "not-understood": "!E1",
}
_WAITING = {"waiting": "^2", "queued": "^3"}


def encode_messages(messages: Sequence[Message]) -> Encoded:
    """Write the messages of one record.

    Raises:
        EncodeError: if there are none, or one has an act or a text that the dialect cannot write.
    """
    if not messages:
        raise EncodeError(SLUG, "a record without messages has no wire")
    if len(messages) == 1 and messages[0].performative is None and isinstance(messages[0].content, str):
        return Encoded(wire=messages[0].content)
    losses: list[Loss] = []
    pieces = [_write(message, losses) for message in messages]
    signature, last = _signature(messages)
    wire, before = "", ""
    for place, (kind, piece) in enumerate(pieces):
        if before == kind == "prose":
            reason = "two texts in a row run together"
            losses.append(Loss(name="content", part=messages[place].part, reason=reason))
        # An answer below other parts is known as one by the signature, or else by a marker of its own.
        is_hidden = place > 0 and signature is None and is_answer(messages[place])
        wire += _joint(before, kind) + (ALIEN if is_hidden else "") + piece
        before = kind
        if place == last:
            wire += f"\n--{ALIEN}lingua/{signature}"
            before = "signature"
    return Encoded(wire=wire, losses=tuple(losses))


def _joint(before: str, kind: str) -> str:
    if not before:
        return ""
    if before == kind == "statement":
        return ";;"
    return "\n\n" if "prose" in (before, kind) else "\n"


def _signature(messages: Sequence[Message]) -> tuple[str | None, int | None]:
    """The signature, and the place of the message it follows: a record of another dialect gets the usual one."""
    signed = [place for place, message in enumerate(messages) if "signature" in message.attributes]
    if signed:
        return str(messages[signed[-1]].attributes["signature"]), signed[-1]
    if all(is_own(message) for message in messages):
        return None, None
    return DEFAULT_SIGNATURE, len(messages) - 1


def is_own(message: Message) -> bool:
    """Whether the message was read from this dialect, or is written as if it were."""
    act = message.native_act
    if act is None or act == ALIEN:
        return message.performative == "inform" and isinstance(message.content, str)
    return "domain" in message.attributes or is_answer(message)


def is_answer(message: Message) -> bool:
    """Whether the message is a response or an error of this dialect; an unknown action may look like one."""
    act = message.native_act
    return act is not None and act.startswith(("^", "!E")) and "domain" not in message.attributes


def _write(message: Message, losses: list[Loss]) -> tuple[str, str]:
    if is_own(message):
        held = _OWN | _ENVELOPE
        written = _write_own(message)
    else:
        held, written = _write_other(message, losses)
    lost = (name for name in message.given() if name not in held and name not in _TELLING)
    losses.extend(Loss(name=name, part=message.part, reason="the wire has no place for it") for name in lost)
    return written


def _write_text(text: str, part: int, *, is_marked: bool) -> tuple[str, str]:
    stripped = text.strip()
    if is_marked and not stripped:
        raise EncodeError(SLUG, "an empty text after 👽 would be no message", part)
    lines = text.split("\n") if not is_marked else text.split("\n")[1:]
    is_wire = any(line.startswith((*ALIENS, "--👽")) for line in lines)
    if is_wire or (not is_marked and (open_answer(text, 0) or open_marked(text, 0) or open_broken(text, 0))):
        raise EncodeError(SLUG, "the text would be read as a statement", part)
    return ("text", f"{ALIEN} {text}") if is_marked else ("prose", text)


def _write_own(message: Message) -> tuple[str, str]:
    act, attributes = message.native_act, message.attributes
    if act is None or act == ALIEN:
        return _write_text(str(message.content), message.part, is_marked=act is not None)
    if is_answer(message):
        head = act
    else:
        domain = str(attributes["domain"])
        digits = "".join(MODIFIER_CODES.get(name, "") for name in message.modifiers)
        head = f"{ALIEN}{DOMAIN_CODES.get(domain, domain)}{ACTION_CODES.get(act, act)}{digits}"
    unknown = [str(value) for value in attributes.get("unknown", ())]
    head += "".join(remnant for remnant in unknown if remnant.startswith(";;"))
    fields = [head, *(str(detail) for detail in attributes.get("details", ()))]
    repeated = [str(value) for value in attributes.get("repeated", ())]
    retry = message.error.retry_after if message.error is not None else None
    time = message.schedule.raw if message.schedule else retry["raw"] if retry else None
    for sigil, value in (
        ("@", message.target.raw if message.target else None),
        ("#", _identifier(message)),
        ("~", time),
        ("%", message.condition.raw if message.condition else None),
    ):
        fields.extend(again for again in repeated if again.startswith(sigil))
        if value is not None:
            fields.append(sigil + value)
    fields.extend(value for value in unknown if not value.startswith(";;"))
    fields.extend(again for again in repeated if again.startswith("$"))
    payload = _write_payload(message)
    if payload is not None:
        fields.append(f"${payload}")
    return "statement", "|".join(fields)


def _identifier(message: Message) -> str | None:
    if message.security.encrypted:
        return message.security.session
    return message.correlation_id if is_answer(message) else message.object_id


def _write_payload(message: Message) -> str | None:
    """The payload as it was written where it still says the same, else the content anew."""
    kind, raw = message.attributes.get("payload"), message.attributes.get("payload_raw")
    if kind is None:
        return None
    if isinstance(raw, str):
        if kind == "encrypted":
            return raw
        if read_payload(raw, 0, Layers()).content == message.content:
            return raw
    if kind == "encrypted":
        raise EncodeError(SLUG, "a sealed payload is written as it was sealed, and that is missing", message.part)
    return _spell(str(kind), message.content, message.part)


def _spell(kind: str, content: Any, part: int) -> str:
    try:
        if kind == "json" or not isinstance(content, str):
            return "j:" + encode_base64(write(content).encode())
        if kind == "raw":
            return f"r:{content}"
        return "z:" + encode_base64(pack(content)) if kind == "zlib" else encode_base64(content.encode())
    except (UnicodeEncodeError, ValueError, RecursionError) as exc:
        raise EncodeError(SLUG, "the content has characters or numbers that no payload can carry", part) from exc


def _write_other(message: Message, losses: list[Loss]) -> tuple[set[str], tuple[str, str]]:
    """Write a message of another dialect: what is held, and the statement."""
    act = message.performative
    content = message.content if message.content is not None else message.topic
    held = {"performative", "content"} | ({"topic"} if message.content is None else set())
    if act == "inform":
        return held, _write_inform(message, content, losses)
    head = _ACTS.get(act or "")
    if act == "acknowledge":
        head = _WAITING.get(message.status or "")
        held.add("status")
    if head is None:
        raise EncodeError(SLUG, f"there is no statement for the act {act or 'none'}", message.part)
    answers = head.startswith(("^", "!E"))
    fields = [head if answers else ALIEN + head]
    if message.priority is not None and message.priority.rank == 1 and not answers:
        fields[0] += MODIFIER_CODES["urgent"]
    target = _address(message, held)
    if target is not None:
        fields.append(f"@{target}")
    name = "correlation_id" if answers else "object_id"
    identifier = getattr(message, name)
    if identifier is not None and not set(identifier) & set("|;\r\n") and identifier.strip() == identifier:
        held.add(name)
        fields.append(f"#{identifier}")
    if content is None and message.error is not None and message.error.message:
        content = message.error.message
    if content is not None:
        kind = "text" if isinstance(content, str) else "json"
        fields.append(f"${_spell(kind, content, message.part)}")
    if message.status is not None and answers:
        held |= {"status"} if STATUSES.get(head[1:]) and STATUSES[head[1:]].name == message.status else set()
    return held, ("statement", "|".join(fields))


def _write_inform(message: Message, content: Any, losses: list[Loss]) -> tuple[str, str]:
    if content is None:
        raise EncodeError(SLUG, "there is no statement that informs, and no text to write behind a 👽", message.part)
    text = content if isinstance(content, str) else write(content)
    if text != content or text.strip() != text:
        losses.append(Loss(name="content", part=message.part, reason="it becomes human text"))
    return _write_text(text.strip(), message.part, is_marked=True)


def _address(message: Message, held: set[str]) -> str | None:
    """The one target that a statement has room for: everyone, or an agent whose name is not a code."""
    if message.broadcast:
        held.add("broadcast")
        return "A"
    if len(message.receivers) != 1:
        return None
    (name,) = message.receivers
    if not name or name in GENERAL_TARGETS or name.isdecimal() or set(name) & set("|;\r\n") or name.strip() != name:
        return None
    held.add("receivers")
    return name
