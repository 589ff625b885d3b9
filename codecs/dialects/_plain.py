"""Messages read back from JSON types: what `to_dict` wrote, checked name by name against the record's own shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _record
from ._errors import DialectsError
from ._record import Message
from ._value import Value


class ShapeError(DialectsError):
    """What was given has not the shape of the normalised record.

    Attributes:
        path: where, as `$.messages[0].target.kind`.
        reason: what is wrong there.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{reason} @ {path}")
        self.path = path
        self.reason = reason


_SCALARS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float,), "bool": (bool,)}
_WORDS = {"Basis", "Severity", "Group"}


def messages_of(given: Any) -> tuple[Message, ...]:
    """The messages of a record in JSON types: a record with `messages`, a list of messages, or one message.

    Raises:
        ShapeError: for anything else.
    """
    if isinstance(given, Mapping) and "messages" in given:
        return _messages(given["messages"], "$.messages")
    return _messages(given if isinstance(given, list) else [given], "$")


def _messages(given: Any, path: str) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise ShapeError(path, "a list of messages is needed")
    return tuple(_build(Message, item, f"{path}[{place}]") for place, item in enumerate(given))


def _build(kind: type[Any], given: Any, path: str) -> Any:
    if not isinstance(given, Mapping):
        raise ShapeError(path, f"{kind.__name__} must be an object")
    names: dict[str, str] = kind.__annotations__
    for name in given:
        if name not in names:
            raise ShapeError(f"{path}.{name}", f"{kind.__name__} has no such name")
    missing = [name for name in names if name not in given and not hasattr(kind, name)]
    if missing:
        raise ShapeError(path, f"{kind.__name__} needs {', '.join(missing)}")
    return kind(**{name: _read(names[name], value, f"{path}.{name}") for name, value in given.items()})


def _read(shape: str, given: Any, path: str) -> Any:
    """A value of the shape that an annotation of the record names."""
    choices = shape.split(" | ")
    if given is None and "None" in choices:
        return None
    for choice in choices:
        if choice in ("Any", *_WORDS) or choice.startswith("Literal["):
            return given
        if choice in _SCALARS and isinstance(given, _SCALARS[choice]):
            if isinstance(given, bool) == (choice == "bool"):
                return given
        elif choice.startswith("Mapping[") and isinstance(given, Mapping):
            return dict(given)
        elif choice == "Span" or choice == "tuple[Any, int]":
            if isinstance(given, (list, tuple)) and len(given) == (3 if choice == "Span" else 2):
                return tuple(given)
        elif choice.startswith("tuple[") and isinstance(given, (list, tuple)):
            inner = choice.removeprefix("tuple[").removesuffix(", ...]")
            return tuple(_read(inner, item, f"{path}[{place}]") for place, item in enumerate(given))
        elif isinstance(found := getattr(_record, choice, None), type) and issubclass(found, Value):
            return _build(found, given, path)
    raise ShapeError(path, f"this must be {shape}")
