"""What comes while a conversation is resolved, between the load and the write of a block, is not lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from inspector import pipeline
from inspector.intake.models import Delivery, Door, Job
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Conversation
from inspector.threads.resolving import resolver
from tests.lanes import begin_with

from ..conftest import Cast, deliver, resolve_all, take_in
from .pictures import differences, picture
from .test_blocks import resolve_anew, shrink

pytestmark = pytest.mark.django_db

START = 1_763_715_600
READING = (Job.Kind.INGEST, Job.Kind.WEIGH)


def say(at: float | None, name: str = "", **more: object) -> bytes:
    """A line at this second of a story, its id and text from that."""
    said: dict[str, Any] = {"raw": f"Line {at} {name}.", "conversation": "c", "from": "ada", **more}
    said |= ({"at": START + at} if at is not None else {}) | ({"id": name} if name else {})
    return json.dumps(said).encode() + b"\n"


def withdraw(cast: Cast) -> None:
    first = Delivery.objects.order_by("received_at").first()
    assert first is not None
    withdraw_delivery(membership=cast.auditor, delivery=first, reason="It was sent by mistake.")


def withdraw_and_return(cast: Cast) -> None:
    withdraw(cast)
    first = Delivery.objects.order_by("received_at").first()
    assert first is not None
    take_back(membership=cast.auditor, delivery=first, reason="It was none.")


def lines(*given: bytes) -> Callable[[Cast], None]:
    return lambda cast: (deliver(cast, *given, door=Door.API), None)[1]


MEANWHILE: dict[str, Callable[[Cast], None]] = {
    "appended": lines(say(31, "m31", parent="m30")),
    "late": lines(say(5.5, "late")),
    "late for what is written": lines(say(29.5, "m29b", parent="m30")),
    "a ghost filled": lines(say(32, "lost")),
    "a ghost filled elsewhere": lines(say(32, "lost", conversation="side")),
    "an id borne twice": lines(say(32, "m30", conversation="c")),
    "an earlier sighting": lines(b"Another file\n", say(7, "m7"), say(30, "m30", parent="lost")),
    "moved": lines(say(2, "m9")),
    "withdrawn": withdraw,
    "withdrawn and returned": withdraw_and_return,
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every conversation is several blocks, however short it is."""
    shrink(monkeypatch, 4)


def assert_all_whole() -> None:
    """What is stored is what going through everything once more comes to."""
    assert all(conversation.is_settled for conversation in Conversation.objects.all())
    stored = picture()
    resolve_anew()
    assert not differences(stored, picture())


@pytest.mark.parametrize(
    ("name", "when"),
    [*((name, "between") for name in MEANWHILE), *begin_with(3, ((name, "after") for name in MEANWHILE), seconds=2)],
)
def test_what_comes_between_the_load_and_the_write_or_after_it_is_settled(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, name: str, when: str
) -> None:
    for start, end in ((0, 10), (10, 30)):
        deliver(cast, *(say(at, f"m{at}", **{"from": f"a{at % 3}"}) for at in range(start, end)), door=Door.API)
    resolve_all()
    came: list[str] = []
    go_through = resolver.go_through

    def interrupt(*given: Any) -> None:
        go_through(*given)
        if not came:
            came.append(name)
            MEANWHILE[name](cast)
            assert pipeline.run_due(only=READING)

    if when == "between":
        monkeypatch.setattr(resolver, "go_through", interrupt)
    take_in(cast, say(30, "m30", parent="lost"), door=Door.API)
    if when == "after":
        MEANWHILE[name](cast)
        resolve_all()
    assert bool(came) == (when == "between")
    assert_all_whole()
    take_in(cast, say(40, "m40", parent="m30"), say(41, parent="lost"), door=Door.API)
    assert_all_whole()


def test_messages_without_a_time_and_of_one_time_are_gone_on_with(cast: Cast) -> None:
    for name in ("a", "b", "c"):
        deliver(cast, say(None, name), say(None, parent="a"), say(None), door=Door.API)
        take_in(cast, *(say(7, f"{name}{at}", conversation="one") for at in range(3)), door=Door.API)
        assert_all_whole()
