"""What the tests of the pages share: the signed-in cast and a small story that is settled."""

from __future__ import annotations

import pytest

from inspector.intake.models import Delivery
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, deliver, settle_all

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


@pytest.fixture
def story(cast: Cast) -> Delivery:
    """A story of two conversations: a question, its answer, a failure that cites what never came, a cut tag."""
    delivery = deliver(cast, STORY, name="story.log")
    settle_all()
    delivery.refresh_from_db()
    return delivery


@pytest.fixture
def conversation(story: Delivery) -> Conversation:
    return Conversation.objects.get(native_id="story")
