"""Spans and trees: how the leaves of a field tree come to cover every character of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ._record import MASK, Field


def leaf(
    name: str,
    label: str,
    text: str,
    start: int,
    end: int,
    *,
    layer: int = 0,
    value: object = None,
    meaning: str | None = None,
) -> Field:
    """A leaf over text[start:end] of a layer."""
    return Field(name=name, label=label, raw=text[start:end], span=(layer, start, end), value=value, meaning=meaning)


def masked_leaf(name: str, label: str, start: int, end: int, *, layer: int = 0, meaning: str | None = None) -> Field:
    """A leaf whose characters are a secret: the span stands, the characters do not."""
    return Field(
        name=name, label=label, raw=MASK, value=MASK, span=(layer, start, end), meaning=meaning, is_masked=True
    )


def tile(
    fields: Iterable[Field],
    text: str,
    *,
    syntax: frozenset[str],
    layer: int = 0,
    start: int = 0,
    end: int | None = None,
) -> tuple[Field, ...]:
    """Fill the gaps between fields, at every depth, so that the leaves cover text[start:end].

    A gap made only of `syntax` characters becomes a leaf named `syntax`; any other becomes one named `unread`.
    The fields must lie in order and apart; children lie inside their parent on the same layer.
    """
    end = len(text) if end is None else end
    whole: list[Field] = []
    at = start
    for field in fields:
        _, first, last = field.span
        whole.extend(_gap(text, at, first, syntax, layer))
        own = [child for child in field.children if child.span[0] == layer]
        if own:
            inner = [child for child in field.children if child.span[0] != layer]
            tiled = tile(own, text, syntax=syntax, layer=layer, start=first, end=last)
            field = field.replace(children=(*tiled, *inner))
        whole.append(field)
        at = last
    whole.extend(_gap(text, at, end, syntax, layer))
    return tuple(whole)


def _gap(text: str, start: int, end: int, syntax: frozenset[str], layer: int) -> Iterator[Field]:
    if end <= start:
        return
    is_syntax = syntax.issuperset(text[start:end])
    name, label = ("syntax", "separator") if is_syntax else ("unread", "not understood")
    yield leaf(name, label, text, start, end, layer=layer)


def leaves(fields: Sequence[Field], *, layer: int = 0) -> Iterator[Field]:
    """The leaves on one layer, in order. A field whose children are all on inner layers is a leaf of its own."""
    stack = [iter(fields)]
    while stack:
        field = next(stack[-1], None)
        if field is None:
            stack.pop()
            continue
        own = [child for child in field.children if child.span[0] == layer]
        if own:
            stack.append(iter(own))
        elif field.span[0] == layer:
            yield field
