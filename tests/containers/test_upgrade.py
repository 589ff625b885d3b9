"""An earlier version in containers, with data, is upgraded as docs/operations.md says; nothing is lost on the way."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .stack import PROJECT, Stack, build_or_skip, find_obstacle
from .test_containers import make_token, post, read_counts, wait_until_read

# Before the row-level security, the object store and a dozen of migrations.
EARLIER = "a196cfa68f2b59592678b2502753c5f876babb7c"
# What it names, and the variables that say what this machine has in the place of these.
IMAGES = {
    "python:3.13-slim": "PYTHON_IMAGE",
    "postgres:18": "POSTGRES_IMAGE",
    "valkey/valkey:9": "VALKEY_IMAGE",
    "nginx:1": "PROXY_IMAGE",
}


def find_missing() -> str:
    """Why no upgrade can be tried here; empty where one can."""
    obstacle = find_obstacle()
    if obstacle:
        return obstacle
    known = subprocess.run(["git", "cat-file", "-e", EARLIER], cwd=PROJECT, capture_output=True, check=False)
    return "the earlier version is not in the history that is here" if known.returncode else ""


MISSING = find_missing()
pytestmark = [pytest.mark.long(seconds=900, waits=True), pytest.mark.skipif(bool(MISSING), reason=MISSING)]


def take_out(folder: Path) -> Path:
    """The earlier version in a folder, with the base images that are to be had here."""
    folder.mkdir()
    with subprocess.Popen(["git", "archive", EARLIER], cwd=PROJECT, stdout=subprocess.PIPE) as made:
        subprocess.run(["tar", "-x", "-C", folder], stdin=made.stdout, check=True)
    for file in (folder / "Dockerfile", folder / "docker-compose.yml"):
        text = file.read_text()
        for image, variable in IMAGES.items():
            text = text.replace(f": {image}\n", f": {os.environ.get(variable, image)}\n")
            text = text.replace(f"FROM {image}", f"FROM {os.environ.get(variable, image)}")
        file.write_text(text)
    return folder


def post_batch(stack: Stack, token: str, name: str) -> int:
    """Ten messages of one conversation."""
    lines = [
        f'{{"raw": "line {line} of {name}", "id": "{name}-{line}", "conversation": "{name}"}}' for line in range(10)
    ]
    return post(stack, token, "\n".join(lines))


def test_what_an_earlier_version_took_in_is_there_after_the_upgrade(tmp_path: Path) -> None:
    stack = Stack(tmp_path, take_out(tmp_path / "earlier"))
    try:
        build_or_skip(stack)
        stack.run("up", "-d")
        stack.wait_until_well()
        token = make_token(stack)
        assert [post_batch(stack, token, f"before-{number}") for number in range(20)] == [202] * 20
        wait_until_read(stack)
        assert read_counts(stack) == [200] * 3
        stack.use(PROJECT)
        stack.run("build", "web")
        stack.run("stop", "worker")
        assert post_batch(stack, token, "meanwhile") == 202
        stack.run("run", "--rm", "migrate")
        stack.run("up", "-d")
        stack.wait_until_well()
        stack.manage("doctor")
        assert post_batch(stack, token, "after") == 202
        wait_until_read(stack)
        assert read_counts(stack) == [220] * 3
        assert stack.ask("GET", "/api/v1/messages", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        stack.manage("verify_ledger")
    finally:
        stack.run("down", "-v", "-t", "10", check=False)
