"""The page of the trail: who reads it, what narrows it, what it keeps back, and its files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from inspector.accounts.models import Membership, Role, User, make_id
from inspector.accounts.services import add_member, create_api_key, ensure_channel
from inspector.trail.models import Deed
from inspector.trail.services import Thing, record_deed

from ..conftest import Cast, make_user
from .conftest import shows

URL = "/w/acme/trail/"
SignIn = Callable[[Membership], Client]


def read_rows(client: Client, **query: str) -> list[str]:
    return [deed["told"] for deed in client.get(URL, query).context["deeds"]]


def record(cast: Cast, label: str) -> Deed:
    return record_deed(
        "channel.made", workspace_id=cast.workspace.pk, by=cast.auditor, on=Thing("channel", cast.channel.pk, label)
    )


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("auditor", 200), ("viewer", 403)])
def test_owners_and_auditors_read_it(cast: Cast, sign_in: SignIn, role: str, status: int) -> None:
    client = sign_in(getattr(cast, role))
    for name in ("", "trail.csv", "trail.jsonl"):
        assert client.get(URL + name).status_code == status


def test_filters_narrow_it(cast: Cast, owner: Client) -> None:
    key, _ = create_api_key(workspace=cast.workspace, name="robot", scopes=["read"])
    record(cast, "zebra crossing")
    ensure_channel(workspace=cast.workspace, name="plain")
    assert read_rows(owner, q="zebra") == ["created the channel “zebra crossing”"]
    assert read_rows(owner, q=str(key.pk)) == [f"created the API key “{key}”"]
    assert read_rows(owner, who=f"member:{cast.auditor.user_id}") == ["created the channel “zebra crossing”"]
    assert len(read_rows(owner, deed="channel.made")) == 2
    assert read_rows(owner, until="2001-01-01") == []
    assert (
        len(read_rows(owner, since="2001-01-01", until="8999-12-31"))
        == Deed.objects.filter(workspace=cast.workspace).count()
    )
    # What means nothing narrows nothing, and hostile text is text.
    assert len(read_rows(owner, who="x:1", deed="nothing", since="never", about="'; DROP")) > 3
    assert read_rows(owner, q="\x00' | & !") == []


def test_deeds_are_chosen_by_what_is_done_and_rules_called_by_their_titles(cast: Cast, owner: Client) -> None:
    record_deed(
        "finding.judged",
        workspace_id=cast.workspace.pk,
        by=cast.owner,
        on=Thing("findings", "", "2"),
        details={"state": "fixed", "rules": ["unanswered", "a-rule-that-is-no-more"]},
    )
    page = owner.get("/w/acme/trail/?deed=finding.judged").content.decode()
    shows(
        page,
        '<option value="finding.judged" selected>Decided on a finding</option>',
        "Request never answered, a-rule-that-is-no-more",
        never=[">finding.judged<"],
    )


def test_it_is_paged_by_key(cast: Cast, owner: Client) -> None:
    for number in range(60):
        record(cast, f"c{number}")
    seen, url = [], URL
    while url:
        page = owner.get(url)
        seen += [deed["row"].sequence for deed in page.context["deeds"]]
        url = page.context["older_url"] and URL + page.context["older_url"]
    assert seen == list(range(seen[0], 0, -1))
    assert owner.get(URL, {"before": "forged"}).status_code == 404


def test_it_costs_the_same_however_long_it_is(cast: Cast, owner: Client) -> None:

    def count() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert owner.get(URL).status_code == 200
        return len(asked)

    few = count()
    for number in range(60):
        record(cast, f"c{number}")
        add_member(workspace=cast.workspace, user=make_user(f"u{number}"), role=Role.VIEWER)
    assert count() == few <= 10


def join(pieces: Iterator[bytes]) -> str:
    return b"".join(pieces).decode()


def test_files_hold_what_the_filters_leave_and_taking_one_is_a_deed(cast: Cast, auditor: Client) -> None:
    record(cast, "=HYPERLINK(1)")
    lines = join(auditor.get(URL + "trail.jsonl?q=HYPERLINK").streaming_content).splitlines()
    assert [json.loads(line)["object"] for line in lines] == ["=HYPERLINK(1)"]
    rows = list(csv.DictReader(join(auditor.get(URL + "trail.csv?deed=channel.made").streaming_content).splitlines()))
    assert [row["object"] for row in rows] == ["'=HYPERLINK(1)"]
    taken = Deed.objects.filter(code="trail.exported").order_by("sequence")
    assert [deed.details["form"] for deed in taken] == ["jsonl", "csv"]
    assert taken[0].details["filters"] == {"q": "HYPERLINK"}


def test_hostile_names_are_only_text(cast: Cast, owner: Client) -> None:
    record(cast, "<script>alert(1)</script>\u202e")
    page = owner.get(URL).content.decode()
    shows(page, "&lt;script&gt;alert", never=["<script>alert", "\u202e"])


def test_times_are_words_in_the_readers_zone_and_a_comment_leads_to_its_message(cast: Cast, owner: Client) -> None:
    User.objects.filter(pk=cast.owner.user_id).update(time_zone="Asia/Tokyo")
    comment = make_id()
    record_deed(
        "comment.written",
        workspace_id=cast.workspace.pk,
        by=cast.auditor,
        on=Thing("comment", comment, "characters 0-5"),
        details={"until": "2026-11-30T17:05:09.123456+00:00", "hour": "2026-11-30T17:00:00+00:00"},
    )
    page = owner.get(URL).content.decode()
    shows(
        page,
        "<dd>1 Dec 2026, 02:05</dd>",
        "<dd>1 Dec 2026, 02:00</dd>",
        f'<a class="small" href="{reverse("pages:comment", args=["acme", comment])}">open the comment</a>',
        never=["123456"],
    )


def test_it_says_what_holds_it(cast: Cast, owner: Client) -> None:
    assert "the application could switch them off" in owner.get(URL).content.decode()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE trail_deed DISABLE TRIGGER deed_kept")
    page = owner.get(URL)
    assert page.context["guard"].missing == ("deed_kept",)
    assert 'data-guard="missing"' in page.content.decode()
