"""Requests that nobody can call unanswered: who asked and who was asked also exchange sealed messages.

The rule `unanswered` leaves them out, and search finds them as `is:maybe-answered`.
"""

from __future__ import annotations

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, When
from django.db.models.functions import Least, Now

from inspector.accounts.models import Channel, Workspace
from inspector.threads.models import Message, Task
from inspector.threads.tasks.measures import STALLED_AFTER, latest_in_channel
from inspector.threads.tasks.states import STANDING


def select_maybe_answered(*, workspace: Workspace, channel: Channel | None = None) -> QuerySet[Task]:
    """The requests without a readable reply for an hour, up to the moment of their channel.

    That moment is the one of `audit.findings.dueness`: the time of the channel's latest message, and now where that one
    was posted within an hour of its time. So a request counts here when it would be a finding, were nothing sealed.
    """
    sealed = Message.objects.shown().filter(workspace=workspace, is_sealed=True)
    there = Q(sender=OuterRef("requester"), receivers__contains=[OuterRef("performer")])
    back = Q(sender=OuterRef("performer"), receivers__contains=[OuterRef("requester")])
    rows = Task.objects.filter(
        workspace=workspace,
        state__in=STANDING,
        act__in=("request", "query"),
        request__isnull=False,
        is_answered=False,
        deadline_at=None,
        # Told first where anything is sealed, which is in few conversations.
        conversation__in=sealed.values("conversation"),
    ).exclude(requester="", performer="")
    if channel is not None:
        rows = rows.filter(channel=channel)
    beside = sealed.filter(there | back, conversation=OuterRef("conversation"))
    posted = Message.objects.filter(
        workspace=OuterRef("workspace"),
        channel=OuterRef("channel"),
        order_time=OuterRef("latest"),
        record__is_from_file=False,
        record__created_at__lt=F("record__order_time") + STALLED_AFTER,
    )
    moment = Case(When(Exists(posted), then=Now()), default=Least(Now(), F("latest")))
    rows = rows.alias(latest=latest_in_channel()).alias(moment=moment)
    return rows.filter(Exists(beside), moment__gt=F("last_at") + STALLED_AFTER).order_by()
