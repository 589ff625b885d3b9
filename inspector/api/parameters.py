"""The parameters of an endpoint's address: one table each, which reads them strictly and describes them in the schema;
and what they narrow a list to, the channel, agent or conversation of that name, which has to be there.

What is misspelt or out of range is refused by name. A parameter that is silently passed over would let an auditor
believe in a filter that was never applied.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from dialects import all_dialects
from inspector.accounts.models import Channel, Workspace
from inspector.accounts.selectors import find_channel, list_channels
from inspector.database import make_storable
from inspector.intake.models import Delivery
from inspector.intake.selectors import find_delivery
from inspector.search.language import find_close
from inspector.search.sql import is_known
from inspector.threads.models import Conversation
from inspector.threads.selectors import find_conversation

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


SLUGS: Final = tuple(dialect.slug for dialect in all_dialects())
# What narrows a list of conversations, and of traces.
FILTERS: Final = (
    Choice(name="state", about="filter by state", choices=Conversation.State.values, default=""),
    Choice(name="dialect", about="filter by dialect of a message", choices=SLUGS, default=""),
    Parameter(name="agent", about="filter by agent", default=""),
)


def find_named_channel(workspace: Workspace, name: str) -> Channel | None:
    """The channel of the parameter `channel`; None where none is named.

    Raises:
        ProblemError: 400 for a name that no channel has, with the one that was probably meant.
    """
    if not name:
        return None
    channel = find_channel(workspace=workspace, name=name)
    if channel is None:
        names = [each.name for each in list_channels(workspace=workspace)]
        close = find_close(name, names)
        hint = f"did you mean {close}?" if close else "GET /api/v1/channels lists those there are"
        detail = f"there is no channel {name[:MAX_SHOWN_LENGTH]!r}: {hint}"
        raise ProblemError(400, detail, parameter="channel", allowed=names[:MAX_SHOWN_LENGTH])
    return channel


def read_filters(given: Mapping[str, Any], workspace: Workspace) -> dict[str, str]:
    """What a list of conversations or traces is narrowed to, as their selectors take it.

    Raises:
        ProblemError: 400 for a name of an agent that nobody has.
    """
    wanted = {each.name: make_storable(given[each.name]) for each in FILTERS}
    if wanted["agent"] and not is_known(workspace=workspace, name=wanted["agent"]):
        detail = (
            f"there is no agent {given['agent'][:MAX_SHOWN_LENGTH]!r}: GET /api/v1/agents?name= finds those there are"
        )
        raise ProblemError(400, detail, parameter="agent")
    return wanted


def find_named_delivery(workspace: Workspace, delivery_id: uuid.UUID | None) -> Delivery | None:
    """The delivery of the parameter `delivery`; None where none is named.

    Raises:
        ProblemError: 400 for an id that no delivery of the workspace has.
    """
    if delivery_id is None:
        return None
    delivery = find_delivery(workspace=workspace, delivery_id=delivery_id)
    if delivery is None:
        raise ProblemError(400, f"there is no delivery {delivery_id} in the workspace", parameter="delivery")
    return delivery


def find_named_conversation(workspace: Workspace, conversation_id: uuid.UUID | None) -> Conversation | None:
    """The conversation of the parameter `conversation`; None where none is named.

    Raises:
        ProblemError: 400 for an id that no conversation of the workspace has.
    """
    if conversation_id is None:
        return None
    conversation = find_conversation(workspace=workspace, conversation_id=conversation_id)
    if conversation is None:
        detail = f"there is no conversation {conversation_id} in the workspace"
        raise ProblemError(400, detail, parameter="conversation")
    return conversation
