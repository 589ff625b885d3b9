"""Makes `.venv` and fills it from a lock file; the Makefile calls it with `base` or `dev`.

It runs before anything is installed: the standard library alone, and no syntax newer than Python 3.6, so that an old
Python can still say in one sentence that it is too old. It names no package index: pip's own configuration (mirrors,
certificates, proxies) holds. It is idempotent: a stamp in `.venv` says which lock file is installed there.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

OLDEST_PYTHON = (3, 11)
OTHER_PYTHONS = ("python3.13", "python3.12", "python3.11", "python3.14")
PLATFORMS = ("linux", "darwin")
PROJECT = Path(__file__).resolve().parent.parent.parent
# What each lock file takes on the disk, with room for pip's own work; measured with `du`, rounded up.
NEEDED_BYTES = {"base": 400 * 1024**2, "dev": 1000 * 1024**2}
OURS = "The environment beside this file was made by make; it may be emptied and made again.\n"
# An environment with the tests' packages holds everything that the product runs on.
INCLUDES = {"base": ("base",), "dev": ("base", "dev")}

# What pip or venv write when they fail, and what a person can do about it; the first row that matches is told.
FAILURES = (
    (
        r"No space left on device|Errno 28\b|Disk quota exceeded",
        "There is no space left on the disk that holds {venv}.",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "A downloaded package is not the one that {lock} names: it was damaged or replaced, and nothing was installed.",
    ),
    (r"CERTIFICATE_VERIFY_FAILED|SSLError", "The package index's certificate is not trusted: set pip's `cert` option."),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|Max retries exceeded",
        "The package index cannot be reached: check the network, or pip's configuration (`pip config list`).",
    ),
    (
        r"No matching distribution found for (?P<package>[\w.-]+)",
        "The package {package} has no wheel for Python {python} on this platform ({platform}): use Linux with glibc or "
        "macOS, on x86-64 or ARM64, or the containers of docker-compose.yml.",
    ),
    (r"Permission denied|Errno 13\b|Read-only file system", "The folder {venv} cannot be written by this user."),
)


class BootstrapError(Exception):
    """Something a person has to change first; the text is one sentence."""


def main(arguments: List[str]) -> int:
    """Prepare `.venv` for one lock file; the exit status is 1 with one sentence on stderr, 2 for wrong usage."""
    if len(arguments) != 1 or arguments[0] not in NEEDED_BYTES:
        print("usage: bootstrap.py base|dev", file=sys.stderr)
        return 2
    try:
        prepare_environment(arguments[0])
    except BootstrapError as reason:
        print(str(reason), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; the next start goes on from here.", file=sys.stderr)
        return 130
    return 0


def prepare_environment(name: str) -> None:
    """Create the environment if needed and install the lock file unless its stamp says that it is installed.

    Raises:
        BootstrapError: with what a person has to change.
    """
    if sys.platform not in PLATFORMS:  # PostgreSQL's programs and Unix sockets cannot be had there.
        raise BootstrapError(
            f"This platform ({sys.platform}) is not supported: use Linux or macOS (on Windows, WSL), or the containers "
            "of docker-compose.yml."
        )
    check_python(sys.version_info)
    if is_prepared(name):
        return
    venv, free_bytes = PROJECT / ".venv", shutil.disk_usage(str(PROJECT)).free
    if free_bytes < NEEDED_BYTES[name]:  # Better than to fail in the middle.
        needed, free = NEEDED_BYTES[name] // 1024**2, free_bytes // 1024**2
        raise BootstrapError(
            f"There is not enough space on the disk that holds {venv}: {needed} MB are needed and {free} MB are free."
        )
    with hold():
        if is_prepared(name):  # Another start did it while this one waited.
            return
        create_environment(venv)
        install(venv, PROJECT / "requirements" / (name + ".txt"))
        # Like an editable install: `python -m dialects` and `inspector` are found from anywhere.
        site = run_python("import sysconfig; print(sysconfig.get_path('purelib'))")
        Path(site, "agent_conversation_inspector.pth").write_text("{}\n{}\n".format(PROJECT, PROJECT / "codecs"))
        for included in INCLUDES[name]:
            (venv / f".installed-{included}.json").write_text(json.dumps(describe(included)))


def check_python(version: Sequence[Any]) -> None:
    """Go on under a newer Python of this machine, if this one is too old and there is one."""
    if tuple(version[:2]) >= OLDEST_PYTHON:
        return
    for name in OTHER_PYTHONS:
        found = shutil.which(name)
        # A version manager's shim exists for versions that are not selected: it is tried first.
        if found and subprocess.call([found, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0:
            sys.stdout.flush()
            os.execv(found, [found, __file__, *sys.argv[1:]])  # noqa: S606
    raise BootstrapError(
        "Python {}.{} or newer is needed, and this is {}.{}: ".format(*OLDEST_PYTHON, *version[:2])
        + "install one, or name one with `make PYTHON=/path/to/python3`."
    )


def create_environment(venv: Path) -> None:
    """Make the environment, or take the existing one if its Python runs and is new enough."""
    # It fails where the folder was moved, or the Python below it was removed: then it is made again.
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        if tuple(map(int, run_python("import sys; print(*sys.version_info[:2])").split())) >= OLDEST_PYTHON:
            return
    # The file that is locked says whether the environment was made here, even if it was never finished.
    if venv.exists() and (PROJECT / ".venv.lock").read_text() != OURS:
        raise BootstrapError(
            f"The environment {venv} cannot be used and was not made here: move it away and start again."
        )
    # Debian's Python lacks `ensurepip` until python3-venv is installed.
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise BootstrapError(
            "This Python cannot make virtual environments: install its venv module "
            "(Debian and Ubuntu: apt install python{}.{}-venv).".format(*sys.version_info[:2])
        )
    (PROJECT / ".venv.lock").write_text(OURS)
    print(f"Creating {venv} with Python {platform.python_version()}", flush=True)
    # `--clear` empties only what we made: the remains of a first attempt, or an environment that was moved.
    run([sys.executable, "-m", "venv", "--clear", str(venv)])


def install(venv: Path, lock: Path) -> None:
    """Install by hash, wheels only; on a screen pip shows what it fetches while that goes on."""
    total = len(re.findall(r"^[\w.-]+(?:\[[\w,-]+\])?==", lock.read_text(), re.MULTILINE))
    print(f"Installing up to {total} packages from {lock.relative_to(PROJECT)}", flush=True)
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--require-hashes", "--only-binary", ":all:", "-r", str(lock)]
    started = time.monotonic()
    run(command, lock.name)
    print(f"Installed in {time.monotonic() - started:.0f} seconds", flush=True)


def run(command: List[str], lock: str = "") -> None:
    """Run one of Python's own tools; what it writes goes to a screen, and its errors become a sentence.

    Raises:
        BootstrapError: when the tool fails.
    """
    done = subprocess.run(
        command,
        env=dict(os.environ, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0"),
        stdin=subprocess.DEVNULL,
        stdout=None if sys.stdout.isatty() else subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        check=False,
    )
    if done.returncode != 0:
        raise BootstrapError(explain((done.stdout or "") + done.stderr, lock))


def explain(output: str, lock: str = "") -> str:
    """The sentence for a failure's output; the last lines themselves where no row of the table matches."""
    for pattern, sentence in FAILURES:
        match = re.search(pattern, output)
        if match:
            return sentence.format(
                venv=PROJECT / ".venv",
                lock=lock,
                python=platform.python_version(),
                platform="{}, {}, {}".format(sys.platform, platform.machine(), platform.libc_ver()[0] or "no glibc"),
                **match.groupdict(),
            )
    last = "\n".join(output.splitlines()[-8:])
    return "The environment {} could not be made; the last lines were:\n{}".format(PROJECT / ".venv", last)


