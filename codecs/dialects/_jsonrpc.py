"""JSON-RPC 2.0, of which several carriers are made: requests, notifications, results and errors, also in a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from ._dialect import Reply
from ._draft import Draft
from ._english import TRUTHS, quote, say_name
from ._inner import is_spoken
from ._json import JsonError, Path, Rules, load_whole, write
from ._record import Failure, Message

_RULES: Final = Rules(max_depth=64, allows_controls=True)
# What the specification says of its error codes (section 5.1).
ERRORS: Final = {
    -32700: "the JSON could not be read",
    -32600: "it is no valid request",
    -32601: "there is no such method",
    -32602: "the parameters are not valid",
    -32603: "an internal error",
}
# Those that say that a message was not understood.
NOT_UNDERSTOOD: Final = frozenset({-32700, -32600, -32601, -32602})


class Call(NamedTuple):
    """One object of JSON-RPC: where it stands, what it is, and its id as text; none in a notification."""

    path: Path
    data: dict[str, Any]
    kind: Literal["request", "notification", "result", "error"]
    id: str | None

    @property
    def method(self) -> str:
        """The method that is called; empty in an answer."""
        method = self.data.get("method")
        return method if isinstance(method, str) else ""

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name; empty where they are none or a list."""
        params = self.data.get("params")
        return params if isinstance(params, dict) else {}


def list_calls(data: Any) -> list[Call]:
    """The objects of a JSON value, in order; none where one of them is not JSON-RPC 2.0."""
    items = [((index,), item) for index, item in enumerate(data)] if isinstance(data, list) else [((), data)]
    found = [call for path, item in items if (call := _read_call(path, item)) is not None]
    return found if len(found) == len(items) else []


def _read_call(path: Path, item: Any) -> Call | None:
    if not isinstance(item, dict) or item.get("jsonrpc") != "2.0":
        return None
    own = item.get("id")
    name = None if own is None or isinstance(own, (dict, list, bool)) else own if isinstance(own, str) else write(own)
    if isinstance(item.get("method"), str):
        return Call(path, item, "notification" if "id" not in item else "request", name)
    if isinstance(item.get("error"), dict):
        return Call(path, item, "error", name)
    return Call(path, item, "result", name) if "result" in item else None


def read_failure(call: Call) -> Failure:
    """What an error says of itself."""
    error = call.data["error"]
    code, message = error.get("code"), error.get("message")
    return Failure(
        code=None if code is None else write(code) if not isinstance(code, str) else code,
        message=message if isinstance(message, str) else None,
        cause=ERRORS.get(code) if isinstance(code, int) else None,
    )


def _say_code(code: str) -> str:
    return code if re.fullmatch(r"-?\d{1,6}", code) else say_name(code)


def find_replies(message: Message) -> Sequence[Reply]:
    """An answer bears the id of its request, a report of progress its token; anything else only follows."""
    if message.parent_id is not None:
        why = "it names that request"
        return (Reply(whom="correlation-id", basis="correlation", why=why, value=message.parent_id),)
    return (Reply(whom="previous", basis="adjacency", why="it follows in the same conversation"),)


def say_failure(failure: Failure) -> str:
    """An error's code with what it stands for: `error -32601 (there is no such method)`."""
    code = "an error without a code" if failure.code is None else f"error {_say_code(failure.code)}"
    return code if failure.cause is None else f"{code} ({failure.cause})"


def list_values(value: Any, path: Path) -> Iterator[tuple[str, Path, Any]]:
    """The members of an object as (name, path, value); one without a name where it is no object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield say_name(key), (*path, key), inner
    elif value is not None:
        yield "", path, value


def say_values(draft: Draft, given: Any, path: Path, *, is_heard: bool = False) -> Draft:
    """Say which members of an object, or of a text that is one in JSON, speak a dialect, and what they say in it."""
    written = given if isinstance(given, str) else write(given) if isinstance(given, dict) else ""
    try:
        held = load_whole(written, _RULES).data if written.lstrip()[:1] == "{" else None
    except JsonError:
        return draft
    if not isinstance(held, dict) or is_spoken(written):
        return draft
    for name, at, value in list_values(held, path):
        text = value if isinstance(value, str) else write(value) if isinstance(value, dict) else ""
        if is_spoken(text):
            if isinstance(given, str) and path not in draft.opened:
                draft.open(path)
            draft.say(f", where {name} is ", at).carry(at, is_heard=is_heard)
    return draft


def say_scalar(value: Any) -> str:
    """A number or null as JSON writes it, a truth value in words, a text quoted."""
    written = quote(value) if type(value) is str else write(value)
    return TRUTHS.get(written, written)
