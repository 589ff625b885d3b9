"""The base of every value: frozen, keyword-only, complete once it is built.

Values are made by the hundred thousand, and most of their names stay at their default. A value therefore
keeps only what it was given; a name that was not given is read from the class. Building one is a single
dictionary update, which is what makes a record of some fifty names affordable for each message.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self, dataclass_transform

_new, _set = object.__new__, object.__setattr__


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """A frozen value with keyword-only names.

    Annotated names of the class are its fields; one without a default must be given.

    Raises:
        TypeError: for a name the class does not have, and for a missing name that has no default.
        AttributeError: on assignment, for values do not change.
    """

    _names: ClassVar[frozenset[str]] = frozenset()
    _needed: ClassVar[frozenset[str]] = frozenset()
    _order: ClassVar[tuple[str, ...]] = ()
    # Of each name its default, and whether it is made on demand.
    _defaults: ClassVar[tuple[tuple[str, Any, bool], ...]] = ()
    # Every name with its default; None for a class whose values keep more than their names.
    _blank: ClassVar[dict[str, Any] | None] = None
    # What a class keeps in its values beside their names; `replace` hands it on, and it is never shown or compared.
    _carried: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        order = list(cls._order)
        for name, kind in cls.__annotations__.items():
            if not name.startswith("_") and not str(kind).startswith("ClassVar") and name not in order:
                order.append(name)
        cls._order = tuple(order)
        cls._names = frozenset(order)
        cls._needed = frozenset(name for name in order if not hasattr(cls, name))
        defaults = ((name, getattr(cls, name, None)) for name in order)
        cls._defaults = tuple((name, default, isinstance(default, cached_property)) for name, default in defaults)
        is_worked_out = any(isinstance(default, property) for _, default, _ in cls._defaults) or any(
            isinstance(each, cached_property) for base in cls.__mro__ for each in vars(base).values()
        )
        whole = {name: default for name, default, _ in cls._defaults}
        cls._blank = None if is_worked_out or cls._carried else whole

    def __init__(self, **values: Any) -> None:
        given = values.keys()
        if not self._names >= given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(given - self._names))}")
        if not given >= self._needed:
            raise TypeError(f"{type(self).__name__} needs {', '.join(sorted(self._needed - given))}")
        self.__dict__.update(values)

    @classmethod
    def trust(cls, values: dict[str, Any]) -> Self:
        """A value whose names are known to be right, for decoders that make them by the million.

        Nothing is checked, and the dictionary becomes the value's own: its maker must let go of it.
        """
        value = _new(cls)
        _set(value, "__dict__", values)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._order)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self._order))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._order if name in self.__dict__)
        return f"{type(self).__name__}({given})"

    def replace(self, **values: Any) -> Self:
        """The same value with some names given anew."""
        names = self._names
        if not names >= values.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(values.keys() - names))}")
        made = object.__new__(type(self))
        kept = names | self._carried
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name in kept}, **values)
        return made

    def given(self) -> dict[str, Any]:
        """The names that differ from their default, in their declared order; what is made on demand is made now."""
        held = self.__dict__
        shown = {}
        for name, default, is_made_on_demand in self._defaults:
            if is_made_on_demand:
                value = getattr(self, name)
                if value:
                    shown[name] = value
            elif name in held:
                value = held[name]
                if value is not default and value != default:
                    shown[name] = value
        return shown

    def to_dict(self) -> dict[str, Any]:
        """The value as JSON types: every name in its declared order, tuples as lists, absent as null."""
        if self._blank is None:
            shown = {name: getattr(self, name) for name in self._order}
        else:
            shown = self._blank | self.__dict__
        for name, value in shown.items():
            if type(value) not in _JSON_TYPES:
                shown[name] = to_json_type(value)
        return shown


def to_shallow_json(value: Any) -> Any:
    """What the json module can go on with in the place of one value that it does not know: its `default`."""
    if isinstance(value, Value) and value._blank is not None:
        return value._blank | value.__dict__
    return to_json_type(value)


_JSON_TYPES = frozenset({type(None), str, int, float, bool})


def to_json_type(value: Any) -> Any:
    """A value, or a container of values, as what the json module can write."""
    # Most of what a message holds are texts and spans of numbers, which are told by their exact type at once.
    if type(value) in _JSON_TYPES:
        return value
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [inner if type(inner) in _JSON_TYPES else to_json_type(inner) for inner in value]
    if isinstance(value, dict):
        return {str(name): to_json_type(inner) for name, inner in value.items()}
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
