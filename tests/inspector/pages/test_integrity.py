"""The page Integrity: who sees it, what it says of a ledger that holds and of one that does not, and what it gives."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from django.test import Client

from inspector import pipeline
from inspector.accounts.models import Membership
from inspector.audit.models import Review
from inspector.audit.reviews.verdicts import give_verdict
from inspector.intake.models import Delivery, Job
from inspector.ledger.models import LedgerCheckpoint
from inspector.ledger.notes import read_note
from inspector.ledger.proofs import get_checkpoint
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Conversation, Message
from inspector.trail.models import Deed

from ..conftest import Cast, deliver
from ..exports.conftest import ask, make, read
from ..ledger.test_ledger import as_superuser
from .conftest import page_of, shows

URL = "/w/acme/integrity/"
SignIn = Callable[[Membership], Client]


@pytest.fixture
def signed(cast: Cast, conversation: Conversation) -> Review:
    """A verdict on the story, entered and signed."""
    seen = bytes(conversation.settled_digest or b"")
    review = give_verdict(membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=seen)
    enter_new(at_once=True)
    return review


def find_index(client: Client, of: object) -> int:
    found = client.get(URL, {"entry": str(of)}).context["found"]
    assert len(found) == 1
    return int(found[0]["index"])


def verify(client: Client) -> str:
    assert client.post(URL + "verify/").status_code == 302
    assert "<strong>Verifying</strong>" in client.get(URL).content.decode()
    assert pipeline.run_due(seconds=60, only=(Job.Kind.VERIFY,)) == 1
    return client.get(URL).content.decode()


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("auditor", 200), ("viewer", 403), ("stranger", 404)])
def test_it_is_for_owners_and_auditors(cast: Cast, signed: Review, sign_in: SignIn, role: str, status: int) -> None:
    client = sign_in(getattr(cast, role))
    assert client.get(URL).status_code == status
    assert client.get(URL + "bundle.zip").status_code == status
    assert client.post(URL + "verify/").status_code == (302 if status == 200 else status)
    assert Job.objects.filter(kind=Job.Kind.VERIFY).exists() is (status == 200)
    # A verdict, which everybody reads, carries its checkpoint.
    for name in ("checkpoint.txt", "checkpoint.svg"):
        assert client.get(URL + name).status_code == (404 if role == "stranger" else 200)
    assert (URL in client.get("/w/acme/overview/").content.decode()) is (status == 200)


def test_before_the_first_checkpoint_it_says_so(cast: Cast, owner: Client) -> None:
    page = owner.get(URL).content.decode()
    shows(page, "No checkpoint yet", never=["Verify now"])
    assert owner.get(URL + "checkpoint.txt").status_code == 404
    assert owner.get(URL + "bundle.zip")["Location"] == URL
    assert "no checkpoint yet" in owner.get(URL).content.decode()
    assert not Deed.objects.filter(code="bundle.made").exists()


def test_it_shows_the_latest_checkpoint_and_how_to_verify_it(cast: Cast, signed: Review, auditor: Client) -> None:
    checkpoint = get_checkpoint(cast.workspace.pk)
    assert checkpoint
    page = auditor.get(URL).content.decode()
    shows(
        page,
        f"<strong>{checkpoint.size} entries</strong>",
        "<strong>0 entries</strong>everything entered is signed",
        f"python verify_bundle.py proof-acme-{checkpoint.size}.zip --key 'inspector-",
        "Not verified yet",
    )
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)
    assert auditor.get(URL)["Content-Security-Policy"].startswith("default-src 'none'")


def test_checkpoints_are_listed_page_by_page_and_each_is_given(cast: Cast, signed: Review, auditor: Client) -> None:
    latest = get_checkpoint(cast.workspace.pk)
    assert latest
    LedgerCheckpoint.objects.bulk_create(
        LedgerCheckpoint(workspace=cast.workspace, size=1000 + number, root=bytes(32), note="n") for number in range(25)
    )
    seen, address = [], URL
    while address:
        context = auditor.get(address).context
        seen += [size for size, *_ in context["checkpoints"]]
        address = context["older_url"] and URL + context["older_url"]
    assert seen == [*range(1024, 999, -1), latest.size]
    response = auditor.get(URL + "checkpoint.txt", {"size": str(latest.size)})
    assert response["Content-Disposition"] == f'attachment; filename="checkpoint-acme-{latest.size}.txt"'
    assert read_note(response.content.decode()).checkpoint.root == bytes(latest.root)
    assert auditor.get(URL + "checkpoint.txt", {"size": "7777"}).status_code == 404


def test_a_worker_verifies_and_the_page_says_that_all_holds(signed: Review, auditor: Client) -> None:
    page = verify(auditor)
    shows(page, "Everything is as it was entered and signed", never=['data-severity="error"'])


def test_what_does_not_match_is_named_by_its_entry(signed: Review, auditor: Client) -> None:
    index = find_index(auditor, signed.pk)
    with as_superuser() as cursor:
        cursor.execute("UPDATE audit_review SET verdict = 'violation'")
    page = verify(auditor)
    assert "1 problem found" in page
    assert re.search(
        rf'<a href="\?entry={index}">Entry {index}</a>, verdict <code class="hash">{signed.pk}</code>', page
    )
    assert "Not proven." in auditor.get(URL, {"entry": str(index)}).content.decode()
    with as_superuser() as cursor:
        cursor.execute("UPDATE audit_review SET verdict = 'fine'")
    assert "Everything is as it was entered and signed" in verify(auditor)


def test_a_kept_checkpoint_is_compared(cast: Cast, signed: Review, auditor: Client) -> None:
    kept = get_checkpoint(cast.workspace.pk)
    assert kept

    def compare(text: str) -> str:
        response = auditor.post(URL + "compare/", {"kept": text})
        page = response.content.decode()
        assert response.status_code == (200 if "The ledger continues it." in page else 422)
        return page

    assert f"Its {kept.size} entries are the first ones" in compare(kept.note.replace("\n", "\r\n").strip())
    deliver(cast, b'{"raw": "one more"}\n')
    enter_new(at_once=True)
    assert f"Its {kept.size} entries are the first ones" in compare(kept.note)
    for text in ("", "x", "<b>\n1\nA\n\n— n AAAA\n", "\x00" * 100, kept.note.replace(f"\n{kept.size}\n", "\n1\n")):
        assert "The ledger does not continue it" in compare(text)
    with as_superuser() as cursor:
        cursor.execute("UPDATE ledger_ledgerentry SET leaf_hash = sha256('other') WHERE kind = 'verdict'")
    assert "was changed, removed, inserted or moved" in compare(kept.note)
    with as_superuser() as cursor:
        cursor.execute("DELETE FROM ledger_ledgerentry WHERE index > 3")
    assert "only 4 entries are there: the ledger was cut or rolled back" in compare(kept.note)


@pytest.mark.parametrize("note", ["", "x", "a\n\n", "x" * 20_000, "<script>\n1\n</script>\n\n— n AAAAAAAA\n"])
def test_a_ledger_that_was_tampered_with_is_shown_and_given_as_it_is(
    signed: Review, auditor: Client, note: str
) -> None:
    with as_superuser() as cursor:
        cursor.execute("UPDATE ledger_ledgercheckpoint SET note = %s", [note])
        cursor.execute("UPDATE ledger_ledgerentry SET kind = 'other' WHERE index = 3")
    assert "<script>" not in auditor.get(URL, {"entry": "3"}).content.decode()
    assert "its row was deleted" in auditor.get(URL, {"entry": "3"}).content.decode()
    assert "is damaged" in verify(auditor)
    assert auditor.get(URL + "checkpoint.txt").content.decode() == note
    assert auditor.get(URL + "checkpoint.svg").status_code == 200
    data = b"".join(auditor.get(URL + "bundle.zip").streaming_content)  # type: ignore[arg-type]
    entries = zipfile.ZipFile(io.BytesIO(data)).read("entries.jsonl").splitlines()
    assert json.loads(entries[3])["leaf"] is None
    assert auditor.get(page_of("conversation", signed.conversation_id)).status_code == 200


def test_an_entry_is_found_by_its_number_or_its_row(signed: Review, auditor: Client) -> None:
    index = find_index(auditor, signed.pk)
    page = auditor.get(URL, {"entry": str(index)}).content.decode()
    shows(page, "<strong>Proven.</strong>", f'verdict <code class="hash">{signed.pk}</code>')
    for nothing in ("99999", "no such", "9" * 400, "-1", "\x00", "<b>"):
        assert "No entry of that number or id." in auditor.get(URL, {"entry": nothing}).content.decode()


def test_what_is_of_another_workspace_is_not_found(cast: Cast, signed: Review, sign_in: SignIn) -> None:
    stranger = sign_in(cast.stranger)
    page = stranger.get("/w/other/integrity/", {"entry": str(signed.pk)}).content.decode()
    assert "No entry of that number or id." in page


def test_a_message_and_a_verdict_name_their_entries(
    cast: Cast, signed: Review, auditor: Client, viewer: Client
) -> None:
    message = Message.objects.get(native_id="m1")
    address = page_of("message", message.pk)
    index = find_index(auditor, message.record_id)
    words = f"Entry {index} of the ledger"
    assert f'<a href="{URL}?entry={index}">{words}</a>, in the checkpoint of' in auditor.get(address).content.decode()
    seen = viewer.get(address).content.decode()
    shows(seen, words, never=[URL])
    checkpoint = get_checkpoint(cast.workspace.pk)
    assert checkpoint
    page = viewer.get(page_of("conversation", signed.conversation_id)).content.decode()
    shows(
        page,
        f"Entry {find_index(auditor, signed.pk)} of the ledger, in the checkpoint of {checkpoint.size}",
        f"{URL}checkpoint.svg?size={checkpoint.size}",
    )


def test_what_is_not_entered_yet_says_so(story: Delivery, auditor: Client) -> None:
    message = Message.objects.get(native_id="m1")
    assert "not in the ledger yet" in auditor.get(page_of("message", message.pk)).content.decode()


def test_the_code_is_a_drawing_and_nothing_else(signed: Review, auditor: Client) -> None:
    response = auditor.get(URL + "checkpoint.svg")
    assert response["Content-Type"] == "image/svg+xml"
    drawing = ElementTree.fromstring(response.content)
    assert {each.tag.rpartition("}")[2] for each in drawing.iter()} == {"svg", "path"}
    assert not [
        name for each in drawing.iter() for name in each.attrib if name not in ("viewBox", "d", "fill", "stroke")
    ]


def test_a_bundle_comes_as_a_file_and_leaves_a_trace(
    cast: Cast, signed: Review, auditor: Client, viewer: Client
) -> None:
    address = page_of("conversation-bundle", signed.conversation_id)
    for client, given, is_exact in (
        (auditor, {}, False),
        (auditor, {"exact": ""}, True),
        (viewer, {"exact": ""}, False),
    ):
        response = client.get(address, given)
        data = b"".join(response.streaming_content)  # type: ignore[arg-type]
        assert response["Content-Disposition"].startswith('attachment; filename="proof-conversation-')
        assert response["Cache-Control"] == "no-store, private"
        assert ("records.bin" in zipfile.ZipFile(io.BytesIO(data)).namelist()) is is_exact
        deed = Deed.objects.filter(code="bundle.made").latest("sequence")
        assert deed.details["include_secrets"] is is_exact
        assert deed.about == [signed.conversation_id]
    assert Deed.objects.filter(code="bundle.made").count() == 3


def test_a_report_carries_the_checkpoint_and_names_each_verdicts_entry(
    cast: Cast, signed: Review, auditor: Client
) -> None:
    checkpoint = get_checkpoint(cast.workspace.pk)
    assert checkpoint
    report = read(make(ask(cast, conversation_id=signed.conversation_id, form="html"))).decode()
    shows(
        report,
        f"entry {find_index(auditor, signed.pk)}</dd>",
        f"<pre>{checkpoint.note}</pre>",
        '<div class="code"><svg viewBox=',
    )
