"""Owners make, rename and archive workspaces by page, API and command, and each act is in the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from inspector.accounts.models import ApiKey, Membership, Role, Workspace
from inspector.accounts.services import add_member, create_api_key, create_workspace
from inspector.accounts.workspaces import archive_workspace, make_workspace, rename_workspace, restore_workspace
from inspector.embedded import first_steps
from inspector.intake.models import Delivery
from inspector.trail.models import Deed
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in

from .conftest import page_of, shows
from .test_uploads import decide, stage
from .test_uploads import send as upload_file

pytestmark = pytest.mark.django_db
SETTINGS = "/w/acme/settings/"


def act(client: Client, action: str, slug: str = "acme", **said: str) -> tuple[int, str]:
    """The status and the page, of the page's own buttons."""
    address = reverse("pages:change-workspace", args=[slug])
    response = client.post(address, {"action": action, **said}, follow=True)
    return response.status_code, response.content.decode()


def make(client: Client, name: str, slug: str) -> tuple[int, str]:
    said = {"workspace-name": name, "workspace-slug": slug}
    response = client.post(page_of("new-workspace"), said, follow=True)
    return response.status_code, response.content.decode()


def send(token: str, path: str, body: Any) -> tuple[int, Any]:
    response = Client().post(
        f"/api/v1/{path}", json.dumps(body), "application/json", headers={"Authorization": f"Bearer {token}"}
    )
    return response.status_code, response.json()


def ask(token: str, path: str) -> tuple[int, Any]:
    response = Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    return response.status_code, response.json()


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("workspace", *arguments, stdout=out)
    return out.getvalue()


def last_deed(slug: str = "acme") -> tuple[str, str, dict[str, Any]]:
    deed = Deed.objects.filter(workspace__slug=slug).order_by("-sequence")[0]
    return deed.code, deed.told, deed.details


def owner_key(cast: Cast, member: Membership | None = None) -> str:
    """A key that may do what the owner may, in their name."""
    maker = (member or cast.owner).user
    scopes = ApiKey.Scope.values
    return create_api_key(workspace=cast.workspace, name="all", scopes=scopes, created_by=maker)[1]


def test_an_owner_makes_another_workspace_and_owns_it(owner: Client, cast: Cast) -> None:
    status, page = make(owner, "Night shift", "night")
    assert (status, "Night shift is made, and you own it" in page) == (200, True)
    made = Workspace.objects.get(slug="night")
    assert [(each.user, each.role) for each in made.memberships.all()] == [(cast.owner.user, Role.OWNER)]
    assert made.channels.get().name == "main"
    told = Deed.objects.get(workspace=made, code="workspace.made").told
    assert told == "olivia created the workspace “Night shift”"


def test_an_owner_renames_the_workspace_and_its_address_stays(owner: Client, cast: Cast) -> None:
    status, page = act(owner, "rename", **{"rename-name": "Acme Audit"})
    assert (status, "The workspace is called Acme Audit from now on" in page) == (200, True)
    assert last_deed() == ("workspace.renamed", "olivia renamed the workspace “Acme Audit”", {"from": "Acme"})
    assert owner.get(SETTINGS).status_code == 200
    act(owner, "rename", **{"rename-name": "Acme Audit"})
    assert Deed.objects.filter(code="workspace.renamed").count() == 1, "the same name again is no deed"


