"""What is sent to an operation: the parameters of its address, and the JSON object of its body. One table each, which
reads it strictly and describes it in the schema; and what parameters narrow a list to, the channel, agent or
conversation of that name, which has to be there.

What is misspelt, of another type or out of range is refused by name. What is silently passed over would let an auditor
believe in a filter that was never applied, and a sender that something was done.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from dialects import all_dialects
from inspector.accounts.models import Channel, Workspace
from inspector.accounts.selectors import find_channel, list_channels
from inspector.database import make_storable
from inspector.search.language import find_close
from inspector.search.sql import is_known
from inspector.threads.models import Conversation

from .bodies import read_json
from .problems import ProblemError

Row = TypeVar("Row")
MAX_SHOWN_LENGTH: Final = 100
MAX_NAMES_LENGTH: Final = 2000
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:]{8}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of an address, or a member of a body; `take_text` and its like make one of a kind.

    Args:
        name, about: as the schema has them.
        allowed: what may stand there, in words.
        shape: the same as a JSON schema.
        read: gives the value of what was sent, in a body of any type; raises ValueError where it cannot stand there.
        default: the value where it is left out.
        is_required, is_deprecated: whether it has to be sent, and should not be any more.
    """

    name: str
    allowed: str
    shape: Mapping[str, Any]
    read: Callable[[Any], Any]
    about: str = ""
    default: Any = None
    is_required: bool = False
    is_deprecated: bool = False

    def describe(self) -> OpenApiParameter:
        """The parameter as the schema tells of it, with its default where that is a value that can be sent."""
        known = {}
        with suppress(ValueError):
            if self.default is not None and self.read(str(self.default)) == self.default:
                known = {"default": self.default}
        return OpenApiParameter(
            self.name,
            {**self.shape, **known},
            required=self.is_required,
            deprecated=self.is_deprecated,
            description=self.about,
        )


