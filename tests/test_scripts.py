"""The unit tests of the browser's scripts (`tests/scripts`), run by Node where it and jsdom are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
MIN_NODE = 20


def test_the_scripts_do_in_a_page_what_they_say() -> None:
    reason = _find_what_is_missing()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    run = subprocess.run(
        ["node", "--test", "tests/scripts/"], cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def test_every_script_has_a_test() -> None:
    tested = "".join(path.read_text("utf-8") for path in (PROJECT / "tests" / "scripts").glob("*.test.mjs"))
    missing = [path.stem for path in (PROJECT / "static" / "js").glob("*.js") if f'["{path.stem}"]' not in tested]
    assert missing == []


def _find_what_is_missing() -> str:
    if shutil.which("node") is None:
        return "there is no Node: install version 20 or newer"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < MIN_NODE:
        return f"Node {version} is too old: install version {MIN_NODE} or newer"
    if not (PROJECT / "node_modules" / "jsdom").is_dir():
        return "what the tests need is not installed: npm ci"
    return ""
