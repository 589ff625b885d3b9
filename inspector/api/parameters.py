"""The parameters of an endpoint's address: one table each, which reads them strictly and describes them in the schema.

What is misspelt or out of range is refused by name. A parameter that is silently passed over would let an auditor
believe in a filter that was never applied.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from .problems import ProblemError

MAX_SHOWN_LENGTH = 100
INSTANT = "an instant as 2026-11-21T09:00:00Z, with its zone, of the years 1900 to 9000"
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:]{8}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A text of up to `max_characters`; the other kinds narrow it."""

    name: str
    about: str = ""
    default: Any = None
    is_required: bool = False
    is_deprecated: bool = False
    max_characters: int = 2000

    @property
    def allowed(self) -> str:
        """What may stand there, in words."""
        least = "1 to " if self.is_required else "at most "
        return f"a text of {least}{self.max_characters} characters"

    @property
    def shape(self) -> dict[str, Any]:
        """What may stand there, as a JSON schema."""
        least = {"minLength": 1} if self.is_required else {}
        return {"type": "string", **least, "maxLength": self.max_characters}

    def read(self, text: Any) -> Any:
        """The value of a text; in a body it may be of another type.

        Raises:
            ValueError: where it cannot stand there.
        """
        if not isinstance(text, str) or not self.is_required <= len(text) <= self.max_characters:
            raise ValueError
        return text

    def describe(self) -> OpenApiParameter:
        """The parameter as the schema tells of it, with its default where that is a value that can be sent."""
        known = {"default": self.default} if self._can_send_default() else {}
        return OpenApiParameter(
            self.name,
            self.shape | known,
            required=self.is_required,
            deprecated=self.is_deprecated,
            description=self.about,
        )

    def _can_send_default(self) -> bool:
        try:
            return self.default is not None and self.read(str(self.default)) == self.default
        except ValueError:
            return False


@dataclass(frozen=True, kw_only=True)
class Number(Parameter):
    """A whole number from `least` to `most`."""

    least: int = 0
    most: int = 2**53

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    @property
    def shape(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def read(self, text: str) -> int:
        """The number; only digits are read, so that neither 1e3 nor a digit of another script passes for one."""
        if not (text.isascii() and text.isdigit() and len(text) <= 16 and self.least <= int(text) <= self.most):
            raise ValueError
        return int(text)


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of some words."""

    choices: Sequence[str]

    @property
    def allowed(self) -> str:
        return f"one of {', '.join(self.choices)}"

    @property
    def shape(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.choices)}

    def read(self, text: str) -> str:
        """The word."""
        if text not in self.choices:
            raise ValueError
        return text


@dataclass(frozen=True, kw_only=True)
class Names(Parameter):
    """Some of these names, with commas between them; all of them where the parameter is left out."""

    choices: Sequence[str]

    @property
    def allowed(self) -> str:
        return f"names with commas between them, of {', '.join(self.choices)}"

    @property
    def shape(self) -> dict[str, Any]:
        one = f"({'|'.join(self.choices)})"
        return {"type": "string", "pattern": f"^{one}(,{one})*$", "maxLength": self.max_characters}

    def read(self, text: str) -> frozenset[str]:
        """The names."""
        names = frozenset(super().read(text).split(","))
        if not names <= frozenset(self.choices):
            raise ValueError
        return names


@dataclass(frozen=True, kw_only=True)
class Id(Parameter):
    """The id of something."""

    @property
    def allowed(self) -> str:
        return "an id: a UUID of 36 characters"

    @property
    def shape(self) -> dict[str, Any]:
        return {"type": "string", "format": "uuid"}

    def read(self, text: str) -> uuid.UUID:
        """The id."""
        if len(text) != 36:
            raise ValueError
        return uuid.UUID(text)


@dataclass(frozen=True, kw_only=True)
class Moment(Parameter):
    """An instant with its zone (RFC 3339)."""

    @property
    def allowed(self) -> str:
        return INSTANT

    @property
    def shape(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}

    def read(self, text: str) -> datetime:
        """The instant in UTC."""
        return read_instant(text)


def read_instant(text: str) -> datetime:
    """The instant that a text names (RFC 3339), in UTC.

    Raises:
        ValueError: for what names none, has no zone, or lies at the ends of the calendar.
    """
    if not (isinstance(text, str) and _INSTANT.fullmatch(text)):
        raise ValueError
    instant = datetime.fromisoformat(text.upper())
    if not 1900 <= instant.year <= 9000:
        raise ValueError
    return instant.astimezone(UTC)


def read_parameters(query: QueryDict, parameters: Sequence[Parameter], *, has_body: bool = False) -> Mapping[str, Any]:
    """The value of every parameter of the table, by name; the default where it is left out.

    With `has_body` a refusal says where what is sent belongs.

    Raises:
        ProblemError: 400 with `parameter` and `allowed` for a name that is not in the table, for a value that cannot
            stand there, for a name that is given twice, and for one that is required and not given.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name, texts in query.lists():
        if name not in known:
            raise _refuse_name(name, list(known), has_body=has_body)
        if len(texts) > 1:
            raise ProblemError(400, f"{name} is given {len(texts)} times: give it once", parameter=name, allowed="one")
    return {name: _read(parameter, query) for name, parameter in known.items()}


def _read(parameter: Parameter, query: QueryDict) -> Any:
    text = query.get(parameter.name)
    if text is None:
        if parameter.is_required:
            detail = f"{parameter.name} is not given: {parameter.about}"
            raise ProblemError(400, detail, parameter=parameter.name, allowed=parameter.allowed)
        return parameter.default
    try:
        return parameter.read(text)
    except ValueError:
        raise ProblemError(
            400,
            f"{parameter.name} is {parameter.allowed}, and not {text[:MAX_SHOWN_LENGTH]!r}",
            parameter=parameter.name,
            allowed=parameter.allowed,
        ) from None


def _refuse_name(name: str, known: list[str], *, has_body: bool) -> ProblemError:
    name = name[:MAX_SHOWN_LENGTH]
    there = f"there are {', '.join(known)}" if known else "this address takes none"
    if has_body:
        there += "; data belongs in the body"
    return ProblemError(400, f"there is no parameter {name!r} here: {there}", parameter=name, allowed=known)
