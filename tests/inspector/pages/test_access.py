"""Who may do what: strangers get 404 everywhere, the signed-out are asked to sign in, roles hold."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.urls.resolvers import URLPattern

from inspector.accounts.models import ApiKey
from inspector.accounts.services import add_member, create_api_key, create_sign_in_link, create_workspace
from inspector.accounts.workspaces import invite_member
from inspector.audit.agents import name_agent
from inspector.audit.comments import write_comment
from inspector.audit.findings.services import suppress
from inspector.audit.models import Finding, Review
from inspector.audit.models.reviews import Comment
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.samples import draw_sample
from inspector.intake.models import Delivery, Record, Withdrawal
from inspector.keyring.models import EscrowedKey
from inspector.keyring.services import add_keys
from inspector.keyring.spellings import PlainKey
from inspector.ledger.sequencing import enter_new
from inspector.pages.urls import workspace_urls
from inspector.search.aids import save_search
from inspector.threads.models import Agent, Conversation, Message, Trace
from tests.inspector.conftest import Cast, take_in, use_link
from tests.inspector.exports.conftest import ask, make

from .conftest import page_of, shows

SLUG = "acme"
POSTED = {
    *("review", "revoke-key", "retry-dead-letters", "decide-waiting", "withdraw", "take-back"),
    *("invite", "change-member", "switch-member", "remove-member", "act-on-invitation", "take-over-key"),
    *("save-search", "forget-search", "change-workspace", "release-escrowed-key", "new-workspace"),
    *("name-agent", "join-agent", "undo-agent-word", "stop-export"),
    *("write-comment", "act-on-comment"),
    *("enqueue", "act-on-queue", "act-on-item", "judge-item"),
    *("test-alerts", "renew-alert-secret", "switch-alerts"),
    *("judge-findings", "set-rule", "suppress-findings", "lift-suppression"),
    *("verify-ledger", "compare-checkpoint", "act-on-retention"),
}


def address_of(pattern: URLPattern, slug: str, ids: dict[str, Any]) -> str:
    names = pattern.pattern.converters
    return reverse(f"pages:{pattern.name}", kwargs={"slug": slug, **{name: ids[name] for name in names}})


def keep_key(cast: Cast) -> EscrowedKey:
    """A key in the keyring of the first workspace."""
    key = PlainKey(kind=EscrowedKey.Kind.PSK, secret=b"secret")
    return add_keys(membership=cast.owner, keys=[key], label="k")[0]


def comment_on(cast: Cast, message: Message, words: str = "Who is this?") -> Comment:
    """A comment on the first ten characters of a message."""
    return write_comment(membership=cast.auditor, message=message, start=0, end=10, words=words)


@pytest.fixture
def ids(cast: Cast, story: Delivery) -> dict[str, Any]:
    """One of each thing that an address can name, all of the first workspace."""
    radar = Agent.objects.get(name="radar")
    enter_new(at_once=True)
    return {
        "conversation_id": Conversation.objects.get(native_id="story").pk,
        "message_id": Message.objects.filter(native_id="m1").get().pk,
        "record_id": Message.objects.filter(native_id="m1").get().record_id,
        "delivery_id": story.pk,
        "agent_id": radar.pk,
        "word_id": name_agent(membership=cast.auditor, agent=radar, friendly_name="listener").pk,
        "key_id": create_api_key(workspace=cast.workspace, name="k", scopes=["read"])[0].pk,
        "membership_id": cast.viewer.pk,
        "invitation_id": invite_member(workspace=cast.workspace, name="guest", role="viewer")[0].pk,
        "dialect": "clowl",
        "trace_id": Trace.objects.create(workspace=cast.workspace, key=b"trace", native_id="t-1").pk,
        "escrowed_key_id": keep_key(cast).pk,
        "sample_id": draw_sample(membership=cast.auditor, name="sample", stratum="dialect", wanted=1).pk,
        "comment_id": comment_on(cast, Message.objects.get(native_id="m1")).pk,
        "finding_id": Finding.objects.filter(rule="missing-message").get().pk,
        "suppression_id": suppress(
            membership=cast.auditor, rule="circle", conversation=None, sender="radar", reason="r"
        ).pk,
        "saved_id": save_search(membership=cast.owner, name="s", query="a", is_shared=True).pk,
        "export_id": make(ask(cast)).pk,
        **enqueue(cast),
    }


def enqueue(cast: Cast) -> dict[str, Any]:
    """A queue of the first workspace and what waits in it."""
    queue = create_queue(membership=cast.owner, name="q")
    conversation = Conversation.objects.get(native_id="story")
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    return {"queue_id": queue.pk, "item_id": queue.items.get().pk}


def ask_for(client: Client, patterns: list[URLPattern], slug: str, ids: dict[str, Any]) -> dict[str, int]:
    """The status of each of these addresses, by its name; what an answer changed is undone before the next."""
    found: dict[str, int] = {}
    for pattern in patterns:
        with transaction.atomic():
            send = client.post if pattern.name in POSTED else client.get
            found[str(pattern.name)] = send(address_of(pattern, slug, ids)).status_code
            transaction.set_rollback(True)
    return found


def test_a_stranger_gets_404(cast: Cast, ids: dict[str, Any], sign_in: Callable[..., Client]) -> None:
    found = ask_for(sign_in(cast.stranger), workspace_urls, SLUG, ids)
    assert {name: status for name, status in found.items() if status != 404} == {}
    assert len(found) > 50


def test_what_is_of_another_workspace_is_not_found_through_ones_own(
    cast: Cast, ids: dict[str, Any], sign_in: Callable[..., Client]
) -> None:
    # A dialect belongs to nobody; everything else that an address names is a workspace's.
    naming = [pattern for pattern in workspace_urls if pattern.pattern.converters.keys() - {"dialect"}]
    found = ask_for(sign_in(cast.stranger), naming, "other", ids)
    assert {name: status for name, status in found.items() if status != 404} == {}
    assert len(found) > 30


def test_members_are_let_in(cast: Cast, ids: dict[str, Any], owner: Client) -> None:
    found = ask_for(owner, workspace_urls, SLUG, ids)
    assert {name: status for name, status in found.items() if status not in (200, 201, 204, 302, 422)} == {}


@pytest.mark.django_db
def test_the_signed_out_are_asked_to_sign_in(client: Client) -> None:
    for pattern in workspace_urls:
        ids = {**dict.fromkeys(pattern.pattern.converters, uuid.uuid4()), "membership_id": 1, "invitation_id": 1}
        send = client.post if pattern.name in POSTED else client.get
        response = send(address_of(pattern, SLUG, ids))
        assert response.status_code == 302, pattern.name
        assert response["Location"].startswith(reverse("pages:sign-in") + "?next="), pattern.name


def test_a_viewer_neither_uploads_nor_judges_nor_makes_keys(viewer: Client, cast: Cast, ids: dict[str, Any]) -> None:
    upload = page_of("upload")
    assert viewer.get(upload).status_code == 403
    assert viewer.post(upload, {"logs": SimpleUploadedFile("a.log", b"x"), "channel": "main"}).status_code == 403
    review = page_of("review", ids["conversation_id"])
    assert viewer.post(review, {"verdict": "fine"}).status_code == 403
    assert viewer.post(page_of("settings"), {"name": "x", "scopes": "read"}).status_code == 403
    assert viewer.post(page_of("revoke-key", ids["key_id"])).status_code == 403
    for name in ("withdraw", "take-back"):
        act = page_of(f"{name}", ids["delivery_id"])
        assert viewer.post(act, {"reason": "because"}).status_code == 403
    assert viewer.post(page_of("decide-waiting"), {"action": "load"}).status_code == 403
    assert not Withdrawal.objects.exists()
    assert not Review.objects.exists()
    assert ApiKey.objects.get().revoked_at is None
    assert Delivery.objects.count() == 1


def test_a_viewer_sees_no_button_that_is_refused(viewer: Client, ids: dict[str, Any]) -> None:
    for name, args in (("conversations", []), ("settings", []), ("conversation", [ids["conversation_id"]])):
        page = viewer.get(page_of(f"{name}", *args)).content.decode()
        shows(page, never=[page_of("upload"), "Sign off", "Create key"])
    assert "Withdraw" not in viewer.get(page_of("delivery", ids["delivery_id"])).content.decode()


def test_the_exact_bytes_come_as_an_inert_download(viewer: Client, ids: dict[str, Any]) -> None:
    response = viewer.get(page_of("raw", ids["record_id"]))
    assert response.status_code == 200
    assert b"".join(response).startswith(b'{"clowl":"0.2","mid":"m1"')
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"


def test_what_could_not_be_read_is_for_auditors(viewer: Client, auditor: Client, cast: Cast) -> None:
    take_in(cast, b"\xff\xfe\x00broken\n", name="binary.log")
    record = Record.objects.get(is_quarantined=True)
    address = page_of("raw", record.pk)
    assert viewer.get(address).status_code == 403
    assert b"".join(auditor.get(address)) != b""


def test_someone_in_no_workspace_is_told_so(client: Client, db: None) -> None:
    from inspector.accounts.models import User

    client.force_login(User.objects.create_user("nina"), backend="django.contrib.auth.backends.ModelBackend")
    assert b"You are in no workspace yet" in client.get("/").content


def test_home_leads_to_the_first_workspace(owner: Client) -> None:
    assert owner.get("/")["Location"] == page_of("overview")


def test_other_workspaces_of_the_reader_are_offered(owner: Client, cast: Cast) -> None:
    second = create_workspace(slug="second", name="Second one")
    add_member(workspace=second, user=cast.owner.user, role="viewer")
    page = owner.get(page_of("conversations")).content.decode()
    assert reverse("pages:conversations", args=["second"]) in page


def test_a_sign_in_link_works_once(client: Client, cast: Cast) -> None:
    token = create_sign_in_link(user=cast.owner.user)
    link = f"{reverse('pages:sign-in-link')}#{token}"
    for _ in range(2):  # Whoever looks at it for a preview does not spend it.
        assert b"olivia" not in Client().get(link).content, "the address says nothing"
        opened = use_link(Client(), link)
        assert (opened.status_code, b"Sign in as olivia" in opened.content) == (200, True)
    for old in (f"/sign-in/{token}/", f"/invitation/{token}/"):
        assert [getattr(Client(), ask)(old).status_code for ask in ("get", "post")] == [410, 410], (
            "a path bears no code"
        )
    assert use_link(client, link, confirm="")["Location"] == "/"
    assert client.get(page_of("conversations")).status_code == 200
    again = use_link(Client(), link)
    assert use_link(Client(), link, confirm="").status_code == 410
    assert again.status_code == 410
    assert b"This link does not sign in any more" in again.content


def test_name_and_password_sign_in_and_the_wanted_page_follows(client: Client, cast: Cast) -> None:
    cast.owner.user.set_password("correct horse battery")
    cast.owner.user.save()
    wanted = page_of("search")
    said = {"username": "olivia", "password": "wrong", "next": wanted}
    refused = client.post(reverse("pages:sign-in"), said)
    assert refused.status_code == 422
    assert b"Wrong username or password" in refused.content
    assert client.post(reverse("pages:sign-in"), {**said, "password": "correct horse battery"})["Location"] == wanted


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_signing_in_never_leads_elsewhere(elsewhere: str, client: Client, cast: Cast) -> None:
    cast.owner.user.set_password("correct horse battery")
    cast.owner.user.save()
    said = {"username": "olivia", "password": "correct horse battery", "next": elsewhere}
    assert client.post(reverse("pages:sign-in"), said)["Location"] == "/"


def test_signing_out_is_a_post(owner: Client) -> None:
    address = reverse("pages:sign-out")
    assert owner.get(address).status_code == 405
    assert owner.post(address).status_code == 302
    assert owner.get(page_of("conversations")).status_code == 302


def test_forms_need_their_token(cast: Cast, ids: dict[str, Any]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.owner.user, backend="django.contrib.auth.backends.ModelBackend")
    for name, args in (("upload", []), ("settings", []), ("review", [ids["conversation_id"]])):
        response = client.post(page_of(f"{name}", *args))
        assert response.status_code == 403
        assert b"This form was open too long" in response.content


def test_too_many_wrong_passwords_lock_the_name(client: Client, cast: Cast, settings: Any) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = client.post(reverse("pages:sign-in"), {"username": "olivia", "password": "wrong"})
    assert response.status_code == 429
    assert b"Too many attempts" in response.content
