"""The commands of README and the curl lines of docs/api.md, pasted into a real shell before a real server."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dialects import all_dialects
from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.intake.models import Delivery
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Agent, Message

from ..conftest import Cast, resolve_all
from .test_server import find_database, port, server_folder

__all__ = ["port", "server_folder"]

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[3]
ASSIGNED = re.compile(r"^(URL|KEY)=.*\n", re.MULTILINE)


def read_blocks(page: str) -> list[str]:
    """The page's shell blocks."""
    return re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def is_for_curl(block: str) -> bool:
    """Whether a block asks the API."""
    return "/api/v1/" in block and "curl " in block


def paste(block: str, variables: dict[str, str], *, flags: str = "-eu") -> str:
    """What a shell prints for a block; a status of 400 or more fails it."""
    told = subprocess.run(
        ["/bin/bash", flags, "-o", "pipefail"],
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


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", ["README.md", "docs/api.md", "docs/tutorial.md"])
def test_every_block_works_when_pasted(port: int, cast: Cast, page: str) -> None:
    token = create_api_key(
        workspace=cast.workspace, name="all", scopes=ApiKey.Scope.values, created_by=cast.owner.user
    )[1]
    variables = {"URL": f"http://127.0.0.1:{port}", "KEY": token}
    blocks = [ASSIGNED.sub("", block) for block in read_blocks(page) if is_for_curl(block)]
    assert blocks
    received = 0
    for block in blocks:
        if "$EXPORT" in block:
            resolve_all()
        if "$MESSAGE" in block:
            resolve_all()
            enter_new(at_once=True)
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


def test_the_other_blocks_of_the_readme_work_when_pasted(tmp_path: Path) -> None:
    # `make run` and `make test` are pasted from a clean clone, in tests/test_run.py.
    made, taken, decoded = (block for block in read_blocks("README.md") if not is_for_curl(block))
    assert made.split() == ["make", "run", "make", "test"]
    here = {"DATABASE_URL": find_database(), "INSPECTOR_STATE_DIR": str(tmp_path)}
    # The tests may run by a Python of another folder.
    python = shlex.quote(sys.executable)
    assert taken.startswith(".venv/bin/python manage.py import_log ")
    printed = paste(taken.replace(".venv/bin/python", python), here)
    delivery = Delivery.objects.get()
    assert f"{delivery.file_name}: {delivery.received} received = {delivery.stored} stored" in printed
    assert delivery.stored > 1
    assert decoded.startswith("export PYTHONPATH=codecs\n")
    # As where it is pasted by hand, it goes on behind the first line, whose log holds a record that is not readable.
    printed = paste(decoded.replace(".venv/bin/python", python), {}, flags="-u")
    assert "The coordinator (agent 0) asks the planner (agent 1) for a plan" in printed
    assert "question · you · know" in printed
    assert all(f"{dialect.slug}\t" in printed for dialect in all_dialects())
