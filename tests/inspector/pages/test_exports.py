"""The pages of exports: asked for where one stands, followed, downloaded by whoever may, and gone in time."""

from __future__ import annotations

import hashlib
import html
import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector.audit.findings.services import judge
from inspector.audit.models import Finding
from inspector.audit.samples import draw_sample
from inspector.exports.making import drop_expired
from inspector.exports.models import Export
from inspector.intake.models import Delivery, Job
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation
from inspector.trail.models import Deed
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in
from tests.inspector.exports.conftest import ask, make, read

from .conftest import page_of, shows


def follow(client: Client, page: str, words: str) -> tuple[str, dict[str, str]]:
    """What the form behind the link of these words shows, and the fields that it sends."""
    found = re.search(rf'href="([^"]+)">(?:<svg(?:(?!</svg>).)*</svg>)?{words}', client.get(page).content.decode())
    assert found is not None, words
    form = client.get(html.unescape(found[1])).content.decode()
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return form, {name: html.unescape(value) for name, value in hidden if name != "csrfmiddlewaretoken"}


def test_what_stands_on_a_page_is_exported_from_there(
    auditor: Client, story: Delivery, conversation: Conversation
) -> None:
    for page, words, title, count in (
        (page_of("search") + "?q=from:radar", "Export these", "from:radar", 2),
        (page_of("conversations") + "?agent=radar", "Export these", "Conversations with agent radar", 3),
        (page_of("conversation", conversation.pk), "Export", "", 3),
        (page_of("conversation-raw", conversation.pk), "Export", "", 3),
        # There are exports by now.
        (page_of("exports"), "New export", "To export less", 5),
    ):
        form, hidden = follow(auditor, page, words)
        assert title in form
        answer = auditor.post(page_of("new-export"), {**hidden, "form": "jsonl"})
        export = make(Export.objects.latest("asked_at"))
        assert answer["Location"] == page_of("export", export.pk)
        assert (export.messages, export.is_masked) == (count, True), page
        shown = auditor.get(answer["Location"]).content.decode()
        shows(shown, bytes(export.sha256 or b"").hex(), f"{count} listed = {count} messages + 0 withdrawn + 0 gone")


def test_the_findings_of_each_list_are_exported_from_there(
    auditor: Client, story: Delivery, conversation: Conversation
) -> None:
    for page, filters in (
        (page_of("findings"), {"state": "open"}),
        (
            page_of("findings") + "?order=worst&severity=warning&channel=main",
            {"severity": "warning", "channel": "main"},
        ),
        (page_of("findings") + "?rule=missing-message&state=all", {"rule": "missing-message", "state": ""}),
        (page_of("conversation-findings", conversation.pk), {"conversation": str(conversation.pk)}),
    ):
        form, hidden = follow(auditor, page, "Export findings")
        assert "Findings of the list" in form
        answer = auditor.post(page_of("new-export"), {**hidden, "form": "csv"})
        export = make(Export.objects.latest("asked_at"))
        assert answer["Location"] == page_of("export", export.pk)
        assert (export.subject, export.is_masked) == ("findings", True)
        assert export.filters == {"state": "open"} | filters, page
    assert Export.objects.filter(rows__gt=0).count() > 1
    for wrong in ("rule=none", "channel=none", "delivery=x", f"conversation={story.pk}"):
        assert auditor.get(f"{page_of('new-export')}?findings=1&{wrong}").status_code == 404, wrong


def test_the_file_and_its_manifest_prove_each_other(auditor: Client, cast: Cast, story: Delivery) -> None:
    export = make(ask(cast))
    response = auditor.get(page_of("export-file", export.pk))
    data = b"".join(response)
    manifest = auditor.get(page_of("export-manifest", export.pk)).json()
    assert manifest["sha256"] == hashlib.sha256(data).hexdigest()
    assert manifest["size_bytes"] == len(data) == int(response["Content-Length"])
    assert response["Content-Disposition"] == f'attachment; filename="{manifest["file_name"]}"'
    assert response["X-Content-Type-Options"] == "nosniff"
    export.refresh_from_db()
    assert export.downloads == 1


def test_a_viewer_gets_masked_files_alone(viewer: Client, cast: Cast, story: Delivery) -> None:
    exact = make(ask(cast))
    assert viewer.get(page_of("export-file", exact.pk)).status_code == 403
    assert "only owners and auditors may download it" in viewer.get(page_of("export", exact.pk)).content.decode()
    assert viewer.post(page_of("stop-export", exact.pk)).status_code == 403
    form, hidden = follow(viewer, page_of("search") + "?q=from:radar", "Export these")
    assert "Secrets are masked" in form
    viewer.post(page_of("new-export"), {**hidden, "form": "csv", "has_mark": "1"})
    masked = make(Export.objects.latest("asked_at"))
    assert (masked.is_masked, masked.has_mark) == (True, True)
    assert b"".join(viewer.get(page_of("export-file", masked.pk))).startswith(b"\xef\xbb\xbfinspector.id,")
    exact.refresh_from_db()
    assert exact.downloads == 0


