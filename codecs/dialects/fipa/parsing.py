"""A text taken apart: its messages with their parameters, and the stretches of prose between; which names of a message
each value fills; and the field tree, one node a message, one a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from .._english import quote, say_name
from .._record import Field, Message, Note, Span, leaf, tile
from .expressions import SPACE, SPACES, Fault, Node, Value, read_items, read_value
from .tables import (
    ACTS,
    DUPLICATE,
    FIPA,
    KQML,
    KQML_SLOTS,
    MAX_DEPTH,
    MAX_MESSAGES,
    MAX_PARAMETERS,
    NO_MESSAGE,
    NO_VALUE,
    SLOTS,
    STRAY,
    TELLING,
    TOO_DEEP,
    TOO_MANY_MESSAGES,
    TOO_MANY_PARAMETERS,
    UNCLOSED,
    UNCLOSED_TEXT,
    UNKNOWN_ACT,
    UNKNOWN_PARAMETER,
    WORK_PROTOCOLS,
    Act,
    Slot,
)

_NAMES = "|".join(sorted(map(re.escape, ACTS), key=len, reverse=True))
_TELLING = "|".join(sorted(map(re.escape, TELLING), key=len, reverse=True))
# A known act before the name of a parameter, a bracket or the end; or any word before the name of a known parameter.
OPENER = re.compile(
    rf"\({SPACE}*+(?:({_NAMES})(?={SPACE}++:[A-Za-z]|{SPACE}*+(?:\)|\Z))"
    rf"|([A-Za-z][A-Za-z0-9_-]{{0,63}}+)(?={SPACE}++:(?:{_TELLING})(?:[\x00-\x20(\"]|\Z)))",
    re.IGNORECASE,
)

# What sets messages apart and means nothing.
SEPARATORS = frozenset(SPACES + ",;`")

# used: its value stands. again: it stood before. unread: its value could not be read. empty: it has none.
Role = Literal["used", "again", "unread", "empty"]


class Parameter(NamedTuple):
    """A parameter as read: text[start:end], its name as written without the colon, and what its value is."""

    slot: Slot | None
    name: str
    start: int
    end: int
    role: Role
    node: Node | None = None
    value: Value | None = None


class Call(NamedTuple):
    """A message as read: text[start:end], with the written act at `act_span`; `act` is None where no table holds it."""

    start: int
    end: int
    act: Act | None
    name: str
    act_span: Span
    parameters: tuple[Parameter, ...]
    strays: tuple[Node, ...]
    notes: tuple[Note, ...]
    fault: Note | None = None

    @property
    def vocabulary(self) -> str:
        """The one that its act is from; FIPA's where it is from neither."""
        return self.act.vocabulary if self.act else FIPA

    def used(self) -> dict[str, Parameter]:
        """The parameters whose value stands, by their key."""
        return {each.name.lower(): each for each in self.parameters if each.role == "used"}


class Prose(NamedTuple):
    """A stretch of text around the messages."""

    start: int
    end: int


