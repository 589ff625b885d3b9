"""The gloss: atom by atom, in the order of the wire."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Segment, Span
from .nodes import Node
from .protocol import ACKS, FLOOR, TYPES
from .statements import Item, Part

_DOT = Segment(text=" · ")


def gloss_part(text: str, part: Part, statement: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """A statement with what stands around it as its literal meanings joined by `·`, each with its place."""
    if not part.items and not part.checksum:
        return statement
    said: list[Segment] = []
    for item in part.items:
        said += (_gloss_item(text, item), _DOT)
    said += statement
    if part.checksum:
        start, end, count = part.checksum
        if statement:
            said.append(_DOT)
        said.append(_make(f"checksum {count}", (0, start, end)))
    elif not statement:
        said.pop()
    return tuple(said)


def gloss_statement(text: str, part: Part, nodes: Sequence[Node]) -> tuple[Segment, ...]:
    """The type and the body alone."""
    said: list[Segment] = []
    if part.symbol:
        said += (_make(_gloss_symbol(part), (0, *part.symbol_at)), _DOT)
    if not nodes and part.body[1] > part.body[0]:
        said += (_make(text[part.body[0] : part.body[1]], (0, *part.body)), _DOT)
    for node in nodes:
        if node.kind not in ("space", "domain"):
            said += (_gloss_node(node), _DOT)
    return tuple(said[:-1])


def _make(text: str, span: Span) -> Segment:
    return Segment.trust({"text": text, "spans": (span,)})


def _gloss_item(text: str, item: Item) -> Segment:
    return _make(text[item.start : item.end], (0, item.start, item.end))


def _gloss_symbol(part: Part) -> str:
    if part.form == "floor":
        return FLOOR[part.symbol].name
    if part.form == "ack":
        act = ACKS.get(part.symbol)
        return act.name if act else f"acknowledged part {part.symbol[2:]}"
    name = TYPES[part.symbol[0]].name
    return name if len(part.symbol) == 1 else f"{name} ({part.symbol})"


def _gloss_node(node: Node) -> Segment:
    says = node.says
    if node.entry is not None:
        says = f"{node.text} means {says}"
        return Segment(text=says, spans=(node.span,), source=node.entry.source)
    if node.basis == "exact":
        return _make(says, node.span)
    return Segment(text=says, spans=(node.span,), basis=node.basis)
