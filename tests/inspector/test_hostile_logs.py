"""Hostile inputs that are whole logs, or several of them, through the three doors: what comes of each.

The numbers are those of the list of hostile inputs; `test_hostile` has the inputs that are one record.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.intake.models import Chunk, Delivery, Job, Record, Scaffold, Sighting
from inspector.intake.selectors import rebuild_stream
from inspector.threads.models import Conversation, Message
from tests.lanes import begin_with

from .conftest import Cast, resolve_all
from .doors import DOORS, Way, in_turns
from .intake.test_containers import HOSTILE

pytestmark = pytest.mark.django_db


def clowl(number: int, *, answers: int | None = None, minute: int | None = None, **names: Any) -> bytes:
    """A line; its time follows its number unless it is said."""
    said: dict[str, Any] = {"clowl": "0.2", "mid": f"m{number}", "ts": 1_790_000_000 + 60 * (minute or number)}
    said |= {"p": "REQ" if answers is None else "ACK", "cid": "c"}
    said |= {"from": "oscar", "to": "radar"} if number % 2 else {"from": "radar", "to": "oscar"}
    if answers is not None:
        said["pid"] = f"m{answers}"
    return json.dumps(said | {"body": {"t": "go"}} | names).encode() + b"\n"


def deliver(way: Way, body: bytes, name: str = "x.jsonl") -> Delivery:
    """Bring a log to a door and settle what comes of it."""
    before = set(Delivery.objects.values_list("pk", flat=True))
    assert not way.send(body, name)
    resolve_all()
    (delivery,) = Delivery.objects.exclude(pk__in=before)
    assert delivery.received == delivery.stored + delivery.duplicate + delivery.quarantined
    assert not Job.objects.exclude(failure="").exists()
    return delivery


def counts(delivery: Delivery) -> tuple[int, int, int, int]:
    return delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined


def list_tree() -> list[tuple[str, str | None]]:
    """Each message by its id with that of the one it answers, in the order of the timeline."""
    names = dict(Message.objects.values_list("pk", "native_id"))
    rows = Message.objects.order_by("place").values_list("native_id", "parent", "parent_basis")
    return [(name, names.get(parent) if basis != "adjacency" else None) for name, parent, basis in rows]


def test_12_the_same_message_in_the_same_bytes_is_a_duplicate(way: Way) -> None:
    delivery = deliver(way, clowl(1) + clowl(1))
    assert counts(delivery) == (2, 1, 1, 0)
    assert counts(deliver(way, clowl(1))) == (1, 0, 1, 0)
    assert Record.objects.count() == Message.objects.count() == 1
    assert Sighting.objects.count() == 3


def test_13_the_same_message_in_other_bytes_is_kept_beside_it(way: Way) -> None:
    assert counts(deliver(way, clowl(1) + clowl(1, body={"t": "stop"}))) == (2, 2, 0, 0)
    assert Message.objects.filter(native_id="m1").count() == 2


def test_14_the_same_message_in_two_workspaces_is_two(way: Way, cast: Cast, stranger_token: str) -> None:
    theirs = Way(way.name, cast.stranger, stranger_token, way.folder)
    for each in (way, theirs):
        assert counts(deliver(each, clowl(1))) == (1, 1, 0, 0)
    assert sorted(Message.objects.values_list("workspace__slug", flat=True)) == ["acme", "other"]


def test_15_and_16_circles_end_and_what_is_unknown_is_a_ghost(way: Way) -> None:
    deliver(way, clowl(1, answers=3) + clowl(2, answers=1) + clowl(3, answers=2) + clowl(4, answers=99))
    conversation = Conversation.objects.get()
    assert (conversation.message_count, conversation.missing_count) == (4, 1)
    assert [parent for _, parent in list_tree()].count(None) == 2, "the cut of the circle, and the ghost's child"


@pytest.mark.parametrize("together", [True, False])
def test_17_children_before_their_parents_come_out_in_order(way: Way, together: bool) -> None:
    lines = [clowl(1), clowl(61, answers=1), clowl(121, answers=61)]
    for body in [b"".join(reversed(lines))] if together else reversed(lines):
        deliver(way, body)
    assert list_tree() == [("m1", None), ("m61", "m1"), ("m121", "m61")]


@pytest.mark.parametrize("way", begin_with(1, DOORS, seconds=10), indirect=True)
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_18_a_chain_and_a_star_longer_than_any_stack(
    way: Way, cast: Cast, sign_in: Callable[[Membership], Client], shape: str
) -> None:
    count = 1200
    deliver(way, clowl(1) + b"".join(clowl(n, answers=n - 1 if shape == "chain" else 1) for n in range(2, count + 1)))
    conversation = Conversation.objects.get()
    assert conversation.message_count == count
    assert Message.objects.filter(parent__isnull=False).count() == count - 1
    for view in ("transcript", "tree"):
        address = reverse("pages:conversation", args=[cast.workspace.slug, conversation.pk])
        page = sign_in(cast.auditor).get(address, {"view": view})
        assert page.status_code == 200
        assert len(page.content) < 300_000


ENCODED: dict[str, tuple[bytes, tuple[int, int, int, int]]] = {
    "a byte order mark": (b"\xef\xbb\xbf" + clowl(1) + clowl(2), (2, 2, 0, 0)),
    "Latin-1": (clowl(1) + b'{"p": "INF", "from": "Jos\xe9"}\n' + clowl(2), (3, 2, 0, 1)),
    "a byte that is no UTF-8": (clowl(1) + b"\xff\n" + clowl(2), (3, 2, 0, 1)),
}


@pytest.mark.parametrize(("log", "expected"), ENCODED.values(), ids=ENCODED.keys())
def test_19_what_is_no_utf_8_is_quarantined_and_the_rest_is_read(
    way: Way, log: bytes, expected: tuple[int, int, int, int]
) -> None:
    delivery = deliver(way, log)
    assert counts(delivery) == expected
    assert b"".join(rebuild_stream(delivery=delivery)) == log
    assert sorted(Message.objects.values_list("native_id", flat=True)) == ["m1", "m2"]
    for record in Record.objects.filter(is_quarantined=True):
        assert "byte" in record.reason


def test_19_utf_16_is_kept_whole_and_nothing_of_it_is_taken_for_a_message(way: Way) -> None:
    log = (clowl(1) + clowl(2)).decode().encode("utf-16")
    delivery = deliver(way, log)
    assert delivery.received == delivery.quarantined > 0
    assert b"".join(rebuild_stream(delivery=delivery)) == log
    assert not Message.objects.exists()


def spell() -> Iterator[tuple[str, bytes]]:
    """Two messages, written as logs are."""
    one, two = clowl(1).rstrip(), clowl(2, body={"t": "\u2028"}).rstrip()
    yield "lines", one + b"\n" + two + b"\n"
    yield "carriage returns", one + b"\r\n" + two + b"\r\n"
    yield "no end of the last line", one + b"\n" + two
    yield "blank lines", b"\n\n" + one + b"\n  \n\n" + two + b"\n\n"
    yield "an array", b"[" + one + b",\n" + two + b"]"
    yield "an array that ends in a comma", b"[\n" + one + b",\n" + two + b",\n]\n"


@pytest.mark.parametrize(("way", "log"), in_turns(dict(spell())), indirect=["way"])
def test_20_however_its_lines_end_a_log_has_the_same_messages(way: Way, log: bytes) -> None:
    delivery = deliver(way, log, "x.json" if log.startswith(b"[") else "x.jsonl")
    assert sorted(Message.objects.values_list("native_id", flat=True)) == ["m1", "m2"]
    assert (delivery.stored, delivery.quarantined) == (2, 0)
    assert b"".join(rebuild_stream(delivery=delivery)) == log


def test_21_a_line_over_the_limit_is_quarantined_and_kept(way: Way, settings: Any) -> None:
    settings.LIMITS = {**settings.LIMITS, "record_bytes": 1000}
    log = clowl(1) + b"x" * 5000 + b"\n" + clowl(2)
    delivery = deliver(way, log)
    assert counts(delivery) == (3, 2, 0, 1)
    assert b"".join(rebuild_stream(delivery=delivery)) == log


PACKED: dict[str, bytes] = {
    "a bomb": gzip.compress(b"0" * 40_000_000),
    "a container in a container": gzip.compress(gzip.compress(clowl(1) * 50)),
    "cut": gzip.compress(clowl(1) + b"".join(clowl(n, answers=n - 1) for n in range(2, 400)))[:-40],
    "junk behind it": gzip.compress(clowl(1)) + b"and this is none",
}


@pytest.mark.parametrize(("way", "log"), in_turns(PACKED), indirect=["way"])
def test_22_a_container_that_is_none_leaves_exact_counts_and_the_next_log_is_taken(way: Way, log: bytes) -> None:
    said = way.send(log, "x.jsonl.gz")
    # A program and a shell are told at once what could not be taken whole; a person sees it on the delivery's page.
    assert bool(said) == (way.name != "upload")
    resolve_all()
    for delivery in Delivery.objects.all():
        assert delivery.is_framed
        assert delivery.received == delivery.stored + delivery.duplicate + delivery.quarantined
        assert "gzip" in delivery.failure
        # A file is kept as it came; a body that cannot be unfolded is refused, with what could be read of it kept.
        assert delivery.quarantined or way.name == "post"
    assert Message.objects.exclude(native_id__startswith="m").count() == 0
    assert counts(deliver(way, clowl(7777))) == (1, 1, 0, 0)


def test_23_an_archive_that_leads_astray_is_refused_and_nothing_of_it_is_written(way: Way) -> None:
    for case in ("leads out", "a link", "too many", "a directory beyond reason", "overlapping"):
        make, words = HOSTILE[case]
        # A POST opens no archive at all.
        assert ("application/zip' is not understood" if way.name == "post" else words) in way.send(make(), "x.zip")
    for model in (Delivery, Chunk, Record, Scaffold, Sighting, Job):
        assert not model._default_manager.exists()
    assert list(way.folder.rglob("*")) == ([way.folder / "x.zip"] if way.name == "import" else [])
    assert counts(deliver(way, clowl(1))) == (1, 1, 0, 0)
