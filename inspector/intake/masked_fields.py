"""Field trees whose tokens are masked leaves: by these, pages, exports and the API mask the wire itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dialects import MASK, Field, Span

from .concealment import Secrets, find_overlapping, join_spans


def walk_fields(fields: Iterable[Field]) -> Iterator[Field]:
    """Every field of a tree."""
    stack = list(fields)
    while stack:
        each = stack.pop()
        yield each
        stack.extend(each.children)


def conceal_fields(fields: Iterable[Field], secrets: Secrets) -> tuple[Field, ...]:
    """The fields with the tokens as masked leaves; what encloses one names it by its alias."""
    return tuple(_conceal_field(each, secrets) for each in fields)


def _conceal_field(each: Field, secrets: Secrets) -> Field:
    if each.is_masked and not each.children:
        return each
    layer, start, end = each.span
    spans = find_overlapping(secrets.hidden.get(layer, ()), each.span)
    children = conceal_fields(each.children, secrets)
    shown: dict[str, Any] = {
        name: secrets.hide_all(getattr(each, name)) for name in ("name", "label", "raw", "value", "meaning")
    }
    if any(child.span[0] == layer for child in children):
        gone = [child.span for child in walk_fields(children) if child.is_masked and child.span[0] == layer]
        return each.replace(**shown | {"raw": _cut_raw(each, gone), "children": children})
    if not spans and (shown["value"], shown["raw"]) != (each.value, each.raw):
        # It is written otherwise than it is meant, by escapes: there is no telling which characters are the token.
        spans = [each.span]
    if not spans:
        return each.replace(**shown, children=children) if children != each.children else each.replace(**shown)
    if spans[0][1] <= start and end <= spans[0][2]:
        return each.replace(**shown | {"raw": MASK, "value": MASK, "children": children, "is_masked": True})
    pieces = tuple(_cut_leaf(each, spans))
    gone = [piece.span for piece in pieces if piece.is_masked]
    return each.replace(**shown | {"raw": _cut_raw(each, gone), "children": (*pieces, *children)})


def _cut_raw(each: Field, gone: Iterable[Span]) -> str:
    """The characters of a field with the mask in the place of each of these stretches."""
    _, first, last = each.span
    pieces, at = [], first
    for _, start, end in join_spans(gone):
        if len(each.raw) != last - first:
            return MASK  # What it has is no longer what stands there.
        pieces += [each.raw[at - first : start - first], MASK]
        at = end
    return "".join((*pieces, each.raw[at - first :])) if pieces else each.raw


def _cut_leaf(each: Field, spans: Iterable[Span]) -> Iterator[Field]:
    """The pieces of a leaf: what stands around the tokens as it is, each token masked."""
    layer, start, end = each.span
    at = start
    for _, first, last in spans:
        first, last = max(first, start), min(last, end)
        if at < first:
            yield _cut_piece(each, at, first)
        yield Field(name="secret", label="token", raw=MASK, value=MASK, span=(layer, first, last), is_masked=True)
        at = last
    if at < end:
        yield _cut_piece(each, at, end)


def _cut_piece(each: Field, start: int, end: int) -> Field:
    layer, first, _ = each.span
    raw = each.raw[start - first : end - first]
    name = each.name if each.name in ("syntax", "unread") else "text"
    return Field(name=name, label="text", raw=raw, value=raw, span=(layer, start, end))
