"""What is erased stands in no column of any table any more, and the ledger still proves that it was there."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.db.utils import DatabaseError
from django.utils import timezone

from inspector import erasing
from inspector.audit.comments import reply, write_comment
from inspector.erasing import Target, ask_to_erase, erase_expired, preview
from inspector.exports.models import Export
from inspector.intake import jobs
from inspector.intake.models import Delivery, Job, Record, Sighting
from inspector.intake.withdrawals import take_back
from inspector.ledger.kinds import first_id
from inspector.ledger.sequencing import enter_new
from inspector.ledger.verifying import verify_ledger
from inspector.retention.models import Erasure, LegalHold, Tombstone
from inspector.retention.services import lift_hold, place_hold, set_retention
from inspector.threads.models import Conversation, Message
from inspector.threads.models.packed_text import unpack_text

from ..conftest import Cast, deliver, resolve_all
from ..exports.conftest import ask, make

pytestmark = pytest.mark.django_db
# In the text and as a name, which nobody else says; and an id, which an answer of somebody else cites.
CANARY, PERSON, SERIAL = "quetzalcoatl", "tlaloc-the-rainmaker", "xipetotec-77"


def wire(name: str, sender: str, receiver: str, text: str, **more: Any) -> bytes:
    body = {"t": "search", "d": {"text": text}}
    said = {"clowl": "0.2", "mid": name, "ts": 1795251600 + int(name.rpartition("-")[2]), "p": "REQ", "from": sender}
    return json.dumps(said | {"to": receiver, "cid": "talk", "tid": "t1", "body": body} | more).encode() + b"\n"


def wrap(name: str, sender: str, raw: str) -> bytes:
    said = {"id": name, "raw": raw, "from": sender, "conversation": "terms", "at": f"2026-11-21T09:00:0{name[-1]}Z"}
    return json.dumps(said).encode() + b"\n"


def write_log() -> bytes:
    """A talk of two others, with what the person says in the middle and alone in a conversation of its own."""
    return b"".join((
        wire("m-1", "oscar", "radar", "the weather"),
        wire(f"{SERIAL}-2", PERSON, "radar", f"where is {CANARY}"),
        wire("m-3", "radar", "oscar", "found it", pid=f"{SERIAL}-2", p="DONE"),
        wire("m-4", PERSON, "radar", CANARY, cid=f"of {CANARY}", tid=f"{CANARY}-trace"),
        f'{{"clowl": "0.2", "mid": "m-5", "from": "{PERSON}", "p": "REQ", "body": {{"t": "{CANARY}\n'.encode(),
        # What oscar says is told in the words that the person defined.
        wrap("d-6", PERSON, f'{{def:ta="find {CANARY}"}}'),
        wrap("d-7", "oscar", "!I*d/ta"),
    ))  # fmt: skip


def grep(*words: str) -> dict[str, int]:
    """In which columns of all tables these words stand, also in hexadecimal; with how many rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = current_schema()"
            " AND (data_type IN ('text', 'character varying', 'bytea', 'jsonb', 'json', 'ARRAY', 'tsvector'))"
        )
        columns = cursor.fetchall()
        assert len(columns) > 200
        found: dict[str, int] = {}
        for table, column, kind in columns:
            text = f"encode(\"{column}\", 'escape')" if kind == "bytea" else f'"{column}"::text'
            pattern = "|".join(words)
            cursor.execute(f'SELECT count(*) FROM "{table}" WHERE {text} ~* %s', [pattern])
            (count,) = cursor.fetchone()
            # What is packed is looked through as it is read.
            if kind == "bytea":
                cursor.execute(f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
                count += sum(any(word.encode() in unpack(bytes(data)) for word in words) for (data,) in cursor)
            if count:
                found[f"{table}.{column}"] = count
        return found


def unpack(data: bytes) -> bytes:
    """What a packed text says; anything else as it is."""
    try:
        return unpack_text(data).encode("utf-8", "surrogatepass")
    except (ValueError, IndexError, zstandard.ZstdError):
        return data


def count_of(delivery: Delivery) -> tuple[int, ...]:
    delivery.refresh_from_db()
    return delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined


@pytest.fixture
def filled(cast: Cast) -> Delivery:
    """The log, twice read; an export, comments and a ledger of it."""
    delivery = deliver(cast, write_log(), name="talk.log")
    resolve_all()
    message = Message.objects.get(native_id=f"{SERIAL}-2")
    said = write_comment(
        membership=cast.auditor, message=message, start=0, end=len(message.record.source), words=f"who is {CANARY}?"
    )
    reply(membership=cast.owner, comment=said, message=None, words=f"{CANARY} is nobody")
    make(ask(cast))
    make(ask(cast, query="from:oscar"))
    enter_new(at_once=True)
    return delivery


def test_a_person_stands_in_no_column_of_any_table_and_the_ledger_still_verifies(cast: Cast, filled: Delivery) -> None:
    deliver(cast, wrap("o-8", "oscar", "Good evening.").replace(b"terms", b"evening"))
    resolve_all()
    make(ask(cast, query="evening"))
    before, words = count_of(filled), (CANARY, PERSON)
    planted = grep(*words)
    expected = {"intake_record.source", "threads_message.body", "threads_message.words", "threads_message.english",
            "audit_comment.quoted", "audit_commentturn.words", "threads_agent.name", "threads_conversation.native_id",
            "threads_trace.native_id", "exports_piece.data"}  # fmt: skip
    assert CANARY in Message.objects.get(native_id="d-7").english
    missing = expected - planted.keys()
    assert not missing
    target = Target(kind="person", name=PERSON)
    seen = preview(workspace_id=cast.workspace.pk, target=target)
    assert (seen.records, seen.messages, seen.others) == (3, 3, 0)
    assert str(seen) == "3 messages in 3 records, from 2026-11-21 to 2026-11-21"
    # What could not be read names nobody: it is erased by itself.
    unread = Message.objects.get(sender="", receivers=[]).record_id
    ask_to_erase(membership=cast.owner, target=Target(kind="record", subject=unread), reason="asked for by law")
    ask_to_erase(membership=cast.owner, target=target, reason="asked for by law")
    resolve_all()
    assert Erasure.objects.exclude(finished_at=None).count() == 2
    assert grep(*words) == {}
    assert grep(SERIAL).keys() & {"intake_record.source", "exports_piece.data"} == {"intake_record.source"}
    assert count_of(filled) == before
    assert Tombstone.objects.filter(kind="record").count() == 4
    # Others keep what they said, and so does an export that holds nothing of the person.
    assert set(Message.objects.values_list("native_id", flat=True)) == {"m-1", "m-3", "d-7", "o-8"}
    assert sorted(Export.objects.values_list("state", flat=True)) == ["done", "removed", "removed"]
    enter_new(at_once=True)
    verified = verify_ledger(cast.workspace.pk)
    assert (list(verified.faults), verified.waiting) == ([], 0)


def test_what_was_erased_stays_so_when_it_arrives_again(cast: Cast, filled: Delivery) -> None:
    ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=filled.pk), reason="the wrong file")
    resolve_all()
    assert not Message.objects.exists()
    assert grep(CANARY, PERSON, SERIAL, "weather", "talk.log") == {"trail_deed.told": 1, "trail_deed.object_label": 1}
    with pytest.raises(ValidationError, match="erased"):
        take_back(membership=cast.owner, delivery=filled, reason="no")
    again = deliver(cast, write_log())
    resolve_all()
    assert count_of(again) == (7, 0, 7, 0)
    assert not Message.objects.exists()
    assert grep(CANARY, PERSON, SERIAL) == {}
    enter_new(at_once=True)
    assert verify_ledger(cast.workspace.pk).holds


