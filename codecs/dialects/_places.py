"""Where everything of a carrier's record stands: in its JSON, and in the JSON of those of its texts that are opened."""

from __future__ import annotations

from typing import NamedTuple

from ._json import JsonError, Rules, load
from ._positions import Node, Path, place, read_key
from ._record import Layer, Span


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
