"""What people and programs do leaves its deed, in the same transaction, under the name of whoever did it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client

from inspector.accounts.models import Membership, User
from inspector.audit.findings.services import set_rule, suppress
from inspector.audit.rules import RULES
from inspector.exports.services import ask_for_export, note_download, stop_export
from inspector.intake.models import Record
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.search.aids import forget_search, save_search
from inspector.threads.models import Message
from inspector.trail.models import DEEDS, Deed

from ..conftest import Cast, deliver, resolve_all

INSPECTOR = Path(__file__).parents[3] / "inspector"
LOG = b'{"from":"a","to":["b"],"p":"REQ","mid":"m1","cid":"c1","body":{"t":"task"}}'


def list_codes(cast: Cast) -> list[str]:
    return list(Deed.objects.filter(workspace=cast.workspace).order_by("sequence").values_list("code", flat=True))


def test_every_declared_deed_is_recorded_somewhere() -> None:
    source = "\n".join(
        path.read_text() for path in INSPECTOR.rglob("*.py") if path != INSPECTOR / "trail" / "models.py"
    )
    missing = [code for code in DEEDS if f'"{code}"' not in source]
    assert missing == []


def test_every_recorded_deed_is_declared() -> None:
    source = "\n".join(path.read_text() for path in INSPECTOR.rglob("*.py"))
    recorded = set(re.findall(r'record\w*\(\s*"([a-z-]+\.[a-z-]+)"', source))
    assert recorded
    assert recorded <= set(DEEDS)


def test_a_sentence_has_one_place_for_what_it_was_done_to() -> None:
    for kind in DEEDS.values():
        assert kind.did.count("{") == kind.did.count("{on}") <= 1


def test_each_kind_has_a_title_of_its_own() -> None:
    titles = [kind.title for kind in DEEDS.values()]
    assert len(set(titles)) == len(DEEDS)
    assert not [title for title in titles if "{" in title or "." in title or not title[0].isupper()]


def test_an_owner_acts_on_the_pages_under_their_own_name_and_address(
    cast: Cast, sign_in: Callable[[Membership], Client]
) -> None:
    client = sign_in(cast.owner)
    base = f"/w/{cast.workspace.slug}"
    first = len(list_codes(cast))
    invited = client.post(f"{base}/settings/members/", {"member-name": "nina", "member-role": "viewer"})
    assert invited.status_code == 302
    client.post(f"{base}/settings/members/{cast.viewer.pk}/", {"role": "auditor"})
    client.post(f"{base}/settings/members/{cast.viewer.pk}/remove/")
    client.post(f"{base}/settings/", {"name": "robot", "scopes": ["read"]})
    client.post("/sign-out/")
    deeds = list(Deed.objects.filter(workspace=cast.workspace).order_by("sequence")[first:])
    assert [deed.code for deed in deeds] == [
        "member.invited",
        "member.role-changed",
        "member.removed",
        "api-key.made",
        "account.signed-out",
    ]
    assert {(deed.actor_name, deed.address) for deed in deeds} == {("olivia", "127.0.0.1")}
    assert deeds[1].told == "olivia changed the role of the member “vera”"
    assert deeds[1].details == {"from": "viewer", "to": "auditor"}
    assert not re.search(r"aci_\w{20}", " ".join(f"{deed.told} {deed.details}" for deed in deeds))


def test_signing_in_is_in_the_trail_of_each_workspace_of_the_person(cast: Cast) -> None:
    user = User.objects.get(username="amir")
    user.set_password("correct horse battery")
    user.save()
    Client(REMOTE_ADDR="192.0.2.7").post("/sign-in/", {"username": "amir", "password": "correct horse battery"})
    deed = Deed.objects.get(code="account.signed-in")
    assert (deed.workspace_id, deed.actor_name, deed.address) == (cast.workspace.pk, "amir", "192.0.2.7")
    assert deed.details == {"by": "name and password"}


def test_what_an_auditor_does_is_recorded_with_its_objects(cast: Cast) -> None:
    delivery = deliver(cast, LOG)
    resolve_all()
    first = len(list_codes(cast))
    conversation = Message.objects.get().conversation
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="a test")
    take_back(membership=cast.auditor, delivery=delivery, reason="it was right")
    rule = next(iter(RULES))
    set_rule(membership=cast.owner, rule=rule, is_on=False, severity=None, reason="noise")
    suppress(membership=cast.auditor, rule=rule, conversation=conversation, sender="", reason="known")
    saved = save_search(membership=cast.auditor, name="mine", query="performative:REQ", is_shared=False)
    save_search(membership=cast.auditor, name="mine", query="performative:REQ", is_shared=True)
    forget_search(membership=cast.auditor, saved_id=saved.pk)
    export = ask_for_export(
        workspace=cast.workspace,
        form="jsonl",
        is_masked=False,
        membership=cast.auditor,
        conversation_id=conversation.pk,
    )
    note_download(export=export, door="page", by=cast.auditor.user)
    stop_export(export=export, membership=cast.auditor)
    assert list_codes(cast)[first:] == [
        "delivery.withdrawn",
        "delivery.taken-back",
        "rule.set",
        "finding.suppressed",
        "search.shared",
        "search.forgotten",
        "export.asked",
        "export.downloaded",
        "export.discarded",
    ]
    about = Deed.objects.filter(about__contains=[conversation.pk]).order_by("sequence")
    assert [deed.code for deed in about] == ["finding.suppressed", "export.asked", "export.downloaded"]


@pytest.mark.parametrize("role", ["auditor", "viewer"])
def test_exact_bytes_are_recorded_before_they_are_given(
    cast: Cast, sign_in: Callable[[Membership], Client], role: str
) -> None:
    deliver(cast, LOG)
    resolve_all()
    record = Record.objects.get()
    answer = sign_in(getattr(cast, role)).get(f"/w/{cast.workspace.slug}/records/{record.pk}/raw/")
    # Not a byte of it was read yet.
    deeds = list(Deed.objects.filter(code="raw.downloaded"))
    assert answer.status_code == 200
    # What a viewer is given holds no secret: that is known before.
    assert [deed.actor_name for deed in deeds] == (["amir"] if role == "auditor" else [])
    assert all(set(deed.about) >= {record.pk, Message.objects.get().pk} for deed in deeds)


def test_a_deed_goes_with_the_transaction_that_it_tells_of(cast: Cast) -> None:
    delivery = deliver(cast, LOG)
    resolve_all()
    before = list_codes(cast)

    def fail() -> None:
        with transaction.atomic():
            withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="a test")
            raise RuntimeError("as if the power had gone")

    with pytest.raises(RuntimeError):
        fail()
    assert list_codes(cast) == before
