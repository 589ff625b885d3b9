"""From a clone to an environment: every obstacle is one clear sentence, and nothing is done twice."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.embedded import bootstrap
from tests.each import for_each

PROJECT = Path(__file__).resolve().parents[3]
BOOTSTRAP = PROJECT / "inspector" / "embedded" / "bootstrap.py"
PACKAGE = "no-such-package-of-the-inspector"
# What makes an environment takes seconds.
makes_one = pytest.mark.long(seconds=6, waits=True)


def make_project(folder: Path) -> Path:
    """A project with the bootstrap script and lock files that lock nothing, which pip installs at once."""
    (folder / "inspector" / "embedded").mkdir(parents=True)
    shutil.copy(BOOTSTRAP, folder / "inspector" / "embedded")
    (folder / "requirements").mkdir()
    for name in ("base", "dev"):
        (folder / "requirements" / f"{name}.txt").write_text("")
    shutil.copy(PROJECT / "Makefile", folder)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without an environment."""
    return make_project(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A project whose environment was made by the script, from nothing, and what that told."""
    folder = make_project(tmp_path_factory.mktemp("made"))
    return folder, run_bootstrap(folder)


@pytest.fixture
def equipped(project: Path, made: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    """A project with a copy of that environment, in which nothing counts as installed yet."""
    for name in (".venv", ".venv.lock"):
        subprocess.run(["cp", "-a", made[0] / name, project], check=True)
    for stamp in (project / ".venv").glob(".installed-*"):
        stamp.unlink()
    return project


def run_bootstrap(project: Path, name: str = "base", **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(project / "inspector" / "embedded" / "bootstrap.py"), name],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )


@makes_one
def test_it_is_made_once_and_again_only_when_the_lock_file_changes(
    made: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    project, first = made
    assert first.returncode == 0, first.stderr
    assert "Creating" in first.stdout
    assert (project / ".venv" / "bin" / "python").exists()
    assert run_bootstrap(project).stdout == ""
    lock = project / "requirements" / "base.txt"
    os.utime(lock)
    assert run_bootstrap(project).stdout == "", "a newer date is not another lock file"
    lock.write_text("# changed\n")
    assert "Installing" in run_bootstrap(project).stdout


@makes_one
def test_what_the_tests_need_holds_what_the_product_needs(equipped: Path) -> None:
    assert run_bootstrap(equipped, "dev").returncode == 0
    assert run_bootstrap(equipped, "base").stdout == ""


@makes_one
def test_the_codecs_are_found_from_anywhere(equipped: Path) -> None:
    (equipped / "codecs").mkdir()
    (equipped / "codecs" / "found.py").write_text("print('here')\n")
    assert run_bootstrap(equipped).returncode == 0
    told = subprocess.run(
        [equipped / ".venv/bin/python", "-m", "found"], cwd="/", capture_output=True, text=True, check=True
    )
    assert told.stdout == "here\n"


@makes_one
def test_an_environment_that_was_moved_is_made_anew(equipped: Path) -> None:
    assert run_bootstrap(equipped).returncode == 0
    (equipped / ".venv" / "bin" / "python").unlink()
    again = run_bootstrap(equipped)
    assert again.returncode == 0, again.stderr
    assert "Creating" in again.stdout


@makes_one
def test_an_environment_of_somebody_else_is_never_emptied(project: Path) -> None:
    (project / ".venv").mkdir()
    (project / ".venv" / "precious").write_text("theirs")
    told = run_bootstrap(project)
    assert told.returncode == 1
    assert re.fullmatch(
        r"The environment \S+ cannot be used and was not made here: move it away and start again\.\n", told.stderr
    )
    assert (project / ".venv" / "precious").read_text() == "theirs"


@makes_one
def test_a_working_environment_of_somebody_else_is_used(equipped: Path) -> None:
    (equipped / ".venv.lock").unlink()
    told = run_bootstrap(equipped)
    assert told.returncode == 0, told.stderr
    assert "Creating" not in told.stdout


@makes_one
def test_a_package_without_a_wheel_here_is_named_and_no_index_is_asked_but_pips_own(
    equipped: Path, tmp_path: Path
) -> None:
    (equipped / "requirements" / "base.txt").write_text(f"{PACKAGE}==1.0 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "wheels").mkdir()
    told = run_bootstrap(equipped, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path / "wheels"))
    assert told.returncode == 1
    assert told.stderr.startswith(f"The package {PACKAGE} has no wheel for Python ")
    assert told.stderr.count("\n") == 1
    assert not list((equipped / ".venv").glob(".installed-*")), "a failed installation leaves no stamp"


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, project: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[object, str, object], str]:
    """The one sentence by which nothing is begun, where something of the machine is otherwise."""
    monkeypatch.setattr(bootstrap, "PROJECT", project)

    def try_with(thing: object, name: str, value: object) -> str:
        monkeypatch.setattr(thing, name, value)
        assert bootstrap.main(["base"]) == 1
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert not (project / ".venv").exists()
        return told

    return try_with


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_a_missing_venv_module_is_one_sentence(refused: Callable[..., str], missing: str) -> None:
    told = refused(bootstrap.importlib.util, "find_spec", lambda name: None if name == missing else name)
    assert told.startswith("This Python cannot make virtual environments: install its venv module")
    assert "apt install python3." in told


def test_too_little_space_is_one_sentence(refused: Callable[..., str]) -> None:
    told = refused(bootstrap.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 5 * 1024**2))
    assert re.fullmatch(
        r"There is not enough space on the disk that holds \S+: \d+ MB are needed and 5 MB are free\.\n", told
    )


def test_another_platform_is_one_sentence(refused: Callable[..., str]) -> None:
    told = refused(bootstrap.sys, "platform", "win32")
    assert told.startswith("This platform (win32) is not supported: use Linux or macOS")


def test_a_python_that_is_too_old_goes_on_under_a_newer_one_or_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        bootstrap.BootstrapError, match=r"^Python 3\.11 or newer is needed, and this is 3\.9: .*PYTHON="
    ):
        bootstrap.check_python((3, 9, 1))
    broken = tmp_path / "python3.13"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    newer = tmp_path / "python3.12"
    newer.write_text("#!/bin/sh\nexit 0\n")
    newer.chmod(0o755)
    started: list[str] = []
    monkeypatch.setattr(bootstrap.os, "execv", lambda path, _: started.append(path))
    with pytest.raises(bootstrap.BootstrapError):
        bootstrap.check_python((3, 9, 1))  # execv does not come back; here it does
    assert started == [str(newer)]


def test_the_script_is_readable_for_an_old_python() -> None:
    import ast

    ast.parse(BOOTSTRAP.read_text(), feature_version=(3, 6))


@for_each(
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "There is no space left",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "A downloaded package is not the one",
        ),
        (
            "WARNING: Retrying after 'NewConnectionError(...)'\nERROR: No matching distribution found for x==1",
            "The package index cannot be reached",
        ),
        (
            "ERROR: SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')) Max retries exceeded",
            "The package index's certificate",
        ),
        ("ERROR: No matching distribution found for a-b.c==1", "The package a-b.c has no wheel for Python"),
        ("PermissionError: [Errno 13] Permission denied: '/x/.venv'", "The folder /x/.venv cannot be written"),
    ]
)
def test_what_pip_says_is_told_in_one_sentence(output: str, sentence: str) -> None:
    told = bootstrap.explain(output, "base.txt").replace(str(PROJECT), "/x")
    assert told.startswith(sentence)
    assert told.endswith(".")
    assert "\n" not in told


def test_what_nobody_foresaw_is_shown_as_it_is() -> None:
    assert bootstrap.explain("one\ntwo").endswith("the last lines were:\none\ntwo")


@makes_one
def test_a_folder_that_cannot_be_written_is_one_sentence(project: Path) -> None:
    if os.geteuid() == 0:
        (project / ".venv.lock").mkdir()  # Root may write anywhere: only this stops it.
        assert run_bootstrap(project).returncode == 1
        return
    project.chmod(0o500)
    told = run_bootstrap(project)
    assert told.returncode == 1
    assert "cannot be written by this user" in told.stderr


def test_make_without_python_says_what_to_install(project: Path) -> None:
    told = subprocess.run(
        ["make", "venv", "PYTHON=no-such-python"], cwd=project, capture_output=True, text=True, check=False
    )
    assert told.returncode != 0
    assert told.stderr.startswith("Python is missing: install Python 3.11 or newer")


def test_make_help_lists_every_target_that_people_use(project: Path) -> None:
    told = subprocess.run(
        ["make", "--no-print-directory"], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    for target in ("help", "run", "test", "lint", "format", "lock", "clean"):
        assert re.search(rf"^  make {target} +\S", told, re.MULTILINE), target


def test_clean_keeps_the_data_and_what_it_did_not_make(project: Path) -> None:
    (project / ".state").mkdir()
    (project / ".venv").mkdir()
    (project / "build").mkdir()
    subprocess.run(["make", "clean"], cwd=project, capture_output=True, check=True)
    assert (project / ".state").exists()
    assert (project / ".venv").exists(), "an environment that was not made here is not removed"
    assert not (project / "build").exists()


def test_the_lock_files_agree_and_name_no_address() -> None:
    pins = {}
    for name in ("base", "dev"):
        text = (PROJECT / "requirements" / f"{name}.txt").read_text()
        assert "://" not in text
        assert "--index" not in text
        assert "--find-links" not in text
        pins[name] = dict(re.findall(r"^([\w.-]+(?:\[[\w,-]+\])?)==([^\s;]+)", text, re.MULTILINE))
    assert pins["base"].items() <= pins["dev"].items(), "the tests run with other versions than the product"


@makes_one
def test_the_stamp_names_the_lock_file_the_place_and_the_python(equipped: Path) -> None:
    assert run_bootstrap(equipped).returncode == 0
    stamp = json.loads((equipped / ".venv" / ".installed-base.json").read_text())
    assert stamp["place"] == str(equipped)
    assert set(stamp) == {"lock", "place", "python"}
