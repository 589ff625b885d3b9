"""One finding: what is the matter, the message and the bytes it is about, and everything people said of it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import SNOOZED, find_finding, find_messages, find_neighbours, find_related
from inspector.audit.findings.services import list_acts, list_assignable
from inspector.audit.models import Finding, FindingAct
from inspector.audit.reviews.selectors import list_queues_around, list_settled
from inspector.audit.rules import RULES
from inspector.browsing.transcripts import mark_sentences, say_cautions_of
from inspector.lookups import or_404
from inspector.threads.messages import load_records, read_body
from inspector.threads.models import Message
from inspector.threads.timeline import number_messages

from ..agents.marks import Cast, cast_conversation
from ..conversations.transcript import name_message
from ..shell import render_page, within_workspace
from ..shown.budgets import join_texts, mark_cut, shorten_name
from ..shown.told import find_openings_of, make_line, name_dialect_of, read_segments, shorten
from ..shown.wires import MAX_SHOWN_RECORD_BYTES, cut_wire
from .rows import HIDDEN, begin_sentence, name_rule, name_state, offer_acts, title_conversation, write_place

# So much of the sentence the template unfolds.
MAX_OPEN: Final = 600
_VERBS: Final = {
    Finding.State.OPEN.value: "opened it again",
    Finding.State.ACCEPTED.value: "accepted it",
    Finding.State.FIXED.value: "marked it as fixed",
    Finding.State.FALSE_ALARM.value: "marked it as a false alarm",
}


@within_workspace("GET")
def show_finding(request: HttpRequest, membership: Membership, finding_id: uuid.UUID) -> HttpResponse:
    """The finding with its message, the messages it is about besides, its history, and the forms to act on it."""
    workspace = membership.workspace
    finding = or_404(find_finding(workspace=workspace, finding_id=finding_id))
    message = find_messages([finding]).get(finding.pk)
    related = find_related(finding=finding) if message else []
    number_messages([*related, *([message] if message else [])])
    cast = cast_conversation(finding.conversation) if message else None
    waits_in, fillable = list_queues_around(conversation=finding.conversation)
    before, after = find_neighbours(finding=finding)
    text = begin_sentence(finding.text) if message else HIDDEN
    state = name_state(finding)
    context = {
        "finding": finding,
        "title": shorten_name(shorten(text, 240), 800),
        "text": text,
        "rule": RULES.get(finding.rule),
        "rule_title": name_rule(finding.rule),
        "state": state,
        "cites": shorten_name(finding.cites, 1000),
        "conversation_title": title_conversation(finding.conversation, find_openings_of([finding.conversation])),
        "message": _describe_message(finding, message, cast, workspace.slug) if message and cast else None,
        "related": _list_related(finding, related, cast, workspace.slug) if cast else [],
        "waits_in": waits_in,
        "settled_in": list_settled(conversation=finding.conversation),
        "fillable": fillable if membership.is_auditor else [],
        "steps": _tell_history(finding),
        "sender": finding.sender if message else "",
        **offer_acts(membership, state),
        "people": list_assignable(workspace=workspace) if membership.is_auditor else [],
        "is_snoozed": state == SNOOZED,
        "next": request.path,
        "previous": before,
        "following": after,
    }
    return render_page(request, membership, "findings/finding.html", context, section="findings")


def _describe_message(finding: Finding, message: Message, cast: Cast, slug: str) -> dict[str, Any]:
    load_records(messages=[message], max_bytes=MAX_SHOWN_RECORD_BYTES)
    body = read_body(message)
    wire, stretches = cut_wire(message)
    english = read_segments(body["message"].get("english")) or [(message.english, (), "exact")]
    said, cautions = join_texts(english), say_cautions_of(message, body)
    return {
        "line": make_line(message, cast),
        "number": message.number,
        "dialect": name_dialect_of(message, body["record"]),
        "url": write_place(finding, message, slug),
        "segments": [*english, (cautions, (), "exact")],
        "mark": mark_cut(f"{said}{cautions}", said, MAX_OPEN),
        "wire": wire,
        "stretches": stretches,
    }


def _list_related(finding: Finding, related: Sequence[Message], cast: Cast, slug: str) -> list[dict[str, Any]]:
    said = mark_sentences(related)
    return [
        {
            "url": write_place(finding, each, slug),
            "name": name_message(each),
            "line": make_line(each, cast),
            "sentence": shorten_name(shorten(said[each.pk], 160), 400),
        }
        for each in related
    ]


def _tell(act: FindingAct) -> str:
    if act.kind == FindingAct.Kind.ASSIGNED:
        return f"assigned it to {act.assignee.get_username() if act.assignee else 'nobody'}"
    if act.kind == FindingAct.Kind.SNOOZED:
        return f"snoozed it until {act.until:%Y-%m-%d %H:%M} UTC"
    return _VERBS[act.state]


def _tell_history(finding: Finding) -> list[dict[str, Any]]:
    """What happened to it, in the order of time; examining is named by the decoders and rules it was done by."""
    steps = [{"at": finding.found_at, "what": "found by its rule"}]
    steps += [
        {"at": act.at, "by": act.by.get_username(), "what": _tell(act), "reason": act.reason}
        for act in list_acts(finding=finding)
    ]
    if finding.due_since is not None:
        steps.append({"at": finding.due_since, "what": "became due: its time passed, and it still applied"})
    if finding.ended_at is not None:
        what = "closed: it no longer applies, or its rule is switched off"
        steps.append({"at": finding.ended_at, "what": what})
    return sorted(steps, key=lambda step: step["at"])
