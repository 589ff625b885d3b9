"""Reads of findings: the lists and the counts, of those that are due (`due`), also by a query."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
    Window,
)
from django.db.models.functions import JSONObject, RowNumber

from inspector.accounts.models import Workspace
from inspector.database import make_storable
from inspector.intake.models import HiddenRecord, Sighting
from inspector.search.selectors import mean
from inspector.threads.models import Conversation, Message, Task

from ..models.findings import Finding, FindingAct
from ..rules import MIDDLE_RANK, RANKS, RULES, Rule, name_rule
from ..rules.decoding import DENIED_RULE
from ..rules.work import TAKEN_BACK, TAKEN_BACK_RULE
from .storing import AWAKE, COUNTS, DUE, WAITING

Key = tuple[datetime, uuid.UUID]
# How a finding stands beside what people made of it: not shown, or held once.
SUPPRESSED: Final = "suppressed"
CLOSED: Final = "closed"
# Open, and left out of lists until a time.
SNOOZED: Final = "snoozed"
MAX_WORDS_LENGTH: Final = 200
# What orders findings, the gravest first: their severity, and within one what matters most.
GRADE: Final = F("severity") * 100 - Case(
    *(When(rule=code, then=Value(rank)) for code, rank in RANKS.items()), default=Value(MIDDLE_RANK)
)
EVERYWHERE: Final = Q()
# More findings about one window of messages are not counted message by message.
MAX_TOLD: Final = 2000


MAX_GRAVE: Final = Message.Severity.ERROR * 100


def grade_of(rule: str, severity: int) -> int:
    """How grave a finding is beside others, as `GRADE` has it: the greater the graver."""
    return severity * 100 - RANKS.get(rule, MIDDLE_RANK)


def of_channel(channel_id: uuid.UUID) -> Q:
    """The findings in a channel."""
    return Q(channel=channel_id)


def of_assignee(person: int | str | None) -> Q:
    """The findings assigned to a person, by id or by user name, or to nobody (None)."""
    return Q(assignee__username=make_storable(person)) if isinstance(person, str) else Q(assignee=person)


def of_delivery(delivery_id: uuid.UUID) -> Q:
    """The findings about records that a delivery brought, duplicates included."""
    return Q(record__in=Sighting.objects.filter(delivery=delivery_id).values("record"))


@dataclass(frozen=True, slots=True)
class RuleCount:
    """What a rule has found that holds: how much stands in each state, how grave, and when last."""

    rule: Rule
    severity: int
    states: Mapping[str, int]
    latest: datetime

    @property
    def open(self) -> int:
        """How many nobody has judged."""
        return self.states.get(Finding.State.OPEN, 0)

    @property
    def total(self) -> int:
        """How many there are, whatever people made of them."""
        return sum(self.states.values())


@dataclass(frozen=True, slots=True)
class OpenCount:
    """How many findings stand open of each severity, the gravest first."""

    by_severity: Mapping[int, int]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.by_severity.values())

    @property
    def severity(self) -> int:
        """The severity of the gravest."""
        return max(self.by_severity)


@dataclass(frozen=True, slots=True)
class OpenRule:
    """A rule that has found something which stands open, by its title, and how grave that is."""

    title: str
    severity: int


def list_holding(*, workspace: Workspace, with_suppressed: bool = False) -> QuerySet[Finding]:
    """The findings of a workspace that hold and are due."""
    rows = Finding.objects.filter(DUE, workspace=workspace, holds=True)
    return rows if with_suppressed else rows.filter(is_suppressed=False)


def select_findings(
    *, workspace: Workspace, state: str = "", words: str = "", within: Q = EVERYWHERE
) -> QuerySet[Finding]:
    """The findings of a workspace that stand so, and whose text, sender or rule has these words in it.

    Args:
        state: one of `Finding.State`, `SNOOZED`, `SUPPRESSED`, `CLOSED` (held once); empty for all that hold and are
            shown. Open ones that are snoozed are `SNOOZED` alone.
        within: where they are, as `of_channel`, `of_delivery` and `of_assignee` have it.
    """
    if state == CLOSED:
        rows = Finding.objects.filter(workspace=workspace, holds=False)
    elif state == SUPPRESSED:
        rows = list_holding(workspace=workspace, with_suppressed=True).filter(is_suppressed=True)
    else:
        rows = list_holding(workspace=workspace)
        if state == SNOOZED:
            rows = rows.filter(~AWAKE, state=Finding.State.OPEN)
        elif state == Finding.State.OPEN:
            rows = rows.filter(WAITING)
        elif state:
            rows = rows.filter(state=state)
    rows = rows.filter(within)
    words = make_storable(words.strip())[:MAX_WORDS_LENGTH]
    if words:
        low = words.casefold()
        rules = [rule.code for rule in RULES.values() if low in f"{rule.code} {rule.title} {rule.why}".casefold()]
        rows = rows.filter(Q(text__icontains=words) | Q(sender__icontains=words) | Q(rule__in=rules))
    return rows


def list_here(*, conversations: Collection[uuid.UUID]) -> QuerySet[Finding]:
    """The findings in these conversations that hold, are due and are shown."""
    return Finding.objects.filter(COUNTS, conversation__in=conversations)


def count_by_rule(*, workspace: Workspace, state: str = "", words: str = "", within: Q = EVERYWHERE) -> list[RuleCount]:
    """The rules that have found something, the gravest and busiest first.

    Args:
        state: only rules with a finding that stands so, as in `select_findings`; counted are all that hold, or all
            that are suppressed, or closed.
        words, within: as in `select_findings`.
    """
    wanted = state if state in (*Finding.State.values, SNOOZED) else ""
    stands = Case(When(Q(state=Finding.State.OPEN) & ~AWAKE, then=Value(SNOOZED)), default=F("state"))
    rows = (
        select_findings(workspace=workspace, state="" if wanted else state, words=words, within=within)
        .annotate(stands=stands)
        .values("rule", "stands")
        .annotate(count=Count("pk"), severity=Max("severity"), latest=Max("at"))
        .order_by()
    )
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["rule"] in RULES:
            each = found.setdefault(row["rule"], {"states": {}, "severity": 0, "latest": row["latest"]})
            each["states"][row["stands"]] = row["count"]
            each["severity"] = max(each["severity"], row["severity"])
            each["latest"] = max(each["latest"], row["latest"])
    counts = [
        RuleCount(RULES[code], each["severity"], each["states"], each["latest"])
        for code, each in found.items()
        if not wanted or wanted in each["states"]
    ]
    return sorted(
        counts,
        key=lambda count: (count.open == 0, -grade_of(count.rule.code, count.severity), -count.open, count.rule.code),
    )


def count_open_by_severity(*, workspace: Workspace, within: Q = EVERYWHERE) -> dict[int, int]:
    """How many findings wait for a decision, by severity: open ones, without those that are snoozed."""
    rows = list_holding(workspace=workspace).filter(within, WAITING)
    counted = rows.values_list("severity").annotate(count=Count("pk")).order_by("-severity")
    return dict(counted)


def count_open_in(*, conversation_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, OpenCount]:
    """How many findings of each severity stand open in each of these conversations that has one."""
    rows = list_here(conversations=conversation_ids).filter(state=Finding.State.OPEN)
    counted = rows.values_list("conversation", "severity").annotate(count=Count("pk")).order_by("-severity")
    return _gather(counted)


def _gather(counted: Iterable[tuple[uuid.UUID, int, int]]) -> dict[uuid.UUID, OpenCount]:
    """The counts of (conversation, severity, number), the gravest of which come first, by conversation."""
    found: dict[uuid.UUID, dict[int, int]] = {}
    for conversation_id, severity, count in counted:
        if count:
            found.setdefault(conversation_id, {})[severity] = count
    return {conversation_id: OpenCount(numbers) for conversation_id, numbers in found.items()}


def survey_conversations(
    *, conversation_ids: Collection[uuid.UUID]
) -> tuple[dict[uuid.UUID, OpenCount], dict[tuple[uuid.UUID, str], str]]:
    """What `count_open_in` counts, and the ends in doubt, whatever was made of the finding; one statement.

    Returns:
        What stands open, by conversation; and, by conversation and the end that stands, the end that was reversed, or
        `DENIED`.
    """
    is_open = Q(state=Finding.State.OPEN)
    ends = {text: pair for pair, text in TAKEN_BACK.items()}
    is_reversal = Q(rule=TAKEN_BACK_RULE, text__in=ends)
    is_denial = Q(rule=DENIED_RULE)
    rows = list_here(conversations=conversation_ids).filter(is_open | is_reversal | is_denial)
    counted = (
        rows.annotate(denied_end=_find_denied_end())
        .values("conversation", "severity")
        .order_by("-severity")
        .annotate(
            count=Count("pk", filter=is_open),
            texts=ArrayAgg("text", filter=is_reversal, distinct=True, default=Value([])),
            denied=ArrayAgg("denied_end", filter=is_denial, distinct=True, default=Value([])),
        )
    )
    doubts = {(row["conversation"], end): DENIED for row in counted for end in row["denied"] if end}
    doubts |= {(row["conversation"], ends[text][1]): ends[text][0] for row in counted for text in row["texts"]}
    return _gather((row["conversation"], row["severity"], row["count"]) for row in counted), doubts


# In place of an end that was reversed: the end that stands is denied by the data of the message that reports it.
DENIED: Final = "denied"
_END_SAID: Final = Case(
    When(performative="failure", then=Value("failed")),
    When(performative="progress", then=Value("")),
    default=Value("done"),
)


def _find_denied_end() -> Case:
    """Of a finding: the end that its message gave a task that is part of no other, denied by its own data; null where
    it gave none, or the task stands otherwise by now."""
    its = Message.objects.filter(record=OuterRef("record"), part=OuterRef("part")).annotate(end=_END_SAID)
    whole = Task.objects.filter(pk=OuterRef("task"), state=OuterRef("end"), within_key=None)
    return Case(When(rule=DENIED_RULE, then=Subquery(its.filter(Exists(whole)).values("end")[:1])))


def is_doubted() -> Exists:
    """Of a task: whether it was reported done after another end, or by a message whose data deny it."""
    done = [text for (_, after), text in TAKEN_BACK.items() if after == "done"]
    is_about_end = Q(rule=TAKEN_BACK_RULE, text__in=done) | Q(rule=DENIED_RULE)
    rows = Finding.objects.filter(COUNTS, is_about_end, workspace=OuterRef("workspace"))
    rows = rows.filter(conversation=OuterRef("conversation"), sender=OuterRef("performer"))
    its = Message.objects.filter(record=OuterRef("record"), part=OuterRef("part"), task=OuterRef(OuterRef("pk")))
    return Exists(rows.filter(Exists(its)))


class Placed(Protocol):
    """A message, or what a page read of one: which it is, and where."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def record_id(self) -> uuid.UUID: ...
    @property
    def part(self) -> int: ...
    @property
    def conversation_id(self) -> uuid.UUID: ...


