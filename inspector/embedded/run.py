"""`make run`: from an environment with the packages to pages in a browser, and back to nothing running.

The order is PostgreSQL, the first steps (schema, workspace, keys), the web server (pages, posting, front), the worker,
the samples; everything stops in the opposite order, the worker warm. The person at the terminal reads sentences, and
one line of progress that writes over itself.
"""

import argparse
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from . import EmbeddedError, processes, samples
from .cluster import Cluster, make_cluster
from .processes import ProcessFailedError, Supervisor
from .samples import Door, Progress
from .state import PROJECT, StateFolder, find_state_root, open_state, write_private

PLAIN_EVERY_S = 2.0


class Terminal:
    """Writes to stdout and stderr; a reader that went away (a closed pipe, a closed window) is no reason to stop."""

    def __init__(self) -> None:
        self._is_screen = sys.stdout.isatty()
        self._shown = ""
        self._shown_at = 0.0

    def say(self, text: str) -> None:
        """A line, or several."""
        self.end_progress()
        _write(sys.stdout, text + "\n")

    def complain(self, text: str) -> None:
        """A line on stderr."""
        self.end_progress()
        _write(sys.stderr, text + "\n")

    def show_progress(self, progress: Progress) -> None:
        """Where the work stands: on a screen at every change, in a file at most every two seconds."""
        text = (
            f"  received {progress['received']} · read {progress['read']} · "
            f"conversations processed {progress['settled']} of {progress['conversations']}"
        )
        now = time.monotonic()
        is_due = self._is_screen or progress["is_read"] or now - self._shown_at >= PLAIN_EVERY_S
        if is_due and text != self._shown:
            _write(sys.stdout, f"\r\x1b[K{text}" if self._is_screen else text + "\n")
            self._shown, self._shown_at = text, now

    def end_progress(self) -> None:
        """Leave the line of progress as it stands."""
        if self._shown and self._is_screen:
            _write(sys.stdout, "\n")
        self._shown = ""


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        # What is written there vanishes from now on.
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


HOST = "127.0.0.1"
DEFAULT_PORT = 8000
BACKLOG = 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything until Ctrl-C, or once. The exit status is 0, 1 with a sentence on stderr, or 2 for wrong usage."""
    options = read_options(arguments)
    terminal = Terminal()
    # SIGINT too: a shell script that starts this in the background has it ignored from birth.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return run(options, terminal)
    except EmbeddedError as reason:
        terminal.complain(str(reason))
        return 1
    except KeyboardInterrupt:
        terminal.say("Stopped.")
        return 0 if not options.once else 130


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="make run ARGS='…'", description="Start PostgreSQL, the web server and the worker, and show the samples."
    )
    parser.add_argument(
        "--port",
        type=read_port,
        default=os.environ.get("PORT") or str(DEFAULT_PORT),
        help=f"where the pages are served on {HOST} (default: PORT, else {DEFAULT_PORT}; 0 takes any free one)",
    )
    parser.add_argument("--once", action="store_true", help="prove that everything works, tell the result and end")
    parser.add_argument("--no-samples", action="store_true", help="start without the sample logs")
    parser.add_argument("--restore", metavar="FOLDER", help="first restore this backup, into a new state folder")
    parser.add_argument(
        "--secrets", metavar="FILE", help="with --restore: the secrets that were copied with the backup"
    )
    return parser.parse_args(arguments)


def read_port(text: str) -> int:
    """A port's number.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: name a number from 0 to 65535")
    return int(text)


def run(options: argparse.Namespace, terminal: Terminal) -> int:
    """Start everything, then serve or prove.

    Raises:
        EmbeddedError: with a sentence about what is in the way.
    """
    listener = open_listener(options.port)
    port = listener.getsockname()[1]
    state = open_state(find_state_root(), say=terminal.say)
    state.describe_holder(url=f"http://{HOST}:{port}/")
    cluster: Cluster | None = None
    try:
        with Supervisor(say=terminal.say, held=(state.lock,)) as supervisor:
            if not os.environ.get("DATABASE_URL"):
                cluster = make_cluster(state)
                terminal.say(f"Starting PostgreSQL {cluster.binaries.major} in {cluster.home}")
                cluster.start(supervisor)
                write_private(state.database_url, cluster.application_url)
            try:
                url = cluster.application_url if cluster else os.environ["DATABASE_URL"]
                # Only what migrates and restores works as the owner of the tables.
                owner = {"DATABASE_OWNER_URL": cluster.url} if cluster else {}
                return start_product(options, terminal, state, supervisor, listener, url, owner)
            finally:
                terminal.end_progress()
                # The front waits for the answers of what it handed on, so those who answer stop behind it.
                supervisor.stop(processes.WORKER, processes.FRONT)
                supervisor.stop(processes.WEB, processes.POSTING)
                if cluster is not None:
                    cluster.stop(supervisor)
                    state.database_url.unlink(missing_ok=True)
    finally:
        listener.close()
        state.release()


