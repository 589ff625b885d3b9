"""The bill of materials: what is locked and what is served, with hashes, the same each time, and of a valid form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / ".ci" / "sbom"


@pytest.fixture(scope="module")
def text() -> str:
    return build()


def build() -> str:
    spec = spec_from_loader("sbom", SourceFileLoader("sbom", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    made: str = module.build()
    return made


def list_hashes(component: dict[str, Any]) -> set[str]:
    around = [component, *component.get("externalReferences", [])]
    return {each["content"] for holder in around for each in holder.get("hashes", [])}


def test_each_locked_package_is_in_it_with_version_and_hashes(text: str) -> None:
    lock = (ROOT / "requirements" / "base.txt").read_text()
    locked = {
        (name, version): set(re.findall(r"sha256:([0-9a-f]{64})", rest))
        for name, version, rest in re.findall(r"(?m)^([\w.-]+)(?:\[[\w,]+\])?==(\S+)((?:.*\\\n)+.*)$", lock)
    }
    listed = {
        (each["name"], each["version"]): list_hashes(each)
        for each in json.loads(text)["components"]
        if each["purl"].startswith("pkg:pypi/")
    }
    assert listed == locked
    assert len(locked) == len(re.findall(r"(?m)^[a-z]", lock)) > 50
    assert all(locked.values())


def test_each_vendored_file_is_in_it_with_its_hash(text: str) -> None:
    table = (ROOT / "static" / "vendor" / "VENDOR.txt").read_text()
    vendored = [each for each in json.loads(text)["components"] if each["purl"].startswith("pkg:npm/")]
    folders = [path.name for path in (ROOT / "static" / "vendor").iterdir() if path.is_dir()]
    assert len(vendored) == len(folders)
    assert set().union(*map(list_hashes, vendored)) == set(re.findall(r"[0-9a-f]{64}", table)) != set()


def test_it_comes_out_the_same_each_time(text: str) -> None:
    assert build() == text
    assert str(ROOT) not in text


@pytest.mark.long(seconds=40)
def test_the_command_writes_what_is_valid_and_nothing_else(text: str, tmp_path: Path) -> None:
    path, validator = tmp_path / "dist" / "sbom.json", JsonStrictValidator(SchemaVersion.V1_6)
    done = subprocess.run([sys.executable, SCRIPT, path], check=True, capture_output=True, text=True)
    assert done.stdout == f"sbom: {text.count('bom-ref') - 1} components in {path}\n"
    assert path.read_text() == text
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"purl"', '"puzzle"', 1)) is not None
