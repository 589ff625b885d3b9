"""What people do: give a verdict, upload, make and revoke keys. And what is refused, with what it kept."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from inspector.accounts.models import ApiKey
from inspector.accounts.selectors import find_api_key
from inspector.audit.models import Review
from inspector.intake.models import Delivery
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, resolve_all, take_in
from tests.inspector.pages.conftest import STORY

from .conftest import page_of, shows


def seen_on(client: Client, conversation: Conversation) -> str:
    """The digest that the form of the page carries."""
    page = client.get(page_of("conversation", conversation.pk)).content.decode()
    found = re.search(r'name="seen" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


def test_a_verdict_is_kept_and_shown(auditor: Client, conversation: Conversation) -> None:
    said = {"verdict": "concern", "comment": "m3 must be found.", "seen": seen_on(auditor, conversation)}
    response = auditor.post(page_of("review", conversation.pk), said, follow=True)
    page = response.content.decode()
    shows(page, "Your verdict is kept", "m3 must be found.")
    review = Review.objects.get()
    assert (review.verdict, review.reviewer.get_username(), review.seen_messages) == ("concern", "amir", 3)


def test_nobody_signs_what_has_changed_meanwhile(auditor: Client, cast: Cast, conversation: Conversation) -> None:
    said = {"verdict": "fine", "comment": "kept words", "seen": seen_on(auditor, conversation)}
    take_in(cast, STORY.splitlines(True)[1].replace(b'"m2"', b'"m9"'), name="more.log")
    response = auditor.post(page_of("review", conversation.pk), said)
    page = response.content.decode()
    assert response.status_code == 422
    shows(page, "has changed since you opened it", "kept words")
    assert not Review.objects.exists()
    again = re.search(r'name="seen" value="([0-9a-f]{64})"', page)
    assert again is not None
    assert auditor.post(response.request["PATH_INFO"], {**said, "seen": again[1]}).status_code == 302


def test_a_verdict_says_when_the_conversation_moved_on(auditor: Client, cast: Cast, conversation: Conversation) -> None:
    said = {"verdict": "fine", "seen": seen_on(auditor, conversation)}
    auditor.post(page_of("review", conversation.pk), said)
    take_in(cast, STORY.splitlines(True)[1].replace(b'"m2"', b'"m9"'), name="more.log")
    page = auditor.get(page_of("conversation", conversation.pk)).content.decode()
    assert "the content has changed since the sign-off" in page


def test_a_verdict_needs_choosing(auditor: Client, conversation: Conversation) -> None:
    said = {"comment": "hm", "seen": seen_on(auditor, conversation)}
    assert auditor.post(page_of("review", conversation.pk), said).status_code == 422
    assert not Review.objects.exists()


def post_files(client: Client, *files: tuple[str, bytes], **said: str) -> object:
    """Send files up and load them as they are read by themselves; the answer to sending them."""
    uploads = [SimpleUploadedFile(name, data) for name, data in files]
    data = {"logs": uploads, "channel": "main", "has_prefixes": "on", **said}
    answer = client.post(page_of("upload"), data, headers={"HX-Request": "true"})
    client.post(page_of("decide-waiting"), {"action": "load"})
    return answer


def test_several_files_become_several_deliveries(auditor: Client, cast: Cast) -> None:
    response = post_files(auditor, ("a.log", STORY), ("b.log", b"hello\n"))
    assert response.status_code == 201  # type: ignore[attr-defined]
    assert response.content.count(b"Import file") == 2  # type: ignore[attr-defined]
    resolve_all()
    assert {(one.file_name, one.stored) for one in Delivery.objects.all()} == {("a.log", 5), ("b.log", 1)}


def test_the_same_file_again_adds_nothing_and_says_so(auditor: Client, cast: Cast) -> None:
    for _ in range(2):
        post_files(auditor, ("a.log", STORY))
        resolve_all()
    latest = Delivery.objects.order_by("-received_at")[0]
    page = auditor.get(page_of("delivery", latest.pk)).content.decode()
    shows(page, "0 stored, 5 duplicate, 0 quarantined (kept)", "Nothing in it was new.")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "there was no record in it"),
        (bytes(range(256)) * 8, "quarantined"),
        (b"\n\n\n", "there was no record in it"),
    ],
    ids=["empty", "binary", "blank-lines"],
)
def test_an_odd_file_gets_a_clear_receipt(auditor: Client, cast: Cast, data: bytes, words: str) -> None:
    post_files(auditor, ("odd.log", data))
    resolve_all()
    delivery = Delivery.objects.get()
    assert delivery.size_bytes == len(data)
    page = auditor.get(page_of("delivery", delivery.pk)).content.decode()
    assert words in page


def test_an_upload_without_a_file_or_with_an_odd_channel_is_explained(auditor: Client, cast: Cast) -> None:
    address = page_of("upload")
    none = auditor.post(address, {"channel": "main"})
    assert (none.status_code, b"Choose at least one file." in none.content) == (422, True)
    odd = auditor.post(address, {"logs": SimpleUploadedFile("a.log", b"x"), "channel": "a\u202eb"})
    assert (odd.status_code, b"printable characters" in odd.content) == (422, True)
    assert not Delivery.objects.exists()


def test_another_channel_is_made_by_naming_it(auditor: Client, cast: Cast) -> None:
    post_files(auditor, ("a.log", b"hello\n"), channel="lab")
    assert Delivery.objects.get().channel.name == "lab"


def test_what_is_too_large_is_refused_before_it_is_read(auditor: Client, cast: Cast, settings: object) -> None:
    settings.LIMITS = {**settings.LIMITS, "delivery_bytes": 10}  # type: ignore[attr-defined]
    response = auditor.generic(
        "POST",
        page_of("upload"),
        b"",
        content_type="multipart/form-data; boundary=x",
        CONTENT_LENGTH=str(2 * 1024 * 1024),
    )
    assert response.status_code == 413
    assert b"This is too large" in response.content


def test_a_key_is_shown_once_works_and_can_be_revoked(owner: Client, cast: Cast) -> None:
    address = page_of("settings")
    made = owner.post(
        address, {"name": "build <agents>", "scopes": ["ingest", "read"], "expires_in": "30"}, follow=True
    )
    assert made["Cache-Control"] == "no-store, private"
    found = re.search(r"aci_[0-9a-f]{12}_[0-9a-f]{64}", made.content.decode())
    assert found is not None
    key = find_api_key(token=found[0])
    assert key is not None
    assert key.expires_at is not None
    page = owner.get(address).content.decode()
    shows(page, "build &lt;agents&gt;", never=[found[0]])
    owner.post(page_of("revoke-key", key.pk))
    assert find_api_key(token=found[0]) is None


@pytest.mark.parametrize("said", [{"name": "", "scopes": "read"}, {"name": "x"}, {"name": "x", "scopes": "all"}])
def test_a_key_without_name_or_scope_is_refused(owner: Client, cast: Cast, said: dict[str, str]) -> None:
    assert owner.post(page_of("settings"), said).status_code == 422
    assert not ApiKey.objects.exists()
