"""Undecided: messages that were stored before it was noted what their rows show. It is decided when they are examined.

The conditions are those of `sights`, as PostgreSQL reads them; the tests hold the two against one another.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from django.db import transaction
from django.db.models import Case, Exists, Expression, OuterRef, Q, SmallIntegerField, Value, When

from inspector.intake.models import Record
from inspector.lookups import IsAny

from ..arriving.holding import hold_conversations
from ..models import Message
from ..placing.across import look_across
from ..telling import terms
from ..telling.deceptive_signs import MIXED, UNSEEN
from ..telling.marks import has_term
from ..telling.sights import CLOCK_SKEW, JUDGEMENTS, LEAST_SEVERITY, OF_SESSIONS, Sight

_AT_ONCE: Final = 1000
_received_earlier = Record.objects.filter(pk=OuterRef("record_id"), created_at__lt=OuterRef("order_time") - CLOCK_SKEW)
CONDITIONS: Final[Mapping[Sight, Q]] = {
    Sight.NOTED: Q(severity__gte=LEAST_SEVERITY),
    Sight.LEANING: has_term(terms.term("has", "references")) | has_term(terms.term("has", "condition")),
    Sight.FAILED: Q(performative="failure"),
    Sight.JUDGING: Q(performative__in=JUDGEMENTS),
    Sight.SEALED: has_term(terms.term("security.encrypted", "true")),
    Sight.AGREEING: Q(*(("established__contains", f'["{kind}",') for kind in OF_SESSIONS), _connector=Q.OR),
    Sight.WRITTEN: Q(english__regex=f"{UNSEEN}|{MIXED}") | Q(sender__regex=UNSEEN),
    Sight.FUTURE: ~Q(order_basis="receipt") & Q(Exists(_received_earlier)),
}


def sum_sights() -> Expression:
    """What a stored row shows by itself, as a number."""
    total: Expression = Value(Sight.DECIDED.value, output_field=SmallIntegerField())
    for sight, condition in CONDITIONS.items():
        total = total + Case(When(condition, then=Value(sight.value)), default=0, output_field=SmallIntegerField())
    return total


def decide_undecided(*, conversations: Sequence[uuid.UUID], fence: Callable[[], None]) -> None:
    """Decide what the rows of these conversations show of which that is not known, some in a transaction.

    Args:
        conversations: their ids, of one workspace.
        fence: called inside each transaction; raises when another worker has taken over.
    """
    undecided = Message.objects.filter(IsAny("conversation_id", conversations), sights=0).order_by()
    while ids := list(undecided.values_list("pk", flat=True)[:_AT_ONCE]):
        with transaction.atomic():
            hold_conversations(conversations)
            fence()
            Message.objects.filter(IsAny("id", ids), sights=0).update(sights=sum_sights())
            look_across(messages=ids)
