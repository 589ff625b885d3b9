"""Starting the test server as root and as a normal user, and counting what is left of it."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
FOR_ALL = os.pathsep.join([str(PROJECT), sysconfig.get_path("purelib")])
AS_NOBODY = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}


@dataclass
class Served:
    """A test server that runs: its own process, and what it told."""

    process: subprocess.Popen[str]
    url: str
    pid: int
    watchdog: int

    def ask(self, word: str) -> dict[str, object]:
        """Send a line, read the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self) -> tuple[int, str]:
        """End it in the orderly way: its exit status and what it wrote on stderr."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture
def private_folder() -> Iterator[Path]:
    """A short path that every user can walk to: pytest's own are closed to others, and long."""
    parent = Path(tempfile.mkdtemp(prefix="it-", dir="/tmp"))
    parent.chmod(0o711)
    folder = parent / "s"
    yield folder
    shutil.rmtree(parent)


@pytest.fixture(params=["as we are", "as a normal user"])
def user(request: pytest.FixtureRequest, private_folder: Path) -> dict[str, object]:
    """What `subprocess` needs to run the test server: as the user of the tests and, if that is root, as nobody too."""
    here = {**os.environ, "PYTHONPATH": str(PROJECT)}
    if request.param == "as we are":
        return {"python": sys.executable, "env": here}
    if os.geteuid() != 0:
        pytest.skip("the tests already run as a normal user")
    python = find_python_for_all("import psycopg, inspector", "/usr/bin/python{}.{}".format(*sys.version_info[:2]))
    if python is None:
        pytest.skip("no Python on this machine can be run by `nobody`, or `nobody` cannot reach the project")
    private_folder.mkdir(mode=0o700)
    os.chown(private_folder, pwd.getpwnam("nobody").pw_uid, -1)
    return {"python": python, "env": {**here, "PYTHONPATH": FOR_ALL, "HOME": "/"}, **AS_NOBODY}


@pytest.fixture
def serve(user: dict[str, object], private_folder: Path) -> Iterator[Callable[..., Served]]:
    """Start the test server in a folder, the private one unless another is named."""
    started: list[subprocess.Popen[str]] = []

    def start(folder: Path = private_folder) -> Served:
        process = launch(user, folder)
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the server did not start: {process.communicate()[1]}"
        return Served(process=process, **json.loads(line))

    yield start
    for process in started:
        if process.poll() is None:
            process.communicate(timeout=60)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def launch(user: dict[str, object], folder: Path) -> subprocess.Popen[str]:
    """The test server's process; whoever starts it reads what it says."""
    options = dict(user)
    python = str(options.pop("python"))
    return subprocess.Popen(
        [python, "-m", "tests.inspector.embedded.server", str(folder)],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def find_processes(folder: Path) -> list[str]:
    """The command lines of the living processes that were started on something in this folder."""
    told = subprocess.run(["ps", "-eww", "-o", "stat=,command="], capture_output=True, text=True, check=True).stdout
    return [line for line in told.splitlines() if str(folder) in line and not line.startswith("Z")]


def find_python_for_all(code: str, *others: str) -> str | None:
    """A Python, ours or one of the others, that `nobody` may run and that runs this code to its end."""
    for python in (os.path.realpath(sys.executable), *others):
        # Through a shell, which gives up root's rights before it looks for the program.
        tried = subprocess.run(
            ["/bin/sh", "-c", '"$1" -c "$2"', "sh", python, code],
            env={"PYTHONPATH": FOR_ALL},
            cwd="/",
            capture_output=True,
            check=False,
            **AS_NOBODY,
        )
        if tried.returncode == 0:
            return python
    return None
