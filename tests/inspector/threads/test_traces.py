"""Traces: one tree across conversations, joined across channels by decision 10 alone, whatever came first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects import Message as ReadMessage
from dialects import Reading, read
from inspector.accounts.models import Channel
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.keys import RANDOM as RANDOM_BASIS
from inspector.threads.keys import find_trace_basis
from inspector.threads.lines import Kind
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.selectors import find_message
from inspector.threads.trees import find_traces_of, load_tree

from ..conftest import Cast, deliver, resolve_all, take_in
from .plain_trees import read_lines

pytestmark = pytest.mark.django_db

RANDOM = "t-0123456789ab"


def clowl(
    mid: str, cid: str, *, trace: str | None = None, parent: str | None = None, act: str = "INF", at: int = 0
) -> bytes:
    said = {"clowl": "0.2", "mid": mid, "p": act, "from": "a", "to": "b", "cid": cid, "ts": 1763715600 + at}
    said |= {name: value for name, value in (("tid", trace), ("pid", parent)) if value}
    return json.dumps(said | {"body": {"t": mid}}).encode() + b"\n"


def prose(text: str, **names: Any) -> bytes:
    return json.dumps({"raw": text, **names}).encode() + b"\n"


def draw(trace: Trace) -> list[tuple[str, int]]:
    """The tree as (what a line is called, depth)."""
    tree = load_tree(trace)
    if tree is None:
        return []
    names = {message.pk: message.native_id for message in Message.objects.all()}
    names |= {conversation.pk: f"[{conversation.native_id}]" for conversation in Conversation.objects.all()}
    return [("ghost" if line.kind == Kind.GHOST else names[line.id], depth) for depth, line in read_lines(tree)]


def find(native_id: str, channel: Channel | None = None) -> Trace:
    return Trace.objects.get(native_id=native_id, channel=channel)


STORY = [
    clowl("m1", "one", trace=RANDOM, act="REQ", at=0),
    clowl("m2", "one", trace=RANDOM, parent="m1", act="ACK", at=1),
    clowl("n1", "two", trace=RANDOM, parent="m1", act="DLGT", at=2),
    clowl("n2", "two", trace=RANDOM, parent="n1", act="DONE", at=9),
    clowl("m3", "one", trace=RANDOM, parent="n2", act="DONE", at=10),
    clowl("o1", "three", trace=RANDOM, parent="lost", at=11),
    clowl("o2", "three", trace=RANDOM, parent="lost", at=12),
    prose("And that was it.", id="p1", conversation="four", trace=RANDOM, at="2025-11-21T09:01:00Z"),
    # Each cites the other, in another conversation: a circle that settling one of them cannot see.
    clowl("x1", "five", trace=RANDOM, parent="y1", at=20),
    clowl("y1", "six", trace=RANDOM, parent="x1", at=21),
    clowl("z1", "seven", trace=RANDOM, parent="z1", at=22),
]
TREE = [
    ("[one]", 0),
    ("m1", 1),
    ("m2", 2),
    ("n1", 2),
    ("n2", 3),
    ("m3", 4),
    ("[three]", 0),
    ("ghost", 1),
    ("o1", 2),
    ("o2", 2),
    ("[five]", 0),
    ("x1", 1),
    ("y1", 2),
    ("[seven]", 0),
    ("z1", 1),
    ("[four]", 0),
    ("p1", 1),
]


def test_one_tree_across_conversations(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    trace = find(RANDOM)
    assert draw(trace) == TREE
    assert (trace.message_count, trace.conversation_count, trace.missing_count) == (11, 7, 1)
    assert (trace.state, trace.open_count, trace.subject) == ("done", 0, "m1")


def test_a_ghost_becomes_the_message_when_it_arrives_in_any_conversation(cast: Cast) -> None:
    take_in(cast, *STORY, is_examined=False)
    take_in(cast, clowl("lost", "eight", trace=RANDOM, at=3), name="late.log", is_examined=False)
    trace = find(RANDOM)
    tree = draw(trace)
    assert tree[6:10] == [("[eight]", 0), ("lost", 1), ("o1", 2), ("o2", 2)]
    assert trace.missing_count == 0


def test_what_is_withdrawn_leaves_its_trace_and_comes_back(cast: Cast) -> None:
    deliver(cast, *STORY[:2])
    late = take_in(cast, *STORY[2:5], name="late.log", is_examined=False)
    assert find(RANDOM).message_count == 5
    before = draw(find(RANDOM))
    withdraw_delivery(membership=cast.owner, delivery=late, reason="a test")
    resolve_all(is_examined=False)
    assert draw(find(RANDOM)) == [("[one]", 0), ("m1", 1), ("m2", 2)]
    take_back(membership=cast.owner, delivery=late, reason="a test")
    resolve_all(is_examined=False)
    assert draw(find(RANDOM)) == before
    assert find(RANDOM).message_count == 5


@pytest.mark.parametrize(
    ("native_id", "is_enveloped", "is_joined"),
    [
        ("t001", False, False),
        ("t001", True, True),
        (RANDOM, False, True),
        ("0af7651916cd43dd8448eb211c80319c", False, True),
        ("0198d2f0-7a55-7c31-9d3e-5a1f4b7c9e21", False, True),
        ("t-0123456789abc", False, False),
        ("0" * 32, False, False),
    ],
)
def test_traces_join_across_channels_by_envelope_or_by_form(
    cast: Cast, native_id: str, is_enveloped: bool, is_joined: bool
) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    for channel, name in ((cast.channel, "a1"), (other, "b1")):
        said = (
            prose("Hello.", id=name, conversation="c", trace=native_id, at="2025-11-21T09:00:00Z")
            if is_enveloped
            else clowl(name, "c", trace=native_id)
        )
        deliver(cast, said, channel=channel, name=f"{name}.log")
    resolve_all(is_examined=False)
    shown = Trace.objects.filter(last_at__isnull=False)
    assert {trace.channel for trace in shown} == ({None} if is_joined else {cast.channel, other})
    assert sum(trace.message_count for trace in shown) == 2
    agree_on_traces(cast)


def agree_on_traces(cast: Cast) -> None:
    """What a message is found with is what the messages of a page are asked for together."""
    for message in Message.objects.all():
        found = find_message(workspace=cast.workspace, message_id=message.pk)
        held = Trace.objects.filter(key=message.trace_key, last_at__isnull=False)
        own = None if message.trace_basis == RANDOM_BASIS else held.filter(channel=message.channel).first()
        trace = own or held.filter(channel=None).first()
        expected = {"id": str(trace.pk), "name": trace.native_id} if trace else None
        assert vars(found)["trace"] == expected
        assert find_traces_of(messages=[message]) == ([expected] if expected else [])


@pytest.mark.parametrize("is_enveloped_first", [True, False])
def test_one_envelope_joins_all_that_its_channel_says_and_nothing_of_another(
    cast: Cast, is_enveloped_first: bool
) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    enveloped = prose("Hello.", id="p", conversation="c", trace="t001", at="2025-11-21T09:00:00Z")
    lines = [(enveloped, cast.channel), (clowl("w", "c", trace="t001"), cast.channel)]
    for at, (said, channel) in enumerate(lines if is_enveloped_first else lines[::-1]):
        take_in(cast, said, channel=channel, name=f"{at}.log", is_examined=False)
    take_in(cast, clowl("v", "c", trace="t001"), channel=other, name="other.log", is_examined=False)
    assert find("t001").message_count == 2
    assert find("t001", other).message_count == 1
    assert find("t001", cast.channel).last_at is None, "all of it is in the trace across channels"
    agree_on_traces(cast)


def test_the_envelope_counts_only_where_the_wire_is_silent() -> None:
    wire = clowl("m", "c", trace="t1").decode()
    reading = read(wire)
    assert find_trace_basis(reading.messages[0], reading) == "wire"
    assert find_trace_basis(ReadMessage(), Reading(dialect="prose", layers=(), tree=tuple)) == ""
