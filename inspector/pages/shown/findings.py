"""Findings as lines of a page: what is the matter, who said it, where in the wire, and what people made of it; a rule
on its page, how it is set here and what is suppressed of it.

A finding about a message that is not shown keeps its place and its history; what it says of that message is left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Membership, Workspace
from inspector.audit.findings.examining import list_changes, list_suppressions
from inspector.audit.findings.selectors import CLOSED, SNOOZED, SUPPRESSED, find_messages
from inspector.audit.models import Finding, FindingAct
from inspector.audit.rules import RULES, Rule, name_rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.browsing.transcripts import mark_sentences
from inspector.threads.agents import load_labels
from inspector.threads.models import Conversation, Message

from .agents import Casts
from .markup import name_spans, shorten_name
from .told import find_openings_of, make_line, name_conversation, shorten

MAX_SENTENCE_LENGTH: Final = 240

MAX_ENGLISH_LENGTH: Final = 160

SENTENCE_BYTES: Final = 500

CITATION_BYTES: Final = 300

# A note of a decoder begins in the middle of a sentence, often with one of these; anything else may be of the message.
_OPENERS: Final = frozenset({"a", "an", "it", "its", "more", "no", "none", "not", "nothing", "only", "the", "there"})

HIDDEN: Final = "It is hidden with its message: the delivery was withdrawn."

# The ways in which an auditor may let a finding stand, and what each is called where one is chosen.
JUDGEMENTS: Final = (
    (Finding.State.ACCEPTED.value, "Accept risk"),
    (Finding.State.FIXED.value, "Fixed"),
    (Finding.State.FALSE_ALARM.value, "False alarm"),
    (Finding.State.OPEN.value, "Open again"),
)

# For how many days an open finding can be left out of lists, by what is chosen.
SNOOZES: Final = {
    "snooze-1": (1, "Snooze for a day"),
    "snooze-7": (7, "Snooze for a week"),
    "snooze-30": (30, "Snooze for 30 days"),
}


def make_finding_rows(findings: Sequence[Finding], workspace: Workspace) -> list[dict[str, Any]]:
    """The rows of findings of a workspace, each loaded with its conversation; in three statements."""
    messages = find_messages(findings)
    openings = find_openings_of(finding.conversation for finding in findings)
    casts = Casts(load_labels(workspace_id=workspace.pk))
    said = mark_sentences(messages.values())
    return [_make_row(finding, messages.get(finding.pk), said, openings, casts, workspace.slug) for finding in findings]


def describe_findings(findings: Sequence[Finding], sentence_bytes: int = SENTENCE_BYTES) -> list[dict[str, Any]]:
    """Findings beside the message that they are about, which says the rest."""
    return [
        {
            "finding": finding,
            "title": name_rule(finding.rule),
            "state": name_state(finding),
            "sentence": HIDDEN if vars(finding).get("is_hidden") else _shorten(finding.text, sentence_bytes),
            "cites": shorten_name(finding.cites, CITATION_BYTES),
        }
        for finding in findings
    ]


def _shorten(text: str, max_bytes: int = SENTENCE_BYTES) -> str:
    return shorten_name(shorten(begin_sentence(text), MAX_SENTENCE_LENGTH), max_bytes)


def begin_sentence(text: str) -> str:
    """The text of a finding as a sentence of its own; nothing that a message says is changed."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0] in _OPENERS else text


def _make_row(
    finding: Finding,
    message: Message | None,
    said: Mapping[uuid.UUID, str],
    openings: Mapping[uuid.UUID, str],
    casts: Casts,
    slug: str,
) -> dict[str, Any]:
    """`line` says from whom to whom its message is, None where that is hidden or gone; `english` is what it says."""
    conversation = finding.conversation
    return {
        "title": name_rule(finding.rule),
        "group": RULES[finding.rule].group if finding.rule in RULES else "",
        "finding": finding,
        "state": name_state(finding),
        "sentence": _shorten(finding.text) if message else HIDDEN,
        "cites": shorten_name(finding.cites, CITATION_BYTES),
        "line": make_line(message, casts.find(conversation)) if message else None,
        "english": shorten_name(shorten(said[message.pk], MAX_ENGLISH_LENGTH), SENTENCE_BYTES)
        if message and message.performative
        else "",
        "conversation_title": title_conversation(conversation, openings),
        "message_url": write_place(finding, message, slug) if message else "",
    }


