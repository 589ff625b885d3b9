"""Withdrawing a delivery: a record is hidden when all its sightings are, conversations follow, counts never move."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.test import Client

from inspector import pipeline, steps
from inspector.intake import jobs, store, withdrawals
from inspector.intake.framing import take_stream
from inspector.intake.models import Delivery, Door, HiddenRecord, Job, Record, Sighting, Withdrawal
from inspector.intake.services import open_delivery
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.search.selectors import find_messages
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import read_tree, sum_up
from inspector.threads.timeline import Start, number_messages, read_timeline

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db


def wire(name: str, act: str, parent: str | None = None, cid: str = "talk") -> bytes:
    cited = f'"{parent}"' if parent else "null"
    second = int(name.removeprefix("m"))
    return (
        f'{{"clowl":"0.2","mid":"{name}","ts":{1795251600 + second},"tid":"t1","pid":{cited},"p":"{act}",'
        f'"from":"oscar","to":"radar","cid":"{cid}","body":{{"t":"search","d":{{}}}}}}\n'
    ).encode()


ASK, ANSWER, LATER = wire("m1", "REQ"), wire("m2", "ACK", "m1"), wire("m3", "DONE", "m1")


def take(cast: Cast, data: bytes, name: str = "a.log", **given: Any) -> Delivery:
    options = {name: given.pop(name) for name in ("prefixes", "dialect", "speakers") if name in given}
    delivery = open_delivery(
        workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD, file_name=name, options=options, **given
    )
    return take_stream(delivery=delivery, chunks=[data])


def withdraw(cast: Cast, delivery: Delivery, reason: str = "the wrong file") -> None:
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason=reason)
    resolve_all(is_examined=False)


def bring_back(cast: Cast, delivery: Delivery) -> None:
    take_back(membership=cast.owner, delivery=delivery, reason="it was right after all")
    resolve_all(is_examined=False)


def shown(cast: Cast) -> list[str]:
    return sorted(message.native_id for message in find_messages(workspace=cast.workspace, query="", limit=100))


def told() -> dict[str, tuple[object, ...]]:
    """All that settling decides of the messages that are shown, by where they stand."""
    rows = list(Message.objects.shown().order_by("conversation__key", "place").select_related("conversation"))
    number_messages(rows)
    return {
        f"{bytes(row.conversation.key).hex()[:8]}.{row.number}": (
            row.english,
            row.parent_basis,
            row.parent_why,
            row.order_time,
            bytes(row.order_source),
            row.order_index,
            row.dialect,
        )
        for row in rows
    }


def counts(delivery: Delivery) -> tuple[int, int, int, int]:
    delivery.refresh_from_db()
    return (delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined)


def test_a_withdrawn_delivery_is_not_shown_and_comes_back_as_it_was(cast: Cast) -> None:
    first, second = take(cast, ASK), take(cast, ANSWER + LATER, "b.log")
    resolve_all(is_examined=False)
    before, digest = told(), Conversation.objects.get().settled_digest
    receipt = counts(second)
    withdraw(cast, second)
    conversation = Conversation.objects.get()
    assert shown(cast) == ["m1"]
    assert (conversation.message_count, conversation.is_settled) == (1, True)
    assert [row.message.native_id for row in read_tree(conversation=conversation).rows if row.message] == ["m1"]
    timeline = read_timeline(conversation=conversation, start=Start(), size=50)
    assert [message.native_id for message in timeline.rows] == ["m1"]
    assert sum(sum_up(conversation=conversation).tally.senders.values()) == 1
    assert Record.objects.count() == 3
    assert counts(second) == receipt == (2, 2, 0, 0)
    assert counts(first) == (1, 1, 0, 0)
    bring_back(cast, second)
    assert shown(cast) == ["m1", "m2", "m3"]
    assert told() == before
    assert Conversation.objects.get().settled_digest == digest
    assert not HiddenRecord.objects.exists()


def test_a_record_is_hidden_only_when_all_its_sightings_are_withdrawn(cast: Cast) -> None:
    first, second = take(cast, ASK + ANSWER), take(cast, ANSWER + LATER, "b.log")
    resolve_all(is_examined=False)
    withdraw(cast, first)
    assert shown(cast) == ["m2", "m3"]
    withdraw(cast, second)
    assert shown(cast) == []
    bring_back(cast, first)
    assert shown(cast) == ["m1", "m2"]


def test_a_message_whose_parent_is_withdrawn_cites_a_ghost_also_from_another_conversation(cast: Cast) -> None:
    first = take(cast, ASK)
    take(cast, ANSWER + wire("m4", "ACK", "m1", cid="elsewhere"), "b.log")
    resolve_all(is_examined=False)
    assert Message.objects.filter(parent__isnull=False).count() == 2
    withdraw(cast, first)
    assert set(Message.objects.shown().values_list("parent", flat=True)) == {None}
    assert list(Conversation.objects.values_list("missing_count", flat=True)) == [1, 1]
    bring_back(cast, first)
    assert Message.objects.filter(parent__isnull=False).count() == 2


def test_a_conversation_that_is_withdrawn_whole_leaves_the_lists(cast: Cast) -> None:
    delivery = take(cast, ASK + ANSWER)
    resolve_all(is_examined=False)
    withdraw(cast, delivery)
    conversation = Conversation.objects.get()
    assert (conversation.message_count, conversation.last_at, conversation.is_settled) == (0, None, True)
    assert Message.objects.hidden().filter(conversation=conversation).count() == 2


def test_what_is_withdrawn_and_sent_again_counts_as_duplicate_and_is_shown(cast: Cast) -> None:
    first = take(cast, ASK)
    resolve_all(is_examined=False)
    withdraw(cast, first)
    second = take(cast, ASK)
    resolve_all(is_examined=False)
    assert counts(second) == (1, 0, 1, 0)
    assert shown(cast) == ["m1"]
    bring_back(cast, first)
    assert shown(cast) == ["m1"]


def test_the_facts_of_a_delivery_in_force_stand_for_those_of_a_withdrawn_one(cast: Cast) -> None:
    log = b"All is well.\nStill well.\n"
    wrong = take(cast, log, speakers=["radar"])
    right = take(cast, log, "b.log", speakers=["oscar", "muse"])
    resolve_all(is_examined=False)
    assert set(Message.objects.values_list("sender", flat=True)) == {"radar"}
    withdraw(cast, wrong)
    rows = Message.objects.shown().order_by("place")
    assert list(rows.values_list("sender", "receivers")) == [("oscar", ["muse"]), ("muse", ["oscar"])]
    bring_back(cast, wrong)
    assert set(Message.objects.shown().values_list("sender", flat=True)) == {"radar"}
    assert counts(right) == (2, 0, 2, 0)


def test_the_place_of_a_withdrawn_sighting_goes_to_the_next_one(cast: Cast) -> None:
    early, late = datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    wrong = take(cast, b"All is well.\n", declared_start=early)
    take(cast, b"All is well.\n", "b.log", declared_start=late)
    resolve_all(is_examined=False)
    assert Message.objects.get().order_time == early
    withdraw(cast, wrong)
    message = Message.objects.get()
    assert (message.order_time, message.order_basis) == (late, "start")
    assert Record.objects.get().order_time == late
    bring_back(cast, wrong)
    assert Message.objects.get().order_time == early


def test_what_is_sent_again_without_prefixes_is_read_without(cast: Cast) -> None:
    log = b"oscar -> radar: Is all well?\n"
    wrong = take(cast, log)
    resolve_all(is_examined=False)
    assert Message.objects.get().sender == "oscar"
    withdraw(cast, wrong)
    take(cast, log, prefixes=False)
    resolve_all(is_examined=False)
    message = Message.objects.shown().get()
    assert (message.sender, message.record.wire_text) == ("", log.decode().strip())


def test_three_equal_heartbeats_are_hidden_and_shown_as_three(cast: Cast) -> None:
    delivery = take(cast, b"2026-01-01T00:00:00Z still here\n" * 3)
    resolve_all(is_examined=False)
    withdraw(cast, delivery)
    assert (len(shown(cast)), HiddenRecord.objects.count()) == (0, 3)
    bring_back(cast, delivery)
    assert len(shown(cast)) == 3


def test_a_batch_at_a_time_and_begun_anew_when_asked_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BATCH_RECORDS", 2)
    monkeypatch.setattr(steps, "SLICE_SECONDS", 0.0)
    delivery = take(cast, b"".join(wire(f"m{number}", "REQ") for number in range(1, 8)))
    resolve_all(is_examined=False)
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="half")
    steps.run_job(claim())
    assert HiddenRecord.objects.count() == 2
    take_back(membership=cast.auditor, delivery=delivery, reason="no")
    resolve_all(is_examined=False)
    assert not HiddenRecord.objects.exists()
    assert len(shown(cast)) == 7
    withdraw(cast, delivery)
    assert HiddenRecord.objects.count() == 7


def claim() -> Job:
    job = jobs.claim(kinds=[Job.Kind.WEIGH])
    assert job is not None
    return job


def test_what_is_quarantined_is_withdrawn_too_and_keeps_its_bytes(cast: Cast, token: str) -> None:
    delivery = take(cast, b"\xff\xfe broken\n" + ASK)
    resolve_all(is_examined=False)
    withdraw(cast, delivery)
    said = Client().get(f"/api/v1/deliveries/{delivery.pk}", headers={"Authorization": f"Bearer {token}"}).json()
    assert (said["received"], said["stored"], said["duplicate"], said["quarantined"]) == counts(delivery)
    raw = Client().get(said["problems"][0]["raw"], headers={"Authorization": f"Bearer {token}"})
    assert b"".join(raw.streaming_content).startswith(b"\xff\xfe broken")  # type: ignore[arg-type]


def test_the_act_is_kept_with_its_taking_back(cast: Cast) -> None:
    delivery = take(cast, ASK)
    resolve_all(is_examined=False)
    withdraw(cast, delivery, "the wrong file")
    bring_back(cast, delivery)
    withdraw(cast, delivery, "wrong it is")
    latest, earlier = withdrawals.list_withdrawals(delivery=delivery)
    assert (latest.reason, latest.by, latest.taken_back_at) == ("wrong it is", cast.auditor.user, None)
    assert (earlier.reason, earlier.taken_back_reason) == ("the wrong file", "it was right after all")
    assert earlier.taken_back_by == cast.owner.user


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_only_auditors_and_owners_withdraw(cast: Cast, who: str) -> None:
    delivery = take(cast, ASK)
    for act in (withdraw_delivery, take_back):
        with pytest.raises(PermissionDenied):
            act(membership=getattr(cast, who), delivery=delivery, reason="because")
    assert not Withdrawal.objects.exists()


@pytest.mark.parametrize(
    ("reason", "words"), [("", "give a reason"), (" \n ", "give a reason"), ("x" * 2001, "at most 2,000 characters")]
)
def test_a_reason_is_needed(cast: Cast, reason: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        withdraw_delivery(membership=cast.auditor, delivery=take(cast, ASK), reason=reason)


def test_neither_twice_nor_too_early_nor_back_from_nothing(cast: Cast) -> None:
    delivery = take(cast, ASK)
    with pytest.raises(ValidationError, match="not withdrawn"):
        take_back(membership=cast.auditor, delivery=delivery, reason="x")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="x")
    with pytest.raises(ValidationError, match="withdrawn already"):
        withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="x")
    waiting = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD)
    with pytest.raises(ValidationError, match="still being taken in"):
        withdraw_delivery(membership=cast.auditor, delivery=waiting, reason="x")


def test_withdrawn_before_it_was_read_it_never_shows(cast: Cast) -> None:
    delivery = take(cast, ASK)
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="x")
    resolve_all(is_examined=False)
    assert shown(cast) == []
    assert Message.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_record_that_arrives_while_its_delivery_is_withdrawn_stays_shown(cast: Cast) -> None:
    first = take(cast, ASK)
    resolve_all(is_examined=False)
    is_withdrawn = threading.Event()

    def withdraw_meanwhile() -> None:
        try:
            withdraw_delivery(membership=cast.auditor, delivery=first, reason="x")
            pipeline.run_due(only=(Job.Kind.WEIGH,), seconds=5)
            is_withdrawn.set()
        finally:
            connection.close()

    update = store._update_delivery

    def update_late(delivery: Delivery, ended: Any) -> None:
        # The sighting is written and not committed: the act has to wait for it.
        acts.append(pool.submit(withdraw_meanwhile))
        assert not is_withdrawn.wait(0.5)
        update(delivery, ended)

    acts: list[Future[None]] = []
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_update_delivery", update_late)
        second = take(cast, ASK, "b.log")
        acts[0].result(timeout=20)
    resolve_all(is_examined=False)
    assert shown(cast) == ["m1"]
    assert counts(second) == (1, 0, 1, 0)


def test_an_import_that_is_withdrawn_leaves_the_api_s_records_alone(cast: Cast) -> None:
    imported = deliver(cast, ASK + ANSWER)
    deliver(cast, ASK, door=Door.API)
    resolve_all(is_examined=False)
    withdraw(cast, imported)
    assert shown(cast) == ["m1"]
    assert Sighting.objects.filter(delivery=imported).count() == 2
