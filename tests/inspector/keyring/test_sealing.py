"""Exact bytes are sealed at rest by a key of their month: none reads them without it, and all holds after it."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import call_command
from django.db import connection, transaction
from django.db.utils import DatabaseError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector import pipeline
from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.audit.comments import write_comment
from inspector.erasing import Target, ask_to_erase, preview
from inspector.intake.models import Chunk, DeadLetter, Delivery, Job, Record, Scaffold
from inspector.intake.selectors import find_record, measure_source, read_source, rebuild_stream
from inspector.intake.staging import Choices, load, look_at, stage_file
from inspector.intake.withdrawals import withdraw_delivery
from inspector.keyring import periods
from inspector.keyring.encryption import KeyringError, SealError
from inspector.keyring.models import PeriodKey
from inspector.keyring.periods import OVERHEAD_BYTES, set_indexing, set_sealing
from inspector.ledger import sequencing
from inspector.ledger.models import LedgerKey
from inspector.ledger.proofs import find_changed, get_key
from inspector.ledger.sequencing import enter_new
from inspector.ledger.verifying import verify_ledger
from inspector.retention.models import Erasure, Tombstone
from inspector.retention.services import lift_hold, place_hold
from inspector.search.selectors import find_messages
from inspector.threads.models import MaskedWire, Message
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all
from ..exports.conftest import ask, make, read
from ..retention.test_doors import visit_all
from ..retention.test_erasing import grep
from ..test_access import things

__all__ = ["things"]

pytestmark = pytest.mark.django_db
CANARY, FOUND = "quetzalcoatl", "Find quetzalcoatl."
SEALED = ("intake_record.source", "intake_record.wire", "intake_scaffold.data", "intake_chunk.data")
FORGED: dict[str, Any] = {"data_key": b"", "kek_id": "", "destroyed_at": "2026-11-28T00:00:00Z"}


def write_line(name: str, text: str = "Good morning.", **more: Any) -> bytes:
    said = {"id": name, "raw": text, "from": "oscar", "conversation": "talk", "at": "2026-11-21T09:00:00Z"}
    return json.dumps(said | more).encode() + b"\n"


# A remark, two messages, and what is no text: four records, one of them quarantined.
LOG = b"# a remark with quetzalcoatl\n" + write_line("m-1", FOUND) + write_line("m-2") + b"cut \xff off\n"


class Clock:
    """The month that it is."""

    month = "2026-10"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    periods._seals.clear()
    periods._unindexed.clear()
    clock = Clock()
    for module in ("inspector.keyring.periods", "inspector.erasing"):
        monkeypatch.setattr(f"{module}.name_period", lambda: clock.month)
    return clock


@pytest.fixture
def sealing(cast: Cast, clock: Clock) -> Cast:
    set_sealing(cast.workspace, cast.owner, is_sealed=True)
    return cast


def find(name: str) -> Message:
    return Message.objects.get(native_id=name)


def hold(record_id: uuid.UUID, name: str = "source") -> bytes:
    """What the database itself holds."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{name}" FROM intake_record WHERE id = %s', [record_id])
        return bytes(cursor.fetchone()[0])


def spoil(record_id: uuid.UUID, data: bytes, name: str = "source") -> None:
    with connection.cursor() as cursor:
        cursor.execute(f'UPDATE intake_record SET "{name}" = %s WHERE id = %s', [data, record_id])


def destroy(cast: Cast, period: str = "2026-10") -> Erasure:
    return ask_to_erase(membership=cast.owner, target=Target(kind="period", name=period), reason="kept long enough")


def address(cast: Cast, name: str, *of: uuid.UUID) -> str:
    return reverse(f"pages:{name}", args=[cast.workspace.slug, *of])


def with_key(token: str) -> Client:
    return Client(headers={"authorization": f"Bearer {token}"})


