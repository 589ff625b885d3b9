"""Lines of the log: one for each event, with its time and zone, forged by nobody, without what signs anybody in."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable

import pytest
from django.test import Client

from inspector.accounts.models import Membership
from inspector.logs import LineFormatter

from .conftest import Cast

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
    line = write("%s came by /sign-in/abc-DEF_1/ and /invitation/xyz/", TOKEN)
    assert TOKEN not in line
    assert "abc-DEF_1" not in line
    assert "xyz" not in line


@pytest.mark.django_db
def test_an_unforeseen_error_is_logged_with_its_cause(
    cast: Cast,
    sign_in: Callable[[Membership], Client],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the inside of it")

    monkeypatch.setattr("inspector.pages.glossary.render_page", fail)
    client = sign_in(cast.owner)
    client.raise_request_exception = False
    answer = client.get("/w/acme/glossary/nslip/")
    assert (answer.status_code, "inside" in answer.content.decode()) == (500, False)
    (record,) = [each for each in caplog.records if each.exc_info and each.levelno == logging.ERROR]
    assert "the inside of it" in LineFormatter().format(record)


def test_every_process_logs_to_its_own_output_alone() -> None:
    from inspector.settings import LOGGING

    handlers = json.loads(json.dumps(LOGGING["handlers"]))
    assert handlers == {"console": {"class": "logging.StreamHandler", "formatter": "line"}}
    assert logging.StreamHandler().stream is sys.stderr