def test_what_is_asked_wrongly_says_why(auditor: Client, cast: Cast, story: Delivery) -> None:
    new = page_of("new-export")
    refused = auditor.post(new, {"q": "nothing:here", "form": "csv"})
    assert refused.status_code == 422
    assert b"The search cannot be exported" in refused.content
    assert auditor.post(new, {"q": "a", "form": "xlsx"}).status_code == 422
    for wrong in ("conversation=x", f"conversation={cast.workspace.pk}"):
        assert auditor.get(f"{new}?{wrong}").status_code == 404
    for _ in range(5):
        ask(cast)
    busy = auditor.post(new, {"q": "", "form": "csv"})
    assert busy.status_code == 409
    assert b"5 exports are under way" in busy.content


def test_how_far_it_is_is_asked_again_until_it_is_done(auditor: Client, cast: Cast, story: Delivery) -> None:
    export = ask(cast)
    address = page_of("export-progress", export.pk)
    for page in (page_of("export", export.pk), page_of("exports"), address):
        assert f'hx-get="{address}"' in auditor.get(page).content.decode()
    Job.objects.filter(kind=Job.Kind.EXPORT).update(state=Job.State.DEAD, failure="MemoryError")
    shown = auditor.get(page_of("export", export.pk)).content.decode()
    shows(shown, "It could not be finished", "MemoryError")
    letters = auditor.get(page_of("dead-letters")).content.decode()
    assert page_of("export", export.pk) in letters
    auditor.post(page_of("retry-dead-letters"))
    make(export)
    assert auditor.get(address)["HX-Refresh"] == "true"


def test_a_report_opens_when_it_is_ready_where_somebody_waits_for_it(
    auditor: Client, cast: Cast, story: Delivery
) -> None:
    conversation = Conversation.objects.latest("message_count")
    answer = auditor.post(page_of("new-export"), {"conversation": str(conversation.pk), "form": "html"})
    assert answer.status_code == 302
    export = Export.objects.latest("asked_at")
    address, own = page_of("export-progress", export.pk), page_of("export", export.pk)
    assert "HX-Redirect" not in auditor.get(address, headers={"HX-Current-URL": f"http://testserver{own}"})
    make(export)
    ready = auditor.get(address, headers={"HX-Current-URL": f"http://testserver{own}"})
    assert ready["HX-Redirect"] == f"{page_of('export-file', export.pk)}?open"
    opened = auditor.get(ready["HX-Redirect"])
    assert opened["Content-Disposition"].startswith("inline")
    listed = auditor.get(address, headers={"HX-Current-URL": f"http://testserver{page_of('exports')}"})
    assert listed["HX-Refresh"] == "true"


def test_the_list_costs_the_same_whatever_is_in_it(auditor: Client, cast: Cast, story: Delivery) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert auditor.get(page_of("exports")).status_code == 200
        return len(caught)

    ask(cast)
    before = count()
    for _ in range(4):
        ask(cast)
    assert count() == before


def test_a_file_whose_time_is_over_is_gone_and_its_entry_stays(auditor: Client, cast: Cast, story: Delivery) -> None:
    export = make(ask(cast, query="from:radar", title="from:radar"))
    Export.objects.update(expires_at=timezone.now())
    drop_expired()
    assert auditor.get(page_of("export-file", export.pk))["Location"] == page_of("export", export.pk)
    assert "There is no file any more" in auditor.get(page_of("export", export.pk)).content.decode()
    assert "from:radar" in auditor.get(page_of("exports")).content.decode()
    again = auditor.post(page_of("stop-export", export.pk), follow=True)
    assert "Nothing was changed" in again.content.decode()


@pytest.mark.parametrize("state", ["writing", "done"])
def test_it_is_stopped_by_a_button(auditor: Client, cast: Cast, story: Delivery, state: str) -> None:
    export = ask(cast) if state == "writing" else make(ask(cast))
    shown = auditor.get(page_of("export", export.pk)).content.decode()
    assert ("Remove the file" if state == "done" else "Cancel</button>") in shown
    auditor.post(page_of("stop-export", export.pk))
    export.refresh_from_db()
    assert export.state == ("removed" if state == "done" else "cancelled")


