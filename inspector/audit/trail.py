"""The trail, as reviews and findings write to it and auditors read it; the table is `inspector.trail`, far below."""

from __future__ import annotations

import uuid
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from inspector.accounts.models import Membership
from inspector.database import IsAny
from inspector.trail.models import Deed
from inspector.trail.selectors import Wanted, filter_deeds
from inspector.trail.services import Thing as Thing
from inspector.trail.services import record_deed as record_deed

from .models.reviews import BLIND_STATES, ReviewItem

# What would tell a second reviewer that somebody has spoken, who, and what.
_REVIEWING: Final = ("verdict.given", "verdict.withdrawn", "review.taken", "review.released")


def list_deeds_for(*, membership: Membership, wanted: Wanted) -> QuerySet[Deed]:
    """The deeds that a reader may see, newest first: all but what others did to review what is still blind.

    A review by two is blind until both have spoken. Until then verdicts on its conversation, and who took it, are
    missing here for everybody but who did it, and so are their numbers; afterwards they stand where they belong.
    """
    own = Q(actor_kind=Deed.Actor.MEMBER, actor_id=str(membership.user_id))
    rows = filter_deeds(workspace_id=membership.workspace_id, wanted=wanted)
    return rows.exclude(_tells_of_blind(membership.workspace_id) & ~own)


def list_told_deeds(*, workspace_id: uuid.UUID, wanted: Wanted) -> QuerySet[Deed]:
    """The actions that anybody may see who may read the audit log, newest first: a program is nobody's own."""
    return filter_deeds(workspace_id=workspace_id, wanted=wanted).exclude(_tells_of_blind(workspace_id))


def _tells_of_blind(workspace_id: uuid.UUID) -> Q:
    """Whether a deed would tell that somebody has spoken where two are to speak without knowing of each other."""
    # Such a deed names its item and its conversation among what it is about: both are found by their indexes.
    blind = ReviewItem.objects.filter(
        # What is said of the same conversation elsewhere meanwhile would tell as much.
        Q(IsAny("id", OuterRef("about")))
        | Q(IsAny("conversation_id", OuterRef("about")), added_at__lte=OuterRef("at")),
        workspace=workspace_id,
        needed__gt=1,
        state__in=BLIND_STATES,
    )
    return Q(code__in=_REVIEWING) & Q(Exists(blind))
