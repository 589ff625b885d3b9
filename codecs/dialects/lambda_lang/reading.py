"""Reading: a text becomes messages, without any context and without English."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .._record import (
    Envelope,
    Failure,
    Identity,
    Layer,
    Message,
    Note,
    Reading,
)
from .blocks import parse_block, plain_value
from .contexts import Setting, is_data, read_settings
from .fields import build_tree
from .json_forms import JsonForm, NotJsonError, find_form, may_be_form
from .json_layers import read_broken, wrap_reading
from .lifting import apply_settings, find_answered, lift_keys, note_repeated, read_table, split_offer
from .notes import (
    CHECKSUM,
    EMPTY,
    EMPTY_BODY,
    NEWER,
    NO_TYPE,
    NOTHING_KNOWN,
    SEALED,
    STRAY_BRACKET,
    TOO_LONG,
    UNCLOSED,
    UNKNOWN_ERROR,
)
from .protocol import ACKS, COUNTER, ERRORS, FLOOR, TYPES
from .statements import Part, UnclosedError, cut_record, find_close
from .vocabulary import NEWEST, is_newer, load_vocabulary

# v0.9 allows a record of ten kilobytes.
MAX_CHARACTERS = 10_240
MODIFIERS = {"??": "rhetorical", "?!": "questioning", "!!": "emphatic", "!!!": "certain", "~~~": "very uncertain"}
_ERROR_BODY = re.compile(r"er:([a-z]{2})(?:/([^\s#/]+))?")
_SOMETHING = re.compile(r'[A-Za-z0-9"]')


class Parsed(NamedTuple):
    """What telling wants again: the statements, what each sets, the text they stand in, and the JSON around it."""

    text: str
    parts: tuple[Part, ...]
    settings: tuple[tuple[Setting, ...], ...]
    malformed: Note | None = None
    form: JsonForm | None = None


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """Read a record, also one inside JSON. Never raises; time grows linearly with the text."""
    if may_be_form(wire):
        try:
            form = find_form(wire)
        except NotJsonError as fault:
            return read_broken(wire, fault, parsed=Parsed(wire, (), ()))
        if form is not None:
            return wrap_reading(wire, form, _read_text(form.text))
    return _read_text(wire)


def _read_text(wire: str) -> Reading:
    layers = (Layer.trust({"id": 0, "kind": "wire", "text": wire}),)
    try:
        parts, strays = cut_record(wire)
    except UnclosedError as fault:
        opener = fault.opener
        text = f"the {opener!r} at character {fault.offset + 1} never closes: the record is cut off or broken"
        return _read_malformed(wire, layers, UNCLOSED.note(text, (0, fault.offset, fault.offset + len(opener))))
    if not parts:
        return _read_malformed(wire, layers, EMPTY.note("there is no statement here", (0, 0, len(wire))))
    if len(parts) == 1 and parts[0].form == "untyped" and not parts[0].items and not _SOMETHING.search(wire):
        text = "no character here belongs to the dialect's words, and no type opens it"
        return _read_malformed(wire, layers, NOTHING_KNOWN.note(text, (0, 0, len(wire))))
    settings = tuple([tuple(read_settings(wire, part)) if part.items else () for part in parts])
    version = _find_version(settings)
    return Reading.trust(
        {
            "dialect": "lambda_lang",
            "layers": layers,
            "tree": lambda: build_tree(wire, parts, load_vocabulary(version or NEWEST)),
            "version": version,
            "vocabulary": load_vocabulary(version).release if version else NEWEST,
            "messages": _read_messages(wire, parts, settings),
            "notes": _read_notes(wire, strays, version),
            "parsed": Parsed(wire, tuple(parts), settings),
        }
    )


def _find_version(settings: tuple[tuple[Setting, ...], ...]) -> str | None:
    for own in settings:
        for setting in own:
            if setting.kind == "version" and isinstance(setting.value, str):
                return setting.value
    return None


def _read_malformed(wire: str, layers: tuple[Layer, ...], note: Note) -> Reading:
    return Reading(
        dialect="lambda_lang",
        layers=layers,
        tree=lambda: build_tree(wire, [], load_vocabulary(NEWEST)),
        messages=(Message(performative=None, content=wire, notes=(note,)),),
        parsed=Parsed(wire, (), (), note),
    )


def _read_notes(wire: str, strays: list[int], version: str | None) -> tuple[Note, ...]:
    if not strays and version is None and len(wire) <= MAX_CHARACTERS:
        return ()
    notes = [STRAY_BRACKET.note(f"{wire[at]!r} closes nothing", (0, at, at + 1)) for at in strays[:20]]
    if len(wire) > MAX_CHARACTERS:
        notes.append(TOO_LONG.note(f"{len(wire)} characters: the specification allows {MAX_CHARACTERS} bytes", None))
    if version and is_newer(version):
        at = wire.find(version)
        text = f"v{version} is not known here: read with the vocabulary of v{NEWEST}"
        notes.append(NEWER.note(text, (0, at, at + len(version)) if at >= 0 else None))
    return tuple(notes)


class _Addressed(NamedTuple):
    """Who speaks to whom, for this statement and those after it in the record."""

    sender: str | None = None
    receivers: tuple[str, ...] = ()
    broadcast: bool = False
    path: tuple[str, ...] = ()


_NOBODY = _Addressed()


def _read_messages(wire: str, parts: list[Part], settings: tuple[tuple[Setting, ...], ...]) -> tuple[Message, ...]:
    messages = []
    addressed = _NOBODY
    for index, part in enumerate(parts):
        if part.items:
            addressed = _read_addressed(part, addressed)
        messages.append(_read_message(wire, part, settings[index], addressed, index + 1))
    return tuple(messages)


def _read_addressed(part: Part, held: _Addressed) -> _Addressed:
    for item in part.items:
        if item.kind == "speaker":
            sender, to = item.data
            held = held._replace(sender=sender, receivers=(to,) if to and to != "*" else (), broadcast=to == "*")
        elif item.kind == "address":
            everyone = any(name.endswith("*") for name in item.data)
            held = held._replace(receivers=() if everyone else item.data, broadcast=everyone, path=())
        elif item.kind == "relay":
            held = _Addressed(item.data[0], (item.data[-1],), False, item.data)
    return held


def _read_message(wire: str, part: Part, settings: tuple[Setting, ...], addressed: _Addressed, number: int) -> Message:
    given: dict[str, Any] = {"part": number}
    notes: list[Note] = []
    if addressed is not _NOBODY:
        given |= {name: value for name, value in addressed._asdict().items() if value}
    attributes: dict[str, Any] = {}
    _read_form(wire, part, given, attributes, notes)
    if part.items or part.form == "sealed":
        apply_settings(wire, part, settings, given, attributes, notes)
    if addressed.path and given["performative"] not in ("control", "handshake"):
        given["performative"] = "delegate"
    if part.checksum:
        attributes["checksum"] = part.checksum[2]
        counted = part.body[1] - part.body[0] + len(part.symbol)
        if counted != part.checksum[2]:
            text = f"the checksum says {part.checksum[2]}, we count {counted} characters; its unit is not defined"
            notes.append(CHECKSUM.note(text, (0, part.checksum[0], part.checksum[1])))
    if attributes:
        given["attributes"] = attributes
    if notes:
        given["notes"] = tuple(notes)
    return Message.trust(given)


def _read_form(wire: str, part: Part, given: dict[str, Any], attributes: dict[str, Any], notes: list[Note]) -> None:
    body = wire[part.body[0] : part.body[1]]
    form = part.form
    if form in ("statement", "offer", "untyped"):
        _read_statement(wire, part, body, given, attributes, notes)
    elif form == "error":
        _read_error(part, body, given, notes)
    elif form == "ack":
        _read_ack(part, body, given)
        if part.symbol == "<->" and body:
            attributes |= split_offer(body)
    elif form == "floor":
        given |= {"performative": FLOOR[part.symbol].performative, "native_act": part.symbol}
    elif form == "sealed":
        given |= {"performative": "inform", "native_act": "enc", "content": body[1:-1] if body[-1:] == "]" else body}
        text = f"{len(body) - 2} characters are sealed and were not opened"
        notes.append(SEALED.note(text, (0, part.body[0], part.body[1])))
    elif form in ("table", "list"):
        given |= {"performative": "inform", "native_act": form, "content": body}
        is_table = form == "table"
        attributes[form] = read_table(body) if is_table else plain_value(parse_block(body, 0, find_close(body, 0)))
    elif is_data(wire, part):
        blocks = [item for item in part.items if item.kind == "block"]
        raw = " ".join(wire[item.start : item.end] for item in blocks)
        given |= {"performative": "inform", "native_act": "data", "content": raw}
        for item in blocks:
            note_repeated(parse_block(wire, item.start, item.end), notes)
    else:
        given["performative"] = "control"
        given["native_act"] = "context"


def _read_statement(
    wire: str, part: Part, body: str, given: dict[str, Any], attributes: dict[str, Any], notes: list[Note]
) -> None:
    span = (0, part.symbol_at[0], max(part.symbol_at[1], part.symbol_at[0] + 1) if wire else 0)
    act = TYPES.get(part.symbol[:1])
    given["content"] = body or None
    if act is None:
        given |= {"performative": "inform", "native_act": "untyped"}
        doubt = "" if any(item.kind != "speaker" for item in part.items) else ": possible Lambda only (low)"
        notes.append(NO_TYPE.note(f"the statement has no type symbol{doubt}", (0, *part.body)))
    else:
        given |= {"performative": act.performative, "native_act": part.symbol[0]}
        if len(part.symbol) > 1:
            given["modifiers"] = (MODIFIERS.get(part.symbol, part.symbol),)
        if not body:
            notes.append(EMPTY_BODY.note(f"{part.symbol!r} stands alone", span))
    if part.form == "offer":
        attributes |= split_offer(body)
    lift_keys(wire, part, body, given, notes)


def find_failure(body: str) -> Failure:
    """What `er:un/qo` reports: the code, its name, and the cause."""
    found = _ERROR_BODY.match(body)
    code = found[1] if found else ""
    known = ERRORS.get(code)
    return Failure(code=code, message=known.name if known else None, cause=found[2] if found else None)


def _read_error(part: Part, body: str, given: dict[str, Any], notes: list[Note]) -> None:
    error = find_failure(body)
    code = error.code or ""
    known = ERRORS.get(code)
    given |= {"performative": known.performative if known else "failure", "native_act": "er", "content": body}
    given["error"] = error
    if known is None:
        start = part.body[0] + 3
        notes.append(UNKNOWN_ERROR.note(f"no release defines the error {code!r}", (0, start, start + 2)))
    if answered := find_answered(body):
        given["parent_id"] = answered


def _read_ack(part: Part, body: str, given: dict[str, Any]) -> None:
    if part.symbol == "<->" and body:
        given |= {"performative": COUNTER.performative, "native_act": "<->", "status": COUNTER.status}
    else:
        symbol = "<" if part.symbol.startswith("<#") else part.symbol
        act = ACKS[symbol]
        given |= {"performative": act.performative, "native_act": symbol}
        if act.status:
            given["status"] = act.status
        if symbol == "<ctx":
            given["topic"] = "context"
    if part.symbol.startswith("<#"):
        given["correlation_id"] = part.symbol[1:]
    if body:
        given["content"] = body
        if answered := find_answered(body):
            given["parent_id"] = answered


def identify(wire: str) -> Identity:
    """The message's own id and time, where a header or a block before it gives them."""
    if may_be_form(wire):
        if '"id"' not in wire and '"conversation"' not in wire and "id:" not in wire and "t:" not in wire:
            return Identity()
    elif (
        not wire
        or wire[0] not in "@{ΛλABCDEFGHIJKLMNOPQRSTUVWXYZ"
        or ("id:" not in wire[:512] and "t:" not in wire[:512])
    ):
        return Identity()
    reading = read(wire)
    if reading.is_malformed:
        return Identity()
    first = reading.messages[0]
    return Identity(conversation=first.conversation_id, id=first.message_id, time=first.sent_at)
