"""The two JSON forms of a message: the pilot envelope around a Lambda text, and v0.9's object of tokens.

    {"type": "lambda", "version": "1.5.0", "lambda": "?Uk/co", "english": "…"}
    {"version": "1.0", "type": "assert", "tokens": ["I", "k", "/", "co"], "english": "…"}

Arbitrary JSON with a `type` is neither: the first needs the Lambda text as a string, the second a version, a type
of the dialect and a list of tokens, and both a text that can be Lambda.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .._json import JsonError, Rules, is_shallow, load, place, skip_space

# The keys of a form stand this near its beginning, or it is none.
_NEAR = 4096
_HEAD = re.compile(r'\ufeff?\s*\{\s*"')
_CUT = re.compile(r'\ufeff?\s*\{\s*"type"\s*:\s*"lambda"\s*[,}]')
_TEXT_KEY = re.compile(r'"lambda"\s*:\s*"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_VERSION = re.compile(r"v?(\d{1,8}(?:\.\d{1,8}){0,3})\Z")
_MAX_TOKEN_LENGTH = 256
_WORD_ENDS = re.compile(r"[A-Za-z0-9]\Z")
_WORD_STARTS = re.compile(r"[a-z0-9]")

# What the type of an object of tokens is called, to the symbol that it stands for.
TYPES_BY_NAME = {
    "query": "?",
    "question": "?",
    "assert": "!",
    "assertion": "!",
    "command": ".",
    "uncertain": "~",
    "offer": ">",
    "accept": "<",
    "meta": "#",
}
_SYMBOLS = frozenset(TYPES_BY_NAME.values())
_OPENS = re.compile(r"[?!.~>#@{<]")
_PILOT_KEYS = frozenset({"type", "version", "lambda", "english", "chinese"})


class Member(NamedTuple):
    """A key of the object and its value, with their places (of strings: what is between the quotes)."""

    key: str
    key_at: tuple[int, int]
    value: Any
    value_at: tuple[int, int]


class JsonForm(NamedTuple):
    """A JSON form.

    Attributes:
        kind: `pilot` or `tokens`.
        members: the members of the object in order.
        text: the Lambda text; of tokens, the type's symbol and the tokens, a space between two that would run together.
        at: where the text, or the list of tokens, stands.
        tokens: the place of each token.
        version: the version that the form states, without a `v`.
        is_known_type: whether the type of an object of tokens is one of the dialect.
    """

    kind: str
    members: tuple[Member, ...]
    text: str
    at: tuple[int, int]
    tokens: tuple[tuple[str, tuple[int, int]], ...] = ()
    version: str | None = None
    is_known_type: bool = True

    def find(self, key: str) -> Member | None:
        """The last member of that key, as JSON has it."""
        return next((member for member in reversed(self.members) if member.key == key), None)


class NotJsonError(Exception):
    """The text is no JSON object, from `offset` on."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


def may_be_form(wire: str) -> bool:
    """Whether it is worth while to read a text as JSON: a look at its first characters."""
    if not _HEAD.match(wire):
        return False
    near = wire[:_NEAR]
    return '"type"' in near and ('"lambda"' in near or '"tokens"' in near)


def is_cut(wire: str) -> bool:
    """Whether a text that is no JSON opens as a pilot envelope does."""
    return bool(_CUT.match(wire) and _TEXT_KEY.search(wire[:_NEAR]))


def find_form(wire: str) -> JsonForm | None:
    """The JSON form that a text is, or None.

    Raises:
        NotJsonError: for a text that opens as a pilot envelope and is no JSON.
    """
    if not may_be_form(wire):
        return None
    try:
        members = _read_object(wire)
    except NotJsonError:
        if is_cut(wire):
            raise
        return None
    kind = {member.key: member.value for member in members}.get("type")
    if kind == "lambda":
        return _find_pilot(members)
    return _find_tokens(wire, members)


def _find_pilot(members: tuple[Member, ...]) -> JsonForm | None:
    form = JsonForm("pilot", members, "", (0, 0), version=_find_version(members))
    held = form.find("lambda")
    if held is None or not isinstance(held.value, str):
        return None
    return form._replace(text=held.value, at=held.value_at)


def _find_tokens(wire: str, members: tuple[Member, ...]) -> JsonForm | None:
    form = JsonForm("tokens", members, "", (0, 0), version=_find_version(members))
    named, held = form.find("type"), form.find("tokens")
    if named is None or held is None or not isinstance(named.value, str) or form.version is None:
        return None
    tokens = held.value
    if not isinstance(tokens, list) or not tokens:
        return None
    if not all(isinstance(token, str) and 0 < len(token) <= _MAX_TOKEN_LENGTH for token in tokens):
        return None
    symbol = named.value if named.value in _SYMBOLS else TYPES_BY_NAME.get(named.value.lower())
    text = compose(symbol or "", tokens)
    return form._replace(
        text=text, at=held.value_at, tokens=_place_tokens(wire, held), is_known_type=symbol is not None
    )


