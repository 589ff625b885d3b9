"""Beside the search bar: facets, suggestions, saved searches, surroundings, and how far a search came."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from inspector.audit.models import Finding
from inspector.audit.rules import RULES
from inspector.intake.models import Delivery
from inspector.pages import search as search_page
from inspector.pages.shown.told import link_search
from inspector.pages.templatetags.marks import SEVERITIES
from inspector.search import refining
from inspector.search.aids import MAX_MENDED
from inspector.search.models import SavedSearch
from inspector.search.refining import choose
from inspector.search.selectors import Found, find_messages
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db
SEARCH = "/w/acme/search/"


def suggest(client: Client, text: str) -> tuple[int, list[str]]:
    said = client.get(f"{SEARCH}suggestions/", {"q": text}).json()
    return said["start"], [item["text"] for item in said["items"]]


def test_facets_count_what_the_query_means_and_lead_to_less(viewer: Client, story: Delivery, cast: Cast) -> None:
    part = viewer.get(f"{SEARCH}facets/", {"q": "dialect:clowl"}).content.decode()
    assert "All 3 matches" in part
    for name, value in (("from", "radar"), ("performative", "failure")):
        query = f"dialect:clowl {name}:{value}"
        assert f"?{escape('q=dialect%3Aclowl+')}{name}%3A{value}" in part
        assert find_messages(workspace=cast.workspace, query=query)
    assert viewer.get(f"{SEARCH}facets/", {"q": "nonsense:1"}).status_code == 400


def test_facets_give_up_in_time(viewer: Client, story: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refining, "fetch", lambda rows, patience_ms: None)
    assert "took too long" in viewer.get(f"{SEARCH}facets/", {"q": ""}).content.decode()


def test_what_a_facet_adds_is_found_whatever_the_name_holds(cast: Cast, viewer: Client) -> None:
    names = ["ada lovelace", "a,b", "x:y", "(z)", "*", "<i>", "Ада"]
    lines = [json.dumps({"raw": f"Hello {number}.", "from": name}) for number, name in enumerate(names)]
    take_in(cast, "\n".join(lines).encode())
    for number, name in enumerate(names):
        (message,) = find_messages(workspace=cast.workspace, query=choose("Hello", "from", name))
        assert message.english.endswith(f"Hello {number}.") or f"Hello {number}" in message.english


def test_suggestions_know_names_values_and_what_was_seen(viewer: Client, story: Delivery) -> None:
    assert suggest(viewer, "perf") == (0, ["performative:"])
    assert suggest(viewer, "x -dia") == (3, ["dialect:"])
    assert suggest(viewer, "dialect:ns") == (8, ["nslip"])
    assert suggest(viewer, "a (from:osc") == (8, ["oscar"])
    assert suggest(viewer, "from:radar,osc") == (11, ["oscar"])
    start, values = suggest(viewer, "severity:>=w")
    assert (start, values) == (11, ["warning"])
    assert "content.q:" in suggest(viewer, "content.")[1]
    assert suggest(viewer, "") == (0, [])
    assert suggest(viewer, "from:%") == (5, [])


def test_suggestions_never_tell_another_workspace(stranger_client: Client, story: Delivery) -> None:
    said = stranger_client.get("/w/other/search/suggestions/", {"q": "from:osc"}).json()
    assert said["items"] == []


@pytest.fixture
def stranger_client(cast: Cast, sign_in: Callable[..., Client]) -> Client:
    return sign_in(cast.stranger)


def test_a_search_is_saved_shared_and_forgotten(auditor: Client, viewer: Client, owner: Client, cast: Cast) -> None:
    save = page_of("save-search")
    answer = auditor.post(save, {"q": "from:oscar", "name": " Oscar  asks ", "is_shared": "1"})
    assert parse_qs(urlsplit(answer["Location"]).query) == {"q": ["from:oscar"]}
    auditor.post(save, {"q": "to:radar", "name": "Mine"})
    assert "Oscar asks" in viewer.get(SEARCH).content.decode()
    assert "Mine" not in viewer.get(SEARCH).content.decode()
    shared = SavedSearch.objects.get(name="Oscar asks")
    forget = page_of("forget-search", shared.pk)
    assert viewer.post(forget).status_code == 404
    assert owner.post(forget).status_code == 302
    assert owner.post(page_of("forget-search", SavedSearch.objects.get().pk)).status_code == 404


def test_a_long_query_is_cut_between_its_characters(auditor: Client, cast: Cast) -> None:
    query = "x" * 198 + "\u202e\u202e\u202e<b>"
    auditor.post(page_of("save-search"), {"q": query, "name": "Long"})
    for address in (SEARCH, f"{SEARCH}?q=zebra+{'y' * 78}%E2%80%AE%E2%80%AE%E2%80%AE"):
        page = auditor.get(address).content.decode()
        ((code, part),) = re.findall(r'<code class="quiet small">(.*?)</code>|<b>(yyy.*?)</b>', page)
        assert re.fullmatch(r'[xy]+<span class="hidden-character"[^<>]*>U\+202E</span>…', code or part), code or part


@pytest.mark.parametrize(("name", "query"), [("", "a"), ("x" * 81, "a"), ("fine", "nonsense:1")])
def test_what_cannot_be_saved_says_why(auditor: Client, cast: Cast, name: str, query: str) -> None:
    answer = auditor.post(page_of("save-search"), {"q": query, "name": name}, follow=True)
    assert "Not saved" in answer.content.decode()
    assert not SavedSearch.objects.exists()


def test_what_stands_around_a_hit(viewer: Client, story: Delivery) -> None:
    hit = Message.objects.get(native_id="m2")
    part = viewer.get(page_of("around", hit.pk)).content.decode()
    assert part.count("<li") == 3
    assert part.count('<li aria-current="true">') == 1


def test_a_search_that_was_not_finished_says_so_and_goes_on(
    viewer: Client, story: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = datetime(2026, 11, 1, tzinfo=UTC)
    monkeypatch.setattr(search_page, "search_messages", lambda **given: Found([], (reached, uuid.uuid4())))
    page = viewer.get(SEARCH, {"q": "zebra"}).content.decode()
    shows(page, "Searched back to", "Search further back", never=["Every message of this workspace was searched"])


def test_where_nothing_is_found_it_says_what_to_leave_away(viewer: Client, auditor: Client, story: Delivery) -> None:
    page = viewer.get(SEARCH, {"q": "dialect:clowl from:oscar -performative:request"}).content.decode()
    offered = re.findall(
        r'<a href="([^"]+)"><code>([^<]+)</code></a>', page.partition("Without ")[2].partition(" something")[0]
    )
    assert [written for _, written in offered] == ["from:oscar", "-performative:request"]
    for address, _ in offered:
        assert "data-open" in viewer.get(address.replace("&amp;", "&")).content.decode()
    # Neither of these is found by itself.
    assert " something is found" not in viewer.get(SEARCH, {"q": "zebra yak"}).content.decode()
    assert " something is found" in viewer.get(SEARCH, {"q": 'raw:"@a3" zebra'}).content.decode()


def test_facets_count_findings_and_rules_as_search_finds_them(viewer: Client, story: Delivery, cast: Cast) -> None:
    found = refining.count_facets(workspace=cast.workspace, query="")
    assert found is not None
    counted = {facet.name: {value.value: value.count for value in facet.values} for facet in found.facets}
    assert counted["finding"].keys() >= {"notice", "warning"}
    assert len(counted["rule"]) > 1
    for name in ("finding", "rule"):
        for value, count in counted[name].items():
            assert len(find_messages(workspace=cast.workspace, query=f"{name}:{value}")) == count
    part = viewer.get(f"{SEARCH}facets/", {"q": "rule:missing-message"}).content.decode()
    assert RULES["missing-message"].title in part
    hits = viewer.get(SEARCH, {"q": "rule:missing-message"}).content.decode()
    (shown,) = re.findall(
        r'#findings"><span class="severity" data-severity="\w+"><svg.*?</svg>(\w+)<span class="what">([^<]+)', hits
    )
    about = Finding.objects.filter(record__messages__native_id="m4").order_by("-severity", "rule")
    assert len(about) > 1
    assert shown == (SEVERITIES[about[0].severity], f" {RULES[about[0].rule].title}")


def test_a_name_below_a_name_that_nobody_has_is_mended(viewer: Client, story: Delivery) -> None:
    page = viewer.get(page_of("search"), {"q": "from:radar content.etaa:60s"}).content.decode()
    assert '<a href="/w/acme/search/?q=from%3Aradar+content.eta%3A60s">' in page
    page = viewer.get(page_of("search"), {"q": "content.eta:61s"}).content.decode()
    assert "Did you mean" not in page


@pytest.mark.parametrize(
    ("query", "meant"), [("from:radr", "from:radar"), ("performative:request -to:=oscr", ""), ("to:=oscr", "to:=oscar")]
)
def test_the_nearest_agent_is_offered_where_nobody_has_the_name(
    viewer: Client, story: Delivery, query: str, meant: str
) -> None:
    page = viewer.get(SEARCH, {"q": query}).content.decode()
    assert ("Did you mean" in page) == bool(meant)
    if meant:
        assert f'<a href="{link_search("acme", meant)}"><code>{meant}</code></a>' in page


def test_so_many_terms_are_mended_and_no_more(viewer: Client, story: Delivery) -> None:
    """Each asks the database once."""
    query = " ".join(f"from:radr{number}" for number in range(MAX_MENDED + 1))
    with CaptureQueriesContext(connection) as asked:
        page = viewer.get(SEARCH, {"q": query}).content.decode()
    assert "Did you mean" in page
    assert sum("unnest(newest.atoms)" in each["sql"] for each in asked) == MAX_MENDED


@pytest.mark.parametrize("query", ["dialect:nslipp", "performativ:request"])
def test_what_was_probably_meant_is_offered_once(viewer: Client, story: Delivery, query: str) -> None:
    answer = viewer.get(SEARCH, {"q": query})
    assert answer.status_code == 400
    assert answer.content.decode().lower().count("did you mean") == 1
    unknown = viewer.get(SEARCH, {"q": "dialect:zzzz"}).content.decode()
    assert "values are" in unknown
