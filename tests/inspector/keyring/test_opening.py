"""Opening: what a key opens is read by it alone, whatever came first, and is gone with the key."""

from __future__ import annotations

import base64
import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from inspector.audit.models import Finding
from inspector.intake.models import Job
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.keyring.services import remove_key
from inspector.keyring.spellings import read_keys
from inspector.opening import Attempt, count_opened, count_unreadable_without, escrow_keys, find_openings_of, open_batch
from inspector.threads.models import Message, OpenedMessage
from tests.inspector.conftest import Cast, deliver, resolve_all

from .conftest import KEY_FILE, LINES, PSK, SAMPLE_KEY, WORDS, add, make_line

pytestmark = pytest.mark.django_db


def read_opened() -> dict[str, tuple[tuple[str, ...], str]]:
    """The keys and the English of every sealed message that is open, by its sealed English."""
    messages = list(Message.objects.filter(is_sealed=True))
    found = find_openings_of(messages=messages)
    return {each.english: (found[each.pk].labels, found[each.pk].english) for each in messages if each.pk in found}


def test_a_key_opens_what_came_before_it_and_what_comes_after(cast: Cast, sealed: list[Message]) -> None:
    before = {message.pk: (message.english, message.body, message.told_digest) for message in sealed}
    add(cast)
    found = find_openings_of(messages=sealed)
    for message, words in zip(sealed, WORDS, strict=True):
        assert words in found[message.pk].english
        assert found[message.pk].labels == ("the executor's demonstration key",)
        message.refresh_from_db()
        # What is stored, indexed and signed of the message is what is told without a key.
        assert (message.english, message.body, message.told_digest) == before[message.pk]
    add(cast, PSK, kind="psk", written="text", label="later")
    deliver(cast, make_line("r:after the key", "s9", "c9") + b"\n")
    resolve_all()
    assert any("after the key" in english for _, english in read_opened().values())


def test_a_private_key_alone_opens_with_the_public_keys_that_the_conversation_shows(
    cast: Cast, sealed: list[Message]
) -> None:
    add(cast, SAMPLE_KEY["private"].encode(), label="executor")
    assert [labels for labels, _ in read_opened().values()] == [("executor",), ("executor",)]


def test_a_handshake_that_is_withdrawn_opens_nothing_until_it_is_taken_back(cast: Cast) -> None:
    deliver(cast, b"\n".join(each for at, each in enumerate(LINES) if at != 1) + b"\n")
    handshake = deliver(cast, LINES[1] + b"\n", name="handshake.log")
    resolve_all()
    add(cast, SAMPLE_KEY["private"].encode(), label="executor")
    assert len(read_opened()) == 2
    act = {"membership": cast.owner, "delivery": handshake, "reason": "by mistake"}
    withdraw_delivery(**act)
    resolve_all()
    assert not read_opened()
    take_back(**act)
    resolve_all()
    assert len(read_opened()) == 2


def test_opening_is_the_same_whatever_came_first(cast: Cast) -> None:
    steps = {
        "log": lambda: deliver(cast, b"\n".join(LINES) + b"\n"),
        "handshake": lambda: deliver(cast, LINES[1] + b"\n"),
        "psk": lambda: add(cast, PSK, kind="psk", written="text", label="shared"),
        "private": lambda: add(cast, SAMPLE_KEY["private"].encode(), label="executor"),
        "both": lambda: deliver(cast, make_line("r:under the psk", "s9", "2611") + b"\n"),
    }
    seen = set()
    for order in [*itertools.islice(itertools.permutations(steps), 0, 120, 29)]:
        with transaction.atomic():
            for name in order:
                steps[name]()
                resolve_all()
            seen.add(json.dumps(sorted(read_opened().items())))
            transaction.set_rollback(True)
    (only,) = seen
    assert "under the psk" in only
    assert all(words in only for words in WORDS)


def test_several_messages_of_one_record_are_opened_each_with_its_own_key(cast: Cast) -> None:
    wires = [json.loads(make_line(f"r:text {n}", f"s{n}", "c"))["raw"].split("\n")[0] for n in (1, 2, 3)]
    raw = "\n".join(wires) + "\n--👽lingua/0.4@agent-lingua"
    deliver(cast, json.dumps({"raw": raw, "conversation": "c"}).encode() + b"\n")
    resolve_all()
    assert Message.objects.filter(is_sealed=True).count() == 3
    for session in ("s3", "s1"):
        add(cast, PSK, kind="psk", written="text", label=session, session=session)
    said = sorted((labels, english) for labels, english in read_opened().values())
    assert [labels for labels, _ in said] == [("s1",), ("s3",)]
    assert "text 1" in said[0][1]
    assert "text 3" in said[1][1]


def test_two_keys_that_open_the_same_are_both_named_and_one_suffices(cast: Cast, sealed: list[Message]) -> None:
    first = add(cast)
    second = add(cast, SAMPLE_KEY["private"].encode(), label="a twin")
    assert {labels for labels, _ in read_opened().values()} == {("a twin", "the executor's demonstration key")}
    assert count_opened(workspace=cast.workspace) == {first.pk: 2, second.pk: 2}
    assert count_unreadable_without(key=first) == (2, 0)
    remove_key(membership=cast.owner, key=first, unreadable=0)
    assert {labels for labels, _ in read_opened().values()} == {("a twin",)}
    assert count_unreadable_without(key=second) == (2, 2)


def test_removing_a_key_deletes_what_it_opened_also_behind_the_products_back(cast: Cast, sealed: list[Message]) -> None:
    key = add(cast)
    assert OpenedMessage.objects.count() == 2
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM keyring_escrowedkey WHERE id = %s", [key.pk])
    assert not OpenedMessage.objects.exists()
    assert read_opened() == {}


