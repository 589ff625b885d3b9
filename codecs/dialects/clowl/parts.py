"""A record taken apart: how a text gives itself away as CLowl, and where an object that a log spreads over several
lines ends; the objects in it, and the comments, fences, commas and prose around them; and where a message carries a
token, and how that is kept out of everything but the wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from .._dialect import Block
from .._json import JsonError, Loaded, Node, Path, Rules, is_shallow, load, place
from .._record import MASK, Candidate, NoteKind
from .notes import NOT_JSON, NUMBER_TOO_LONG, TOO_DEEP

RULES = Rules(max_depth=100, max_digits=5_000, allows_controls=True)
PieceKind = Literal["object", "json", "prose", "broken", "comment", "fence", "list", "comma", "mark"]

# After so many unreadable objects the rest of a record is taken as text: each try may read far ahead.
MAX_FAILURES = 16

_SPACE = re.compile(r"[ \t\r\n]*+")
_LINE = re.compile(r"[^\n]*+")
# Where prose ends: an object that opens with one of CLowl's keys, a fence, or a comment line.
_KEYS = "clowl|cl|mid|ts|tid|pid|p|from|to|cid|body|task|data|ctx|semantic|routing|performative"
OPENER = re.compile(r'\{[ \t\r\n]*+"(?:' + _KEYS + r')"[ \t\r\n]*+:')
_RESUME = re.compile(r'\{[ \t\r\n]*+"(?:' + _KEYS + r')"[ \t\r\n]*+:|^[ \t]*+```|^[ \t]*+//', re.MULTILINE)
_NEXT_LINE = re.compile(r'\n[ \t]*+(?=\{[ \t\r\n]*+"(?:' + _KEYS + r')"[ \t\r\n]*+:)')
_LIST = re.compile(r"\[[ \t\r\n]*+(?=\{)")
_ENDS_LINE = re.compile(r"[ \t\r]*+(?:\n|,|\Z)")

# Commas and closing brackets are taken in runs: a text of nothing else is one piece.
_RUNS = {mark: re.compile(rf"\{mark}(?>(?:[ \t\r\n]*+\{mark})*)") for mark in ",]"}

_SEMANTIC = frozenset({"p", "from", "to", "task", "data"})
_COMMON = frozenset({"p", "from", "to", "cid", "mid", "ts", "tid", "pid", "body"})

Profile = Literal["0.1", "0.2", "semantic", "coordination"]


def profile_of(data: Any) -> Profile | None:
    """Which version's shape an object has, by its keys; None for a value that is no CLowl message."""
    if type(data) is not dict:
        return None
    if "semantic" in data and ("clowl" in data or "routing" in data):
        return "coordination"
    if "clowl" in data:
        return "0.2"
    if "cl" in data:
        return "0.1"
    held = data.keys()
    if len(_SEMANTIC & held) >= 4 and "body" not in data and "cid" not in data:
        return "semantic"
    if len(_COMMON & held) >= 3 and ("p" in data or "body" in data):
        return "0.2"
    return None


