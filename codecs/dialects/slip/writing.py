"""Writing SLIP: messages of the record as lines, and what a line cannot hold.

A message of SLIP is written in the version that its `attributes` name, its act spelt as there and never taken by its
number: a rejection stays one. What comes from another dialect is written as SLIP v3, whose forces say the act and no
more; an object is given only where act, status or frame names one. Every name that is read back otherwise is a loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .._errors import EncodeError
from .._record import Encoded, Loss, Message
from .lines import THREAD
from .reading import REMARKS, read
from .tables import FORCES, MAX_TOKENS, MNEMONICS, NEWEST, OBJECTS, PAIRS

# What telling and placing add to a message.
_ADDED = {"part", "english", "also", "gloss", "notes", "parent", "reference_line"}
_FORCES = {force.performative: name for name, force in FORCES.items() if name != "Fallback"}
_OBJECTS = {anchor.status: (anchor.force, anchor.object) for anchor in PAIRS.values() if anchor.force == "Eval"}
_VERSION = re.compile(r"v[0-9]{1,9}\Z")
_WORD = re.compile(r"\S+\Z")
_NAME = re.compile(r"[A-Za-z0-9]{1,20}\Z")
_TOKENS = re.compile(rf"[A-Za-z0-9]{{1,30}}(?: [A-Za-z0-9]{{1,30}}){{0,{MAX_TOKENS - 1}}}\Z")
_QUOTABLE = re.compile(r'[^"\\\n]*\Z')


def encode(messages: Sequence[Message]) -> Encoded:
    """The messages as one text.

    Raises:
        EncodeError: where a party is missing or no word, the act does not exist here, or there is no line.
    """
    if all(_is_prose(message) for message in messages):
        raise EncodeError("slip", "there is no act to write as a line; text alone is no SLIP")
    wire = "\n".join(str(m.content) if _is_prose(m) else _write_line(m) for m in messages)
    again = read(wire).messages
    if [_is_prose(message) for message in messages] != [_is_prose(message) for message in again]:
        raise EncodeError("slip", "what is written would not be read back as the same messages")
    losses = [loss for one, other in zip(messages, again, strict=True) for loss in _find_lost(one, other)]
    return Encoded(wire=wire, losses=tuple(losses))


def _is_prose(message: Message) -> bool:
    return message.native_act is None and message.performative == "inform" and isinstance(message.content, str)


def _version_of(message: Message) -> str | None:
    """The version that a message of SLIP names; None for one of another dialect."""
    version = message.attributes.get("slip")
    return version if isinstance(version, str) and _VERSION.match(version) else None


def _find_lost(message: Message, again: Message) -> Iterator[Loss]:
    if message.performative != again.performative:
        raise EncodeError("slip", f"the act {message.performative} would not be read back", message.part)
    given, names = message.given(), again.given()
    is_own = _version_of(message) is not None or _is_prose(message)
    for name in {**given, **(names if is_own else {})}:
        if name in _ADDED or (name == "native_act" and not is_own) or given.get(name) == names.get(name):
            continue
        reason = "it would be read back as something else" if name in names else "a line of SLIP has no place for it"
        yield Loss(name=name, part=message.part, reason=reason)


def _write_line(message: Message) -> str:
    version = _version_of(message)
    if message.broadcast or len(message.receivers) != 1:
        raise EncodeError("slip", "a line has exactly one receiver", message.part)
    sender, receiver = (
        _write_name(message, what, name, _WORD if version else _NAME)
        for what, name in (("sender", message.sender), ("receiver", message.receivers[0]))
    )
    spelt = version or NEWEST
    words = ["SLIP", spelt, sender, receiver, _write_act(message, version), *_write_rest(message, version)]
    lead = {role: message.attributes.get(role) for role in REMARKS} if version else {}
    marks = {"thought": "THOUGHT", "choice": "QUANTIZE"}
    rows = [f"{marks[role]}: {said}" for role, said in lead.items() if isinstance(said, str) and "\n" not in said]
    return "\n".join([*rows, ("SLIP: " if rows else "") + " ".join(words)])


def _write_name(message: Message, what: str, name: str | None, pattern: re.Pattern[str]) -> str:
    if name is None or not pattern.match(name):
        why = "is missing" if name is None else f"is {name!r}, which is no name that SLIP can hold"
        raise EncodeError("slip", f"the {what} {why}", message.part)
    return name


def _write_act(message: Message, version: str | None) -> str:
    """The act as the version spells it; for one of another dialect, its force and the object that it names."""
    native, performative = message.native_act or "", message.performative or ""
    if version and native:
        force, _, matter = native.partition(" ")
        anchor = MNEMONICS.get(native) or PAIRS.get((force, matter))
        if anchor is None or anchor.performative == performative:
            return anchor.spell(version) if anchor else native
    if performative in OBJECTS:
        return " ".join(OBJECTS[performative])
    if performative not in _FORCES:
        raise EncodeError("slip", f"there is no act for {performative or 'an unread message'}", message.part)
    if performative == "evaluate" and message.status in _OBJECTS:
        return " ".join(_OBJECTS[message.status])
    force, matter = _FORCES[performative], (message.frame or "").capitalize()
    return f"{force} {matter if (force, matter) in PAIRS else 'Generic'}"


def _write_rest(message: Message, version: str | None) -> Iterator[str]:
    """The thread, the reference and the payload, as far as the version has a place for them."""
    is_fallback = (message.native_act or "").partition(" ")[0] == "Fallback"
    is_v3 = version in (None, "v3")
    thread = f"thread{message.conversation_id}"
    if not is_v3 and THREAD.fullmatch(thread):
        yield thread
    if is_v3 and is_fallback and message.references and message.references[0].ref:
        yield message.references[0].ref
    content = message.topic if message.content is None else message.content
    if not isinstance(content, str) or not (content.strip() or is_fallback):
        return
    if version is None and not _TOKENS.match(content):
        return
    is_plain = content == content.strip() and "\n" not in content and content[:1] != '"' and content != ""
    is_plain = is_plain and not (THREAD.match(content) and message.conversation_id is None)
    if not is_plain and is_fallback and not is_v3 and _QUOTABLE.match(content):
        yield f'"{content}"'
    else:
        yield " ".join(content.split()) if "\n" in content else content
