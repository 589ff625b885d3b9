"""`Prefer: wait`: the answer waits for the telling, never the other way round."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client

from inspector import pipeline
from inspector.api import deliveries
from inspector.intake.models import Delivery, Record
from inspector.trail.row_security import across

from ..conftest import settle_all
from .test_ingest import URL, post

pytestmark = pytest.mark.django_db


@pytest.fixture
def work_meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each pause of a waiting request is time in which the work goes on; what it found to do, pause by pause."""
    done: list[int] = []

    def pause(seconds: float) -> None:
        # The records were durable before the waiting began: a worker of its own could see them.
        with across():
            done.append(Record.objects.count())
            settle_all()

    monkeypatch.setattr("inspector.api.deliveries.time.sleep", pause)
    return done


def test_the_messages_are_added_once_they_are_told(token: str, work_meanwhile: list[int]) -> None:
    response = post(token, b"?Uk/co\nhello\n\xff\n", "text/plain", Prefer="wait=5")
    assert response.status_code == 202
    assert response["Preference-Applied"] == "wait=5"
    said = response.json()
    assert (said["received"], said["stored"], said["quarantined"]) == (3, 2, 1)
    assert said["is_settled"]
    assert [message["dialect"] for message in said["messages"]] == ["lambda_lang", "prose"]
    assert all(message["english"] for message in said["messages"])
    assert said["has_more_messages"] is False
    assert work_meanwhile == [3]


def test_what_is_not_told_in_time_is_answered_without(token: str) -> None:
    started = time.monotonic()
    response = post(token, b"hello\n", "text/plain", Prefer="wait=1")
    assert 0.9 < time.monotonic() - started < 5
    said = response.json()
    assert (response.status_code, said["is_settled"], said["messages"]) == (202, False, [])


@pytest.mark.parametrize("wish", ["", "wait=0", "wait=x", "respond-async", "wait=-5", "wait", "waiting=5"])
def test_without_a_wish_nothing_is_waited_for(token: str, wish: str) -> None:
    response = post(token, b"hello\n", "text/plain", Prefer=wish)
    assert response.status_code == 202
    assert "Preference-Applied" not in response
    assert "messages" not in response.json()


@pytest.mark.parametrize(
    ("wish", "seconds"), [("wait=7", 7), ('Wait = "7"', 7), ("respond-async, wait=7;x=1", 7), ("wait=99999", 30)]
)
def test_a_wish_is_read_as_it_may_be_written(token: str, work_meanwhile: list[int], wish: str, seconds: int) -> None:
    assert post(token, b"hello\n", "text/plain", Prefer=wish)["Preference-Applied"] == f"wait={seconds}"


def test_a_duplicate_shows_the_messages_that_it_doubles(token: str, work_meanwhile: list[int]) -> None:
    body = b'{"raw": "hello", "id": "e1"}\n'
    post(token, body)
    said = post(token, body, Prefer="wait=5").json()
    assert (said["stored"], said["duplicate"]) == (0, 1)
    assert [message["english"] for message in said["messages"]] == ["Someone writes plain text: “hello”."]


def test_a_replay_may_wait_too(token: str, work_meanwhile: list[int]) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = post(token, b"hello\n", "text/plain", **headers).json()
    again = post(token, b"hello\n", "text/plain", Prefer="wait=5", **headers).json()
    assert first.items() <= again.items()
    assert len(again["messages"]) == 1


def test_messages_are_cut_at_a_number(token: str, work_meanwhile: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_MESSAGES", 2)
    said = post(token, b"one\ntwo\nthree\n", "text/plain", Prefer="wait=5").json()
    assert [message["english"] for message in said["messages"]] == [
        "Someone writes plain text: “one”.",
        "Someone writes plain text: “two”.",
    ]
    assert said["has_more_messages"] is True


def test_a_third_waiter_is_answered_at_once(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "_seats", threading.BoundedSemaphore(deliveries.MAX_WAITERS))
    for _ in range(deliveries.MAX_WAITERS):
        assert deliveries._seats.acquire(blocking=False)
    started = time.monotonic()
    response = post(token, b"hello\n", "text/plain", Prefer="wait=20")
    assert time.monotonic() - started < 5
    assert response.status_code == 202
    assert "Preference-Applied" not in response
    deliveries._seats.release()
    assert "Preference-Applied" in post(token, b"hello\n", "text/plain", Prefer="wait=1")
    # The seat is free again: one that stays taken would silence the wish for good.
    assert deliveries._seats.acquire(blocking=False)


@pytest.mark.django_db(transaction=True)
def test_nothing_is_locked_and_everything_is_durable_while_a_request_waits(token: str) -> None:
    answers: list[Any] = []

    def send() -> None:
        try:
            answers.append(
                Client().post(
                    URL,
                    b"?Uk/co\n",
                    content_type="text/plain",
                    headers={"Authorization": f"Bearer {token}", "Prefer": "wait=20"},
                )
            )
        finally:
            connections.close_all()

    sender = threading.Thread(target=send)
    sender.start()
    until = time.monotonic() + 30
    while not Delivery.objects.filter(state=Delivery.State.FRAMED).exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    # Seen from another connection: the record is there, and the waiting one holds no transaction.
    assert Record.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND state LIKE 'idle in transaction%'"
        )
        assert cursor.fetchone() == (0,)
    while sender.is_alive():
        assert time.monotonic() < until
        pipeline.run_due(seconds=1)
    sender.join()
    assert answers[0].json()["is_settled"], answers[0].content
    assert len(answers[0].json()["messages"]) == 1
