"""Behind a real PgBouncer in transaction mode with a small pool: two workers and one beat lose and double nothing."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import requests
from django.conf import settings
from django.db import connection
from django.test import Client
from psycopg.conninfo import make_conninfo

from inspector.audit.models import Review
from inspector.intake.models import Delivery, Job, Record
from inspector.threads.models import Conversation, Message

from ..api.test_server import find_port
from ..conftest import Cast, deliver
from .processes import make_environment, process, worker
from .test_recovery import is_done, wait_for

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") or ""
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.long(seconds=20, waits=True),
    pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is missing"),
]


@pytest.fixture
def pooled(cast: Cast, tmp_path: Path) -> Iterator[str]:
    """The address of this test's database behind a pooler with three sessions."""
    info, port = connection.get_connection_params(), find_port()
    names = {"host": "host", "port": "port", "user": "user", "password": "password", "dbname": "dbname"}
    way = " ".join(f"{name}={info[key]}" for name, key in names.items() if info.get(key))
    file = tmp_path / "pgbouncer.ini"
    file.write_text(
        f"[databases]\npooled = {way}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        "unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\n"
    )
    command = [PGBOUNCER, str(file)]
    if os.getuid() == 0:
        # It refuses to run as root; what it reads is given to it.
        user = pwd.getpwnam("nobody")
        file.chmod(0o644)
        with file.open("rb") as text:
            shared = f"/tmp/pgbouncer-{port}.ini"
            Path(shared).write_bytes(text.read())
        os.chown(shared, user.pw_uid, user.pw_gid)
        command = [PGBOUNCER, "--user=nobody", shared]
    with (tmp_path / "pgbouncer.log").open("wb") as log:
        pooler = subprocess.Popen(command, stdout=log, stderr=log)
    address = make_conninfo(host="127.0.0.1", port=port, dbname="pooled", user=info["user"])
    until = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(address, connect_timeout=2).close()
            break
        except psycopg.OperationalError:
            if pooler.poll() is not None or time.monotonic() > until:
                pytest.fail((tmp_path / "pgbouncer.log").read_text())
            time.sleep(0.1)
    try:
        yield address
    finally:
        pooler.terminate()
        pooler.wait(20)
        Path(f"/tmp/pgbouncer-{port}.ini").unlink(missing_ok=True)


def test_nothing_is_lost_or_doubled_and_no_lock_is_left(cast: Cast, pooled: str, tmp_path: Path) -> None:
    direct = make_environment(tmp_path)["DATABASE_URL"]
    addresses = {"DATABASE_URL": pooled, "DATABASE_DIRECT_URL": direct}
    log = tmp_path / "process.log"
    with (
        worker(tmp_path, 2, **addresses),
        worker(tmp_path, 2, **addresses),
    ):
        for part in range(6):
            deliver(cast, *(b"part %d line %d\n" % (part, line) for line in range(300)))
        wait_for(lambda: Message.objects.count() >= 1800 and is_done(), 120, log)
        with closing(connection.cursor()) as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            assert cursor.fetchone() == (0,)
    assert (Record.objects.count(), Message.objects.count(), Delivery.objects.count()) == (1800, 1800, 6)
    assert not Job.objects.exclude(failure="").exists()
    assert "does not exist" not in log.read_text()


def test_a_log_is_posted_read_searched_and_signed_off_behind_it(
    cast: Cast, token: str, pooled: str, tmp_path: Path
) -> None:
    """The story of a page: three sessions of the database serve eight threads and a worker."""
    direct, port = make_environment(tmp_path)["DATABASE_URL"], find_port()
    addresses = {"DATABASE_URL": pooled, "DATABASE_DIRECT_URL": direct, "SECRET_KEY": settings.SECRET_KEY}
    server = ["-m", "gunicorn", "inspector.wsgi:application", "--worker-class=gthread", "--workers=1", "--threads=8"]
    server += ["--config=python:inspector.server", "--no-control-socket", f"--bind=127.0.0.1:{port}"]
    log, site = tmp_path / "process.log", f"http://127.0.0.1:{port}"
    browser = Client()
    browser.force_login(cast.auditor.user, backend="django.contrib.auth.backends.ModelBackend")
    session = requests.Session()
    session.trust_env = False
    session.cookies.set(settings.SESSION_COOKIE_NAME, browser.cookies[settings.SESSION_COOKIE_NAME].value)
    with process(tmp_path, *server, **addresses), worker(tmp_path, **addresses):
        wait_for(lambda: is_ready(site), 60, log)
        for part in range(8):
            lines = "".join(f'{{"raw": "step {line} of {part}", "conversation": "{part}"}}\n' for line in range(50))
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
            assert session.post(f"{site}/api/v1/messages", lines, headers=headers, timeout=60).status_code == 202
        wait_for(lambda: Message.objects.count() >= 400 and is_done(), 120, log)
        conversation = f"/w/acme/conversations/{Conversation.objects.get(native_id='3').pk}/"
        paths = ["/w/acme/", "/w/acme/conversations/", conversation, "/w/acme/search/?q=step", "/w/acme/agents/"]
        paths += ["/w/acme/deliveries/", "/w/acme/trail/", "/w/acme/integrity/", "/w/acme/findings/"]
        # Each page oftener than there are sessions: what one left behind would be found by another.
        with ThreadPoolExecutor(8) as threads:
            pages = list(threads.map(lambda path: session.get(site + path, timeout=60), paths * 5))
        assert {page.url: page.status_code for page in pages if page.status_code != 200} == {}
        page = session.get(site + conversation, timeout=60).text
        fields = dict(re.findall(r'name="(csrfmiddlewaretoken|seen)" value="(\w+)"', page))
        signed = session.post(f"{site}{conversation}review/", {**fields, "verdict": "fine", "comment": ""}, timeout=60)
        assert "Your verdict is kept" in signed.text
    assert Review.objects.count() == 1
    said = log.read_text()
    assert not re.search("does not exist|Traceback", said), said[-4000:]


def is_ready(site: str) -> bool:
    try:
        return requests.get(f"{site}/readyz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def test_migrating_goes_around_it(pooled: str, tmp_path: Path) -> None:
    direct = make_environment(tmp_path)["DATABASE_URL"]
    with process(
        tmp_path, "manage.py", "migrate", "--no-input", DATABASE_URL=pooled, DATABASE_DIRECT_URL=direct
    ) as child:
        assert child.wait(60) == 0, (tmp_path / "process.log").read_text()