def test_nothing_is_kept_of_a_duplicate_of_something_erased_that_is_written_otherwise(cast: Cast) -> None:
    first = deliver(cast, b'{"id": "m1", "raw": "Go."}\n')
    resolve_all()
    ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=first.pk), reason="x")
    resolve_all()
    again = deliver(cast, b'{ "id" : "m1",  "raw" : "Go.", "from": "quetzalcoatl" }\n')
    resolve_all()
    assert count_of(again) == (1, 0, 1, 0)
    assert not Message.objects.exists()
    assert grep(CANARY, "Go\\.") == {}


def test_a_record_that_another_delivery_holds_stays_with_it(cast: Cast, filled: Delivery) -> None:
    deliver(cast, wire("m-1", "oscar", "radar", "the weather"))
    ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=filled.pk), reason="the wrong file")
    resolve_all()
    assert [each.native_id for each in Message.objects.all()] == ["m-1"]


def test_one_message_is_erased_alone(cast: Cast, filled: Delivery) -> None:
    record = Message.objects.get(native_id="m-1").record_id
    ask_to_erase(membership=cast.owner, target=Target(kind="record", subject=record), reason="asked")
    resolve_all()
    assert grep("weather") == {}
    assert Message.objects.count() == 6
    conversation = Conversation.objects.get(native_id="talk")
    assert conversation.message_count == 2


