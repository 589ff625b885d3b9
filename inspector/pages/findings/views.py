"""Findings: what the rules found, by rule; the findings of a rule and of a conversation."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from inspector.accounts.models import Membership, User
from inspector.audit.findings.selectors import (
    EVERYWHERE,
    MAX_GRAVE,
    SNOOZED,
    count_by_rule,
    count_open_by_severity,
    count_snoozed,
    grade_of,
    list_findings,
    list_latest,
)
from inspector.audit.findings.services import list_assignable
from inspector.audit.models import Finding
from inspector.audit.rules import RULES, Rule
from inspector.replica import on_replica
from inspector.threads.models import Conversation
from inspector.threads.selectors import WORST, sum_up

from ..conversations.frame import frame_conversation, open_conversation
from ..scope import Scope, read_scope
from ..shell import cut_page, read_number, read_place, render_page, within_workspace
from ..walks import read_walk
from .narrowing import ORDERS, SEVERITIES, STATES, name_state, read_assignee, read_filters
from .rows import describe_rule, make_finding_rows, offer_acts

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
    counts = count_by_rule(workspace=workspace, state=name_state(filters), words=filters["q"], within=within)
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
        state=name_state(filters),
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
        state=name_state(filters),
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
        **offer_acts(membership, name_state(filters)),
        "next": request.get_full_path(),
        "older_url": walk.write_older(
            last, "at", grade=str(grade_of(last.rule, last.severity)) if last and is_worst_first else None
        ),
        "rest_url": walk.find_rest(choose(), has_more=last is not None),
        "walk": walk,
    }
