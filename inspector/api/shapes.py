"""The normalised record as JSON schemas, worked out from the codecs' own values, so that neither can drift."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Final

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework.serializers import Serializer

import dialects
from dialects import Candidate, Field, Layer, Loss, Message, Note

# In the order in which one may name another.
VALUES: Final = (
    dialects.Segment,
    dialects.Target,
    dialects.Moment,
    dialects.Priority,
    dialects.Failure,
    dialects.Reference,
    dialects.Definition,
    dialects.Security,
    dialects.Parent,
    Note,
    Candidate,
    Layer,
    Field,
    Loss,
    Message,
)
_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_OBJECT: Final = {"type": "object", "additionalProperties": {}}


def refer(name: str) -> dict[str, Any]:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(shape: Mapping[str, Any]) -> dict[str, Any]:
    """An array of this shape."""
    return {"type": "array", "items": dict(shape)}


def or_null(shape: Mapping[str, Any]) -> dict[str, Any]:
    """This shape, or null."""
    return {"anyOf": [dict(shape), {"type": "null"}]}


def describe_value(value: type[Any]) -> dict[str, Any]:
    """The schema of a codec's value as `to_dict` writes it; no name is required, for what is absent may be left out."""
    hints = typing.get_type_hints(value)
    return {
        "type": "object",
        "properties": {name: describe_type(hints[name]) for name in value._order},
        "additionalProperties": False,
    }


def describe_type(kind: Any) -> dict[str, Any]:
    """The schema of an annotation.

    Raises:
        TypeError: for one that no rule here knows; the schema of the API is then not made at all.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind in VALUES:
        return refer(name_of(kind))
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [describe_type(choice) for choice in inner]}
    if origin is typing.Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is tuple and inner[-1] is Ellipsis:
        return list_of(describe_type(inner[0]))
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [describe_type(item) for item in inner],
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    if origin is not None and issubclass(origin, Mapping):
        return dict(_OBJECT)
    raise TypeError(f"{kind} has no schema")


def name_of(value: type[Any]) -> str:
    """The component's name: what the API calls a message in a list is another thing than the codecs' message."""
    return f"Told{value.__name__}"


def show(shape: type[Serializer[Any]], row: Any, **worked_out: Any) -> dict[str, Any]:
    """A row in the shape that the schema has of it: each member by its `source` or name in the row, or worked out.

    What a `source` names by way of something that is not there is None.
    """
    return {
        name: worked_out[name] if name in worked_out else _follow(row, member.source or name)
        for name, member in shape._declared_fields.items()
    }


def _follow(row: Any, source: str) -> Any:
    for name in source.split("."):
        row = None if row is None else getattr(row, name)
    return row


TEXT_OR_NULL: Final = or_null({"type": "string"})
DECODED: Final = {
    "type": "object",
    "properties": {
        "index": {"type": "integer", "minimum": 0},
        "dialect": TEXT_OR_NULL,
        "version": TEXT_OR_NULL,
        "vocabulary": TEXT_OR_NULL,
        "candidates": list_of(refer(name_of(Candidate))),
        "footer": or_null(_OBJECT),
        "messages": list_of(refer(name_of(Message))),
        "notes": list_of(refer(name_of(Note))),
        "error": or_null(
            {
                "type": "object",
                "properties": {
                    "kind": {"type": "string"},
                    "reason": {"type": "string"},
                    "offset": or_null({"type": "integer"}),
                },
                "required": ["kind", "reason", "offset"],
                "additionalProperties": False,
            }
        ),
        "fields": list_of(refer(name_of(Field))),
        "layers": list_of(refer(name_of(Layer))),
    },
    "required": [
        "index",
        "dialect",
        "version",
        "vocabulary",
        "candidates",
        "messages",
        "footer",
        "notes",
        "error",
    ],
    "additionalProperties": False,
}


class DescriptionGenerator(SchemaGenerator):
    """The generator of the description, which knows the codecs' own values as components."""

    def parse(self, *args: Any, **names: Any) -> Any:
        """The paths; the operations may name any of the components."""
        shapes = {name_of(value): describe_value(value) for value in VALUES} | {"DecodedRecord": DECODED}
        for name, shape in shapes.items():
            self.registry.register_on_missing(
                ResolvedComponent(  # type: ignore[no-untyped-call]  # it has no types
                    name=name, type=ResolvedComponent.SCHEMA, schema=shape, object=name
                )
            )
        return super().parse(*args, **names)  # type: ignore[no-untyped-call]  # it has no types
