"""Sign-ins that failed: an entry in the trail of each workspace whose member was named, and a line in the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth.signals import user_login_failed
from django.dispatch import receiver

from inspector.tokens import hide_tokens
from inspector.trail.acting import find_address

from .services import note_failed_sign_in

MAX_NAME_LENGTH: Final = 150

logger = logging.getLogger(__name__)


@receiver(user_login_failed, dispatch_uid="note failed sign-ins")
def note_failure(sender: object, credentials: Mapping[str, Any], **_: object) -> None:
    """Keep the name that was tried and the address it came from. A password is in neither."""
    name = hide_tokens(str(credentials.get("username") or ""))[:MAX_NAME_LENGTH]
    logger.warning("sign-in failed for %r from %s", name, find_address() or "an unknown address")
    note_failed_sign_in(name=name)