@dataclass(frozen=True, slots=True)
class Telling:
    """What findings say of a conversation as a page shows it.

    `findings` are the gravest that stands open, as lists have it, and every end that was taken back or is denied by its
    data (`denied_end`: see `_find_denied_end`; `its_task`: the task of the message), whatever was made of it, the
    gravest first. `opened` counts what stands open, None where nothing does. `about` has, for each message that was
    asked for and has some, the open findings about it.
    """

    findings: Sequence[Finding]
    opened: OpenCount | None
    about: Mapping[uuid.UUID, Sequence[Finding]]

    def name_rules(self) -> dict[uuid.UUID, list[OpenRule]]:
        """As `list_open_about` has it for the messages that were asked for."""
        return {
            message: list(dict.fromkeys(OpenRule(name_rule(finding.rule), finding.severity) for finding in findings))
            for message, findings in self.about.items()
        }


def tell_findings(*, conversation: Conversation, messages: Collection[Placed] = ()) -> Telling:
    """What findings say of a conversation and of some messages of it, at most a window; one statement."""
    rows = list_here(conversations=[conversation.pk])
    standing = rows.filter(state=Finding.State.OPEN).order_by()
    gravest = standing.order_by(GRADE.desc(), "-at", "-pk").values("pk")[:1]
    levels = {str(level): Count("pk", filter=Q(severity=level)) for level in Message.Severity.values}
    counted = standing.values("conversation").annotate(numbers=JSONObject(**levels)).values("numbers")
    records = {message.record_id for message in messages}
    is_about = Q(state=Finding.State.OPEN, record__in=records)
    about_ends = (TAKEN_BACK_RULE, DENIED_RULE)
    told = rows.filter(Q(pk__in=gravest) | Q(rule__in=about_ends) | is_about)
    its = Message.objects.filter(record=OuterRef("record"), part=OuterRef("part")).values("task")
    told = told.annotate(
        numbers=Subquery(counted),
        denied_end=_find_denied_end(),
        its_task=Case(When(rule__in=about_ends, then=Subquery(its[:1]))),
    )
    found: list[Any] = list(told.order_by(GRADE.desc(), "-at", "-pk")[:MAX_TOLD])
    first = next((each for each in found if each.state == Finding.State.OPEN), None)
    numbers = [(conversation.pk, int(level), count) for level, count in first.numbers.items()] if first else []
    return Telling(
        findings=[each for each in found if each is first or each.rule in about_ends],
        opened=_gather(sorted(numbers, reverse=True)).get(conversation.pk),
        about=sort_by_message([each for each in found if each.state == Finding.State.OPEN], messages),
    )


