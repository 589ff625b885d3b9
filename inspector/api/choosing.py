"""The parameter `fields`: which members of its rows a list shows."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from rest_framework import serializers

FIELDS_ABOUT: Final = "only these members of each row, and its id; all where it is left out"


class ChosenMembers(serializers.Serializer[Any]):
    """Each member but the id may be left out of an answer, by the parameter `fields`."""

    def get_fields(self) -> dict[str, Any]:
        """The members; only the id is always there."""
        members = super().get_fields()
        for name, member in members.items():
            member.required = name == "id"
        return members


def choose(row: dict[str, Any], names: Set[str] | None) -> dict[str, Any]:
    """A row with only these members and its id; as it is where none are named."""
    return row if names is None else {name: value for name, value in row.items() if name == "id" or name in names}
