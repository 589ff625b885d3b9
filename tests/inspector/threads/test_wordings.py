"""The history of wordings: what stood and was told otherwise is kept with its reason, nothing of a half-read load."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inspector import pipeline, reading, steps
from inspector.intake import jobs
from inspector.intake.models import Delivery, Door, Job, Record
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads import dependencies, inserting, nodes, teller
from inspector.threads.models import Conversation, Message, Wording
from inspector.threads.resolving import resolver, writing
from inspector.threads.resolving.writing import MAX_WORDINGS, Change, keep_wordings, list_wordings

from ..conftest import Cast, ask_to_resolve, deliver, resolve_all, take_in

pytestmark = pytest.mark.django_db


def line(native_id: str, raw: str, second: int) -> bytes:
    said = {"raw": raw, "id": native_id, "at": f"2026-11-21T09:00:{second:02d}Z"}
    return json.dumps(said | {"conversation": "lab", "from": "ada", "dialect": "lambda_lang"}).encode() + b"\n"


DEFINITION = line("def", '{def:fp="flash point"}!ta', 1)
QUESTION = line("ask", "?Uk/fp", 5)
OTHERS = [line(f"o{at}", "!Ik/co", at) for at in range(10, 30)]


def question() -> Message:
    return Message.objects.get(native_id="ask")


def test_a_late_definition_leaves_the_earlier_wording_with_its_reason(cast: Cast) -> None:
    take_in(cast, QUESTION, *OTHERS, door=Door.API, is_examined=False)
    before = question()
    take_in(cast, DEFINITION, door=Door.API, is_examined=False)
    after = question()
    assert "flash point" in after.english
    (earlier,) = list_wordings(message=after)
    assert earlier.english == before.english != after.english
    assert (earlier.cause, earlier.because_of) == ("late", Message.objects.get(native_id="def").pk)
    assert before.told_at is not None
    assert after.told_at is not None
    assert (earlier.since, earlier.until) == (before.told_at, after.told_at)
    assert Wording.objects.count() == 1, "what is told as before has no history"


@pytest.mark.parametrize("longest", [nodes.MAX_ESTABLISHED_LENGTH, 1])
def test_a_late_message_tells_again_exactly_those_that_it_changes(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(nodes, "MAX_ESTABLISHED_LENGTH", longest)
    take_in(cast, line("old", '{def:ab="a bath"}!ta', 0), QUESTION, *OTHERS, door=Door.API, is_examined=False)
    told: list[Record] = []
    tell_record = writing.tell_record

    def count(record: Record, *given: Any, **names: Any) -> Any:
        told.append(record)
        return tell_record(record, *given, **names)

    monkeypatch.setattr(writing, "tell_record", count)
    take_in(cast, DEFINITION, door=Door.API, is_examined=False)
    definition = Message.objects.get(native_id="def")
    assert [record.pk for record in told] == [definition.record_id, question().record_id]


def test_what_was_told_while_a_delivery_was_half_read_is_no_history(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_RECORDS", 2)
    deliver(cast, QUESTION, *OTHERS[:3], DEFINITION)
    job = pipeline.jobs.claim(kinds=[Job.Kind.INGEST])
    assert job is not None
    assert reading.ingest_batch(job)
    Job.objects.update(due_at=timezone.now())
    pipeline.run_due(seconds=30, only=(Job.Kind.RESOLVE,))
    assert question().place is not None, "it was settled in between"
    assert Conversation.objects.get().stood_at is None
    steps.run_job(job)
    resolve_all(is_examined=False)
    assert "flash point" in question().english
    assert not Wording.objects.exists()
    assert Conversation.objects.get().stood_at is not None


def test_what_was_shown_for_long_is_history_although_the_workspace_never_rests(cast: Cast) -> None:
    take_in(cast, QUESTION, door=Door.API, is_examined=False)
    Conversation.objects.update(stood_at=None)
    Message.objects.update(told_at=timezone.now() - timedelta(minutes=11))
    take_in(cast, DEFINITION, door=Door.API, is_examined=False)
    assert len(list_wordings(message=question())) == 1


def test_what_is_placed_anew_keeps_what_it_was_told_as(cast: Cast) -> None:
    take_in(cast, line("def", '{def:fp="flash point"}!ta', 3), QUESTION, *OTHERS[:2], door=Door.API, is_examined=False)
    before = question()
    # The same record of the same id, seen with an earlier time: now it stands before the definition.
    take_in(cast, line("ask", "?Uk/fp", 1), door=Door.API, is_examined=False)
    (earlier,) = list_wordings(message=question())
    assert (earlier.english, earlier.cause) == (before.english, "moved")
    assert "flash point" in before.english
    assert "flash point" not in question().english
    assert question().pk == before.pk, "its address holds"


@pytest.mark.usefixtures("resolved_apart")
def test_who_settles_while_a_message_moves_writes_nothing_of_it(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its id, but what was read of it before is no more: it stands elsewhere now."""
    deliver(cast, line("ask", "?Uk/co", 5), door=Door.API)
    go_through, moves = resolver.go_through, []

    def go_and_move(*given: Any) -> None:
        go_through(*given)
        if not moves:
            moves.append(deliver(cast, line("ask", "?Uk/co", 1), door=Door.API))
            Job.objects.filter(kind=Job.Kind.INGEST, state=Job.State.QUEUED).update(due_at=timezone.now())
            pipeline.run_due(seconds=30, only=(Job.Kind.INGEST,))
            assert (question().order_time.second, question().place) == (1, None)

    monkeypatch.setattr(resolver, "go_through", go_and_move)
    Job.objects.update(due_at=timezone.now())
    pipeline.run_due(seconds=30, only=(Job.Kind.INGEST,))
    before = question().pk
    Job.objects.update(due_at=timezone.now())
    job = pipeline.jobs.claim(kinds=[Job.Kind.RESOLVE])
    assert job is not None
    steps.run_job(job)
    assert moves
    assert question().place is None, "what was read before it moved is not written over it"
    resolve_all(is_examined=False)
    assert question().pk == before
    assert question().place is not None
    assert [earlier.cause for earlier in list_wordings(message=question())] == []


