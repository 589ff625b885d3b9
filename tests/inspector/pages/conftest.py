"""What the tests of the pages share: the signed-in cast and a small story that is settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector.intake.models import Delivery
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, take_in

STORY = (
    b'{"clowl":"0.2","mid":"m1","ts":1795251600,"tid":"t1","pid":null,"p":"REQ","from":"oscar","to":"radar",'
    b'"cid":"story","body":{"t":"search","d":{"q":"MCP vs A2A"}}}\n'
    b'{"clowl":"0.2","mid":"m2","ts":1795251601,"tid":"t1","pid":"m1","p":"ACK","from":"radar","to":"oscar",'
    b'"cid":"story","body":{"t":"search","d":{"eta":"60s"}}}\n'
    b'{"clowl":"0.2","mid":"m4","ts":1795251660,"tid":"t1","pid":"m3","p":"ERR","from":"radar","to":"oscar",'
    b'"cid":"story","body":{"t":"error","d":{"code":"E003","msg":"not accessible","retry":true}}}\n'
    b'@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"refactor_auth"#\n'
    b"@a3|f0|c1\n"
)


def page_of(name: str, *ids: Any) -> str:
    """The address of a page of the first workspace."""
    return reverse(f"pages:{name}", args=["acme", *ids])


def text(response: Any) -> str:
    """An answer with its spaces made one."""
    return " ".join(response.content.decode().split())


def read(client: Client, address: str, **headers: str) -> str:
    """A page that is there, with its spaces made one."""
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200
    return text(answer)


def shows(page: str, *words: str, never: Sequence[str] = ()) -> None:
    """A text holds all of these words, and none of those."""
    assert [each for each in words if each not in page] == []
    assert [each for each in never if each in page] == []


@pytest.fixture
def story(cast: Cast) -> Delivery:
    """A story of two conversations: a question, its answer, a failure that cites what never came, a cut tag."""
    delivery = take_in(cast, STORY, name="story.log")
    delivery.refresh_from_db()
    return delivery


@pytest.fixture
def conversation(story: Delivery) -> Conversation:
    return Conversation.objects.get(native_id="story")