def compose(symbol: str, tokens: list[str]) -> str:
    """The Lambda text of a type's symbol and its tokens; a symbol that the tokens repeat stands once."""
    text = "" if tokens[0] == symbol else symbol
    for token in tokens:
        if _WORD_ENDS.search(text[-1:]) and text[-1:].islower() and _WORD_STARTS.match(token):
            text += " "
        text += token
    return text


def show_surrogates(text: str) -> str:
    """The text with half characters, which no file can hold, as the escapes they were written with."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _find_version(members: tuple[Member, ...]) -> str | None:
    stated = next((member.value for member in reversed(members) if member.key == "version"), None)
    is_plain = isinstance(stated, (str, int, float)) and not isinstance(stated, bool)
    found = _VERSION.match(str(stated)) if is_plain else None
    return found[1] if found else None


def judge(form: JsonForm, sniff: Callable[[str], float]) -> tuple[float, str]:
    """How likely a form is the dialect's, with the reason; `sniff` scores a Lambda text."""
    score = sniff(form.text)
    if form.kind == "pilot":
        if score >= 0.5:
            return 0.97, "the pilot envelope in JSON around a Lambda text"
        own = all(member.key in _PILOT_KEYS for member in form.members)
        if own and (not form.text or _OPENS.match(form.text)):
            return 0.9, "the pilot envelope in JSON"
        if score >= 0.2:
            return 0.7, "the pilot envelope in JSON around what may be Lambda"
        return 0.2, "possibly lambda: an envelope in JSON, but its text is none"
    if form.is_known_type and score >= 0.4:
        return 0.95, "the JSON form of v0.9: version, type and tokens"
    return 0.2, "possibly lambda: an object of tokens, but they are none of the dialect"


# Numbers that Python would round, refuse or spell otherwise stay as their digits.
def _keep_integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 16 else digits


def _keep_fraction(digits: str) -> float | str:
    number = float(digits)
    return number if repr(number) == digits else digits


# Values beside the text that nest deeper than this are not read.
_RULES = Rules(max_depth=100, integer=_keep_integer, fraction=_keep_fraction, constant=str)


def _read_object(wire: str) -> tuple[Member, ...]:
    """The members of the object that a text is, each with its place.

    Raises:
        NotJsonError: where it stops being JSON, or nests deeper than can be read.
    """
    is_plain = is_shallow(wire, _RULES)
    at = skip_space(wire, 1 if wire[:1] == "\ufeff" else 0)
    members: list[Member] = []
    at = skip_space(wire, at + 1)
    while wire[at : at + 1] != "}" or members:
        key, key_at, at = _read_value(wire, at, is_plain)
        if not isinstance(key, str):
            raise NotJsonError(key_at[0], "a key must be a string")
        at = skip_space(wire, at)
        if wire[at : at + 1] != ":":
            raise NotJsonError(at, "a colon is missing")
        value, value_at, at = _read_value(wire, skip_space(wire, at + 1), is_plain)
        members.append(Member(key, key_at, value, value_at))
        at = skip_space(wire, at)
        if wire[at : at + 1] == "}":
            break
        if wire[at : at + 1] != ",":
            raise NotJsonError(at, "a comma or the closing brace is missing")
        at = skip_space(wire, at + 1)
    if skip_space(wire, at + 1) != len(wire):
        raise NotJsonError(at + 1, "more text follows the object")
    return tuple(members)


def _read_value(wire: str, at: int, is_plain: bool) -> tuple[Any, tuple[int, int], int]:
    """(the value, where it stands, where it ends); of a string the quotes are left out of its place."""
    try:
        loaded = load(wire, at, _RULES, shallow=is_plain)
    except JsonError as fault:
        if fault.kind == "depth":
            raise NotJsonError(at, f"this value is {fault.reason}") from None
        raise NotJsonError(fault.offset, fault.reason.removesuffix(" starting at")) from None
    value, end = _show_deep(loaded.data), loaded.end
    return value, (at + 1, end - 1) if isinstance(value, str) and wire[at] == '"' else (at, end), end


def _show_deep(value: Any) -> Any:
    """The value without half characters."""
    if isinstance(value, str):
        return show_surrogates(value)
    if isinstance(value, list):
        return [_show_deep(item) for item in value]
    if isinstance(value, dict):
        return {show_surrogates(key): _show_deep(item) for key, item in value.items()}
    return value


def _place_tokens(wire: str, held: Member) -> tuple[tuple[str, tuple[int, int]], ...]:
    nodes = place(wire, *held.value_at).members
    return tuple((token, (node.start + 1, node.end - 1)) for token, node in zip(held.value, nodes, strict=True))
