"""The feed: each message is announced once, and a reader misses none, whatever the order in which writers commit."""

from __future__ import annotations

import json
import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from inspector.accounts.models import Workspace
from inspector.browsing import activity
from inspector.browsing.activity import LostPlaceError, Place, find_end, find_latest, read_feed
from inspector.threads.models import Announcement, Message
from inspector.threads.resolving.writing import KEPT, announce, forget_announcements

from ..conftest import Cast, deliver, resolve_all, take_in

pytestmark = pytest.mark.django_db(transaction=True)  # What a reader follows is committed.

WRITE = (
    "INSERT INTO threads_announcement (workspace_id, transaction, at, messages)"
    " VALUES (%s, pg_current_xact_id()::text::bigint, now(), %s)"
)


@contextmanager
def writer(**others: str) -> Iterator[psycopg.Connection[Any]]:
    """Another writer's session, whose transactions end when the test says so."""
    info = connection.get_connection_params() | others
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(make_conninfo(**{name: info[name] for name in names if info.get(name)})) as session:
        yield session


def write(session: psycopg.Connection[Any], workspace: Workspace) -> uuid.UUID:
    message_id = uuid.uuid4()
    session.execute(WRITE, [workspace.pk, [message_id]])
    return message_id


def follow(workspace: Workspace, place: Place, most: int = 1000) -> tuple[list[uuid.UUID], Place]:
    found: list[uuid.UUID] = []
    while True:
        batch = read_feed(workspace_id=workspace.pk, place=place, most=most)
        found += batch.messages
        place = batch.place
        if not batch.has_more:
            return found, place


def line(text: str, **names: object) -> bytes:
    return json.dumps({"raw": text, "conversation": "c", "at": "2026-11-21T09:00:00Z", **names}).encode() + b"\n"


def test_a_message_is_announced_once_when_it_is_told_and_never_for_being_told_anew(cast: Cast) -> None:
    place = find_end()
    deliver(cast, line("One.", id="1"), line("Two.", id="2"))
    assert follow(cast.workspace, place)[0] == []
    resolve_all()
    found, after = follow(cast.workspace, place)
    assert found == list(Message.objects.order_by("place").values_list("pk", flat=True))
    # One that comes in before them moves both, and is the only one that is new.
    take_in(cast, line("Zero.", id="0", at="2026-11-21T08:00:00Z"))
    assert follow(cast.workspace, after)[0] == [Message.objects.get(native_id="0").pk]
    assert follow(cast.stranger.workspace, place)[0] == []


def test_a_slow_writer_that_commits_late_is_not_passed_over(cast: Cast) -> None:
    place = find_end()
    with writer() as slow, writer() as quick:
        late = write(slow, cast.workspace)
        early = write(quick, cast.workspace)
        quick.commit()
        # What the quick one wrote is there to be seen; who took it now would never come back for the other.
        assert [row.messages for row in Announcement.objects.all()] == [[early]]
        found, place = follow(cast.workspace, place)
        assert found == []
        assert find_latest(workspace_id=cast.workspace.pk) is None
        slow.commit()
    found, place = follow(cast.workspace, place)
    assert found == [late, early]
    assert follow(cast.workspace, place)[0] == []
    # A place that this database has not come to was taken in another one.
    with pytest.raises(LostPlaceError):
        follow(cast.workspace, place._replace(transaction=2**60))


def test_who_writes_into_another_database_of_the_server_holds_nobody_up(cast: Cast) -> None:
    place = find_end()
    with writer(dbname="postgres") as stranger, writer() as quick:
        stranger.execute("SELECT pg_current_xact_id()")
        told = write(quick, cast.workspace)
        quick.commit()
        found, place = follow(cast.workspace, place)
        assert found == [told]
        assert find_latest(workspace_id=cast.workspace.pk) is not None
        assert find_end().known == ""
        told = write(quick, cast.workspace)
        quick.commit()
    assert follow(cast.workspace, place)[0] == [told]


def test_what_a_page_already_saw_is_not_news_to_it(cast: Cast) -> None:
    with writer() as slow, writer() as quick:
        late = write(slow, cast.workspace)
        seen = write(quick, cast.workspace)
        quick.commit()
        place = find_end()
        slow.commit()
        fresh = write(quick, cast.workspace)
        quick.commit()
    found, place = follow(cast.workspace, place, most=1)
    assert seen not in found
    assert found == [late, fresh]
    assert place.known == ""


def test_many_writers_that_commit_in_any_order_are_all_heard_once(cast: Cast) -> None:
    place, workspace = find_end(), cast.workspace
    written: list[uuid.UUID] = []
    start = threading.Barrier(5)

    def work(seed: int) -> None:
        dice = random.Random(seed)
        with writer() as session:
            start.wait(10)
            for _ in range(25):
                mine = [write(session, workspace) for _ in range(dice.randint(1, 3))]
                if dice.random() < 0.3:
                    session.execute("SELECT pg_sleep(%s)", [dice.random() / 50])
                if dice.random() < 0.2:
                    session.rollback()
                else:
                    session.commit()
                    written.extend(mine)

    writers = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for each in writers:
        each.start()
    start.wait(10)
    heard: list[uuid.UUID] = []
    while any(each.is_alive() for each in writers):
        found, place = follow(workspace, place, most=3)
        heard += found
    heard += follow(workspace, place)[0]
    assert len(heard) == len(set(heard))
    assert set(heard) == set(written)


def test_a_reader_takes_as_many_as_it_wants_and_goes_on_there(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    place = find_end()
    ids = [uuid.uuid4() for _ in range(1203)]
    announce(messages=ids, workspace_id=cast.workspace.pk)
    assert Announcement.objects.count() == 3
    monkeypatch.setattr(activity, "MAX_ROWS", 1)
    for most in (7, 500, 2000):
        assert follow(cast.workspace, place, most=most)[0] == ids


@pytest.mark.django_db
def test_what_is_old_is_forgotten(cast: Cast) -> None:
    for age in (KEPT + timedelta(minutes=1), KEPT - timedelta(minutes=1)):
        announce(messages=[uuid.uuid4()], workspace_id=cast.workspace.pk)
        row = Announcement.objects.latest("id")
        Announcement.objects.filter(pk=row.pk).update(at=timezone.now() - age)
    assert forget_announcements() == 1
    assert forget_announcements() == 0
    assert Announcement.objects.get() == row