def sort_by_message(findings: Iterable[Finding], messages: Collection[Placed]) -> dict[uuid.UUID, Sequence[Finding]]:
    """Those of these findings that are about each of these messages, in their order; of those alone that have some."""
    about: dict[tuple[uuid.UUID, int], list[Finding]] = defaultdict(list)
    for finding in findings:
        about[finding.record_id, finding.part].append(finding)
    places = {message.id: (message.record_id, message.part) for message in messages}
    return {pk: about[place] for pk, place in places.items() if place in about}


def list_open_about(*, messages: Collection[Placed]) -> dict[uuid.UUID, list[OpenRule]]:
    """The rules that have found something of each of these messages that stands open, the gravest first."""
    rows = list_here(conversations={message.conversation_id for message in messages}).filter(
        state=Finding.State.OPEN, record__in={message.record_id for message in messages}
    )
    found: dict[tuple[uuid.UUID, int], list[OpenRule]] = {}
    for record_id, part, severity, rule in (
        rows.order_by(GRADE.desc(), "rule").values_list("record", "part", "severity", "rule").distinct()
    ):
        found.setdefault((record_id, part), []).append(OpenRule(name_rule(rule), severity))
    named = {message.id: found.get((message.record_id, message.part)) for message in messages}
    return {pk: rules for pk, rules in named.items() if rules}