def test_a_word_of_the_bytes_is_in_no_column_that_is_said_to_be_sealed(sealing: Cast) -> None:
    delivery = deliver(sealing, LOG, name="talk.log")
    # A duplicate that is written otherwise: its own bytes are kept with its delivery.
    deliver(sealing, write_line("m-1", FOUND).replace(b'"raw"', b' "raw"'), name="again.log")
    staged = stage_file(membership=sealing.auditor, channel=sealing.channel, chunks=[LOG], choices=Choices())[0]
    resolve_all()
    found = grep(CANARY, "remark", "Good morning", "cut ")
    leaking = found.keys() & set(SEALED)
    assert not leaking
    # The search of the test finds what is there: what is made of the bytes is in clear, as the documents say.
    assert {"threads_message.english", "threads_message.body"} <= found.keys()
    assert all(model.objects.exclude(data=b"").exists() for model in (Scaffold, Chunk))
    # And whoever reads them gets them as they came.
    assert b"".join(rebuild_stream(delivery=delivery)) == LOG
    record = find("m-1").record
    assert bytes(record.source) == write_line("m-1", FOUND).strip() == b"".join(read_source(record=record))
    assert record.wire_text == FOUND
    held = hold(record.pk)
    assert len(held) == len(record.source) + OVERHEAD_BYTES
    assert held[:32] == hashlib.sha256(record.source).digest()
    assert FOUND in [each.wire for each in look_at(delivery=staged).records]
    set_sealing(sealing.workspace, sealing.owner, is_sealed=False)
    deliver(sealing, write_line("n-1", FOUND))
    assert grep(CANARY).keys() & set(SEALED) == {"intake_record.source", "intake_record.wire"}


def test_sealed_and_clear_records_are_shown_alike(cast: Cast, clock: Clock) -> None:
    """The same log, in clear and sealed: exact bytes, sizes, digests and exports are the same."""
    api = with_key(create_api_key(workspace=cast.workspace, name="s", scopes=["read", "secrets"])[1])
    log = LOG + write_line("m-3", "The key is sk-abcdefghijklmnopqrstuvwx0123456789AB.")
    seen = []
    for is_sealed in (False, True):
        if is_sealed:
            set_sealing(cast.workspace, cast.owner, is_sealed=True)
        with transaction.atomic():
            delivery = deliver(cast, log, name="talk.log")
            resolve_all()
            assert Record.objects.filter(sealed_with__isnull=not is_sealed).count() == Record.objects.count() == 5
            assert MaskedWire.objects.exists() != is_sealed
            enter_new(at_once=True)
            shown: list[Any] = [b"".join(rebuild_stream(delivery=delivery))]
            shown += verify_ledger(cast.workspace.pk).faults
            for pk in Record.objects.order_by("order_index").values_list("pk", flat=True):
                record = find_record(workspace=cast.workspace, record_id=pk)
                assert record is not None
                assert find_changed("record", [pk]) == {}
                shown += [measure_source(record=record), vars(record)["source_bytes"], vars(record)["wire_bytes"]]
                for part in ("source", "wire"):
                    answer = api.get(f"/api/v1/records/{pk}/raw?part={part}")
                    shown += [answer.getvalue(), answer["Content-Length"], answer["X-Source-SHA256"]]
            lines = [json.loads(line) for line in read(make(ask(cast))).splitlines()]
            shown.append([[line.get(name) for name in ("sha256", "source", "wire", "text")] for line in lines])
            seen.append(shown)
            transaction.set_rollback(True)
    assert seen[0] == seen[1]


def test_a_search_of_the_raw_text_looks_into_clear_bytes_alone(sealing: Cast, token: str) -> None:
    deliver(sealing, LOG)
    set_sealing(sealing.workspace, sealing.owner, is_sealed=False)
    deliver(sealing, write_line("n-1", "Find quetzalcoatl again."))
    resolve_all()
    secrets = create_api_key(workspace=sealing.workspace, name="s", scopes=["read", "secrets"])[1]

    def search(query: str, key: str) -> int:
        return len(with_key(key).get("/api/v1/messages", {"q": query}).json()["results"])

    for key in (token, secrets):
        assert (search("quetzalcoatl", key), search("raw:quetzalcoatl", key)) == (3, 1)


