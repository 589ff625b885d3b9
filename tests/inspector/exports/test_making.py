"""How an export is made: its set, its steps, its end; killed, cancelled, too large, expired, masked."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from inspector import pipeline, steps
from inspector.accounts.services import create_api_key
from inspector.exports import entries, forms, making
from inspector.exports.forms import COLUMNS
from inspector.exports.making import drop_expired, read_file
from inspector.exports.models import Block, Export, Piece
from inspector.exports.selectors import find_progresses, make_manifest
from inspector.exports.services import BusyError, may_download, stop_export
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.intake.withdrawals import withdraw_delivery
from inspector.search.language import QueryError
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, deliver, resolve_all

from .conftest import ask, make, read

pytestmark = pytest.mark.django_db

TOKEN = "s3cret-t0ken-of-oscar"
HOLDING = (
    b'{"clowl":"0.2","mid":"m1","ts":1795118400,"p":"REQ","from":"oscar","to":"radar","cid":"c1","auth":"%s",'
    b'"body":{"t":"=1+1","d":{"q":"tea"}}}\n' % TOKEN.encode()
)
PLAIN = b'{"raw":"?Uk/co","from":"ada","to":["bob","eve"],"conversation":"c2","id":"n1","at":"2026-11-21T09:00:00Z"}\n'
TWO_ACTS = b"!Uk/co ?Uk/fe\n"


def lines_of(export: Export) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(export).splitlines()]


def numbered(count: int, *, first: int = 0) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, first + count))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of five records, steps of some fifty bytes, packed from the first message on."""
    monkeypatch.setattr(entries, "BLOCK_RECORDS", 5)
    monkeypatch.setattr(making, "STEP_BYTES", 20)
    monkeypatch.setattr(making, "MAX_PLAIN_MESSAGES", 0)


def test_a_line_is_the_record_and_what_the_inspector_makes_of_it(cast: Cast) -> None:
    deliver(cast, PLAIN)
    resolve_all(is_examined=False)
    export = make(ask(cast))
    (line,) = lines_of(export)
    inspected = line.pop("inspected")
    assert line == json.loads(PLAIN)
    source = PLAIN.strip()
    assert inspected["source"].encode() == source
    assert inspected["sha256"] == hashlib.sha256(source).hexdigest()
    (said,) = inspected["messages"]
    message = Message.objects.get()
    assert (said["id"], said["english"]) == (str(message.pk), message.english)
    assert said["told"] == json.loads(message.body)
    manifest = make_manifest(export)
    assert manifest["sha256"] == hashlib.sha256(b"".join(read_file(export))).hexdigest()
    assert (manifest["rows"], manifest["messages"], manifest["listed"]) == (1, 1, 1)
    assert manifest["workspace"] == "acme"
    assert manifest["asked_by"] == "amir"


def test_a_query_a_conversation_and_a_list_of_conversations_are_what_they_say(cast: Cast) -> None:
    deliver(cast, HOLDING, PLAIN)
    resolve_all(is_examined=False)
    second = Conversation.objects.get(native_id="c2")
    for given in (
        {"query": "dialect:lambda_lang"},
        {"conversation_id": second.pk},
        {"filters": {"agent": "eve"}},
    ):
        (line,) = lines_of(make(ask(cast, **given)))
        assert line["raw"] == "?Uk/co", given
    assert make(ask(cast, query="zebra")).listed == 0
    for wrong in ({"query": "nothing:here"}, {"query": "("}):
        with pytest.raises(QueryError):
            ask(cast, **wrong)
    with pytest.raises(ValidationError):
        ask(cast, conversation_id=cast.workspace.pk)


def test_what_arrives_while_it_is_written_is_not_in_it(cast: Cast, small_blocks: None) -> None:
    deliver(cast, numbered(12))
    resolve_all(is_examined=False)
    export = ask(cast)
    job = jobs.claim(kinds=[Job.Kind.EXPORT])
    assert job is not None
    assert making.make_step(job)
    assert making.make_step(job)
    early = b'{"raw":"long ago","at":"2001-01-01T00:00:00Z"}\n{"raw":"in time","at":"2030-01-01T00:00:00Z"}\n'
    deliver(cast, early, name="early.jsonl")
    jobs.release(job)
    resolve_all(is_examined=False)
    make(export)
    assert [line["raw"] for line in lines_of(export)] == [f"line {number}" for number in range(12)]
    assert export.is_packed
    assert export.pieces > 3
    # Its set stays as long as its file: who erases a message looks in it for the exports that hold it.
    assert sum(len(block.entries) for block in Block.objects.all()) == 12 * 20


