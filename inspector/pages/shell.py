"""Entering a workspace: who is signed in, what they may see, and the frame around every page; with the numbers beside
the entries of its navigation, asked for once the page stands, so that no page waits for them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final, Literal, TypeVar
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages as flashes
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dialects import all_dialects
from inspector.accounts.limits import reserve_often
from inspector.accounts.models import Membership
from inspector.accounts.second_factors import lacks_second_factor
from inspector.accounts.sessions import keep_to_show, recall_memberships, take_to_show
from inspector.audit.overview import MAX_COUNTED, count_sections
from inspector.database import or_404
from inspector.search.selectors import CursorError
from inspector.trail.acting import note_actor
from inspector.trail.row_security import enter_workspace

T = TypeVar("T")
View = Callable[..., HttpResponseBase]
_ANY: Final = uuid.UUID(int=0)


class Elsewhere(Exception):  # noqa: N818  # it is an answer
    """That what was asked for stands at another address."""


def within_workspace(
    *methods: str, needs: Literal["viewer", "auditor", "owner"] = "viewer", of: Callable[..., Any] | None = None
) -> Callable[[View], View]:
    """Give a view, which takes (request, membership, …), the reader's membership of the workspace in its address.

    Somebody who is not signed in is asked to; a stranger gets 404, as for a workspace that does not exist. A member
    without the second factor that the workspace requires is led to where they add one, and one who asks for too many
    pages gets 429. A cursor that no page of this workspace wrote is 404 too. Nothing of it is kept by a cache between
    the reader and us.

    Args:
        methods: of HTTP, that it answers.
        needs: the least role that it is for; others get 403.
        of: finds what the address names by its ids, which the view takes in their place; where there is none, 404.
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
            most = settings.PAGES_PER_MINUTE
            if most and not reserve_often(f"pages {membership.user_id}", most=most):
                refusal = render(request, "429.html", {"is_page": True}, status=429)
                refusal["Retry-After"] = "5"
                return refusal
            if lacks_second_factor(request.session, membership):
                return redirect("mfa_index")
            vars(request)["memberships"] = memberships
            note_actor(membership)
            enter_workspace(membership.workspace_id)
            try:
                named = [_find_named(of, membership, kwargs)] if of else []
                if needs != "viewer":
                    (require_owner if needs == "owner" else require_auditor)(membership)
                response = view(request, membership, *named, **kwargs)
            except CursorError as error:
                raise Http404 from error
            except Elsewhere as other:
                response = redirect(str(other))
            response.headers.setdefault("Cache-Control", "no-store, private")
            return response

        vars(enter)["enters_workspace"] = True
        return enter

    return decorate


def _find_named(of: Callable[..., Any], membership: Membership, given: dict[str, Any]) -> Any:
    ids = {name: given.pop(name) for name in tuple(given) if name.endswith("_id")}
    return or_404(of(workspace=membership.workspace, **ids))


def require_auditor(membership: Membership) -> None:
    """Refuse a viewer (PermissionDenied)."""
    if not membership.is_auditor:
        raise PermissionDenied


def require_owner(membership: Membership) -> None:
    """Refuse everyone but owners (PermissionDenied)."""
    if not membership.is_owner:
        raise PermissionDenied


def render_part(
    request: HttpRequest, membership: Membership, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """A part of a page, for a script that puts it there."""
    frame = {
        "workspace": membership.workspace,
        "membership": membership,
        "time_zone": membership.user.time_zone,
    }
    return render(request, template, {**frame, **context}, status=status)


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
        "workspaces": [each for each in vars(request)["memberships"] if each.workspace.archived_at is None],
        "section": section,
    }
    return render_part(request, membership, template, {**frame, **context}, status=status)


def refuse(request: HttpRequest, error: ValidationError, refusal: str = "") -> None:
    """Tell on the next page why something was refused; `refusal` stands before the reason."""
    said = f"{refusal}{'; '.join(error.messages)}"
    flashes.error(request, f"{said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}")


def attempt(
    request: HttpRequest, act: Callable[[], T], done: str | Callable[[T], str], *, refusal: str = ""
) -> T | None:
    """Do something and tell on the next page that it is done, or why it was refused; None then.

    Args:
        done: a sentence, or what writes it of what was made.
        refusal: what stands before the reason.
    """
    try:
        made = act()
    except ValidationError as error:
        refuse(request, error, refusal)
        return None
    flashes.success(request, done(made) if callable(done) else done)
    return made


def show_once(request: HttpRequest, address: str, **made: Any) -> HttpResponse:
    """Lead to the page that shows a secret which was made just now, and which takes it once by `take_shown`."""
    keep_to_show(request.session, address, made)
    return redirect(address)


def take_shown(request: HttpRequest) -> dict[str, Any]:
    """What was made just now for this page to show; empty where there is nothing."""
    return take_to_show(request.session, request.get_full_path()) if request.method == "GET" else {}


def asking(membership: Membership, query: str) -> dict[str, Any]:
    """Who asks what, as every question of the search takes it."""
    zone = ZoneInfo(membership.user.time_zone)
    return {
        "workspace": membership.workspace,
        "query": query,
        "zone": zone,
        "may_see_secrets": membership.is_auditor,
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
    return or_404(parse_id(text)) if text else None


def parse_id(text: str) -> uuid.UUID | None:
    """An id as it is written; None for what is none."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


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
    return JsonResponse(
        {name: f"{MAX_COUNTED:,}+" if count > MAX_COUNTED else f"{count:,}" for name, count in counts.items() if count}
    )


# For what a browser shall neither fill in nor correct.
PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}
# The class of a widget by its kind; boxes to tick, files and what is hidden have none.
_CLASSES: Final = (
    (forms.Textarea, "textarea"),
    (forms.Select, "select"),
    ((forms.TextInput, forms.NumberInput, forms.PasswordInput), "input"),
)


class PageForm(forms.Form):
    """A form in the dress of the pages, which can hand what was filled in to a service."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for widget in (field.widget for field in self.fields.values()):
            for kinds, name in _CLASSES:
                if isinstance(widget, kinds):
                    widget.attrs.setdefault("class", name)

    def offer(self, name: str, choices: Iterable[tuple[str, str]], initial: str | None = None) -> None:
        """Let a field be one of these choices, which are known only now."""
        self.fields[name].choices = list(choices)  # type: ignore[attr-defined]
        self.fields[name].initial = initial

    def hand_to(self, service: Callable[[], T], *, field: str | None = None) -> T | None:
        """What the service made of the form; None where the form is not valid, or the service refused it.

        Args:
            field: the one that a refusal stands beside which names no field of the form.
        """
        if not self.is_valid():
            return None
        try:
            return service()
        except ValidationError as error:
            said = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
            for name, sentences in said.items():
                self.add_error(name if name in self.fields else field, sentences)
        return None


def list_dialects(words: str) -> list[tuple[str, str]]:
    """The dialects as choices, behind the one of none, which is called by these words."""
    return [("", words), *((dialect.slug, dialect.title) for dialect in all_dialects())]
