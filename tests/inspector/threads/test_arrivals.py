"""Which conversations are resolved by the batch that brings their messages, and which by a job of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from inspector import pipeline, reading
from inspector.intake.models import Job, Record
from inspector.threads.inserting import read_record
from inspector.threads.models import Conversation, Message
from inspector.threads.resolving import arrivals, writing
from inspector.threads.resolving.arrivals import insert_arrivals

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

ASKS = {"id": "q", "from": "ada", "to": ["bob"], "conversation": "c"}
ANSWERS = {"id": "a", "from": "bob", "to": ["ada"], "parent": "q", "conversation": "c"}


def line(raw: str, second: int = 1, **names: object) -> bytes:
    return json.dumps({"raw": raw, "at": f"2026-11-21T09:00:{second:02}Z", **names}).encode() + b"\n"


def ingest() -> None:
    """Read what waits, and nothing after it."""
    Job.objects.filter(kind=Job.Kind.INGEST).update(due_at=timezone.now())
    pipeline.run_due(seconds=60, only=(Job.Kind.INGEST,))


def list_left() -> list[str]:
    """The conversations that wait for a job of their own."""
    subjects = Job.objects.filter(kind=Job.Kind.RESOLVE).exclude(state=Job.State.DONE).values_list("subject", flat=True)
    return sorted(Conversation.objects.filter(pk__in=subjects).values_list("native_id", flat=True))


def test_a_small_conversation_is_written_once_and_whole(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    rewritten: list[object] = []
    monkeypatch.setattr(writing, "update_rows", lambda **names: rewritten.extend(names["rows"]))
    deliver(cast, line("?Uk/co", 1, **ASKS), line("Yes.", 2, **ANSWERS))
    ingest()
    assert not list_left()
    assert Conversation.objects.get().is_settled
    assert Message.objects.get(native_id="a").parent == Message.objects.get(native_id="q").pk
    assert not Message.objects.filter(place=None).exists()
    assert not rewritten


def test_what_follows_is_resolved_with_what_is_there(cast: Cast) -> None:
    deliver(cast, line("Yes.", 2, **ANSWERS))
    ingest()
    assert Message.objects.get().parent_key is not None, "a ghost"
    deliver(cast, line("?Uk/co", 1, **ASKS))
    ingest()
    assert not list_left()
    assert Message.objects.get(native_id="a").parent == Message.objects.get(native_id="q").pk


def bring_many(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversation holds much more than comes."""
    monkeypatch.setattr(arrivals, "FREE", 0)
    deliver(cast, *(line(f"Step {at}.", at, conversation="c") for at in range(1, 6)))
    ingest()
    deliver(cast, line("?Uk/co", 9, **ASKS))


def bring_beside_a_job(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversation has been marked and nobody has resolved it yet."""
    deliver(cast, line("Yes.", 2, **ANSWERS))
    ingest()
    Conversation.objects.update(generation=7)
    deliver(cast, line("?Uk/co", 1, **ASKS))


def bring_what_cites_another(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batch brings what it answers, into another conversation."""
    deliver(cast, line("?Uk/co", 1, **ASKS | {"conversation": "other"}), line("Yes.", 2, **ANSWERS))


def bring_what_is_cited(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ghost of it is filled from another conversation."""
    deliver(cast, line("Yes.", 2, **ANSWERS))
    ingest()
    deliver(cast, line("?Uk/co", 1, **ASKS | {"conversation": "other"}))


def bring_what_is_moved(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is seen with an earlier time."""
    deliver(cast, line("?Uk/co", 5, **ASKS))
    ingest()
    deliver(cast, line("?Uk/co", 1, **ASKS))


def bring_what_changes_meanwhile(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else marks the conversation after it was prepared."""
    deliver(cast, line("?Uk/co", 1, **ASKS))
    ingest()
    deliver(cast, line("Yes.", 2, **ANSWERS))
    meanwhile(monkeypatch, lambda: Conversation.objects.update(generation=7, settled_generation=6))


def bring_whose_parent_comes_meanwhile(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else brings what it cites after that was looked for."""
    deliver(cast, line("?Uk/co", 1, **ASKS | {"conversation": "other"}))
    Job.objects.all().delete()
    (cited,) = map(read_record, Record.objects.all())
    deliver(cast, line("Yes.", 2, **ANSWERS))
    meanwhile(monkeypatch, lambda: insert_arrivals(arrivals=[cited], workspace_id=cast.workspace.pk))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something once, between preparing and holding."""
    hold, acts = reading.hold_records, [act]

    def hold_after(*given: Any) -> Any:
        if acts:
            acts.pop()()
        return hold(*given)

    monkeypatch.setattr(reading, "hold_records", hold_after)


@pytest.mark.parametrize(
    ("bring", "left"),
    [
        (bring_many, ["c"]),
        (bring_beside_a_job, ["c"]),
        (bring_what_cites_another, ["c"]),
        (bring_what_is_cited, ["c"]),
        (bring_what_is_moved, ["c"]),
        (bring_what_changes_meanwhile, ["c"]),
        (bring_whose_parent_comes_meanwhile, ["c", "other"]),
    ],
)
def test_a_job_of_its_own_resolves(
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    bring: Callable[[Cast, pytest.MonkeyPatch], None],
    left: list[str],
) -> None:
    bring(cast, monkeypatch)
    ingest()
    assert list_left() == left
    resolve_all()
    assert all(each.is_settled for each in Conversation.objects.all())
    assert not Message.objects.filter(place=None).exists()
    if Message.objects.filter(native_id="a").exists():
        assert Message.objects.get(native_id="a").parent == Message.objects.get(native_id="q").pk
