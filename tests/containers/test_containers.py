"""A new operator's first hour with docker-compose.yml, in the order of the tests; each needs those before it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .stack import PROJECT, Stack, build_or_skip, find_obstacle

OBSTACLE = find_obstacle()
pytestmark = [pytest.mark.long(seconds=900, waits=True), pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]

MAKE_KEY = """
from inspector.accounts import services
workspace, owner = services.ensure_first_workspace()
_, token = services.create_api_key(workspace=workspace, name="test", scopes=["ingest", "read"], created_by=owner)
print("token", token)
"""
COUNT = """
from django.db.models import Count
from inspector.intake.models import Record
from inspector.threads.models import Message
print("counts", Record.objects.count(), Message.objects.count(), Record.objects.values("source").distinct().count())
"""
BATCHES, BATCH = 200, 10


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one = Stack(tmp_path_factory.mktemp("stack"))
    subprocess.run([sys.executable, ".ci/sbom"], cwd=PROJECT, check=True)
    try:
        build_or_skip(one)
        one.run("up", "-d")
        one.wait_until_well()
        yield one
    finally:
        one.run("down", "-v", "-t", "10", check=False)


@pytest.fixture(scope="module")
def token(stack: Stack) -> str:
    return make_token(stack)


def make_token(stack: Stack) -> str:
    """A key that may post and read."""
    return stack.manage("shell", "--no-imports", "-c", MAKE_KEY).split()[-1]


def post(stack: Stack, token: str, body: str) -> int:
    """The status of the answer to NDJSON that is posted."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    return stack.ask("POST", "/api/v1/messages", data=body.encode(), headers=headers).status_code


def wait_until_read(stack: Stack) -> None:
    until = time.monotonic() + 300
    while stack.measure("inspector_backlog_records") or stack.measure("inspector_oldest_due_seconds"):
        assert time.monotonic() < until, stack.run("logs", "--tail=30", "worker", check=False)[-6000:]
        time.sleep(2)


def test_every_service_runs_as_nobody_and_cannot_write_its_own_code(stack: Stack) -> None:
    names = set()
    for each in stack.list_containers():
        service = each["Config"]["Labels"]["com.docker.compose.service"]
        names.add(service)
        assert each["HostConfig"]["Memory"], service
        if service == "postgres":
            continue
        assert each["Config"]["User"] not in ("", "0", "root"), service
        assert each["HostConfig"]["ReadonlyRootfs"], service
    assert names == {"postgres", "valkey", "migrate", "proxy", "web", "posting", "events", "worker", "beat"}
    assert stack.run("exec", "-T", "web", "sh", "-c", "touch /app/x 2>&1 || echo refused").strip().endswith("refused")


def test_web_and_worker_can_leave_and_database_and_broker_cannot(stack: Stack) -> None:
    """As the engine has it: who is in an internal network alone has no way out. The proxy has one to be reached by."""
    for each in stack.list_containers():
        names = each["NetworkSettings"]["Networks"]
        networks = json.loads(subprocess.check_output(["docker", "network", "inspect", *names]))
        can_leave = not all(network["Internal"] for network in networks)
        service = each["Config"]["Labels"]["com.docker.compose.service"]
        assert can_leave == (service in ("web", "worker", "proxy")), service


def test_the_image_reads_dialects_makes_backups_and_has_its_bill_of_materials(stack: Stack) -> None:
    assert "Read and write" in stack.run("exec", "-T", "worker", "python", "-m", "dialects", "--help")
    made = stack.run("run", "--rm", "-T", "migrate", "python", "manage.py", "backup", "/tmp/one")
    assert "/tmp/one" in made
    bill = json.loads(stack.run("exec", "-T", "worker", "cat", "/app/dist/sbom.cdx.json"))
    assert "django" in {each["name"] for each in bill["components"]}


