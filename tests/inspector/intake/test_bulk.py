"""Rows are written alike in both ways, a few in the statement itself and many by COPY."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector import database
from inspector.database import insert_rows, update_rows, write_array
from inspector.intake.models import Job
from inspector.threads.models import Conversation, Message

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

TOLD = ("id", "conversation_id", "order_time", "place", "parent", "run", "english", "words", "atoms", "told_digest")
MANY = 300
NOW = timezone.now().replace(microsecond=1)


@pytest.fixture(params=["stated", "copied"])
def are_copied(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether even one row is copied."""
    if request.param == "copied":
        monkeypatch.setattr(database, "MAX_VALUES", 0)
    return bool(request.param == "copied")


def read(message: Message) -> tuple[Any, ...]:
    found = Message.objects.filter(pk=message.pk).values_list(*TOLD).get()
    return tuple(bytes(value) if isinstance(value, memoryview) else value for value in found)


@pytest.mark.usefixtures("are_copied")
def test_values_of_every_kind_are_written_as_they_are(cast: Cast) -> None:
    deliver(cast, b'{"raw": "One.", "id": "a"}\n', b'{"raw": "Two.", "id": "b"}\n')
    resolve_all()
    first, second = Message.objects.order_by("order_index")
    english = "50% of \"it\" \\ costs '$1' -- \u202e\n\tand \U0001f600 %s {}"
    atoms = ['a "b"', "c\\d", "e,f", "{}", "%s"]
    parent = uuid.uuid4()
    rows = [
        (
            first.pk,
            first.conversation_id,
            NOW,
            b"\x80%",
            parent,
            -(2**31),
            english,
            "'say':1 'it''s':2",
            atoms,
            b"\x00\xff'%s",
        ),
        (second.pk, second.conversation_id, NOW, None, None, 0, "", None, write_array(atoms), None),
    ]
    update_rows(model=Message, columns=TOLD, rows=iter(rows), key_columns=2)
    words = "'it''s':2 'say':1"
    assert read(first) == (*rows[0][:7], words, atoms, b"\x00\xff'%s")
    assert read(second) == (*rows[1][:8], atoms, None)


@pytest.mark.usefixtures("are_copied")
def test_a_row_whose_key_is_otherwise_is_left(cast: Cast) -> None:
    deliver(cast, b'{"raw": "One.", "id": "a"}\n')
    resolve_all()
    message = Message.objects.get()
    before = message.english
    columns = ("id", "conversation_id", "english")
    update_rows(model=Message, columns=columns, rows=[(message.pk, uuid.uuid4(), "other")], key_columns=2)
    message.refresh_from_db()
    assert message.english == before
    update_rows(model=Message, columns=columns, rows=[(message.pk, message.conversation_id, "new")], key_columns=2)
    message.refresh_from_db()
    assert message.english == "new"


JOB = ("id", "workspace_id", "kind", "subject", "state", "requests", "attempts", "due_at", "checkpoint", "failure")


def write_job(cast: Cast, number: int, *, failure: str = "", state: str = Job.State.QUEUED) -> tuple[Any, ...]:
    subject = uuid.UUID(int=number)
    checkpoint = '{"at": "50%"}'
    return (uuid.uuid4(), cast.workspace.pk, Job.Kind.EXPORT, subject, state, 2**40, -1, NOW, checkpoint, failure)


def insert_jobs(rows: Any) -> None:
    columns = (*JOB, "created_at", "updated_at")
    insert_rows(model=Job, columns=columns, rows=((*row, NOW, NOW) for row in rows), order_by=("kind", "subject"))


@pytest.mark.usefixtures("are_copied")
def test_what_is_there_is_passed_over(cast: Cast) -> None:
    insert_jobs([write_job(cast, 1, failure="first")])
    insert_jobs([write_job(cast, 2, failure="two"), write_job(cast, 1), write_job(cast, 2)])
    found = Job.objects.filter(kind=Job.Kind.EXPORT).order_by("subject")
    assert [(job.subject.int, job.failure) for job in found] == [(1, "first"), (2, "two")]
    assert {(job.requests, job.attempts, job.due_at, str(job.checkpoint)) for job in found} == {
        (2**40, -1, NOW, "{'at': '50%'}")
    }


@pytest.mark.usefixtures("are_copied")
def test_what_is_too_long_is_refused_and_not_cut(cast: Cast) -> None:
    with pytest.raises((DataError, psycopg.DataError)):
        insert_jobs([write_job(cast, 1, state="x" * 17)])


def test_nothing_takes_no_statement() -> None:
    with CaptureQueriesContext(connection) as caught:
        insert_jobs([])
        update_rows(model=Conversation, columns=("id", "title"), rows=iter(()))
    assert len(caught) == 0


@pytest.mark.parametrize(
    "enlarge",
    [
        lambda cast: [write_job(cast, number) for number in range(MANY)],
        lambda cast: [write_job(cast, 1), write_job(cast, 2, failure="x" * database.MAX_VALUES_BYTES)],
    ],
    ids=["many", "large"],
)
def test_many_and_large_ones_are_copied(cast: Cast, enlarge: Callable[[Cast], list[tuple[Any, ...]]]) -> None:
    """One statement for a few; what does not fit in it makes a table of its own, and leaves none."""
    with CaptureQueriesContext(connection) as caught:
        insert_jobs([write_job(cast, MANY)])
    assert len(caught) == 1
    rows = enlarge(cast)
    with CaptureQueriesContext(connection) as caught:
        insert_jobs(rows)
    assert [str(query["sql"]).count("TEMPORARY") for query in caught] == [1, 0, 0, 0]
    assert Job.objects.filter(kind=Job.Kind.EXPORT).count() == len(rows) + 1
    later = NOW + timedelta(seconds=1)
    update_rows(model=Job, columns=("id", "due_at", "failure"), rows=[(row[0], later, row[-1]) for row in rows])
    assert Job.objects.filter(kind=Job.Kind.EXPORT, due_at=later).count() == len(rows)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'")
        assert cursor.fetchone() == (0,)
