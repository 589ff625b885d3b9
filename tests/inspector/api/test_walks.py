"""Every list with pages, walked while others write: no row of the start is missed, and none comes twice."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.test import Client

from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key, ensure_channel
from inspector.audit.comments import write_comment
from inspector.audit.findings.services import judge
from inspector.audit.models import Finding, ReviewItem, ReviewQueue
from inspector.audit.reviews.queues import close_queue, create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, judge_item
from inspector.audit.samples import draw_sample
from inspector.exports.models import Export
from inspector.intake.models import Delivery
from inspector.intake.withdrawals import withdraw_delivery
from inspector.retention.models import Erasure
from inspector.search.aids import save_search
from inspector.threads.models import AgentTotal, Conversation, Message, Task, Trace
from inspector.threads.selectors import find_message

from ..conftest import Cast, deliver, resolve_all
from ..exports.conftest import ask, make
from .clients import list_operations

pytestmark = pytest.mark.django_db

SIZE: Final = 2
TURNS: Final = 6
START: Final = 1795118400
# What names a row, in the lists whose rows have no id.
NAMES: Final = {"trail": "number", "sample-conversations": "place"}
# Where the rows of a list are that are not its `results`.
ROWS: Final = {"conversation": "messages", "sequence": "arrows"}


def say(talk: int, number: int, act: str = "REQ", at: int = 0, **more: Any) -> bytes:
    """A line of one of the conversations, each with two agents and a trace of its own."""
    line = {"clowl": "0.2", "mid": f"m{talk}-{number}", "ts": START + at, "tid": f"goal-{talk}", "p": act}
    sides = {"from": f"ada-{talk}", "to": f"bob-{talk}", "cid": f"c{talk}", "body": {"t": "search", "d": {"q": "tea"}}}
    return json.dumps({**line, **sides, **more}).encode() + b"\n"


@dataclass
class Store:
    """Some of everything that is listed, and writers of all of it."""

    cast: Cast
    queue: ReviewQueue
    sample: uuid.UUID
    message: Message
    busy: Conversation
    talks: int
    signed: ReviewQueue
    withdrawn: list[Delivery]
    turn: int = 0

    def write(self) -> None:
        """Let everything move: what was long silent says more, what comes is late, people judge, close and save."""
        self.turn += 1
        cast, turn = self.cast, self.turn
        # The last one that a walk comes to, the first one, and a new one.
        for talk in (turn % self.talks, self.talks - 1 - turn % self.talks):
            deliver(cast, say(talk, 10 + turn, "ERR", 10_000 + turn, pid=f"lost-{turn}"))
        deliver(cast, say(self.talks + turn, 0, at=20_000 + turn), say(0, 50 + turn, at=-1000 * turn, tkid="x"))
        resolve_all()
        findings = list(Finding.objects.order_by("pk").values_list("pk", flat=True))
        judge(membership=cast.auditor, findings=findings[turn % 3 :: 3], state="accepted", reason="seen")
        others = list(ReviewQueue.objects.filter(name__startswith="other").order_by("pk"))
        close_queue(membership=cast.owner, queue=others[turn % len(others)], is_closed=turn % 2 == 0)
        close_queue(membership=cast.owner, queue=others[-1 - turn % len(others)], is_closed=True)
        fresh = Conversation.objects.order_by("-pk")[0]
        fill_queue(queue=self.signed, conversations=[fresh.pk], why="", membership=cast.owner)
        sign_off(cast, self.signed.items.get(conversation=fresh))
        for free in self.queue.items.filter(holder=None).order_by("-pk")[:1]:
            claim(membership=cast.owner, item=free)
        ensure_channel(workspace=cast.workspace, name=f"later-{turn}")
        save_search(membership=cast.auditor, name=f"saved {turn % 5}", query=f"turn {turn}", is_shared=True)
        write_comment(membership=cast.auditor, message=self.message, start=turn % 3, end=4, words="And now?")
        draw_sample(membership=cast.owner, name=f"sample later {turn}", stratum="dialect", wanted=1)
        Erasure.objects.create(workspace=cast.workspace, kind="age", reason="later")
        make(ask_by_key(cast))

    def withdraw(self) -> None:
        """Take back of what a walk of the conversation has passed, and of what it comes to."""
        for delivery in self.withdrawn[self.turn :: TURNS]:
            withdraw_delivery(membership=self.cast.owner, delivery=delivery, reason="sent by mistake")


def sign_off(cast: Cast, item: ReviewItem) -> None:
    held = claim(membership=cast.auditor, item=item)
    conversation = Conversation.objects.get(pk=item.conversation_id)
    seen = bytes(conversation.settled_digest or b"")
    judge_item(membership=cast.auditor, item=held, verdict="fine", comment="", seen=seen)


def ask_by_key(cast: Cast) -> Export:
    return ask(cast, membership=None, api_key=ApiKey.objects.get(name="walker"), is_masked=True)


@pytest.fixture
def token(cast: Cast) -> str:
    scopes = ApiKey.Scope.values
    return create_api_key(workspace=cast.workspace, name="walker", scopes=scopes, created_by=cast.auditor.user)[1]


@pytest.fixture
def store(cast: Cast, token: str, settings: Any) -> Store:
    settings.LIMITS = {**settings.LIMITS, "requests_per_minute": 0}
    talks = 9
    for talk in range(talks):
        deliver(cast, say(talk, 0, at=talk * 60), say(talk, 1, "ERR", at=talk * 60 + 5, pid=f"gone-{talk}"))
    deliver(cast, *(say(0, 2 + number, at=1000 + number) for number in range(6)))
    # Between these come those that are withdrawn while others walk, a turn one of the first half and one of the second.
    withdrawn = [deliver(cast, say(0, 100 + number, at=10 + 100 * number)) for number in range(2 * TURNS)]
    resolve_all()
    ids = list(Conversation.objects.order_by("pk").values_list("pk", flat=True))
    queue = create_queue(membership=cast.owner, name="queue", reviewers=2)
    fill_queue(queue=queue, conversations=ids[:5], why="", membership=cast.owner)
    signed = create_queue(membership=cast.owner, name="signed")
    fill_queue(queue=signed, conversations=ids[:5], why="", membership=cast.owner)
    for item in signed.items.order_by("pk"):
        sign_off(cast, item)
    for number in range(5):
        create_queue(membership=cast.owner, name=f"other {number}")
        ensure_channel(workspace=cast.workspace, name=f"early-{number}")
        save_search(membership=cast.auditor, name=f"saved {number}", query="tea", is_shared=number % 2 == 0)
        make(ask_by_key(cast))
        Erasure.objects.create(workspace=cast.workspace, kind="age", reason="kept for 30 days")
    samples = [
        draw_sample(membership=cast.owner, name=f"s{number}", stratum="channel", wanted=6) for number in range(5)
    ]
    message = find_message(workspace=cast.workspace, message_id=Message.objects.order_by("pk")[0].pk)
    assert message is not None
    for number in range(5):
        write_comment(membership=cast.auditor, message=message, start=number, end=number + 1, words="Why?")
    return Store(
        cast=cast,
        queue=queue,
        sample=samples[0].pk,
        message=message,
        busy=message.conversation,
        talks=talks,
        signed=signed,
        withdrawn=withdrawn,
    )


def list_lists() -> dict[str, str]:
    """The address of every list with pages, by its name in the URLconf."""
    return {
        str(url.name): f"/api/{url.pattern}"
        for url, _, operation in list_operations()
        if any(each.name == "cursor" for each in operation.parameters)
    }


def list_walks(store: Store) -> dict[str, tuple[str, dict[str, str]]]:
    """Every list as it opens, and narrowed where another order would suggest itself: its address and parameters."""
    ids = {
        "conversation_id": store.busy.pk,
        "message_id": store.message.pk,
        "queue_id": store.queue.pk,
        "sample_id": store.sample,
    }
    walks: dict[str, tuple[str, dict[str, str]]] = {}
    for name, pattern in list_lists().items():
        address = pattern
        for place, pk in ids.items():
            address = address.replace(f"<uuid:{place}>", str(pk))
        walks[name] = (address, {})
    done = walks["review-items"][0].replace(str(store.queue.pk), str(store.signed.pk))
    return walks | {
        "review-items?done": (done, {"state": "done"}),
        "conversations?q": (walks["conversations"][0], {"q": "tea"}),
        "traces?q": (walks["traces"][0], {"q": "tea"}),
        "agents?dialect": (walks["agents"][0], {"dialect": "clowl"}),
        "findings?least": (walks["findings"][0], {"least": "notice"}),
    }


def ask_page(token: str, walk: tuple[str, dict[str, str]], **more: Any) -> Any:
    address, given = walk
    answer = Client().get(address, {**given, **more}, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, (address, answer.content)
    return answer.json()


def list_names(name: str, page: Any) -> list[str]:
    """What names the rows of a page: the messages, of arrows."""
    rows = page[ROWS.get(name, "results")]
    if name == "sequence":
        return [message for arrow in rows for message in arrow["messages"]]
    return [str(row[NAMES.get(name, "id")]) for row in rows]


def test_no_row_is_missed_or_doubled_while_others_write(store: Store, token: str) -> None:
    walks = list_walks(store)
    before = {name: list_names(name, ask_page(token, walk, limit=100)) for name, walk in walks.items()}
    # A walk of one page proves nothing.
    assert {name: len(rows) for name, rows in before.items() if len(rows) <= 2 * SIZE} == {}
    stood = {model: set(model.objects.values_list("pk", moving)) for model, moving in MOVING.items()}
    seen: dict[str, list[Any]] = {name: [] for name in walks}
    cursors: dict[str, str | None] = dict.fromkeys(walks, "")
    pages = 0
    while left := [name for name, cursor in cursors.items() if cursor is not None]:
        for name in left:
            page = ask_page(token, walks[name], limit=SIZE, cursor=cursors[name])
            seen[name] += list_names(name, page)
            cursors[name] = page["next"]
        if store.turn < TURNS:
            store.withdraw()
            store.write()
        pages += 1
        assert pages < 200
    doubled = {name: len(rows) - len(set(rows)) for name, rows in seen.items() if len(rows) != len(set(rows))}
    gone = {str(pk) for pk in Message.objects.hidden().values_list("pk", flat=True)}
    assert len(gone) == 2 * TURNS
    # A task goes with its messages.
    gone |= set(before["tasks"]) - {str(pk) for pk in Task.objects.values_list("pk", flat=True)}
    missed = {name: sorted(set(before[name]) - set(rows) - gone) for name, rows in seen.items()}
    assert (doubled, {name: rows for name, rows in missed.items() if rows}) == ({}, {})
    # The writers did move what these lists hold.
    for model, moving in MOVING.items():
        assert len(stood[model] - set(model.objects.values_list("pk", moving))) >= 3, model


MOVING: Final[dict[Any, str]] = {
    Conversation: "last_at",
    Trace: "last_at",
    AgentTotal: "sent",
    Task: "place",
    ReviewQueue: "closed_at",
}


def test_an_order_that_moves_has_one_page(store: Store, token: str) -> None:
    walks = list_walks(store)
    for name, order, key in (
        ("conversations", "latest", "last_at"),
        ("traces", "latest", "last_at"),
        ("agents", "busiest", "sent"),
        ("tasks", "begin", "first_at"),
    ):
        page = ask_page(token, walks[name], order=order, limit=3)
        assert (len(page["results"]), page["next"]) == (3, None)
        cursor = ask_page(token, walks[name], limit=3)["next"]
        address, _ = walks[name]
        given = {"order": order, "cursor": cursor}
        refused = Client().get(address, given, headers={"Authorization": f"Bearer {token}"})
        assert (refused.status_code, refused.json()["parameter"]) == (400, "cursor")
        if order == "latest":
            shown = [row[key] for row in page["results"]]
            assert shown == sorted(shown, reverse=True)
