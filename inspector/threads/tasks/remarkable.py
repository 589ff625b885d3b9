"""Remarkable tasks: those that a rule may have to look at. An index holds them.

Most tasks are asked for, answered and done, and are none of these: a conversation is examined without reading them.
"""

from __future__ import annotations

from typing import Final

from django.db.models import F, Q

# Those of `lifecycle`, by their names: the table needs them before its states are known.
STANDING: Final = ("open", "acknowledged", "in-progress", "waiting", "delegated")

_IS_ASKED: Final = Q(request__isnull=False)
_IS_STANDING: Final = Q(state__in=STANDING)
_IS_NAMED: Final = ~Q(requester="") | ~Q(performer="")
# Nobody said a word on it, and somebody is owed one.
_UNHEARD: Final = (
    _IS_ASKED
    & _IS_STANDING
    & Q(is_answered=False)
    & (Q(act="delegate") | (Q(act__in=("request", "query"), deadline_at__isnull=True) & _IS_NAMED))
)
_OVERDUE: Final = (
    _IS_ASKED
    & Q(deadline_at__isnull=False)
    & (Q(finished_at__gt=F("deadline_at")) | (Q(finished_at__isnull=True) & _IS_STANDING))
)
# It failed, was refused, or was asked again.
_TURNED: Final = Q(failures__gt=0) | Q(steps__contains='"refused"') | Q(steps__contains='"asked-again"')
_UNASKED: Final = Q(request__isnull=True, is_received=False)
_WITHDRAWN: Final = _IS_ASKED & Q(state="cancelled", last_at__gt=F("finished_at"))
# A question or a proposal in the course of work: whether the work waited for the answer is to be seen.
ASKED_BACK: Final = _IS_ASKED & Q(within_key__isnull=False, act__in=("query", "propose"))

# It may be a link of work that is handed round; alone it says nothing.
HANDED_ON: Final = _IS_ASKED & Q(act="delegate")
# It is to be looked at by itself.
ALONE: Final = _UNHEARD | _OVERDUE | _TURNED | _UNASKED | _WITHDRAWN | ASKED_BACK
# What the index holds.
REMARKABLE: Final = ALONE | HANDED_ON
