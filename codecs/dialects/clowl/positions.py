"""Where each key and value of a JSON text stands: one pass over its tokens, made only when somebody asks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

# One token with the white space before it. Possessive throughout: linear for every text.
_TOKEN = re.compile(r'[ \t\r\n]*+(?:("(?:[^"\\]++|\\.)*+"?)|([{\[])|([}\]])|([,:])|([^ \t\r\n{}\[\],:"]++))', re.DOTALL)

Path = tuple[str | int, ...]


class Member(NamedTuple):
    """One member of an object, or one item of a list (then without a key span)."""

    key: str | int
    key_start: int
    key_end: int
    node: Node


class Node:
    """A value's place in the text: [start, end), its kind (`{`, `[`, `"` or `v`) and its members in wire order."""

    __slots__ = ("_by_key", "end", "kind", "members", "start")

    def __init__(self, kind: str, start: int, end: int = 0) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.members: list[Member] = []
        self._by_key: dict[str | int, Member] | None = None

    def find(self, key: str | int) -> Member | None:
        """The member of that key; the last one where the key is repeated."""
        if self._by_key is None:
            self._by_key = {member.key: member for member in self.members}
        return self._by_key.get(key)

    def locate(self, path: Path) -> Member | None:
        """The member at the end of a path, or None where the path leads nowhere."""
        node, member = self, None
        for step in path:
            member = node.find(step)
            if member is None:
                return None
            node = member.node
        return member

    def walk(self) -> Iterator[tuple[Path, Member]]:
        """Every member below, with its path, in wire order."""
        stack: list[tuple[Path, Iterator[Member]]] = [((), iter(self.members))]
        while stack:
            path, members = stack[-1]
            member = next(members, None)
            if member is None:
                stack.pop()
                continue
            own = (*path, member.key)
            yield own, member
            if member.node.members:
                stack.append((own, iter(member.node.members)))


def place(text: str, start: int, end: int) -> Node:
    """The places of everything in the JSON value text[start:end], which has been read as JSON before."""
    root: Node | None = None
    stack: list[Node] = []
    key: tuple[str, int, int] | None = None
    for found in _TOKEN.finditer(text, start, end):
        kind = found.lastindex
        if kind is None or kind == 4:
            continue
        first, last = found.span(kind)
        if kind == 3:
            stack.pop().end = last
            if not stack:
                break
            continue
        holder = stack[-1] if stack else None
        if kind == 1 and holder is not None and holder.kind == "{" and key is None:
            key = (read_key(text[first:last]), first, last)
            continue
        node = Node(text[first] if kind == 2 else '"' if kind == 1 else "v", first, last)
        if holder is None:
            root = node
        elif key is not None:
            holder.members.append(Member(*key, node))
        else:
            holder.members.append(Member(len(holder.members), first, first, node))
        key = None
        if kind == 2:
            stack.append(node)
        elif holder is None:
            break
    return root if root is not None else Node("v", start, end)


def read_key(literal: str) -> str:
    """The string that a JSON string literal stands for."""
    if "\\" not in literal:
        return literal[1:-1]
    read: str = json.loads(literal, strict=False)
    return read


def write_path(path: Path) -> str:
    """The path as people write it: `$.body.d.items[2]`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
