"""Bundles as the server makes them, and what the offline verifier, which shares no code with it, says of them."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from inspector.accounts.models import Membership
from inspector.audit.models import Review
from inspector.audit.services import create_queue, fill_queue, give_verdict
from inspector.intake.models import Record
from inspector.ledger.bundles import NoCheckpointError, make_bundle, write_bundle
from inspector.ledger.models import LedgerEntry
from inspector.ledger.reading import get_checkpoint
from inspector.ledger.sequencing import enter_new
from inspector.ledger.signing import get_key, get_verifier
from inspector.threads.models import Conversation
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, settle_all
from ..pages.conftest import STORY
from .test_ledger import as_superuser

VERIFIER = Path(__file__).parents[3] / "clients" / "verifier" / "verify_bundle.py"
pytestmark = pytest.mark.django_db


@pytest.fixture
def signed(cast: Cast) -> Conversation:
    """The conversation of the story, signed off, and everything of it entered."""
    deliver(cast, STORY, name="story.log")
    settle_all()
    conversation = Conversation.objects.get(native_id="story")
    sign_off(cast.auditor, conversation)
    enter_new(at_once=True)
    return conversation


def sign_off(membership: Membership, conversation: Conversation) -> Review:
    seen = bytes(conversation.settled_digest or b"")
    return give_verdict(membership=membership, conversation=conversation, verdict="fine", comment="„Seen“", seen=seen)


def write(path: Path, cast: Cast, **given: Any) -> Path:
    path.write_bytes(b"".join(write_bundle(make_bundle(workspace=cast.workspace, **given))))
    return path


def read(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as source:
        return {name: source.read(name) for name in source.namelist()}


def read_lines(path: Path, name: str = "entries.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(path)[name].splitlines()]


def verify(path: Path, *given: str) -> tuple[int, str]:
    key = get_key()
    assert key
    verifier = str(get_verifier(key, make_workspace_id(path)))
    command = [sys.executable, str(VERIFIER), path.name, "--key", verifier, *given]
    ran = subprocess.run(command, cwd=path.parent, env={}, capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


def make_workspace_id(path: Path) -> Any:
    import uuid

    return uuid.UUID(json.loads(read(path)["manifest.json"])["origin"].rpartition("/")[2])


@pytest.mark.parametrize("is_exact", [True, False], ids=["exact", "masked"])
@pytest.mark.parametrize("of", ["workspace", "conversation"])
def test_a_bundle_verifies_offline(cast: Cast, signed: Conversation, tmp_path: Path, of: str, is_exact: bool) -> None:
    about = {"conversation": signed} if of == "conversation" else {}
    path = write(tmp_path / "b.zip", cast, membership=cast.auditor, is_exact=is_exact, **about)
    status, text = verify(path)
    assert status == 0, text
    assert "BROKEN" not in text
    assert "its 3 messages, with their English, are what was signed." in text
    assert ("HOLDS    Records: the bytes of" in text) is is_exact
    assert ("records.bin" in read(path)) is is_exact
    assert "leaves give the signed root" in text
