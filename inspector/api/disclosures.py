"""What the keyring has opened, as the API shows it: to keys that may see secrets, and never without a trace."""

from __future__ import annotations

from inspector.accounts.models import ApiKey
from inspector.keyring.models import KeyEvent
from inspector.opening.reveals import Opening, disclose, find_openings_of
from inspector.threads.models import Message

from .masking import may_see_secrets


def open_for(key: ApiKey, message: Message) -> Opening | None:
    """What keys have opened of a message, for an API key that may see it, and noted; else None."""
    if not may_see_secrets(key):
        return None
    openings = find_openings_of(messages=[message])
    disclose(openings, door=KeyEvent.Door.API, api_key=key)
    return openings.get(message.pk)
