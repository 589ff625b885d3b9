"""Times that no message says are marked wherever they are shown, and what is counted since when says so."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from django.test import Client

from inspector.audit.models.reviews import ReviewItem
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.intake.framing import take_stream
from inspector.intake.models import Door
from inspector.intake.services import open_delivery
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, resolve_all, take_in

from .conftest import STORY, page_of, read, shows

# A question and its answer, and then a message that cites what never came.
SILENT = (
    b'{"clowl":"0.2","mid":"m1","p":"REQ","from":"oscar","to":"radar","cid":"c","body":{"t":"search"}}\n'
    b'{"clowl":"0.2","mid":"m2","pid":"m1","p":"ACK","from":"radar","to":"oscar","cid":"c","body":{"t":"search"}}\n'
    b'{"clowl":"0.2","mid":"m3","pid":"gone","p":"INF","from":"radar","to":"oscar","cid":"c","body":{"t":"search"}}\n'
)
START = datetime(2026, 11, 21, 10, tzinfo=UTC)
WHY = {
    "start": "the message does not say when it was sent: ordered by the declared start",
    "receipt": "the message does not say when it was sent: ordered by receipt",
}


def take_silent(cast: Cast, start: datetime | None) -> Conversation:
    delivery = open_delivery(
        workspace=cast.workspace, channel=cast.channel, door=Door.IMPORT, file_name="s.log", declared_start=start
    )
    take_stream(delivery=delivery, chunks=[SILENT])
    resolve_all()
    return Conversation.objects.get(native_id="c")


def open_all(client: Client, conversation: Conversation) -> dict[str, str]:
    message = Message.objects.get(native_id="m2")
    return {
        "transcript": read(client, page_of("conversation", conversation.pk)),
        "by time": read(client, page_of("conversation", conversation.pk) + "?order=time"),
        "raw": read(client, page_of("conversation-raw", conversation.pk)),
        "tree": read(client, page_of("conversation-tree", conversation.pk)),
        "sequence": read(client, page_of("sequence", conversation.pk)),
        "search": read(client, page_of("search") + "?q=search"),
        "findings": read(client, page_of("findings")),
        "message": read(client, page_of("message", message.pk)),
    }


def test_a_time_that_no_message_says_is_marked_everywhere(viewer: Client, cast: Cast) -> None:
    conversation = take_silent(cast, START)
    assert set(Message.objects.values_list("order_basis", flat=True)) == {"start"}
    for name, page in open_all(viewer, conversation).items():
        assert (name, WHY["start"] in page, "≈" in page) == (name, True, True)
    transcript = read(viewer, page_of("conversation", conversation.pk))
    shows(transcript, "≈ 10:00:00", never=["+0 s"])
    sequence = read(viewer, page_of("sequence", conversation.pk))
    shows(sequence, "the clock shows the start that was declared", "≈ 10:00:00")
    mermaid = viewer.get(page_of("sequence-mermaid", conversation.pk)).content.decode()
    assert "#8776; 10#58;00#58;00 inform" in mermaid


def test_what_is_received_in_one_file_is_marked_and_takes_no_time(viewer: Client, cast: Cast) -> None:
    conversation = take_silent(cast, None)
    page = read(viewer, page_of("conversation", conversation.pk))
    shows(page, WHY["receipt"], "<span>received</span>", never=["+0 s"])
    assert "the clock shows when they were received" in read(viewer, page_of("sequence", conversation.pk))


def test_what_a_message_says_has_no_mark(viewer: Client, cast: Cast) -> None:
    take_in(cast, STORY.replace(b'"pid":"m3",', b'"pid":"m1",'))
    conversation = Conversation.objects.get(native_id="story")
    for name in ("conversation", "conversation-tree", "sequence"):
        assert "≈" not in read(viewer, page_of(name, conversation.pk))


def test_how_long_after_what_is_said_beside_each(auditor: Client, cast: Cast) -> None:
    """m4 answers m1 after a minute, and comes 59 s after m2."""
    take_in(cast, STORY.replace(b'"pid":"m3",', b'"pid":"m1",'))
    conversation = Conversation.objects.get(native_id="story")
    queue = create_queue(membership=cast.owner, name="q")
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    item = ReviewItem.objects.get()
    tree = read(auditor, page_of("conversation", conversation.pk))
    by_time = [
        read(auditor, page_of("conversation", conversation.pk) + "?order=time"),
        read(auditor, page_of("review-item", item.pk)),
    ]
    found = re.compile(r'<span title="(after [^"]+)">(\+[^<]+)<')
    assert ("after the message that it refers to", "+1 min") in found.findall(tree)
    for page in by_time:
        assert ("after the message before", "+59 s") in found.findall(page)
