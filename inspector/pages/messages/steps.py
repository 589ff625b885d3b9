"""Going from match to match: the search that a message was opened from travels in its address."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.search.beside import find_beside
from inspector.search.language import MAX_CHARACTERS, QueryError
from inspector.threads.models import Message


def find_steps(request: HttpRequest, membership: Membership, message: Message) -> dict[str, Any] | None:
    """The steps of the search in the address; None where it names none."""
    query = request.GET.get("q", "").strip()[: MAX_CHARACTERS + 1]
    if not query:
        return None
    slug = membership.workspace.slug
    problem, newer, older = "", None, None
    try:
        found = find_beside(
            workspace=membership.workspace,
            query=query,
            message=message,
            zone=ZoneInfo(membership.user.time_zone),
            may_see_secrets=membership.is_auditor,
        )
        newer, older = found.newer, found.older
        problem = "" if found.is_known else "finding the matches beside it takes too long"
    except QueryError as error:
        problem = str(error)
    return {
        "query": query,
        "url": f"{reverse('pages:search', args=[slug])}?{urlencode({'q': query})}",
        "previous_url": link_message(slug, newer, query) if newer else None,
        "next_url": link_message(slug, older, query) if older else None,
        "problem": problem,
    }


def link_message(slug: str, message_id: uuid.UUID, query: str) -> str:
    """The address of a message's page that knows the search it was opened from."""
    address = reverse("pages:message", args=[slug, message_id])
    return f"{address}?{urlencode({'q': query})}" if query else address
