"""The matches beside one message in the order of a search: by keyset, within a time that a reader waits."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from django.db.models import CharField, Q, Value

from inspector.accounts.models import Workspace
from inspector.threads.models import Message

from .selectors import fetch, narrow

PATIENCE_MS: Final = 700


@dataclass(frozen=True, slots=True)
class Beside:
    """The ids of the matches on both sides of a message, None where there is none.

    `is_known` is False where finding them takes too long.
    """

    newer: uuid.UUID | None
    older: uuid.UUID | None
    is_known: bool = True


def find_beside(
    *, workspace: Workspace, query: str, message: Message, zone: tzinfo | None = None, may_see_secrets: bool = False
) -> Beside:
    """The next newer and the next older message that a query means; the message itself need not be one.

    Args:
        query: in the search language.
        message: beside which.
        zone: whose days the days of the query are; UTC where none is given.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    rows = narrow(workspace=workspace, query=query, zone=zone, may_see_secrets=may_see_secrets)
    at = {"order_time": message.order_time}
    newer = rows.filter(Q(order_time__gt=message.order_time) | Q(**at, pk__gt=message.pk)).order_by("order_time", "id")
    older = rows.filter(Q(order_time__lt=message.order_time) | Q(**at, pk__lt=message.pk)).order_by(
        "-order_time", "-id"
    )
    sides = [
        side[:1].values_list("pk", Value(name, output_field=CharField()))
        for name, side in (("newer", newer), ("older", older))
    ]
    found = fetch(sides[0].union(sides[1], all=True), PATIENCE_MS)
    if found is None:
        return Beside(None, None, is_known=False)
    ids = {name: pk for pk, name in found}
    return Beside(ids.get("newer"), ids.get("older"))
