"""Deeds are numbered, dated and kept by the database itself, whoever records them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction

from inspector.trail.acting import OPERATOR
from inspector.trail.models import Deed
from inspector.trail.services import Thing, record_deed

from ..conftest import Cast


def record(cast: Cast, name: str = "main") -> Deed:
    return record_deed(
        "channel.made",
        workspace_id=cast.workspace.pk,
        on=Thing("channel", cast.channel.pk, name),
        by=cast.owner,
        details={"name": name},
    )


def test_a_deed_says_who_what_and_on_what(cast: Cast) -> None:
    deed = record(cast, "a\x00b")
    assert deed.told == "olivia created the channel “a␀b”"
    assert (deed.actor_kind, deed.actor_id, deed.actor_name) == ("member", str(cast.owner.user_id), "olivia")
    assert deed.about == [cast.channel.pk]
    assert deed.details == {"name": "a␀b"}


def test_the_database_numbers_and_dates_each_workspace_by_itself(cast: Cast) -> None:
    before = Deed.objects.filter(workspace=cast.workspace).count()
    numbers = [record(cast).sequence for _ in range(3)]
    assert numbers == [before + 1, before + 2, before + 3]
    other = record_deed("account.signed-out", workspace_id=cast.stranger.workspace_id, by=OPERATOR)
    assert other.sequence == Deed.objects.filter(workspace=cast.stranger.workspace).count()
    forged = Deed.objects.create(
        workspace=cast.workspace,
        sequence=1,
        at=datetime(2001, 1, 1, tzinfo=UTC),
        actor_kind="member",
        actor_name="olivia",
        code="channel.made",
        told="olivia made the channel",
    )
    forged.refresh_from_db()
    assert forged.sequence == before + 4
    assert forged.at.year > 2001


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE trail_deed SET told = 'nothing'",
        "DELETE FROM trail_deed",
        "TRUNCATE trail_deed",
        "TRUNCATE accounts_workspace CASCADE",
    ],
)
def test_nobody_changes_deletes_or_empties_the_trail(
    cast: Cast, statement: str, record_property: Callable[[str, object], None]
) -> None:
    kept = record(cast)
    told = ""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        try:
            with transaction.atomic():
                cursor.execute(statement)
        except DatabaseError as error:
            told = str(error)
    # Where both are to be emptied, one of the two says so first.
    is_refused = "The trail is only added to" in told or "The ledger is only added to" in told
    # `bench.proofs` prints these.
    record_property("ways as the owner of the table", 1)
    record_property("failures", int(not is_refused))
    assert is_refused, told
    kept.refresh_from_db()
    assert kept.told == "olivia created the channel “main”"


@pytest.mark.django_db(transaction=True)
def test_emptying_the_tables_between_tests_leaves_the_triggers_as_they_were(cast: Cast) -> None:
    from django.core.management import call_command

    record(cast)
    call_command("flush", interactive=False, verbosity=0)
    assert not Deed.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgenabled FROM pg_trigger WHERE tgrelid = 'trail_deed'::regclass AND NOT tgisinternal")
        assert {state for (state,) in cursor.fetchall()} == {"A"}
