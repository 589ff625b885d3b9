"""A2A beside its SDK: what the types of versions 0.3 and 1.0 can say is read as A2A, without a note.

Each request and answer is made from the SDK's own types: those of 0.3 with what they must have, those of 1.0 with
everything that they may have.
"""

from __future__ import annotations

import enum
import json
import types
import typing
from typing import Any

import pydantic
import pytest
from a2a.compat.v0_3 import types as old
from a2a.types import a2a_pb2 as new
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as Protobuf

import dialects

# Where in an answer a task, a message, a card or something else of A2A stands; other answers are any protocol's.
ANSWERS_OF_0_3 = [
    name for name in dir(old)
    if name.endswith("SuccessResponse") and not name.startswith(("JSONRPC", "DeleteTaskPush"))
]  # fmt: skip
# A code of JSON-RPC itself may be any protocol's.
ERRORS_OF_0_3 = [
    name for name in dir(old)
    if name.endswith("Error") and name[0].isupper() and getattr(old, name).model_fields.get("code") is not None
    and getattr(old, name).model_fields["code"].default in range(-32099, -31999)
]  # fmt: skip
ANSWERS_OF_1_0 = [
    *("SendMessageResponse", "StreamResponse", "Task", "ListTasksResponse", "AgentCard", "TaskPushNotificationConfig"),
    "ListTaskPushNotificationConfigsResponse",
]
MAX_DEPTH = 4


def make(kind: Any) -> Any:
    """A value of a type of 0.3, as JSON has it, with what it must have and no more."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return make(arguments[0])
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return make(next(each for each in arguments if each is not type(None)))
    if origin is list:
        return [make(arguments[0])]
    if origin is dict:
        return {}
    if isinstance(kind, type) and issubclass(kind, pydantic.RootModel):
        return make(kind.model_fields["root"].annotation)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        given = {field.alias or name: make(field.annotation) for name, field in kind.model_fields.items()
                 if field.is_required()}  # fmt: skip
        return kind.model_validate(given).model_dump(by_alias=True, mode="json", exclude_none=True)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind)).value
    plain: dict[Any, Any] = {bool: True, int: 1, float: 0.5}
    return plain.get(kind, "word")


def fill(message: Protobuf, depth: int = 0) -> Protobuf:
    """A message of 1.0 with a value in every field, of a choice in the first."""
    for field in message.DESCRIPTOR.fields:
        is_other = field.containing_oneof is not None and field.containing_oneof.fields[0] is not field
        inner = field.message_type
        if is_other or depth > MAX_DEPTH or (inner and inner.GetOptions().map_entry):
            continue
        held = getattr(message, field.name)
        if inner and inner.full_name == "google.protobuf.Timestamp":
            held.seconds = 1_795_118_400
        elif inner and inner.file.name.startswith("google/protobuf/"):
            continue
        elif inner:
            fill(held.add() if field.is_repeated else held, depth + 1)
        elif field.is_repeated:
            held.append("word")
        elif field.enum_type:
            setattr(message, field.name, field.enum_type.values[1].number)
        else:
            setattr(message, field.name, type(held)("word" if isinstance(held, str) else 1))
    return message


def read(said: Any, *before: str) -> dialects.Message:
    """The first message of it, which is A2A's, in a conversation that these began; nothing of it has a note."""
    reading = dialects.decode(json.dumps(said), prior=[(wire, None) for wire in before])
    assert reading.dialect == "a2a"
    assert not [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    assert all(message.sentence for message in reading.messages)
    return reading.messages[0]


@pytest.mark.parametrize("kind", typing.get_args(old.A2ARequest.model_fields["root"].annotation))
def test_each_request_of_0_3_is_read(kind: Any) -> None:
    said = make(kind)
    message = read(said)
    assert message.native_act == said["method"]
    assert message.correlation_id == str(said["id"])
    params = said.get("params", {})
    if said["method"].startswith("tasks/") and "id" in params:
        assert message.task_id == params["id"]


@pytest.mark.parametrize("name", ANSWERS_OF_0_3)
def test_each_answer_of_0_3_is_read(name: str) -> None:
    said = make(getattr(old, name)) | {"id": 1}
    message = read(said)
    assert message.parent_id == "1"
    result = said["result"]
    if isinstance(result, dict) and result.get("kind") == "task":
        assert (message.task_id, message.conversation_id) == (result["id"], result["contextId"])


@pytest.mark.parametrize("name", ["Task", "TaskStatusUpdateEvent", "TaskArtifactUpdateEvent", "Message", "AgentCard"])
def test_each_object_of_0_3_is_read_alone(name: str) -> None:
    read(make(getattr(old, name)))


@pytest.mark.parametrize("name", ERRORS_OF_0_3)
def test_each_error_of_0_3_is_a_failure(name: str) -> None:
    said = make(getattr(old, name)) | {"code": getattr(old, name).model_fields["code"].default}
    wire = {"jsonrpc": "2.0", "id": 1, "error": said}
    message = read(wire, '{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}}')
    assert message.performative in ("failure", "not-understood")
    assert message.error
    assert message.error.code == str(said["code"])
    assert dialects.decode(json.dumps(wire)).dialect == "prose", "any program may answer so"


@pytest.mark.parametrize("method", [*new.DESCRIPTOR.services_by_name["A2AService"].methods], ids=lambda each: each.name)
def test_each_request_of_1_0_is_read(method: Any) -> None:
    params = MessageToDict(fill(getattr(new, method.input_type.name)()))
    message = read({"jsonrpc": "2.0", "id": "1", "method": method.name, "params": params})
    assert (message.native_act, message.correlation_id) == (method.name, "1")


@pytest.mark.parametrize("name", ANSWERS_OF_1_0)
def test_each_answer_of_1_0_is_read(name: str) -> None:
    said = MessageToDict(fill(getattr(new, name)()))
    assert read({"jsonrpc": "2.0", "id": "1", "result": said}).parent_id == "1"
    # Over HTTP without JSON-RPC they stand alone.
    if not name.startswith("List"):
        read(said)
