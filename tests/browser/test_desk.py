"""The keys of the desk: the palette, folds, the review, and how a search is walked through message by message."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Route, expect

from inspector.audit.findings.services import judge
from inspector.audit.models import Finding
from inspector.audit.overview import count_standing
from inspector.audit.samples import draw_sample
from inspector.exports.services import ask_for_export
from inspector.intake.models import Delivery, Job
from inspector.pipeline import run_due
from inspector.threads.models import Agent, Conversation, Message
from tests.browser.conftest import Open, at, wait_for_rest
from tests.browser.test_walk import LOG
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY
from tests.inspector.pages.test_planted import PLANTED

pytestmark = pytest.mark.long(seconds=6)


def test_the_palette_goes_there_by_keys_alone(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.viewer, at("overview"))
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    field = palette.get_by_role("combobox")
    expect(field).to_be_focused()
    page.keyboard.type("radr")
    expect(palette.get_by_role("option").first).to_contain_text("radar")
    expect(palette.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("radar")
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def test_the_palette_does_what_the_page_can_do(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    finding = Finding.objects.filter(state="open").earliest("pk")
    page = open_page(cast.auditor, at("finding", finding.pk))
    wait_for_rest(page)
    palette = page.get_by_role("dialog", name="Go to")
    page.keyboard.press("Control+k")
    page.keyboard.type("fixed")
    expect(palette.get_by_role("option").first).to_contain_text("Mark as fixed")
    page.keyboard.press("Enter")
    expect(palette).to_be_hidden()
    # It is chosen, and nothing is sent before there is a reason.
    expect(page.locator("#judge-state")).to_have_value("fixed")
    expect(page.locator("#judge-reason")).to_be_focused()
    page.keyboard.type("they mended it")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("now marked as fixed")
    page.goto(at("conversations"))
    wait_for_rest(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("export these")
    expect(palette.get_by_role("option").first).to_contain_text("Export these")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/exports/new/"))


def test_a_search_is_walked_through_and_its_hits_fold(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.auditor, at("search") + "?q=conversation:story")
    page.wait_for_load_state()
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("/")
    expect(page.locator("#search-bar input[name=q]")).to_be_focused()
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("j")
    page.keyboard.press("]")
    expect(page.locator(".hit[data-current] .around li")).not_to_have_count(0)
    colours = page.locator(".hit[data-current] .tile").evaluate_all(
        "tiles => Object.entries(Object.groupBy(tiles, t => t.textContent.trim().slice(0, 2)))"
        ".map(([, same]) => new Set(same.map(t => getComputedStyle(t).backgroundColor)).size)"
    )
    assert set(colours) == {1}
    page.keyboard.press("[")
    expect(page.locator(".hit[data-current] .around")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?q=conversation%3Astory"))
    first = page.url
    page.wait_for_load_state()
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)
    page.wait_for_load_state()
    page.keyboard.press("r")
    page.wait_for_url(re.compile("#verdict"))


def test_what_was_never_answered_is_asked_for_from_the_first_page(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    # An hour passes in which nobody says a word.
    assert Finding.objects.filter(rule="unanswered").update(due_since=timezone.now())
    page = open_page(cast.viewer, at("overview"))
    wait_for_rest(page)
    page.keyboard.press("/")
    offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    for typed, taken in (
        ("is:un", "unanswered"),
        ("from:coo", "coordinator"),
        ("perf", "performative:"),
        ("req", "request"),
    ):
        page.keyboard.type(typed)
        expect(offered.first).to_contain_text(taken)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".token b")).to_have_text(["unanswered", "coordinator", "request"])
    wait_for_rest(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Raw")).to_contain_text("refactor_auth")


def test_another_dialect_is_chosen_without_a_script(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    message = Message.objects.get(native_id="m1")
    page = open_page(cast.viewer, at("message", message.pk), has_script=False)
    page.get_by_text("Decode as").click()
    page.get_by_role("link", name="Prose").click()
    expect(page.get_by_role("status")).to_contain_text("A preview, not the stored message")
    page.get_by_role("link", name="Hex").click()
    expect(page.get_by_role("region", name="Raw")).to_contain_text("7b 22 63 6c")
    expect(page.get_by_role("status")).to_contain_text("read as Prose")


def test_r_leads_to_the_verdict_from_every_page_of_a_conversation(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    conversation = Conversation.objects.get(native_id="story")
    there = at("conversation", conversation.pk)
    for name in ("conversation", "sequence", "conversation-tree", "conversation-findings", "conversation-raw"):
        page = open_page(cast.auditor, at(name, conversation.pk))
        wait_for_rest(page)
        page.keyboard.press("r")
        expect(page).to_have_url(re.compile(rf"{there}#verdict$"))
        expect(page.get_by_role("form", name="Your verdict")).to_be_in_viewport()
    # Never while typing, and not for who may not judge.
    page.get_by_label("Comment").press("r")
    expect(page.get_by_label("Comment")).to_have_value("r")
    page = open_page(cast.viewer, there)
    wait_for_rest(page)
    page.keyboard.press("r")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help and keys")).to_be_visible()
    assert "#" not in page.url


def test_c_copies_the_link_to_a_message_and_to_what_is_lit_in_it(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    message = Message.objects.get(native_id="m1")
    page = open_page(cast.viewer, at("message", message.pk))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wait_for_rest(page)
    page.keyboard.press("c")
    link = page.get_by_role("main").locator("[data-copy-link]").first
    expect(link).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.get_by_role("region", name="Raw").locator("[data-span]").first.click()
    expect(page).to_have_url(re.compile("span="))
    page.keyboard.press("c")
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('span='))")
    # However often: it says again what it is.
    expect(link).to_contain_text("Copy link")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help and keys")).to_contain_text("Copy the link to a message")


def test_a_link_is_copied_where_the_page_has_no_clipboard(open_page: Open, cast: Cast) -> None:
    """As over plain HTTP from another machine."""
    take_in(cast, STORY)
    message = Message.objects.get(native_id="m1")
    page = open_page(cast.viewer, at("overview"))
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(at("message", message.pk))
    wait_for_rest(page)
    page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value; })")
    page.get_by_role("link", name="Copy link").first.click()
    page.wait_for_function("window.copied === location.href")
    expect(page.get_by_role("main").locator("[data-copy-link]").first).to_be_focused()


def test_the_navigation_says_how_much_there_is_and_no_page_waits_for_it(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    page = open_page(cast.auditor, at("overview"))
    nav = page.get_by_role("navigation", name="Main")
    findings = sum(count_standing(workspace=cast.workspace).findings.values())
    expect(nav.get_by_role("link", name="Conversations")).to_have_text("Conversations 3")
    expect(nav.get_by_role("link", name="Findings")).to_have_text(f"Findings {findings}")
    expect(nav.get_by_role("link", name="Reviews")).to_have_text("Reviews")
    held: list[Route] = []
    page.route("**/counts/", lambda route: held.append(route))
    page.goto(at("findings"))
    # The page stands, with what the one before said, while the server has not answered.
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(nav.get_by_role("link", name="Findings")).to_have_text(f"Findings {findings}")
    assert len(held) == 1
    judge(membership=cast.auditor, findings=Finding.objects.values_list("pk", flat=True), state="accepted", reason="r")
    held[0].continue_()
    expect(nav.get_by_role("link", name="Findings")).to_have_text("Findings")
    page.unroute_all()


def test_the_overview_leads_to_the_findings_of_a_rule(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    for width in (360, 1280):
        page = open_page(cast.viewer, at("overview"), width=width)
        table = page.get_by_role("region", name="Open findings by rule")
        first = table.get_by_role("row").nth(1)
        title, count = first.get_by_role("link").inner_text(), first.get_by_role("cell").last.inner_text()
        first.get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        expect(page.get_by_role("main").locator("[data-item]")).to_have_count(int(count))


def test_what_can_be_asked_is_whole_on_a_small_screen(open_page: Open, cast: Cast) -> None:
    page = open_page(cast.viewer, at("search"), width=360)
    asked = page.get_by_role("region", name="Search reference")
    links = asked.get_by_role("link")
    assert links.count() > 30
    inside, broken = links.evaluate_all(
        "all => [all.every((each) => each.getBoundingClientRect().right <= innerWidth),"
        " all.filter((each) => each.getClientRects().length > 1).map((each) => each.textContent)]"
    )
    assert (inside, broken) == (True, [])
    asked.get_by_role("link", name="severity:>=warning").click()
    expect(page.locator(".token b")).to_have_text([">=warning"])


def test_a_name_is_not_broken_where_it_has_room(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    for width in (360, 1280):
        page = open_page(cast.viewer, at("overview"), width=width)
        names = page.get_by_role("region", name="Busiest pairs").locator("bdi")
        expect(names.filter(has_text="coordinator").first).to_be_visible()
        assert {
            len(set(tops))
            for tops in names.evaluate_all(
                "all => all.map((name) => Array.from(name.getClientRects(), (line) => Math.round(line.top)))"
            )
        } == {1}


# What is drawn wider than it is shown, on purpose: lanes stand beside each other, and a name is never cut in two.
SCROLLS = {"Messages of this window", "fields", "Who said how much to whom"}


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_no_list_is_cut_at_its_side(open_page: Open, cast: Cast, width: int) -> None:
    take_in(cast, STORY, *PLANTED, LOG.encode(), name="story.log")
    query = "from:oscar to:radar performative:request,query dialect:clowl after:2026-01-01 has:reply"
    ask_for_export(workspace=cast.workspace, membership=cast.owner, query=query, form="csv", is_masked=False)
    run_due(seconds=60, only=(Job.Kind.EXPORT,))
    conversation = Conversation.objects.get(native_id="story")
    message = Message.objects.get(native_id="m1")
    names = ("overview", "conversations", "traces", "findings", "reviews", "samples", "agents", "agents-graph")
    names = (*names, "deliveries", "exports", "trail", "settings", "keyring")
    addresses = [at(name) for name in names]
    sample = draw_sample(membership=cast.auditor, name="October", stratum="pair", wanted=4, seed="s")
    addresses += [at("sample", sample.pk)]
    addresses += [at("agent", Agent.objects.get(name="coordinator").pk)]
    views = ("conversation", "conversation-tasks", "conversation-findings", "conversation-tree", "sequence")
    addresses += [at(name, conversation.pk) for name in views]
    addresses += [at("message", message.pk), at("glossary", "clowl")]
    addresses += [at("delivery", Delivery.objects.get().pk)]
    page = open_page(cast.owner, addresses[0], width=width)
    cut: list[tuple[str, str]] = []
    for address in addresses:
        page.goto(address)
        wait_for_rest(page)
        found = page.locator(".scroller, .tabs").evaluate_all(
            "all => all.filter((each) => each.scrollWidth > each.clientWidth + 1)"
            ".map((each) => each.getAttribute('aria-label') ?? each.getAttribute('aria-labelledby'))"
        )
        cut += [(address, name) for name in found if name not in SCROLLS]
    assert cut == []


def test_bytes_stand_sixteen_in_a_line_where_there_is_room(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    message = Message.objects.filter(native_id="m2").get()
    for width, lines in ((360, ["0000", "0008", "0010"]), (1280, ["0000", "0010", "0020"])):
        page = open_page(cast.viewer, at("message", message.pk) + "?view=hex", width=width)
        offsets = page.locator(".dump > u:visible")
        assert offsets.all_inner_texts()[:3] == lines
        tops = page.locator(".dump > span").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert len(set(tops)) == offsets.count(), width
        assert page.locator(".dump").evaluate("one => one.scrollWidth - one.clientWidth") == 0
        if width == 360:
            # The second row is no part of the first one.
            assert tops[2] > tops[0]


def test_the_name_of_a_severity_stands_beside_its_count(open_page: Open, cast: Cast) -> None:
    take_in(cast, STORY)
    for width in (360, 1280):
        page = open_page(cast.viewer, at("overview"), width=width)
        words = page.locator(".stats .severity > span").first
        expect(words).to_have_text(re.compile("^ ?(error|warning|notice)s?$"))
        assert words.evaluate("one => one.offsetWidth") > 20