def offer_acts(membership: Membership, state: str = "") -> dict[str, Any]:
    """What an auditor may make of findings, for the form of `findings/_judge.html`; `state` is how they stand."""
    if not membership.is_auditor:
        return {"may_judge": False}
    return {
        "may_judge": True,
        "judgements": [each for each in JUDGEMENTS if each[0] != state],
        "snoozes": [(value, words) for value, (_, words) in SNOOZES.items()]
        if state in ("", Finding.State.OPEN, SNOOZED)
        else [],
    }


def name_state(finding: Finding) -> str:
    """How a finding stands, as the chip names it: what does not hold is closed, whatever people made of it."""
    if not finding.holds:
        return CLOSED
    if finding.is_suppressed:
        return SUPPRESSED
    return SNOOZED if finding.state == Finding.State.OPEN and finding.is_snoozed else str(finding.state)


def write_place(finding: Finding, message: Message, slug: str) -> str:
    """The address of the message, its own or another that it is about, with the characters lit that it is about."""
    address = reverse("pages:message", args=[slug, message.pk])
    place = (message.record_id, message.part)
    is_own = place == (finding.record_id, finding.part)
    layer, start, end = (finding.place if is_own else finding.list_related().get(place)) or (0, 0, 0)
    return f"{address}?span={name_spans([(layer, start, end)])}" if end > start else address


def title_conversation(conversation: Conversation, openings: Mapping[uuid.UUID, str]) -> str:
    """What a conversation is called in a line."""
    return shorten_name(shorten(openings.get(conversation.pk) or name_conversation(conversation), 60), 200)


def describe_rule(membership: Membership, rule: Rule) -> dict[str, Any]:
    """How a rule is set in the reader's workspace, with the history of that, and its suppressions."""
    workspace = membership.workspace
    changes = list_changes(workspace_id=workspace.pk, rule=rule.code)
    latest = changes[0] if changes else None
    own = latest.severity if latest and latest.severity is not None else None
    return {
        "setting": {
            "is_on": latest.is_on if latest else True,
            "severity": rule.rank if own is None else own,
            "own_severity": "" if own is None else SEVERITIES[own],
        },
        "changes": [
            {"row": change, "severity": "" if change.severity is None else SEVERITIES[change.severity]}
            for change in changes
        ],
        "grades": SEVERITIES[:0:-1],
        "suppressions": _list_suppressions(workspace.pk, rule),
    }


def _list_suppressions(workspace_id: uuid.UUID, rule: Rule) -> list[dict[str, Any]]:
    found = list_suppressions(workspace_id=workspace_id, rule=rule.code)
    openings = find_openings_of(each.conversation for each in found if each.conversation is not None)
    return [
        {
            "sender": shorten_name(each.sender, 200),
            "suppression": each,
            "conversation": title_conversation(each.conversation, openings) if each.conversation else "",
        }
        for each in found
    ]


_VERBS: Final = {
    Finding.State.OPEN.value: "opened it again",
    Finding.State.ACCEPTED.value: "accepted it",
    Finding.State.FIXED.value: "marked it as fixed",
    Finding.State.FALSE_ALARM.value: "marked it as a false alarm",
}


def tell_act(act: FindingAct) -> str:
    """What somebody made of a finding, as it follows their name; until when it is snoozed stands behind."""
    if act.kind == FindingAct.Kind.ASSIGNED:
        return f"assigned it to {act.assignee.get_username() if act.assignee else 'nobody'}"
    return "snoozed it until" if act.kind == FindingAct.Kind.SNOOZED else _VERBS[act.state]


def tell_history(finding: Finding, acts: Sequence[FindingAct]) -> list[dict[str, Any]]:
    """What happened to it, in the order of time; examining is named by the decoders and rules it was done by.

    Args:
        acts: what people made of it, the first first.
    """
    steps: list[dict[str, Any]] = [{"at": finding.found_at, "what": "found by its rule"}]
    steps += [
        {"at": act.at, "by": act.by.get_username(), "what": tell_act(act), "until": act.until, "reason": act.reason}
        for act in acts
    ]
    if finding.due_since is not None:
        steps.append({"at": finding.due_since, "what": "became due: its time passed, and it still applied"})
    if finding.ended_at is not None:
        what = "closed: it no longer applies, or its rule is switched off"
        steps.append({"at": finding.ended_at, "what": what})
    steps.sort(key=lambda step: step["at"])
    decided = [act for act in acts if act.kind != FindingAct.Kind.ASSIGNED]
    until = decided[-1].until if decided else None
    if until is not None and until > timezone.now() and finding.snoozed_until is None:
        # When that was is not noted.
        steps.append({"at": None, "what": "its snooze ended early: what its rule finds is not what it was"})
    return steps
