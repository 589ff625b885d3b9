"""A value of a JSON text with the path to it, and its members, written in camel case or in snake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._positions import Path

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Spot(NamedTuple):
    """A value and where it stands; None where a path leads nowhere."""

    value: Any
    path: Path = ()

    def at(self, *names: str) -> Spot:
        """The member under these names, each in its way of writing; of what is no object a member is absent."""
        spot = self
        for name in names:
            held = spot.value if isinstance(spot.value, dict) else {}
            snake = _HUMP.sub("_", name).lower()
            key = snake if name not in held and snake in held else name
            spot = Spot(held.get(key), (*spot.path, key))
        return spot

    @property
    def items(self) -> Iterator[Spot]:
        """The items of a list; of anything else none."""
        for index, value in enumerate(self.value if isinstance(self.value, list) else ()):
            yield Spot(value, (*self.path, index))

    @property
    def text(self) -> str | None:
        """The value where it is a text with anything in it."""
        return self.value if isinstance(self.value, str) and self.value else None

    @property
    def members(self) -> dict[str, Any]:
        """The value where it is an object, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    def find(self, *names: str) -> str | None:
        """The first text among the members of these names."""
        return next((text for name in names if (text := self.at(name).text) is not None), None)
