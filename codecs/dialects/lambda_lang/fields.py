"""The field tree: every character of the wire, named and explained."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Field, leaf, tile
from .blocks import Node as BlockNode
from .blocks import parse_block
from .marks import read_nodes
from .nodes import Node
from .protocol import ACKS, CONTEXT_KEYS, ERRORS, FLOOR, HANDSHAKES, TASK_KEYS, TRUST, TYPES
from .statements import Item, Part
from .vocabulary import Vocabulary, title_domain
from .words import Scope

SYNTAX = frozenset(' \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0,:;={}[]()|@#"/&') | frozenset(
    "\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)

# kind of node: (name of the leaf, label for people)
_LEAVES = {
    "word": ("word", "word"),
    "value-word": ("value", "value"),
    "value-text": ("value", "value"),
    "value-number": ("value", "number"),
    "value-quote": ("value", "quoted text"),
    "value-url": ("value", "address, never fetched"),
    "value-symbol": ("value", "value"),
    "entity": ("entity", "entity"),
    "name": ("name", "name"),
    "mixed": ("name", "name"),
    "number": ("number", "number"),
    "quantity": ("number", "quantity"),
    "nothing": ("entity", "nothing"),
    "star": ("all", "all"),
    "quote": ("quote", "quoted text"),
    "paraphrase": ("quote", "paraphrase"),
    "escape": ("escape", "escaped character"),
    "domain": ("domain", "domain"),
    "joiner": ("joiner", "joiner"),
    "emotion": ("emotion", "emotion"),
    "marker": ("marker", "marker"),
    "error": ("error", "error"),
    "term": ("term", "definition named"),
    "reference": ("reference", "reference"),
    "left": ("left-out", "something left out"),
    "modality": ("modality", "modal letter"),
    "passive": ("passive", "mark of the passive"),
    "gloss": ("gloss", "gloss of the sender's"),
    "open": ("open", "opening bracket"),
    "close": ("close", "closing bracket"),
}


def build_tree(
    wire: str, parts: Sequence[Part], vocabulary: Vocabulary, scopes: Sequence[Scope] = ()
) -> tuple[Field, ...]:
    """The fields of a record; with `scopes`, its words as each statement's context gives them."""
    if not parts:
        return (leaf("text", "text that cannot be read", wire, 0, len(wire), value=wire),) if wire else ()
    fields: list[Field] = []
    for index, part in enumerate(parts):
        scope = scopes[index] if index < len(scopes) else Scope(vocabulary)
        before = [_item_field(wire, item) for item in part.items]
        if part.symbol:
            before.append(_symbol_field(wire, part))
        fields.extend(sorted(before, key=lambda each: each.span))
        if part.body[1] > part.body[0]:
            fields.append(_body_field(wire, part, scope))
        if part.checksum:
            start, end, value = part.checksum
            fields.append(
                leaf("checksum", "checksum", wire, start, end, value=value, meaning="a count; unit undefined")
            )
    return tile(fields, wire, syntax=SYNTAX)


def _symbol_field(wire: str, part: Part) -> Field:
    start, end = part.symbol_at
    if part.form == "floor":
        return leaf("floor", "floor control", wire, start, end, value=part.symbol, meaning=FLOOR[part.symbol].meaning)
    if part.form == "ack":
        known = ACKS.get(part.symbol)
        meaning = known.meaning if known else f"acknowledges part {part.symbol[2:]}"
        return leaf("acknowledgement", "acknowledgement", wire, start, end, value=part.symbol, meaning=meaning)
    act = TYPES[part.symbol[0]]
    return leaf("type", "type", wire, start, end, value=part.symbol, meaning=act.meaning)


def _item_field(wire: str, item: Item) -> Field:
    start, end = item.start, item.end
    if item.kind == "block":
        return block_field(wire, parse_block(wire, start, end), "context")
    label, meaning = _explain_item(item)
    return leaf(item.kind, label, wire, start, end, value=item.data, meaning=meaning)