def take_text(name: str, *, max_characters: int = 2000, is_required: bool = False, **known: Any) -> Parameter:
    """A text of up to `max_characters`."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not is_required <= len(value) <= max_characters:
            raise ValueError
        return value

    allowed = f"a text of {'1 to' if is_required else 'at most'} {max_characters} characters"
    shape = {"type": "string", **({"minLength": 1} if is_required else {}), "maxLength": max_characters}
    return Parameter(name=name, allowed=allowed, shape=shape, read=read, is_required=is_required, **known)


def take_number(name: str, *, least: int = 0, most: int = 2**53, in_body: bool = False, **known: Any) -> Parameter:
    """A whole number from `least` to `most`; in an address only digits are read, so that neither 1e3 nor a digit of
    another script passes for one.
    """

    def read(value: Any) -> int:
        is_one = type(value) is int if in_body else value.isascii() and value.isdigit() and len(value) <= 16
        if not is_one or not least <= int(value) <= most:
            raise ValueError
        return int(value)

    shape = {"type": "integer", "minimum": least, "maximum": most}
    return Parameter(name=name, allowed=f"a whole number from {least} to {most}", shape=shape, read=read, **known)


def take_choice(name: str, choices: Sequence[str], **known: Any) -> Parameter:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    shape = {"type": "string", "enum": list(choices)}
    return Parameter(name=name, allowed=f"one of {', '.join(choices)}", shape=shape, read=read, **known)


def take_names(name: str, choices: Sequence[str], **known: Any) -> Parameter:
    """Some of these names, with commas between them; all of them where the parameter is left out."""

    def read(text: str) -> frozenset[str]:
        names = frozenset(text.split(","))
        if len(text) > MAX_NAMES_LENGTH or not names <= frozenset(choices):
            raise ValueError
        return names

    one = f"({'|'.join(choices)})"
    shape = {"type": "string", "pattern": f"^{one}(,{one})*$", "maxLength": MAX_NAMES_LENGTH}
    allowed = f"names with commas between them, of {', '.join(choices)}"
    return Parameter(name=name, allowed=allowed, shape=shape, read=read, **known)


def take_id(name: str, **known: Any) -> Parameter:
    """The id of something."""

    def read(text: str) -> uuid.UUID:
        if len(text) != 36:
            raise ValueError
        return uuid.UUID(text)

    shape = {"type": "string", "format": "uuid"}
    return Parameter(name=name, allowed="an id: a UUID of 36 characters", shape=shape, read=read, **known)


def take_moment(name: str, **known: Any) -> Parameter:
    """An instant with its zone (RFC 3339), in UTC."""

    def read(text: Any) -> datetime:
        if not (isinstance(text, str) and _INSTANT.fullmatch(text)):
            raise ValueError
        instant = datetime.fromisoformat(text.upper())
        if not 1900 <= instant.year <= 9000:
            raise ValueError
        return instant.astimezone(UTC)

    allowed = "an instant as 2026-11-21T09:00:00Z, with its zone, of the years 1900 to 9000"
    return Parameter(name=name, allowed=allowed, shape={"type": "string", "format": "date-time"}, read=read, **known)


def take_flag(name: str, *, otherwise: bool | None = None, **known: Any) -> Parameter:
    """True or false, in a body; where it is left out it means as much as `otherwise`, says the schema."""

    def read(value: Any) -> bool:
        if value is not True and value is not False:
            raise ValueError
        return value

    shape = {"type": "boolean", **({} if otherwise is None else {"default": otherwise})}
    return Parameter(name=name, allowed="true or false", shape=shape, read=read, **known)


def take_texts(
    name: str, *, most: int, choices: Sequence[str] = (), max_characters: int = 2000, **known: Any
) -> Parameter:
    """A list of up to `most` texts, in a body; of `choices`, where there are any."""

    def read(value: Any) -> list[str]:
        if not isinstance(value, list) or len(value) > most:
            raise ValueError
        for each in value:
            if not isinstance(each, str) or len(each) > max_characters or (choices and each not in choices):
                raise ValueError
        return list(value)

    words = f"of {', '.join(choices)}" if choices else f"of at most {max_characters} characters each"
    one = {"enum": list(choices)} if choices else {"maxLength": max_characters}
    shape = {"type": "array", "items": {"type": "string", **one}, "maxItems": most}
    return Parameter(name=name, allowed=f"a list of at most {most} texts, {words}", shape=shape, read=read, **known)


@dataclass(frozen=True, slots=True)
class Document:
    """An object with these members and no other; `example` is what to send, for whoever sent something else."""

    example: str
    members: tuple[Parameter, ...]

    @property
    def schema(self) -> dict[str, Any]:
        """What the operation takes, as `extend_schema` has it."""
        properties = {
            member.name: dict(member.shape)
            | ({"description": member.about} if member.about else {})
            | ({"deprecated": True} if member.is_deprecated else {})
            for member in self.members
        }
        required = [member.name for member in self.members if member.is_required]
        described = {"type": "object", "properties": properties, "additionalProperties": False}
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
        names = [member.name for member in self.members]
        for name in given:
            if name not in names:
                detail = f"there is no member {name[:MAX_SHOWN_LENGTH]!r} here: {wanted}"
                raise ProblemError(422, detail, member=name[:MAX_SHOWN_LENGTH], allowed=names)
        return {member.name: _read(member, given, status=422, called="member") for member in self.members}


def read_parameters(query: QueryDict, parameters: Sequence[Parameter], *, has_body: bool = False) -> Mapping[str, Any]:
    """The value of every parameter of the table, by name; the default where it is left out.

    With `has_body` a refusal says where what is sent belongs.

    Raises:
        ProblemError: 400 with `parameter` and `allowed` for a name that is not in the table, for a value that cannot
            stand there, for a name that is given twice, and for one that is required and not given.
    """
    known = [parameter.name for parameter in parameters]
    for name, texts in query.lists():
        if name not in known:
            name = name[:MAX_SHOWN_LENGTH]
            there = f"there are {', '.join(known)}" if known else "this address takes none"
            there += "; data belongs in the body" if has_body else ""
            raise ProblemError(400, f"there is no parameter {name!r} here: {there}", parameter=name, allowed=known)
        if len(texts) > 1:
            raise ProblemError(400, f"{name} is given {len(texts)} times: give it once", parameter=name, allowed="one")
    return {each.name: _read(each, query, status=400, called="parameter") for each in parameters}


def _read(known: Parameter, given: Mapping[str, Any], *, status: int, called: str) -> Any:
    is_in_address = called == "parameter"
    if known.name in given:
        value = given[known.name]
        try:
            return known.read(value)
        except (TypeError, ValueError):
            shown = f", and not {value[:MAX_SHOWN_LENGTH]!r}" if is_in_address else ""
            detail = f"{known.name} is {known.allowed}{shown}"
    elif known.is_required:
        detail = f"{known.name} is not given" + (f": {known.about}" if is_in_address else "")
    else:
        return known.default
    said: dict[str, Any] = {called: known.name, "allowed": known.allowed}
    raise ProblemError(status, detail, **said)


SLUGS: Final = tuple(dialect.slug for dialect in all_dialects())
# What narrows a list of conversations, and of traces.
FILTERS: Final = (
    take_choice("state", about="filter by state", choices=Conversation.State.values, default=""),
    take_choice("dialect", about="filter by dialect of a message", choices=SLUGS, default=""),
    take_text("agent", about="filter by agent", default=""),
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


def find_named(name: str, select: Callable[..., Row | None], workspace: Workspace, pk: uuid.UUID | None) -> Row | None:
    """The delivery or conversation that the parameter of that name asks for; None where none is named.

    Raises:
        ProblemError: 400 for an id that nothing of the workspace has.
    """
    if pk is None:
        return None
    found = select(workspace=workspace, **{f"{name}_id": pk})
    if found is None:
        raise ProblemError(400, f"there is no {name} {pk} in the workspace", parameter=name)
    return found