def is_prepared(name: str) -> bool:
    """Whether this lock file, as it is now, is installed in this place with the Python that is there now."""
    venv = PROJECT / ".venv"
    try:
        stamp = json.loads((venv / f".installed-{name}.json").read_text())
        return stamp == describe(name) and (venv / "bin" / "python").exists()
    except (OSError, ValueError):
        return False


def describe(name: str) -> Dict[str, str]:
    """What the stamp of a lock file says. The digest, not the date: a checkout changes dates at will."""
    return {
        "lock": hashlib.sha256((PROJECT / "requirements" / (name + ".txt")).read_bytes()).hexdigest(),
        "place": str(PROJECT),
        "python": os.path.realpath(str(PROJECT / ".venv" / "bin" / "python")),
    }


def run_python(code: str) -> str:
    """What a line of Python prints in the environment."""
    python = str(PROJECT / ".venv" / "bin" / "python")
    return subprocess.check_output([python, "-c", code], stderr=subprocess.DEVNULL).decode().strip()


@contextlib.contextmanager
def hold() -> Iterator[None]:
    """Let one start at a time work on the environment, by a file beside it: `--clear` empties what is in it."""
    try:
        file = (PROJECT / ".venv.lock").open("a")
    except OSError as refused:
        raise BootstrapError(explain(str(refused))) from refused
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
