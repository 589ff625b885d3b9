"""Who a session belongs to: the person together with their memberships, which every page asks for, in one statement."""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.backends import BaseBackend

from .models import Membership, User
from .selectors import list_memberships

MAX_PACES: Final = 10_000
# By person: how many pages were left to them in this process, and when that was.
_paces: Final[dict[int, tuple[float, float]]] = {}


class SessionBackend(BaseBackend):
    """Finds the person of a session. It lets nobody in: that is done by who checks a password or a link.

    The person carries their memberships as they are at this request, oldest first, each with its workspace.
    """

    def get_user(self, user_id: Any) -> User | None:
        """The person of that id, or None for one who does not exist or may not enter any more."""
        memberships = list(list_memberships(user_id=user_id))
        user = memberships[0].user if memberships else User.objects.filter(pk=user_id).first()
        if user is None or not user.is_active:
            return None
        for membership in memberships:
            membership.user = user
        user.read_memberships = memberships
        return user


def recall_memberships(user: Any) -> list[Membership]:
    """The memberships of a person who is signed in: what came with the session, else asked for."""
    known: list[Membership] | None = getattr(user, "read_memberships", None)
    return list(list_memberships(user_id=user.pk)) if known is None else known


def reserve_page(user: User) -> bool:
    """Take a page out of what a person may ask this process for; whether there was one.

    What is left fills evenly, up to a minute's worth.
    """
    most, now = settings.PAGES_PER_MINUTE, time.monotonic()
    left, at = _paces.get(user.pk, (most, now))
    left = min(most, left + (now - at) * most / 60)
    if most and left < 1:
        return False
    if len(_paces) >= MAX_PACES:
        _paces.clear()
    _paces[user.pk] = (left - 1, now)
    return True


BACKEND = f"{SessionBackend.__module__}.{SessionBackend.__qualname__}"
