"""The cast is made in few statements, and is what the services make."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from inspector.accounts.models import Channel, Membership, Role, User, Workspace
from inspector.accounts.services import add_member, create_workspace
from inspector.trail.models import Deed

from .conftest import make_user

# What is by chance, or by the clock; what there is for no password; and ids, for which names stand.
LEFT_OUT = {"id", "created_at", "date_joined", "at", "password", "object_id", "about"}


def picture() -> dict[str, list[dict[str, Any]]]:
    """All rows, each with what it is of."""
    names = {str(each.pk): str(each) for model in (User, Workspace) for each in model.objects.all()}
    shown: dict[str, list[dict[str, Any]]] = {}
    for model in (User, Workspace, Channel, Membership, Deed):
        columns = [column.name for column in model._meta.concrete_fields if column.name not in LEFT_OUT]
        order = ("workspace__slug", "sequence") if model is Deed else ("pk",)
        rows = list(model._default_manager.order_by(*order))
        shown[model.__name__] = [{name: str(getattr(row, name)) for name in columns} for row in rows]
        for row, said in zip(rows, shown[model.__name__], strict=True):
            if isinstance(row, Deed):
                said |= {"object": names[row.object_id], "about": [names[str(each)] for each in row.about]}
    return shown


@pytest.mark.django_db
def test_it_is_what_the_services_make(request: pytest.FixtureRequest) -> None:
    with transaction.atomic():
        olivia, amir, vera, sam = (make_user(name) for name in ("olivia", "amir", "vera", "sam"))
        acme = create_workspace(slug="acme", name="Acme", owner=olivia)
        create_workspace(slug="other", name="Other", owner=sam)
        add_member(workspace=acme, user=amir, role=Role.AUDITOR)
        add_member(workspace=acme, user=vera, role=Role.VIEWER)
        expected = picture()
        transaction.set_rollback(True)
    cast = request.getfixturevalue("cast")
    assert picture() == expected
    assert [len(rows) for rows in expected.values()] == [4, 2, 2, 4, 6]
    assert not any(user.has_usable_password() for user in User.objects.all())
    members = (cast.owner, cast.auditor, cast.viewer, cast.stranger)
    assert [each.user.username for each in members] == ["olivia", "amir", "vera", "sam"]
    assert [Membership.objects.get(pk=each.pk).role for each in members] == [each.role for each in members]
