"""Messages that are posted: receipts, limits, replays, and answers that wait."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import time
import uuid
from datetime import timedelta
from typing import Any

import pytest
import zstandard
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from inspector import pipeline
from inspector.accounts.services import create_api_key, ensure_channel, revoke_api_key
from inspector.api import deliveries
from inspector.intake import framing
from inspector.intake.framing import LAST_BYTES
from inspector.intake.models import Delivery, Job, Record
from inspector.threads.models import Announcement
from inspector.trail.row_security import across

from ..conftest import Cast, deliver, resolve_all
from .clients import walk

pytestmark = pytest.mark.django_db
URL = "/api/v1/messages"


def post(token: str, body: bytes, kind: str = "application/x-ndjson", **headers: str) -> Any:
    return Client().post(URL, body, content_type=kind, headers={"Authorization": f"Bearer {token}", **headers})


def counts(response: Any) -> tuple[int, int, int, int]:
    assert response.status_code == 202, response.content
    said = response.json()
    return said["received"], said["stored"], said["duplicate"], said["quarantined"]


@pytest.mark.parametrize(
    ("kind", "body", "received"),
    [
        ("application/x-ndjson", b'{"raw": "a"}\n{"raw": "b"}\n', 2),
        ("application/json", b'[{"raw": "a"}, "b", {"raw": "c"}]', 3),
        ("application/json", b'{"messages": [{"raw": "a"}, {"raw": "b"}]}', 2),
        ("application/json", b'{"raw": "a"}', 1),
        ("application/json", b'"a"', 1),
        ("text/plain", b"one\ntwo\n\nthree", 3),
        ("text/plain; charset=utf-8", b"one\n", 1),
        ("text/event-stream", b'event: a\ndata: {"n":1}\n\ndata: {"n":2}\n\n', 2),
        ("text/csv", b"raw,from\nhello,ada\nbye,bob\n", 2),
    ],
)
def test_every_form_is_taken(token: str, kind: str, body: bytes, received: int) -> None:
    assert counts(post(token, body, kind)) == (received, received, 0, 0)


@pytest.mark.parametrize(
    ("name", "fold"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)], ids=["gzip", "zstd"]
)
def test_compressed_bodies_are_taken(token: str, name: str, fold: Any) -> None:
    assert counts(post(token, fold(b"one\ntwo\n" * 500), "text/plain", **{"Content-Encoding": name}))[0] == 1000


@pytest.mark.parametrize(
    ("kind", "headers", "body", "status"),
    [
        ("image/png", {}, b"x", 415),
        ("text/plain; charset=latin-1", {}, b"x", 415),
        ("text/plain", {"Content-Encoding": "br"}, b"x", 415),
        ("text/plain", {}, b"", 400),
        ("text/plain", {"Content-Encoding": "gzip"}, b"not gzip", 400),
        ("text/plain", {"Content-Encoding": "gzip"}, gzip.compress(b"one\n" * 9999, mtime=0)[:-20], 400),
        ("text/plain", {"Content-Encoding": "zstd"}, b"not zstd", 400),
        ("text/plain", {"Content-Encoding": "zstd"}, zstandard.ZstdCompressor().compress(b"one\n" * 9999)[:-9], 400),
        ("text/plain", {"X-Channel": "x" * 65}, b"x", 422),
        ("text/plain", {"Idempotency-Key": "x" * 256}, b"x", 422),
    ],
)
def test_what_is_not_understood_gets_a_clear_answer(
    token: str, kind: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    response = post(token, body, kind, **headers)
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    said = response.json()
    assert said["status"] == status
    assert len(said["detail"]) > 10


def test_unreadable_lines_are_quarantined_and_explained(token: str) -> None:
    response = post(token, b"fine\n\xff\xfe\nfine too\n", "text/plain")
    assert counts(response) == (3, 2, 0, 1)
    problem = response.json()["problems"][0]
    assert (problem["index"], problem["line"]) == (1, 2)
    raw = Client().get(problem["raw"], headers={"Authorization": f"Bearer {token}"})
    assert b"".join(raw.streaming_content) == b"\xff\xfe"
    assert "attachment" in raw["Content-Disposition"]


def test_a_binary_body_is_answered_and_kept(token: str) -> None:
    received, stored, duplicate, quarantined = counts(post(token, bytes(range(256)) * 20, "text/plain"))
    assert received == stored + duplicate + quarantined
    assert quarantined >= 20


def test_a_gzip_bomb_stops(token: str) -> None:
    response = post(
        token, gzip.compress(b"one line\n" + b"x" * 40_000_000), "text/plain", **{"Content-Encoding": "gzip"}
    )
    assert response.status_code == 413
    said = response.json()
    assert "limit" in said["detail"]
    # What was whole before that stands, and is counted.
    assert (said["received"], said["stored"]) == (2, 1)


def test_a_body_that_breaks_off_keeps_its_complete_records(token: str) -> None:
    body = gzip.compress(b"".join(f"record {number}\n".encode() for number in range(12_000)))
    response = post(token, body[: len(body) // 2], "text/plain", **{"Content-Encoding": "gzip"})
    assert response.status_code == 400
    said = response.json()
    assert said["stored"] + said["quarantined"] == Record.objects.count() > 1000
    assert Delivery.objects.get().state == Delivery.State.BROKEN
    # The record that was cut in two does not pass for a whole one.
    (problem,) = said["problems"]
    assert problem["index"] == said["stored"]
    assert "cut short" in problem["reason"]


@pytest.mark.parametrize("header", [None, "Basic abc", "Bearer", "Bearer x", "Bearer aci_0_1", "Bearer é"])
def test_a_wrong_key_is_401(db: None, header: str | None) -> None:
    headers = {"Authorization": header} if header else {}
    response = Client().post(URL, b"x", content_type="text/plain", headers=headers)
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_revoked_key_and_one_bit_off_are_401(cast: Cast) -> None:
    key, token = create_api_key(workspace=cast.workspace, name="k", scopes=["ingest"])
    off = token[:-1] + ("0" if token[-1] != "0" else "1")
    assert post(off, b"x", "text/plain").status_code == 401
    revoke_api_key(key=key)
    assert post(token, b"x", "text/plain").status_code == 401


def test_a_key_without_the_scope_is_403(cast: Cast) -> None:
    _, reader = create_api_key(workspace=cast.workspace, name="k", scopes=["read"])
    assert post(reader, b"x", "text/plain").status_code == 403
    _, sender = create_api_key(workspace=cast.workspace, name="k", scopes=["ingest"])
    assert Client().get(URL, headers={"Authorization": f"Bearer {sender}"}).status_code == 403


def test_a_key_bound_to_a_channel_refuses_another(cast: Cast) -> None:
    channel = ensure_channel(workspace=cast.workspace, name="robots")
    _, token = create_api_key(workspace=cast.workspace, name="k", scopes=["ingest"], channel=channel)
    assert post(token, b"x", "text/plain", **{"X-Channel": "main"}).status_code == 403
    assert post(token, b"x", "text/plain").status_code == 202
    assert Record.objects.get().channel == channel


def test_an_idempotency_key_gives_the_same_answer_once(token: str) -> None:
    first = post(token, b"one\n", "text/plain", **{"Idempotency-Key": "k1"})
    again = post(token, b"one\n", "text/plain", **{"Idempotency-Key": "k1"})
    other = post(token, b"two\n", "text/plain", **{"Idempotency-Key": "k1"})
    # In how many seconds it is read is another number by then.
    assert first.json() | {"told_in_seconds": 0} == again.json() | {"told_in_seconds": 0}
    assert Record.objects.count() == 1
    assert other.status_code == 409


@pytest.mark.parametrize(
    ("kind", "headers"),
    [("text/plain", {"X-Channel": "other"}), ("application/x-ndjson", {})],
    ids=["channel", "type"],
)
def test_an_idempotency_key_is_of_one_channel_and_type(token: str, kind: str, headers: dict[str, str]) -> None:
    assert post(token, b"one\n", "text/plain", **{"Idempotency-Key": "k"}).status_code == 202
    refused = post(token, b"one\n", kind, **{"Idempotency-Key": "k"} | headers)
    assert refused.status_code == 409
    assert "channel or Content-Type" in refused.json()["detail"]
    again = post(token, b"one\n", "text/plain; charset=utf-8", **{"Idempotency-Key": "k", "X-Channel": "main"})
    assert again.status_code == 202
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("written", ["utf-8", "latin-1"])
def test_a_channel_is_named_in_utf_8(token: str, written: str) -> None:
    # As a server hands it on: each byte is a character.
    assert (
        post(token, b"one\n", "text/plain", **{"X-Channel": "café".encode(written).decode("latin-1")}).status_code
        == 202
    )
    assert Delivery.objects.get().channel.name == "café"


@pytest.mark.parametrize("name", ["identity", "gzip"])
def test_a_post_has_a_number_of_records(token: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(framing, "FREE_RECORDS", 3000)
    monkeypatch.setattr(framing, "BYTES_EACH", 10**9)
    packing = {"Content-Encoding": name}
    fold = gzip.compress if name == "gzip" else bytes
    assert counts(post(token, fold(b"a\n" * 3000 + b"\n\n"), "text/plain", **packing))[0] == 3000
    response = post(token, fold(b"a\n" * 200_000), "text/plain", **packing)
    said = response.json()
    assert response.status_code == 413
    assert "3,000 records" in said["detail"]
    # How far it came is exact, and the delivery is of the bytes that were taken.
    delivery = Delivery.objects.get(pk=said["delivery"])
    taken = (b"a\n" * 200_000)[: delivery.size_bytes]
    assert 3000 < said["received"] <= 3000 + LAST_BYTES
    assert (said["received"], said["state"]) == (-(-len(taken) // 2), "broken")
    assert (said["stored"], said["quarantined"]) == (len(taken) // 2, len(taken) % 2)
    assert bytes(delivery.sha256 or b"") == hashlib.sha256(taken).digest()
    # A long record before the last ones is taken as quickly as any.
    long = post(token, fold(b"a\n" * 2999 + b"b" * 4_000_000 + b"\n" + b"c\n" * 4000), "text/plain", **packing)
    assert 3000 < long.json()["received"] <= 3000 + LAST_BYTES


def test_of_little_that_arrives_no_multitude_becomes(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "FREE_RECORDS", 10)
    body = b"a line\n" * 5000
    assert counts(post(token, body, "text/plain"))[0] == 5000
    packed = post(token, gzip.compress(body), "text/plain", **{"Content-Encoding": "gzip"})
    assert (packed.status_code, packed.json()["received"] < 200) == (413, True)


def test_what_is_read_in_slices_is_in_the_backlog(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(deliveries, "MIN_PACE", 1.0)
    assert post(token, b"a\n" * 700, "text/plain").status_code == 202
    Delivery.objects.update(read=1)
    assert deliveries.estimate_told() == deliveries.QUIET_SECONDS
    assert post(token, b"a\n", "text/plain").status_code == 503
    Delivery.objects.update(read=200)
    assert post(token, b"a\n", "text/plain").status_code == 202


def test_no_answer_is_kept_by_a_browser_or_proxy(token: str) -> None:
    for answer in (post(token, b"one\n", "text/plain"), post("aci_no_key", b"one\n"), post(token, b"{", "no/type")):
        assert "no-store" in answer["Cache-Control"]


def test_an_idempotency_key_belongs_to_the_api_key_that_sent_it(token: str, cast: Cast) -> None:
    other = create_api_key(workspace=cast.workspace, name="other", scopes=["ingest"])[1]
    first = post(token, b"one\n", "text/plain", **{"Idempotency-Key": "k1"})
    second = post(other, b"two\n", "text/plain", **{"Idempotency-Key": "k1"})
    assert (first.status_code, second.status_code) == (202, 202)
    assert Record.objects.count() == 2


def test_a_key_makes_a_bounded_number_of_channels(token: str, cast: Cast, settings: Any) -> None:
    settings.LIMITS = settings.LIMITS | {"channels": 3}
    answers = [post(token, b"one\n", "text/plain", **{"X-Channel": f"c{number}"}) for number in range(4)]
    assert [answer.status_code for answer in answers] == [202, 202, 422, 422]
    assert "makes none beyond 3" in answers[2].json()["detail"]
    assert post(token, b"two\n", "text/plain", **{"X-Channel": "c0"}).status_code == 202


def test_an_idempotency_key_whose_twin_is_running_is_409(token: str, cast: Cast) -> None:
    post(token, b"one\n", "text/plain", **{"Idempotency-Key": "k1"})
    Delivery.objects.update(state=Delivery.State.RECEIVING)
    response = post(token, b"one\n", "text/plain", **{"Idempotency-Key": "k1"})
    assert response.status_code == 409
    assert response["Retry-After"]


def test_a_receipt_says_when_it_is_told_and_a_backlog_of_ten_minutes_is_503(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.0)
    first = post(token, b"one\ntwo\n", "text/plain")
    assert first.json()["told_in_seconds"] == deliveries.QUIET_SECONDS
    waiting = Job.objects.filter(kind=Job.Kind.INGEST)
    waiting.update(due_at=timezone.now() - timedelta(seconds=500))
    assert 500 <= post(token, b"three\n", "text/plain").json()["told_in_seconds"] < 600
    waiting.update(due_at=timezone.now() - timedelta(seconds=700))
    response = post(token, b"four\n", "text/plain")
    assert response.status_code == 503
    assert 100 <= int(response["Retry-After"]) <= 300
    resolve_all()
    assert post(token, b"four\n", "text/plain").status_code == 202
    answer = Client().get(first.json()["links"]["self"], headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["told_in_seconds"] == 0


def test_what_waits_is_told_by_the_measured_pace(cast: Cast, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(deliveries, "MIN_PACE", 0.1)
    post(token, b"one\ntwo\n", "text/plain")
    assert deliveries.estimate_told() == deliveries.QUIET_SECONDS + 20
    told = [[uuid.uuid4() for _ in range(count)] for count in (100, 20)]
    Announcement.objects.bulk_create(
        Announcement(workspace=cast.workspace, transaction=1, at=timezone.now(), messages=ids) for ids in told
    )
    assert deliveries.measure_pace() == 2
    assert deliveries.estimate_told() == deliveries.QUIET_SECONDS + 1
    # A file keeps nobody waiting: others are read between its slices.
    deliver(cast, b"a\n" * 50)
    assert deliveries.estimate_told() == deliveries.QUIET_SECONDS + 1


def test_a_delivery_tells_its_progress(token: str) -> None:
    receipt = post(token, b"one\ntwo\n", "text/plain").json()
    get = lambda: Client().get(receipt["links"]["self"], headers={"Authorization": f"Bearer {token}"}).json()  # noqa: E731
    assert (get()["is_framed"], get()["is_read"]) == (True, False)
    resolve_all()
    assert (get()["read"], get()["is_read"]) == (2, True)


def test_what_was_posted_is_found_and_read(token: str) -> None:
    post(token, json.dumps({"raw": "The zeppelin has landed.", "from": "ada", "conversation": "air"}).encode())
    resolve_all()
    headers = {"Authorization": f"Bearer {token}"}
    page = Client().get(URL, {"q": "zeppelin from:ada"}, headers=headers).json()
    assert [row["english"] for row in page["results"]] == ["ada writes plain text: “The zeppelin has landed.”."]
    full = Client().get(f"{URL}/{page['results'][0]['id']}", headers=headers).json()
    assert full["message"]["conversation_id"] == "air"
    assert full["fields"][0]["raw"] == "The zeppelin has landed."
    conversation = Client().get(f"/api/v1/conversations/{full['conversation']}", headers=headers).json()
    assert conversation["messages"][0]["english"] == "ada writes plain text: “The zeppelin has landed.”."


def test_pages_go_on_by_cursor(token: str) -> None:
    post(token, b"".join(f"line {number}\n".encode() for number in range(7)), "text/plain")
    resolve_all()
    client = Client(headers={"Authorization": f"Bearer {token}"})
    seen = [row["id"] for row in walk(client, URL, limit=3)]
    assert len(seen) == len(set(seen)) == 7


@pytest.mark.parametrize("query", ["cursor=zzz", "q=dialekt:nslip", "q=dialect:nsli", 'q="open', "limit=x"])
def test_a_query_that_cannot_be_understood_is_400(token: str, query: str) -> None:
    response = Client().get(f"{URL}?{query}", headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("body", [b'[{"raw": "a"}, {"raw": "b"}]', b"\n \n[\n]\n", b"[2026] text\n"])
@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/jsonl"])
def test_an_array_is_no_body_of_lines(token: str, kind: str, body: bytes) -> None:
    response = post(token, body, kind)
    assert response.status_code == 422
    assert "send an array as application/json" in response.json()["detail"]
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("name", "fold"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)], ids=["gzip", "zstd"]
)
def test_a_compressed_body_must_say_so(token: str, name: str, fold: Any) -> None:
    response = post(token, fold(b"one\ntwo\n"), "text/plain")
    assert response.status_code == 415
    assert f"send Content-Encoding: {name}" in response.json()["detail"]
    assert not Delivery.objects.exists()


def test_each_line_of_ndjson_is_a_record(token: str) -> None:
    body = b'{"raw": "a", "to":\n{"raw": "b"}\n{"raw":\n"c"}\n'
    assert counts(post(token, body)) == (4, 4, 0, 0)
    assert Record.objects.get(order_index=1).wire_text == "b"


@pytest.fixture
def work_meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each pause of a waiting request is time in which the work goes on; what it found to do, pause by pause."""
    done: list[int] = []

    def pause(seconds: float) -> None:
        # The records were durable before the waiting began: a worker of its own could see them.
        with across():
            done.append(Record.objects.count())
            resolve_all()

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


def test_an_answer_that_waited_says_when_it_is_told_from_then_on(token: str, work_meanwhile: list[int]) -> None:
    said = post(token, b"one\n", "text/plain", Prefer="wait=20").json()
    assert (said["is_settled"], said["told_in_seconds"]) == (True, 0)


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
    ("wish", "seconds"),
    [
        ("wait=7", 7),
        ('Wait = "7"', 7),
        ("respond-async, wait=7;x=1", 7),
        ("wait=99999", 30),
        ("wait=999999999999", 30),
        ("wait=0000000007", 7),
    ],
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
    # By now all is told.
    assert first | {"told_in_seconds": 0} == {name: again[name] for name in first}
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
