"""Reading and settling take turns: half-read conversations wait, small ones are settled together, none starves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from inspector import pipeline, reading, steps
from inspector.intake import jobs
from inspector.intake.models import Delivery, Job
from inspector.threads.models import Conversation

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db


def write_lines(count: int, conversations: int) -> list[bytes]:
    return [
        json.dumps({"raw": f"Step {at}.", "id": f"m{at}", "conversation": f"c{at % conversations}"}).encode() + b"\n"
        for at in range(count)
    ]


@pytest.mark.usefixtures("resolved_apart")
def test_half_read_conversations_wait_until_their_delivery_is_read(cast: Cast) -> None:
    deliver(cast, *write_lines(reading.BATCH_RECORDS + 10, 7))
    job = jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    assert reading.ingest_batch(job)
    waiting = Job.objects.filter(kind=Job.Kind.RESOLVE, state=Job.State.QUEUED)
    assert waiting.filter(due_at__gt=timezone.now()).count() == 7
    steps.run_job(job)
    assert Delivery.objects.get().read == reading.BATCH_RECORDS + 10
    assert waiting.filter(due_at__lte=timezone.now()).count() == 7


@pytest.mark.usefixtures("resolved_apart")
def test_small_conversations_are_settled_by_one_job(cast: Cast) -> None:
    deliver(cast, *write_lines(60, 20))
    pipeline.run_due(seconds=60, only=(Job.Kind.INGEST,))
    job = jobs.claim(kinds=[Job.Kind.RESOLVE], together=pipeline.TOGETHER)
    assert job is not None
    steps.run_job(job)
    assert all(conversation.is_settled for conversation in Conversation.objects.all())
    # Each is examined after it, by a job of its own.
    assert not Job.objects.exclude(kind=Job.Kind.EXAMINE).exclude(state=Job.State.DONE).exists()


@pytest.mark.usefixtures("resolved_apart")
def test_a_companion_that_is_asked_for_again_meanwhile_is_settled_once_more(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, *write_lines(4, 2))
    pipeline.run_due(seconds=60, only=(Job.Kind.INGEST,))
    job = jobs.claim(kinds=[Job.Kind.RESOLVE], together=pipeline.TOGETHER)
    assert job is not None
    settle = steps.resolve

    def mark_meanwhile(**names: Any) -> None:
        (other,) = names["others"]
        Job.objects.filter(subject=other.pk).update(requests=5)
        settle(**names)

    monkeypatch.setattr(steps, "resolve", mark_meanwhile)
    steps.run_job(job)
    assert Job.objects.get(kind=Job.Kind.RESOLVE, state=Job.State.QUEUED).requests == 5
    monkeypatch.undo()
    resolve_all()
    assert all(conversation.is_settled for conversation in Conversation.objects.all())


def test_settling_has_its_share_while_there_is_more_to_read(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(pipeline.time, "monotonic", lambda: clock[0])
    waiting = dict.fromkeys((Job.Kind.INGEST, Job.Kind.RESOLVE), 1000)

    def claim(*, kinds: list[str], otherwise: list[str], together: object) -> Job | None:
        return next((Job(kind=kind) for kind in (*kinds, *otherwise) if waiting.get(Job.Kind(kind))), None)

    monkeypatch.setattr(jobs, "claim", claim)
    turns = pipeline.Turns()
    taken = []
    for _ in range(100):
        job = turns.claim([Job.Kind.INGEST, Job.Kind.RESOLVE], together={})
        assert job is not None
        taken.append(job.kind)
        clock[0] += 1.0
    assert taken[0] == Job.Kind.INGEST
    assert 15 <= taken.count(Job.Kind.RESOLVE) <= 25