def test_texts_of_sealed_records_can_be_left_out_of_search(sealing: Cast, sign_in: Callable[..., Client]) -> None:
    page, note = sign_in(sealing.owner), "Words and content of sealed records are not indexed here"
    line = b'{"clowl":"0.2","mid":"%s","cid":"c","p":"REQ","from":"a","to":"b","body":{"d":{"q":"quetzalcoatl"}}}'

    def find_all(query: str) -> set[str]:
        return {each.native_id for each in find_messages(workspace=sealing.workspace, query=query)}

    deliver(sealing, line % b"indexed")
    resolve_all()
    assert note not in page.get(address(sealing, "search"), {"q": CANARY}).content.decode()
    for member in (sealing.auditor, sealing.owner):
        sign_in(member).post(address(sealing, "change-workspace"), {"action": "leave-out"})
        sealing.workspace.refresh_from_db()
        assert sealing.workspace.indexes_sealed is (member is sealing.auditor)
    deliver(sealing, line % b"sealed")
    set_sealing(sealing.workspace, sealing.owner, is_sealed=False)
    deliver(sealing, line % b"clear")
    resolve_all()
    for query in (CANARY, "content.q:quetzalcoatl"):
        assert find_all(query) == {"indexed", "clear"}
    # What is no text is found as before, and nothing of the text is in a column that search looks into.
    assert find_all("from:a performative:request id:sealed has:content") == {"sealed"}
    row = Message.objects.values("words", "atoms").get(native_id="sealed")
    assert row["words"] == ""
    assert CANARY not in str(row["atoms"])
    for query in (CANARY, "zzyzx"):
        shown = page.get(address(sealing, "search"), {"q": query}).content.decode()
        assert note in shown
        assert "Every message of this workspace was searched" not in shown
    set_indexing(sealing.workspace, None, is_indexed=True)
    assert Deed.objects.filter(code__startswith="workspace.sealed-").count() == 2
    with pytest.raises(ValidationError, match="already"):
        set_indexing(sealing.workspace, None, is_indexed=True)


@pytest.mark.long(seconds=6)
def test_what_was_changed_is_told_as_damaged(
    sealing: Cast, sign_in: Callable[[Membership], Client], token: str
) -> None:
    deliver(sealing, LOG)
    resolve_all()
    enter_new(at_once=True)
    message = find("m-1")
    pk, held = message.record_id, hold(message.record_id)
    damages = {
        "a bit of the text": held[:-20] + bytes([held[-20] ^ 1]) + held[-19:],
        "a bit of the digest": bytes([held[0] ^ 1]) + held[1:],
        "cut": held[:50],
        "nothing but a digest": held[:32],
        "another row's": hold(find("m-2").record_id),
        "the column beside": hold(pk, "wire"),
        "in clear": write_line("m-1", FOUND),
    }
    pages, api = sign_in(sealing.auditor), with_key(token)
    for what, data in damages.items():
        spoil(pk, data)
        with pytest.raises(SealError):
            _ = Record.objects.get(pk=pk).source
        assert str(pk) in str(verify_ledger(sealing.workspace.pk).faults), what
        assert (api.get(f"/api/v1/records/{pk}/raw").status_code, what) == (409, what)
        for name, of, status in (
            ("message", message.pk, 409),
            ("raw", pk, 409),
            ("conversation", message.conversation_id, 200),
            ("conversation-raw", message.conversation_id, 200),
        ):
            assert (pages.get(address(sealing, name, of)).status_code, what, name) == (status, what, name)
        assert pages.get(address(sealing, "search"), {"q": CANARY}).status_code == 200, what
    spoil(pk, held)
    assert verify_ledger(sealing.workspace.pk).holds


def test_the_bytes_of_two_rows_cannot_be_exchanged(sealing: Cast) -> None:
    """Also where somebody changes what says which key they are sealed with."""
    deliver(sealing, write_line("m-1", FOUND) + write_line("m-2", FOUND))
    one, two = Record.objects.order_by("order_index").values_list("pk", flat=True)
    wires = hold(one, "wire"), hold(two, "wire")
    assert wires[0][:32] == wires[1][:32]
    spoil(one, wires[1], "wire")
    spoil(two, wires[0], "wire")
    for record in Record.objects.all():
        with pytest.raises(SealError, match="another row"):
            _ = record.wire
    spoil(one, wires[0], "wire")
    Record.objects.filter(pk=one).update(sealed_with=uuid.uuid4())
    with pytest.raises(SealError, match="not in this database"):
        _ = Record.objects.get(pk=one).wire