def test_a_worker_that_dies_at_any_step_neither_loses_nor_doubles_a_row(
    cast: Cast, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(cast, numbered(12))
    resolve_all(is_examined=False)
    export = ask(cast, form="csv")
    add, deaths = making._add, []

    def die_after_every_piece(*words: Any) -> None:
        add(*words)
        deaths.append(len(deaths))
        if len(deaths) % 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(making, "_add", die_after_every_piece)
    for _ in range(100):
        Job.objects.filter(kind=Job.Kind.EXPORT).exclude(state=Job.State.DONE).update(
            due_at=timezone.now(), lease_token=None, state=Job.State.QUEUED, attempts=0
        )
        job = jobs.claim(kinds=[Job.Kind.EXPORT])
        if job is None:
            break
        try:
            steps.write_export(job)
        except KeyboardInterrupt:
            continue
    export.refresh_from_db()
    assert export.state == Export.State.DONE
    assert len(deaths) > 6
    rows = list(csv.DictReader(io.StringIO(read(export).decode(), newline="")))
    assert [row["inspector.raw"] for row in rows] == [f"line {number}" for number in range(12)]


def test_parts_of_a_record_are_one_line_and_several_rows(cast: Cast, small_blocks: None) -> None:
    deliver(cast, *([b'{"raw":"@a3|f0|c1|S0|d1|T1|k1# @a3|f0|c1|S0|d1|T2|k1#","id":"%d"}\n' % n for n in range(3)]))
    resolve_all(is_examined=False)
    records = set(Message.objects.values_list("record_id", flat=True))
    several = Message.objects.filter(part=2).count()
    assert several, "the example must have records of several parts"
    export = make(ask(cast))
    assert (export.rows, export.messages) == (len(records), Message.objects.count())
    assert [len(line["inspected"]["messages"]) for line in lines_of(export)].count(2) == several
    assert make(ask(cast, form="csv")).rows == Message.objects.count()


def test_csv_is_safe_in_a_spreadsheet_and_has_every_name_of_the_record(cast: Cast) -> None:
    cells = ["=1+1", "+1", "-1", "@x", "\t=1", "\0=1", "＝1", 'a "b", c', "a\r\nb", "plain", "a\u202eb\U000e0041"]
    for cell in cells:
        deliver(cast, json.dumps({"raw": cell, "from": cell, "conversation": cell}).encode(), name=f"{cell!r}.json")
    resolve_all(is_examined=False)
    export = make(ask(cast, form="csv", has_mark=True))
    data = read(export)
    assert data.startswith(b"\xef\xbb\xbf")
    assert data.count(b"\r\n") >= len(cells) + 1
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert list(rows[0]) == list(COLUMNS)
    shown = [cell.replace("\0", "␀") for cell in cells[:-1]] + ["a\\u202eb\\U000e0041"]
    expected = {cell if cell[0] in "ap" else f"'{cell}" for cell in shown}
    assert {row["inspector.raw"] for row in rows} == expected
    for row in rows:
        assert not [cell for cell in row.values() if cell and cell[0] in "=+-@\t\r\0＝"], row


def test_who_may_not_see_secrets_gets_marks_and_the_digest(cast: Cast) -> None:
    deliver(cast, HOLDING, PLAIN)
    resolve_all(is_examined=False)
    for form in ("jsonl", "csv"):
        masked = make(ask(cast, membership=cast.viewer, is_masked=False, form=form))
        assert masked.is_masked
        data = read(masked)
        assert TOKEN.encode() not in data
        assert hashlib.sha256(HOLDING.strip()).hexdigest().encode() in data
        assert (masked.masked, masked.messages) == (1, 2)
        exact = make(ask(cast, form=form))
        assert TOKEN.encode() in read(exact)
        assert not may_download(exact, membership=cast.viewer)
        assert may_download(masked, membership=cast.viewer)
    lines = {line["inspected"]["is_masked"]: line for line in lines_of(make(ask(cast, is_masked=True)))}
    assert "•" * len(TOKEN) in lines[True]["raw"]
    assert "source" not in lines[True]["inspected"]
    assert lines[False]["raw"] == "?Uk/co"
    # What would tell a secret by what it finds is not found, and not counted.
    masked = make(ask(cast, membership=cast.viewer, query=f'raw:"{TOKEN}"'))
    assert (masked.listed, masked.messages, masked.withdrawn, masked.gone) == (0, 0, 0, 0)
    assert make(ask(cast, query=f'raw:"{TOKEN}"')).messages == 1
    assert make(ask(cast, membership=cast.viewer, query=f'-raw:"{TOKEN}"')).messages == 2


def test_a_record_that_cannot_be_looked_through_is_withheld(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_BYTES_LOOKED_THROUGH", 3)
    deliver(cast, b"a long line\n")
    resolve_all(is_examined=False)
    (line,) = lines_of(make(ask(cast, is_masked=True)))
    assert line["raw"] is None
    assert line["inspected"]["sha256"] == hashlib.sha256(b"a long line").hexdigest()


def test_what_is_withdrawn_or_read_otherwise_meanwhile_is_left_out_and_counted(cast: Cast, small_blocks: None) -> None:
    deliver(cast, numbered(4))
    late = deliver(cast, numbered(4, first=4), name="other.log")
    resolve_all(is_examined=False)
    export = ask(cast)
    job = jobs.claim(kinds=[Job.Kind.EXPORT])
    assert job is not None
    assert making.make_step(job)
    jobs.release(job)
    withdraw_delivery(membership=cast.auditor, delivery=late, reason="wrong")
    for _ in range(3):
        pipeline.run_due(only=(Job.Kind.WEIGH,))
    Message.objects.filter(english__contains="“line 2”").delete()
    make(export)
    assert (export.listed, export.messages, export.withdrawn, export.gone) == (8, 3, 4, 1)


def test_it_is_cancelled_removed_and_forgotten_in_time(cast: Cast, small_blocks: None) -> None:
    deliver(cast, numbered(12))
    resolve_all(is_examined=False)
    export = ask(cast)
    job = jobs.claim(kinds=[Job.Kind.EXPORT])
    assert job is not None
    making.make_step(job)
    making.make_step(job)
    with pytest.raises(PermissionDenied):
        stop_export(export=export, membership=cast.viewer)
    assert stop_export(export=export, membership=cast.owner).state == Export.State.CANCELLED
    assert not making.make_step(job)
    assert not Piece.objects.exists()
    assert not Block.objects.exists()
    jobs.finish(job)

    export = make(ask(cast))
    assert (export.expires_at - export.finished_at) == timedelta(days=7)  # type: ignore[operator]
    assert drop_expired() == 0
    Export.objects.filter(pk=export.pk).update(expires_at=timezone.now())
    assert drop_expired() == 1
    assert not Block.objects.exists()
    export.refresh_from_db()
    assert export.state == Export.State.EXPIRED
    assert not Piece.objects.exists()
    assert make_manifest(export)["sha256"], "what was given away is known for good"

    export = make(ask(cast))
    assert stop_export(export=export, membership=cast.auditor).state == Export.State.REMOVED
    with pytest.raises(ValidationError):
        stop_export(export=export, membership=cast.auditor)


def test_what_is_too_large_is_refused_with_the_way_out(cast: Cast, settings: Any, monkeypatch: Any) -> None:
    deliver(cast, numbered(12))
    resolve_all(is_examined=False)
    settings.LIMITS = {**settings.LIMITS, "export_bytes": 100}
    export = make(ask(cast))
    assert export.state == Export.State.REFUSED
    assert "narrow the search down" in find_progresses(exports=[export])[export.pk].failure
    monkeypatch.setattr(making, "MAX_MESSAGES", 11)
    export = make(ask(cast))
    assert "More than 11 messages" in export.failure
    assert not Piece.objects.exists()
    assert not Block.objects.exists()


def test_only_so_many_are_under_way(cast: Cast) -> None:
    for _ in range(5):
        ask(cast)
    with pytest.raises(BusyError):
        ask(cast)


def test_a_key_gets_exact_bytes_only_with_the_scope_for_secrets(cast: Cast) -> None:
    plain, _ = create_api_key(workspace=cast.workspace, name="plain", scopes=["export"])
    seeing, _ = create_api_key(workspace=cast.workspace, name="seeing", scopes=["export", "secrets"])
    assert ask(cast, membership=None, api_key=plain).is_masked
    export = ask(cast, membership=None, api_key=seeing)
    assert not export.is_masked
    assert export.asked_by == "key seeing"
    assert not may_download(export, api_key=plain)
