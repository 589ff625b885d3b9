"""The field tree of a record: every key and value with its place, its label and its meaning, secrets masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._json import load
from .._positions import Node, Path, read_key
from .._record import MASK, Field
from .._scan import leaf, masked_leaf, tile
from .._time import instant_of_seconds
from . import tables
from .parts import RULES, Piece, find_secrets, hide, is_secret
from .schema import is_text

# Below this depth a value is one leaf: a tree unfolded to the last level would hold its text at every level.
UNFOLDED = 12

_SYNTAX = frozenset(" \t\r\n{}[]:,")
_TEXTS = {
    "json": ("text", "JSON that is no message"),
    "prose": ("text", "text"),
    "broken": ("text", "up to where reading failed"),
    "comment": ("comment", "comment"),
    "fence": ("fence", "code fence"),
    "mark": ("mark", "byte order mark"),
}


def grow_tree(wire: str, pieces: list[Piece]) -> tuple[Field, ...]:
    """The fields of a record, tiled: the leaves cover the wire."""
    return tile(_grow(wire, pieces), wire, syntax=_SYNTAX)


def _grow(wire: str, pieces: list[Piece]) -> Iterator[Field]:
    for piece in pieces:
        if piece.kind == "object":
            yield _grow_object(piece)
        elif piece.kind in _TEXTS:
            yield from _grow_text(piece)


def _grow_text(piece: Piece) -> Iterator[Field]:
    at = piece.start
    hidden = sorted((*_find_tokens(piece), *((piece.start + a, piece.start + b) for a, b in find_secrets(piece.text))))
    for start, end in hidden:
        if start < at:
            continue
        yield from _cut(piece, at, start)
        yield masked_leaf("secret", "token", start, end)
        at = end
    yield from _cut(piece, at, piece.end)


def _cut(piece: Piece, start: int, end: int) -> Iterator[Field]:
    """The text between two secrets, in two where reading failed within it: what follows is unread."""
    name, label = _TEXTS[piece.kind]
    failed = end if piece.error is None else min(max(piece.error.offset, start), end)
    for kind, words, first, last in ((name, label, start, failed), ("unread", "not readable", failed, end)):
        if first < last:
            yield leaf(kind, words, piece.wire, first, last, value=piece.wire[first:last])


def _find_tokens(piece: Piece) -> Iterator[tuple[int, int]]:
    for token in piece.tokens:
        at = piece.wire.find(token, piece.start, piece.end)
        while at >= 0:
            yield at, at + len(token)
            at = piece.wire.find(token, at + len(token), piece.end)


def _grow_object(piece: Piece) -> Field:
    return Field(
        name="message",
        label="message",
        raw=_read_raw(piece, piece.start, piece.end, is_masked=False, is_leaf=False),
        span=(0, piece.start, piece.end),
        children=tuple(_grow_member(piece, (member.key,), member) for member in piece.node.members),
    )


def _grow_member(piece: Piece, path: Path, member: Node) -> Field:
    code = ".".join(str(step) for step in path)
    known = tables.FIELDS.get(code) or tables.FIELDS.get(code.removeprefix("semantic."))
    name = hide(str(path[-1]), piece.tokens)
    label, meaning = known or (name, None)
    if isinstance(member.key, int):
        label = f"item {member.key + 1}"
    start = member.key_start
    children: list[Field] = []
    if isinstance(member.key, str):
        children.append(_leaf(piece, "key", "key", member.key_start, member.key_end, member.key, None))
    if member.members and len(path) < UNFOLDED:
        children.extend(_grow_member(piece, (*path, inner.key), inner) for inner in member.members)
        value = None
    elif is_secret(path, piece.profile or "0.2") and piece.wire[member.start : member.end] != "null":
        children.append(masked_leaf("value", "token", member.start, member.end, meaning=meaning))
        value = MASK
    else:
        value = _read_value(piece, member)
        said = explain(code, value)
        meaning = said or meaning
        if member.end > member.start:
            children.append(_leaf(piece, "value", "value", member.start, member.end, value, said))
    is_masked = any(child.is_masked for child in children)
    return Field(
        name=name,
        label=label,
        raw=_read_raw(piece, start, member.end, is_masked=is_masked, is_leaf=not member.members),
        span=(0, start, member.end),
        value=MASK if is_masked else value,
        meaning=meaning,
        children=tuple(children),
        is_masked=is_masked,
    )


def _read_raw(piece: Piece, start: int, end: int, *, is_masked: bool, is_leaf: bool) -> str:
    """The characters of a field; none for what encloses a secret, whose parts show what may be shown."""
    if is_masked:
        return MASK
    return "" if not is_leaf and (piece.tokens or "auth" in piece.data) else piece.wire[start:end]


def _leaf(piece: Piece, name: str, label: str, start: int, end: int, value: Any, meaning: str | None) -> Field:
    if isinstance(value, str) and any(token in value for token in piece.tokens):
        return masked_leaf(name, label, start, end, meaning=meaning)
    return leaf(name, label, piece.wire, start, end, value=value, meaning=meaning)


def _read_value(piece: Piece, node: Node) -> Any:
    raw = piece.wire[node.start : node.end]
    if node.kind == '"':
        return read_key(raw)
    return load(raw, 0, RULES, shallow=True).data if node.kind == "v" else raw


def explain(code: str, value: Any) -> str | None:
    """What the value of a field means in English, where it is a code: an act, error, mode, state or time."""
    code = code.removeprefix("semantic.").replace("body.d.", "data.")
    if not is_text(value):
        return instant_of_seconds(value) if code == "ts" and type(value) is int else None
    if code == "p":
        act = tables.ACTS.get(value.upper())
        return act.meaning if act else None
    if code == "data.code":
        row = tables.ERROR_CODES.get(value)
        return f"{row.name}: {row.meaning}" if row else tables.name_error(value)
    if code == "data.delegation_mode" and value in tables.MODES:
        return tables.MODES[value].meaning
    if code == "state":
        return tables.STATES.get(value)
    return "everyone" if code in ("to", "routing.to") and value == "*" else None
