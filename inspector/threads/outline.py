"""The outline: a conversation's tree in display order, parents before children, siblings by time."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .placing import Node

CHUNK_NODES = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the tree: a message, or the ghost of one that was cited and never received."""

    id: uuid.UUID | None
    depth: int
    ghost: str = ""

    @property
    def is_ghost(self) -> bool:
        """Whether this line stands for a message that was not received."""
        return self.id is None


def outline(nodes: Sequence[Node]) -> Iterator[Row]:
    """The rows of the tree, without recursion, however deep a chain of replies goes.

    A message that merely follows (basis adjacency) is never drawn as an answer: it stands at the top level.

    Args:
        nodes: placed nodes in the order of the timeline.
    """
    children: dict[int, list[int]] = defaultdict(list)
    below_ghosts: dict[bytes, list[int]] = defaultdict(list)
    tops: list[int | bytes] = []
    for at, node in enumerate(nodes):
        if node.ghost is not None:
            if node.ghost not in below_ghosts:
                tops.append(node.ghost)
            below_ghosts[node.ghost].append(at)
        elif node.parent_at is not None and node.basis != "adjacency":
            children[node.parent_at].append(at)
        else:
            tops.append(at)
    for top in tops:
        if isinstance(top, bytes):
            yield Row(id=None, depth=0, ghost=top.hex())
            stack = [(at, 1) for at in reversed(below_ghosts[top])]
        else:
            stack = [(top, 0)]
        while stack:
            at, depth = stack.pop()
            yield Row(id=nodes[at].id, depth=depth)
            if at in children:
                stack.extend((child, depth + 1) for child in reversed(children[at]))


def write_chunks(rows: Iterator[Row]) -> Iterator[tuple[int, str]]:
    """The rows as numbered chunks of JSON text, a thousand a chunk."""
    chunk: list[tuple[str | None, int, str]] = []
    number = 0
    for row in rows:
        chunk.append((str(row.id) if row.id else None, row.depth, row.ghost))
        if len(chunk) == CHUNK_NODES:
            yield number, json.dumps(chunk, separators=(",", ":"))
            chunk, number = [], number + 1
    if chunk:
        yield number, json.dumps(chunk, separators=(",", ":"))


def read_chunk(text: str) -> list[Row]:
    """The rows that `write_chunks` wrote."""
    return [Row(uuid.UUID(name) if name else None, depth, ghost) for name, depth, ghost in json.loads(text)]
