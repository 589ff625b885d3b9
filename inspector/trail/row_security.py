"""Row-level security: within a request the database shows one workspace's rows, also to a query that forgets to ask.

The product's queries name their workspace, which is the first wall. This is the second: from where a request's
workspace is known it works as another role (`powers.name_within`), which policies hold to the workspace that the
session names. Workers, commands, and pages of no workspace work as the application's role, which bypasses policies.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest, HttpResponseBase
from psycopg import sql
from psycopg.pq import TransactionStatus

from .powers import LEAKPROOF, name_within, spell_powers
from .roles import give_rights

# Tables that decide who may enter which workspace: they are asked before it is known.
BEFORE_ENTRY: Final = frozenset(
    {"accounts_membership", "accounts_invitation", "accounts_channel", "accounts_apikey"},
)
# Tables without a workspace of their own: the column that leads to the row they belong to, and the table of that.
OF_ANOTHER: Final = {
    "intake_chunk": ("delivery_id", "intake_delivery"),
    "intake_scaffold": ("delivery_id", "intake_delivery"),
    "audit_commentturn": ("comment_id", "audit_comment"),
    "audit_rubric": ("queue_id", "audit_reviewqueue"),
    "exports_block": ("export_id", "exports_export"),
    "exports_piece": ("export_id", "exports_export"),
}
_VARIABLE: Final = "inspector.workspace"
_CURRENT: Final = f"(SELECT nullif(current_setting('{_VARIABLE}', TRUE), '')::uuid)"
# Equality of another name: no index is looked up by it, and the planner is told that it holds of nearly every row. Each
# query names its workspace besides; counted twice, that would make the planner expect a fraction of the rows.
_OPERATOR: Final = (
    "CREATE OPERATOR {schema}.=== (FUNCTION = pg_catalog.uuid_eq, LEFTARG = uuid, RIGHTARG = uuid, "
    "NEGATOR = OPERATOR({schema}.!==), RESTRICT = nlikesel, JOIN = nlikejoinsel); "
    "CREATE OPERATOR {schema}.!== (FUNCTION = pg_catalog.uuid_ne, LEFTARG = uuid, RIGHTARG = uuid, "
    "NEGATOR = OPERATOR({schema}.===), RESTRICT = likesel, JOIN = likejoinsel)"
)
_HOLDS: Final = "workspace_id OPERATOR({schema}.===) " + _CURRENT
_LACKING: Final = """
SELECT coalesce(bool_or(NOT mine.rolbypassrls AND NOT mine.rolsuper AND mine.rolname <> current_user), TRUE)
       OR NOT EXISTS (SELECT FROM pg_roles within WHERE within.rolname = %(within)s
                      AND pg_has_role(%(role)s, within.oid, 'MEMBER'))
       OR EXISTS (SELECT FROM pg_proc WHERE oid = ANY(%(functions)s::regprocedure[]) AND NOT proleakproof)
  FROM pg_roles mine WHERE mine.rolname = %(role)s
"""
_STANDS: Final = """
SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('threads_message') AND relrowsecurity)
       AND EXISTS (SELECT FROM pg_roles WHERE rolname = %(within)s AND pg_has_role(session_user, oid, 'MEMBER'))
"""
# What the connection's session stands in, which outlasts a request.
_STATE: Final = "inspector_workspace"
_workspace: ContextVar[uuid.UUID | None] = ContextVar("workspace", default=None)


def list_tables() -> dict[str, str]:
    """The tables that are held, and for each the condition of its policy."""
    own = {
        model._meta.db_table: _HOLDS
        for model in apps.get_models(include_auto_created=True)
        if any(field.column == "workspace_id" for field in model._meta.concrete_fields)
    }
    held = {table: condition for table, condition in own.items() if table not in BEFORE_ENTRY}
    for table, (column, parent) in OF_ANOTHER.items():
        held[table] = f"EXISTS (SELECT FROM {parent} whole WHERE whole.id = {table}.{column} AND whole.{_HOLDS})"
    return held


def raise_wall(role: str) -> bool:
    """As the owner of the tables: have policies on all of them where they can hold, and on none where not.

    Args:
        role: the application's.

    Returns:
        whether they hold now. They do not where the powers that they need are not there, and this role may not give
        them: `spell_powers` says which, and a superuser may.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relrowsecurity FROM pg_class WHERE relkind IN ('r', 'p') "
            "AND relnamespace = current_schema()::regnamespace AND pg_has_role(relowner, 'USAGE')"
        )
        is_held = dict(cursor.fetchall())
        if not is_held:
            return False  # The application itself, which finds nothing to migrate.
        cursor.execute("SELECT current_user, current_schema(), rolsuper FROM pg_roles WHERE rolname = current_user")
        owner, schema, is_super = cursor.fetchone()
        if is_super:
            for statement in spell_powers(role=role, owner=owner):
                cursor.execute(statement)
        names: dict[str, Any] = {
            "role": role,
            "within": name_within(role),
            "functions": [f"pg_catalog.{each}" for each in LEAKPROOF],
        }
        cursor.execute(_LACKING, names)
        can_hold = not cursor.fetchone()[0]
        cursor.execute("SELECT to_regoperator(%s) IS NULL", [f"{schema}.===(uuid,uuid)"])
        if cursor.fetchone()[0] and can_hold:
            cursor.execute(sql.SQL(_OPERATOR).format(schema=sql.Identifier(schema)))
    if can_hold:
        with transaction.atomic():
            give_rights(role=name_within(role), schema=schema)
    for table, condition in list_tables().items():
        if can_hold and not is_held.get(table, True):
            _run(
                f"DROP POLICY IF EXISTS within ON {table}",
                f"CREATE POLICY within ON {table} USING ({condition})",
                f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
                schema=schema,
            )
        elif not can_hold and is_held.get(table, False):
            _run(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY", f"DROP POLICY within ON {table}", schema=schema)
    return can_hold


def renew_policy(table: str) -> None:
    """As the owner, let a table that is held have the condition that it would be given now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema() FROM pg_class WHERE oid = to_regclass(%s) AND relrowsecurity", [table])
        for (schema,) in cursor.fetchall():
            made = f"CREATE POLICY within ON {table} USING ({list_tables()[table]})"
            _run(f"DROP POLICY IF EXISTS within ON {table}", made, schema=schema)


@transaction.atomic
def _run(*statements: str, schema: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(sql.SQL(statement).format(schema=sql.Identifier(schema)))


class RowSecurityMiddleware:
    """Begins each request with the workspace of the one before it left, unless its view enters one.

    A view says so by `enters_workspace`, its own or that of how it authenticates. So a process that answers the same
    workspace again says nothing to the database; until such a view has entered, it asks tables that are not held alone.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        return self._get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: Any) -> None:
        """Leave what the request before has entered."""
        _workspace.set(None)
        ways = (view, *getattr(getattr(view, "cls", None), "authentication_classes", ()))
        if not any(getattr(way, "enters_workspace", False) for way in ways):
            leave()


