"""The second wall: within a request the database shows one workspace, also to a query that forgets its filter."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
    transaction,
)
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import Membership, Role, Workspace
from inspector.accounts.services import create_api_key, note_account, note_failed_sign_in, set_active
from inspector.api.endpoints import Endpoint, operation
from inspector.intake.models import Record, Scaffold
from inspector.keyring.models import PeriodKey
from inspector.keyring.periods import ensure_kek
from inspector.pages.shell import within_workspace
from inspector.search import selectors
from inspector.threads.models import Message, MessageQuerySet
from inspector.trail import row_security
from inspector.trail.models import Deed
from inspector.trail.powers import name_within
from inspector.trail.row_security import (
    BEFORE_ENTRY,
    OF_ANOTHER,
    across,
    enter_workspace,
    leave,
    list_tables,
    raise_wall,
    tell_wall,
)
from inspector.trail.services import record_deed

from ..conftest import Cast, deliver, resolve_all

LINE = b'{"from":"a","to":["b"],"p":"REQ","mid":"own","cid":"c1","body":{"t":"task"}}'
# Tables that belong to no workspace: people, sessions, what Django and its apps keep, and the ledger's own key.
OF_NONE = {
    *("auth_permission", "auth_group_permissions", "auth_group", "django_content_type", "django_session"),
    *("axes_accessfailurelog", "axes_accessattempt", "axes_accessattemptexpiration", "axes_accesslog"),
    *("account_emailaddress", "account_emailconfirmation", "mfa_authenticator"),
    *("socialaccount_socialapp", "socialaccount_socialaccount", "socialaccount_socialtoken"),
    *("accounts_user", "accounts_user_groups", "accounts_user_user_permissions", "accounts_session"),
    *("accounts_signinpace", "accounts_signinlink", "accounts_workspace", "accounts_apikeyreads"),
    "ledger_ledgerkey",
}


def show() -> str:
    """What a query finds that forgot to say whose messages it wants."""
    return " ".join(Message.objects.order_by("native_id").values_list("native_id", flat=True))


@within_workspace("GET")
def forgetful_page(request: HttpRequest, membership: Membership) -> HttpResponse:
    return HttpResponse(show())


def page_of_all(request: HttpRequest) -> HttpResponse:
    return HttpResponse(show())


class ForgetfulEndpoint(Endpoint):
    @operation({200: None})
    def show_found(self, request: Request) -> Response:
        return Response({"found": show()})


urlpatterns = [
    path("w/<slug:slug>/forgetful/", forgetful_page),
    path("of-all/", page_of_all),
    path("api/v1/forgetful", ForgetfulEndpoint.as_view({"get": "show_found"})),
    path("", include("inspector.urls")),
]
OTHER = "foreign"


@pytest.fixture
def two(cast: Cast) -> Cast:
    """A message in each of the two workspaces."""
    deliver(cast, LINE)
    other = cast.stranger.workspace
    other_cast = Cast(other, cast.stranger, cast.stranger, cast.stranger, cast.owner)
    deliver(other_cast, LINE.replace(b"own", OTHER.encode()))
    resolve_all()
    return cast


@pytest.fixture
def no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the database has no policies."""
    monkeypatch.setattr(row_security, "_stands", lambda name: False)


def test_each_table_is_held_or_of_no_workspace() -> None:
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    held = set(list_tables())
    assert not held & (BEFORE_ENTRY | OF_NONE)
    assert tables == held | BEFORE_ENTRY | OF_NONE
    assert set(OF_ANOTHER) <= held


