"""Where everything of a carrier's record stands: in its JSON, and in the JSON of those of its texts that are opened;
and what is secret in such a text, which is secret in the message, too: in its fields, its columns and its words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ._json import JsonError, Node, Path, Rules, load, load_whole, place, read_key, write
from ._record import MASK, Field, Layer, Span, masked_leaf


class Place(NamedTuple):
    """A value's place: the layer, its text, and the node in it."""

    layer: int
    text: str
    node: Node


class Places:
    """Finds what stands at a path. A path that goes on below an opened text leads into its JSON."""

    def __init__(self, wire: str, root: Node) -> None:
        self.root = root
        self.layers: list[Layer] = []
        self._roots: dict[Path, Place] = {(): Place(0, wire, root)}

    def open(self, path: Path, rules: Rules) -> None:
        """Make a layer of the text at a path, where it is a string of JSON; nothing happens where it is none."""
        found = self.find(path)
        if found is None or found.node.kind != '"' or path in self._roots:
            return
        text = read_key(found.text[found.node.start : found.node.end])
        try:
            end = load(text, 0, rules).end
        except JsonError:
            return
        layer = len(self.layers) + 1
        of = (found.layer, found.node.start, found.node.end)
        self.layers.append(Layer(id=layer, kind="json-string", text=text, of=of))
        self._roots[path] = Place(layer, text, place(text, 0, end))

    def find(self, path: Path) -> Place | None:
        """The place of the value at a path; None where the path leads nowhere."""
        size = next(size for size in range(max(len(path) - 1, 0), -1, -1) if path[:size] in self._roots)
        layer, text, root = self._roots[path[:size]]
        node = root.locate(path[size:])
        return None if node is None else Place(layer, text, node)

    def find_span(self, path: Path) -> Span | None:
        """The characters of the value at a path; None where the path leads nowhere."""
        found = self.find(path)
        return None if found is None else (found.layer, found.node.start, found.node.end)

    @property
    def opened(self) -> tuple[Place, ...]:
        """The roots of the opened texts, by their layers."""
        return tuple(self._roots.values())[1:]


_RULES: Final = Rules(max_depth=64, allows_controls=True)
# A word of so few characters with its quotation marks stands everywhere.
_SHORT: Final = 5


def find_secrets(fields: Iterable[Field], layers: Sequence[Layer]) -> dict[int, list[Span]]:
    """By layer what is masked in it: its own secrets, and each stretch from which a layer with secrets was read."""
    found: dict[int, list[Span]] = defaultdict(list)
    stack = list(fields)
    while stack:
        field = stack.pop()
        if field.is_masked and not any(child.is_masked for child in field.children):
            found[field.span[0]].append(field.span)
        stack.extend(field.children)
    for layer in reversed(layers):
        for outer in layer.find_outer(found.get(layer.id, ())):
            found[outer[0]].append(outer)
    return found


def list_hidden(secrets: Mapping[int, Sequence[Span]], layers: Sequence[Layer]) -> list[str]:
    """The texts that nothing told of the message around may hold, the longest first."""
    inside = [layer for layer in layers if layer.of is not None and layer.id in secrets]
    texts = {layer.text for layer in inside}
    texts |= {layer.text[start:end] for layer in layers for _, start, end in secrets.get(layer.id, ())}
    texts |= {*map(_write_again, texts)}
    # Where JSON writes one, columns have what it stands for.
    texts |= {read_key(text) for text in texts if len(text) > _SHORT and text[0] == text[-1] == '"'}
    return sorted(filter(None, texts), key=len, reverse=True)


def _write_again(text: str) -> str:
    """JSON as a value that was read from it is written; any other text as it is."""
    try:
        return write(load_whole(text, _RULES).data)
    except JsonError:
        return text


def hide(value: Any, hidden: Sequence[str]) -> Any:
    """A value without those texts, at every depth; a member that was read from one of them is masked whole."""
    if isinstance(value, str):
        for text in hidden:
            value = value.replace(text, MASK)
        return value
    if isinstance(value, Mapping):
        return {hide(key, hidden): _hide_member(inner, hidden) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hide_member(inner, hidden) for inner in value]
    if isinstance(value, tuple):
        return tuple(hide(inner, hidden) for inner in value)
    if hasattr(value, "replace") and hasattr(value, "given"):
        return value.replace(**{name: hide(inner, hidden) for name, inner in value.given().items()})
    return value


def _hide_member(value: Any, hidden: Sequence[str]) -> Any:
    is_json = isinstance(value, (str, int, float, Mapping, list))
    return MASK if is_json and write(value) in hidden else hide(value, hidden)


def mask_fields(fields: Iterable[Field], secrets: Mapping[int, Sequence[Span]]) -> tuple[Field, ...]:
    """The fields with what overlaps a secret masked, and nothing of it in what encloses it."""
    return tuple(_mask(field, secrets) for field in fields)


def _mask(field: Field, secrets: Mapping[int, Sequence[Span]]) -> Field:
    layer, start, end = field.span
    if field.is_masked or not any(first < end and start < last for _, first, last in secrets.get(layer, ())):
        return field
    if not field.children:
        return masked_leaf(field.name, field.label, start, end, layer=layer, meaning=field.meaning)
    return field.replace(raw="", value=None, children=mask_fields(field.children, secrets))
