"""Lines of the log: one for each event, with its time and zone, forged by nobody, without what signs anybody in."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable

import pytest
from django.test import Client, RequestFactory

from inspector.accounts.models import Membership
from inspector.api.probes import show_health
from inspector.intake.models import Delivery
from inspector.logs import (
    ABOUT,
    AwayFilter,
    JsonFormatter,
    LineFormatter,
    RequestIdMiddleware,
    about,
    note_about,
)

from .conftest import Cast, resolve_all

TOKEN = "ghp_" + "a1B2" * 9


def write(message: str, *args: object, failed: BaseException | None = None) -> str:
    info = (type(failed), failed, failed.__traceback__) if failed else None
    return LineFormatter().format(logging.LogRecord("inspector.x", logging.WARNING, "", 0, message, args, info))


@pytest.mark.parametrize(
    "hostile", ["a\n2026-11-21T09:00:00+0000 INFO forged", "\r\x1b[2J", "\u2028x\u202e", "\x00\x7f\x85"], ids=ascii
)
def test_no_text_forges_a_line(hostile: str) -> None:
    line = write("it says %s", hostile)
    assert len(line.splitlines()) == 1
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u202e]", line)
    told = write("it failed", failed=ValueError(hostile))
    assert len(told.splitlines()) == 1
    assert "ValueError" in told


def test_a_line_has_its_time_with_the_zone() -> None:
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} WARNING inspector\.x said$", write("said"))


def test_a_line_keeps_no_token_and_no_link() -> None:
    line = write("%s came by /sign-in/abc-DEF_1/, /invitation/xyz/ and /sign-in-link/#-uvw", TOKEN)
    assert "by /sign-in/…/, /invitation/…/ and /sign-in-link/#…" in line
    assert TOKEN not in line


@pytest.mark.django_db
def test_an_unforeseen_error_is_logged_with_its_cause(
    cast: Cast,
    sign_in: Callable[[Membership], Client],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the inside of it")

    monkeypatch.setattr("inspector.pages.translator.render_page", fail)
    client = sign_in(cast.owner)
    client.raise_request_exception = False
    answer = client.get("/w/acme/glossary/nslip/")
    assert (answer.status_code, "inside" in answer.content.decode()) == (500, False)
    (record,) = [each for each in caplog.records if each.exc_info and each.levelno == logging.ERROR]
    assert "the inside of it" in LineFormatter().format(record)


@pytest.mark.django_db
def test_what_the_framework_refuses_is_one_short_line(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    name = b"n" * 3000
    form = b'--B\r\nContent-Disposition: form-data; name="f"; filename="' + name + b'"\r\n\r\nabc\r\n--B--\r\n'
    assert client.get("/api/v1/limits", headers={"Host": f"{'a' * 3000}.example"}).status_code == 400
    assert client.post("/sign-in/", form, content_type="multipart/form-data; boundary=B").status_code == 400
    # The handler of the settings has seen each before ours did.
    lines = [LineFormatter().format(each) for each in caplog.records]
    assert len(lines) == 2
    for line in lines:
        assert " WARNING django." in line
        assert "Traceback" not in line
        assert len(line) < 700


def test_every_process_logs_to_its_own_output_alone() -> None:
    from inspector.settings import LOGGING

    handlers = json.loads(json.dumps(LOGGING["handlers"]))
    assert handlers == {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["refusals"]}}
    assert logging.StreamHandler().stream is sys.stderr


def test_a_line_of_json_is_one_object_and_keeps_no_token(client: Client) -> None:
    failed = ValueError(f"a\nb\u2028 {TOKEN}")
    record = logging.LogRecord("inspector.x", logging.ERROR, "", 0, "%s\r\x1b", (TOKEN,), (ValueError, failed, None))
    with about(job="one", delivery="two"):
        line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert line.isascii()
    assert TOKEN not in line
    said = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said.pop("time"))
    assert said.pop("traceback").startswith("ValueError: a\nb")
    assert said.pop("message").endswith("\r\x1b")
    assert said == {"level": "ERROR", "logger": "inspector.x", "job": "one", "delivery": "two"}


def test_the_ids_end_with_the_block_that_named_them() -> None:
    with about(job="one"):
        with about(delivery="two"):
            assert write("said").endswith(" said job=one delivery=two")
        note_about(record="three")
        assert write("said").endswith(" said job=one record=three")
    note_about(job="without a block")
    assert write("said").endswith(" said")


@pytest.mark.parametrize("given", ["", "short", "a" * 65, "0123456 789", "é" * 9, "01234567\n"], ids=ascii)
def test_a_request_has_the_id_of_its_proxy_or_a_new_one(client: Client, given: str) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": "0123-abc_DEF"})["X-Request-Id"] == "0123-abc_DEF"
    request = RequestFactory().get("/healthz", headers={"X-Request-Id": given})
    assert re.fullmatch(r"[0-9a-f]{32}", RequestIdMiddleware(show_health)(request)["X-Request-Id"])


@pytest.mark.django_db
def test_a_delivery_is_found_by_its_id_in_web_and_worker(
    cast: Cast, client: Client, token: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    # The handler is one for all tests of a process, and is given back.
    monkeypatch.setattr(caplog.handler, "emit", lambda record: lines.append(JsonFormatter().format(record)))
    with caplog.at_level(logging.INFO, "inspector.steps"):
        answer = client.post(
            "/api/v1/messages", b"hello\n", content_type="text/plain", headers={"Authorization": f"Bearer {token}"}
        )
        resolve_all()
    delivery = str(Delivery.objects.get().pk)
    noted = answer.wsgi_request.META[ABOUT]
    assert noted == {"request": answer["X-Request-Id"], "delivery": delivery}
    told = [json.loads(line) for line in lines if "inspector.steps" in line]
    assert {(each["kind"], each["delivery"]) for each in told} == {("ingest", delivery)}
    assert all(each["job"] for each in told)


def test_a_beat_says_once_a_minute_that_its_broker_is_away() -> None:
    away = AwayFilter()
    error = ConnectionError("refused")

    def fail(at: float) -> str:
        record = logging.LogRecord(
            "celery.beat", logging.ERROR, "", 0, "Message Error: %s\n%s", (error, ["a", "b"]), None
        )
        record.exc_info, record.created = (ConnectionError, error, None), at
        return LineFormatter().format(record) if away.filter(record) else ""

    said = [fail(at) for at in (1000.0, 1002.0, 1058.0, 1061.0)]
    assert [bool(each) for each in said] == [True, False, False, True]
    assert "workers look by themselves: refused" in said[0]
    assert "Traceback" not in said[0]
    assert away.filter(logging.LogRecord("celery.beat", logging.WARNING, "", 0, "other", (), None))