def count_snoozed(*, workspace: Workspace, within: Q = EVERYWHERE) -> int:
    """How many open findings lists leave out because they are snoozed."""
    return select_findings(workspace=workspace, state=SNOOZED, within=within).count()


def survey_findings(
    *, conversation: Conversation, beside: Collection[uuid.UUID], limit: int = 200
) -> tuple[dict[uuid.UUID, OpenCount], list[Finding], list[Finding]]:
    """What stands open in some conversations, counted in each; and of one of them the findings, open ones and those
    that somebody decided on, at most `limit` of either, the gravest first; one statement.

    Args:
        conversation: whose findings are wanted. Each says `is_hidden`, whether the message it is about is withdrawn; a
            decided one `decided_by` (a name), `decided_at` and `reason` of the latest decision.
        beside: of which others the open ones are counted.
    """
    is_open, its = Q(state=Finding.State.OPEN), Q(conversation=conversation)
    latest = FindingAct.objects.filter(finding=OuterRef("pk"), kind=FindingAct.Kind.JUDGED).order_by("-at", "-id")
    columns = {"decided_by": "by__username", "decided_at": "at", "reason": "reason"}
    said = {name: Case(When(~is_open, then=Subquery(latest.values(each)[:1]))) for name, each in columns.items()}
    rows = list_here(conversations={conversation.pk, *beside}).filter(is_open | its).annotate(opened=is_open, **said)
    gravest = (GRADE.desc(), F("at").asc(), F("rule").asc(), F("key").asc())
    ranked = rows.annotate(
        count=Window(Count("pk"), partition_by=("conversation", "opened", "severity")),
        first=Window(RowNumber(), partition_by=("conversation", "opened", "severity"), order_by=gravest),
        rank=Window(RowNumber(), partition_by=("conversation", "opened"), order_by=gravest),
        is_hidden=Exists(HiddenRecord.objects.filter(record=OuterRef("record"))),
    ).filter(Q(first=1) | (its & Q(rank__lte=limit)))
    found: list[Any] = list(ranked.order_by("rank"))
    firsts = [each for each in found if each.opened and each.first == 1]
    own = [each for each in found if each.conversation_id == conversation.pk]
    return (
        _gather((each.conversation_id, each.severity, each.count) for each in firsts),
        [each for each in own if each.opened][:limit],
        [each for each in own if not each.opened][:limit],
    )


