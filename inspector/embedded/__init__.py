"""PostgreSQL from a wheel, and the processes of `make run`: started, watched and stopped without any service manager.

Only `first_steps` here imports Django, and nothing that serves imports this package: a deployment that brings its own
PostgreSQL and its own process manager never loads it.
"""


class EmbeddedError(Exception):
    """What keeps the embedded processes from running; `str()` of it is the sentence that the terminal shows."""


class NoPostgresError(EmbeddedError):
    """No PostgreSQL that can be used was found on this machine."""
