"""Where each key and value of a JSON text stands: one pass over its tokens, made only when somebody asks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ._json import Rules, load

# One value with its key, or a closing bracket, and the separators before it. Possessive throughout: linear.
_STRING = r'"(?>(?:[^"\\]++|\\.)*)"'
_TOKEN = re.compile(
    rf"[ \t\r\n,]*+(?:({_STRING})[ \t\r\n]*+:[ \t\r\n]*+)?"
    rf'(?:({_STRING})|([{{\[])|([}}\]])|([^ \t\r\n{{}}\[\],:"]++))',
    re.DOTALL,
)
# What a value is, by the group of the token that matched it.
_KINDS = {2: '"', 5: "v"}

# From so many characters on places are packed, four offsets in one number.
_LONG = 1_000_000
_LOW = (1 << 32) - 1

Path = tuple[str | int, ...]


class Node:
    """A value's place in the text: [start, end), its kind (`{`, `[`, `"` or `v`) and its members in wire order.

    A member of an object has its key and the key's place; an item of a list has its index and no place for it.
    """

    __slots__ = ()
    key: str | int
    key_start: int
    key_end: int
    kind: str
    start: int
    end: int
    members: Sequence[Node] = ()

    def find(self, key: str | int) -> Node | None:
        """The member of that key; the last one where the key is repeated."""
        return None

    def read(self, text: str, rules: Rules) -> Any:
        """The value, from the text in which this was placed."""
        if self.kind == '"':
            return read_key(text[self.start : self.end])
        return load(text, self.start, rules, shallow=True).data

    def locate(self, path: Path) -> Node | None:
        """The value at the end of a path, or None where the path leads nowhere."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node.find(step)
        return node

    def walk(self) -> Iterator[tuple[Path, Node]]:
        """Every value below, with its path, in wire order."""
        stack: list[tuple[Path, Iterator[Node]]] = [((), iter(self.members))]
        while stack:
            path, members = stack[-1]
            member = next(members, None)
            if member is None:
                stack.pop()
                continue
            own = (*path, member.key)
            yield own, member
            if member.members:
                stack.append((own, iter(member.members)))


class _Plain(Node):
    """A value that may have members."""

    __slots__ = ("_by_key", "end", "key", "key_end", "key_start", "kind", "members", "start")

    def __init__(self, key: str | int, key_start: int, key_end: int, kind: str, start: int, end: int) -> None:
        self.key = key
        self.key_start = key_start
        self.key_end = key_end
        self.kind = kind
        self.start = start
        self.end = end
        self.members: Sequence[Node] = ()
        self._by_key: dict[str | int, Node] | None = None

    def find(self, key: str | int) -> Node | None:
        """The member of that key; the last one where the key is repeated."""
        if self._by_key is None:
            self._by_key = {member.key: member for member in self.members}
        return self._by_key.get(key)


class _Packed(Node):
    """A value without members in a long text, of which there may be a million: half as large, and slower to ask."""

    __slots__ = ("_place", "key", "kind")

    def __init__(self, key: str | int, key_start: int, key_end: int, kind: str, start: int, end: int) -> None:
        self.key = key
        self.kind = kind
        self._place = (((end << 32 | start) << 32) | key_end) << 32 | key_start

    key_start = property(lambda self: self._place & _LOW)
    key_end = property(lambda self: self._place >> 32 & _LOW)
    start = property(lambda self: self._place >> 64 & _LOW)
    end = property(lambda self: self._place >> 96)


def place(text: str, start: int, end: int, *, number: int = 0) -> Node:
    """The places of everything in the JSON value text[start:end], which has been read as JSON before; it may be the
    item of that number of a list."""
    root: Node = _Plain("", start, start, "v", start, end)
    leaf: type[_Plain | _Packed] = _Packed if end - start > _LONG else _Plain
    stack: list[tuple[_Plain, list[Node]]] = []
    members: list[Node] = []
    for found in _TOKEN.finditer(text, start, end):
        kind = found.lastindex or 0
        first, last = found.span(kind)
        if kind == 4:
            opened, members = stack.pop()
            opened.end = last
            if not stack:
                break
            continue
        key_start, key_end = found.span(1)
        mark = _KINDS.get(kind) or text[first]
        key = read_key(text[key_start:key_end]) if key_start >= 0 else len(members) if stack else number
        if key_start < 0:
            key_start = key_end = first
        node: Node
        if kind == 3:
            node = opened = _Plain(key, key_start, key_end, mark, first, last)
        else:
            node = leaf(key, key_start, key_end, mark, first, last)
        if stack:
            members.append(node)
        else:
            root = node
        if kind == 3:
            stack.append((opened, members))
            members = opened.members = []
        elif not stack:
            break
    return root


def make_list(nodes: Sequence[Node]) -> Node:
    """The list whose items are values placed apart in one text, each as the item of its number."""
    root = _Plain("", nodes[0].start, nodes[0].start, "[", nodes[0].start, nodes[-1].end)
    root.members = nodes
    return root


def read_key(literal: str) -> str:
    """The string that a JSON string literal stands for."""
    if "\\" not in literal:
        return literal[1:-1]
    read: str = json.loads(literal, strict=False)
    return read


def write_path(path: Path) -> str:
    """The path as people write it: `$.body.d.items[2]`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
