"""Settling: ghosts that are filled, parents found elsewhere, and jobs that fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector import pipeline, steps
from inspector.accounts.models import Channel
from inspector.intake import jobs
from inspector.intake.models import Door, Job
from inspector.threads import selectors
from inspector.threads.models import Conversation, Message

from ..conftest import Cast, ask_to_resolve, deliver, resolve_all, take_in

pytestmark = pytest.mark.django_db

STORY = [
    {"raw": "Please deploy build 7.", "id": "p1", "from": "ada", "to": ["bob"], "conversation": "ops"},
    {"raw": "On it.", "id": "p2", "parent": "p1", "from": "bob", "to": ["ada"], "conversation": "ops"},
    {"raw": "Cannot reach the host.", "id": "p3", "parent": "p2", "from": "bob", "conversation": "ops"},
    {"raw": "Who owns it?", "id": "p4", "parent": "lost", "from": "cid", "conversation": "ops"},
    {"raw": "Ask the owner first.", "id": "q1", "parent": "p3", "from": "ada", "conversation": "side"},
    {"raw": '@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"rollback"#', "from": "0"},
    {"raw": '@a4|f1|c1|S1|d0|T2|g1|k1|t"plan_b"#'},
    {"raw": '@a6|f1|c1|S0|d1|T3|g1|k1|t"plan_b"#'},
]


def write_story() -> list[bytes]:
    return [json.dumps(line | {"at": f"2026-11-21T09:00:{at:02d}Z"}).encode() + b"\n" for at, line in enumerate(STORY)]


def test_a_ghost_becomes_the_message_when_it_arrives(cast: Cast) -> None:
    take_in(cast, *write_story()[:4])
    conversation = Conversation.objects.get()
    assert conversation.missing_count == 1
    lost = {"raw": "Is it ours?", "id": "lost", "conversation": "ops", "at": "2026-11-21T09:00:02Z"}
    take_in(cast, json.dumps(lost).encode())
    assert Conversation.objects.get().missing_count == 0
    rows = selectors.read_tree(conversation=conversation).rows
    shown = {row.message.english: row.depth for row in rows if row.message}
    assert shown["Someone writes plain text: “Is it ours?”."] == 0
    assert shown["cid writes plain text: “Who owns it?”."] == 1


def test_a_parent_in_another_conversation_is_found_when_it_arrives_later(cast: Cast) -> None:
    lines = write_story()
    take_in(cast, lines[4])
    assert Message.objects.get().parent_key is not None
    take_in(cast, *lines[:3])
    child = Message.objects.get(native_id="q1")
    assert child.parent == Message.objects.get(native_id="p3").pk
    assert child.conversation.missing_count == 0


def test_an_id_means_the_message_of_its_trace_and_never_one_of_another_channel(cast: Cast) -> None:
    def line(native_id: str, conversation: str, trace: str, parent: str | None = None) -> bytes:
        said = {"raw": "So it is.", "id": native_id, "conversation": conversation, "trace": trace, "parent": parent}
        return json.dumps(said | {"at": "2026-11-21T09:00:00Z"}).encode() + b"\n"

    other = Channel.objects.create(workspace=cast.workspace, name="other")
    deliver(cast, line("only", "far", "t2"), door=Door.API, channel=other)
    deliver(cast, line("p", "one", "t1"), line("p", "two", "t2"), line("only", "three", "t3"), door=Door.API)
    asked = [line("q", "side", "t2", "p"), line("r", "side", "t9", "p"), line("s", "side", "t2", "only")]
    take_in(cast, *asked, door=Door.API)
    parents = {}
    for message in Message.objects.filter(conversation__native_id="side"):
        parent = Message.objects.filter(pk=message.parent).first()
        parents[message.native_id] = parent.conversation.native_id if parent else message.parent_why
    assert parents == {"q": "two", "r": "it names its parent; 2 messages bear that id", "s": "three"}


def test_settling_again_writes_nothing_anew(cast: Cast) -> None:
    def read() -> dict[Any, bytes]:
        return {pk: bytes(digest) for pk, digest in Message.objects.values_list("pk", "told_digest")}

    take_in(cast, *write_story())
    before = read()
    Conversation.objects.update(generation=100)
    ask_to_resolve()
    resolve_all()
    assert read() == before


def test_a_worker_that_lost_its_lease_writes_nothing(cast: Cast) -> None:
    deliver(cast, *write_story())
    job = jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    Job.objects.filter(pk=job.pk).update(lease_token=None, state=Job.State.QUEUED)
    steps.run_job(job)
    assert not Message.objects.exists()
    resolve_all()
    assert Message.objects.count() == len(STORY)


def test_a_job_that_fails_three_times_is_a_dead_letter(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall_over(**names: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(steps, "resolve", fall_over)
    deliver(cast, *write_story())
    for _ in range(5):
        Job.objects.update(due_at="2020-01-01T00:00:00Z")
        pipeline.run_due(seconds=5)
    states = Job.objects.filter(kind=Job.Kind.RESOLVE).values_list("state", "failure")
    assert set(states) == {(Job.State.DEAD, "RuntimeError: no luck")}


def test_a_dead_letter_that_is_asked_for_again_is_tried_again(cast: Cast) -> None:
    take_in(cast, *write_story()[:2])
    Job.objects.filter(kind=Job.Kind.RESOLVE).update(state=Job.State.DEAD, attempts=3, failure="no luck")
    take_in(cast, *write_story()[2:4])
    assert Conversation.objects.get().message_count == 4
