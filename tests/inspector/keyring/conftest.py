"""What the tests of the keyring share: a conversation of the samples with two sealed messages, and its key."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from inspector.keyring.models import EscrowedKey
from inspector.keyring.spellings import read_keys
from inspector.opening import escrow_keys
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, deliver, resolve_all

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
KEY_FILE = (SAMPLES / "keys.json").read_bytes()
SAMPLE_KEY: dict[str, str] = json.loads(KEY_FILE)["keys"][0]
SECRET = base64.b64decode(SAMPLE_KEY["private"])
LINES = [line for line in (SAMPLES / "1-invoice-run.jsonl").read_bytes().splitlines() if b"paybridge" in line]
# What only an opened message says.
WORDS = ("direct debits", "mandates have expired")
PSK = b"a pre-shared key of some length!"


def make_cipher(session: str, psk: bytes = PSK) -> AESGCM:
    """What seals under a pre-shared key, as the documents say."""
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=None, info=session.encode()).derive(psk))


def write_payload(nonce: bytes, sealed: bytes) -> str:
    """An agent-lingua payload of ciphertext and tag."""
    return f"$e:{base64.b64encode(nonce).decode()}:{base64.b64encode(sealed).decode()}"


def seal_with_psk(text: str, session: str, psk: bytes = PSK, nonce: bytes = b"n" * 12) -> str:
    """An agent-lingua payload of this text, sealed."""
    return write_payload(nonce, make_cipher(session, psk).encrypt(nonce, text.encode(), None))


def write_line(payload: str, session: str, conversation: str, at: str = "2026-11-19T21:00:00Z") -> bytes:
    """A log line with one message of this payload."""
    wire = f"👽937|@x-1|#{session}|{payload}\n--👽lingua/0.4@agent-lingua"
    return json.dumps({"raw": wire, "from": "a", "to": ["b"], "conversation": conversation, "at": at}).encode()


def make_line(text: str, session: str, conversation: str) -> bytes:
    """A log line with one message that a pre-shared key has sealed."""
    return write_line(seal_with_psk(text, session), session, conversation)


@pytest.fixture(autouse=True)
def kek(settings: Any) -> None:
    settings.KEYRING_KEY = "a key-encryption key for tests, 32 or more"


@pytest.fixture
def sealed(cast: Cast) -> list[Message]:
    """The two sealed messages of the sample story, settled in their conversation, in order."""
    deliver(cast, b"\n".join(LINES) + b"\n")
    resolve_all()
    messages = list(Message.objects.filter(is_sealed=True).order_by("place"))
    assert len(messages) == 2
    return messages


def add(cast: Cast, data: bytes = KEY_FILE, *, label: str = "", **said: Any) -> EscrowedKey:
    """Add one key and open what it opens."""
    keys = read_keys(data, **{"kind": EscrowedKey.Kind.X25519, **said})
    (key,), _ = escrow_keys(membership=cast.owner, keys=keys, label=label)
    resolve_all()
    return key
