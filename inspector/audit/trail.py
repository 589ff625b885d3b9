"""The trail, as reviews and findings write to it and auditors read it; the table is `inspector.trail`, far below."""

from __future__ import annotations

from typing import Final

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Cast

from inspector.accounts.models import Membership
from inspector.trail.models import Deed
from inspector.trail.selectors import Wanted, filter_deeds
from inspector.trail.services import Thing as Thing
from inspector.trail.services import record_deed as record_deed

from .reviews import ReviewItem

# What would tell a second reviewer that somebody has spoken, and what.
_VERDICTS: Final = ("verdict.given", "verdict.withdrawn")


def list_deeds_for(*, membership: Membership, wanted: Wanted) -> QuerySet[Deed]:
    """The deeds that a reader may see, newest first: all but verdicts of others that are still to be kept from them.

    A review by two is blind until both have spoken. Until then its verdicts are missing here, for everybody but their
    own author, and so are their numbers; afterwards they stand where they belong.
    """
    blind = ReviewItem.objects.annotate(name=Cast("pk", CharField())).filter(
        workspace=membership.workspace_id, state=ReviewItem.State.SECOND, name=OuterRef("object_id")
    )
    own = Q(actor_kind=Deed.Actor.MEMBER, actor_id=str(membership.user_id))
    rows = filter_deeds(workspace_id=membership.workspace_id, wanted=wanted)
    return rows.exclude(Q(code__in=_VERDICTS) & ~own & Exists(blind))
