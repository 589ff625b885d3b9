"""The upload as a person meets it: a beginning told, choices, a decision, progress, an exact end."""

from __future__ import annotations

import gzip
import uuid
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from inspector.intake.models import Delivery, Job, Record
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, resolve_all, take_in

from .conftest import STORY, page_of, shows, text

SLUG = "acme"
HTMX = {"HX-Request": "true"}
UPLOAD = f"/w/{SLUG}/upload/"
CHOICES = dict.fromkeys(("dialect", "start", "first", "second"), "") | {
    "channel": "main",
    "has_prefixes": "on",
    "who": "unknown",
}


def send(client: Client, *files: tuple[str, bytes], **said: Any) -> Any:
    headers = said.pop("headers", {})
    logs = [SimpleUploadedFile(name, data) for name, data in files]
    return client.post(UPLOAD, {"logs": logs, "channel": "main", "has_prefixes": "on", **said}, headers=headers)


def stage(client: Client, data: bytes, name: str = "a.log", **said: Any) -> str:
    """The address of a file that was sent up without script."""
    response = send(client, (name, data), **said)
    assert response.status_code == 302, response.content
    return str(response["Location"])


def decide(client: Client, address: str, action: str = "read", **said: str) -> Any:
    headers = said.pop("headers", {})
    return client.post(address, CHOICES | said | {"action": action}, headers=headers)


def test_the_beginning_is_told_and_nothing_is_in_the_log(auditor: Client, cast: Cast) -> None:
    page = text(auditor.get(stage(auditor, STORY)))
    shows(
        page,
        "oscar",
        "The first 5 records: CLowl 3 · nSLIP 2",
        "an object with CLowl&#x27;s version key",
        "5 records in all: 5 new, 0 duplicate, 0 quarantined",
        "1 is not fully readable",
    )
    assert not Record.objects.exists()
    assert not Job.objects.exists()
    assert "Nothing was delivered yet" in text(auditor.get(page_of("deliveries")))


def test_without_script_it_is_two_steps_to_the_receipt(auditor: Client, cast: Cast) -> None:
    address = stage(auditor, gzip.compress(STORY), "a.log.gz")
    response = decide(auditor, address, "load")
    delivery = Delivery.objects.get()
    assert response["Location"] == page_of("delivery", delivery.pk)
    resolve_all()
    page = text(auditor.get(response["Location"]))
    shows(page, "5 received = 5 stored + 0 duplicate + 0 quarantined", "unpacked from gzip", "Import started")
    assert auditor.get(address)["Location"] == response["Location"]
    assert decide(auditor, address, "load")["Location"] == response["Location"]


def test_with_script_the_card_is_read_again_at_each_choice(auditor: Client, cast: Cast) -> None:
    response = send(auditor, ("a.log", b"!nd hb ok\nall is well\n"), headers=HTMX)
    assert response.status_code == 201
    delivery = Delivery.objects.get()
    address = page_of("staged", delivery.pk)
    assert f'hx-post="{address}"' in text(response)
    again = decide(auditor, address, dialect="nslip", headers=HTMX)
    assert again.status_code == 200
    assert "chosen by the sender of the delivery" in text(again)
    assert "nSLIP 2" in text(again)
    progress = decide(auditor, address, "load", dialect="nslip", headers=HTMX)
    assert "hx-get" in text(progress)
    assert "Splitting into records" in text(progress)
    resolve_all()
    assert set(Message.objects.values_list("dialect", flat=True)) == {"nslip"}
    page = text(auditor.get(page_of("delivery", delivery.pk)))
    assert "every record read as nSLIP" in page


def test_who_speaks_is_asked_where_nothing_says_so(auditor: Client, cast: Cast) -> None:
    asked = stage(auditor, b"All is well.\nIs it?\n")
    page = text(auditor.get(asked))
    assert "In 2 records of these nothing says who speaks" in page
    assert "Someone" in page or "someone" in page
    told = text(decide(auditor, asked, who="two", first="oscar", second="radar", headers=HTMX))
    assert told.count(">oscar</bdi>") == 2
    assert told.count(">radar</bdi>") == 2
    said = text(auditor.get(stage(auditor, STORY[: STORY.index(b"@a3")], "said.log")))
    shows(said, never=["nothing says who speaks", "data-asks"])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"who": "one"}, "Name who speaks"),
        ({"who": "two", "first": "oscar", "second": "oscar"}, "Both have the same name"),
        ({"who": "two", "first": "oscar"}, "Name who speaks"),
        ({"start": "2199-01-01T00:00"}, "not in the future"),
        ({"channel": "\u200b"}, "printable characters"),
        ({"dialect": "klingon"}, "valid choice"),
    ],
)
def test_a_choice_that_cannot_be_says_why_and_changes_nothing(
    auditor: Client, cast: Cast, said: dict[str, str], words: str
) -> None:
    address = stage(auditor, b"All is well.\n")
    response = decide(auditor, address, "load", **said)
    assert response.status_code == 422
    assert words in text(response) or said.get("dialect")
    assert Delivery.objects.get().state == Delivery.State.STAGED
    # htmx shows nothing of a refusal: the whole card comes as an answer, and again once it is right.
    for change in (said, {"had_errors": "1"}):
        answer = decide(auditor, address, "load" if change is said else "read", **change, headers=HTMX)
        assert (answer.status_code, answer["HX-Retarget"]) == (200, f"#staged-{Delivery.objects.get().pk}")


