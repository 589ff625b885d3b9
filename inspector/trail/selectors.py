"""Reads of the trail: the deeds of a workspace, newest first, by who, what, when, on what and with which words."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import QuerySet

from .models import SEARCHED, Deed


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of the trail is asked for; what is left empty narrows nothing.

    `actor` is the kind and the id of who did it, `about` the id of anything that an entry concerns, `since` and `until`
    are instants, the second one not included.
    """

    actor: tuple[str, str] | None = None
    code: str = ""
    about: uuid.UUID | None = None
    words: str = ""
    since: datetime | None = None
    until: datetime | None = None


def filter_deeds(*, workspace_id: uuid.UUID, wanted: Wanted) -> QuerySet[Deed]:
    """The deeds of a workspace that are wanted, newest first. Page on by `sequence`, which is the key."""
    rows = Deed.objects.filter(workspace=workspace_id).order_by("-sequence")
    if wanted.actor:
        rows = rows.filter(actor_kind=wanted.actor[0], actor_id=wanted.actor[1])
    if wanted.code:
        rows = rows.filter(code=wanted.code)
    if wanted.about:
        rows = rows.filter(about__contains=[wanted.about])
    if wanted.since:
        rows = rows.filter(at__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(at__lt=wanted.until)
    if wanted.words:
        vector = SearchVector(*SEARCHED, config="simple")
        rows = rows.annotate(found=vector).filter(found=SearchQuery(wanted.words, config="simple"))
    return rows