def test_the_database_holds_each_of_them(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class JOIN pg_policy ON polrelid = pg_class.oid WHERE relrowsecurity")
        assert {name for (name,) in cursor.fetchall()} == set(list_tables())
    assert tell_wall() == "Row-level security holds each request to its workspace."


@pytest.mark.urls(__name__)
def test_a_page_that_forgets_its_filter_shows_its_own_alone(two: Cast, sign_in: Callable[[Membership], Client]) -> None:
    answer = sign_in(two.owner).get(f"/w/{two.workspace.slug}/forgetful/")
    assert answer.content == b"own"


@pytest.mark.urls(__name__)
@pytest.mark.usefixtures("no_wall")
def test_without_the_wall_it_would_show_all(two: Cast, sign_in: Callable[[Membership], Client]) -> None:
    answer = sign_in(two.owner).get(f"/w/{two.workspace.slug}/forgetful/")
    assert answer.content == b"foreign own"


@pytest.mark.urls(__name__)
def test_an_endpoint_that_forgets_its_filter_shows_its_own_alone(two: Cast, client: Client) -> None:
    _, token = create_api_key(workspace=two.workspace, name="reader", scopes=["read"])
    answer = client.get("/api/v1/forgetful", headers={"authorization": f"Bearer {token}"})
    assert answer.json() == {"found": "own"}


@pytest.mark.urls(__name__)
def test_a_page_of_no_workspace_is_not_held_by_the_request_before_it(
    two: Cast, sign_in: Callable[[Membership], Client]
) -> None:
    # As in a process that serves: the session stands where the request before it stood.
    enter_workspace(two.workspace.pk)
    assert show() == "own"
    assert sign_in(two.owner).get("/of-all/").content == b"foreign own"


@pytest.fixture
def within(two: Cast) -> Iterator[Cast]:
    """In the first workspace, as a request is."""
    enter_workspace(two.workspace.pk)
    yield two
    leave()


def test_nothing_of_another_is_read_changed_or_deleted(within: Cast) -> None:
    other = within.stranger.workspace_id
    assert set(Record.objects.values_list("workspace_id", flat=True)) == {within.workspace.pk}
    assert Scaffold.objects.count() == Scaffold.objects.filter(delivery__workspace=within.workspace).count()
    assert not Message.objects.filter(workspace_id=other).update(english="changed")
    assert not Message.objects.filter(workspace_id=other).delete()[0]
    with across():
        assert Message.objects.filter(workspace_id=other).exclude(english="changed").count() == 1


def test_nothing_is_written_into_another(within: Cast) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
        record_deed("workspace.made", workspace_id=within.stranger.workspace_id)


@pytest.mark.parametrize("table", sorted(OF_ANOTHER))
def test_what_belongs_to_a_row_of_another_is_not_seen(within: Cast, table: str) -> None:
    """Each condition is valid and false of a row that leads nowhere; which rows there are, the test before tells."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        seen = cursor.fetchone()[0]
        column, whole = OF_ANOTHER[table]
        with across():
            cursor.execute(
                f"SELECT count(*) FROM {table} JOIN {whole} whole ON whole.id = {column} WHERE workspace_id = %s",
                [within.workspace.pk],
            )
            assert cursor.fetchone()[0] == seen


def test_what_happens_to_a_person_is_recorded_in_each_workspace_of_theirs(within: Cast) -> None:
    person = within.viewer.user
    Membership.objects.create(workspace=within.stranger.workspace, user=person, role=Role.VIEWER)
    note_account(user=person, code="account.sessions-ended")
    note_failed_sign_in(name=person.username)
    set_active(user=person, is_active=False)
    with across():
        found = Deed.objects.filter(workspace=within.stranger.workspace).order_by("-sequence")[:3]
        assert [deed.code for deed in found] == ["member.deactivated", "account.refused", "account.sessions-ended"]


def test_what_another_workspace_sealed_keeps_the_key_of_all_from_being_made_anew(
    within: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr("inspector.keyring.periods.make_kek", lambda: made.append("made"))
    monkeypatch.setattr("inspector.keyring.periods.load_keks", lambda: ["the key"])
    ensure_kek()
    with across():
        PeriodKey.objects.create(workspace=within.stranger.workspace, period="2026-11", kek_id="k", data_key=b"x")
    ensure_kek()
    assert made == ["made"]


def test_no_workspace_that_a_session_may_name_shows_another(within: Cast) -> None:
    """What a session names, it may name; a role that policies hold and that names none sees nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('inspector.workspace', '', FALSE)")
        assert not Message.objects.exists()
        cursor.execute("SELECT set_config('inspector.workspace', %s, FALSE)", [str(uuid.uuid4())])
        assert not Message.objects.exists()


def test_a_session_that_is_made_anew_stands_where_the_one_before_it_stood(within: Cast) -> None:
    row_security.begin_session(connections[DEFAULT_DB_ALIAS])
    assert show() == "own"


def test_each_thread_has_a_session_of_its_own_to_be_held(within: Cast) -> None:
    """What one has said to its session, another has not."""
    found: list[str] = []

    def ask() -> None:
        try:
            enter_workspace(within.workspace.pk)
            with connection.cursor() as cursor:
                cursor.execute("SELECT current_user, current_setting('inspector.workspace')")
                found.extend(cursor.fetchone())
        finally:
            connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [name_within(connection.settings_dict["USER"]), str(within.workspace.pk)]


def test_what_is_done_across_workspaces_may_hold_more_of_the_kind(within: Cast) -> None:
    with across():
        with across():
            assert show() == "foreign own"
        assert show() == "foreign own"
    assert show() == "own"


def test_of_a_search_that_forgets_its_filter_the_index_finds_more_than_is_shown(
    within: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are looked for without policies, which PostgreSQL would not use the index for spans beside; rows are not."""
    found: list[uuid.UUID] = []

    def forget(workspace: Workspace, query: str, *, may_see_secrets: bool) -> MessageQuerySet:
        return Message.objects.filter(performative="request")

    def by_index(rows: Iterable[Any], patience_ms: int, *, walks: bool = True) -> list[Any] | None:
        if walks:
            return None
        found.extend(rows)
        return found

    monkeypatch.setattr(selectors, "_select", forget)
    monkeypatch.setattr(selectors, "fetch", by_index)
    later = timezone.now() + timedelta(days=1), uuid.UUID(int=2**128 - 1)
    (shown,) = selectors.search(workspace=within.workspace, query="task", before=later).rows
    assert shown.native_id == "own"
    with across():
        assert set(Message.objects.filter(pk__in=found).values_list("native_id", flat=True)) == {"own", OTHER}
    assert set(Message.objects.values_list("native_id", flat=True)) == {"own"}


def test_what_fails_across_workspaces_leaves_the_wall_standing(within: Cast) -> None:
    with pytest.raises(IntegrityError), transaction.atomic(), across(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO accounts_channel (id) VALUES (gen_random_uuid())")
    assert show() == "own"


def test_a_session_that_finds_no_way_back_is_closed(within: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    def cancel(*given: object) -> None:
        raise OperationalError("canceling statement due to statement timeout")

    def go_across() -> None:
        with monkeypatch.context() as patch, across():
            patch.setattr(row_security, "_work_within", cancel)
            patch.setattr(connection, "close", lambda: closed.append(True))

    with pytest.raises(OperationalError):
        go_across()
    assert closed == [True]
    enter_workspace(within.workspace.pk)
    assert show() == "own"


def test_a_pooler_shares_sessions_and_so_there_is_no_wall(two: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES, "direct", {})
    row_security._stands.cache_clear()
    try:
        enter_workspace(two.workspace.pk)
        assert show() == "foreign own"
        assert "pooler" in tell_wall()
    finally:
        row_security._stands.cache_clear()


def test_where_the_role_may_not_bypass_policies_there_are_none_and_the_way_is_told(two: Cast) -> None:
    """The application's role of a server whose superuser has given nothing: fail-closed would be an empty product."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("CREATE ROLE powerless_of_a_test")
        assert not raise_wall("powerless_of_a_test")
        cursor.execute("SELECT count(*) FROM pg_class WHERE relrowsecurity")
        assert cursor.fetchone() == (0,)
    told = tell_wall()
    row_security._stands.cache_clear()
    assert "keep workspaces apart" in told
    assert "LEAKPROOF" in told
    assert raise_wall(connection.settings_dict["USER"]), "and it is raised again"


def test_columns_that_lead_to_another_row_are_there() -> None:
    columns = {
        model._meta.db_table: {field.column for field in model._meta.concrete_fields} for model in apps.get_models()
    }
    for table, (column, whole) in OF_ANOTHER.items():
        assert column in columns[table]
        assert {"id", "workspace_id"} <= columns[whole]
