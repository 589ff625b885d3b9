"""A step's pause: in proportion to what the work took, but what only waited is done again soon."""

from __future__ import annotations

import time
import uuid
from types import SimpleNamespace

import pytest
from django.utils import timezone

from inspector import steps
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.threads.models import Conversation

from .conftest import Cast


@pytest.mark.django_db
@pytest.mark.parametrize(("took_seconds", "longest"), [(3.0, 12.0), (3600.0, 30.0)])
def test_what_was_asked_for_again_is_due_soon_however_long_it_took(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, took_seconds: float, longest: float
) -> None:
    conversation = Conversation.objects.create(
        workspace=cast.workspace, channel=cast.channel, key=uuid.uuid4().bytes, first_at=timezone.now()
    )
    wish = {"kind": Job.Kind.RESOLVE, "subjects": [conversation.pk], "workspace_id": cast.workspace.pk}
    jobs.ask(**wish)
    job = jobs.claim()
    assert job is not None
    jobs.ask(**wish)
    moments = iter((0.0, took_seconds))
    monkeypatch.setattr(steps, "time", SimpleNamespace(monotonic=lambda: next(moments), time=time.time))
    monkeypatch.setattr(steps, "resolve", lambda *, finish, **_: finish(set()))
    steps.resolve_conversation(job)
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED
    pause = (job.due_at - timezone.now()).total_seconds()
    assert longest - 5 < pause <= longest