def test_names_and_addresses_that_are_refused(owner: Client, cast: Cast, settings: Any) -> None:
    second = create_workspace(slug="second", name="Second", owner=cast.owner.user)
    refused = {
        "nothing": ("", "third", "required"),
        "only blanks": ("  ", "third", "required"),
        "too long": ("x" * 121, "third", "at most 120"),
        "control characters": ("Th\x07ird", "third", "printable"),
        "hidden characters": ("Thi\u200brd", "third", "printable"),
        "direction": ("Third\u202e", "third", "printable"),
        "a secret": ("ghp_" + "a1B2" * 9, "third", "looks like a secret"),
        "its own name": ("Acme", "third", "called Acme already"),
        "a look-alike": ("\u0410cme", "third", "looks like Acme"),
        "a taken address": ("Third", "second", "is taken"),
        "a taken address in capitals": ("Third", "OTHER", "is taken"),
        "no address": ("Third", "", "required"),
        "a path for an address": ("Third", "../x", "slug"),
    }

    for case, (name, slug, why) in refused.items():
        status, page = make(owner, name, slug)
        assert (status, why in page) == (422, True), case
    status, page = act(owner, "rename", **{"rename-name": "\u0405econd"})
    assert (status, "looks like Second" in page) == (422, True)
    # Nobody learns by a refusal how workspaces of others are called.
    assert make(owner, "Other", "third")[0] == 200
    settings.LIMITS = {**settings.LIMITS, "workspaces": 3}
    status, page = make(owner, "Fourth", "fourth")
    assert (status, "a person owns at most 3 workspaces" in page) == (422, True)
    second.refresh_from_db()
    assert sorted(Workspace.objects.values_list("slug", "name")) == [
        ("acme", "Acme"),
        ("other", "Other"),
        ("second", "Second"),
        ("third", "Other"),
    ]


def test_an_archived_workspace_takes_no_messages_until_it_is_restored(
    owner: Client, cast: Cast, token: str, tmp_path: Path
) -> None:
    line = {"raw": "Hello.", "id": "m1", "conversation": "c1", "from": "radar"}
    assert send(token, "messages", line)[0] == 202
    upload = page_of("upload")
    staged = stage(owner, b'{"raw": "x", "id": "m2"}\n')
    log = tmp_path / "a.log"
    log.write_text('{"raw": "y", "id": "m3"}\n')
    status, page = act(owner, "archive")
    assert (status, "The workspace is archived" in page) == (200, True)
    assert last_deed()[:2] == ("workspace.archived", "olivia archived the workspace “Acme”")
    assert "archived</span>" in page.partition('id="members"')[0], "its keys are not shown as active"
    count = Delivery.objects.count()

    status, said = send(token, "messages", line)
    assert (status, "This workspace is archived and takes no messages" in said["detail"]) == (403, True)
    assert ask(token, "messages")[0] == 403
    answer = upload_file(owner, ("b.log", b"x\n"))
    assert (answer.status_code, b"This workspace is archived and takes no messages" in answer.content) == (409, True)
    piece = decide(owner, staged, "load", headers={"HX-Request": "true"})
    assert (piece.status_code, piece["HX-Redirect"]) == (200, upload)
    assert decide(owner, staged, "load")["Location"] == upload
    assert b"This workspace is archived and takes no messages" in owner.get(upload).content
    waiting = owner.post(page_of("decide-waiting"), {"action": "load"}, follow=True)
    assert b"This workspace is archived and takes no messages" in waiting.content
    with pytest.raises(CommandError, match="archived and takes no messages"):
        call_command("import_log", str(log), workspace="acme", verbosity=0)
    with pytest.raises(ValidationError, match="archived and takes no messages"):
        deliver(Cast(**{**vars(cast), "workspace": Workspace.objects.get(slug="acme")}), b"z\n")
    assert Delivery.objects.count() == count
    assert Delivery.objects.filter(state=Delivery.State.STAGED).count() == 1

    status, page = act(owner, "restore")
    assert (status, "The workspace is restored" in page) == (200, True)
    assert last_deed()[:2] == ("workspace.restored", "olivia restored the workspace “Acme” from the archive")
    assert send(token, "messages", {**line, "id": "m4"})[0] == 202
    owner.post(page_of("decide-waiting"), {"action": "load"})
    call_command("import_log", str(log), workspace="acme", verbosity=0)
    assert not Delivery.objects.filter(state=Delivery.State.STAGED).exists()
    resolve_all()
    assert Delivery.objects.filter(stored=1).count() == 4