def test_a_report_masks_secrets_unless_they_are_asked_for(auditor: Client, viewer: Client, cast: Cast) -> None:
    token = "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    said = {"clowl": "0.2", "mid": "m1", "ts": 1795118400, "p": "INF", "from": "oscar", "to": "radar", "cid": "leak"}
    take_in(cast, json.dumps({**said, "body": {"t": "note", "d": {"text": token}}}).encode() + b"\n")
    conversation = Conversation.objects.get(native_id="leak")
    new, asked = page_of("new-export"), {"conversation": str(conversation.pk), "form": "html"}

    shown = auditor.get(new, asked).content.decode()
    shows(shown, "Include secrets: found in 1 message", 'name="include_secrets"')
    assert "checked" not in re.findall(r'<input[^>]*name="include_secrets"[^>]*>', shown)[0]
    assert 'name="include_secrets"' not in viewer.get(new, asked).content.decode()

    auditor.post(new, asked)
    masked = make(Export.objects.latest("asked_at"))
    auditor.post(new, {**asked, "include_secrets": "on"})
    exact = make(Export.objects.latest("asked_at"))
    viewer.post(new, {**asked, "include_secrets": "on"})
    forced = make(Export.objects.latest("asked_at"))
    assert [token in read(each).decode() for each in (masked, exact, forced)] == [False, True, False]
    assert "Secrets are included" in read(exact).decode()
    assert "Secrets are masked" in read(masked).decode()
    manifests = [auditor.get(page_of("export-manifest", each.pk)).json() for each in (masked, exact)]
    assert [each["include_secrets"] for each in manifests] == [False, True]
    deeds = Deed.objects.filter(code="export.asked").order_by("pk")
    assert [deed.details["include_secrets"] for deed in deeds] == [False, True, False]


def test_every_export_says_how_many_secrets_it_may_include(
    auditor: Client, viewer: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def say(mid: str, conversation: str, text: str) -> bytes:
        said = {"clowl": "0.2", "mid": mid, "ts": 1795118400, "p": "INF", "from": "oscar", "to": "radar"}
        return json.dumps(said | {"cid": conversation, "body": {"t": "note", "d": {"text": text}}}).encode() + b"\n"

    token = "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7d"
    deliver(cast, say("a1", "a", f"{token}a"), say("a2", "a", f"{token}b, {token}c"), say("b1", "b", f"{token}d"))
    deliver(cast, say("c1", "c", "tea"), name="calm.log")
    gone = take_in(cast, say("d1", "d", f"{token}e"), name="gone.log")
    withdraw_delivery(delivery=gone, membership=cast.owner, reason="wrong file")
    resolve_all()
    leaks = Finding.objects.filter(rule="token-in-clear")
    judge(
        membership=cast.auditor, findings=[leaks.get(conversation__native_id="b").pk], state="fixed", reason="revoked"
    )
    pks = {name: str(Conversation.objects.get(native_id=name).pk) for name in "abc"}
    sample = draw_sample(membership=cast.auditor, name="all", stratum="pair", wanted=3, seed="s")

    def ask_of(client: Client, **asked: str) -> str:
        shown = client.get(page_of("new-export"), asked).content.decode()
        assert 'type="radio"' in shown
        return " ".join(re.findall(r"Include secrets[^<]*", shown))

    cases: tuple[tuple[dict[str, str], int], ...] = (
        ({}, 3),
        ({"q": "conversation:a"}, 2),
        ({"q": "conversation:c"}, 0),
        ({"conversation": pks["a"]}, 2),
        ({"conversation": pks["c"]}, 0),
        ({"conversations": "1"}, 3),
        ({"conversations": "1", "agent": "nobody"}, 0),
        ({"findings": "1", "rule": "token-in-clear"}, 2),
        ({"findings": "1", "rule": "token-in-clear", "state": "all"}, 3),
        ({"sample": str(sample.pk)}, 3),
    )
    wrong = []
    for asked, count in cases:
        words = "none found" if not count else f"found in {count} messages"
        if ask_of(auditor, **asked) != f"Include secrets: {words}":
            wrong.append((asked, ask_of(auditor, **asked)))
        assert ask_of(viewer, **asked) == ""
    assert not wrong
    assert ask_of(auditor, q="nonsense:1") == "Include secrets"
    with CaptureQueriesContext(connection) as captured:
        ask_of(auditor)
    assert len([each for each in captured.captured_queries if "token-in-clear" in each["sql"]]) == 1
    monkeypatch.setattr("inspector.exports.selectors.MAX_COUNTED", 2)
    assert ask_of(auditor) == "Include secrets: found in 2+ messages"
