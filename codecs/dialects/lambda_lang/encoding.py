"""Encoding: a record written as Λ Lambda, or in the JSON form that it came in, with what the wire cannot hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import EncodeError
from .._record import Encoded, Loss, Message
from .json_forms import TYPES_BY_NAME, compose
from .json_layers import LIFTED
from .protocol import ACKS
from .reading import MODIFIERS
from .reading import read as read_wire
from .statements import UnclosedError, scan_body, starts_statement

_TYPE_NAMES = {symbol: name for name, symbol in reversed(TYPES_BY_NAME.items())}


def find_json(messages: Sequence[Message]) -> Mapping[str, Any] | None:
    """What the JSON around a record held beside its Lambda text, if it came in JSON."""
    held = messages[0].attributes.get("json")
    return held if isinstance(held, Mapping) and held.get("type") else None


def leave_to_json(message: Message, held: Mapping[str, Any]) -> Message:
    """The message without what the JSON says already, so that its Lambda text need not say it too."""
    given: dict[str, Any] = {}
    for key, value in held.items():
        name = LIFTED.get(key, ("", ""))[0]
        if not name:
            continue
        if name == "receivers":
            value = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if getattr(message, name) == value:
            given[name] = () if name == "receivers" else None
    attributes = {name: value for name, value in message.attributes.items() if name != "json"}
    return message.replace(attributes=attributes, **given)


def write_json(text: str, held: Mapping[str, Any]) -> str:
    """The JSON form with this Lambda text: what it held, in its order, the text in its place.

    Raises:
        EncodeError: for a text that cannot be cut into tokens.
    """
    written: dict[str, Any] = {}
    if "tokens" in held:
        written.update(held)
        if not _says(held, text):
            symbol = next((symbol for symbol in _TYPE_NAMES if text.startswith(symbol)), "")
            start = len(symbol)
            try:
                tokens = [token.text for token in scan_body(text, start, len(text)) if token.kind != "space"]
            except UnclosedError as fault:
                reason = f"the {fault.opener!r} at character {fault.offset + 1} of the text never closes"
                raise EncodeError("lambda_lang", reason) from fault
            written |= {"type": _TYPE_NAMES.get(symbol, held["type"]), "tokens": tokens}
    else:
        after = "version" if "version" in held else "type"
        for key, value in held.items():
            written[key] = value
            if key == after:
                written["lambda"] = text
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def _says(held: Mapping[str, Any], text: str) -> bool:
    """Whether the type and the tokens that the JSON held are this text."""
    tokens, kind = held["tokens"], held["type"]
    if not isinstance(tokens, (list, tuple)) or not tokens or not all(isinstance(token, str) for token in tokens):
        return False
    symbol = kind if kind in _TYPE_NAMES else TYPES_BY_NAME.get(str(kind).lower(), "")
    return compose(symbol, list(tokens)) == text


_SYMBOLS = {name: symbol for symbol, name in MODIFIERS.items()}
_TYPED = {"inform": "!", "query": "?", "request": ".", "propose": ">", "observe": "!", "done": "!", "progress": "!"}
_STATUS_ACKS = {"agreed": "<+", "disagreed": "<-", "unclear": "<?", "urgent": "<!"}
_ERROR_ACTS = frozenset({"failure", "not-understood"})
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{0,63}\Z")
_TELLING = frozenset({"part", "english", "also", "gloss", "notes", "parent", "reference_line"})


def encode(messages: Sequence[Message]) -> Encoded:
    """Write a record. What was read from this dialect comes back; other records are written where the act exists.

    Raises:
        EncodeError: for a message without an act, or with one that the dialect cannot say.
    """
    if not messages:
        raise EncodeError("lambda_lang", "there is no message to write")
    held = find_json(messages)
    if held is None:
        wire = _write_record(messages)
    else:
        wire = write_json(_write_record([leave_to_json(message, held) for message in messages]), held)
    return Encoded(wire=wire, losses=_find_losses(messages, wire))


def _write_record(messages: Sequence[Message]) -> str:
    written: list[str] = []
    held: tuple[object, ...] = (None, (), False, ())
    for message in messages:
        address = (message.sender, message.receivers, message.broadcast, message.path)
        label, to = _write_address(message) if address != held else ("", "")
        written.append(f"{label}{_write_message(message, to)}".strip())
        held = address
    return _join([part for part in written if part])


def _join(statements: list[str]) -> str:
    """One line where a space tells statements apart, else a line break."""
    wire = "".join(statements[:1])
    for statement in statements[1:]:
        wire += f"{' ' if starts_statement(statement, 0, is_new_line=False) else chr(10)}{statement}"
    return wire


def _write_address(message: Message) -> tuple[str, str]:
    """(the speaker's label, which opens the line; the address or relay, which follows the header)."""
    if message.path:
        return "", f"{'>'.join(message.path)}: "
    names = (*message.receivers, *((message.sender,) if message.sender else ()))
    if not all(_NAME.match(name) for name in names):
        return "", ""
    if message.sender and len(message.receivers) == 1:
        return f"{message.sender} -> {message.receivers[0]}: ", ""
    label = f"{message.sender}: " if message.sender else ""
    if message.broadcast:
        return label, "@A*: "
    return label, f"@{','.join(message.receivers)}: " if message.receivers else ""


def _write_message(message: Message, to: str) -> str:
    attributes = message.attributes
    broken = attributes.get("broken_headers")
    parts: list[str] = [str(header) for header in broken] if isinstance(broken, list) else []
    version = attributes.get("version")
    context = attributes.get("context")
    in_block = any("v:" in block or "ver:" in block or "id:" in block or "ctx:" in block for block in context or ())
    act = message.native_act if message.native_act in ("#h", "#h<") else ""
    if version and (act or not in_block):
        identity = f"#id:{message.message_id}" if message.message_id and not in_block else ""
        parts.append(f"@v{version}{act}{identity}")
    elif message.message_id and not in_block:
        parts.append(f"{{id:{message.message_id}}}")
    chunk = attributes.get("chunk")
    if isinstance(chunk, dict):
        parts.append(f"@msg:{chunk['of']}#{chunk['number']}/{chunk['count']}")
    signatures = (claim.removeprefix("signature ") for claim in message.security.claims if "signature " in claim)
    parts.extend(f"@sig:{signature}" for signature in signatures)
    written_in = "".join(context or ())
    named = (reference.ref for reference in message.references if reference.ref)
    parts.extend(f"@vocab:{reference}" for reference in named if reference not in written_in)
    switches = ""
    for definition in message.defines:
        if definition.kind == "domain":
            switches += f"@{definition.value} "
        elif definition.kind == "def" and not context:
            parts.append(f'{{def:{definition.name}="{definition.value}"}}')
    before = " ".join(parts)
    lead = f"{switches}{attributes['trust']}:" if "trust" in attributes else switches
    lead += "".join(context) if context else ""
    lead += f"{attributes['domain']}:" if "domain" in attributes else ""
    statement = f"{to}{lead}{_write_statement(message)}{_write_checksum(message)}"
    return f"{before} {statement}" if before and statement else before or statement


def _write_checksum(message: Message) -> str:
    checksum = message.attributes.get("checksum")
    return f"[n{checksum}]" if checksum is not None else ""


def _write_statement(message: Message) -> str:
    act, content = message.native_act, message.content
    text = content if isinstance(content, str) else None
    if act in ("#h", "#h<"):
        return text or ""
    if act == "context":
        return ""
    if act in ("data", "table", "list"):
        return text or ""
    if act == "enc":
        return f"[{text or ''}]"
    if act in (">>", "<<", "><", "--"):
        return act
    if act == "<->" and text:
        return f"<->{text}"
    if act in ACKS:
        part = message.correlation_id if message.correlation_id and message.correlation_id.startswith("#") else ""
        return f"{act}{part}{text or ''}"
    if act == "er":
        return f"!{text}"
    if act in ("?", "!", ".", "~", "#", ">"):
        modified = message.modifiers[0] if message.modifiers else act
        return f"{_SYMBOLS.get(modified, modified)}{text or ''}"
    if act == "untyped":
        return text or ""
    return _write_foreign(message, text)


def _write_foreign(message: Message, text: str | None) -> str:
    """A message of another dialect, where the act exists here."""
    performative = message.performative
    if performative is None:
        raise EncodeError("lambda_lang", "a message that could not be read has no act to write", message.part)
    if performative in ("acknowledge", "accept", "reject"):
        by_act = {"accept": "<+", "reject": "<-"}.get(performative)
        return by_act or _STATUS_ACKS.get(message.status or "", "<")
    if performative in _ERROR_ACTS:
        return "!er:pa" if performative == "not-understood" else f"!er {_quote(text or message.topic)}".rstrip()
    symbol = _TYPED.get(performative)
    if symbol is None:
        raise EncodeError("lambda_lang", f"there is no form for the act {performative!r}", message.part)
    said = text if text is not None else message.topic
    if said is None:
        raise EncodeError("lambda_lang", "there is no text to say: the content is not text", message.part)
    return f"{symbol}{_quote(said)}"


def _quote(text: str | None) -> str:
    if not text:
        return ""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _find_losses(messages: Sequence[Message], wire: str) -> tuple[Loss, ...]:
    """What is not in the wire: found by reading it back, so that nothing is claimed that does not hold."""
    again = read_wire(wire).messages
    losses = []
    empty = Message()
    for index, message in enumerate(messages):
        other = again[index] if index < len(again) else empty
        for name in message.given():
            value = getattr(message, name)
            if name in _TELLING or value == getattr(empty, name) or value == getattr(other, name):
                continue
            reason = "a statement has no place for it"
            if name == "content" and isinstance(value, str) and other.content == _quote(value):
                continue
            if name == "attributes":
                if isinstance(value, dict) and value.items() <= dict(other.attributes).items():
                    continue
                reason = "a statement has no place for some of it"
            losses.append(Loss(name=name, part=message.part, reason=reason))
    return tuple(losses)
