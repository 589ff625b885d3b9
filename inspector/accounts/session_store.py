"""Django's sessions in the database, each row with whose it is: the engine that `SESSION_ENGINE` names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db.models import QuerySet
from django.utils import timezone

from .models import Session, User

# In a session: its name on pages, seconds since 1970 of its sign-in and of its last use, its address and program.
PUBLIC_ID: Final = "public_id"
STARTED: Final = "started"
LAST_USED: Final = "last_used"
ADDRESS: Final = "address"
PROGRAM: Final = "program"
MAX_PROGRAM_LENGTH: Final = 400
# The first that is found in a User-Agent names it: most name their ancestors too.
_BROWSERS: Final = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_NAMES: Final = {"Edg": "Edge", "OPR": "Opera"}
_SYSTEMS: Final = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS": "macOS"}


class SessionStore(DatabaseStore):
    """The store of the framework, with the columns of `Session` written beside the data."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """The table."""
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """The row of the session, as it holds `data` now."""
        row = cast(Session, super().create_model_instance(data))
        row.public_id = data.get(PUBLIC_ID) or row.public_id
        row.user_id = data.get(SESSION_KEY)
        row.started_at, row.last_used_at = _read_time(data, STARTED), _read_time(data, LAST_USED)
        row.address, row.program = data.get(ADDRESS, ""), data.get(PROGRAM, "")
        return row


def _read_time(data: Mapping[str, Any], name: str) -> datetime | None:
    seconds = data.get(name)
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)


def list_sessions(*, user: User) -> QuerySet[Session]:
    """The sessions of a person that may go on, the last used first."""
    now = timezone.now()
    used_since = now - timedelta(minutes=settings.SESSION_IDLE_MINUTES)
    rows: QuerySet[Session] = Session.objects.filter(user=user, expire_date__gt=now, last_used_at__gt=used_since)
    return rows.order_by("-last_used_at", "-started_at", "public_id")


def name_program(user_agent: str) -> str:
    """A browser in a few words, by what it calls itself: `Firefox on Linux`."""
    browser = next((name for name in _BROWSERS if f"{name}/" in user_agent), None)
    if browser is None:
        return re.split(r"[/ (]", user_agent, maxsplit=1)[0][:40] or "unknown program"
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), None)
    system = system or ("Linux" if "Linux" in user_agent else "an unknown system")
    return f"{_NAMES.get(browser, browser)} on {system}"
