"""Findings: what the rules found, by rule; those of a rule and of a conversation, as the address narrows and sorts
them; and one, with the message and the bytes it is about and everything people said of it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from inspector.accounts.models import Membership, User
from inspector.audit.findings.selectors import (
    CLOSED,
    EVERYWHERE,
    MAX_GRAVE,
    SNOOZED,
    SUPPRESSED,
    count_by_rule,
    count_open_by_severity,
    count_snoozed,
    find_finding,
    find_messages,
    find_neighbours,
    find_related,
    grade_of,
    list_findings,
    list_latest,
    of_assignee,
)
from inspector.audit.findings.services import list_acts, list_assignable
from inspector.audit.models import Finding, FindingAct
from inspector.audit.reviews.selectors import list_queues_around, list_settled
from inspector.audit.rules import RULES, Rule
from inspector.browsing.transcripts import mark_sentences, say_cautions_of
from inspector.database import on_replica, or_404
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import WORST, load_records, read_body, sum_up
from inspector.threads.timeline import number_messages

from ..agents.marks import Cast, cast_conversation
from ..conversations.frame import frame_conversation, open_conversation
from ..conversations.transcript import name_message
from ..lists import Scope, read_scope, read_walk
from ..shell import cut_page, read_number, read_place, render_page, within_workspace
from ..shown.fields import MAX_SHOWN_RECORD_BYTES, cut_wire
from ..shown.markup import join_texts, mark_cut, shorten_name
from ..shown.told import find_openings_of, make_line, name_dialect_of, read_segments, shorten
from .rows import (
    HIDDEN,
    begin_sentence,
    describe_rule,
    make_finding_rows,
    name_rule,
    name_state,
    offer_acts,
    title_conversation,
    write_place,
)

ALL: Final = "all"
# The states that a list can be narrowed to: (in the address, in words).
STATES: Final = {
    Finding.State.OPEN.value: "open",
    SNOOZED: "snoozed",
    Finding.State.ACCEPTED.value: "accepted",
    Finding.State.FIXED.value: "fixed",
    Finding.State.FALSE_ALARM.value: "false alarms",
    ALL: "all current",
    SUPPRESSED: "suppressed",
    CLOSED: "no longer applies",
}
# A person in the address of a list: the number of an account.
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
# The orders of a list of findings of several rules; without one they stand by rule.
ORDERS: Final = {WORST: "most severe first", "newest": "newest first"}
SEVERITIES: Final = {
    severity.label.lower(): severity.value for severity in reversed(Message.Severity) if severity.value
}


def read_filters(said: Mapping[str, str]) -> dict[str, str]:
    """The filters of the address; what they do not know narrows nothing, and open is where one begins."""
    state, severity = said.get("state", ""), said.get("severity", "")
    assignee = said.get("assignee", "")
    return {
        "state": state if state in STATES else Finding.State.OPEN.value,
        "severity": severity if severity in SEVERITIES else "",
        "q": said.get("q", "").strip(),
        "assignee": assignee if assignee in ("me", "nobody") or _NUMBER.fullmatch(assignee) else "",
        "order": said.get("order", "") if said.get("order") in ORDERS else "",
    }


def read_state(filters: Mapping[str, str]) -> str:
    """The state as `select_findings` takes it: empty for all current ones."""
    return "" if filters["state"] == ALL else filters["state"]


def read_assignee(filters: Mapping[str, str], membership: Membership) -> Q:
    """The findings of whoever the filter names: the reader, nobody, or a person by number."""
    named = filters["assignee"]
    if named == "me":
        return of_assignee(membership.user_id)
    if named == "nobody":
        return of_assignee(None)
    return of_assignee(int(named)) if named else EVERYWHERE


PAGE_ROWS: Final = 50
# So many findings of each rule stand on the page of all of them.
LATEST_OF_RULE: Final = 3
_SHOWN_STATES: Final = (Finding.State.OPEN.value, SNOOZED, *Finding.State.values[1:])


@within_workspace("GET")
@on_replica
def show_findings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The rules that found something, by severity; with `rule` in the address the findings of that rule."""
    code = request.GET.get("rule", "")
    if code:
        if code not in RULES:
            raise Http404
        return answer_rule(request, membership, RULES[code])
    workspace, filters = membership.workspace, read_filters(request.GET)
    people = list_assignable(workspace=workspace)
    scope = read_scope(request, membership)
    if filters["order"]:
        context = {
            **_list_page(request, membership, filters, scope=scope),
            **_frame_filters(filters, people, has_severity=True),
        }
        return render_page(request, membership, "findings/list.html", context, section="findings")
    within = scope.findings & read_assignee(filters, membership)
    counts = count_by_rule(workspace=workspace, state=read_state(filters), words=filters["q"], within=within)
    found = {count.rule.code for count in counts}
    wanted = SEVERITIES.get(filters["severity"], 0)
    address = reverse("pages:findings", args=[workspace.slug])
    kept = {name: value for name, value in filters.items() if value and name not in ("severity", "order")}
    kept |= scope.parameters
    counts = [count for count in counts if not wanted or count.severity == wanted]
    counts.sort(key=lambda count: -grade_of(count.rule.code, count.severity))
    latest = list_latest(
        workspace=workspace,
        rules=[count.rule.code for count in counts],
        each=LATEST_OF_RULE,
        state=read_state(filters),
        words=filters["q"],
        within=within,
    )
    listed = zip(latest, make_finding_rows(latest, workspace), strict=True)
    by_rule = {code: [row for _, row in rows] for code, rows in groupby(listed, key=lambda pair: pair[0].rule)}
    groups = [
        {
            "rule": count.rule,
            "severity": count.severity,
            "url": f"{address}?{urlencode({'rule': count.rule.code, **kept})}",
            "states": [(state, count.states[state]) for state in _SHOWN_STATES if state in count.states],
            "total": count.total,
            "rows": by_rule.get(count.rule.code, []),
        }
        for count in counts
    ]
    context = {
        "groups": groups,
        "silent": [rule for rule in RULES.values() if rule.code not in found],
        "scope": scope,
        "open_counts": link_severities(
            membership, count_open_by_severity(workspace=workspace, within=scope.findings), **scope.parameters
        ),
        "snoozed_count": count_snoozed(workspace=workspace, within=scope.findings),
        "snoozed_url": f"{address}?{urlencode({'state': SNOOZED, **scope.parameters})}",
        **_frame_filters(filters, people, has_severity=True),
        "address": address,
    }
    return render_page(request, membership, "findings/findings.html", context, section="findings")


