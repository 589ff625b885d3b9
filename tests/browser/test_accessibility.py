"""axe finds no violation on any page, light and dark, narrow and wide, and no page scrolls sideways."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.db.models import Model
from django.urls import reverse
from playwright.sync_api import Page

from inspector.accounts.models import User, Workspace
from inspector.accounts.services import create_sign_in_link
from inspector.accounts.workspaces import invite_member
from inspector.audit.comments import reply, turn, write_comment
from inspector.audit.models import AuditSample, Finding, ReviewItem, ReviewQueue
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, give_verdict, judge_item
from inspector.audit.samples import draw_sample
from inspector.exports.models import Export
from inspector.exports.services import stop_export
from inspector.intake.models import Delivery
from inspector.intake.staging import Choices, stage_file
from inspector.keyring.models import EscrowedKey
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Agent, Conversation, Message, Trace
from tests.browser.conftest import Open, at
from tests.inspector.conftest import Cast, deliver, take_in
from tests.inspector.exports.conftest import ask as ask_for
from tests.inspector.exports.conftest import make as make_export
from tests.inspector.keyring.conftest import LINES as SEALED
from tests.inspector.keyring.conftest import add as add_key
from tests.inspector.pages.conftest import STORY

HOSTILE = b'{"clowl":"0.2","mid":"m1","p":"REQ","from":"rad\\u200bar","to":"' + b"x" * 300 + b'","cid":"h"}\n'
LAMBDA = {"from": "ada", "to": "bob", "conversation": "lab", "dialect": "lambda_lang"}
ASKED = json.dumps({"raw": "?Uk/fp", "id": "asked", "at": "2026-11-21T09:00:05Z"} | LAMBDA).encode() + b"\n"
LATE = json.dumps({"raw": '{def:fp="flash point"}!ta', "id": "late", "at": "2026-11-21T09:00:01Z"} | LAMBDA).encode()
BINARY = b"\xff\xfe broken\n"


def of(page: str, model: type[Model], query: str = "", **which: object) -> Callable[[], str]:
    """The address of the page of the one row that is so; of several, the last."""
    return lambda: at(page, model._default_manager.filter(**which).latest("pk").pk) + query


# Pages whose address names nothing, and what some are asked for besides.
PLAIN: Final = (
    *("overview", "conversations", "agents", "agents-graph", "traces", "samples", "new-sample", "findings", "search"),
    *("dead-letters", "translator", "upload", "deliveries", "exports", "reviews", "new-queue", "settings", "account"),
    *("keyring", "alerts", "trail"),
)
ASKED_FOR: Final = {
    "integrity": "integrity?entry=0",
    "no-agent": "agents?name=nobody",
    "no-match": "conversations?agent=nobody",
    "comments": "comments?state=all",
    "no-comment": "comments?state=withdrawn",
    "findings-of-a-rule": "findings?rule=missing-message",
    "findings-in-a-list": "findings?order=worst",
    "snoozed-findings": "findings?state=snoozed",
    "stale-queues": "reviews?show=stale",
    "no-finding": "findings?q=zebra",
    "hits": "search?q=search",
    "facets": "facets?q=search",
    "no-hit": "search?q=zebra",
    "new-export": "new-export?q=from:radar",
    "no-deed": "trail?q=zebra",
}
STORYS: Final = {"native_id": "story"}
HOSTILES: Final = {"native_id": "h"}
PAGES: dict[str, Callable[[], str]] = {
    "sign-in": lambda: reverse("pages:sign-in"),
    "code": lambda: reverse("pages:sign-in-link"),
    "sign-in-link": lambda: (
        f"{reverse('pages:sign-in-link')}#{create_sign_in_link(user=User.objects.get(username='olivia'))}"
    ),
    "invitation": lambda: f"{reverse('pages:invitation')}#{invite_stranger()}",
    "second-factor": lambda: reverse("mfa_index"),
    **{name: lambda name=name: at(name) for name in PLAIN},
    **{
        name: lambda page=page, query=query: f"{at(page)}?{query}"
        for name, (page, query) in ((name, where.split("?", 1)) for name, where in ASKED_FOR.items())
    },
    "agent": of("agent", Agent, name="radar"),
    "hostile-agent": of("agent", Agent, name__contains="\u200b"),
    "conversation": of("conversation", Conversation, **STORYS),
    "tasks": of("conversation-tasks", Conversation, **STORYS),
    "hostile-tasks": of("conversation-tasks", Conversation, **HOSTILES),
    "timeline": of("conversation", Conversation, "?order=time", **HOSTILES),
    "trace": of("trace", Trace, native_id="t1", last_at__isnull=False),
    "trace-found": of("trace", Trace, "?level=1&find=search", native_id="t1", last_at__isnull=False),
    "conversation-tree": of("conversation-tree", Conversation, **HOSTILES),
    **{
        f"{name}-of-{native_id}": of(name, Conversation, "?open=all", native_id=native_id)
        for name in ("sequence", "conversation-raw")
        for native_id in ("story", "h")
    },
    "message": of("message", Message, native_id="m2"),
    "hostile-message": of("message", Message, conversation__native_id="h"),
    "retold-message": of("message", Message, native_id="asked"),
    "malformed-message": of("message", Message, dialect="nslip", performative=None),
    "sample": of("sample", AuditSample),
    "finding": of("finding", Finding, rule="missing-message"),
    "findings-of-a-conversation": of("conversation-findings", Conversation, "?state=all", **HOSTILES),
    **{
        f"message-{name}": of("message", Message, query, native_id="m2")
        for name, query in {"lit": "?q=search&span=0:15-25", "as-nslip": "?as=nslip", "hex": "?view=hex"}.items()
    },
    "glossary": lambda: at("glossary", "lambda_lang"),
    "staged": of("staged", Delivery, file_name="waiting.log"),
    "delivery": of("delivery", Delivery, quarantined=1),
    **{f"{state}-export": of("export", Export, state=state) for state in ("done", "queued", "removed")},
    "queue": of("queue", ReviewQueue, name__startswith="Grave"),
    **{f"{state}-item": of("review-item", ReviewItem, state=state) for state in ("waiting", "second", "settled")},
    "remove-escrowed-key": of("remove-escrowed-key", EscrowedKey),
    "opened-conversation": lambda: at("conversation", find_opened().conversation_id),
    "opened-message": lambda: at("message", find_opened().pk),
}


# For who is not signed in.
OUTSIDE: Final = frozenset({"sign-in", "code", "sign-in-link", "invitation"})


def invite_stranger() -> str:
    return invite_member(workspace=Workspace.objects.get(slug="acme"), name=f"n-{uuid.uuid4().hex}", role="viewer")[1]


def show(page: Page, stranger: Page, name: str) -> Page:
    """Open one of the pages, as the member or as a stranger."""
    shown = stranger if name in OUTSIDE else page
    shown.goto(where := PAGES[name]())
    if shown is stranger and "#" in where:
        # A link's code leads on to another page.
        shown.locator("button[name=confirm]").wait_for()
    return shown


def find_opened() -> Message:
    return Message.objects.filter(is_sealed=True).order_by("place")[0]


# Between a telephone and a desk.
MIDDLE: Final = 768
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def fill_workspace(cast: Cast) -> None:
    """Something for every page to show."""
    take_in(cast, STORY, HOSTILE, ASKED, BINARY, name="story.log")
    # What comes late is told to the message that asked for it, whose page then has a history.
    deliver(cast, LATE, name="late.log")
    sign_off(cast)
    take_in(cast, b"\n".join(SEALED) + b"\n", name="sealed.jsonl")
    wait_for_review(cast)
    for message in (Message.objects.get(native_id="m2"), Message.objects.get(conversation__native_id="h")):
        comment = write_comment(membership=cast.auditor, message=message, start=15, end=25, words="Who\u200b is this?")
        reply(membership=cast.owner, comment=comment, message=message, words="x" * 200)
        turn(membership=cast.owner, comment=comment, kind="resolved")
    draw_sample(membership=cast.auditor, name="<b>October</b>\u200b", stratum="pair", wanted=2, seed="s")
    add_key(cast)
    for query in ("from:radar", "x" * 300):
        make_export(ask_for(cast, query=query, title=query))
    stop_export(export=make_export(ask_for(cast, title="all")), membership=cast.owner)
    ask_for(cast, title="<b>all</b>\u202e")
    stage_file(membership=cast.owner, channel=cast.channel, chunks=[STORY], choices=Choices(), file_name="waiting.log")
    invite_member(workspace=cast.workspace, name="a-rather-long-name-of-somebody-invited", role="viewer")
    enter_new(at_once=True)


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.long(seconds=100)
def test_every_page(open_page: Open, cast: Cast, width: int) -> None:
    fill_workspace(cast)
    faults = []
    page = open_page(cast.owner, at("overview"), width=width)
    stranger = open_page(None, reverse("pages:sign-in"), width=width)
    for name in PAGES:
        for each in (page, stranger):
            each.emulate_media(color_scheme="light")
        shown = show(page, stranger, name)
        faults += [f"{name}: {fault}" for fault in find_faults(shown)]
        keep_picture(shown, f"{name}-{width}-light")
        shown.emulate_media(color_scheme="dark")
        faults += [f"{name}, dark: {fault}" for fault in find_faults(shown, rules=OF_COLOURS)]
        keep_picture(shown, f"{name}-{width}-dark")
        if width > MIDDLE:
            faults += [f"{name}, at {MIDDLE}: {fault}" for fault in look_between(shown, name)]
    assert not faults, "\n".join(faults)


def sign_off(cast: Cast) -> None:
    """A verdict on a conversation that changes afterwards."""
    conversation = Conversation.objects.get(native_id="lab")
    give_verdict(
        membership=cast.auditor,
        conversation=conversation,
        verdict="concern",
        comment="A flash point?",
        seen=bytes(conversation.settled_digest or b""),
    )
    take_in(cast, ASKED.replace(b"asked", b"again").replace(b"05Z", b"06Z"), name="again.log")


def wait_for_review(cast: Cast) -> None:
    """A queue of two reviewers: one conversation that the reader holds, and one that somebody has spoken on."""
    queue = create_queue(
        membership=cast.owner,
        name="Grave findings and a rather long name of what is to be looked at",
        about="Findings.",
        reviewers=2,
        criteria=["Does the English say what the wire says?", "Was the act within the agent's task?"],
    )
    for name in ("story", "h"):
        conversation = Conversation.objects.get(native_id=name)
        fill_queue(queue=queue, conversations=[conversation.pk], why="missing-message", membership=cast.owner)
        item = queue.items.get(conversation=conversation)
        claim(membership=cast.owner if name == "story" else cast.auditor, item=item)
    judge_item(
        membership=cast.auditor,
        item=item,
        verdict="violation",
        comment="",
        seen=bytes(conversation.settled_digest or b""),
        answers=["pass", "fail"],
    )


# What a theme changes is colours, and nothing that any other rule looks at.
OF_COLOURS = ("color-contrast", "link-in-text-block")


def find_faults(page: Page, *, rules: Sequence[str] = ()) -> list[str]:
    """What axe finds, by all its rules or by some, and whether the page is wider than the window."""
    # What passes is not worked out, which on a long page is most of the work.
    options: dict[str, object] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    if not page.evaluate("'axe' in window"):
        # What the script is worth, an object of a hundred rules, is not asked for.
        page.evaluate(f"{AXE_SCRIPT}\n;null")
    violations = page.evaluate("options => axe.run(options).then(results => results.violations)", options)
    found = [
        f"{violation['id']}: {node['html'][:200]} ({node['failureSummary'][:200]})"
        for violation in violations
        for node in violation["nodes"]
    ]
    return [*found, *find_sideways(page)]


def find_sideways(page: Page) -> list[str]:
    is_wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return ["it scrolls sideways"] if is_wide else []


def look_between(page: Page, name: str) -> list[str]:
    """The page at the middle width: it must not scroll sideways there, and pictures are kept in both themes."""
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": MIDDLE, "height": size["height"]})
    found = find_sideways(page)
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        keep_picture(page, f"{name}-{MIDDLE}-{theme}")
    page.set_viewport_size(size)
    return found


def keep_picture(page: Page, name: str) -> None:
    """A screenshot of the whole page, where the environment names a folder for it."""
    folder = os.environ.get("INSPECTOR_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