def enter_workspace(workspace_id: uuid.UUID) -> None:
    """From here on in this request the database shows the rows of that workspace, and takes rows for it, alone."""
    if _stands(connection.settings_dict["NAME"]):
        _workspace.set(workspace_id)
        _work_within(workspace_id)


def leave() -> None:
    """From here on be in no workspace."""
    _workspace.set(None)
    _work_within(None)


@contextmanager
def across(using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """For as long as this lasts, see all workspaces by this connection: for what is counted or made beyond that of the
    request, and for what is found by an index whose functions are not leakproof."""
    workspace_id = _workspace.get()
    if workspace_id is None:
        yield
        return
    held = connections[using]
    _work_within(None, held)
    _workspace.set(None)
    try:
        yield
    finally:
        _workspace.set(workspace_id)
        session = held.connection
        if session is not None and session.info.transaction_status == TransactionStatus.INERROR:
            # The transaction, when it is taken back, takes that back too.
            vars(held)[_STATE] = workspace_id
        elif session is not None:
            try:
                _work_within(workspace_id, held)
            except DatabaseError:
                held.close()  # A session that is made anew stands where the request does.
                raise


def begin_session(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """A session that is made anew in the midst of a request stands where the one before it stood."""
    vars(connection)[_STATE] = None
    stand_within(connection)


def stand_within(session: BaseDatabaseWrapper) -> None:
    """Let another connection, as to a replica, show what the request may see."""
    _work_within(_workspace.get(), session)


def _work_within(workspace_id: uuid.UUID | None, session: BaseDatabaseWrapper | None = None) -> None:
    session = session or connections[DEFAULT_DB_ALIAS]
    if vars(session).get(_STATE) == workspace_id:
        return
    role = "none" if workspace_id is None else name_within(session.settings_dict["USER"])
    session.ensure_connection()
    # Of the session and not of a page: it is in no count of what a page asks, which is the same for each of its kind.
    with session.wrap_database_errors:
        session.connection.execute(
            "SELECT set_config('role', %s, FALSE), set_config(%s, %s, FALSE)",
            [role, _VARIABLE, str(workspace_id or "")],
        )
    vars(session)[_STATE] = workspace_id


@cache
def _stands(name: str) -> bool:
    """Whether the policies of this database hold, as far as this process knows: asked once.

    Not through a pooler, which would carry the workspace of one request into another.
    """
    if "direct" in settings.DATABASES:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_STANDS, {"within": name_within(connection.settings_dict["USER"])})
        return bool(cursor.fetchone()[0])


def tell_wall() -> str:
    """A sentence: whether row-level security holds requests to their workspace, and what to do where it does not."""
    if "direct" in settings.DATABASES:
        return "Row-level security does not hold requests, which share sessions through a pooler."
    _stands.cache_clear()
    if _stands(connection.settings_dict["NAME"]):
        return "Row-level security holds each request to its workspace."
    role, owner = connection.settings_dict["USER"], (settings.DATABASE_OWNER or connection.settings_dict)["USER"]
    connection.ensure_connection()
    powers = "; ".join(power.as_string(connection.connection) for power in spell_powers(role=role, owner=owner))
    return (
        "Row-level security does not hold requests: the product's queries alone keep workspaces apart. To have it too, "
        f"say this as a superuser in this database, then run manage.py migrate and start again: {powers};"
    )