class Record(NamedTuple):
    """A text as read: its parts in order, the error that makes it malformed, and notes on the whole."""

    parts: tuple[Prose | Call, ...]
    error: Note | None
    notes: tuple[Note, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The messages alone."""
        return tuple(part for part in self.parts if isinstance(part, Call))


def parse_record(text: str) -> Record:
    """The parts of a text. Never raises; linear in the text."""
    parts: list[Prose | Call] = []
    notes: tuple[Note, ...] = ()
    at = count = 0
    while opener := OPENER.search(text, at):
        if count == MAX_MESSAGES:
            rest = (0, at, len(text))
            notes = (
                TOO_MANY_MESSAGES.note(f"only the first {MAX_MESSAGES} messages are read: the rest is text", rest),
            )
            break
        call = _read_call(text, opener)
        parts.extend(_find_prose(text, at, call.start))
        parts.append(call)
        at, count = call.end, count + 1
        if call.fault:
            break
    parts.extend(_find_prose(text, at, len(text)))
    if not count:
        return Record(tuple(parts), NO_MESSAGE.note("there is no message in the text", (0, 0, len(text))), notes)
    return Record(
        tuple(parts), next((call.fault for call in parts if isinstance(call, Call) and call.fault), None), notes
    )


def _find_prose(text: str, start: int, end: int) -> tuple[Prose, ...]:
    between = text[start:end]
    if SEPARATORS.issuperset(between):
        return ()
    return (Prose(end - len(between.lstrip(SPACES)), start + len(between.rstrip(SPACES))),)


def _read_call(text: str, opener: re.Match[str]) -> Call:
    """The message that opens there."""
    place = (0, opener.start(opener.lastindex or 0), opener.end())
    name = text[place[1] : place[2]]
    act = ACTS.get(name.lower())
    vocabulary = act.vocabulary if act else FIPA
    items, end, fault = read_items(text, opener.end(), vocabulary, opener.start())
    notes: list[Note] = []
    if act is None:
        notes.append(UNKNOWN_ACT.note(f"{say_name(name)} is an act of neither FIPA-ACL nor KQML", place))
    parameters, strays = _sort_items(text, items, vocabulary, notes)
    if fault and parameters and parameters[-1].end == items[-1].end:
        # The value that is not closed is the last parameter's.
        notes = [note for note in notes if note.code != NO_VALUE.code or note.span != span_of(parameters[-1])]
    notes.sort(key=lambda note: note.span or (0, 0, 0))
    error = _explain(fault, text) if fault else None
    return Call(opener.start(), end, act, name, place, parameters, strays, tuple(notes), error)


_FAULTS = {
    UNCLOSED.code: "the message has no closing bracket",
    UNCLOSED_TEXT.code: "a quoted text is not closed",
}


def _explain(fault: Fault, text: str) -> Note:
    words = _FAULTS.get(fault.kind.code, "a text of counted bytes is cut: it has not so many bytes as it says")
    return fault.kind.note(words, (0, fault.at, len(text)))


def _sort_items(
    text: str, items: tuple[Node, ...], vocabulary: str, notes: list[Note]
) -> tuple[tuple[Parameter, ...], tuple[Node, ...]]:
    """The parameters among the items of a message, and what stands without a name."""
    found: list[Parameter] = []
    strays: list[Node] = []
    seen: set[str] = set()
    at = 0
    while at < len(items):
        key = items[at]
        at += 1
        if key.kind != "key":
            strays.append(key)
            notes.append(STRAY.note(f"{cite(key.value)} stands without the name of a parameter", span_of(key)))
        elif len(found) == MAX_PARAMETERS:
            rest = (0, key.start, items[-1].end)
            notes.append(TOO_MANY_PARAMETERS.note(f"only the first {MAX_PARAMETERS} parameters are read", rest))
            strays.extend(items[at - 1 :])
            break
        else:
            node = items[at] if at < len(items) and items[at].kind != "key" else None
            at += node is not None
            found.append(_read_parameter(text, key, node, vocabulary, seen, notes))
    return tuple(found), tuple(strays)


def find_slot(name: str, vocabulary: str) -> Slot | None:
    """The parameter of that name, or None where the vocabulary has none."""
    key = name.lower()
    return None if vocabulary != KQML and key in KQML_SLOTS else SLOTS.get(key)


def _read_parameter(
    text: str, key: Node, node: Node | None, vocabulary: str, seen: set[str], notes: list[Note]
) -> Parameter:
    name = key.value[1:]
    slot = find_slot(name, vocabulary)
    label = slot.label if slot else f"parameter {say_name(name)}"
    end = node.end if node else key.end
    span = (0, key.start, end)
    is_again = name.lower() in seen
    seen.add(name.lower())
    if is_again:
        notes.append(DUPLICATE.note(f"the {label} stands twice: {cite(text[key.start : end])} is not used", span))
        return Parameter(slot, name, key.start, end, "again", node)
    if slot is None and not name.lower().startswith("x-"):
        notes.append(UNKNOWN_PARAMETER.note(f"{say_name(name)} is a parameter of no table: its value is kept", span))
    if node is None or (slot and slot.shape != "text" and not node.value):
        notes.append(NO_VALUE.note(f"the {label} has no value", span))
        return Parameter(slot, name, key.start, end, "empty", node)
    if node.kind == "list" and any(inner.kind == "deep" for inner in walk(node)):
        notes.append(TOO_DEEP.note(f"the {label} holds lists more than {MAX_DEPTH} levels deep", span_of(node)))
    value = read_value(slot.shape if slot else "text", node, vocabulary, label, notes)
    return Parameter(slot, name, key.start, end, "used" if value else "unread", node, value)


def walk(node: Node) -> Iterator[Node]:
    """The words and texts of a list, at every depth, in order; of anything else itself."""
    stack = [iter((node,))]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        elif inner.kind == "list" and inner.items:
            stack.append(iter(inner.items))
        else:
            yield inner


def span_of(read: Node | Parameter) -> Span:
    """The place of an expression or a parameter on the wire."""
    return (0, read.start, read.end)


_MAX_CITED_LENGTH = 80


def cite(written: str) -> str:
    """What stands on the wire, cut where a note would grow too long; the span shows all of it."""
    return quote(written) if len(written) <= _MAX_CITED_LENGTH else f"{quote(written[:_MAX_CITED_LENGTH])} …"


# The content of an inform that says that an action is done, or what came of it (SC00008I; SC00026H).
_DONE = re.compile(r"[\x00-\x20(]*+(?:done|result)(?=[\x00-\x20(])", re.IGNORECASE)


def message_of(call: Call, part: int) -> Message:
    """The message that a call is."""
    given: dict[str, Any] = {"part": part, "native_act": call.act.name if call.act else call.name}
    attributes: dict[str, Any] = {}
    others: dict[str, str] = {}
    agents: dict[str, dict[str, list[str]]] = {"addresses": {}, "identifiers": {}}
    for each in call.parameters:
        slot, value = each.slot, each.value
        if each.role == "unread" and each.node:
            attributes.setdefault("unread", {})[each.name.lower()] = each.node.value
        if each.role != "used" or value is None:
            continue
        if slot is None:
            others[each.name] = value.text
            continue
        names = tuple(dict.fromkeys(agent.name for agent in value.agents))
        filled: Any = value.text if value.moment is None else value.moment
        if slot.shape == "agent":
            filled = names[0]
        elif slot.shape == "agents":
            filled = [*names] if slot.is_attribute else names
        (attributes if slot.is_attribute else given)[slot.place] = filled
        for agent in value.agents:
            _add(agents["addresses"], agent.name, agent.addresses)
            _add(agents["identifiers"], agent.name, agent.rest)
    attributes |= {name: held for name, held in agents.items() if held}
    if others:
        attributes["parameters"] = others
    if attributes:
        given["attributes"] = attributes
    given["performative"] = _find_performative(call, attributes.get("protocol"), given.get("content"))
    return Message(**given, notes=call.notes)


def _add(held: dict[str, list[str]], name: str, said: tuple[str, ...]) -> None:
    if said:
        own = held.setdefault(name, [])
        own.extend(dict.fromkeys(each for each in said if each not in own))


def _find_performative(call: Call, protocol: str | None, content: str | None) -> str:
    if call.act is None:
        return "unknown"
    return "done" if call.act.name == "inform" and is_end(protocol, content) else call.act.performative


def is_end(protocol: str | None, content: str | None) -> bool:
    """Whether an inform is the end of work: by its protocol, or because its content says that something is done."""
    return (protocol or "").lower() in WORK_PROTOCOLS or _DONE.match(content or "") is not None


_SYNTAX = frozenset(SPACES + ",;`()")

# What a parameter means where its value was not taken.
_UNUSED = {
    "again": "not used: the parameter stood before",
    "unread": "not understood: kept as it is written",
    "empty": "no value is given",
}


def grow_tree(text: str) -> tuple[Field, ...]:
    """The tree over the whole text."""
    record = parse_record(text)
    if not record.calls:
        return (leaf("unread", "not understood", text, 0, len(text)),) if text else ()
    fields = [_grow_prose(text, part) if isinstance(part, Prose) else _grow_call(text, part) for part in record.parts]
    return tile(fields, text, syntax=_SYNTAX)


def _grow_prose(text: str, part: Prose) -> Field:
    return leaf("prose", "text around the messages", text, part.start, part.end, value=text[part.start : part.end])


def _grow_call(text: str, call: Call) -> Field:
    act = call.act
    meaning = f"{act.name}: {act.use}" if act else "an act that no table holds"
    _, start, end = call.act_span
    children = [leaf("act", "act", text, start, end, value=act.name if act else call.name, meaning=meaning)]
    children += [_grow_parameter(text, each) for each in call.parameters]
    children += [leaf("unread", "not understood", text, node.start, node.end) for node in call.strays]
    children.sort(key=lambda field: field.span)
    name, label = "message", f"{call.vocabulary} message"
    return Field(
        name=name, label=label, raw=text[call.start : call.end], span=(0, call.start, call.end), children=(*children,)
    )


def _grow_parameter(text: str, read: Parameter) -> Field:
    slot = read.slot
    name, label = (slot.place, slot.label) if slot else ("parameter", f"parameter {read.name}")
    meaning = slot.use if slot else None
    if read.role != "used":
        meaning = _UNUSED[read.role]
    key_end = read.start + 1 + len(read.name)
    children = [leaf("key", "name of a parameter", text, read.start, key_end, value=read.name)]
    if read.node:
        children += _grow_value(text, read, read.node)
    value = read.value.text if read.value and not read.value.agents else None
    return Field(
        name=name,
        label=f"{label} again" if read.role == "again" else label,
        raw=text[read.start : read.end],
        span=(0, read.start, read.end),
        value=value,
        meaning=meaning,
        children=(*children,),
    )


def _grow_value(text: str, read: Parameter, node: Node) -> Iterator[Field]:
    """One leaf for a text; of agents one for each word of their identifiers."""
    if read.value is None or not read.value.agents:
        yield leaf("value", "value", text, node.start, node.end, value=node.value)
        return
    named = {(agent.start, agent.end) for agent in read.value.agents}
    for inner in walk(node):
        name, label = ("agent", "agent") if (inner.start, inner.end) in named else ("word", "part of an identifier")
        yield leaf(name, label, text, inner.start, inner.end, value=inner.value)
