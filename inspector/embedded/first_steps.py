"""What an installation needs before its first request: the schema, a workspace, a key for the samples, a sign-in link.

The only module here that imports Django. It runs as a process of its own, `python -m inspector.embedded.first_steps`,
tells what it does on stderr, and prints one line of JSON: {"workspace", "token", "link"}.
"""

import json
import sys
from datetime import timedelta

import django
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse
from django.utils import timezone

KEY_NAME = "make run"
KEY_LASTS = timedelta(hours=2)


def main() -> None:
    """Take the first steps; each is taken again without harm."""
    django.setup()
    # Models can be imported only from here on.
    from inspector.accounts import services

    migrate()
    workspace, owner = services.ensure_first_workspace()
    _, token = services.create_api_key(
        workspace=workspace,
        name=KEY_NAME,
        scopes=["ingest", "read"],
        expires_at=timezone.now() + KEY_LASTS,
        created_by=owner,
    )
    link = reverse("pages:sign-in-link", args=[services.create_sign_in_link(user=owner)])
    print(json.dumps({"workspace": str(workspace.pk), "token": token, "link": link}))


def migrate() -> None:
    """Bring the schema up to date, showing each step; nothing is shown where nothing is to be done."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, stdout=sys.stderr)


if __name__ == "__main__":
    main()
