"""Coming in and going out: by name and password, by a link that works once, and the way to one's workspace."""

from __future__ import annotations

from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from inspector.accounts.services import note_account, use_sign_in_link
from inspector.accounts.sessions import BACKEND, recall_memberships
from inspector.trail.acting import find_address

from ..forms import SignInForm
from .haste import HastyError, hash_in_turn


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form, and signing in by it."""
    wanted = _choose_next(request)
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(wanted)
        return _answer(request, SignInForm(request), wanted)
    form = SignInForm(request, data=request.POST)
    try:
        with hash_in_turn(find_address()):
            is_right = form.is_valid()
    except HastyError as error:
        response = _answer(request, SignInForm(request), wanted, wait=error.seconds, status=429)
        response["Retry-After"] = str(error.seconds)
        return response
    if not is_right:
        return _answer(request, form, wanted, status=422)
    user = form.get_user()
    note_account(user=user, code="account.signed-in", details={"by": "name and password"})
    login(request, user, backend=BACKEND)
    return redirect(wanted)


@never_cache
@require_GET
def use_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by a link that works once, as `make run` prints it."""
    user = use_sign_in_link(token=token)
    if user is None:
        if request.user.is_authenticated:
            return redirect("pages:home")
        return _answer(request, SignInForm(request), resolve_url("pages:home"), link_failed=True, status=410)
    note_account(user=user, code="account.signed-in", details={"by": "a link that works once"})
    login(request, user, backend=BACKEND)
    response = redirect("pages:home")
    response["Referrer-Policy"] = "no-referrer"
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    if request.user.is_authenticated:
        note_account(user=request.user, code="account.signed-out")
    logout(request)
    return redirect("pages:sign-in")


@require_GET
def show_home(request: HttpRequest) -> HttpResponse:
    """The reader's first workspace; somebody in none is told so."""
    if not request.user.is_authenticated:
        return redirect("pages:sign-in")
    memberships = recall_memberships(request.user)
    if not memberships:
        return render(request, "sign_in/no_workspace.html", status=200)
    return redirect("pages:overview", memberships[0].workspace.slug)


def _choose_next(request: HttpRequest) -> str:
    """The path that was wanted, if it is one of ours."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=False)
    return wanted if is_ours else resolve_url("pages:home")


def _answer(
    request: HttpRequest,
    form: SignInForm,
    wanted: str,
    *,
    link_failed: bool = False,
    wait: int = 0,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "next": wanted, "link_failed": link_failed, "wait": wait}
    return render(request, "sign_in/sign_in.html", context, status=status)
