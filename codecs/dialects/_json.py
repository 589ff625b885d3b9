"""JSON read and written exactly: digits kept, repeated keys seen, depth and size bounded, never a RecursionError; and
where each key and value of a text stands: one pass over its tokens, made only when somebody asks.

The standard library's scanner does the reading. What it would lose is caught: a number whose digits Python's own
numbers cannot hold becomes `Digits`, one that is merely spelled otherwise becomes `Spelled`. What a dialect takes is in
its `Rules`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Any, Literal, NamedTuple

# An object, or a list of them, whole or cut: its first key with a colon behind it.
_HEAD = re.compile(r'\ufeff?\s*+(?:\[\s*+)?\{\s*+"[^"\\]{0,200}+"\s*+:')
_SPACE = re.compile(r"[ \t\r\n]*+")
# Quantifiers are possessive (`++`), so that no text makes these go back over what they have passed.
_STRUCTURE = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|([{\[])|[}\]]', re.DOTALL)
_CONSTANT = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|(-?Infinity|NaN)', re.DOTALL)
_NUMBER = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|([-+.\dEe]++)', re.DOTALL)
_LONE = re.compile(r"[\ud800-\udfff]")


def is_json(text: str) -> bool:
    """Whether a text begins as an object of JSON does, or a list of objects: what it quotes is not its sender's."""
    return _HEAD.match(text) is not None


class Digits(str):
    """A number kept as its digits, because no number of Python's holds all of them."""

    __slots__ = ()


class Spelled(float):
    """A number that Python would spell otherwise, with the spelling it had."""

    __slots__ = ("raw",)
    raw: str

    def __new__(cls, value: float, raw: str) -> Spelled:
        made = super().__new__(cls, value)
        made.raw = raw
        return made


class Rules(NamedTuple):
    """What a dialect takes for JSON.

    Attributes:
        max_depth: how deep brackets may nest.
        max_digits: a number with more characters is refused; None where any length will do.
        allows_controls: whether raw control characters in texts are noted and not refused.
        integer, fraction, constant: what becomes of numbers and of NaN, if not exact values and a refusal.
    """

    max_depth: int
    max_digits: int | None = None
    allows_controls: bool = False
    integer: Callable[[str], Any] | None = None
    fraction: Callable[[str], Any] | None = None
    constant: Callable[[str], Any] | None = None


