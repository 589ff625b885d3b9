"""Writing FIPA-ACL and KQML: messages of the record as lists of an act and its parameters, and what is lost.

The act is written in small letters, the parameters in the order of the table. FIPA writes agents as identifiers and the
content in quotes; KQML writes agents as names, and content that is one expression as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._errors import EncodeError
from .._record import Encoded, Loss, Message
from .._value import to_json_type
from .expressions import read_expression
from .parsing import Prose, find_slot, message_of, parse_record
from .tables import ACTS, FIPA, KQML, SLOTS, Slot

# The act for a performative of another dialect. What FIPA has no act for is said with another one, which is a loss.
_USUAL = {
    "request": "request", "query": "query-ref", "inform": "inform", "observe": "inform", "propose": "propose",
    "accept": "agree", "reject": "refuse", "commit": "agree", "acknowledge": "inform", "delegate": "propagate",
    "progress": "inform", "done": "inform", "evaluate": "inform", "failure": "failure",
    "not-understood": "not-understood", "cancel": "cancel", "advertise": "advertise", "handshake": "register",
    "subscribe": "subscribe", "unsubscribe": "cancel",
}  # fmt: skip
_ADDED = {"part", "performative", "native_act", "english", "also", "gloss", "notes", "parent", "reference_line"}
_HELD = {slot.place for slot in SLOTS.values() if not slot.is_attribute} | {"attributes"} | _ADDED
_OF_AGENTS = ("addresses", "identifiers")

_WORD = re.compile(r'(?:[^\x00-\x20()"#0-9\-@:][^\x00-\x20()"]*|[+-]?[0-9]+(?:\.[0-9]+)?)\Z')


def encode(messages: Sequence[Message]) -> Encoded:
    """The messages as one text.

    Raises:
        EncodeError: where a message has an act that neither vocabulary has, or there is no message.
    """
    # What a content says in turn is written with the message that carries it.
    messages = [message for message in messages if message.carrier_part is None] or messages
    if all(_is_prose(message) for message in messages):
        raise EncodeError("fipa", "there is no act to write; text alone is no FIPA-ACL")
    losses: list[Loss] = []
    wires = [str(m.content) if _is_prose(m) else _write_call(m, losses) for m in messages]
    wire = " ".join(wires)
    if any(map(_is_prose, messages)):
        parts = parse_record(wire).parts
        held = [wire[part.start : part.end] if isinstance(part, Prose) else None for part in parts]
        if held != [message.content if _is_prose(message) else None for message in messages]:
            raise EncodeError("fipa", "the text around the messages would not be read back as the same parts")
    for message in messages:
        held_names = {"content"} | _ADDED if _is_prose(message) else _HELD
        lost = [name for name in message.given() if name not in held_names]
        losses += [Loss(name=name, part=message.part, reason="a message has no parameter for it") for name in lost]
    return Encoded(wire=wire, losses=tuple(losses))


def _is_prose(message: Message) -> bool:
    return message.native_act is None and message.performative == "inform" and isinstance(message.content, str)


def _write_call(message: Message, losses: list[Loss]) -> str:
    def lose(name: str, reason: str) -> None:
        losses.append(Loss(name=name, part=message.part, reason=reason))

    act = _find_act(message)
    vocabulary = ACTS[act].vocabulary if act in ACTS else FIPA
    written = [act, *_write_parameters(message, vocabulary, lose)]
    wire = f"({' '.join(written)})"
    calls = parse_record(wire).calls
    again = (
        message_of(calls[0], 1) if len(calls) == 1 and calls[0].fault is None and calls[0].end == len(wire) else None
    )
    if again is None:
        raise EncodeError("fipa", "the act and its parameters would not be read back as one message", message.part)
    if again.performative != message.performative:
        lose("performative", f"there is no act for {message.performative}: {act} was written")
    if message.native_act is not None and again.native_act != message.native_act:
        lose("native_act", f"{message.native_act!r} is an act of another dialect: {act} was written")
    return wire


def _find_act(message: Message) -> str:
    native, performative = message.native_act or "", message.performative or ""
    if native in ACTS and performative in (ACTS[native].performative, "done" if native == "inform" else None):
        return native
    if performative in _USUAL:
        return _USUAL[performative]
    if performative == "unknown" and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", native):
        return native
    raise EncodeError("fipa", f"there is no act for {performative or 'an unread message'}", message.part)


def _write_parameters(message: Message, vocabulary: str, lose: Any) -> Iterator[str]:
    attributes = dict(message.attributes)
    kept = attributes.pop("unread", None)
    unread: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
    details = {name: attributes.pop(name, None) for name in _OF_AGENTS}
    others = attributes.pop("parameters", None)
    for slot in SLOTS.values():
        value = attributes.pop(slot.place, None) if slot.is_attribute else getattr(message, slot.place)
        text = _write_value(slot, value, vocabulary, details, lose) if value not in (None, (), []) else None
        if text is None and isinstance(raw := unread.get(slot.key), str) and read_expression(raw, vocabulary):
            text = raw
        if text is not None:
            yield f":{slot.key} {text}"
    for name, value in others.items() if isinstance(others, Mapping) else ():
        if re.fullmatch(r'[^\x00-\x20()"]*', name) and find_slot(name, vocabulary) is None:
            yield f":{name} {_write_word(str(value), vocabulary)}"
        else:
            lose("attributes", f"{name!r} can be the name of no other parameter")
    if attributes:
        lose("attributes", f"a message has no parameter for {', '.join(sorted(attributes))}")


def _write_value(slot: Slot, value: Any, vocabulary: str, details: Mapping[str, Any], lose: Any) -> str | None:
    if slot.shape == "time":
        return _write_time(value, vocabulary, lose)
    if slot.shape == "agent":
        return _write_agent(str(value), vocabulary, details)
    if slot.shape == "agents":
        written = [_write_agent(str(name), vocabulary, details) for name in value]
        return written[0] if len(written) == 1 and vocabulary == KQML else f"(set {' '.join(written)})"
    if not isinstance(value, str):
        lose("attributes" if slot.is_attribute else slot.place, "what is no text is written as the text of its JSON")
        value = json.dumps(to_json_type(value), ensure_ascii=False)
    if slot.key != "content":
        return _write_text(value, vocabulary) if slot.shape == "text" else _write_word(value, vocabulary)
    found = read_expression(value, vocabulary) if vocabulary == KQML else None
    return value if found and (found.kind == "list" or _WORD.match(value)) else _write_text(value, vocabulary)


def _write_time(moment: Any, vocabulary: str, lose: Any) -> str | None:
    if moment.kind in ("exact", "relative", "local", "unread") and moment.raw:
        again = message_of(parse_record(f"(inform :reply-by {_write_word(moment.raw, FIPA)})").calls[0], 1).deadline
        if again == moment:
            word = read_expression(moment.raw, vocabulary)
            return str(moment.raw) if word and word.kind == "word" else _write_text(moment.raw, vocabulary)
    if moment.instant and (
        found := re.match(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?Z\Z", moment.instant)
    ):
        lose("deadline", "the time is written in the form of FIPA")
        return f"{''.join(found.groups()[:3])}T{''.join(found.groups()[3:6])}{(found[7] or '').ljust(3, '0')[:3]}Z"
    lose("deadline", f"{moment.raw!r} is no time that FIPA can write")
    return None


def _write_agent(name: str, vocabulary: str, details: Mapping[str, Any]) -> str:
    own = {kind: held.get(name) for kind, held in details.items() if isinstance(held, Mapping)}
    written = _write_word(name, vocabulary)
    addresses = " ".join(_write_word(str(each), vocabulary) for each in own.get("addresses") or ())
    rest = [each for each in own.get("identifiers") or () if read_expression(f"({each})", vocabulary)]
    if vocabulary == KQML and not addresses and not rest:
        return written
    pieces = [f":name {written}", *([f":addresses (sequence {addresses})"] if addresses else []), *rest]
    return f"(agent-identifier {' '.join(pieces)})"


def _write_word(text: str, vocabulary: str) -> str:
    return text if _WORD.match(text) else _write_text(text, vocabulary)


def _write_text(text: str, vocabulary: str) -> str:
    """The text in quotes; in FIPA one that ends with a backslash, which would escape the quote, in counted bytes."""
    if vocabulary == KQML:
        text = text.replace("\\", "\\\\")
    elif text.endswith("\\"):
        return f'#{len(text.encode("utf-8", "surrogatepass"))}"{text}'
    return '"' + text.replace('"', '\\"') + '"'
