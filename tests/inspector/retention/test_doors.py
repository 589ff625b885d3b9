"""By page, API and command owners erase after a preview; what is left says so everywhere, and proves it offline."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.services import create_api_key
from inspector.erasing import Target, ask_to_erase
from inspector.intake.models import Delivery
from inspector.ledger.sequencing import enter_new
from inspector.retention.models import Erasure, LegalHold, RetentionRule, Tombstone
from inspector.retention.services import lift_hold, place_hold
from inspector.threads.models import Conversation, Message
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all
from ..ledger.test_bundles import read, sign_off, verify, write
from ..ledger.test_ledger import as_superuser
from ..test_access import OPEN, ROUTES, fill, things
from .test_erasing import CANARY, PERSON, write_log

pytestmark = pytest.mark.django_db
# Fixtures of other folders, by their names.
__all__ = ["things"]
PAGE, ACT = "/w/acme/retention/", "/w/acme/retention/act/"


@pytest.fixture
def filled(cast: Cast) -> Delivery:
    delivery = deliver(cast, write_log(), name="talk.log")
    resolve_all()
    enter_new(at_once=True)
    return delivery


def call(token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    given = {"data": json.dumps(body), "content_type": "application/json"} if body else {}
    response = getattr(Client(), method)(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"}, **given)
    return response.status_code, response.json()


def test_an_owner_previews_and_confirms_on_the_page(
    cast: Cast, filled: Delivery, sign_in: Callable[[Membership], Client]
) -> None:
    for member in (cast.auditor, cast.viewer):
        assert sign_in(member).get(PAGE).status_code == 403
        assert sign_in(member).post(ACT, {"action": "hold", "reason": "x"}).status_code == 403
    owner = sign_in(cast.owner)
    said = {"kind": "person", "what": PERSON, "reason": "asked <for>", "is_both": ""}
    page = owner.post(ACT, said | {"action": "preview"}).content.decode()
    assert "3 messages</strong> in 3 records, from" in page
    # Without the tick nothing is done.
    assert "Confirm erasure" in owner.post(ACT, said | {"action": "erase"}).content.decode()
    assert not Erasure.objects.exists()
    message = Message.objects.filter(sender=PERSON).first()
    assert message
    done = owner.post(ACT, said | {"action": "erase", "is_sure": "on"}, follow=True).content.decode()
    assert "in progress" in done
    resolve_all()
    assert "finished" in owner.get(PAGE).content.decode()
    gone = owner.get(f"/w/acme/messages/{message.pk}/")
    assert gone.status_code == 410
    assert "asked &lt;for&gt;" in gone.content.decode()
    raw = owner.get(f"/w/acme/records/{message.record_id}/raw/")
    assert (raw.status_code, b"erased on" in raw.content) == (410, True)
    receipt = owner.get(f"/w/acme/deliveries/{filled.pk}/").content.decode()
    assert "3 records of it were erased" in receipt
    assert "by olivia because asked &lt;for&gt;" in receipt
    told = list(Deed.objects.filter(code__startswith="erasure.").order_by("sequence").values_list("code", "actor_name"))
    assert told == [("erasure.asked", "olivia"), ("erasure.finished", "The product")]


def test_rules_and_holds_are_set_on_the_page(
    cast: Cast, filled: Delivery, sign_in: Callable[[Membership], Client]
) -> None:
    owner = sign_in(cast.owner)
    assert "<strong>0 records are</strong> older" in owner.post(ACT, {"action": "set", "days": "30"}).content.decode()
    assert not RetentionRule.objects.exists()
    page = owner.post(ACT, {"action": "set", "days": "30", "is_sure": "on"}, follow=True).content.decode()
    assert "Whole workspace: 30 days" in page
    assert owner.post(ACT, {"action": "set", "days": "-1"}).status_code == 422
    owner.post(ACT, {"action": "hold", "channel": "main", "reason": "a suit"})
    hold = LegalHold.objects.get()
    assert "A legal hold stops this" in owner.post(ACT, {"kind": "delivery", "what": str(filled.pk)}).content.decode()
    assert owner.post(ACT, {"action": "lift", "hold": str(hold.pk)}).status_code == 302
    assert owner.post(ACT, {"action": "lift", "hold": str(hold.pk)}).status_code == 422


@pytest.mark.parametrize(
    "said",
    [
        {"action": "set", "days": "9" * 5000},
        {"action": "set", "days": "30", "channel": "a\x00b"},
        {"action": "hold", "reason": "a\x00b" * 2000},
        {"action": "lift", "hold": "x"},
        {"action": "erase", "kind": "person", "what": "a\x00b", "is_sure": "on", "reason": "x"},
        {"action": "erase", "kind": "delivery", "what": "9" * 5000},
        {"action": "erase", "kind": "x" * 100, "what": "0" * 32},
        {},
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    cast: Cast, sign_in: Callable[[Membership], Client], said: dict[str, str]
) -> None:
    answer = sign_in(cast.owner).post(ACT, said)
    assert answer.status_code == 422
    assert "Nothing was done: " in answer.content.decode()


def test_a_key_erases_in_the_name_of_an_owner(cast: Cast, filled: Delivery) -> None:
    def key_of(member: Membership, *scopes: str) -> str:
        return create_api_key(workspace=cast.workspace, name="k", scopes=list(scopes), created_by=member.user)[1]

    owner, auditor = key_of(cast.owner, "erase", "read"), key_of(cast.auditor, "erase")
    target = {"do": "preview", "kind": "delivery", "id": str(filled.pk)}
    unknown = {"do": "preview", "kind": "person", "name": "a\x00b"}
    assert call(owner, "post", "erasures", unknown)[0] in (409, 422)
    for kind in ("record", "delivery"):
        assert (
            call(owner, "post", "erasures", target | {"kind": kind, "id": "019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55"})[0]
            == 404
        )
    status, seen = call(owner, "post", "erasures", target)
    assert (status, seen["records"], seen["messages"], seen["id"]) == (200, 7, 7, None)
    said = target | {"do": "erase", "reason": "the wrong file"}
    assert call(auditor, "post", "erasures", said)[0] == 403
    assert call(key_of(cast.owner, "read"), "post", "erasures", said)[0] == 403
    hold = place_hold(membership=cast.owner, channel=cast.channel, reason="a suit")
    assert call(owner, "post", "erasures", said)[0] == 409
    lift_hold(membership=cast.owner, hold_id=hold.pk)
    message = Message.objects.get(native_id="m-1")
    status, made = call(owner, "post", "erasures", said)
    assert (status, made["by"], made["finished_at"]) == (201, "olivia", None)
    resolve_all()
    status, made = call(owner, "get", f"erasures/{made['id']}")
    assert (made["records"], made["finished_at"] is None) == (7, False)
    status, gone = call(owner, "get", f"messages/{message.pk}")
    assert (status, gone["sha256"]) == (410, bytes(Tombstone.objects.get(subject=message.record_id).sha256).hex())
    assert gone["detail"].endswith("by olivia because the wrong file")
    assert call(key_of(cast.owner, "read", "secrets"), "get", f"records/{message.record_id}/raw")[0] == 410
    assert [each["id"] for each in call(owner, "get", "erasures")[1]["results"]] == [made["id"]]


def test_the_command_says_what_it_would_do_first(cast: Cast, filled: Delivery) -> None:
    def erase(*words: str) -> str:
        told = io.StringIO()
        call_command("erase", "acme", *words, stdout=told)
        return told.getvalue()

    assert "3 messages in 3 records" in erase("--person", PERSON, "--as", "olivia")
    assert "4 messages in 4 records" in erase("--person", "radar", "--received", "--as", "olivia")
    assert not Erasure.objects.exists()
    for words in (("--as", "amir", "--reason", "x"), ("--as", "olivia")):
        with pytest.raises(CommandError, match="Nothing was erased"):
            erase("--person", PERSON, "--yes", *words)
    assert "is asked for" in erase("--person", PERSON, "--as", "olivia", "--reason", "asked", "--yes")
    resolve_all()
    assert not Message.objects.filter(sender=PERSON).exists()


def test_the_offline_verifier_tells_what_was_erased_and_still_proves_it(
    cast: Cast, filled: Delivery, tmp_path: Path
) -> None:
    talk = Conversation.objects.get(native_id="talk")
    sign_off(cast.auditor, talk)
    enter_new(at_once=True)
    unread = Message.objects.get(sender="", receivers=[]).record_id
    ask_to_erase(membership=cast.owner, target=Target(kind="record", subject=unread), reason="asked by law")
    call_command("erase", "acme", "--person", PERSON, "--as", "olivia", "--reason", "asked by law", "--yes",
                 stdout=io.StringIO())  # fmt: skip
    resolve_all()
    enter_new(at_once=True)
    for name, given in (("all.zip", {}), ("talk.zip", {"conversation": talk})):
        path = write(tmp_path / name, cast, is_exact=True, **given)
        code, told = verify(path)
        assert code == 0, told
        assert "HOLDS    Erased: " in told
        assert "because asked by law; their digests are in the signed tree." in told
        assert "3 messages are what was signed." in told
        assert not any(CANARY.encode() in data for data in read(path).values())
    with as_superuser() as cursor:
        cursor.execute("UPDATE retention_erasure SET reason = 'another reason'")
    code, told = verify(write(tmp_path / "forged.zip", cast))
    assert code == 1
    assert "(erasure" in told
    assert "content was changed" in told or "the log has something else there" in told


def test_every_address_answers_after_everything_was_erased(
    cast: Cast, things: dict[str, str], sign_in: Callable[[Membership], Client]
) -> None:
    for delivery in Delivery.objects.filter(workspace=cast.workspace):
        ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=delivery.pk), reason="x")
    resolve_all()
    assert not Message.objects.exists()
    answers = visit_all(cast, things, sign_in)
    assert {name: status for name, status in answers.items() if status >= 500} == {}
    gone = {name for name, status in answers.items() if status == 410}
    assert gone == {"api:message", "api:raw", "pages:message", "pages:raw"}


def visit_all(cast: Cast, things: dict[str, str], sign_in: Callable[[Membership], Client]) -> dict[str, int]:
    """With which status each address of the URLconf is answered, to an owner and a key that may all."""
    scopes = ApiKey.Scope.values
    token = create_api_key(workspace=cast.workspace, name="k", scopes=scopes, created_by=cast.owner.user)[1]
    owner, program = sign_in(cast.owner), Client(headers={"Authorization": f"Bearer {token}"})
    answers = {}
    for name, route in ROUTES:
        if name in {*OPEN, "pages:live", "api:live"}:
            continue
        client = program if name.startswith("api:") else owner
        with transaction.atomic():
            response = client.get(fill(route, things))
            if response.streaming:
                b"".join(response)
            transaction.set_rollback(True)
        answers[name] = response.status_code
    return answers