def start_product(
    options: argparse.Namespace,
    terminal: Terminal,
    state: StateFolder,
    supervisor: Supervisor,
    listener: socket.socket,
    database_url: str,
    owner: dict[str, str],
) -> int:
    """Start the product on a running database; `owner` is what the environment says of the role that owns it."""
    environment = processes.make_environment(state, database_url)
    if options.restore:
        restore(options, environment | owner)
    first = take_first_steps(state, environment | owner, terminal)
    host, port = listener.getsockname()
    door = Door(host=host, port=port, token=first["token"])
    terminal.say("Starting the web server and the worker")
    sockets = Path(tempfile.mkdtemp(prefix="inspector-"))  # A socket's path has at most a hundred letters.
    supervisor.throw_away(sockets)
    for program in processes.make_web(state, environment, listener, sockets):
        supervisor.start(program)
    supervisor.start(processes.make_worker(state, environment))
    if not supervisor.wait_until(door.is_open, seconds=60.0, needs=processes.WEB):
        raise EmbeddedError(f"The web server does not answer; its log is {state.logs / 'web.log'}.")

    if options.restore:  # Nothing is added to what was restored, now or at a later start.
        state.write_samples_loaded(first["workspace"], {})
    # An archived workspace refuses its keys.
    is_bare = options.no_samples or bool(options.restore) or bool(first["archived"])
    deliveries = {} if is_bare else load_samples(door, state, supervisor, terminal, first["workspace"])
    if options.once:
        terminal.say("\nThe proof:")
        is_proven = samples.prove(door, deliveries, supervisor, terminal.say)
        terminal.say("Everything works." if is_proven else "Something is wrong: see above.")
        return 0 if is_proven else 1
    terminal.say(f"\nOpen  http://{host}:{port}{first['link']}\n(this link signs you in once; Ctrl-C stops everything)")
    while True:  # Until Ctrl-C.
        supervisor.check()
        time.sleep(0.2)


def restore(options: argparse.Namespace, environment: dict[str, str]) -> None:
    """Restore a backup before the product starts, telling what is done.

    Raises:
        EmbeddedError: when it was refused; the command has said why.
    """
    secrets = [f"--secrets={Path(options.secrets).absolute()}"] if options.secrets else []
    command = [sys.executable, "manage.py", "restore", str(Path(options.restore).absolute()), *secrets]
    if subprocess.call(command, cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL) != 0:
        raise EmbeddedError("The backup was not restored, and nothing was started.")


def take_first_steps(state: StateFolder, environment: dict[str, str], terminal: Terminal) -> dict[str, str]:
    """Prepare the installation in a process of its own, and answer what it printed.

    Raises:
        EmbeddedError: with the sentence that it ended with.
        ProcessFailedError: with the last lines it wrote.
    """
    log = state.logs / "first-steps.log"
    command = [sys.executable, "-m", "inspector.embedded.first_steps"]
    with (
        log.open("w") as file,
        subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as steps,
    ):
        for line in steps.stderr or ():
            file.write(line)
            if line.lstrip().startswith("Applying"):
                terminal.say(line.rstrip())
        printed = steps.stdout.read() if steps.stdout else ""
    told: dict[str, str] = json.loads(printed or "{}")
    if "refused" in told:
        raise EmbeddedError(told["refused"])
    if steps.returncode != 0:
        raise ProcessFailedError("first steps", steps.returncode, log)
    return told


def load_samples(
    door: Door, state: StateFolder, supervisor: Supervisor, terminal: Terminal, workspace: str
) -> dict[str, str]:
    """Take the samples in, on the first start, and tell what is there; answers the delivery each file became."""
    known = state.read_samples_loaded(workspace)
    if known is not None:
        terminal.say(f"The data of the last start is here: {samples.describe_totals(door)}.")
        return known
    files = samples.list_files()
    terminal.say(f"\nTaking in {len(files)} sample logs through the API")
    deliveries = samples.load(door, files, terminal.say)
    done = samples.follow(door, deliveries.values(), supervisor, terminal.show_progress)
    terminal.end_progress()
    state.write_samples_loaded(workspace, deliveries)
    lines = samples.describe_conversation(door)
    if lines:
        terminal.say("\nOne of the conversations, in English:\n")
        for line in lines:
            terminal.say(f"  {line}")
    terminal.say(
        f"\n{done['received']} records received: {done['stored']} stored, {done['duplicate']} known already, "
        f"{done['quarantined']} kept aside because they are no text.\n{samples.describe_totals(door)}."
    )
    return deliveries


def open_listener(port: int) -> socket.socket:
    """Listen on the loopback interface.

    Raises:
        EmbeddedError: naming the port and how to choose another.
    """
    try:
        # Connections of a server that was just stopped do not hold the port; one that still listens does.
        return socket.create_server((HOST, port), backlog=BACKLOG)
    except OSError as refused:
        if refused.errno == errno.EADDRINUSE:
            raise EmbeddedError(
                f"Port {port} on {HOST} is taken by another program: stop that one, or choose another port with "
                f"PORT={port + 1} make run (or make run ARGS='--port {port + 1}')."
            ) from refused
        raise EmbeddedError(
            f"Port {port} on {HOST} cannot be opened ({os.strerror(refused.errno or 0)}): "
            "choose another with PORT=8000 make run."
        ) from refused


if __name__ == "__main__":
    sys.exit(main())
