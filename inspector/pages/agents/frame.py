"""What the directory and the graph of agents have in common: filters, tabs that keep them, the ways on by keyset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.accounts.selectors import list_channels
from inspector.browsing.directory import Choice
from inspector.search.cursors import read_key, write_key

from ..shell import write_query
from ..walks import Walk, read_walk
from .forms import AgentFilter

# The views in the order of their tabs: (name of the address, what it is called).
TABS = (("agents", "Directory"), ("agents-graph", "Who talks with whom"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Narrowing:
    """What a list is narrowed to, by its form, and the key after which it goes on; None at its beginning."""

    form: AgentFilter
    choice: Choice
    has_several_channels: bool
    after: Sequence[Any] | None
    walk: Walk

    @property
    def since(self) -> int | None:
        """Since when the rows were written, where they are the rest of a walk."""
        return self.walk.since if self.walk.is_rest else None


def read_narrowing(request: HttpRequest, membership: Membership, *, of: str) -> Narrowing:
    """What the address narrows a list to.

    Raises:
        Http404: for a cursor that was not made for this list of this workspace.
    """
    channels = list(list_channels(workspace=membership.workspace))
    form = AgentFilter(request.GET, channels=channels)
    walk = read_walk(request, membership, places=("after",))
    after = walk.after or read_key(request.GET.get("after"), membership.workspace.pk, of=of)
    return Narrowing(form=form, choice=form.read(), has_several_channels=len(channels) > 1, after=after, walk=walk)


def frame_agents(
    request: HttpRequest,
    membership: Membership,
    narrowing: Narrowing,
    *,
    current: str,
    of: str,
    is_empty: bool,
    last: Sequence[Any] | None,
    rest_url: str | None,
) -> dict[str, Any]:
    """The context of the frame.

    Args:
        narrowing: of the list.
        current: the address name of the view that is shown.
        of: the list, as its keys name it.
        is_empty: whether this page of it has no rows.
        last: the key of its last row, where the list goes on.
        rest_url: where the rest of the list is, if it follows.
    """
    workspace, walk = membership.workspace, narrowing.walk
    next_url = walk.write_on(last, after=write_key(last, workspace.pk, of=of)) if last else None
    kept = write_query(request, after=None, walk=None, rest=None)
    kept = kept if kept.startswith("?") else ""
    return {
        "form": narrowing.form,
        "has_several_channels": narrowing.has_several_channels,
        "has_any": bool(not is_empty or not walk.is_first or narrowing.choice.is_narrow),
        "next_url": next_url,
        "rest_url": rest_url,
        "walk": walk,
        "views": [
            {
                "name": name,
                "url": f"{reverse(f'pages:{address}', args=[workspace.slug])}{kept}",
                "is_current": address == current,
            }
            for address, name in TABS
        ],
        "is_filtered": narrowing.choice.is_narrow,
        "clear_url": request.path,
    }
