"""Settling is a function of the set: whatever came first, and whatever random ids were given, the outcome is one."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from inspector.intake.models import Door, Record
from inspector.threads.models import Conversation, Message
from inspector.threads.nodes import load_timelines

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db


def line(raw: str, **names: object) -> bytes:
    return json.dumps({"raw": raw, **names}).encode() + b"\n"


CITING = line("As you said.", id="q", parent="p", conversation="side", at="2026-11-21T09:00:09Z")
FIRST = line("Do it.", id="p", conversation="one", at="2026-11-21T09:00:00Z")
SECOND = line("Do it.", id="p", conversation="two", at="2026-11-21T09:00:01Z")


def name_of(one: bytes) -> str:
    said = json.loads(one)
    return str(said["conversation"])


@pytest.mark.parametrize(
    "order", list(permutations([CITING, FIRST, SECOND])), ids=lambda order: "-".join(map(name_of, order))
)
def test_an_id_that_two_conversations_bear_is_no_parent_whatever_came_first(
    cast: Cast, order: tuple[bytes, ...]
) -> None:
    for one in order:
        deliver(cast, one, door=Door.API)
        settle_all()
    citing = Message.objects.get(native_id="q")
    assert citing.parent is None
    assert citing.parent_why == "it names its parent; 2 messages bear that id"
    assert citing.conversation.missing_count == 1


def test_a_parent_elsewhere_that_moves_is_still_the_parent(cast: Cast) -> None:
    deliver(cast, line("Do it.", id="p", conversation="one", at="2026-11-21T09:00:05Z"), CITING)
    settle_all()
    # The same record with an earlier time is read anew in its new place, as a row of its own.
    deliver(cast, FIRST)
    settle_all()
    assert Message.objects.get(native_id="q").parent == Message.objects.get(native_id="p").pk


def test_records_of_equal_order_keys_are_gone_through_by_identity(cast: Cast) -> None:
    """The dialect that a conversation speaks must not depend on which record was given the smaller random id."""
    conversations = []
    for reverse in (False, True):
        Record.objects.all().delete()
        raws = sorted(["We go on.", "Then we rest."], reverse=reverse)
        for raw in raws:
            deliver(cast, b"same first line\n" + line(raw, conversation="c", at="2026-11-21T09:00:00Z"))
        settle_all()
        conversation = Conversation.objects.get(native_id="c")
        nodes = load_timelines([conversation.pk])[conversation.pk].nodes
        identities = {record.pk: bytes(record.identity) for record in Record.objects.all()}
        conversations.append([identities[node.record] for node in nodes])
    assert conversations[0] == conversations[1]
