"""What stands around every view of one conversation: its name, how far it can be relied on, five answers, its tabs;
and where it is long, the way from window to window, to its ends, and to a message by its number.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from inspector.accounts.models import Membership, Workspace
from inspector.audit.findings.selectors import DENIED, OpenCount, Telling, find_related, tell_findings
from inspector.audit.models import Finding, Review
from inspector.audit.reviews.bindings import Change, Standing, find_places, find_standings, list_reviews
from inspector.audit.reviews.bindings import Place as Cited
from inspector.audit.rules import RULES
from inspector.audit.rules.work import TAKEN_BACK, TAKEN_BACK_RULE
from inspector.browsing.sequence import WINDOW_STEPS, Missing, find_missing
from inspector.browsing.transcripts import mark_sentences
from inspector.ledger.proofs import find_entries, say_changed
from inspector.search.selectors import read_key, write_key
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import Digest, count_hidden_in, read_body, sum_up
from inspector.threads.states import derive_state
from inspector.threads.tasks import get_state
from inspector.threads.timeline import Edge, Start, Window, name_timeline, read_edge

from ..shell import read_number, render_page
from ..shown.markup import shorten_name
from ..shown.told import list_notes, name_conversations, name_dialect, name_dialects, shorten, write_elapsed
from .transcript import make_ghost_anchor

# The sentence of the first request, as the summary has it.
MAX_REQUEST_LENGTH: Final = 200
# The views of a conversation in the order of their tabs: (name of the address, what it is called).
TABS: Final = (
    ("conversation", "Transcript"),
    ("sequence", "Sequence"),
    ("conversation-tree", "Tree"),
    ("conversation-tasks", "Tasks"),
    ("conversation-findings", "Findings"),
    ("conversation-raw", "Raw"),
)
# The end that was taken back, in words.
AFTER: Final[Mapping[str, str]] = {
    "refused": "refusing",
    "failed for good": "failing",
    "done": "it was reported done",
}
# How a conversation stands by a request that is not the first.
_OTHERS: Final[Mapping[str, str]] = {
    "open": "another request is open",
    "stalled": "another request is stalled",
    "failed": "another request failed",
    "done": "another request is done",
    "cancelled": "another request is cancelled",
}


def render_view(
    request: HttpRequest,
    membership: Membership,
    conversation: Conversation,
    template: str,
    context: dict[str, Any],
    *,
    current: str,
    digest: Digest | None = None,
    telling: Telling | None = None,
    stop: int | None = None,
    status: int = 200,
) -> HttpResponse:
    """A view of the conversation within the frame of all of them.

    Args:
        context: of the view; the frame's are `conversation`, `answers`, `views`, `hidden_count`, and the ways to what
            is missing.
        current: the address name of the view.
        digest, telling: it summed up, and what findings say of it, where the view has asked.
        stop: the position after the window that is shown, where it is one of the timeline.
    """
    slug = membership.workspace.slug
    described = _describe(conversation)
    telling = telling or tell_findings(conversation=conversation)
    opened = telling.opened
    digest = digest or sum_up(conversation=conversation)
    answers = _make_answers(conversation, digest, membership, opened)
    answers["gravest"] = _name_gravest(telling.findings)
    described["doubt"] = _say_doubts(conversation, digest, telling.findings)
    counts = {"conversation": conversation.message_count} | ({"conversation-findings": opened.count} if opened else {})
    frame = {
        "conversation": described,
        "answers": answers,
        "views": [
            {
                "name": title,
                "url": reverse(f"pages:{name}", args=[slug, conversation.pk]),
                "is_current": name == current,
                "count": counts.get(name),
            }
            for name, title in TABS
        ],
        "hidden_count": count_hidden_in(conversation=conversation),
        **_find_ghosts(conversation, slug, current, stop),
    }
    return render_page(request, membership, template, {**frame, **context}, section="conversations", status=status)


def _find_ghosts(conversation: Conversation, slug: str, current: str, stop: int | None) -> dict[str, str]:
    """Where the first missing message stands, and the first after what is shown; in the sequence from there."""
    if not conversation.missing_count:
        return {"missing_url": "", "next_missing_url": ""}
    name, query = ("sequence", "?") if current == "sequence" else ("conversation", "?order=time&")
    address = reverse(f"pages:{name}", args=[slug, conversation.pk])
    first, after = find_missing(conversation=conversation, after=None if stop is None else stop - 1)
    return {
        "missing_url": _write_ghost(address + query, first),
        "next_missing_url": _write_ghost(address + query, after) if after else "",
    }


def _write_ghost(address: str, missing: Missing | None) -> str:
    if missing is None:
        return "#main"
    return f"{address}offset={missing.position // WINDOW_STEPS * WINDOW_STEPS}#{make_ghost_anchor(missing.key)}"


def _describe(conversation: Conversation) -> dict[str, Any]:
    name = name_conversations([conversation])[conversation.pk]
    return {
        "title": shorten_name(shorten(name), 500),
        "id": conversation.pk,
        "row": conversation,
        "native_id": shorten_name(conversation.native_id),
        "state": get_state(conversation),
        "doubt": "",
        "dialects": name_dialects(conversation.dialects),
    }


def _make_answers(
    conversation: Conversation, digest: Digest, membership: Membership, findings: OpenCount | None
) -> dict[str, Any]:
    names = {number: Message.Severity(number).label for number in digest.tally.severities if number}
    reviews = list_reviews(conversation=conversation, reader_id=membership.user_id)
    standings = find_standings(reviews=reviews, conversation=conversation, is_compared=True)
    elapsed = None
    if conversation.first_at and conversation.last_at:
        elapsed = conversation.last_at - conversation.first_at
    return {
        "asked": {
            "id": digest.asked.pk,
            "sentence": shorten(mark_sentences([digest.asked])[digest.asked.pk], MAX_REQUEST_LENGTH),
            "more": digest.tally.asked_count - 1,
        }
        if digest.asked
        else None,
        "elapsed": write_elapsed(elapsed) if elapsed else "",
        "severities": [
            {"name": names[number], "count": count}
            for number, count in sorted(digest.tally.severities.items(), reverse=True)
            if number
        ],
        "findings": {"count": findings.count, "name": Message.Severity(findings.severity).label} if findings else None,
        # What a rule found says it better.
        "problems": [] if findings else [_name_problem(message) for message in digest.gravest],
        "failed_count": digest.tally.failed_count,
        "malformed_count": digest.tally.malformed_count,
        "reviews": describe_verdicts(reviews, standings, workspace=membership.workspace),
    }


def _name_gravest(findings: Sequence[Finding]) -> str:
    """The most severe open finding: what was reversed, or the title of its rule; empty where none is open."""
    gravest = next((each for each in findings if each.state == Finding.State.OPEN), None)
    if gravest is None:
        return ""
    rule = gravest.rule
    if rule == TAKEN_BACK_RULE and gravest.text in TAKEN_BACK.values():
        return gravest.text.partition(",")[0].removesuffix(".")
    return RULES[rule].title if rule in RULES else rule


def list_reversed(findings: Sequence[Finding]) -> list[tuple[Finding, str, str]]:
    """Findings of an end in doubt, each with the end that was reversed (`DENIED`: its data deny it), and the one that
    stands."""
    ends = {text: pair for pair, text in TAKEN_BACK.items()}
    denied = [(each, DENIED, str(end)) for each in findings if (end := vars(each).get("denied_end"))]
    return [
        (each, *ends[each.text]) for each in findings if each.rule == TAKEN_BACK_RULE and each.text in ends
    ] + denied


def say_doubt(state: str, before: str, later: str = "") -> str:
    """An end that is in doubt: after which other end it came, or that its data deny it."""
    return f"{state}, but its data deny it" if before == DENIED else f"{state}, after {AFTER[before]}{later}"


def _say_doubts(conversation: Conversation, digest: Digest, findings: Sequence[Finding]) -> str:
    """What is doubtful of the outcome of the request that is shown: its own end, or that others came out otherwise;
    empty where nothing is."""
    own = vars(digest.asked).get("stands") if digest.asked else None
    outcome = derive_state([own]) if own else conversation.state
    if digest.asked is None or outcome == conversation.state:
        return _say_reversal(get_state(conversation), findings)
    its = [each for each in findings if vars(each).get("its_task") == digest.asked.task]
    return f"{_say_reversal(outcome, its) or outcome}; {_OTHERS[get_state(conversation)]}"


def _say_reversal(state: str, findings: Sequence[Finding]) -> str:
    """How the conversation's end took an earlier one back, and how much later, or that its data deny it; else empty."""
    for finding, before, after in list_reversed(findings):
        if after == state:
            earlier = [each.order_time for each in find_related(finding=finding)]
            gap = finding.at - min(earlier) if earlier else None
            return say_doubt(state, before, f" ({write_elapsed(gap)} later)" if gap else "")
    return ""


