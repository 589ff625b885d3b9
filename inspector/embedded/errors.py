"""What can keep the embedded processes from running: each error's text is one sentence for the terminal."""

from pathlib import Path


class EmbeddedError(Exception):
    """The root of every error raised here; `str()` of it is what the terminal shows."""


class StateFolderError(EmbeddedError):
    """The state folder cannot be used: not ours, open to others, or not writable."""


class StateInUseError(EmbeddedError):
    """Another start holds the state folder."""

    def __init__(self, folder: Path, holder: str) -> None:
        self.folder = folder
        self.holder = holder
        super().__init__(
            f"Another inspector ({holder}) is running on {folder}: "
            "stop it, or set INSPECTOR_STATE_DIR to another folder."
        )


class PortTakenError(EmbeddedError):
    """Something else listens where the pages should be served."""

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        super().__init__(
            f"Port {port} on {host} is taken by another program: stop that one, or choose another port with "
            f"PORT={port + 1} make run (or make run ARGS='--port {port + 1}')."
        )


class PortForbiddenError(EmbeddedError):
    """The system does not let this user listen on the port."""


class NoPostgresError(EmbeddedError):
    """No PostgreSQL that can be used was found on this machine."""


class NoServerAccountError(EmbeddedError):
    """PostgreSQL refuses to run as root, and there is no account it could run as instead."""


class NoSpaceError(EmbeddedError):
    """The disk is full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(f"There is no space left on the disk that holds {folder}: free some and start again.")


class ProcessFailedError(EmbeddedError):
    """A process ended that should be running; the last lines it wrote are part of the text."""

    def __init__(self, name: str, status: int, log: Path, last_lines: str) -> None:
        self.name = name
        self.status = status
        self.log = log
        ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        shown = f" It last wrote:\n{last_lines}" if last_lines else " It wrote nothing."
        super().__init__(f"The process `{name}` {ended}; its log is {log}.{shown}")


class DatabaseError(EmbeddedError):
    """The database that the environment names cannot be used."""


class ClusterFailedError(EmbeddedError):
    """PostgreSQL could not be created, started or stopped."""