def link_severities(membership: Membership, counts: Mapping[int, int], **kept: str) -> list[dict[str, Any]]:
    """The number of open findings of each severity that has some, the gravest first, and where they are listed."""
    address = reverse("pages:findings", args=[membership.workspace.slug])
    return [
        {"name": name, "count": counts[value], "url": f"{address}?{urlencode({'severity': name, **kept})}"}
        for name, value in SEVERITIES.items()
        if counts.get(value)
    ]


def link_rule(slug: str, rule: Rule, **kept: str) -> str:
    """Where the findings of a rule that stand open are listed."""
    return f"{reverse('pages:findings', args=[slug])}?{urlencode({'rule': rule.code, **kept})}"


def answer_rule(
    request: HttpRequest, membership: Membership, rule: Rule, *, errors: Mapping[str, str] | None = None
) -> HttpResponse:
    """The findings of a rule, a page of them, with the rule itself: how it is set, and what is suppressed.

    Args:
        errors: what was refused, by the name of the form.
    """
    filters = read_filters(request.GET)
    context = {
        **_list_page(request, membership, filters, rule=rule.code, scope=read_scope(request, membership)),
        **_frame_filters(filters, list_assignable(workspace=membership.workspace), has_severity=False),
        **describe_rule(membership, rule),
        "errors": errors or {},
        "rule": rule,
        "said": request.POST,
    }
    status = 422 if errors else 200
    return render_page(request, membership, "findings/rule.html", context, section="findings", status=status)


@within_workspace("GET")
def show_conversation_findings(
    request: HttpRequest, membership: Membership, conversation_id: uuid.UUID
) -> HttpResponse:
    """What the rules found in one conversation."""
    conversation = open_conversation(membership, conversation_id)
    filters = read_filters(request.GET)
    frame = frame_conversation(
        membership=membership,
        conversation=conversation,
        digest=sum_up(conversation=conversation),
        current="conversation-findings",
    )
    context = {
        **frame,
        **_list_page(request, membership, filters, conversation=conversation),
        **_frame_filters(filters, list_assignable(workspace=membership.workspace), has_severity=True),
    }
    return render_page(request, membership, "findings/conversation.html", context, section="conversations")


def _frame_filters(filters: Mapping[str, str], people: Sequence[User], *, has_severity: bool) -> dict[str, Any]:
    return {
        "filters": filters,
        "states": STATES.items(),
        "severities": list(SEVERITIES) if has_severity else [],
        "orders": list(ORDERS.items()) if has_severity else [],
        "people": people,
        "is_filtered": filters["state"] != Finding.State.OPEN.value
        or any(filters[name] for name in ("severity", "q", "assignee")),
    }


def _list_page(
    request: HttpRequest,
    membership: Membership,
    filters: Mapping[str, str],
    *,
    rule: str = "",
    conversation: Conversation | None = None,
    scope: Scope | None = None,
) -> dict[str, Any]:
    """A page of findings by keyset, with the ways to its neighbours and what it takes to judge them."""
    workspace = membership.workspace
    before = read_place(request, membership)
    walk = read_walk(request, membership, places=("before", "grade"))
    # The findings of a rule are all as grave as it is set; those of several are read from the worst on.
    is_worst_first = filters["order"] == WORST or (conversation is not None and not filters["order"])
    choose = partial(
        list_findings,
        workspace=workspace,
        rule=rule,
        state=read_state(filters),
        words=filters["q"],
        severity=SEVERITIES.get(filters["severity"], 0),
        conversation=conversation,
        within=(scope.findings if scope else EVERYWHERE) & read_assignee(filters, membership),
    )
    if walk.is_rest:
        rows = choose().filter(walk.written, **({"pk__gt": walk.after[0]} if walk.after else {})).order_by("pk")
    else:
        grade = read_number(request, "grade", default=MAX_GRAVE)
        rows = choose(after=before, is_worst_first=is_worst_first, grade=grade)
    page, last = cut_page(rows[: PAGE_ROWS + 1], PAGE_ROWS)
    return {
        **({"scope": scope} if scope else {}),
        "rows": make_finding_rows(page, workspace),
        "is_worst_first": is_worst_first,
        "has_rule": not rule,
        "has_conversation": conversation is None,
        **offer_acts(membership, read_state(filters)),
        "next": request.get_full_path(),
        "older_url": walk.write_older(
            last, "at", grade=str(grade_of(last.rule, last.severity)) if last and is_worst_first else None
        ),
        "rest_url": walk.find_rest(choose(), has_more=last is not None),
        "walk": walk,
    }


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
