"""A record of megabytes: every page and answer about it stays small, and so does the memory that it takes."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client

from inspector.accounts.services import create_api_key
from inspector.bounds import MAX_ANSWER_BYTES
from inspector.threads.models import Message
from inspector.threads.selectors import read_body
from inspector.threads.teller import MAX_SENTENCE

from .conftest import Cast, take_in

pytestmark = pytest.mark.django_db
MAX_MEMORY: Final = 64 * 1024 * 1024
CLOWL: Final = {"clowl": "0.2", "mid": "m1", "p": "REQ", "from": "ada", "to": "bob", "cid": "c"}
BODIES: Final = {
    "many members": {"t": "count", **{f"k{number}": number for number in range(120_000)}},
    "one text": {"t": "x" * 3_000_000},
}


def measure_memory(name: str) -> int:
    """`VmRSS`: the memory that this process has; `VmHWM`: the most that it had since it was last asked to forget."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def ask(client: Client, address: str, headers: dict[str, str]) -> tuple[int, int, int]:
    """The status, the bytes of the answer, and how much more memory was needed for it."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = measure_memory("VmRSS")
    answer: Any = client.get(address, headers=headers)
    size = sum(len(piece) for piece in answer.streaming_content) if answer.streaming else len(answer.content)
    return answer.status_code, size, measure_memory("VmHWM") - before


@pytest.mark.long(seconds=50)
@pytest.mark.parametrize("kind", BODIES)
def test_every_answer_is_small(cast: Cast, sign_in: Callable[..., Client], kind: str) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the most memory of a process can be read on Linux alone")
    scopes = ["read", "secrets", "review"]
    headers = {"Authorization": f"Bearer {create_api_key(workspace=cast.workspace, name='t', scopes=scopes)[1]}"}
    take_in(cast, json.dumps(CLOWL | {"body": BODIES[kind]}).encode() + b"\n")
    message = Message.objects.defer("body").get()
    conversation, record, delivery = (
        message.conversation_id,
        message.record_id,
        message.record.sightings.get().delivery_id,
    )
    person = sign_in(cast.owner)
    pages = [
        *("overview/", "conversations/", "search/?q=from:ada", "findings/", "agents/", f"deliveries/{delivery}/"),
        *(
            f"conversations/{conversation}/{part}"
            for part in ("", "?order=time", "raw/", "tasks/", "sequence/", "findings/")
        ),
        f"messages/{message.pk}/",
    ]
    answers = [
        *(f"messages/{message.pk}", f"messages/{message.pk}/fields", "messages?q=from:ada", "findings"),
        *(f"conversations/{conversation}{part}" for part in ("", "/tree", "/tasks", "/sequence")),
        f"deliveries/{delivery}",
    ]
    asked = [(person, f"/w/acme/{page}", {}) for page in pages]
    asked += [(Client(), f"/api/v1/{answer}", headers) for answer in answers]
    # Once without measuring: templates and parsers are loaded then.
    said = {address: [ask(*each) for _ in range(2)][1] for each in asked for address in [each[1]]}
    assert {address: status for address, (status, _, _) in said.items() if status != 200} == {}
    assert {address: size for address, (_, size, _) in said.items() if size > MAX_ANSWER_BYTES} == {}
    assert {address: memory for address, (_, _, memory) in said.items() if memory > MAX_MEMORY} == {}
    exact = ask(Client(), f"/api/v1/records/{record}/raw", headers)
    assert exact[1] > 2_000_000
    assert exact[2] <= MAX_MEMORY


def test_what_is_left_out_is_said(cast: Cast, token: str) -> None:
    take_in(cast, json.dumps(CLOWL | {"body": BODIES["one text"]}).encode() + b"\n")
    message = Message.objects.get()
    assert len(message.english) < MAX_SENTENCE + 100
    assert message.english.endswith("more characters")
    segments = read_body(message)["message"]["english"]
    assert segments[-1]["text"].endswith("more characters that are not told here.")
    assert segments[-1]["basis"] == "unknown"
    answer = Client().get(f"/api/v1/messages/{message.pk}", headers={"Authorization": f"Bearer {token}"}).json()
    assert {cut["path"] for cut in answer["cut"]} >= {"fields", "message.topic"}
    window = Client().get(f"/api/v1/messages/{message.pk}/fields", headers={"Authorization": f"Bearer {token}"}).json()
    assert window["results"] == []
    assert window["cut"][0]["unit"] == "bytes"
