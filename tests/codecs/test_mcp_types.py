"""MCP beside its own types: whatever these can say is read as MCP, without a note, and answered as it should be.

The messages are made from the types of the package that the protocol's authors keep: each request, notification and
result of either side, with everything that it must have.
"""

from __future__ import annotations

import enum
import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types
import pydantic
import pytest

import dialects

SIDES = ("Client", "Server")
# What their types leave open and check nonetheless.
GIVEN: dict[str, dict[str, Any]] = {
    "InputRequiredResult": {"inputRequests": {"a": {"method": "roots/list"}}},
}
# These say nothing but that something was done, and could be of any protocol.
BARE = {"EmptyResult", "SubscriptionsListenResult"}
PING = '{"jsonrpc": "2.0", "id": 7, "method": "ping"}'


def make(kind: Any) -> Any:
    """A value of a type, with what it must have and no more."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return make(arguments[0])
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return make(next(each for each in arguments if each is not type(None)))
    if origin in (list, Sequence):
        return [make(arguments[0])]
    if origin in (dict, Mapping) or kind is dict:
        return {}
    if hasattr(kind, "__value__"):
        return make(kind.__value__)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        given = {field.alias or name: make(field.annotation) for name, field in kind.model_fields.items()
                 if field.is_required()}  # fmt: skip
        return kind.model_validate(given | GIVEN.get(kind.__name__, {}))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind)).value
    plain: dict[Any, Any] = {str: "word", bool: True, int: 1, float: 0.5, pydantic.FileUrl: "file:///srv/a"}
    return plain.get(kind, "word")


def list_kinds(what: str) -> list[tuple[str, Any]]:
    return [(side, kind) for side in SIDES for kind in typing.get_args(getattr(mcp_types, f"{side}{what}"))]


def write(kind: Any) -> dict[str, Any]:
    written: dict[str, Any] = make(kind).model_dump(by_alias=True, mode="json", exclude_none=True)
    return written


def read(said: Mapping[str, Any], *before: str) -> dialects.Message:
    """The one message of it, which is MCP's, in a conversation that these began, and has no note."""
    reading = dialects.decode(json.dumps({"jsonrpc": "2.0", **said}), prior=[(wire, None) for wire in before])
    assert reading.dialect == "mcp"
    (message,) = reading.messages
    assert not [*reading.notes, *message.notes]
    assert message.sentence.endswith(".")
    return message


@pytest.mark.parametrize(("side", "kind"), list_kinds("Request"), ids=lambda value: getattr(value, "__name__", value))
def test_each_request_is_read(side: str, kind: Any) -> None:
    said = write(kind)
    message = read({**said, "id": 7})
    assert message.native_act == said["method"]
    # A ping is sent by either.
    assert message.correlation_id == f"{side.lower() if said['method'] != 'ping' else 'client'}:7"
    if said["method"] == "tools/call":
        assert message.attributes["tool"] == said["params"]["name"]


@pytest.mark.parametrize(
    ("side", "kind"), list_kinds("Notification"), ids=lambda value: getattr(value, "__name__", value)
)
def test_each_notification_is_read(side: str, kind: Any) -> None:
    said = write(kind)
    message = read(said)
    assert message.native_act == said["method"]
    assert message.correlation_id is None


@pytest.mark.parametrize(("side", "kind"), list_kinds("Result"), ids=lambda value: getattr(value, "__name__", value))
def test_each_result_answers_the_request_of_the_other_side(side: str, kind: Any) -> None:
    # What only says that there is an answer any program may say.
    before = [PING] if kind.__name__ in BARE else []
    message = read({"id": 7, "result": write(kind)}, *before)
    if kind.__name__ not in BARE:
        assert message.parent_id == f"{'server' if side == 'Client' else 'client'}:7"


def test_a_failed_tool_is_a_failure() -> None:
    result = mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="no")], isError=True)
    said = {"jsonrpc": "2.0", "id": 7, "result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}
    (message,) = dialects.decode(json.dumps(said)).messages
    assert (message.performative, message.error and message.error.message) == ("failure", "no")
