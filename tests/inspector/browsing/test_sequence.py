"""The sequence: windows end to end hold every message once, buckets add up, and nothing odd is taken together."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta

import pytest

from inspector.browsing.sequence import Arrow, read_sequence
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import find_openings, sum_up
from inspector.threads.states import ASKS, FAILING
from inspector.threads.summaries import MAX_GRAVE, read_tally
from inspector.threads.timeline import Start
from tests.inspector.conftest import Cast, take_in

START = 1795251600


def say(number: int, *, at: int | None = None, **said: object) -> bytes:
    """A CLowl line of the conversation `c`: progress of a draft, if nothing else is said."""
    record = {
        "clowl": "0.2",
        "mid": f"m{number}",
        "ts": START + (number if at is None else at),
        "pid": None,
        "p": "PROG",
        "from": "ink",
        "to": "muse",
        "cid": "c",
        "body": {"t": "draft", "d": {"pct": number}},
    }
    return json.dumps({**record, **said}).encode() + b"\n"


def find(native_id: str = "c") -> Conversation:
    return Conversation.objects.get(native_id=native_id)


def read_all(size: int, *, is_all_opened: bool = False) -> list[Arrow]:
    """The arrows of every window, one after the other, by the links between them."""
    arrows: list[Arrow] = []
    start: Start | None = Start()
    while start is not None:
        found, window = read_sequence(conversation=find(), start=start, size=size, is_all_opened=is_all_opened)
        assert window.first == sum(arrow.count for arrow in arrows) + 1
        arrows += found
        start = Start(after=window.later) if window.later else None
    return arrows


@pytest.mark.parametrize("size", [7, 25, 100])
def test_windows_end_to_end_hold_every_message_once(cast: Cast, size: int) -> None:
    chance = random.Random(size)
    lines = [
        say(number, **{"from": chance.choice(["ink", "muse"]), "p": chance.choice(["PROG", "PROG", "DONE"])})
        for number in range(120)
    ]
    take_in(cast, *lines, is_examined=False)
    arrows = read_all(size)
    positions = [step.position for arrow in arrows for step in arrow.steps]
    assert positions == list(range(120))
    assert sum(arrow.count for arrow in arrows) == 120
    assert any(arrow.is_bucket for arrow in arrows)
    for arrow in arrows:
        assert len({step.find_likeness() for step in arrow.steps}) == 1
        assert arrow.count == 1 or arrow.count >= 3
    opened = read_all(size, is_all_opened=True)
    assert [arrow.count for arrow in opened] == [1] * 120


def test_a_bucket_holds_a_run_and_opens_by_its_place(cast: Cast) -> None:
    take_in(cast, say(0, p="REQ"), *(say(number) for number in range(1, 38)), say(38, p="DONE"), is_examined=False)
    arrows, _ = read_sequence(conversation=find())
    assert [arrow.count for arrow in arrows] == [1, 37, 1]
    assert read_sequence(conversation=find(), opened={1})[0][1].count == 1
    assert len(read_sequence(conversation=find(), opened={2})[0]) == 3


def test_what_has_no_topic_is_alike_only_where_its_sentence_is(cast: Cast) -> None:
    take_in(
        cast,
        *(f"The press printed sheet {number}.\n".encode() for number in range(4)),
        b"It stopped.\n" * 2,
        is_examined=False,
    )
    arrows, _ = read_sequence(conversation=Conversation.objects.get())
    assert [arrow.count for arrow in arrows] == [4, 1, 1]


def test_one_that_cites_what_is_missing_stands_alone_and_names_it(cast: Cast) -> None:
    take_in(cast, *(say(number, **({"pid": "never"} if number == 4 else {})) for number in range(9)), is_examined=False)
    arrows, _ = read_sequence(conversation=find())
    assert [arrow.count for arrow in arrows] == [4, 1, 4]
    assert arrows[1].first.missing_name == "never"
    assert not any(step.missing for arrow in (arrows[0], arrows[2]) for step in arrow.steps)


def test_time_is_counted_over_the_border_of_a_window(cast: Cast) -> None:
    take_in(cast, say(0, p="REQ"), say(1, at=90), is_examined=False)
    (first,), window = read_sequence(conversation=find(), size=1)
    assert first.since is None
    for start in (Start(offset=1), Start(after=window.later)):
        assert read_sequence(conversation=find(), start=start, size=1)[0][0].since == timedelta(seconds=90)


def test_a_tally_counts_what_the_rows_hold(cast: Cast) -> None:
    lines = [
        say(0, p="INF"),
        say(1, p="REQ", **{"from": "muse", "to": "ink"}),
        say(2, p="ERR", body={"t": "error", "d": {"code": "E9999", "msg": "no", "retry": "perhaps"}}),
        say(3, p="WHAT"),
        say(4, pid="never"),
    ]
    take_in(cast, *lines, b'{"clowl":"0.2","mid":"m9","cid":"c","p":\n', is_examined=False)
    for conversation in Conversation.objects.all():
        tally = read_tally(conversation.tally)
        rows = list(Message.objects.filter(conversation=conversation).order_by("place"))
        asks = [row for row in rows if row.performative in ASKS]
        grave = sorted((row for row in rows if row.severity >= Message.Severity.WARNING), key=lambda row: -row.severity)
        assert tally.severities == Counter(row.severity for row in rows)
        assert tally.senders == Counter(row.sender for row in rows if row.sender)
        assert tally.asked == (bytes(asks[0].place or b"").hex() if asks else None)
        assert tally.asked_count == len(asks)
        assert tally.failed_count == sum(row.performative in FAILING for row in rows)
        assert tally.malformed_count == sum(row.performative is None for row in rows)
        assert tally.gravest == [bytes(row.place or b"").hex() for row in grave[:MAX_GRAVE]]
    tally = read_tally(find().tally)
    asked = Message.objects.get(pk=sum_up(conversation=find()).asked.pk)  # type: ignore[union-attr]
    assert (asked.native_id, tally.asked_count, tally.failed_count) == ("m1", 1, 1)
    assert tally.gravest


def test_a_greeting_names_no_conversation(cast: Cast) -> None:
    take_in(cast, b"@v2.0#h\n<ctx\n?Uk\n", name="lambda.log", is_examined=False)
    conversation = Conversation.objects.get(dialects__contains=["lambda_lang"])
    acts = list(
        Message.objects.filter(conversation=conversation).order_by("place").values_list("performative", flat=True)
    )
    assert acts[0] == "handshake"
    assert conversation.subject != "context"
    asked = Message.objects.get(conversation=conversation, performative__in=["query", "request"])
    assert find_openings(conversation_ids=[conversation.pk]) == {conversation.pk: asked.english}
