"""The field tree of a record: one node a message, one a parameter, marks and prose between them."""

from __future__ import annotations

from collections.abc import Iterator

from .._record import Field
from .._scan import leaf, tile
from .expressions import SPACES, Node
from .parsing import Call, Parameter, Prose, parse_record, walk

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
