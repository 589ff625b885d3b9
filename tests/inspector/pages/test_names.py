"""What conversations are called: the same on every page, and those of one name with their ids."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client

from inspector.audit.comments import write_comment
from inspector.audit.models import Finding
from inspector.audit.models.reviews import ReviewItem
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.pages.shown.told import MAX_ID_LENGTH, shorten_id
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, read

IDS = ("claims-2026-11-21/88127.assess", "claims-2026-11-21/88128.assess")
SHORT = ("claims-2026-…8127.assess", "claims-2026-…8128.assess")


def clowl(cid: str, number: int) -> bytes:
    """A failure that answers what never came, and is therefore a finding; its conversation is named after the task."""
    return (
        f'{{"clowl":"0.2","mid":"m{number}","ts":1795251600,"p":"ERR","pid":"x{number}","from":"radar","to":"oscar",'
        f'"cid":"{cid}","body":{{"t":"assess-claim","d":{{"code":"E003","msg":"lost"}}}}}}\n'
    ).encode()


@pytest.fixture
def namesakes(cast: Cast) -> list[Conversation]:
    delivery = take_in(cast, b"".join(clowl(cid, number) for number, cid in enumerate(IDS)), name="claims.log")
    assert delivery.stored == 2
    return list(Conversation.objects.order_by("native_id"))


def ids_of(page: str) -> set[str]:
    return set(re.findall(r'<bdi class="hash quiet" title="Conversation id [^"]+">([^<]+)</bdi>', page))


def test_namesakes_have_their_ids_wherever_they_are_named(
    auditor: Client, cast: Cast, namesakes: list[Conversation]
) -> None:
    finding = Finding.objects.filter(conversation=namesakes[0]).first()
    assert finding is not None
    queue = create_queue(membership=cast.owner, name="q")
    fill_queue(queue=queue, conversations=[each.pk for each in namesakes], why="", membership=cast.owner)
    for message in Message.objects.select_related("record", "conversation", "channel"):
        write_comment(membership=cast.auditor, message=message, start=0, end=5, words="so?")
    item = ReviewItem.objects.get(conversation=namesakes[0])
    (delivery_id,) = set(Message.objects.values_list("record__sightings__delivery", flat=True))
    both = {
        "findings": read(auditor, page_of("findings")),
        "one rule": read(auditor, page_of("findings") + f"?rule={finding.rule}"),
        "receipt": read(auditor, page_of("delivery", delivery_id)),
        "search": read(auditor, page_of("search") + "?q=lost"),
        "queue": read(auditor, page_of("queue", queue.pk)),
        "item": read(auditor, page_of("review-item", item.pk)),
        "comments": read(auditor, page_of("comments")),
    }
    assert {name: ids_of(page) for name, page in both.items()} == {name: set(SHORT) for name in both}
    assert ids_of(read(auditor, page_of("finding", finding.pk))) == {SHORT[0]}
    assert f'</h1> <bdi class="hash quiet" title="Conversation id {IDS[0]}">{SHORT[0]}</bdi>' in both["item"]


@pytest.mark.parametrize(
    ("native_id", "title", "short"),
    [
        ("", "Asks", ""),
        ("a-1", "a-1", ""),
        ("a-1", "Asks", "a-1"),
        ("x" * MAX_ID_LENGTH, "Asks", "x" * MAX_ID_LENGTH),
        ("head" + "x" * 200 + "tail", "Asks", "headxxxxxxxx…xxxxxxxtail"),
    ],
)
def test_an_id_is_shortened_in_its_middle(native_id: str, title: str, short: str) -> None:
    assert shorten_id(Conversation(id=uuid.uuid4(), native_id=native_id), title) == short


def test_a_conversation_without_a_name_is_called_the_same_everywhere(auditor: Client, cast: Cast) -> None:
    take_in(cast, b"@a3|f0|c1\n", name="cut.log")
    conversation = Conversation.objects.get()
    assert (conversation.title, conversation.subject) == ("", "")
    (listed,) = re.findall(r"data-open>([^<]+)</a>", read(auditor, page_of("conversations")))
    head = listed.split(" …")[0][:20]
    assert head.startswith("Someone")
    for name, query in (("search", "?q=dialect:nslip"), ("findings", "")):
        page = read(auditor, page_of(name) + query)
        assert head in page
        assert "Untitled" not in page
