"""The numbers beside the entries of the navigation: asked for once a page stands, so that no page waits for them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse

from inspector.accounts.models import Membership
from inspector.audit.overview import MAX_COUNTED, count_sections

from .shell import within_workspace


@within_workspace("GET")
def show_counts(request: HttpRequest, membership: Membership) -> HttpResponse:
    """How much each list holds as it opens, in words, by the name of its page; without those that hold nothing."""
    counts = count_sections(workspace=membership.workspace)
    return JsonResponse({name: _write(count) for name, count in counts.items() if count})


def _write(count: int) -> str:
    return f"{MAX_COUNTED:,}+" if count > MAX_COUNTED else f"{count:,}"