class UnreadableError(Exception):
    """An object that cannot be read.

    Attributes:
        kind: the kind of note it becomes.
        offset: where reading stopped, in code points of the text.
        reason: why, in words.
    """

    def __init__(self, kind: NoteKind, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.offset = offset
        self.reason = reason


def _explain(fault: JsonError) -> UnreadableError:
    if fault.kind == "depth":
        return UnreadableError(TOO_DEEP, fault.offset, fault.reason)
    if fault.kind == "digits":
        return UnreadableError(NUMBER_TOO_LONG, fault.offset, fault.reason)
    if fault.kind == "constant":
        return UnreadableError(NOT_JSON, fault.offset, "NaN and Infinity are not JSON")
    return UnreadableError(NOT_JSON, fault.offset, f"not JSON: {fault.said}")


class Piece:
    """One stretch [start, end) of a record. An object has its data, profile and oddities; a broken one its error.

    `tokens` are the secrets that must not show in it.
    """

    data: Any = None
    profile: Profile | None = None
    loaded: Loaded | None = None
    error: UnreadableError | None = None
    comments: tuple[Piece, ...] = ()
    tokens: tuple[str, ...] = ()

    def __init__(self, wire: str, kind: PieceKind, start: int, end: int) -> None:
        self.wire = wire
        self.kind = kind
        self.start = start
        self.end = end

    @property
    def text(self) -> str:
        """The characters of the piece."""
        return self.wire[self.start : self.end]

    @cached_property
    def node(self) -> Node:
        """Where everything in the object stands."""
        return place(self.wire, self.start, self.end)


def take_whole(wire: str, data: Any) -> Piece:
    """The one piece of a text that is a plain v0.2 object and nothing else."""
    piece = Piece(wire, "object", 0, len(wire))
    piece.data, piece.profile = data, "0.2"
    return piece


def divide(wire: str) -> list[Piece]:
    """The pieces of a record in wire order; white space between them is in none. Linear in the text."""
    return _Division(wire).pieces


class _Division:
    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.pieces: list[Piece] = []
        self._shallow = is_shallow(wire, RULES)
        self._failures = 0
        self._at = 0
        if wire.startswith("\ufeff"):
            self._take("mark", 1)
        while self._skip_space() < len(wire):
            self._step()

    def _skip_space(self) -> int:
        found = _SPACE.match(self.wire, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _take(self, kind: PieceKind, end: int) -> Piece:
        piece = Piece(self.wire, kind, self._at, end)
        self.pieces.append(piece)
        self._at = end
        return piece

    def _step(self) -> None:
        wire, at = self.wire, self._at
        mark = wire[at]
        if mark == "{" and self._failures < MAX_FAILURES:
            self._take_object()
        elif wire.startswith("//", at):
            self._take("comment", self._end_of_line())
        elif wire.startswith("```", at):
            self._take("fence", self._end_of_line())
        elif mark == "[" and _LIST.match(wire, at):
            self._take("list", at + 1)
        elif mark == "[" and self._failures < MAX_FAILURES:
            self._take_array()
        elif mark in ",]" and self.pieces:
            self._take("comma" if mark == "," else "list", self._end_of_run(_RUNS[mark]))
        else:
            self._take_prose()

    def _end_of_run(self, run: re.Pattern[str]) -> int:
        found = run.match(self.wire, self._at)
        return found.end() if found else self._at + 1

    def _end_of_line(self) -> int:
        found = _LINE.match(self.wire, self._at)
        end = found.end() if found else len(self.wire)
        return end - 1 if self.wire[end - 1 : end] == "\r" else end

    def _take_object(self) -> None:
        try:
            loaded = load(self.wire, self._at, RULES, shallow=self._shallow)
        except JsonError as fault:
            self._failures += 1
            self._take_broken(_explain(fault))
            return
        profile = profile_of(loaded.data)
        piece = self._take("object" if profile else "json", loaded.end)
        piece.data, piece.profile, piece.loaded = loaded.data, profile, loaded

    def _take_array(self) -> None:
        """A list that fills its line is JSON and no message; a bracket that opens a remark, as `[1] see`, is prose."""
        try:
            loaded = load(self.wire, self._at, RULES, shallow=self._shallow)
        except JsonError:
            self._failures += 1
            self._take_prose()
            return
        if not _ENDS_LINE.match(self.wire, loaded.end):
            self._failures += 1
            self._take_prose()
            return
        piece = self._take("json", loaded.end)
        piece.data, piece.loaded = loaded.data, loaded

    def _take_broken(self, error: UnreadableError) -> None:
        if not OPENER.match(self.wire, self._at):
            self._take_prose()
            return
        following = _NEXT_LINE.search(self.wire, self._at)
        piece = self._take("broken", following.start() if following else len(self.wire))
        piece.error = error

    def _take_prose(self) -> None:
        following = None
        if self._failures < MAX_FAILURES:
            following = _RESUME.search(self.wire, self._at + 1)
        end = following.start() if following else len(self.wire)
        before = self.pieces[-1] if self.pieces else None
        if before is not None and before.kind == "prose":
            before.end = self._at = end
            return
        while self.wire[end - 1] in " \t\r\n":
            end -= 1
        self._take("prose", end)


# A token shorter than this is not looked for in the rest of the message: it would be found in ordinary words.
_SHORTEST = 6
# So many tokens of one message are looked for in the rest of it; each costs a pass over its text.
_MAX_TOKENS = 16

# In text that is not JSON a token can be told by its key alone.
_SECRET_TEXT = re.compile(r'"(?:auth|token)"[ \t\r\n]*+:[ \t\r\n]*+("(?>(?:[^"\\]++|\\.)*)"?)', re.DOTALL)


def find_tokens(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets of a message and of messages in its details: what stands in `auth` beside issuer and scopes."""
    found: set[str] = set()
    stack = [_find_auth(data), *(_find_auth(value) for value in _find_details(data).values() if is_message(value))]
    while stack:
        value = stack.pop()
        if isinstance(value, str) and len(value) >= _SHORTEST:
            found.add(value)
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return tuple(sorted(found, key=lambda token: (-len(token), token))[:_MAX_TOKENS])


def is_message(value: Any) -> bool:
    """Whether a value within the details is a message itself: it has a version key."""
    return isinstance(value, dict) and ("clowl" in value or "cl" in value)


def _find_auth(data: Mapping[str, Any]) -> Any:
    auth = data.get("auth")
    if isinstance(auth, dict):
        return [value for key, value in auth.items() if key not in ("issuer", "scopes")]
    return auth


def _find_details(data: Mapping[str, Any]) -> Mapping[str, Any]:
    for holder, key in ((data.get("body"), "d"), (data, "data"), (data.get("semantic"), "data")):
        details = holder.get(key) if isinstance(holder, Mapping) else None
        if isinstance(details, dict):
            return details
    return {}


def may_mask(wire: str) -> bool:
    """Whether a text may hold what is masked here; without, nothing of it is.

    A secret stands in `auth`, or in text behind the key `auth` or `token`. Of a key of JSON a letter can be written
    otherwise in one way alone.
    """
    return "auth" in wire or '"token"' in wire or "\\u" in wire


def hide(value: Any, tokens: tuple[str, ...]) -> Any:
    """The value with every token in it replaced by the mask; the value itself where there is nothing to hide."""
    if not tokens:
        return value
    if isinstance(value, str):
        for token in tokens:
            if token in value:
                value = value.replace(token, MASK)
        return value
    if isinstance(value, dict):
        return {hide(key, tokens): hide(inner, tokens) for key, inner in value.items()}
    if isinstance(value, list):
        return [hide(inner, tokens) for inner in value]
    return value


def is_secret(path: Path, profile: Profile) -> bool:
    """Whether the value at this path of an object is a secret, or lies within one."""
    if not path or path[0] != "auth":
        return False
    return not (profile == "coordination" and (len(path) == 1 or path[1] in ("issuer", "scopes")))


def hide_secrets(text: str) -> str:
    """The text with what follows the keys `auth` and `token` masked: for text that is not JSON."""
    return _SECRET_TEXT.sub(lambda found: found[0][: found.start(1) - found.start()] + f'"{MASK}"', text)


def find_secrets(text: str) -> list[tuple[int, int]]:
    """Where in text that is not JSON the values of `auth` and `token` stand."""
    return [found.span(1) for found in _SECRET_TEXT.finditer(text)]


VERSIONED = Candidate(dialect="clowl", score=0.98, why="an object with CLowl's version key")
_COORDINATED = Candidate(dialect="clowl", score=0.95, why="an object with the keys of the coordination envelope")

_LIKE_SEMANTIC = Candidate(dialect="clowl", score=0.85, why="an object with the keys of CLowl-S")

_UNVERSIONED = Candidate(dialect="clowl", score=0.75, why="an object with CLowl's keys and no version")
_WITHIN = Candidate(dialect="clowl", score=0.6, why="an object with CLowl's version key within other text")

_VERSION_KEY = re.compile(r'"(?:clowl|cl)"[ \t\r\n]*+:')
_VERSION_NAMES = frozenset(('"clowl"', '"cl"'))
_HEAD = re.compile(r"\ufeff?(?>(?:[ \t\r\n]++|//[^\n]*+\n|```[a-z]*+[ \t\r]*+\n|\[(?=[ \t\r\n]*+\{))*)\{")
_WITHIN_TEXT = re.compile(r'\{[ \t\r\n]*+"(?:clowl|cl)"[ \t\r\n]*+:')
_MARKS = frozenset("{[/`\ufeff \t\r\n")
# So far into a text the keys of its first object are looked for at once; a version key may stand anywhere in it.
_NEAR = 4_096
# A string, as a key where a colon follows it, or what an object or a list begins and ends with.
_MARK = re.compile(r'"(?>(?:[^"\\]++|\\.)*)(?:"|\Z)(?:(?=[ \t\r\n]*+:)|(?P<value>))|[{}\[\]]', re.DOTALL)
# How many of these are passed to find keys that stand behind long values: an id of a megabyte is one or two.
_MAX_MARKS = 20_000


def sniff(wire: str) -> Candidate | None:
    """How much a text looks like CLowl: by the keys of its first object, or of one within other text."""
    if wire[:9] == '{"clowl":':
        return VERSIONED
    if wire[:1] in _MARKS and (head := _HEAD.match(wire)):
        return _sniff_object(wire, head.end())
    if '"clowl"' in wire or '"cl"' in wire:
        return _WITHIN if _WITHIN_TEXT.search(wire) else None
    return None


def _sniff_object(wire: str, start: int) -> Candidate | None:
    """By the keys of the object whose members begin at `start`."""
    version = _VERSION_KEY.search(wire)
    if version and "{" not in (before := wire[start : version.start()]) and "[" not in before:
        return VERSIONED
    if version and not _VERSION_NAMES.isdisjoint(_find_keys(wire, start, beside=True)):
        return VERSIONED
    return _judge(_find_keys(wire, start)) if '"p"' in wire or '"semantic"' in wire else None


def _judge(held: Set[str]) -> Candidate | None:
    if '"semantic"' in held and '"routing"' in held:
        return _COORDINATED
    if '"p"' not in held:
        return None
    if '"task"' in held and '"from"' in held and '"to"' in held and '"cid"' not in held:
        return _LIKE_SEMANTIC
    count = sum(key in held for key in ('"from"', '"to"', '"cid"', '"body"', '"mid"'))
    return _UNVERSIONED if count >= 3 else None


def _find_keys(wire: str, start: int, *, beside: bool = False) -> set[str]:
    """The keys of that object itself, quotes included, however long the values between them are.

    With `beside`, those of the objects that follow it too.
    """
    keys: set[str] = set()
    depth = 0
    for found in islice(_MARK.finditer(wire, start), _MAX_MARKS):
        mark = found[0]
        if mark[0] == '"':
            if not depth and found["value"] is None and len(mark) < _NEAR:
                keys.add(mark)
        elif mark in "{[":
            depth += 1
        else:
            depth = max(-1, depth - 1)
            if depth < 0 and not beside:
                break
    return keys


# A message over more lines than this is taken as cut; the framer bounds its bytes.
MAX_LINES = 20_000

_TOKEN = re.compile(r'"(?>(?:[^"\\]++|\\.)*)("?)|([{\[])|([}\]])|([^\s"{}\[\]])', re.DOTALL)
_OPENS = re.compile(r'[ \t]*+(?:\[[ \t]*+)?(?:\{[ \t]*+(?:"|\Z)|\Z)')
_STARTS_ANEW = re.compile(r'\{[ \t]*+"(?:clowl|cl)"[ \t]*+:')
_VALUE_STARTS = frozenset('"{[-0123456789tfn')


def open_block(line: str) -> Block | None:
    """The block that a line opens: an object or list left open, a comment before an object, or a code fence."""
    text = line.strip()
    if text.startswith("```"):
        return _Fence() if text[3:].strip().lower() in ("", "json", "clowl") else None
    if text.startswith("//"):
        return _Object(is_comment=True)
    if not text or text[0] not in "{[" or not _OPENS.match(text):
        return None
    block = _Object()
    block.scan(text)
    return None if block.is_complete or block.is_broken else block


class _Object:
    """Brackets and strings counted line by line; a line that JSON does not allow here is not part of the object."""

    def __init__(self, *, is_comment: bool = False) -> None:
        self.is_complete = is_comment
        self.lines_if_cut: int | None = None
        self.is_broken = False
        self._is_comment = is_comment
        self._open: list[str] = []
        self._last = ""
        self._lines = 1

    def scan(self, line: str) -> None:
        """Count the brackets of a line."""
        for found in _TOKEN.finditer(line):
            if found[2]:
                self._open.append(found[2])
                self._last = found[2]
            elif found[3]:
                if not self._open:
                    self.is_broken = True
                    return
                self._open.pop()
                self._last = found[3]
            elif found[4]:
                self._last = found[4]
            else:
                # A JSON string ends on the line on which it began: an open one was cut.
                self.is_broken = not found[1]
                self._last = '"'
            if len(self._open) > RULES.max_depth:
                self.is_broken = True
        self.is_complete = not self._open and not self.is_broken

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether this next line belongs to the object."""
        text = line.strip()
        if self._is_comment:
            return self._feed_comment(text)
        if not text:
            return "more"
        if self.is_broken or self._lines >= MAX_LINES or not self._may_follow(text):
            return "not"
        self._lines += 1
        self.scan(text)
        return "last" if self.is_complete else "more"

    def _feed_comment(self, text: str) -> Literal["more", "last", "not"]:
        if text.startswith("//"):
            return "more"
        if not OPENER.match(text) and text != "{":
            return "not"
        self._is_comment = False
        self.scan(text)
        return "last" if self.is_complete else "more"

    def _may_follow(self, text: str) -> bool:
        """Whether JSON may go on with this line, after the last character and within the innermost bracket."""
        first, inside = text[0], self._open[-1] if self._open else ""
        if inside == "{":
            if self._last == ":":
                return first in _VALUE_STARTS
            if self._last in "{,":
                return first == '"' or (first == "}" and self._last == "{")
            return first in ",}:"
        if _STARTS_ANEW.match(text) and self._last not in "[,":
            return False
        if self._last in "[,":
            return first in _VALUE_STARTS or first == "]"
        return first in ",]"


class _Fence:
    """A code fence: the record ends with the fence's own closing line."""

    def __init__(self) -> None:
        self.is_complete = False
        self.lines_if_cut: int | None = 1
        self._lines = 1

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether this next line belongs to the fence."""
        self._lines += 1
        if line.strip() == "```":
            self.is_complete, self.lines_if_cut = True, None
            return "last"
        return "more" if self._lines < MAX_LINES else "not"
