"""What every gunicorn of the product shares: its settings are checked first, and its access log keeps no query.

gunicorn reads this by `--config=python:inspector.server`.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from gunicorn.glogging import Logger

from inspector.logs import ABOUT, about, hide_links

# `on_starting` reads the settings before the application's module could say which they are.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

# Nobody waits longer for a page, and a statement that nobody waits for any more ends. Workers have no such limit.
raw_env = [f"DATABASE_STATEMENT_SECONDS={os.environ.get('DATABASE_STATEMENT_SECONDS') or 60}"]
accesslog = "-"
# What was taken in is answered; whoever stops us kills us after ten.
graceful_timeout = 8
# What stands before (the front, a proxy) bounds a head, and adds some headers of its own to the hundred that it takes.
limit_request_line = 8190
limit_request_fields = 120
limit_request_field_size = 64 * 1024
# The path without its query, which may hold what somebody searched for, who asked, and of an API key its prefix.
access_log_format = (
    '%(h)s "%(m)s %(U)s" %(s)s %(b)s %(M)s ms, by %({inspector.actor}e)s, key %({inspector.key}e)s, "%(a)s"'
)

# Of a path, and of what a client calls itself, in a line of the log.
MAX_CHARACTERS = 2000


class AccessLogger(Logger):  # type: ignore[misc]  # its base has no types
    """Writes the path of a link that signs somebody in without the part that does."""

    def atoms(self, resp: Any, req: Any, environ: Any, request_time: Any) -> dict[str, Any]:
        """What a line of the access log is made of."""
        atoms: dict[str, Any] = super().atoms(resp, req, environ, request_time)
        atoms["U"] = hide_links(atoms["U"] or "")[:MAX_CHARACTERS]
        atoms["a"] = (atoms["a"] or "")[:MAX_CHARACTERS]
        return atoms

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """The line bears the ids of what the request was about."""
        with about(**environ.get(ABOUT, {})):
            super().access(resp, req, environ, request_time)


logger_class = AccessLogger


def on_starting(server: Any) -> None:
    """Read the settings, then the application, before any worker is there: they share the memory of what is read once.

    What refuses the start ends the server, with its sentence.
    """
    from django.conf import settings

    settings.SECRET_KEY  # noqa: B018  # the first look reads them all
    import django

    django.setup()
    # One form for every line of a process, with its time.
    for log in (server.log.error_log, server.log.access_log):
        for handler in log.handlers:
            handler.setFormatter(logging.getLogger().handlers[0].formatter)
    server.app.wsgi()
    from django.db import connection

    from inspector.schema import refuse_other_schema

    try:
        refuse_other_schema()
    finally:
        # No session is shared by the processes that are forked from this one.
        connection.close()
