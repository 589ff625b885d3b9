"""What a list is narrowed to by a parameter: the channel, agent or conversation of that name, which has to be there."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from dialects import all_dialects
from inspector.accounts.models import Channel, Workspace
from inspector.accounts.selectors import find_channel, list_channels
from inspector.intake.models import Delivery
from inspector.intake.selectors import find_delivery
from inspector.intake.text import make_storable
from inspector.search.language import find_close
from inspector.search.sql import is_known
from inspector.threads.models import Conversation
from inspector.threads.selectors import find_conversation

from .parameters import MAX_SHOWN_LENGTH, Choice, Parameter
from .problems import ProblemError

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