def test_an_archived_workspace_stays_readable_and_is_not_offered(
    owner: Client, viewer: Client, cast: Cast, sign_in: Callable[..., Client]
) -> None:
    second = create_workspace(slug="second", name="Second", owner=cast.owner.user)
    take_in(cast, b'{"raw": "Hello there.", "id": "m1", "conversation": "c1", "from": "radar"}\n')
    switch = page_of("conversations")
    assert switch in owner.get(reverse("pages:settings", args=["second"])).content.decode()
    archive_workspace(workspace=cast.workspace, by=cast.owner)
    page = owner.get(reverse("pages:settings", args=["second"])).content.decode()
    shows(page, "Your archived workspaces", page_of("overview"), never=[switch])
    assert owner.get("/")["Location"] == reverse("pages:overview", args=["second"])
    assert viewer.get("/")["Location"] == page_of("overview"), "there is no other"
    for reader in (owner, viewer):
        found = reader.get(page_of("search") + "?q=hello")
        assert (found.status_code, b"This workspace is archived." in found.content) == (200, True)
        assert b"c1" in found.content
    assert sign_in(cast.stranger).get(switch).status_code == 404
    archive_workspace(workspace=second, by=second.memberships.get())
    assert owner.get("/")["Location"] == page_of("overview")


def test_what_is_so_already_is_refused(owner: Client, cast: Cast) -> None:
    assert "the workspace is not archived" in act(owner, "restore")[1]
    act(owner, "archive")
    assert "the workspace is archived already" in act(owner, "archive")[1]
    assert Deed.objects.filter(code="workspace.archived").count() == 1


def test_who_is_no_owner_does_none_of_it(auditor: Client, viewer: Client, cast: Cast) -> None:
    for client in (auditor, viewer):
        page = client.get(SETTINGS).content.decode()
        shows(page, never=['value="archive"', "New workspace"])
        for action in ("rename", "archive", "restore"):
            assert act(client, action, **{"rename-name": "Mine"})[0] == 403
        assert make(client, "Mine", "mine")[0] == 403
    for member in (cast.auditor, cast.viewer):
        token = owner_key(cast, member)
        assert send(token, "workspace/acts", {"act": "archive"})[0] == 403
        assert send(token, "workspaces", {"slug": "mine", "name": "Mine"})[0] == 403
        with pytest.raises(PermissionDenied):
            make_workspace(slug="mine", name="Mine", owner=member.user, by=member)
    assert sorted(Workspace.objects.values_list("name", "archived_at")) == [("Acme", None), ("Other", None)]


def test_an_owner_of_one_workspace_cannot_touch_another(cast: Cast, sign_in: Callable[..., Client]) -> None:
    stranger = sign_in(cast.stranger)
    for action in ("rename", "archive", "restore"):
        assert act(stranger, action, **{"rename-name": "Mine"})[0] == 404
    acts: tuple[Callable[[], None], ...] = (
        lambda: rename_workspace(workspace=cast.workspace, name="Mine", by=cast.stranger),
        lambda: archive_workspace(workspace=cast.workspace, by=cast.stranger),
        lambda: restore_workspace(workspace=cast.workspace, by=cast.stranger),
    )
    for each in acts:
        with pytest.raises(PermissionDenied):
            each()
    # Nor by belonging to both: what one owns gives no right in the other.
    add_member(workspace=cast.workspace, user=cast.stranger.user, role=Role.VIEWER)
    assert act(stranger, "archive")[0] == 403
    assert Workspace.objects.filter(name__in=("Acme", "Other"), archived_at=None).count() == 2


