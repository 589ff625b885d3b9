"""A conversation walked window by window while messages come in and are withdrawn: none is missed, none doubled."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from html import unescape
from string import ascii_lowercase
from typing import Any, Final

import pytest
from django.test import Client

from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.intake.models import Delivery, Door
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in
from tests.lanes import begin_with

pytestmark = pytest.mark.django_db

SIZE: Final = 4
COUNT: Final = 24
START: Final = 1795118400
SIZES: Final = ("views.WINDOW_ROWS", "views.RAW_ROWS", "sequence.WINDOW_STEPS")


def address_message(pk: uuid.UUID) -> str:
    return f"/w/acme/messages/{pk}/"


# What a page shows, as the addresses of its messages in their order.
SHOWN: Final[dict[str, Callable[[Any], list[str]]]] = {
    "": lambda page: [row["url"] for row in page["rows"] if row["kind"] == "message"],
    "raw/": lambda page: [address_message(part["row"].pk) for row in page["rows"] for part in row["parts"]],
    "sequence/": lambda page: [address_message(row["step"].id) for row in page["table"]],
}


def say_timed(number: int) -> bytes:
    """A message that stands where its time puts it."""
    body = {"t": "search", "d": {"q": f"question {number}"}}
    sides = {"from": "ada", "to": "bob", "cid": "c", "p": "REQ", "body": body}
    return json.dumps({"clowl": "0.2", "mid": f"m{number}", "ts": START + 10 * number, **sides}).encode() + b"\n"


def say_turn(number: int) -> bytes:
    """A message that stands where its turn puts it, whatever came first."""
    return f'@a2|f0|c1|S0|d1|T{ascii_lowercase[number]}|t"step {number}"#\n'.encode()


# The last turn comes first, so that the order of arrival is never that of the page.
ORDERS: Final = {"times": (say_timed, range(COUNT)), "turns": (say_turn, range(COUNT)[::-1])}


def name_message(delivery: Delivery) -> str:
    return address_message(Message.objects.get(record__sightings__delivery=delivery).pk)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("way", begin_with(1, ("next_url", "previous_url"), seconds=3))
def test_no_message_is_missed_or_doubled_while_others_are_withdrawn(
    order: str, way: str, cast: Cast, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    say, numbers = ORDERS[order]
    brought = {number: deliver(cast, say(number), door=Door.API) for number in numbers}
    resolve_all()
    conversation = Conversation.objects.get()
    names = {name_message(brought[number]): number for number in range(COUNT)}

    def ask(view: str, address: str) -> tuple[Any, list[int]]:
        answer = owner.get(f"/w/acme/conversations/{conversation.pk}/{view}{address}")
        assert answer.status_code == 200
        return answer.context["pager"], [names[url] for url in SHOWN[view](answer.context) if url in names]

    for view in SHOWN:
        assert ask(view, "?order=time")[1] == list(range(COUNT)), view
    for place in SIZES:
        monkeypatch.setattr(f"inspector.pages.conversations.{place}", SIZE)
    start = 0 if way == "next_url" else COUNT - SIZE
    addresses = dict.fromkeys(SHOWN, f"?order=time&offset={start}")
    seen: dict[str, list[int]] = {view: [] for view in SHOWN}
    gone: set[int] = set()
    turns = 0
    while addresses:
        turns += 1
        assert turns < 20
        for view, address in list(addresses.items()):
            pager, shown = ask(view, address)
            shown = shown if way == "next_url" else shown[::-1]
            seen[view] += shown
            addresses[view] = getattr(pager, way)
            if not addresses[view]:
                del addresses[view]
        # Of the window that all have just seen the last one, of the second one all; and one of those to come.
        is_second = order == "times" and len(gone) == 2
        left = [number for number in names.values() if number not in gone and number not in seen["raw/"]]
        taken = {*(shown if is_second else shown[-1:]), *left[len(left) // 2 :][:1]}
        for number in taken:
            withdraw_delivery(membership=cast.owner, delivery=brought[number], reason="sent by mistake")
        gone |= taken
        # What comes in late moves the numbers the other way.
        take_in(cast, say_timed(-len(gone)), door=Door.API)
    assert len(gone) >= COUNT // 3
    for view, numbers_seen in seen.items():
        assert len(numbers_seen) == len(set(numbers_seen)), view
        assert set(names.values()) - set(numbers_seen) <= gone, view
        assert numbers_seen == sorted(numbers_seen, reverse=way != "next_url"), view


def test_a_tree_says_where_the_row_that_a_window_began_with_was_withdrawn(
    cast: Cast, owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = [deliver(cast, say_timed(number), door=Door.API) for number in range(3 * SIZE)]
    resolve_all()
    monkeypatch.setattr("inspector.pages.conversations.views.WINDOW_ROWS", SIZE)
    address = f"/w/acme/conversations/{Conversation.objects.get().pk}/"
    later = owner.get(address).context["pager"].next_url
    withdraw_delivery(membership=cast.owner, delivery=brought[0], reason="sent by mistake")
    resolve_all()
    begun = name_message(brought[SIZE])
    assert next(row["url"] for row in owner.get(address + later).context["rows"]) == begun
    withdraw_delivery(membership=cast.owner, delivery=brought[SIZE], reason="sent by mistake")
    resolve_all()
    page = owner.get(address + later)
    assert (page.status_code, page.context["rows"]) == (200, [])
    assert "what it began with was withdrawn" in page.content.decode()
    assert owner.get(address + page.context["pager"].first_url).context["rows"]


@pytest.mark.parametrize("query", ["after=x", "before=x", "from=x"])
def test_a_place_that_no_page_wrote_is_not_found(query: str, cast: Cast, owner: Client) -> None:
    take_in(cast, say_timed(0))
    order = "" if query.startswith("from") else "order=time&"
    assert owner.get(f"/w/acme/conversations/{Conversation.objects.get().pk}/?{order}{query}").status_code == 404


def test_a_review_goes_on_behind_what_it_shows(cast: Cast, auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = [deliver(cast, say_timed(number), door=Door.API) for number in range(2 * SIZE)]
    resolve_all()
    conversation = Conversation.objects.get()
    queue = create_queue(membership=cast.owner, name="all")
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    monkeypatch.setattr("inspector.pages.review_items.WINDOW_ROWS", SIZE)
    page = auditor.get(f"/w/acme/reviews/items/{queue.items.get().pk}/").content.decode()
    later = unescape(re.findall(r'href="([^"]+)">4 more messages', page)[0])
    withdraw_delivery(membership=cast.owner, delivery=brought[0], reason="sent by mistake")
    resolve_all()
    assert [row["url"] for row in auditor.get(later).context["rows"]] == [name_message(each) for each in brought[SIZE:]]
