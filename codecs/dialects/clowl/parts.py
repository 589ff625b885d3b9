"""A record taken apart: the CLowl objects in it, and the comments, fences, commas and prose around them; and where a
message carries a token, and how that is kept out of everything but the wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from .._json import JsonError, Loaded, Rules, is_shallow, load
from .._positions import Node, Path, place
from .._record import MASK, NoteKind
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
