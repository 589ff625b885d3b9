"""Chats beside the types of OpenAI and Anthropic: what these can say is read as a chat, without a note.

Each message, item, block and event is made from the types of their own packages, with what it must have.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pydantic
from anthropic import types as of_anthropic
from openai.types import chat as of_chat
from openai.types import responses as of_responses

import dialects

from ..each import for_each

# These say nothing by which they could be told from what any program writes.
BARE = {
    *("ChatCompletionAssistantMessageParam", "ChatCompletionMessage"),
    *("ResponseConfigurationUpdateItemParamParam", "CompactionTrigger", "ItemReference"),
}
# What the notes on these say is so: a result that need name no call, and results that are errors.
NOTED = {
    "ChatCompletionFunctionMessageParam": "chat.call-id-missing",
    "FunctionCallOutput": "chat.call-id-missing",
    "ResponseFunctionToolCallOutputItem": "chat.call-id-missing",
    "ErrorBlock": "chat.tool-failed",
}
# What their types leave open and is JSON nonetheless.
GIVEN = {"arguments": "{}"}


def make(kind: Any) -> Any:
    """A value of a type, as JSON has it, with what it must have and no more."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated or "Required" in str(origin):
        return make(arguments[0])
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return make(next(each for each in arguments if each is not type(None)))
    if origin in (list, Sequence, Iterable):
        return [make(arguments[0])]
    if origin in (dict, Mapping) or kind is dict:
        return {}
    if hasattr(kind, "__value__"):
        return make(kind.__value__)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        fields = {field.alias or name: field for name, field in kind.model_fields.items() if field.is_required()}
        return {name: GIVEN.get(name) or make(field.annotation) for name, field in fields.items()}
    if hasattr(kind, "__total__"):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {name: GIVEN.get(name) or make(hint) for name, hint in hints.items() if is_required(kind, hint)}
    plain: dict[Any, Any] = {bool: True, int: 1, float: 0.5}
    return plain.get(kind, "word")


def is_required(kind: Any, hint: Any) -> bool:
    """Whether a member of a typed dictionary must be there."""
    said = str(typing.get_origin(hint))
    return "NotRequired" not in said and (kind.__total__ or "Required" in said)


def list_kinds(union: Any) -> list[Any]:
    """The types that one of several is."""
    if typing.get_origin(union) is typing.Annotated:
        return list_kinds(typing.get_args(union)[0])
    if hasattr(union, "__value__"):
        return list_kinds(union.__value__)
    if typing.get_origin(union) in (typing.Union, types.UnionType):
        return [kind for each in typing.get_args(union) for kind in list_kinds(each)]
    return [union]


def read(said: Any) -> list[str]:
    """The codes of its notes; it is read as a chat, and each message of it is told."""
    reading = dialects.decode(json.dumps(said))
    assert reading.dialect == "chat", said
    assert all(message.sentence.endswith((".", "”")) for message in reading.messages)
    return [note.code for note in (*reading.notes, *(note for message in reading.messages for note in message.notes))]


ALONE = [
    *list_kinds(of_chat.ChatCompletionMessageParam),
    *(of_chat.ChatCompletion, of_chat.ChatCompletionChunk, of_chat.ChatCompletionMessage),
    *list_kinds(of_responses.ResponseInputItemParam),
    *list_kinds(of_responses.ResponseOutputItem),
    *list_kinds(of_responses.ResponseStreamEvent),
    of_responses.Response,
    *list_kinds(of_anthropic.MessageParam),
    of_anthropic.Message,
    *list_kinds(of_anthropic.RawMessageStreamEvent),
]


@for_each([kind for kind in ALONE if kind.__name__ not in BARE])
def test_each_type_is_read_alone(kind: Any) -> None:
    noted = NOTED.get(kind.__name__)
    assert read(make(kind)) == ([noted] if noted else []), kind.__name__


@for_each([kind for kind in ALONE if kind.__name__ in BARE])
def test_what_says_nothing_is_no_chat(kind: Any) -> None:
    assert dialects.decode(json.dumps(make(kind))).dialect == "prose"


@for_each(list_kinds(of_anthropic.ContentBlock))
def test_each_block_of_anthropic_is_read(kind: Any) -> None:
    said = make(of_anthropic.Message) | {"content": [make(kind)]}
    assert set(read(said)) <= {NOTED["ErrorBlock"]}


@for_each(list_kinds(of_responses.ResponseOutputItem))
def test_each_item_is_read_in_its_response(kind: Any) -> None:
    """Also where it would not be known alone."""
    response = make(of_responses.Response) | {"output": [make(kind)]}
    assert set(read(response)) <= {*NOTED.values()}