def test_a_record_that_was_changed_before_it_is_read_becomes_a_dead_letter(sealing: Cast) -> None:
    deliver(sealing, write_line("m-1") + write_line("m-2"))
    first = Record.objects.order_by("order_index")[0]
    spoil(first.pk, hold(first.pk, "source"), "wire")
    for _ in range(6):
        Job.objects.filter(state=Job.State.QUEUED).update(due_at=timezone.now())
        pipeline.run_due(seconds=60)
    letter = DeadLetter.objects.get()
    assert (letter.record_id, letter.state) == (first.pk, DeadLetter.State.DEAD)
    assert "were changed" in letter.failure
    assert find("m-2").english


def test_without_its_key_encryption_key_nothing_is_taken_or_shown_and_nothing_is_lost(
    sealing: Cast, settings: Any, token: str, sign_in: Callable[[Membership], Client]
) -> None:
    deliver(sealing, LOG)
    resolve_all()
    enter_new(at_once=True)
    message = find("m-1")
    deliver(sealing, write_line("m-8", "Good evening."))
    count = Delivery.objects.count()
    right = settings.KEYRING_KEY
    settings.KEYRING_KEY = "another key-encryption key, which opens none"
    periods._seals.clear()
    pages, api = sign_in(sealing.auditor), with_key(token)
    answer = api.post("/api/v1/messages", write_line("m-9"), content_type="application/x-ndjson")
    assert (answer.status_code, Delivery.objects.count()) == (503, count)
    assert "INSPECTOR_KEYRING_OLD_KEYS" in answer.json()["detail"]
    assert api.get(f"/api/v1/records/{message.record_id}/raw").status_code == 503
    assert pages.get(address(sealing, "message", message.pk)).status_code == 503
    assert pages.get(address(sealing, "conversation", message.conversation_id)).status_code == 200
    assert "cannot be opened" in str(verify_ledger(sealing.workspace.pk).faults)
    # What waits to be read waits for it: nothing is set aside.
    for _ in range(5):
        Job.objects.filter(state=Job.State.QUEUED).update(due_at=timezone.now())
        pipeline.run_due(seconds=60)
    assert not DeadLetter.objects.exists()
    assert not Job.objects.filter(state=Job.State.DEAD).exists()
    settings.KEYRING_KEY = "short"
    with pytest.raises(ValidationError, match="too short"):
        set_sealing(sealing.stranger.workspace, None, is_sealed=True)
    settings.KEYRING_KEY = right
    assert api.get(f"/api/v1/records/{message.record_id}/raw").status_code == 200
    assert verify_ledger(sealing.workspace.pk).holds
    resolve_all()
    assert find("m-8").english


