"""Every list whose order moves, walked by a person while others write: no row of the start is missed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from django.test import Client
from django.utils import timezone

from inspector.accounts.models import Channel
from inspector.accounts.services import ensure_channel
from inspector.audit.models import ReviewItem
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.database import WrittenSince, find_oldest_transaction
from inspector.threads.models import Conversation

from ..api.test_walks import SIZE, TURNS, Store, store, token

__all__ = ["store", "token"]

# Which transaction wrote a row says something only where there are several.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long(seconds=40)]

PACKAGE: Final = "inspector.pages"
SIZES: Final = (
    "conversations.views.PAGE_ROWS",
    "traces.PAGE_ROWS",
    "agents.PAGE_ROWS",
    "graph.PAGE_PAIRS",
    "findings.PAGE_ROWS",
    "conversations.tasks.PAGE_TASKS",
    "reviews.QUEUES_AT_ONCE",
)
NEXT: Final = ("older_url", "next_url", "later_url")
# What a page shows of each list, by what names a row.
SHOWN: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "conversations/": lambda page: [row["conversation"].pk for row in page["rows"]],
    "conversations/?order=worst": lambda page: [row["conversation"].pk for row in page["rows"]],
    "traces/": lambda page: [row["trace"].pk for row in page["rows"]],
    "agents/": lambda page: [row["sum"].agent.pk for row in page["rows"]],
    "agents/graph/": lambda page: [(pair["sender"].name, pair["receiver"].name) for pair in page["pairs"]],
    "findings/?order=worst&state=all": lambda page: [row["finding"].pk for row in page["rows"]],
    "reviews/": lambda page: [queue["row"].pk for queue in page["queues"]],
    "conversations/{busy}/tasks/": lambda page: [task["anchor"] for task in page["tasks"]],
}


def set_sizes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for name in SIZES:
        monkeypatch.setattr(f"{PACKAGE}.{name}", size)


def test_a_person_misses_nothing_while_others_write(
    store: Store, sign_in: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sign_in(store.cast.owner)

    def ask(address: str) -> Any:
        answer = client.get(address, follow=True)
        assert answer.status_code == 200, address
        return answer.context

    walks = {name: f"/w/acme/{name.format(busy=store.busy.pk)}" for name in SHOWN}
    set_sizes(monkeypatch, 1000)
    before = {name: SHOWN[name](ask(address)) for name, address in walks.items()}
    assert {name: len(rows) for name, rows in before.items() if len(rows) <= 2 * SIZE} == {}
    set_sizes(monkeypatch, SIZE)
    seen: dict[str, list[Any]] = {name: [] for name in walks}
    rest: dict[str, list[Any]] = {name: [] for name in walks}
    addresses: dict[str, str | None] = dict(walks)
    pages = 0
    while left := {name: address for name, address in addresses.items() if address is not None}:
        for name, address in left.items():
            page = ask(address)
            (rest if page["walk"].is_rest else seen)[name] += SHOWN[name](page)
            path = walks[name].partition("?")[0]
            following = next((page[key] for key in NEXT if page.get(key)), page["walk"].rest_url)
            addresses[name] = following and (following if following.startswith("/") else f"{path}{following}")
        if store.turn < TURNS:
            store.write()
        pages += 1
        assert pages < 200
    missed = {name: set(rows) - set(seen[name]) - set(rest[name]) for name, rows in before.items()}
    assert {name: rows for name, rows in missed.items() if rows} == {}
    # Nothing comes twice in the rest, and without it most lists would have lost something.
    assert {name for name, rows in rest.items() if len(rows) != len(set(rows))} == set()
    assert len([name for name, rows in before.items() if set(rows) - set(seen[name])]) >= 3
    # It holds what was written, and not all that there is.
    assert not set(before["reviews/"]) <= set(rest["reviews/"])


def test_what_was_written_since_a_transaction(store: Store) -> None:
    channels = Channel.objects.filter(workspace=store.cast.workspace)
    start = find_oldest_transaction()
    assert not channels.filter(WrittenSince(start)).exists()
    ensure_channel(workspace=store.cast.workspace, name="late")
    late = channels.get(name="late")
    # Their numbers begin anew after four thousand million, and PostgreSQL keeps no more of one in a row.
    for since in (start, start + 2**32):
        assert list(channels.filter(WrittenSince(since))) == [late]
    assert not channels.filter(WrittenSince(find_oldest_transaction())).exists()


def test_who_forges_a_place_finds_nothing(store: Store, sign_in: Callable[..., Client]) -> None:
    client = sign_in(store.cast.owner)
    for address in ("conversations/", "traces/", "agents/", "reviews/"):
        assert client.get(f"/w/acme/{address}?walk=1").status_code == 404


def test_an_item_that_is_signed_off_again_is_not_missed(
    store: Store, sign_in: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = store.cast.owner
    queue = create_queue(membership=owner, name="Signed off", reviewers=1)
    conversations = list(Conversation.objects.filter(workspace=owner.workspace).values_list("pk", flat=True)[:5])
    fill_queue(queue=queue, conversations=conversations, why="by hand", membership=owner)
    start = timezone.now()
    items = list(ReviewItem.objects.filter(queue=queue))
    for number, item in enumerate(items):
        ReviewItem.objects.filter(pk=item.pk).update(
            state=ReviewItem.State.SETTLED, ended_at=start - timedelta(minutes=number)
        )
    monkeypatch.setattr(f"{PACKAGE}.reviews.PAGE_ROWS", 2)
    client, path = sign_in(owner), f"/w/acme/reviews/queues/{queue.pk}/"
    seen: list[uuid.UUID] = []
    address: str | None = f"{path}?show=done"
    while address is not None:
        page = client.get(address, follow=True).context
        seen += [row["item"].pk for row in page["rows"]]
        if len(seen) == 2:
            # The last of all is judged anew, and stands first from now on.
            ReviewItem.objects.filter(pk=items[-1].pk).update(ended_at=timezone.now())
        following = page["next_url"] or page["walk"].rest_url
        address = following and (following if following.startswith("/") else f"{path}{following}")
    assert len(seen) == len(set(seen)) == len(items) == 5
