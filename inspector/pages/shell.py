"""Entering a workspace: who is signed in, what they may see, and the frame around every page; with the numbers beside
the entries of its navigation, asked for once the page stands, so that no page waits for them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final, Literal, TypeVar

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from inspector.accounts.models import Membership
from inspector.accounts.second_factors import lacks_second_factor
from inspector.accounts.sessions import recall_memberships, reserve_page
from inspector.audit.overview import MAX_COUNTED, count_sections
from inspector.database import or_404
from inspector.search.selectors import CursorError, Place, read_cursor, write_cursor
from inspector.trail.acting import note_actor
from inspector.trail.row_security import enter_workspace

Row = TypeVar("Row")

View = Callable[..., HttpResponseBase]
_ANY: Final = uuid.UUID(int=0)


def within_workspace(*methods: str, needs: Literal["viewer", "auditor", "owner"] = "viewer") -> Callable[[View], View]:
    """Give a view, which takes (request, membership, …), the reader's membership of the workspace in its address.

    Somebody who is not signed in is asked to; a stranger gets 404, as for a workspace that does not exist. A member
    without the second factor that the workspace requires is led to where they add one, and one who asks for too many
    pages gets 429. A cursor that no page of this
    workspace wrote is 404 too. Nothing of it is kept by a cache between the reader and us.

    Args:
        methods: of HTTP, that it answers.
        needs: the least role that it is for; others get 403.
    """

    def decorate(view: View) -> View:
        @require_http_methods(methods)
        @wraps(view)
        def enter(request: HttpRequest, slug: str, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            # One statement says who this is, what they may enter, and the other workspaces that the frame offers.
            memberships = recall_memberships(request.user) if request.user.is_active else []
            membership = or_404(next((each for each in memberships if each.workspace.slug == slug), None))
            if not reserve_page(membership.user):
                refusal = render(request, "429.html", {"is_page": True}, status=429)
                refusal["Retry-After"] = "5"
                return refusal
            if lacks_second_factor(request.session, membership):
                return redirect("mfa_index")
            vars(request)["memberships"] = memberships
            note_actor(membership)
            enter_workspace(membership.workspace_id)
            if needs != "viewer":
                (require_owner if needs == "owner" else require_auditor)(membership)
            try:
                response = view(request, membership, **kwargs)
            except CursorError as error:
                raise Http404 from error
            response.headers.setdefault("Cache-Control", "no-store, private")
            return response

        vars(enter)["enters_workspace"] = True
        return enter

    return decorate


def require_auditor(membership: Membership) -> None:
    """Refuse a viewer (PermissionDenied)."""
    if not membership.is_auditor:
        raise PermissionDenied


def require_owner(membership: Membership) -> None:
    """Refuse everyone but owners (PermissionDenied)."""
    if not membership.is_owner:
        raise PermissionDenied


def render_page(
    request: HttpRequest,
    membership: Membership,
    template: str,
    context: dict[str, Any],
    *,
    section: str,
    status: int = 200,
) -> HttpResponse:
    """A page in the frame of its workspace."""
    frame = {
        "workspace": membership.workspace,
        "membership": membership,
        "workspaces": [each for each in vars(request)["memberships"] if each.workspace.archived_at is None],
        "time_zone": membership.user.time_zone,
        "section": section,
    }
    return render(request, template, {**frame, **context}, status=status)


def read_place(request: HttpRequest, membership: Membership) -> Place | None:
    """The place in a keyset list that the address names, or None for its beginning.

    Raises:
        Http404: for a cursor that was not made for this workspace.
    """
    return read_cursor(request.GET.get("before"), membership.workspace.pk)


def cut_page(found: Iterable[Row], size: int) -> tuple[list[Row], Row | None]:
    """The rows of a page, and the last of them where others follow.

    Args:
        found: the rows from the page's place on: one more than it holds, where there are so many.
        size: how many it holds.
    """
    rows = list(found)
    return rows[:size], rows[size - 1] if len(rows) > size else None


def turn_pages(request: HttpRequest, membership: Membership, place: Place | None) -> dict[str, str | None]:
    """The addresses of the next page and of the first one, of a list that `read_place` goes through.

    Args:
        place: the key of its last row where others follow.
    """
    return {
        "older_url": write_query(request, before=write_cursor(place, membership.workspace.pk)) if place else None,
        "newest_url": write_query(request, before=None) if request.GET.get("before") else None,
    }


def read_number(request: HttpRequest, name: str, *, default: int = 0) -> int:
    """A whole number of the address, never negative; anything else is the default."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


def read_id(request: HttpRequest, name: str) -> uuid.UUID | None:
    """An id of the address; None where it names none.

    Raises:
        Http404: for what is no id.
    """
    text = request.GET.get(name)
    try:
        return uuid.UUID(text) if text else None
    except ValueError as error:
        raise Http404 from error


def write_query(request: HttpRequest, **changes: str | None) -> str:
    """The address of this page with some of its parameters changed, None taking one away."""
    parameters = request.GET.copy()
    for name, value in changes.items():
        parameters.pop(name, None)
        if value is not None:
            parameters[name] = value
    return f"?{parameters.urlencode()}" if parameters else request.path


def address_each(name: str, slug: str) -> Callable[[uuid.UUID], str]:
    """What gives the address of each thing of a kind by its id; the pattern is looked up once.

    Args:
        name: of an address within a workspace that has one id in it.
        slug: the workspace's.
    """
    before, _, behind = reverse(name, args=[slug, _ANY]).rpartition(str(_ANY))
    return lambda pk: f"{before}{pk}{behind}"


@within_workspace("GET")
def show_counts(request: HttpRequest, membership: Membership) -> HttpResponse:
    """How much each list holds as it opens, in words, by the name of its page; without those that hold nothing."""
    counts = count_sections(workspace=membership.workspace)
    return JsonResponse({name: _write(count) for name, count in counts.items() if count})


def _write(count: int) -> str:
    return f"{MAX_COUNTED:,}+" if count > MAX_COUNTED else f"{count:,}"