def _name_problem(message: Message) -> dict[str, Any]:
    notes = list_notes(message, read_body(message))
    return {"id": message.pk, "text": shorten(notes[0].text) if notes else "see the message"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Pager:
    """The links around a window; an empty one leads nowhere. `most` is the number of the last message, 0 if unknown.

    `kept` are the parameters that a jump takes along.
    """

    words: str
    first_url: str = ""
    previous_url: str = ""
    next_url: str = ""
    last_url: str = ""
    kept: tuple[tuple[str, str], ...] = ()
    most: int = 0

    @property
    def is_needed(self) -> bool:
        """Whether there is more than this window."""
        return bool(self.previous_url or self.next_url)


def read_start(request: HttpRequest, conversation: Conversation) -> Start:
    """Where the address says that a window lies: after one, before one, or from a message on (`offset`).

    Raises:
        Http404: for what no page of this conversation wrote.
    """
    of = name_timeline(conversation)
    said = [read_key(request.GET.get(name), conversation.workspace_id, of=of) for name in ("after", "before")]
    after, before = (read_edge(each) if each else None for each in said)
    return Start(after, before, read_number(request, "offset"))


def write_edge(conversation: Conversation, edge: Edge) -> str:
    """An end of a window as an address has it, under `after` or `before`."""
    return write_key(edge.write(), conversation.workspace_id, of=name_timeline(conversation))


def make_pager(conversation: Conversation, window: Window[Any], *, size: int, **kept: str) -> Pager:
    """The pager of a window of so many messages; `kept` are parameters that every link takes along."""

    def write(**place: str | int) -> str:
        return "?" + urlencode({**kept, **place})

    total = conversation.message_count
    words = f"Messages {window.first:,}–{window.last:,} of {total:,}"
    return Pager(
        words=words if window.rows else f"None of {total:,} messages here",
        first_url=write() if window.first > size or (total and not window.rows) else "",
        previous_url=write(before=write_edge(conversation, window.earlier)) if window.earlier else "",
        next_url=write(after=write_edge(conversation, window.later)) if window.later else "",
        last_url=write(offset=(total - 1) // size * size) if window.later and total - window.last > size else "",
        kept=tuple(kept.items()),
        most=total,
    )


def read_jump(request: HttpRequest, *, total: int) -> int | None:
    """The position of the message whose number (`at`, counted from 1) the address asks for; None where it does not."""
    number = read_number(request, "at")
    return min(number, max(total, 1)) - 1 if number else None


# How many messages of a kind are linked to.
MAX_LINKED: Final = 5
_WORDS: Final = {
    "bytes": ("{} has different raw bytes", "{} have different raw bytes"),
    "decoder": ("{} was decoded by another decoder", "{} were decoded by another decoder"),
    "english": ("{} has different English", "{} have different English"),
    "beside": (
        "the details of {} have changed",
        "the details of {} have changed",
    ),
    "came": ("{} arrived since", "{} arrived since"),
    "gone": ("{} is withdrawn or gone", "{} are withdrawn or gone"),
}
_UNKNOWN: Final = "The conversation was processed again; the comparison follows in a moment."
_INEXACT: Final = "Verdicts of that time do not record which messages were seen, so the difference is unknown."
HOLDS, STALE, UNKNOWN = "holds", "stale", "unknown"


def say_standing(standing: Standing, found: Mapping[Cited, Message], workspace: Workspace) -> dict[str, Any]:
    """How a verdict stands, for a page.

    Args:
        standing: of the verdict.
        found: the messages that its changes name, as far as they are shown.
    """
    if not standing.is_exact:
        return {"lines": (), "state": STALE, "hint": _INEXACT}
    if not standing.changes:
        return (
            {"lines": (), "hint": "", "state": HOLDS}
            if standing.is_known
            else {"lines": (), "state": UNKNOWN, "hint": _UNKNOWN}
        )
    lines = []
    for kind, change in standing.changes.items():
        messages = [found[place] for place in change.places if place in found][:MAX_LINKED]
        urls = tuple(reverse("pages:message", args=[workspace.slug, message.pk]) for message in messages)
        lines.append((write_change(kind, change), urls, max(0, change.count - len(urls)) if urls else 0))
    return {"state": STALE, "lines": tuple(lines), "hint": "" if standing.is_known else _UNKNOWN}


def write_change(kind: str, change: Change) -> str:
    """A change in words: `2 messages came since`."""
    if kind not in _WORDS:
        return "the messages are in another order"
    one, many = _WORDS[kind]
    words = one.format("1 message") if change.count == 1 else many.format(f"{change.count:,} messages")
    return f"{words}: {_name_decoders(change.decoders)}" if change.decoders else words


def _name_decoders(decoders: Sequence[tuple[str, str]]) -> str:
    """Which decoders it was then, and which it is now."""
    named = [f"{_name_decoder(then)} then, {_name_decoder(now)} now" for then, now in decoders[:MAX_LINKED]]
    return "; ".join([*named, *(["and others"] if len(decoders) > MAX_LINKED else [])])


def _name_decoder(decoder: str) -> str:
    """A decoder in words, from `dialect version`."""
    dialect, _, version = decoder.partition(" ")
    return f"{name_dialect(dialect)} by decoder {version}"


def list_reasons(standing: Standing) -> Sequence[str]:
    """In which ways what was signed differs by now, in words; of a verdict that does not say it, that it does."""
    if not standing.is_exact:
        return ("changed since it was signed",)
    return [write_change(kind, change) for kind, change in standing.changes.items()]


def name_standing(standing: Standing) -> str:
    """A standing in one word: `holds`, `stale` or `unknown`."""
    if standing.is_stale:
        return STALE
    return HOLDS if standing.is_known else UNKNOWN


def describe_verdicts(
    reviews: Sequence[Review],
    standings: Mapping[uuid.UUID, Standing],
    *,
    workspace: Workspace,
    known: Sequence[Message] = (),
) -> list[dict[str, Any]]:
    """Verdicts on a conversation as a page shows them, each with how it stands.

    Args:
        reviews: with their reviewers, items, queues and rubrics.
        standings: by review id.
        known: messages that are shown and loaded already, so that these are not asked for again.
    """
    places = {place for each in standings.values() for change in each.changes.values() for place in change.places}
    found = {(message.record_id, message.part): message for message in known}
    found.update(find_places(places=places - found.keys(), workspace=workspace))
    entered, changed = find_entries("verdict", [review.pk for review in reviews]) if reviews else ({}, {})
    return [
        {
            "row": review,
            "changed": say_changed("verdict", changed[review.pk]) if review.pk in changed else "",
            "answers": list(zip(review.rubric.criteria, review.answers, strict=True)) if review.rubric else [],
            "rubric": review.rubric.number if review.rubric else None,
            "digest": bytes(review.binding.digest).hex() if review.binding else "",
            "place": entered.get(review.pk),
            "standing": say_standing(standings[review.pk], found, workspace),
            "queue": "" if review.item.queue.is_standing else review.item.queue.name,
        }
        for review in reviews
    ]
