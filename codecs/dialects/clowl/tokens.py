"""Tokens: where a message carries one, and how it is kept out of everything but the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._positions import Path
from .._record import MASK
from .parts import Profile

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
