"""The signature of an alert: HMAC-SHA256 with a secret that is made when it is needed and stored nowhere.

The secret of a webhook is derived from SECRET_KEY and a salt, so that nobody who reads the database can sign. With
another SECRET_KEY it cannot be made any more; its digest shows that, and a new one is asked for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from django.conf import settings

ID_HEADER = "Inspector-Id"
TIME_HEADER = "Inspector-Timestamp"
SIGNATURE_HEADER = "Inspector-Signature"


def make_salt() -> bytes:
    """What a new secret is made with."""
    return secrets.token_bytes(16)


def derive_secret(salt: bytes) -> str:
    """The secret of this salt, as it is shown once."""
    made = hmac.digest(settings.SECRET_KEY.encode(), b"inspector webhook secret " + salt, "sha256")
    return f"whsec_{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def digest_secret(secret: str) -> bytes:
    """What shows that a secret is the one that was shown."""
    return hashlib.sha256(secret.encode()).digest()


def sign(*, secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header: `v1=` and the code over the time in seconds, a full stop, and the exact body."""
    return f"v1={hmac.new(secret.encode(), b'%d.%b' % (timestamp, body), 'sha256').hexdigest()}"
