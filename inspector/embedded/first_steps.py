"""What an installation needs before its first request: the schema, a workspace, a key for the samples, a sign-in link.

The only module here that imports Django. It runs as a process of its own, `python -m inspector.embedded.first_steps`,
tells what it does on stderr, and prints one line of JSON: {"workspace", "archived", "token", "link"}, or {"refused"}.
"""

import io
import json
import sys
from datetime import timedelta
from typing import NoReturn

import django
from django.core.management import call_command
from django.db import OperationalError, connection
from django.urls import reverse
from django.utils import timezone

from inspector.schema import count_behind, refuse_other_schema

from .binaries import OLDEST_MAJOR

KEY_LASTS = timedelta(hours=2)


def main() -> None:
    """Take the first steps; each is taken again without harm."""
    django.setup()
    # Models can be imported only from here on.
    from inspector.accounts import services

    check_database()
    # For all processes that come after: what is wrong is said once, and ends the start.
    call_command("check", stdout=io.StringIO(), stderr=sys.stderr)
    migrate()
    workspace, owner = services.ensure_first_workspace()
    _, token = services.create_api_key(
        workspace=workspace,
        name="make run",
        scopes=["ingest", "read"],
        expires_at=timezone.now() + KEY_LASTS,
        created_by=owner,
    )
    link = f"{reverse('pages:sign-in-link')}#{services.create_sign_in_link(user=owner)}"
    archived = "yes" if workspace.archived_at else ""
    print(json.dumps({"workspace": str(workspace.pk), "archived": archived, "token": token, "link": link}))


def check_database() -> None:
    """End with one sentence where the database cannot be used: the usual reason is DATABASE_URL."""
    try:
        connection.ensure_connection()
    except OperationalError as refused:
        refuse(f"The database cannot be reached, check DATABASE_URL: {' '.join(str(refused).split())}")
    version = connection.connection.info.server_version // 10_000
    if version < OLDEST_MAJOR:
        refuse(f"The database is PostgreSQL {version}, and {OLDEST_MAJOR} or newer is needed.")


def refuse(sentence: str) -> NoReturn:
    """End the start with a sentence instead of what an installation needs."""
    print(json.dumps({"refused": sentence}))
    sys.exit(1)


def migrate() -> None:
    """Bring the schema up to date, showing each step; nothing is shown where nothing is to be done."""
    # The role that asks may read every table, but for those that another owner has still to admit it to: a start that
    # was killed between migrating and admitting is gone on with so.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(has_table_privilege(oid, 'SELECT')) FROM pg_class"
            " WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace"
        )
        is_admitted = cursor.fetchone()[0]
    if is_admitted:
        refuse_other_schema()
        if count_behind() == 0:
            return
    call_command("migrate", interactive=False, stdout=sys.stderr)


if __name__ == "__main__":
    main()
