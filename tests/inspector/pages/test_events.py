"""The event stream by its real server: what comes is told, a cut line goes on where it was, strangers hear nothing."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from psycopg.conninfo import make_conninfo

from inspector.accounts.models import Membership
from inspector.search.news import begin, write_since
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, take_in

pytestmark = pytest.mark.django_db(transaction=True)

PROJECT = Path(__file__).parents[3]
LISTENERS = 3
IMPATIENT = """
def post_worker_init(worker):
    from inspector.pages import live
    live.LOOK_SECONDS, live.BEAT_SECONDS = 0.1, 0.5
"""
WRITE = (
    "INSERT INTO threads_announcement (workspace_id, transaction, at, messages)"
    " VALUES (%s, pg_current_xact_id()::text::bigint, now(), %s)"
)


def database_url() -> str:
    info = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return make_conninfo(**{name: info[name] for name in names if info.get(name)})


@pytest.fixture
def port(db: None, tmp_path: Path) -> Iterator[int]:
    """The process as docker-compose.yml starts it, on the database of this test and with less patience."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        number: int = listener.getsockname()[1]
    (tmp_path / "server.py").write_text(IMPATIENT)
    command = [sys.executable, "-m", "gunicorn", "inspector.asgi:application", f"--bind=127.0.0.1:{number}"]
    command += ["--worker-class=asgi", "--workers=1", "--graceful-timeout=1", f"--config={tmp_path / 'server.py'}"]
    command += ["--no-control-socket"]
    environment = os.environ | {
        "DATABASE_URL": database_url(),
        "INSPECTOR_STATE_DIR": str(tmp_path),
        "SECRET_KEY": settings.SECRET_KEY,
        "EVENT_LISTENERS": str(LISTENERS),
        "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
    }
    with (tmp_path / "events.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while not is_well(number):
            assert process.poll() is None, (tmp_path / "events.log").read_text()
            assert time.monotonic() < until, (tmp_path / "events.log").read_text()
            time.sleep(0.1)
        yield number
    finally:
        process.terminate()
        process.wait(20)
        said = (tmp_path / "events.log").read_text()
    assert "Traceback" not in said, said


def is_well(port: int) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        client.request("GET", "/healthz")
        return client.getresponse().status == 200
    except OSError:
        return False
    finally:
        client.close()


def sign_in(membership: Membership) -> str:
    client = Client()
    client.force_login(membership.user, backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies[settings.SESSION_COOKIE_NAME].value


class Listener:
    """A browser's end of a stream."""

    def __init__(self, port: int, session: str, slug: str = "acme", last: str = "", **query: str) -> None:
        headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"} if session else {}
        headers |= {"Last-Event-ID": last} if last else {}
        self.client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.client.request("GET", f"/w/{slug}/events/?{urlencode({'of': 'overview', **query})}", headers=headers)
        self.answer = self.client.getresponse()
        self.last = last

    @property
    def status(self) -> int:
        return self.answer.status

    def hear(self) -> tuple[str, str]:
        """The next event with data: its name, and what its chip says. What only moves the id is passed over."""
        name, data = "message", ""
        until = time.monotonic() + 15
        while time.monotonic() < until:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "id":
                self.last = value
            elif field == "event":
                name = value
            elif field == "data":
                data += value
            elif not field and data:
                said = re.search(r">([^<]+)<span", data)
                return name, said[1] if said else data
        raise TimeoutError("nothing is told")

    def settle(self) -> str:
        """The id of what stands there at the beginning."""
        while not self.last:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            field, _, value = line.rstrip("\n").partition(": ")
            self.last = value if field == "id" else ""
        return self.last

    def cut(self) -> None:
        self.client.close()
        self.answer.close()


Listen = Callable[..., Listener]


@pytest.fixture
def listen(port: int) -> Iterator[Listen]:
    """Listen to the stream as a browser does: `listen(session, slug=…, last=…, of=…, …)`."""
    opened: list[Listener] = []

    def begin_listening(session: str, **names: str) -> Listener:
        opened.append(Listener(port, session, **names))
        return opened[-1]

    yield begin_listening
    for each in opened:
        each.cut()


def say(cast: Cast, text: str, conversation: str = "talk") -> None:
    take_in(cast, json.dumps({"raw": text, "conversation": conversation, "id": uuid.uuid4().hex}).encode() + b"\n")


def test_what_comes_is_told_and_a_cut_line_goes_on_where_it_was(cast: Cast, listen: Listen) -> None:
    session = sign_in(cast.viewer)
    after = write_since(begin(), cast.workspace.pk)
    say(cast, "A zebra before anybody listened.")
    everything = listen(session, after=after)
    zebras = listen(session, of="search", q="zebra", after=after)
    assert everything.status == zebras.status == 200
    assert everything.answer.headers["Content-Type"].startswith("text/event-stream")
    assert everything.hear() == zebras.hear() == ("news", "1 new")
    say(cast, "A giraffe.")
    assert everything.hear() == ("news", "2 new")
    zebras.cut()
    say(cast, "A zebra while the line was cut.")
    again = listen(session, of="search", q="zebra", after=after, last=zebras.last)
    # Counted on from what was heard, and the first is not told twice.
    assert again.hear() == ("news", "2 new")
    assert everything.hear() == ("news", "3 new")


def test_nothing_is_passed_over_while_writers_commit_in_another_order(cast: Cast, listen: Listen) -> None:
    for number in range(4):
        say(cast, f"Something to announce, {number}.")
    first, *others = Message.objects.values_list("pk", flat=True)
    listener = listen(sign_in(cast.viewer), after=write_since(begin(), cast.workspace.pk))
    with psycopg.connect(database_url()) as slow, psycopg.connect(database_url()) as quick:
        slow.execute(WRITE, [cast.workspace.pk, [first]])
        for message_id in others:
            quick.execute(WRITE, [cast.workspace.pk, [message_id]])
            quick.commit()
        time.sleep(0.5)
        slow.commit()
    heard = []
    while not heard or heard[-1] != "4 new":
        heard.append(listener.hear()[1])
        assert len(heard) < 5, heard


def test_whoever_may_not_read_hears_nothing(cast: Cast, listen: Listen) -> None:
    viewer = sign_in(cast.viewer)
    assert listen("").status == 401
    assert listen("unknown").status == 404
    assert listen(sign_in(cast.stranger)).status == 404
    assert listen(viewer, slug="other").status == 404
    assert listen(viewer, after="spoilt").status == 404
    assert listen(viewer, of="search", q="performativ:x").status == 404
    listeners = [listen(viewer) for _ in range(LISTENERS)]
    assert [each.status for each in listeners] == [200] * LISTENERS
    refused = listen(viewer)
    assert (refused.status, refused.answer.headers["Retry-After"]) == (503, "30")
    for each in listeners:
        each.settle()
    # Whoever is taken out, or signs out, is heard no more, although nothing new comes.
    cast.viewer.delete()
    for each in listeners:
        assert each.hear()[0] == "bye"
        assert each.answer.read() == b""


def test_hosts_and_methods_are_those_of_the_pages(port: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    for method, path, host, status in (
        ("GET", "/w/acme/events/", "evil.example", 400),
        ("POST", "/w/acme/events/", "127.0.0.1", 405),
        ("GET", "/w/acme/overview/", "127.0.0.1", 404),
        ("GET", "/sign-in/", "127.0.0.1", 404),
    ):
        client.request(method, path, headers={"Host": host})
        answer: Any = client.getresponse()
        answer.read()
        assert answer.status == status
    client.close()


def test_a_supervisor_asks_whether_it_is_ready_by_any_host_name(port: int) -> None:
    for path, status in (("/readyz", 200), ("/healthz", 200), ("/w/acme/events/", 400)):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        client.request("GET", path, headers={"Host": "10.0.0.7:8000"})
        assert client.getresponse().status == status, path
        client.close()
