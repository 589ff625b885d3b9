"""Seals that do not hold (31 of the hostile inputs), through each door of a workspace that holds the session's key."""

from __future__ import annotations

from typing import Final

import pytest
from django.test import Client
from django.urls import reverse

from inspector.audit.models import Finding
from inspector.threads.models import Message, OpenedMessage
from tests.inspector.conftest import Cast, resolve_all
from tests.inspector.doors import Way

from .conftest import PSK, add, make_cipher, write_line, write_payload

pytestmark = pytest.mark.django_db

SESSION: Final = "s31"
NONCE: Final = b"n" * 12
WORDS: Final = "the safe stands open"
_CIPHER: Final = make_cipher(SESSION)
SEALED: Final = _CIPHER.encrypt(NONCE, f"r:{WORDS}".encode(), None)
# By what became of it: the nonce and the ciphertext with its tag.
SEALS: Final[dict[str, tuple[bytes, bytes]]] = {
    "the tag flipped": (NONCE, SEALED[:-1] + bytes([SEALED[-1] ^ 1])),
    "the text flipped": (NONCE, bytes([SEALED[0] ^ 1]) + SEALED[1:]),
    "bound to other data": (NONCE, _CIPHER.encrypt(NONCE, f"r:{WORDS}".encode(), b"another conversation")),
    "without a nonce": (b"", SEALED),
    "a nonce of 8 bytes": (NONCE[:8], _CIPHER.encrypt(NONCE[:8], f"r:{WORDS}".encode(), None)),
    "a nonce of 16 bytes": (b"n" * 16, _CIPHER.encrypt(b"n" * 16, f"r:{WORDS}".encode(), None)),
    "shorter than a tag": (NONCE, SEALED[:8]),
    "nothing but a tag": (NONCE, SEALED[-16:]),
}


def test_31_a_seal_that_does_not_hold_is_not_authentic_and_gives_nothing_away(
    cast: Cast, auditor: Client, way: Way
) -> None:
    add(cast, PSK, kind="psk", written="text", label="held", session=SESSION)
    log = [
        write_line(write_payload(*seal), SESSION, name) for name, seal in {"whole": (NONCE, SEALED), **SEALS}.items()
    ]
    assert not way.send(b"\n".join(log) + b"\n")
    resolve_all()
    found = Finding.objects.filter(rule="not-authentic", holds=True)
    assert sorted(found.values_list("conversation__native_id", flat=True)) == sorted(SEALS)
    assert set(found.values_list("severity", flat=True)) == {Message.Severity.ERROR}
    assert Message.objects.filter(is_sealed=True).count() == len(log)
    for message in Message.objects.select_related("conversation"):
        page = auditor.get(reverse("pages:message", args=["acme", message.pk])).content.decode()
        # Who may see what was opened sees that of the one that is whole.
        assert (WORDS in page) == (message.conversation.native_id == "whole")
    assert OpenedMessage.objects.count() == 1
