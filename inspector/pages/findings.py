"""Findings: what the rules found, by rule; those of a rule and of a conversation, as the address narrows and sorts
them; and one, with the message and the bytes it is about and everything people said of it.

Beside them what auditors do about findings: decisions, snoozes and assignments, of one or of several at once; setting a
rule, suppressing what it finds, and lifting that.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from inspector.accounts.models import Membership, User
from inspector.audit.findings.examining import find_suppression
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
from inspector.audit.findings.services import (
    OvertakenError,
    assign,
    judge,
    lift,
    list_acts,
    list_assignable,
    list_open,
    set_rule,
    snooze,
    suppress,
)
from inspector.audit.models import Finding
from inspector.audit.reviews.selectors import list_queues_around, list_settled
from inspector.audit.rules import RULES, Rule, name_rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.browsing.transcripts import mark_sentences, say_cautions_of
from inspector.database import on_replica, or_404
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import WORST, find_conversation, load_records, read_body
from inspector.threads.timeline import number_messages

from .conversations.frame import render_view
from .conversations.transcript import name_message
from .lists import Scope, read_place, read_scope, read_walk
from .shell import parse_id, read_number, render_page, require_auditor, within_workspace
from .shown.agents import Cast, cast_conversation
from .shown.fields import MAX_SHOWN_RECORD_BYTES, cut_wire
from .shown.findings import (
    HIDDEN,
    SNOOZES,
    begin_sentence,
    describe_rule,
    make_finding_rows,
    name_state,
    offer_acts,
    tell_act,
    tell_history,
    title_conversation,
    write_place,
)
from .shown.markup import join_texts, mark_cut, shorten_name
from .shown.told import find_openings_of, make_line, name_dialect_of, read_segments, shorten
from .templatetags.marks import write_moment

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

GRADES: Final = {severity.label.lower(): severity.value for severity in reversed(Message.Severity) if severity.value}


def read_filters(said: Mapping[str, str]) -> dict[str, str]:
    """The filters of the address; what they do not know narrows nothing, and open is where one begins."""
    state, severity = said.get("state", ""), said.get("severity", "")
    assignee = said.get("assignee", "")
    return {
        "state": state if state in STATES else Finding.State.OPEN.value,
        "severity": severity if severity in GRADES else "",
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
    wanted = GRADES.get(filters["severity"], 0)
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
        for name, value in GRADES.items()
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


@within_workspace("GET", of=find_conversation)
def show_conversation_findings(
    request: HttpRequest, membership: Membership, conversation: Conversation
) -> HttpResponse:
    """What the rules found in one conversation."""
    filters = read_filters(request.GET)
    context = {
        **_list_page(request, membership, filters, conversation=conversation),
        **_frame_filters(filters, list_assignable(workspace=membership.workspace), has_severity=True),
    }
    template = "findings/conversation.html"
    return render_view(request, membership, conversation, template, context, current="conversation-findings")


def _frame_filters(filters: Mapping[str, str], people: Sequence[User], *, has_severity: bool) -> dict[str, Any]:
    return {
        "filters": filters,
        "states": STATES.items(),
        "severities": list(GRADES) if has_severity else [],
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
        severity=GRADES.get(filters["severity"], 0),
        conversation=conversation,
        within=(scope.findings if scope else EVERYWHERE) & read_assignee(filters, membership),
    )
    if walk.is_rest:
        rows = walk.narrow(choose(), "pk__gt").order_by("pk")
    else:
        grade = read_number(request, "grade", default=MAX_GRAVE)
        rows = choose(after=before, is_worst_first=is_worst_first, grade=grade)
    page, last = walk.cut(rows[: PAGE_ROWS + 1], PAGE_ROWS, choose())
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
        "walk": walk,
    }


# So much of the sentence the template unfolds.
MAX_OPEN: Final = 600


@within_workspace("GET", of=find_finding)
def show_finding(request: HttpRequest, membership: Membership, finding: Finding) -> HttpResponse:
    """The finding with its message, the messages it is about besides, its history, and the forms to act on it."""
    workspace = membership.workspace
    message = find_messages([finding]).get(finding.pk)
    related = find_related(finding=finding) if message else []
    number_messages([*related, *([message] if message else [])])
    cast = cast_conversation(finding.conversation) if message else None
    waits_in, fillable = list_queues_around(conversation=finding.conversation)
    before, after = find_neighbours(finding=finding)
    text = begin_sentence(finding.text) if message else HIDDEN
    state = name_state(finding)
    acts = list_acts(finding=finding)
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
        "steps": tell_history(finding, acts),
        "seen": acts[-1].pk if acts else "",
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


NOBODY: Final = "nobody"


@within_workspace("POST", needs="auditor")
def judge_findings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """What an auditor makes of the findings that were chosen; a refusal gives the form back as it was filled in."""
    chosen = [pk for pk in map(parse_id, request.POST.getlist("finding")) if pk]
    people = list_assignable(workspace=membership.workspace)
    opened = list_open(workspace=membership.workspace, findings=chosen)
    try:
        count, done = _act(request, membership, chosen, people)
    except ValidationError as error:
        act = error.act if isinstance(error, OvertakenError) else None
        context: dict[str, Any] = {
            "error": "" if act else " ".join(error.messages),
            "overtaken_by": act and {"row": act, "what": tell_act(act)},
            "seen": act.pk if act else request.POST.get("seen"),
            "chosen": chosen,
            "said": request.POST,
            **offer_acts(membership, act.state if act else ""),
            "people": people,
            "next": find_way_back(request, membership),
        }
        return render_page(request, membership, "findings/judge.html", context, section="findings", status=422)
    words = "1 finding is" if count == 1 else f"{count:,} findings are"
    rest = len(chosen) - count
    stood = f" {rest:,} stood so before, or are not here." if rest else ""
    # The next page offers to undo it for those that were open.
    is_undone = request.POST.get("state") != Finding.State.OPEN and "act" not in request.POST
    closed = " ".join(map(str, opened)) if is_undone else ""
    flashes.success(request, f"{words} now {done}.{stood}", extra_tags=closed)
    return redirect(find_way_back(request, membership))


# How one finding stands after a decision, and how several do.
_STANDS: Final[Mapping[str, tuple[str, str]]] = {
    Finding.State.OPEN: ("open again", "open again"),
    Finding.State.ACCEPTED: ("accepted", "accepted"),
    Finding.State.FIXED: ("marked as fixed", "marked as fixed"),
    Finding.State.FALSE_ALARM: ("marked as a false alarm", "marked as false alarms"),
}


def _act(
    request: HttpRequest, membership: Membership, chosen: Sequence[uuid.UUID], people: Sequence[User]
) -> tuple[int, str]:
    """Do what the form says. Of how many findings it was done, and how they are now."""
    if not chosen:
        raise ValidationError("Choose at least one finding of the list first.")
    # The page of one finding says what it showed; what is chosen in a list is decided whatever was made of it.
    given: dict[str, Any] = {"membership": membership, "findings": chosen, "seen": request.POST.get("seen")}
    if request.POST.get("act") == "assign":
        person = _read_assignee(request, people)
        count = assign(**given, assignee=person)
        return count, f"assigned to {person.get_username() if person else 'nobody'}"
    state, reason = request.POST.get("state", ""), request.POST.get("reason", "")
    if state not in SNOOZES:
        count = judge(**given, state=state, reason=reason)
        return count, _STANDS[state][count != 1]
    until = timezone.now() + timedelta(days=SNOOZES[state][0])
    count = snooze(**given, until=until, reason=reason)
    return count, f"snoozed until {write_moment(until, membership.user.time_zone)}"


def _read_assignee(request: HttpRequest, people: Sequence[User]) -> User | None:
    named = request.POST.get("assignee", "")
    if named == NOBODY:
        return None
    person = next((each for each in people if str(each.pk) == named), None)
    if person is None:
        raise ValidationError("Choose a person first, or nobody.")
    return person


def find_way_back(request: HttpRequest, membership: Membership) -> str:
    """The page a form was on, where that is one of this workspace; else the list of findings."""
    way = request.POST.get("next", "")
    slug = membership.workspace.slug
    home = reverse("pages:overview", args=[slug]).removesuffix("overview/")
    if url_has_allowed_host_and_scheme(way, allowed_hosts=None) and way.startswith(home):
        return way
    return reverse("pages:findings", args=[slug])


@within_workspace("POST", needs="owner")
def set_one(request: HttpRequest, membership: Membership) -> HttpResponse:
    """An owner switches a rule on or off, or grades it anew."""
    said = request.POST

    def act(rule: Rule) -> None:
        grade, is_on = _read_grade(said.get("severity", "")), said.get("is_on") != "no"
        set_rule(membership=membership, rule=rule.code, is_on=is_on, severity=grade, reason=said.get("reason", ""))

    done = "The rule is set. What that changes is looked for in the background."
    return _act_on_rule(request, membership, "set", act, done)


@within_workspace("POST", needs="auditor")
def suppress_findings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """An auditor has what a rule finds of a sender, or in a conversation, not shown."""

    def act(rule: Rule) -> None:
        sender, conversation = _read_scope(request, membership)
        reason = request.POST.get("reason", "")
        suppress(membership=membership, rule=rule.code, conversation=conversation, sender=sender, reason=reason)

    done = "Suppressed. What it covers is kept, and listed under “suppressed”."
    return _act_on_rule(request, membership, "suppress", act, done, "#suppressions")


def _act_on_rule(
    request: HttpRequest, membership: Membership, form: str, act: Callable[[Rule], None], done: str, place: str = ""
) -> HttpResponse:
    """Do something about the rule that a form names, and lead to its page; a refusal stands in the form."""
    rule = RULES.get(request.POST.get("rule", ""))
    if rule is None:
        return render_page(request, membership, "findings/no_rule.html", {}, section="findings", status=422)
    try:
        act(rule)
    except ValidationError as error:
        return answer_rule(request, membership, rule, errors={form: "; ".join(error.messages)})
    flashes.success(request, done)
    return redirect(link_rule(membership.workspace.slug, rule) + place)


@within_workspace("POST")
def lift_suppression(request: HttpRequest, membership: Membership, suppression_id: uuid.UUID) -> HttpResponse:
    """What was suppressed is shown again."""
    suppression = or_404(find_suppression(workspace_id=membership.workspace.pk, suppression_id=suppression_id))
    require_auditor(membership)
    lift(membership=membership, suppression=suppression)
    flashes.success(request, "Lifted: what it covered is shown again, unless another suppression covers it.")
    return redirect(find_way_back(request, membership))


def _read_scope(request: HttpRequest, membership: Membership) -> tuple[str, Conversation | None]:
    """What is to be suppressed: a sender as it was typed, or the sender and the conversation of a finding."""
    text = request.POST.get("finding", "")
    if not text:
        return request.POST.get("sender", ""), None
    finding_id = parse_id(text)
    finding = finding_id and find_finding(workspace=membership.workspace, finding_id=finding_id)
    if not finding:
        raise ValidationError("there is no such finding here")
    sender = finding.sender if request.POST.get("of_sender") else ""
    return sender, finding.conversation if request.POST.get("in_conversation") else None


def _read_grade(text: str) -> int | None:
    """A severity by its name; empty is as the rule says, and -1 is none."""
    if not text:
        return None
    return SEVERITIES.index(text) if text in SEVERITIES else -1
