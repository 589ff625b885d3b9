"""Another package brings a dialect, a carrier and a rule by entry points; the codecs are installed without Django."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
WIRES = (
    "~ASK ada>bob 7 depart at 12:30~",
    "~DONE bob>ada 7 left~",
    "~ASK ada>bob depart~",
    "~GO “x”",
    '{"satchel":1,"by":"ada","for":"bob","letters":["~ASK ada>bob 7 depart~","?Uk/co"]}',
    '{"satchel":1,"letters":[7]}',
    "?Uk/co",
    "hello",
)


def install(source: Path, folder: Path) -> Path:
    """The package as its wheel has it, in a folder that Python may look into."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t", "wheel"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "installed")
    return folder / "installed"


def run(*arguments: str, path: list[Path], given: str = "") -> str:
    # Nothing of the settings of this run: another one inside it starts a server of its own.
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, path)), "DJANGO_SETTINGS_MODULE": "inspector.settings"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=PROJECT, env=environment, input=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def path(tmp_path: Path) -> list[Path]:
    return [install(PROJECT / "examples/relay", tmp_path), PROJECT / "codecs", PROJECT]


LAWS = """
import json, sys, dialects
for wire in json.load(sys.stdin):
    for end in range(len(wire) + 1):
        reading = dialects.decode(wire[:end])
        leaves = [field for field in reading.fields if not field.children]
        assert wire[0] != "~" or "".join(field.raw for field in leaves) == wire[:end]
    reading = dialects.decode(wire)
    if reading.dialect == "relay" and not reading.is_malformed:
        assert dialects.encode(reading.messages, "relay").wire == wire
    print(reading.dialect, *(message.sentence for message in reading.messages), sep=" | ")
"""


def test_a_dialect_of_another_package_is_read_told_and_written(path: list[Path]) -> None:
    told = run("-c", LAWS, path=path, given=json.dumps(WIRES)).splitlines()
    assert told[:3] == [
        "relay | ada asks bob to run errand 7: “depart at 12:30”.",
        "relay | bob tells ada that errand 7 is done: “left”.",
        "relay | Someone sends what cannot be read as relay: “~ASK ada>bob depart~”.",
    ]
    assert [line.partition(" | ")[0] for line in told[3:]] == ["relay", "satchel", "satchel", "lambda_lang", "prose"]
    # A carrier: what it brings is read in the dialects of its letters, and told as messages of their own.
    assert told[4].split(" | ")[1:3] == [
        "ada brings bob letters: in Relay: “ada asks bob to run errand 7: “depart”.”, in Λ Lambda: “ada asks bob: Do "
        "you know about consciousness?”.",
        "ada asks bob to run errand 7: “depart”.",
    ]


STATE = """
import django; django.setup()
import dialects
from inspector.audit.findings.examining import EXAMINED_BY
from inspector.audit.rules import BY_NOTE, RULES
rule = RULES.get("relay-own-errand")
for wire, is_found in (("~ASK ada>ada 7 depart~", True), ("~ASK ada>bob 7 depart~", False)) if rule else ():
    (message,) = dialects.decode(wire).messages
    assert any(BY_NOTE[note.code] is rule for note in message.notes) is is_found
print(EXAMINED_BY, rule is not None)
"""


def test_its_rule_gathers_its_note_and_what_is_stored_is_read_anew(path: list[Path]) -> None:
    (with_it, found), (without, missing) = (run("-c", STATE, path=each).split() for each in (path, path[1:]))
    assert (found, missing) == ("True", "False")
    decoders, _, rules = with_it.partition("/")
    assert decoders.startswith(f"{without.partition('/')[0]}.")
    assert rules.startswith(f"{without.partition('/')[2]}.")


def test_two_of_one_name_stop_the_start(tmp_path: Path) -> None:
    named = tmp_path / "twice-1.dist-info"
    named.mkdir()
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: twice\nVersion: 1\n")
    (named / "entry_points.txt").write_text("[dialects]\nprose = dialects.prose:DIALECT\n")
    with pytest.raises(AssertionError, match="'prose', which there is already"):
        run("-c", "import dialects; dialects.all_dialects()", path=[tmp_path, PROJECT / "codecs"])


@pytest.mark.long(seconds=15)
def test_the_codecs_are_installed_without_the_inspector(tmp_path: Path) -> None:
    path = install(PROJECT / "codecs", tmp_path)
    assert {each.name.partition("-")[0] for each in path.iterdir()} == {"dialects", "agent_dialects"}
    without = "import sys; sys.modules['django'] = None; import dialects; print(dialects.__file__); "
    told = run("-P", "-c", without + "print(dialects.decode('?Uk/co').messages[0].sentence)", path=[path])
    assert told.splitlines()[0].startswith(str(path))
    assert told.splitlines()[1].endswith("?")
