"""Lists that begin with the worst: ranked as they say, page by page without a gap, and served by an index."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client

from inspector.audit.findings.selectors import count_open_in
from inspector.audit.findings.services import judge, lift, set_rule, suppress
from inspector.audit.models import Finding
from inspector.pages import findings as findings
from inspector.pages.conversations import views as conversations
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import select_conversations
from tests.inspector.conftest import Cast, resolve_all, take_in

pytestmark = pytest.mark.django_db
LOG = "\n".join(
    [
        '{"clowl":"0.2","mid":"a","ts":1795248000,"p":"REQ","from":"ann","to":"bob","cid":"plain","body":{"t":"x","d":{}}}',
        '{"clowl":"0.2","mid":"b","ts":1795248001,"p":"REQ","from":"ann","cid":"grave"',
        '{"clowl":"0.2","mid":"c","ts":1795248002,"pid":"lost","p":"DONE","from":"ann","to":"bob","cid":"ghost","body":{}}',
        "@a3|f0|c1|S0|d1|T1|g1|k1|q2#",
        "@a3|f0|c2|S1|d2|T1|g1|k1|q2#",
        "@a3|f0|c1",
        "👽06|@",
    ]
).encode()


@pytest.fixture
def log(cast: Cast) -> Cast:
    take_in(cast, LOG)
    return cast


def walk(client: Client, address: str, pattern: str) -> list[str]:
    """What stands on every page of a list, gone through by its own links."""
    found: list[str] = []
    for _ in range(50):
        page = client.get(address).content.decode()
        found += re.findall(pattern, page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        if following is None:
            return found
        address = address.partition("?")[0] + following[1].replace("&amp;", "&")
    raise AssertionError("the list has no end")


def test_conversations_begin_with_the_gravest_finding_that_stands_open(
    log: Cast, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "PAGE_ROWS", 2)
    rows = list(Conversation.objects.exclude(last_at=None))

    def list_ranked() -> list[tuple[int, Conversation]]:
        gravest = {pk: count.severity for pk, count in count_open_in(conversation_ids=[row.pk for row in rows]).items()}
        ranked = [(gravest.get(row.pk, 0), row) for row in rows]
        return sorted(ranked, key=lambda one: (one[0], one[1].last_at, one[1].pk), reverse=True)

    def check() -> list[tuple[int, Conversation]]:
        ranked = list_ranked()
        ids = walk(viewer, "/w/acme/conversations/?order=worst", r'<tr id="conversation-([^"]+)"')
        assert ids == [str(row.pk) for _, row in ranked]
        return ranked

    ranked = check()
    assert len({severity for severity, _ in ranked}) > 2
    worst = ranked[0][1]
    theirs = Finding.objects.filter(conversation=worst, holds=True)
    judge(membership=log.owner, findings=[each.pk for each in theirs], state="accepted", reason="r")
    assert worst not in [row for severity, row in check() if severity]
    judge(membership=log.owner, findings=[each.pk for each in theirs], state="open", reason="")
    assert check() == ranked
    # What is not shown grades nothing, and what is shown again does.
    covers = [
        suppress(membership=log.owner, rule=rule, conversation=worst, sender="", reason="a drill")
        for rule in sorted({each.rule for each in theirs})
    ]
    check()
    worst.refresh_from_db()
    assert worst.open_severity == 0
    for each in covers:
        lift(membership=log.owner, suppression=each)
    assert check() == ranked
    # How a rule is graded decides once they are examined again, and so does switching it off.
    rule = theirs.order_by("-severity")[0].rule
    set_rule(membership=log.owner, rule=rule, is_on=True, severity=Message.Severity.INFO, reason="known here")
    resolve_all()
    check()
    set_rule(membership=log.owner, rule=rule, is_on=False, severity=None, reason="not wanted")
    resolve_all()
    check()
    assert "most severe open finding first" in viewer.get("/w/acme/conversations/?order=worst").content.decode()
    with connection.cursor() as cursor:
        # Among few rows the planner takes whatever it likes: the index is what serves the order without sorting.
        cursor.execute("SET LOCAL enable_sort = off")
        listed = select_conversations(workspace=log.workspace, order="worst")[:3]
        assert "conversation_gravest" in listed.explain()


def test_findings_begin_with_the_worst(log: Cast, viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "PAGE_ROWS", 2)
    ids = walk(
        viewer, "/w/acme/findings/?order=worst&state=all", r'class="sentence"><a href="/w/acme/findings/([^/]+)/"'
    )
    rows = {str(row.pk): row for row in Finding.objects.filter(holds=True, is_suppressed=False, due_at=None)}
    assert len({row.severity for row in rows.values()}) > 1
    assert [pk for pk in ids if pk in rows] == sorted(
        rows, key=lambda pk: (rows[pk].severity, rows[pk].at, pk), reverse=True
    )
    overview = viewer.get("/w/acme/overview/").content.decode()
    assert 'href="/w/acme/findings/?order=worst">Most severe first</a>' in overview


def test_conversations_of_an_agent_are_those_of_whom_the_name_means(log: Cast) -> None:
    named = {one.native_id for one in select_conversations(workspace=log.workspace, agent="planner")}
    assert named == {"1", "2"}
    assert named == {one.native_id for one in select_conversations(workspace=log.workspace, agent="1")}
    assert not select_conversations(workspace=log.workspace, agent="critic")