def test_a_period_is_erased_by_destroying_its_key(
    sealing: Cast, clock: Clock, token: str, sign_in: Callable[[Membership], Client]
) -> None:
    delivery = deliver(sealing, LOG, name="talk.log")
    resolve_all()
    message = find("m-1")
    write_comment(membership=sealing.auditor, message=message, start=0, end=4, words="why?")
    make(ask(sealing))
    enter_new(at_once=True)
    clock.month = "2026-11"
    # What came in later, in the same conversation, stays.
    deliver(sealing, write_line("m-9", "Good evening."))
    resolve_all()
    seen = preview(workspace_id=sealing.workspace.pk, target=Target(kind="period", name="2026-10"))
    assert (seen.records, seen.messages) == (4, 3)
    erasure = destroy(sealing)
    # The key is gone with the request; what was made of the bytes goes when a worker comes to it.
    key = PeriodKey.objects.get(period="2026-10")
    assert (bytes(key.data_key), key.kek_id, key.destroyed_at is not None) == (b"", "", True)
    api, pages = with_key(token), sign_in(sealing.auditor)
    addresses = {
        api: (f"/api/v1/records/{message.record_id}/raw", f"/api/v1/messages/{message.pk}"),
        pages: (address(sealing, "message", message.pk), address(sealing, "raw", message.record_id)),
    }
    for client, these in addresses.items():
        for each in these:
            answer = client.get(each)
            assert (answer.status_code, "destroyed with the keys of 2026-10" in answer.content.decode()) == (410, True)
    for name in ("conversation", "conversation-raw"):
        assert pages.get(address(sealing, name, message.conversation_id)).status_code == 200
    assert verify_ledger(sealing.workspace.pk).holds
    assert b"quetzalcoatl" not in read(make(ask(sealing)))
    resolve_all()
    erasure.refresh_from_db()
    assert erasure.finished_at is not None
    assert [each.native_id for each in Message.objects.all()] == ["m-9"]
    assert Tombstone.objects.filter(erasure=erasure, kind="record").count() == 4
    assert grep(CANARY, "Good morning", "why\\?") == {}
    delivery.refresh_from_db()
    assert (delivery.received, delivery.stored, delivery.quarantined) == (4, 3, 1)
    for client, these in addresses.items():
        assert [client.get(each).status_code for each in these] == [410, 410]
    enter_new(at_once=True)
    verified = verify_ledger(sealing.workspace.pk)
    assert (list(verified.faults), verified.waiting) == ([], 0)
    assert Deed.objects.filter(code="erasure.asked").exists()
    # What arrives again is a duplicate, and nothing of it is kept.
    again = deliver(sealing, LOG)
    resolve_all()
    again.refresh_from_db()
    assert (again.stored, again.duplicate) == (0, 3)
    assert grep(CANARY, "Good morning") == {}


@pytest.mark.long(seconds=10)
@pytest.mark.parametrize("damage", ["destroyed", "changed", "locked"])
def test_every_address_answers_where_bytes_cannot_be_had(
    sealing: Cast, things: dict[str, str], clock: Clock, damage: str, settings: Any, sign_in: Callable[..., Client]
) -> None:
    if damage == "destroyed":
        clock.month = "2026-11"
        destroy(sealing)
    elif damage == "changed":
        for pk in Record.objects.values_list("pk", flat=True):
            spoil(pk, hold(pk)[:-1] + b"!")
    else:
        settings.KEYRING_KEY = "another key-encryption key, which opens none"
        periods._seals.clear()
    answers = visit_all(sealing, things, sign_in)
    status = {"destroyed": 410, "changed": 409, "locked": 503}[damage]
    told = {name for name, each in answers.items() if each == status}
    assert {"api:raw", "pages:raw", "pages:message"} <= told
    assert {name: each for name, each in answers.items() if each >= 500 and name not in told} == {}


def test_a_destroyed_key_without_an_erasure_is_no_excuse(sealing: Cast) -> None:
    deliver(sealing, LOG)
    enter_new(at_once=True)
    PeriodKey.objects.update(**FORGED)
    periods._seals.clear()
    faults = verify_ledger(sealing.workspace.pk).faults
    assert [fault.kind for fault in faults] == ["record"] * 4


def test_an_upload_whose_period_was_destroyed_is_broken_off(sealing: Cast, clock: Clock) -> None:
    deliver(sealing, write_line("m-1"))
    staged = stage_file(membership=sealing.auditor, channel=sealing.channel, chunks=[LOG], choices=Choices())[0]
    load(delivery=staged)
    clock.month = "2026-11"
    destroy(sealing)
    resolve_all()
    staged.refresh_from_db()
    assert staged.state == Delivery.State.BROKEN
    assert "destroyed with the keys of 2026-10" in staged.failure
    assert Erasure.objects.get().finished_at


def test_a_hold_stops_destroying_also_in_the_database(sealing: Cast, clock: Clock) -> None:
    deliver(sealing, LOG)
    resolve_all()
    clock.month = "2026-11"
    held = place_hold(membership=sealing.owner, channel=sealing.channel, reason="a suit")
    with pytest.raises(ValidationError, match="legal hold"):
        destroy(sealing)
    with pytest.raises(DatabaseError, match="legal hold"), transaction.atomic():
        PeriodKey.objects.update(**FORGED)
    lift_hold(membership=sealing.owner, hold_id=held.pk)
    destroy(sealing)
    changes: tuple[dict[str, Any], ...] = (
        {"destroyed_at": None, "kek_id": "x", "data_key": b"x"},
        {"period": "2020-01"},
    )
    for change in changes:
        with pytest.raises(DatabaseError, match="stays what it is"), transaction.atomic():
            PeriodKey.objects.update(**change)