def test_what_was_shown_for_long_is_kept_also_where_it_is_placed_anew(cast: Cast) -> None:
    take_in(cast, line("def", '{def:fp="flash point"}!ta', 3), QUESTION, door=Door.API, is_examined=False)
    Conversation.objects.update(stood_at=None)
    Message.objects.update(told_at=timezone.now() - timedelta(minutes=11))
    take_in(cast, line("ask", "?Uk/fp", 1), door=Door.API, is_examined=False)
    assert [earlier.cause for earlier in list_wordings(message=question())] == ["moved"]


def test_a_withdrawal_and_its_return_are_named_as_reasons(cast: Cast) -> None:
    delivery = deliver(cast, DEFINITION, door=Door.API)
    take_in(cast, QUESTION, door=Door.API, is_examined=False)
    with_definition = question().english
    act = {"membership": cast.owner, "delivery": Delivery.objects.get(pk=delivery.pk), "reason": "by mistake"}
    withdraw_delivery(**act)
    resolve_all(is_examined=False)
    without = question().english
    take_back(**act)
    resolve_all(is_examined=False)
    assert question().english == with_definition
    found = [(each.english, each.cause) for each in list_wordings(message=question())]
    assert found == [(with_definition, "withdrawal"), (without, "return")]


def test_what_goes_to_another_conversation_is_named_as_the_reason_and_no_withdrawal(cast: Cast) -> None:
    """Where nothing names a conversation, a record that two files hold belongs to the one that sorts first."""

    def timed(raw: str, second: int, native_id: str) -> bytes:
        said = json.loads(line(native_id, raw, second))
        del said["conversation"]
        return json.dumps(said).encode() + b"\n"

    definition = timed('{def:fp="flash point"}!ta', 3, "def")
    take_in(cast, timed("!Ik/co", 1, "begin"), definition, timed("?Uk/fp", 5, "ask"), is_examined=False)
    before = question()
    for at in range(40):
        take_in(cast, timed("!Ik/co", 1, f"other-{at}"), definition, name=f"other-{at}.log", is_examined=False)
        if Message.objects.get(native_id="def").conversation_id != question().conversation_id:
            break
    assert "flash point" in before.english
    assert "flash point" not in question().english
    assert [earlier.cause for earlier in list_wordings(message=question())] == ["moved"]