def test_what_is_older_than_it_is_kept_goes_channel_by_channel_and_a_hold_stops_it(
    cast: Cast, filled: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_RECORDS", 2)
    set_retention(membership=cast.owner, channel=None, days=30)
    assert erase_expired() == 0
    later = SimpleNamespace(now=lambda: timezone.now() + timedelta(days=32))
    monkeypatch.setattr(erasing, "timezone", later)
    hold = place_hold(membership=cast.owner, channel=cast.channel, reason="a suit")
    assert erase_expired() == 0
    with pytest.raises(ValidationError, match="legal hold"):
        ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=filled.pk), reason="x")
    lift_hold(membership=cast.owner, hold_id=hold.pk)
    assert erase_expired() == 1
    assert erase_expired() == 0
    place_hold(membership=cast.owner, channel=None, reason="another suit")
    erasing.erase(lease_job())
    assert not Tombstone.objects.exists()
    lift_hold(membership=cast.owner, hold_id=LegalHold.objects.get(lifted_at=None).pk)
    resolve_all()
    assert not Message.objects.exists()
    assert Tombstone.objects.filter(kind="record").count() == 7
    assert Erasure.objects.get().reason.startswith("kept for 30 days, as olivia set")
    set_retention(membership=cast.owner, channel=cast.channel, days=None)
    assert erase_expired() == 0


def lease_job() -> Job:
    job = jobs.claim(kinds=[Job.Kind.ERASE])
    assert job
    return job


def test_the_database_clears_nothing_without_a_true_tombstone_or_under_a_hold(cast: Cast, filled: Delivery) -> None:
    record = Message.objects.get(native_id="m-1").record
    erasure = Erasure.objects.create(workspace=cast.workspace, kind="record", target=record.pk, reason="x")

    def clear() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT erase_buried(%s)", [[record.pk]])
            return int(cursor.fetchone()[0])

    assert clear() == 0
    given = {"workspace": cast.workspace, "erasure": erasure, "kind": "record", "subject": record.pk}
    with transaction.atomic():
        Tombstone.objects.create(**given, sha256=bytes(32), size_bytes=1)
        assert clear() == 0
        transaction.set_rollback(True)
    place_hold(membership=cast.owner, channel=None, reason="a suit")
    with pytest.raises(DatabaseError, match="legal hold"), transaction.atomic():
        clear()
    assert Record.objects.get(pk=record.pk).source


def test_only_an_owner_erases_and_only_what_is_there(cast: Cast, filled: Delivery) -> None:
    target = Target(kind="person", name=PERSON)
    for member in (cast.auditor, cast.viewer):
        with pytest.raises(PermissionDenied):
            ask_to_erase(membership=member, target=target, reason="x")
    for wrong in (Target(kind="delivery", subject=filled.pk), target):
        with pytest.raises(ValidationError, match=r"no such|names this"):
            ask_to_erase(membership=cast.stranger, target=wrong, reason="x")
    with pytest.raises(ValidationError, match="reason"):
        ask_to_erase(membership=cast.owner, target=target, reason=" ")
    assert not Erasure.objects.exists()


def test_an_erasure_waits_for_what_is_still_to_be_read(cast: Cast) -> None:
    delivery = deliver(cast, write_log())
    ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=delivery.pk), reason="x")
    erasing.erase(lease_job())
    assert not Tombstone.objects.exists()
    resolve_all()
    assert Tombstone.objects.filter(kind="record").count() == Sighting.objects.count() == 7
    assert not Message.objects.exists()
    assert Record.objects.filter(pk__gte=first_id(delivery.received_at)).exclude(source=b"").count() == 0


def test_a_tombstone_vouches_for_nothing_that_is_there(cast: Cast, filled: Delivery) -> None:
    """Somebody with rights that nothing holds changes bytes, and adds a tombstone so that they count as erased."""
    enter_new(at_once=True)
    record = Record.objects.filter(is_quarantined=False).first()
    assert record is not None
    erasure = Erasure.objects.create(workspace=cast.workspace, kind="record", target=record.pk, reason="x")
    digest, size = hashlib.sha256(bytes(record.source)).digest(), len(record.source)
    Tombstone.objects.create(
        workspace=cast.workspace, erasure=erasure, kind="record", subject=record.pk, sha256=digest, size_bytes=size
    )
    enter_new(at_once=True)
    assert verify_ledger(cast.workspace.pk).holds
    Record.objects.filter(pk=record.pk).update(source=b"something else")
    found = verify_ledger(cast.workspace.pk)
    assert not found.holds
    assert str(record.pk) in str(found.faults)