def test_only_an_owner_destroys_and_only_a_month_that_is_over(sealing: Cast, clock: Clock) -> None:
    deliver(sealing, LOG)
    with pytest.raises(ValidationError, match="not over"):
        destroy(sealing)
    clock.month = "2026-11"
    for name in ("2020-01", "", "\x00"):
        with pytest.raises(ValidationError, match="no record is sealed"):
            destroy(sealing, name)
    for member in (sealing.auditor, sealing.viewer, sealing.stranger):
        with pytest.raises(PermissionDenied):
            set_sealing(sealing.workspace, member, is_sealed=False)
        with pytest.raises((PermissionDenied, ValidationError)):
            ask_to_erase(membership=member, target=Target(kind="period", name="2026-10"), reason="x")
    assert not Erasure.objects.exists()
    assert PeriodKey.objects.get().destroyed_at is None


def test_a_key_that_seals_nothing_any_more_is_destroyed_with_the_last_of_it(sealing: Cast, clock: Clock) -> None:
    first, second = deliver(sealing, LOG), deliver(sealing, write_line("m-3"))
    resolve_all()
    clock.month = "2026-11"
    for delivery, is_destroyed in ((first, False), (second, True)):
        ask_to_erase(membership=sealing.owner, target=Target(kind="delivery", subject=delivery.pk), reason="x")
        resolve_all()
        assert (PeriodKey.objects.get().destroyed_at is not None) == is_destroyed


def test_what_was_withdrawn_and_is_sent_again_is_sealed_with_the_key_of_its_record(sealing: Cast, clock: Clock) -> None:
    first = deliver(sealing, write_line("m-1", FOUND))
    resolve_all()
    withdraw_delivery(membership=sealing.owner, delivery=first, reason="wrong")
    resolve_all()
    before = Record.objects.get()
    clock.month = "2026-11"
    deliver(sealing, write_line("m-1", FOUND, note="once more"))
    resolve_all()
    record = Record.objects.get()
    assert (record.sealed_with_id, record.wire_text) == (before.sealed_with_id, FOUND)
    assert record.envelope != before.envelope
    assert grep(CANARY).keys().isdisjoint(SEALED)


@pytest.mark.django_db(transaction=True)
def test_the_key_encryption_key_is_changed_while_records_come_in(cast: Cast, settings: Any) -> None:
    set_sealing(cast.workspace, cast.owner, is_sealed=True)
    deliver(cast, write_line("m-0"))
    first = settings.KEYRING_KEY
    failures: list[Exception] = []
    begun, is_over = threading.Barrier(3), threading.Event()

    def send(name: str) -> None:
        try:
            begun.wait(30)
            number = 0
            while number < 5 or not is_over.is_set():
                deliver(cast, write_line(f"{name}-{number}", f"Number {number}."))
                number += 1
        except Exception as error:
            failures.append(error)
            raise
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    begun.wait(30)
    for turn in range(20):
        settings.KEYRING_OLD_KEYS = [settings.KEYRING_KEY, *settings.KEYRING_OLD_KEYS]
        settings.KEYRING_KEY = f"key-encryption key number {turn:010d}"
        call_command("rewrap_keyring")
        assert PeriodKey.objects.exclude(kek_id=periods.load_keks()[0].id).count() == 0
    is_over.set()
    for thread in threads:
        thread.join(60)
    assert not failures
    settings.KEYRING_OLD_KEYS = []
    periods._seals.clear()
    records = list(Record.objects.all())
    assert len(records) > 10
    assert all(b'"m-0"' in record.source or b"Number" in record.source for record in records)
    settings.KEYRING_KEY = first
    periods._seals.clear()
    with pytest.raises(KeyringError):
        _ = Record.objects.order_by("pk")[0].source


