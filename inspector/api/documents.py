"""The JSON object that an endpoint takes: one table of members, which reads it strictly and describes it in the schema.

What is misspelt, of another type or out of range is refused by name, as with the parameters of an address: a member
that is silently passed over would let a sender believe that it was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rest_framework.request import Request

from .bodies import read_json
from .parameters import MAX_SHOWN_LENGTH, Number, Parameter
from .problems import ProblemError

# A text as in an address; empty where it is left out.
Text = partial(Parameter, default="")


@dataclass(frozen=True, kw_only=True)
class Whole(Number):
    """A whole number from `least` to `most`."""

    most: int = 2**31 - 1

    def read(self, value: Any) -> int:
        """The number."""
        if not isinstance(value, int) or isinstance(value, bool) or not self.least <= value <= self.most:
            raise ValueError
        return value


@dataclass(frozen=True, kw_only=True)
class Texts(Parameter):
    """A list of up to `most` texts; of `choices`, where there are any."""

    most: int
    choices: Sequence[str] = ()

    @property
    def allowed(self) -> str:
        each = f"of {', '.join(self.choices)}" if self.choices else f"of at most {self.max_characters} characters each"
        return f"a list of at most {self.most} texts, {each}"

    @property
    def shape(self) -> dict[str, Any]:
        each = {"enum": list(self.choices)} if self.choices else {"maxLength": self.max_characters}
        return {"type": "array", "items": {"type": "string", **each}, "maxItems": self.most}

    def read(self, value: Any) -> list[str]:
        """The texts."""
        if not isinstance(value, list) or len(value) > self.most:
            raise ValueError
        for each in value:
            is_known = not self.choices or each in self.choices
            if not isinstance(each, str) or len(each) > self.max_characters or not is_known:
                raise ValueError
        return list(value)


@dataclass(frozen=True, slots=True)
class Document:
    """An object with these members and no other; `example` is what to send, for whoever sent something else."""

    example: str
    members: tuple[Parameter, ...]

    @property
    def schema(self) -> dict[str, Any]:
        """What the operation takes, as `extend_schema` has it."""
        described = {"type": "object", "properties": {}, "additionalProperties": False}
        for member in self.members:
            about = {"description": member.about} if member.about else {}
            described["properties"][member.name] = member.shape | about  # type: ignore[index]  # it is the dict above
        required = [member.name for member in self.members if member.is_required]
        return {"application/json": described | ({"required": required} if required else {})}

    def read(self, request: Request) -> Mapping[str, Any]:
        """The value of every member by its name; its default where it is left out.

        Raises:
            ProblemError: 400 or 408 for a body that is no JSON or breaks off, 413 for one that is too long, 415 for
                another type; 422 with `member` and `allowed` for what does not belong there.
        """
        wanted = f"send {self.example} as application/json"
        given = read_json(request._request, wanted=wanted)
        if not isinstance(given, dict):
            raise ProblemError(422, wanted)
        known = {member.name: member for member in self.members}
        for name in given:
            if name not in known:
                detail = f"there is no member {name[:MAX_SHOWN_LENGTH]!r} here: {wanted}"
                raise ProblemError(422, detail, member=name[:MAX_SHOWN_LENGTH], allowed=list(known))
        return {name: _read(member, given) for name, member in known.items()}


def _read(member: Parameter, given: Mapping[str, Any]) -> Any:
    if member.name not in given:
        if member.is_required:
            raise ProblemError(422, f"{member.name} is not given", member=member.name, allowed=member.allowed)
        return member.default
    try:
        return member.read(given[member.name])
    except ValueError:
        raise ProblemError(
            422, f"{member.name} is {member.allowed}", member=member.name, allowed=member.allowed
        ) from None