def test_a_message_that_is_read_anew_is_opened_anew(cast: Cast, sealed: list[Message]) -> None:
    from inspector.threads.inserting import mark_conversations

    add(cast)
    ids = set(Message.objects.values_list("conversation_id", flat=True))
    Message.objects.filter(is_sealed=True).update(told_in="0.0 agent_lingua =")
    with transaction.atomic():
        mark_conversations(conversation_ids=ids, workspace_id=cast.workspace.pk)
    resolve_all()
    assert len(read_opened()) == 2


def test_what_was_opened_is_not_opened_again(cast: Cast, sealed: list[Message]) -> None:
    add(cast)
    attempt = Attempt.begin(conversation_id=sealed[0].conversation_id, workspace_id=cast.workspace.pk)
    assert not open_batch(attempt, lambda: None)
    events = KeyEvent.objects.filter(kind=KeyEvent.Kind.OPENED)
    assert [(event.count, sorted(event.messages)) for event in events] == [(2, sorted(each.pk for each in sealed))]


def test_a_key_removed_while_its_work_goes_on_leaves_nothing(cast: Cast, sealed: list[Message]) -> None:
    key = add(cast)
    OpenedMessage.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM threads_openingtrial")
    attempt = Attempt.begin(conversation_id=sealed[0].conversation_id, workspace_id=cast.workspace.pk)
    remove_key(membership=cast.owner, key=key, unreadable=0)
    assert open_batch(attempt, lambda: None)
    assert not OpenedMessage.objects.exists()


def test_without_its_key_encryption_key_nothing_is_opened_and_the_work_says_why(
    cast: Cast, sealed: list[Message], settings: Any
) -> None:
    from inspector import pipeline

    add(cast)
    settings.KEYRING_KEY = "another key-encryption key, as long as it has to be"
    assert read_opened() == {}
    deliver(cast, make_line("r:x", "pb2611", "2611") + b"\n")
    for _ in range(12):
        Job.objects.filter(state=Job.State.QUEUED).update(due_at="2026-01-01T00:00:00Z")
        pipeline.run_due(seconds=10)
    job = Job.objects.get(kind=Job.Kind.OPEN)
    assert job.state == Job.State.DEAD
    assert "not the one that these keys were sealed with" in job.failure
    # Whoever puts the old one back opens it all again.
    settings.KEYRING_OLD_KEYS = ["a key-encryption key for tests, 32 or more"]
    assert len(read_opened()) == 2


def test_what_a_log_shows_as_public_keys_harms_nobody(cast: Cast) -> None:
    hostile = [{"pubkey": value} for value in ("", "x", "AAAA", "A" * 100_000, base64.b64encode(bytes(32)).decode(), 5)]
    rows = []
    for number, payload in enumerate(hostile):
        packed = base64.b64encode(json.dumps({"protocol": "lingua", **payload}).encode()).decode()
        raw = f"👽09|@b|$j:{packed}\n--👽lingua/0.4@agent-lingua"
        rows.append(json.dumps({"raw": raw, "from": f"a{number}", "conversation": "2611"}).encode())
    deliver(cast, b"\n".join([*rows, *LINES]) + b"\n")
    resolve_all()
    add(cast, SAMPLE_KEY["private"].encode(), label="executor")
    assert len(read_opened()) == 2


@pytest.mark.django_db(transaction=True)
def test_a_key_and_a_sealed_message_that_come_together_do_not_pass_each_other(cast: Cast) -> None:
    deliver(cast, make_line("r:just in time", "s9", "c9") + b"\n")
    settling = threading.Thread(target=settle_apart)
    keys = read_keys(PSK, kind="psk", written="text")
    with transaction.atomic():
        _, count = escrow_keys(membership=cast.owner, keys=keys, label="shared")
        assert count == 0, "the message is not there yet"
        settling.start()
        wait_until(lambda: is_somebody_waiting() or not settling.is_alive())
    settling.join()
    resolve_all()
    assert [labels for labels, _ in read_opened().values()] == [("shared",)]


def settle_apart() -> None:
    """Work off every job on a connection of this thread's own."""
    try:
        resolve_all()
    finally:
        connection.close()


def is_somebody_waiting() -> bool:
    """Whether a session of this database waits for an advisory lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return bool(cursor.fetchone()[0])


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_workspaces_keys_open_nothing_elsewhere(cast: Cast, sealed: list[Message]) -> None:
    keys = read_keys(KEY_FILE, kind=EscrowedKey.Kind.X25519)
    escrow_keys(membership=cast.stranger, keys=keys, label="")
    resolve_all()
    assert read_opened() == {}


def test_a_message_that_refuses_the_key_of_its_session_is_not_authentic(cast: Cast) -> None:
    """A key that is held for no session, or for another, says nothing; the one of its own session does."""
    deliver(cast, make_line("r:under the psk", "s9", "c9") + b"\n")
    resolve_all()
    other = b"another pre-shared key altogether"
    add(cast, other, kind="psk", written="text", label="any")
    add(cast, other, kind="psk", written="text", label="elsewhere", session="s8")
    assert not Finding.objects.filter(rule="not-authentic").exists()
    wrong = add(cast, other, kind="psk", written="text", label="its own", session="s9")
    finding = Finding.objects.get(rule="not-authentic", holds=True)
    assert (finding.severity, finding.cites) == (Message.Severity.ERROR, "references/security")
    add(cast, PSK, kind="psk", written="text", label="right", session="s9")
    finding.refresh_from_db()
    assert not finding.holds
    assert wrong.session == "s9"
