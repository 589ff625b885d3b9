"""Channels by their names: the one that a parameter names."""

from __future__ import annotations

from inspector.accounts.models import Channel, Workspace
from inspector.accounts.selectors import find_channel, list_channels
from inspector.search.language import find_close

from .parameters import LONGEST_SHOWN
from .problems import ProblemError


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
        detail = f"there is no channel {name[:LONGEST_SHOWN]!r}: {hint}"
        raise ProblemError(400, detail, parameter="channel", allowed=names[:LONGEST_SHOWN])
    return channel
