"""The list of conversations: what each is called, how many there are, and what an address asks for in vain."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from inspector.audit.findings.selectors import count_open_in, survey_conversations, survey_findings, tell_findings
from inspector.exports.models import Export
from inspector.pages.conversations import views
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, take_in

pytestmark = pytest.mark.django_db
LIST = "/w/acme/conversations/"
ASKED = (
    '{{"clowl":"0.2","mid":"{0}","ts":{1},"p":"INF","from":"ann","to":"bob","cid":"{0}","body":{{"t":"x","d":{{}}}}}}'
)


def send(cast: Cast, *ids: str) -> None:
    take_in(cast, "\n".join(ASKED.format(name, 1795248000 + at) for at, name in enumerate(ids)).encode())


def test_a_conversation_whose_id_is_a_number_is_called_by_its_first_sentence(cast: Cast, viewer: Client) -> None:
    send(cast, "11", "night-run")
    Conversation.objects.update(title="", subject="")
    page = viewer.get(LIST).content.decode()
    titles = re.findall(r"data-open>([^<]+)</a>(?: <bdi[^>]*>([^<]+)</bdi>)?", page)
    assert [each for each in titles if each[1]] == [(titles[1][0], "11")]
    assert titles[1][0].startswith("ann informs bob")
    assert titles[0] == ("night-run", "")


def test_the_palette_calls_it_the_same(cast: Cast, viewer: Client) -> None:
    send(cast, "11")
    Conversation.objects.update(title="", subject="")
    title = viewer.get(LIST).context["rows"][0]["title"]
    items = viewer.get("/w/acme/palette/").json()["items"]
    assert [each["title"] for each in items if each["kind"] == "conversation"] == [f"{title} 11"]


def test_a_report_is_one_click_and_masked(cast: Cast, viewer: Client) -> None:
    send(cast, "night-run")
    conversation = Conversation.objects.get(native_id="night-run")
    page = viewer.get(f"{LIST}{conversation.pk}/").content.decode()
    form = re.search(r'<form method="post" action="(/w/acme/exports/new/)">(.*?)</form>', page, re.DOTALL)
    assert form is not None
    fields = dict(re.findall(r'type="hidden" name="(conversation|form)" value="([^"]+)"', form[2]))
    answer = viewer.post(form[1], fields)
    assert answer.status_code == 302
    export = Export.objects.get()
    assert (export.form, export.is_masked, export.conversation_id) == ("html", True, conversation.pk)


def test_the_list_says_how_many_there_are(cast: Cast, viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    send(cast, "a", "b", "c")
    monkeypatch.setattr(views, "PAGE_ROWS", 2)
    assert viewer.get(LIST).context["count"] == 3
    assert viewer.get(LIST + "?agent=nobody").context["count"] == 0
    monkeypatch.setattr(views, "PAGE_ROWS", 3)
    assert viewer.get(LIST).context["count"] == 3


@pytest.mark.parametrize("address", [LIST, "/w/acme/traces/"])
def test_a_filter_that_is_unknown_is_named_and_never_silent(cast: Cast, viewer: Client, address: str) -> None:
    send(cast, "a")
    page = viewer.get(address, {"state": "openn", "colour": "red", "dialect": "clowl"}).content.decode()
    told = re.search(r'role="status">(.*?)</p>', page, re.DOTALL)
    assert told is not None
    assert re.findall(r"<code>(.*?)</code>", told[1]) == ["colour:", "state:openn"]
    assert "Unknown filter" not in viewer.get(address, {"state": "open", "dialect": "clowl"}).content.decode()


def test_each_severity_of_the_open_findings_is_counted(cast: Cast, viewer: Client) -> None:
    token = "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    said = {"clowl": "0.2", "ts": 1795118400, "p": "INF", "from": "oscar", "to": "radar", "cid": "mixed"}
    named = {"m1": (token, None), "m2": ("tea", "lost"), "m3": ("tea", "gone")}
    lines = (
        json.dumps(said | {"mid": mid, "pid": parent, "body": {"t": "note", "d": {"text": text}}})
        for mid, (text, parent) in named.items()
    )
    take_in(cast, "\n".join(lines).encode())
    conversation = Conversation.objects.get(native_id="mixed")
    pks = [conversation.pk]
    expected = {4: 1, 2: 2}
    for counted in (
        count_open_in(conversation_ids=pks),
        survey_conversations(conversation_ids=pks)[0],
        survey_findings(conversation=conversation, beside=[], limit=1)[0],
        {conversation.pk: tell_findings(conversation=conversation).opened},
    ):
        opened = counted[conversation.pk]
        assert opened is not None
        assert list(opened.by_severity.items()) == list(expected.items())
        assert (opened.count, opened.severity) == (3, 4)
    assert len(survey_findings(conversation=conversation, beside=[], limit=1)[1]) == 1
    row = viewer.get(LIST).content.decode().partition('id="conversation-')[2].partition("</tr>")[0]
    assert re.findall(r">(\d+)<span> (\w+)</span>", row) == [("1", "error"), ("2", "notices")]