def test_checkpoints_are_signed_after_the_key_encryption_key_was_changed(sealing: Cast, settings: Any) -> None:
    enter_new(at_once=True)
    key = get_key()
    assert key is not None
    settings.KEYRING_KEY, settings.KEYRING_OLD_KEYS = "the next key-encryption key, 32 or more", [settings.KEYRING_KEY]
    call_command("rewrap_keyring")
    settings.KEYRING_OLD_KEYS = []
    sequencing._opened.clear()
    deliver(sealing, LOG)
    enter_new(at_once=True)
    verified = verify_ledger(sealing.workspace.pk)
    assert (verified.holds, verified.waiting, verified.checkpoints) == (True, 0, 2)
    for change in ({"public": b"x"}, {"name": "x"}):
        with pytest.raises(DatabaseError, match="only added to"), transaction.atomic():
            LedgerKey.objects.update(**change)


@pytest.mark.django_db(transaction=True)
def test_destroying_a_key_waits_for_who_is_writing_under_it(cast: Cast, clock: Clock) -> None:
    set_sealing(cast.workspace, cast.owner, is_sealed=True)
    deliver(cast, write_line("m-1"))
    done: list[str] = []

    def destroy_it() -> None:
        try:
            destroy(cast)
            done.append("destroyed")
        finally:
            connection.close()

    thread = threading.Thread(target=destroy_it)
    with transaction.atomic():
        assert periods.hold_seal(cast.workspace) is not None
        clock.month = "2026-11"
        thread.start()
        thread.join(1)
        done.append("written")
    thread.join(120)
    assert done == ["written", "destroyed"]


def test_what_was_opened_is_never_written_back_in_clear(sealing: Cast) -> None:
    deliver(sealing, LOG)
    record = Record.objects.order_by("order_index")[0]
    record.save()
    assert record.source
    with pytest.raises(TypeError, match="sealed"), transaction.atomic():
        record.save()
    assert grep(CANARY).keys().isdisjoint(SEALED)


def test_owners_seal_and_erase_by_page_api_and_command(
    cast: Cast, clock: Clock, sign_in: Callable[[Membership], Client], capsys: pytest.CaptureFixture[str]
) -> None:
    page = sign_in(cast.owner)
    assert sign_in(cast.auditor).post(address(cast, "change-workspace"), {"action": "seal"}).status_code == 403
    page.post(address(cast, "change-workspace"), {"action": "seal"})
    cast.workspace.refresh_from_db()
    assert cast.workspace.seals_records
    assert Deed.objects.filter(code="workspace.sealing-begun").count() == 1
    for month in ("2026-08", "2026-09", "2026-10"):
        clock.month = month
        deliver(cast, write_line(f"m-{month}"))
    resolve_all()
    shown = page.get(address(cast, "retention")).content.decode()
    assert "2026-10, 2026-09, 2026-08" in shown
    asked = {"action": "preview", "kind": "period", "what": "2026-08", "reason": "over"}
    assert "1 message" in page.post(address(cast, "act-on-retention"), asked).content.decode()
    page.post(address(cast, "act-on-retention"), asked | {"action": "erase", "is_sure": "on"})
    key = create_api_key(workspace=cast.workspace, name="e", scopes=["erase"], created_by=cast.owner.user)[1]
    body = {"do": "erase", "kind": "period", "name": "2026-09", "reason": "over"}
    answer = with_key(key).post("/api/v1/erasures", body, content_type="application/json")
    assert (answer.status_code, answer.json()["kind"]) == (201, "period")
    clock.month = "2026-11"
    call_command("erase", "acme", "--period", "2026-10", "--as", "olivia", "--reason", "over", "--yes")
    assert "1 messages in 1 records" in capsys.readouterr().out
    assert set(PeriodKey.objects.values_list("data_key", flat=True)) == {b""}
    resolve_all()
    assert not Message.objects.exists()
    page.post(address(cast, "change-workspace"), {"action": "unseal"})
    cast.workspace.refresh_from_db()
    assert not cast.workspace.seals_records