class JsonError(Exception):
    """JSON that cannot be read.

    Attributes:
        kind: what is the matter.
        offset: where reading stopped, in code points of the text.
        reason: why, in the words of the standard library.
    """

    def __init__(self, kind: Literal["syntax", "constant", "depth", "digits"], offset: int, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.offset = offset
        self.reason = reason

    @property
    def said(self) -> str:
        """Why, and where in the text, for people who do not write JSON."""
        if self.kind != "syntax":
            return self.reason
        return _SAID.get(self.reason, "it is written wrongly at character {}").format(self.offset + 1)


# What the standard library's words mean.
_SAID = {
    "Expecting value": "a value is missing at character {}",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing at character {}",
    "Illegal trailing comma before end of object": "a comma too many stands at character {}",
    "Illegal trailing comma before end of array": "a comma too many stands at character {}",
    "Expecting ',' delimiter": "a comma or an end is missing at character {}",
    "Expecting ':' delimiter": "a colon is missing at character {}",
    "Unterminated string starting at": "the text that begins at character {} is not closed",
    "Invalid control character at": "a control character stands at character {}",
    "Extra data": "more follows at character {}",
}


class Loaded:
    """A JSON value with where it ended and what was odd about its text: `repeated` are the keys given again."""

    __slots__ = ("_longest", "data", "end", "has_controls", "has_exact_numbers", "repeated")

    def __init__(self, longest: int | None) -> None:
        self.data: Any = None
        self.end = 0
        self.repeated: list[str] = []
        self.has_exact_numbers = False
        self.has_controls = False
        self._longest = longest

    def make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of these pairs; the last of a repeated key stands."""
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self.repeated.append(key)
                seen.add(key)
        return made

    def make_integer(self, raw: str) -> int | Digits:
        """The integer, or its digits where Python would not give them all back."""
        self._refuse_long(raw)
        if raw != "-0":
            try:
                return int(raw)
            except ValueError:  # the interpreter's own limit on digits
                self.has_exact_numbers = True
                return Digits(raw)
        self.has_exact_numbers = True
        return Digits(raw)

    def make_fraction(self, raw: str) -> float | Digits:
        """The number, exactly: as a float where that has the same value, else as its digits."""
        self._refuse_long(raw)
        value = make_fraction(raw)
        if type(value) is Digits:
            self.has_exact_numbers = True
        return value

    def _refuse_long(self, raw: str) -> None:
        if self._longest is not None and len(raw) > self._longest:
            raise _NumberTooLongError


class _NumberTooLongError(Exception):
    pass


class _ConstantError(Exception):
    pass


def make_fraction(raw: str) -> float | Digits:
    """A number with a fraction or exponent: a float of the same value, or its digits."""
    value = float(raw)
    if repr(value) == raw:
        return value
    if value == 0.0:
        mantissa = raw.lower().partition("e")[0]
        return Digits(raw) if mantissa.strip("-0.") else Spelled(value, raw)
    if isfinite(value) and len(raw) < 400 and Decimal(raw) == Decimal(repr(value)):
        return Spelled(value, raw)
    return Digits(raw)


def _refuse_constant(name: str) -> None:
    raise _ConstantError(name)


class _OddError(Exception):
    pass


def _take_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _OddError
    return made


def _take_integer(raw: str) -> int:
    if raw == "-0":
        raise _OddError
    return int(raw)


def _take_fraction(raw: str) -> float:
    value = make_fraction(raw) if len(raw) < 400 else Digits(raw)
    if isinstance(value, Digits):
        raise _OddError
    return value


def _refuse(name: str) -> None:
    raise _OddError


@cache
def _make_scanner(rules: Rules) -> Callable[[str, int], tuple[Any, int]]:
    """The scanner for values that hold nothing odd: made once, for that takes as long as scanning a short value."""
    decoder: Any = json.JSONDecoder(
        object_pairs_hook=_take_object,
        parse_int=rules.integer or _take_integer,
        parse_float=rules.fraction or _take_fraction,
        parse_constant=rules.constant or _refuse,
    )
    scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return scan


def skip_space(text: str, at: int = 0) -> int:
    """The place of the next character that is not JSON's white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def is_shallow(text: str, rules: Rules) -> bool:
    """Whether the whole text has too few brackets to nest deeper than may be read."""
    return text.count("{") + text.count("[") <= rules.max_depth


def load(text: str, start: int, rules: Rules, *, shallow: bool = False) -> Loaded:
    """The JSON value that begins at `start`; text may follow it.

    Args:
        text: the text.
        start: where the value begins.
        rules: what is taken.
        shallow: whether `is_shallow` holds for the text, so that the depth needs no measuring.

    Raises:
        JsonError: if it is not JSON, nested too deeply, or has too long a number.
    """
    if text.startswith(("{", "["), start) and not shallow and not is_shallow(text, rules):
        measure_depth(text, start, rules.max_depth)
    loaded = Loaded(rules.max_digits)
    try:
        loaded.data, loaded.end = _make_scanner(rules)(text, start)
    except (ValueError, StopIteration, _OddError):
        pass  # It is read again by what says where the fault is, or what is odd.
    else:
        return loaded
    try:
        return _load(text, start, rules, is_strict=True)
    except JsonError as fault:
        if not rules.allows_controls or not fault.reason.startswith("Invalid control character"):
            raise
    loaded = _load(text, start, rules, is_strict=False)
    loaded.has_controls = True
    return loaded


def load_whole(text: str, rules: Rules) -> Loaded:
    """The JSON value that is the whole of a text but for white space around it.

    Raises:
        JsonError: as `load`, and where more text follows.
    """
    loaded = load(text, skip_space(text), rules)
    end = skip_space(text, loaded.end)
    if end != len(text):
        raise JsonError("syntax", end, "Extra data")
    return loaded


def _load(text: str, start: int, rules: Rules, *, is_strict: bool) -> Loaded:
    loaded = Loaded(rules.max_digits)
    decoder = json.JSONDecoder(
        object_pairs_hook=loaded.make_object,
        parse_int=rules.integer or loaded.make_integer,
        parse_float=rules.fraction or loaded.make_fraction,
        parse_constant=rules.constant or _refuse_constant,
        strict=is_strict,
    )
    try:
        loaded.data, loaded.end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise JsonError("syntax", min(error.pos, len(text)), error.msg) from None
    except _NumberTooLongError:
        spans = (found.span(1) for found in _NUMBER.finditer(text, start))
        offset = next((first for first, last in spans if last - first > (rules.max_digits or 0)), start)
        raise JsonError("digits", offset, f"a number has more than {rules.max_digits:,} digits") from None
    except _ConstantError as error:
        offset = next((found.start(1) for found in _CONSTANT.finditer(text, start) if found[1]), start)
        raise JsonError("constant", offset, f"{error} is not JSON") from None
    return loaded


def measure_depth(text: str, start: int, most: int) -> None:
    """Check that the value at `start` nests no deeper than may be read; it stops where the value ends.

    Raises:
        JsonError: at the bracket that is too deep.
    """
    depth = 0
    for found in _STRUCTURE.finditer(text, start):
        if found[1]:
            depth += 1
            if depth > most:
                raise JsonError("depth", found.start(), f"nested deeper than {most} levels")
        elif found[0][0] != '"':
            depth -= 1
            if depth <= 0:
                return


def write_text(text: str) -> str:
    """A JSON string literal; half a character is written as an escape, since no UTF-8 holds it."""
    written = json.dumps(text, ensure_ascii=False)
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", written) if _LONE.search(written) else written


def write(value: Any, comma: str = ",", colon: str = ":") -> str:
    """A value as JSON text, numbers with the digits and the spelling they had. Depth is bounded by reading."""
    if type(value) is str:
        return write_text(value)
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, Spelled):
        return value.raw
    if isinstance(value, str):
        return write_text(value)
    if isinstance(value, Mapping):
        pairs = (f"{write_text(str(key))}{colon}{write(inner, comma, colon)}" for key, inner in value.items())
        return f"{{{comma.join(pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{comma.join(write(inner, comma, colon) for inner in value)}]"
    return json.dumps(value)


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