def list_findings(
    *,
    workspace: Workspace,
    rule: str = "",
    state: str = "",
    words: str = "",
    severity: int = 0,
    least: int = 0,
    conversation: Conversation | None = None,
    after: Key | None = None,
    is_worst_first: bool = False,
    grade: int = MAX_GRAVE,
    within: Q = EVERYWHERE,
) -> QuerySet[Finding]:
    """Findings, newest first, by keyset, each with its conversation.

    Args:
        state, words, within: as in `select_findings`.
        rule, severity, least: only those of a rule, of this severity, of at least this one.
        after: (time, id) of the last one seen.
        is_worst_first: the gravest first, and among equals the newest message.
        grade: where they are, that of the last one seen, as `grade_of` gives it.
    """
    rows = select_findings(workspace=workspace, state=state, words=words, within=within)
    rows = rows.select_related("conversation", "assignee")
    if rule:
        rows = rows.filter(rule=rule)
    if severity:
        rows = rows.filter(severity=severity)
    if least:
        rows = rows.filter(severity__gte=least)
    if conversation is not None:
        rows = rows.filter(conversation=conversation)
    if after is not None:
        at, pk = after
        later = Q(at__lt=at) | Q(at=at, pk__lt=pk)
        rows = rows.alias(grade=GRADE)
        rows = rows.filter(Q(grade__lt=grade) | (Q(grade=grade) & later) if is_worst_first else later)
    ranks = (GRADE.desc(),) if is_worst_first else ()
    return rows.order_by(*ranks, F("at").desc(), F("pk").desc())


def list_latest(
    *, workspace: Workspace, rules: Sequence[str], each: int, state: str = "", words: str = "", within: Q = EVERYWHERE
) -> list[Finding]:
    """The latest findings of some rules, so many of each, the rules in their order; two statements."""
    if not rules:
        return []
    rows = select_findings(workspace=workspace, state=state, words=words, within=within).values_list("pk")
    parts = [rows.filter(rule=rule).order_by("-at", "-pk")[:each] for rule in rules]
    ids = parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]
    found = Finding.objects.filter(pk__in=[pk for (pk,) in ids]).select_related("conversation", "assignee")
    return sorted(found.order_by("-at", "-pk"), key=lambda finding: rules.index(finding.rule))


def find_neighbours(*, finding: Finding) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    """The open findings before and after this one, the gravest first, as `list_findings` has them; one statement."""
    grade = grade_of(finding.rule, finding.severity)
    rows = select_findings(workspace=finding.workspace, state=Finding.State.OPEN).alias(grade=GRADE)
    newer = Q(at__gt=finding.at) | Q(at=finding.at, pk__gt=finding.pk)
    older = Q(at__lt=finding.at) | Q(at=finding.at, pk__lt=finding.pk)
    before = rows.filter(Q(grade__gt=grade) | (Q(grade=grade) & newer)).order_by("grade", "at", "pk")
    after = rows.filter(Q(grade__lt=grade) | (Q(grade=grade) & older)).order_by("-grade", "-at", "-pk")
    sides = [rows.annotate(side=Value(side)).values_list("side", "pk")[:1] for side, rows in ((0, before), (1, after))]
    found: dict[int, uuid.UUID] = dict(sides[0].union(sides[1], all=True))
    return found.get(0), found.get(1)


def find_finding(*, workspace: Workspace, finding_id: uuid.UUID) -> Finding | None:
    """The finding of that id in this workspace, also one that no longer holds, or None."""
    rows = Finding.objects.select_related("conversation", "assignee")
    finding = rows.filter(workspace=workspace, pk=finding_id).first()
    if finding is not None:
        finding.workspace = workspace
    return finding


def list_of_message(*, message: Message) -> list[Finding]:
    """The findings about a message that hold, the gravest first."""
    rows = list_here(conversations=[message.conversation_id]).filter(record=message.record_id, part=message.part)
    return list(rows.order_by(GRADE.desc(), "rule", "key"))


def find_messages(findings: Sequence[Finding]) -> dict[uuid.UUID, Message]:
    """The message of each of these findings by the finding's id; one whose message is hidden or gone is left out."""
    by_place = _find_places({(finding.record_id, finding.part) for finding in findings})
    return {
        finding.pk: by_place[finding.record_id, finding.part]
        for finding in findings
        if (finding.record_id, finding.part) in by_place
    }


def find_related(*, finding: Finding) -> list[Message]:
    """The other messages that a finding is about, in the order of time, without those that are hidden or gone."""
    return sorted(_find_places(finding.list_related()).values(), key=lambda message: (message.order_time, message.pk))


def _find_places(places: Collection[tuple[uuid.UUID, int]]) -> dict[tuple[uuid.UUID, int], Message]:
    if not places:
        return {}
    rows = Message.objects.shown().filter(record__in={record for record, _ in places})
    found = {(message.record_id, message.part): message for message in rows}
    return {place: found[place] for place in places if place in found}


def mean_findings(*, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition on findings that a query is: those of the shown messages that it finds; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    own = Q(record=OuterRef("record"), part=OuterRef("part"))
    return mean(own, workspace=workspace, query=query, may_see_secrets=may_see_secrets)
