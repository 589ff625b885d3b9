"""What a page is narrowed to besides its own filters: the channel of the top bar, and a delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404, HttpRequest

from inspector.accounts.models import Channel, Membership, Workspace
from inspector.accounts.selectors import find_channel
from inspector.audit.findings.selectors import of_channel, of_delivery
from inspector.threads.messages import select_messages_of_delivery

from .deliveries.views import describe_named

# Parameters that another channel has no use for: places in a list.
_PLACES = ("channel", "before", "grade", "since", "offset")


@dataclass(frozen=True, slots=True)
class Scope:
    """A channel and a delivery that the address names, each None where it names none."""

    channel: Channel | None
    delivery: dict[str, Any] | None
    channels: Sequence[str]
    kept: Sequence[tuple[str, str]]
    workspace: Workspace

    @property
    def findings(self) -> Q:
        """The findings within it."""
        within = of_channel(self.channel.pk) if self.channel else Q()
        return within & of_delivery(self.delivery["id"]) if self.delivery else within

    @property
    def parameters(self) -> dict[str, str]:
        """What a link to a page of the same scope carries."""
        named = {"channel": self.channel.name} if self.channel else {}
        return named | ({"delivery": str(self.delivery["id"])} if self.delivery else {})

    @property
    def query(self) -> str:
        """What leads to another page of the same channel, behind its address."""
        return f"?{urlencode({'channel': self.channel.name})}" if self.channel else ""

    @property
    def conversations(self) -> Q:
        """What belongs to a conversation within it."""
        within = Q(conversation__channel=self.channel) if self.channel else Q()
        if not self.delivery:
            return within
        reached = select_messages_of_delivery(workspace=self.workspace, delivery_id=self.delivery["id"])
        return within & Q(conversation__in=reached.values("conversation"))


def read_scope(request: HttpRequest, membership: Membership) -> Scope:
    """What the address of a page narrows it to.

    Raises:
        Http404: for a channel or a delivery that is not there.
    """
    name = request.GET.get("channel", "")
    channel = find_channel(workspace=membership.workspace, name=name) if name else None
    if name and channel is None:
        raise Http404
    kept = [(key, str(value)) for key, value in request.GET.items() if value and key not in _PLACES]
    return Scope(
        channel, describe_named(request, membership), vars(membership)["channel_names"], kept, membership.workspace
    )