def test_a_log_is_posted_read_and_signed_off(stack: Stack, token: str) -> None:
    assert post(stack, token, '{"raw": "hello", "conversation": "first"}\n') == 202
    wait_until_read(stack)
    link = stack.manage("sign_in_link", "--url", f"http://127.0.0.1:{stack.port}").split()[-1]
    path, _, code = re.sub(r"^http://[^/]+", "", link).partition("#")
    form = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', stack.ask("GET", path).text)
    assert form
    home = stack.ask("POST", path, data={"csrfmiddlewaretoken": form[1], "code": code, "confirm": ""})
    assert home.status_code == 200, home.text[:500]
    workspace = re.search(r"/w/([-\w]+)/", home.url + home.text)
    assert workspace
    listed = stack.ask("GET", f"/w/{workspace[1]}/conversations/").text
    conversation = re.search(rf"/w/{workspace[1]}/conversations/([-0-9a-f]{{36}})/", listed)
    assert conversation
    page = stack.ask("GET", conversation[0])
    assert "hello" in page.text
    fields = dict(re.findall(r'name="(csrfmiddlewaretoken|seen)" value="(\w+)"', page.text))
    signed = stack.ask("POST", f"{conversation[0]}review/", data={**fields, "verdict": "fine", "comment": ""})
    assert signed.status_code == 200
    assert "Your verdict is kept" in signed.text


def test_a_backup_is_restored_on_an_empty_machine_by_the_commands_of_the_document(stack: Stack, tmp_path: Path) -> None:
    guide = (PROJECT / "docs" / "backup.md").read_text()
    backups, folder = tmp_path / "backups", tmp_path / "other"
    folder.mkdir()
    backups.mkdir(mode=0o700)
    os.chown(backups, 10001, 10001)
    here = ("-T", "-v", f"{backups}:/backups", "migrate", "python", "manage.py")
    for command in ("backup", "restore"):
        assert f"run --rm -v /backups:/backups migrate python manage.py {command} /backups/" in guide
    stack.run("run", "--rm", *here, "backup", "/backups/one")
    empty = Stack(folder, secrets=stack.secrets)
    try:
        empty.run("up", "-d", "postgres")
        assert "Every ledger has the root" in empty.run("run", "--rm", *here, "restore", "/backups/one")
        empty.run("up", "-d")
        empty.wait_until_well()
        counts = [each.manage("shell", "--no-imports", "-c", COUNT).splitlines()[-1] for each in (empty, stack)]
        assert counts[0] == counts[1]
        # Who was signed in there is signed in here.
        empty.session.cookies.update(stack.session.cookies)
        assert "hello" in empty.ask("GET", "/w/default/search/?q=hello").text
    finally:
        empty.run("down", "-v", "-t", "10", check=False)


def test_nothing_is_lost_while_each_service_of_three_is_started_again(stack: Stack, token: str) -> None:
    before = read_counts(stack)
    stack.run("up", "-d", "--no-recreate", "--scale", "web=3", "--scale", "worker=3")
    stack.wait_until_well(["web", "worker"])
    statuses: list[int] = []

    def send() -> None:
        for batch in range(BATCHES):
            lines = [
                {"raw": f"line {line} of {batch}", "id": f"{batch}-{line}", "conversation": f"{batch % 20}"}
                for line in range(BATCH)
            ]
            # A request that got no answer is sent again: its records have the same ids, and are kept once.
            statuses.append(post(stack, token, "".join(json.dumps(line) + "\n" for line in lines)))
            time.sleep(0.3)

    sender = threading.Thread(target=send)
    sender.start()
    for service in ("web", "worker", "posting", "events", "beat", "valkey", "proxy", "postgres"):
        stack.run("restart", "-t", "10", service)
        time.sleep(2)
    sender.join()
    stack.wait_until_well()
    assert statuses == [202] * BATCHES
    wait_until_read(stack)
    records, messages, distinct = (now - was for now, was in zip(read_counts(stack), before, strict=True))
    assert (records, messages, distinct) == (BATCHES * BATCH,) * 3


def read_counts(stack: Stack) -> list[int]:
    """Records, messages and different records."""
    return [int(each) for each in stack.manage("shell", "--no-imports", "-c", COUNT).split()[-3:]]


def test_every_line_of_the_product_is_json_and_a_delivery_is_found_in_web_and_worker(stack: Stack) -> None:
    found: dict[str, set[str]] = {}
    for service in ("posting", "worker"):
        for text in stack.run("logs", "--no-color", service).splitlines():
            line = text.partition("| ")[2]
            if line.startswith("{"):
                said = json.loads(line)
                found.setdefault(service, set()).add(said.get("delivery", ""))
    assert (found["posting"] & found["worker"]) - {""}


def test_all_is_taken_down(stack: Stack) -> None:
    stack.run("down", "-v", "-t", "30")
    label = f"label=com.docker.compose.project={stack.name}"
    for kind in ("container", "network", "volume"):
        every = ["-a"] if kind == "container" else []
        assert not subprocess.check_output(["docker", kind, "ls", *every, "-q", f"--filter={label}"]).strip()
