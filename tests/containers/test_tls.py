"""docker-compose.tls.yml: database and broker are talked to in TLS alone, with certificates made as documented."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .stack import PROJECT, Stack, build_or_skip, find_obstacle
from .test_containers import make_token, post, wait_until_read

OBSTACLE = find_obstacle()
pytestmark = [pytest.mark.long(seconds=300, waits=True), pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]

SESSIONS = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                   " WHERE client_addr IS NOT NULL")
    print("sessions", *cursor.fetchone())
"""


def test_database_and_broker_are_talked_to_in_tls(tmp_path: Path) -> None:
    (commands,) = re.findall(
        r"^mkdir tls .*?(?=^```)", (PROJECT / "docs/operations.md").read_text(), re.DOTALL | re.MULTILINE
    )
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "tls" / "server.key").stat().st_uid == 999
    stack = Stack(tmp_path, files=["docker-compose.yml", "docker-compose.tls.yml"])
    try:
        build_or_skip(stack)
        stack.run("up", "-d")
        stack.wait_until_well()
        assert post(stack, make_token(stack), '{"raw": "hello", "conversation": "first"}\n') == 202
        wait_until_read(stack)
        sessions, sealed = stack.manage("shell", "--no-imports", "-c", SESSIONS).split()[-2:]
        assert int(sessions) == int(sealed) > 0
        assert "PONG" not in stack.run("exec", "-T", "valkey", "valkey-cli", "ping", check=False)
    finally:
        stack.run("down", "-v", "-t", "10", check=False)