def test_a_key_renames_and_archives_its_workspace_in_its_makers_name(cast: Cast) -> None:
    token = owner_key(cast)
    status, shown = ask(token, "workspace")
    assert (status, shown["slug"], shown["name"], shown["archived_at"]) == (200, "acme", "Acme", None)
    status, shown = send(token, "workspace/acts", {"act": "rename", "name": "Acme Audit"})
    assert (status, shown["name"]) == (201, "Acme Audit")
    assert last_deed()[0] == "workspace.renamed"
    for name in (None, "", "a\x00b"):
        said = {"act": "rename"} | ({} if name is None else {"name": name})
        assert send(token, "workspace/acts", said)[0] == 422
    assert send(token, "workspace/acts", {"act": "delete"})[0] == 422
    status, shown = send(token, "workspace/acts", {"act": "archive"})
    assert (status, shown["archived_at"] is not None) == (201, True)
    assert last_deed()[0] == "workspace.archived"
    status, shown = ask(token, "workspace")
    assert (status, "an owner can restore it" in shown["detail"]) == (403, True)


def test_a_key_makes_another_workspace_for_its_maker_and_sees_nothing_of_it(cast: Cast) -> None:
    token = owner_key(cast)
    status, shown = send(token, "workspaces", {"slug": "night", "name": "Night shift"})
    assert (status, shown["slug"]) == (201, "night")
    assert Membership.objects.get(workspace__slug="night").user == cast.owner.user
    assert Deed.objects.get(workspace__slug="night", code="workspace.made").actor_kind == "api-key"
    assert ask(token, "workspace")[1]["slug"] == "acme"
    for slug, name in (("night", "Third"), ("a b", "Third"), ("a\x00b", "Third"), ("third", "Night shift")):
        status, shown = send(token, "workspaces", {"slug": slug, "name": name})
        assert (status, shown["members"]) == (422, ["name" if slug == "third" else "slug"])
    plain = create_api_key(workspace=cast.workspace, name="k", scopes=["read"], created_by=cast.owner.user)[1]
    status, shown = send(plain, "workspaces", {"slug": "x", "name": "X"})
    assert (status, shown["scope"]) == (403, ["workspace"])


def test_the_command_does_it_all(cast: Cast) -> None:
    assert run("create", "night", "Night shift", "--owner", "vera") == "night is made, and vera owns it\n"
    assert Deed.objects.get(workspace__slug="night", code="workspace.made").actor_kind == "operator"
    run("rename", "night", "Late shift")
    assert last_deed("night") == (
        "workspace.renamed",
        "The operator renamed the workspace “Late shift”",
        {"from": "Night shift"},
    )
    run("archive", "night")
    assert last_deed("night")[:2] == ("workspace.archived", "The operator archived the workspace “Late shift”")
    assert run("list") == "acme\topen\tAcme\nnight\tarchived\tLate shift\nother\topen\tOther\n"
    run("restore", "night")
    assert last_deed("night")[0] == "workspace.restored"
    refused = (
        (("restore", "night"), "not archived"),
        (("archive", "nowhere"), "there is no workspace 'nowhere'"),
        (("create", "x", "X", "--owner", "nobody"), "there is nobody named 'nobody'"),
        (("create", "ACME", "X", "--owner", "vera"), "is taken"),
        (("rename", "night", "Acme"), "called Acme already"),
    )
    for arguments, why in refused:
        with pytest.raises(CommandError, match=why):
            run(*arguments)


def test_the_first_workspace_of_the_commands_is_one_that_is_not_archived(cast: Cast, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text('{"raw": "y", "id": "m3"}\n')
    archive_workspace(workspace=cast.workspace, by=None)
    call_command("import_log", str(log), verbosity=0)
    assert Delivery.objects.get().workspace.slug == "other"
    archive_workspace(workspace=cast.stranger.workspace, by=None)
    with pytest.raises(CommandError, match="archived and takes no messages"):
        call_command("import_log", str(log), verbosity=0)


def test_a_start_is_told_that_the_first_workspace_takes_no_samples(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    first_steps.main()
    assert json.loads(capsys.readouterr().out)["archived"] == ""
    archive_workspace(workspace=cast.workspace, by=None)
    first_steps.main()
    told = json.loads(capsys.readouterr().out)
    assert (told["archived"], told["workspace"]) == ("yes", str(cast.workspace.pk))
    assert Client().get(told["link"]).status_code == 200
