"""The curl lines of README and docs/api.md, pasted into a real shell before a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.threads.agents.tables import Agent
from inspector.threads.models import Message

from ..conftest import Cast, settle_all
from .test_server import port

__all__ = ["port"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]

ROOT = Path(__file__).resolve().parents[3]
ASSIGNED = re.compile(r"^(URL|KEY)=.*\n", re.MULTILINE)


def list_blocks(page: str) -> list[str]:
    """The page's shell blocks that ask the API."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [ASSIGNED.sub("", block) for block in blocks if "/api/v1/" in block and "curl " in block]


def paste(block: str, variables: dict[str, str]) -> str:
    """What a shell prints for a block; a status of 400 or more fails it."""
    told = subprocess.run(
        ["/bin/bash", "-euo", "pipefail"],
        input='curl() { command curl --fail-with-body --max-time 60 "$@"; }\n' + block,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, (block, told.stdout, told.stderr)
    return told.stdout


def read_answers(printed: str) -> list[dict[str, Any]]:
    """The JSON objects that stand one after the other in what was printed; raw bytes end the list."""
    answers, decoder, at = [], json.JSONDecoder(), 0
    while printed.startswith("{", at):
        try:
            answer, at = decoder.raw_decode(printed, at)
        except ValueError:
            break
        answers.append(answer)
    return answers


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_every_block_works_when_pasted(port: int, cast: Cast, page: str) -> None:
    token = create_api_key(
        workspace=cast.workspace, name="all", scopes=ApiKey.Scope.values, created_by=cast.owner.user
    )[1]
    variables = {"URL": f"http://127.0.0.1:{port}", "KEY": token}
    blocks = list_blocks(page)
    assert blocks
    received = 0
    for block in blocks:
        if "$EXPORT" in block:
            settle_all()
        if "$MESSAGE" in block:
            settle_all()
            message = Message.objects.filter(dialect="clowl").first()
            assert message is not None
            variables |= {
                "MESSAGE": str(message.pk),
                "CONVERSATION": str(message.conversation_id),
                "RECORD": str(message.record_id),
                "AGENT": str(Agent.objects.get(name=message.sender).pk),
            }
        for answer in read_answers(paste(block, variables)):
            if "manifest" in answer:
                variables["EXPORT"] = answer["id"]
            # An agent says too how many messages it received.
            if "delivery" in answer and "received" in answer and "door" not in answer:
                assert answer["received"] == answer["stored"] + answer["duplicate"] + answer["quarantined"] > 0
                received += answer["received"]
                variables["DELIVERY"] = answer["delivery"]
    assert received > 1