def test_a_name_may_still_be_missing_while_it_is_typed(auditor: Client, cast: Cast) -> None:
    address = stage(auditor, b"All is well.\n")
    page = text(decide(auditor, address, who="two", first="oscar", headers=HTMX))
    shows(page, 'value="two"', never=["Name who speaks"])
    assert Delivery.objects.get().options["speakers"] == []


def test_the_start_is_in_the_zone_of_the_reader(auditor: Client, cast: Cast) -> None:
    user = cast.auditor.user
    user.time_zone = "Asia/Tokyo"
    user.save()
    address = stage(auditor, b"All is well.\n")
    assert 'value="2026-03-01T09:00"' in text(decide(auditor, address, start="2026-03-01T09:00"))
    decide(auditor, address, "load", start="2026-03-01T09:00")
    resolve_all()
    assert Message.objects.get().order_time.isoformat() == "2026-03-01T00:00:00+00:00"


def test_several_files_without_script_wait_and_are_loaded_together(auditor: Client, cast: Cast) -> None:
    response = send(auditor, ("a.log", b"all is well\n"), ("b.log", b"so it is\n"))
    assert response["Location"] == UPLOAD
    page = text(auditor.get(UPLOAD))
    assert "2 files, not yet in the log" in page
    auditor.post(f"{UPLOAD}waiting/", {"action": "load"})
    resolve_all()
    assert sorted(Delivery.objects.values_list("file_name", "stored")) == [("a.log", 1), ("b.log", 1)]
    assert "Waiting for your decision" not in text(auditor.get(UPLOAD))


def test_thrown_away_nothing_is_kept(auditor: Client, cast: Cast) -> None:
    address = stage(auditor, b"all is well\n")
    assert "was discarded" in text(decide(auditor, address, "discard", headers=HTMX))
    send(auditor, ("a.log", b"1"), ("b.log", b"2"))
    auditor.post(f"{UPLOAD}waiting/", {"action": "discard"})
    assert not Delivery.objects.exists()
    assert auditor.get(address).status_code == 404


def test_what_is_staged_is_its_sender_s_alone(auditor: Client, owner: Client, cast: Cast, token: str) -> None:
    address = stage(auditor, b"all is well\n")
    assert owner.get(address).status_code == 404
    assert decide(owner, address, "load").status_code == 404
    assert "Waiting for your decision" not in text(owner.get(UPLOAD))
    delivery = Delivery.objects.get()
    assert owner.get(page_of("delivery", delivery.pk)).status_code == 404
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().get(f"/api/v1/deliveries/{delivery.pk}", headers=headers).status_code == 404


def test_an_unknown_file_is_not_found(auditor: Client, cast: Cast) -> None:
    assert auditor.get(page_of("staged", uuid.uuid4())).status_code == 404


def test_secrets_are_masked_in_the_preview(auditor: Client, cast: Cast) -> None:
    secret = "s3cr3t-" + "x" * 40
    log = (
        b'{"clowl":"0.2","mid":"m1","p":"REQ","from":"a","to":"b","auth":"' + secret.encode() + b'","body":{"t":"x"}}\n'
    )
    page = text(auditor.get(stage(auditor, log)))
    shows(page, "masked", never=[secret])


def test_hostile_text_is_inert(auditor: Client, cast: Cast) -> None:
    page = text(auditor.get(stage(auditor, b"<script>alert(1)</script>\n", "<img src=x onerror=alert(1)>.log")))
    shows(page, never=["<script>alert", "<img src=x"])


@pytest.mark.usefixtures("resolved_apart")
def test_done_is_said_only_when_everything_is_settled(auditor: Client, cast: Cast) -> None:
    decide(auditor, stage(auditor, STORY), "load")
    delivery = Delivery.objects.get()
    address = page_of("progress", delivery.pk)
    seen = []
    from inspector import pipeline

    for kind in (None, Job.Kind.FRAME, Job.Kind.INGEST, Job.Kind.RESOLVE, Job.Kind.EXAMINE):
        if kind == Job.Kind.EXAMINE:
            resolve_all()
        elif kind:
            pipeline.run_due(only=(kind,))
        page = text(auditor.get(address))
        seen.append(page[page.index('aria-current="step">') + 20 :].split("<")[0] if "aria-current" in page else "end")
        assert ('data-state="done"' in page) == (kind == Job.Kind.EXAMINE)
    assert seen == ["Splitting into records", "Decoding", "Building threads", "Checking by rules", "end"]


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\xff\xfe broken\n", "nothing in it is text"), (b"", "there was no record in it")],
)
def test_without_a_single_record_stored_no_green_tick_is_shown(
    auditor: Client, cast: Cast, data: bytes, words: str
) -> None:
    delivery = take_in(cast, data)
    page = text(auditor.get(page_of("delivery", delivery.pk)))
    shows(page, words, never=['data-state="done"'])
    listed = text(auditor.get(page_of("deliveries")))
    assert 'data-state="done"' not in listed
    # The list calls what has no text as its column and the receipt do.
    assert ("quarantined</span>" in listed) == bool(data)


def test_the_preview_warns_before_anything_is_loaded(auditor: Client, cast: Cast) -> None:
    address = stage(auditor, b'{"raw": "a", "sender": "x"}\n' * 3 + b"{'raw': 'b'}\n", "a.jsonl")
    page = text(auditor.get(address))
    assert "4 warnings: likely not as it was meant" in page
    assert page.count("Write <code>from</code> instead of <code>sender</code>") == 1
    assert "Line 4: The object has single quotes" in page
