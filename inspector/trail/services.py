"""Recording a deed: one row more, in the transaction of what it tells of; and reads of the deeds of a workspace, newest
first, by who, what, when, on what and with which words.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import QuerySet

from .acting import Acting, find_actor, find_address
from .models import DEEDS, SEARCHED, Deed

MAX_TEXT_LENGTH: Final = 2000
MAX_LABEL_LENGTH: Final = 300
MAX_ABOUT: Final = 1000


@dataclass(frozen=True, slots=True)
class Thing:
    """What a deed was done to: its kind in a word (`conversation`), its id, and what it is called at that time."""

    kind: str
    id: object
    label: str


def record_deed(
    code: str,
    *,
    workspace_id: uuid.UUID,
    on: Thing | None = None,
    by: Acting | None = None,
    about: Iterable[uuid.UUID] = (),
    details: Mapping[str, Any] | None = None,
) -> Deed:
    """Record a deed, in the transaction that is open. What shows something calls this before it does.

    The numbers of a workspace's deeds have no gap, so whoever records one waits for the transaction of the one before
    it. Record it as the last statement of the transaction: this lock comes after all others.

    Args:
        code: of `DEEDS`.
        workspace_id: whose trail it is.
        on: what it was done to.
        by: a membership, an API key or an `Actor`; without it, whoever acts in this request, else the product itself.
        about: the ids of all that it concerns beside `on`; the first 1,000 are kept.
        details: a small JSON object. No secret and no text of a message belongs in it; long texts are cut.

    Raises:
        KeyError: for a code that is not declared.
    """
    kind = DEEDS[code]
    actor = (by or find_actor()).as_actor()
    label = _clean(on.label, MAX_LABEL_LENGTH) if on else ""
    own = [on.id] if on and isinstance(on.id, uuid.UUID) else []
    return Deed.objects.create(
        workspace_id=workspace_id,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=_clean(actor.name, MAX_LABEL_LENGTH),
        address=find_address()[:64],
        code=code,
        object_kind=on.kind if on else "",
        object_id=str(on.id)[:64] if on else "",
        object_label=label,
        about=list(dict.fromkeys([*own, *about]))[:MAX_ABOUT],
        told=f"{_clean(actor.name, MAX_LABEL_LENGTH)} {kind.did.format(on=_name(on, label))}",
        details=_clean_all(details or {}),
    )


def _name(on: Thing | None, label: str) -> str:
    return f"{on.kind} “{label}”" if on and label else on.kind if on else ""


def _clean(text: str, longest: int) -> str:
    """A text as PostgreSQL can hold it: it has no NUL and no half of a pair."""
    text = text.replace("\x00", "␀").encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _clean_all(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value, MAX_TEXT_LENGTH)
    if isinstance(value, Mapping):
        return {_clean(str(name), MAX_LABEL_LENGTH): _clean_all(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean_all(each) for each in value]
    return value if isinstance(value, (int, float, bool, type(None))) else _clean(str(value), MAX_TEXT_LENGTH)


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
