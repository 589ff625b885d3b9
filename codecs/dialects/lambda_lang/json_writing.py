"""A record written back into the JSON form that it came in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import EncodeError
from .._record import Message
from .json_forms import TYPES_BY_NAME, compose
from .json_layers import LIFTED
from .scanning import scan_body
from .statements import UnclosedError

_SYMBOLS = {symbol: name for name, symbol in reversed(TYPES_BY_NAME.items())}


def find_json(messages: Sequence[Message]) -> Mapping[str, Any] | None:
    """What the JSON around a record held beside its Lambda text, if it came in JSON."""
    held = messages[0].attributes.get("json")
    return held if isinstance(held, Mapping) and held.get("type") else None


def leave_to_json(message: Message, held: Mapping[str, Any]) -> Message:
    """The message without what the JSON says already, so that its Lambda text need not say it too."""
    given: dict[str, Any] = {}
    for key, value in held.items():
        name = LIFTED.get(key, ("", ""))[0]
        if not name:
            continue
        if name == "receivers":
            value = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if getattr(message, name) == value:
            given[name] = () if name == "receivers" else None
    attributes = {name: value for name, value in message.attributes.items() if name != "json"}
    return message.replace(attributes=attributes, **given)


def write_json(text: str, held: Mapping[str, Any]) -> str:
    """The JSON form with this Lambda text: what it held, in its order, the text in its place.

    Raises:
        EncodeError: for a text that cannot be cut into tokens.
    """
    written: dict[str, Any] = {}
    if "tokens" in held:
        written.update(held)
        if not _says(held, text):
            symbol = next((symbol for symbol in _SYMBOLS if text.startswith(symbol)), "")
            start = len(symbol)
            try:
                tokens = [token.text for token in scan_body(text, start, len(text)) if token.kind != "space"]
            except UnclosedError as fault:
                reason = f"the {fault.opener!r} at character {fault.offset + 1} of the text never closes"
                raise EncodeError("lambda_lang", reason) from fault
            written |= {"type": _SYMBOLS.get(symbol, held["type"]), "tokens": tokens}
    else:
        after = "version" if "version" in held else "type"
        for key, value in held.items():
            written[key] = value
            if key == after:
                written["lambda"] = text
    return json.dumps(written, ensure_ascii=False, separators=(",", ":"))


def _says(held: Mapping[str, Any], text: str) -> bool:
    """Whether the type and the tokens that the JSON held are this text."""
    tokens, kind = held["tokens"], held["type"]
    if not isinstance(tokens, (list, tuple)) or not tokens or not all(isinstance(token, str) for token in tokens):
        return False
    symbol = kind if kind in _SYMBOLS else TYPES_BY_NAME.get(str(kind).lower(), "")
    return compose(symbol, list(tokens)) == text
