"""The gloss: atom by atom, in the order of the wire."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Segment
from .nodes import Node
from .protocol import ACKS, FLOOR, TYPES
from .statements import Item, Part


def gloss_part(text: str, part: Part, nodes: Sequence[Node]) -> tuple[Segment, ...]:
    """A statement as its literal meanings joined by `·`, each with its place."""
    said: list[Segment] = [_gloss_item(text, item) for item in part.items]
    if part.symbol:
        said.append(Segment(text=_gloss_symbol(part), spans=((0, *part.symbol_at),)))
    if not nodes and part.body[1] > part.body[0]:
        said.append(Segment(text=text[part.body[0] : part.body[1]], spans=((0, *part.body),)))
    said.extend(_gloss_node(node) for node in nodes if node.kind not in ("space", "domain"))
    if part.checksum:
        start, end, count = part.checksum
        said.append(Segment(text=f"checksum {count}", spans=((0, start, end),)))
    dot = Segment(text=" · ")
    return tuple(piece for index, one in enumerate(said) for piece in ((dot, one) if index else (one,)))


def _gloss_item(text: str, item: Item) -> Segment:
    return Segment(text=text[item.start : item.end], spans=((0, item.start, item.end),))


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
        return Segment(text=says, spans=(node.span,))
    return Segment(text=says, spans=(node.span,), basis=node.basis)