@pytest.mark.parametrize("is_other", [True, False])
def test_another_decoder_leaves_only_those_wordings_that_it_changes(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, is_other: bool
) -> None:
    take_in(cast, QUESTION, *OTHERS[:3], door=Door.API, is_examined=False)
    if is_other:
        body = json.loads(question().body)
        body["message"]["english"] = [{"text": "What the old decoder said."}]
        Message.objects.filter(native_id="ask").update(body=json.dumps(body))
    old = dependencies.DECODER_VERSION
    for module in (teller, resolver):
        monkeypatch.setattr(module, "DECODER_VERSION", "9.9")
    Conversation.objects.update(generation=50)
    ask_to_resolve()
    resolve_all(is_examined=False)
    assert question().told_in.startswith("9.9 ")
    found = [(each.english, each.cause, each.decoder) for each in list_wordings(message=question())]
    assert found == ([("What the old decoder said.", "decoder", old)] if is_other else [])
    assert Wording.objects.count() == len(found)


def test_no_message_is_blank_while_another_decoder_reads_all_anew(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    take_in(cast, QUESTION, *OTHERS[:3], door=Door.API, is_examined=False)
    columns = ("pk", "english", "body", "words", "atoms")
    before = list(Message.objects.order_by("pk").values_list(*columns))
    assert all(english for _, english, *_ in before)
    for module in (teller, resolver):
        monkeypatch.setattr(module, "DECODER_VERSION", "9.9")
    # Nothing can be told before its place is known.
    monkeypatch.setattr(inserting, "tell_without_context", lambda *given: teller.Telling("9.9 ", "", {}))
    seen = []
    go_through = resolver.go_through

    def look(*given: Any) -> None:
        seen.append(list(Message.objects.order_by("pk").values_list(*columns)))
        assert not Message.objects.exclude(told_digest=None).exists()
        go_through(*given)

    monkeypatch.setattr(resolver, "go_through", look)
    Conversation.objects.update(generation=50)
    ask_to_resolve()
    resolve_all(is_examined=False)
    assert seen == [before]
    assert not Message.objects.filter(told_digest=None).exists()
    assert question().told_in.startswith("9.9 ")


def test_what_is_to_be_read_anew_is_read_by_the_job_of_its_own_conversation(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(
        cast, QUESTION, *OTHERS[:3], QUESTION.replace(b'"lab"', b'"other"').replace(b'"ask"', b'"too"'), door=Door.API
    )
    resolve_all(is_examined=False)
    for module in (teller, resolver):
        monkeypatch.setattr(module, "DECODER_VERSION", "9.9")
    Conversation.objects.update(generation=50)
    ask_to_resolve()
    job = jobs.claim(kinds=[Job.Kind.RESOLVE])
    assert job is not None
    steps.run_job(job)
    told_in = dict(Message.objects.values_list("conversation_id", "told_in").distinct())
    assert {pk: each.startswith("9.9 ") for pk, each in told_in.items()} == {
        pk: pk == job.subject for pk in Conversation.objects.values_list("pk", flat=True)
    }
    resolve_all(is_examined=False)
    assert not Message.objects.exclude(told_in__startswith="9.9 ").exists()
    assert not Message.objects.filter(place=None).exists()


def test_the_history_of_a_message_is_bounded_and_says_what_it_no_longer_holds(cast: Cast) -> None:
    take_in(cast, QUESTION, door=Door.API, is_examined=False)
    asked = question()
    for at in range(MAX_WORDINGS + 5):
        body = json.dumps({"message": {"english": [{"text": f"Wording {at}."}]}})
        Message.objects.filter(pk=asked.pk).update(body=body)
        keep_wordings(changes={asked.pk: Change(timezone.now(), "late", uuid.uuid4())}, told={})
    Message.objects.filter(pk=asked.pk).update(body=asked.body)
    found = list_wordings(message=question())
    assert len(found) == MAX_WORDINGS
    assert (found[0].english, found[-1].english) == ("Wording 0.", f"Wording {MAX_WORDINGS + 4}.")
    assert [each.skipped for each in found[:3]] == [0, 5, 0]