def _explain_item(item: Item) -> tuple[str, str | None]:
    data = item.data
    if item.kind == "header":
        version, act, identity = data
        said = [
            f"version {version}",
            HANDSHAKES[act].meaning if act else "",
            f"message id {identity}" if identity else "",
        ]
        return "header", ", ".join(word for word in said if word)
    if item.kind == "broken-header":
        return "broken header", "sets nothing"
    if item.kind == "speaker":
        return "speaker", f"said by {data[0]}" + (f" to {data[1]}" if data[1] else "")
    if item.kind == "address":
        return "address", f"to {', '.join(data)}"
    if item.kind == "relay":
        return "relay", f"from {data[0]} by way of {', '.join(data[1:-1])} to {data[-1]}" if len(data) > 2 else None
    if item.kind == "trust":
        return "trust level", TRUST[data][1]
    if item.kind == "chunk":
        return "chunk", f"part {data[1]} of {data[2]} of message {data[0]}"
    if item.kind == "signature":
        return "signature", "a claim, not verified"
    if item.kind == "vocabulary":
        return "vocabulary", "shown, never fetched"
    if item.kind in ("domain", "inline"):
        return "domain", "resets the domain" if data == "*" else f"the domain {data}"
    return "label", "Λ Lambda"


def _body_field(wire: str, part: Part, scope: Scope) -> Field:
    start, end = part.body
    if part.form in ("table", "sealed"):
        name, label = ("table", "table") if part.form == "table" else ("sealed", "sealed content, not opened")
        return leaf(name, label, wire, start, end, value=wire[start:end])
    children = [_node_field(wire, node) for node in read_nodes(wire, start, end, scope) if node.kind != "space"]
    whole = leaf("body", "body", wire, start, end, value=wire[start:end])
    if not children:
        return whole
    return whole.replace(children=tuple(children))


def _node_field(wire: str, node: Node) -> Field:
    _, start, end = node.span
    if node.kind == "block":
        return block_field(wire, parse_block(wire, start, end), "block")
    if node.kind == "unread":
        return leaf("unread", "not understood", wire, start, end)
    name, label = _LEAVES[node.kind]
    if node.kind == "domain":
        return leaf(name, label, wire, start, end, value=node.text[:-1], meaning=f"in the domain {node.text[:-1]}")
    if node.kind == "error":
        known = ERRORS.get(node.text[3:])
        return leaf(name, label, wire, start, end, value=node.text[3:], meaning=known.name if known else None)
    meaning = node.says if node.says != node.text else None
    if node.meaning is not None and node.meaning.domain:
        meaning = f"{meaning} ({title_domain(node.meaning.domain)})"
    if node.kind == "word" and end - start > len(node.text):
        return _glossed_field(wire, node, meaning)
    return leaf(name, label, wire, start, end, value=node.text, meaning=meaning)


def _glossed_field(wire: str, node: Node, meaning: str | None) -> Field:
    """`ch'2(choose)`: the atom, its marker, and the gloss behind it."""
    _, start, end = node.span
    opened = wire.index("(", start)
    word = leaf("word", "word", wire, start, start + len(node.text), value=node.text, meaning=meaning)
    inner = [word]
    if opened > start + len(node.text):
        inner.append(leaf("marker", "marker", wire, start + len(node.text), opened))
    inner.append(leaf("gloss", "gloss of the sender's", wire, opened, end, value=wire[opened + 1 : end - 1]))
    whole = leaf("glossed", "word with its gloss", wire, start, end, value=node.text, meaning=meaning)
    return whole.replace(children=tuple(inner))


def block_field(wire: str, block: BlockNode, name: str) -> Field:
    """A block or list with its keys and values as fields."""
    whole = leaf(name, "list" if block.kind == "list" else "block", wire, block.start, block.end, value=block.text)
    children = tuple(child for item in block.items for child in _value_fields(wire, item) if child.raw)
    return whole.replace(children=children) if children else whole


def _value_fields(wire: str, item: BlockNode) -> list[Field]:
    if item.kind == "pair":
        meaning = TASK_KEYS.get(item.key) or CONTEXT_KEYS.get(item.key)
        key = leaf("key", "key", wire, *item.key_at, value=item.key, meaning=meaning)
        return [key, *_value_fields(wire, item.items[0])]
    if item.kind in ("list", "block"):
        return [block_field(wire, item, item.kind)]
    return [leaf("value", "value", wire, item.start, item.end, value=item.text)]
