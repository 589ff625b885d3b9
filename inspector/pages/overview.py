"""The overview: what goes on, what is stalled, who talks most, what came in last. Each number leads to its rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, DurationField, Exists, F, Func, OuterRef, Subquery, UUIDField, When
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Channel, Membership, Workspace
from inspector.audit.findings.selectors import list_findings
from inspector.audit.models import Finding
from inspector.audit.overview import count_standing
from inspector.audit.reviews.selectors import STALE
from inspector.audit.rules import RULES
from inspector.audit.rules.work import UNANSWERED
from inspector.browsing.activity import (
    SLOTS,
    Days,
    Span,
    count_all,
    count_days,
    count_over_time,
    fill_slots,
    find_span,
)
from inspector.browsing.directory import Choice, list_pairs
from inspector.browsing.transcripts import mark_sentences
from inspector.database import on_replica
from inspector.intake.models import HiddenRecord
from inspector.intake.selectors import count_letters, list_deliveries
from inspector.search.language import quote
from inspector.search.selectors import fetch
from inspector.threads.agents import load_labels
from inspector.threads.models import Message
from inspector.threads.tasks import STALLED_AFTER, latest_in_channel

from .agents import Gallery
from .findings import link_rule, link_severities
from .lists import Scope, read_scope
from .live import watch
from .shell import render_page, render_part, within_workspace
from .shown.agents import Casts
from .shown.told import (
    link_search,
    make_line,
    name_conversation,
    name_delivery,
    name_dialect,
    shorten,
    write_elapsed,
    write_term,
)

PERIODS: Final = {
    "1h": ("1 h", timedelta(hours=1)),
    "24h": ("24 h", timedelta(days=1)),
    "7d": ("7 d", timedelta(days=7)),
    "30d": ("30 d", timedelta(days=30)),
    "all": ("all", None),
}
MAX_PAIRS, MAX_DELIVERIES, MAX_UNANSWERED, MAX_RULES = 8, 6, 8, 8
PATIENCE_MS: Final = 2500
_MAYBE_ANSWERED: Final = "is:maybe-answered"
# A request in the list of unanswered ones: of a longer sentence the beginning.
MAX_ASKED_LENGTH: Final = 200
PLOT_HEIGHT: Final = 48
# A shorter stretch is told by the time of day, a longer one by the day.
CLOCK_BELOW: Final = timedelta(days=2)
SECONDS_BELOW: Final = timedelta(minutes=8)


# For how long it is known that nobody answers: up to the latest message of the channel. Within the hour it would not be
# a finding, unless the channel were listened to, whose time is the clock's.
_OVERDUE: Final = Case(
    When(latest__gt=F("due_at"), then=F("latest") - F("due_at")),
    default=Now() - F("due_at"),
    output_field=DurationField(),
)


@within_workspace("GET")
def lead_to_overview(request: HttpRequest, membership: Membership) -> HttpResponse:
    """From the bare address of a workspace to its overview."""
    return redirect("pages:overview", membership.workspace.slug)


@within_workspace("GET")
@on_replica
def show_overview(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The numbers of the workspace, and below them what they are made of."""
    workspace = membership.workspace
    scope = read_scope(request, membership)
    channel = scope.channel
    live = watch(membership, of="overview", channel=channel.name if channel else "")
    pairs = list_pairs(workspace=workspace, choice=Choice(channel=channel), limit=MAX_PAIRS)
    gallery = Gallery(workspace, [agent for pair in pairs for agent in (pair.sender, pair.receiver)])
    period = _read_period(request)
    slug = workspace.slug
    standing = count_standing(workspace=workspace, channel=channel)
    context = {
        "live": live,
        "scope": scope,
        "numbers": count_all(workspace=workspace, channel=channel),
        "findings": link_severities(membership, standing.findings, **scope.parameters),
        "open_count": sum(standing.findings.values()),
        "lately": standing.lately,
        "rules": [
            {
                "title": each.rule.title,
                "count": each.count,
                "severity": each.severity,
                "url": link_rule(slug, each.rule, **scope.parameters),
            }
            for each in standing.rules[:MAX_RULES]
        ],
        "more_rules": max(0, len(standing.rules) - MAX_RULES),
        "waiting_count": standing.waiting,
        "waiting_since": standing.oldest,
        # They are of no channel that one could tell.
        "dead_count": 0 if channel else count_letters(workspace=workspace),
        "stale_count": standing.stale,
        "stale_url": f"{reverse('pages:reviews', args=[slug])}?{urlencode({'show': STALE, **scope.parameters})}",
        "unanswered_count": standing.unanswered,
        "unanswered": _list_unanswered(workspace, scope),
        "maybe_answered_count": standing.maybe_answered,
        "maybe_answered_url": link_search(
            slug, f"{_MAYBE_ANSWERED} {write_term('channel', channel.name)}" if channel else _MAYBE_ANSWERED
        ),
        "unanswered_url": link_rule(slug, RULES[UNANSWERED], **scope.parameters),
        "errors_url": _list(slug, fault="errors", **scope.parameters),
        "missing_url": _list(slug, fault="missing", **scope.parameters),
        "failed_url": _list(slug, state="failed", **scope.parameters),
        "pairs": [gallery.make_pair(pair, {}) for pair in pairs],
        "deliveries": [
            {"name": name_delivery(delivery), "delivery": delivery}
            for delivery in list_deliveries(workspace=workspace, channel=channel, limit=MAX_DELIVERIES)
        ],
        "period": period,
        "periods": [{"key": key, "title": title} for key, (title, _) in PERIODS.items()],
        "plots_url": f"{reverse('pages:activity', args=[slug])}?{urlencode({'period': period, **scope.parameters})}",
        "channel_query": f"&{urlencode(scope.parameters)}" if channel else "",
    }
    return render_page(request, membership, "overview/overview.html", context, section="overview")


def _read_period(request: HttpRequest) -> str:
    period = request.GET.get("period", "all")
    return period if period in PERIODS else "all"


def _list(slug: str, **filters: str) -> str:
    return f"{reverse('pages:conversations', args=[slug])}?{urlencode(filters)}"


def _list_unanswered(workspace: Workspace, scope: Scope) -> list[dict[str, Any]]:
    """The requests of which nothing was heard for longest: which these are, depends on the latest message of each
    channel, so the first of each are looked at."""
    found = list_findings(workspace=workspace, rule=UNANSWERED, state=Finding.State.OPEN, within=scope.findings)
    found = found.filter(~Exists(HiddenRecord.objects.filter(record=OuterRef("record")))).order_by("due_at", "pk")
    of_channel = found.filter(channel=OuterRef("pk"), due_at__isnull=False, due_since__isnull=False)
    first = ArraySubquery(of_channel.values("record")[:MAX_UNANSWERED])
    channels = Channel.objects.filter(workspace=workspace, **({"pk": scope.channel.pk} if scope.channel else {}))
    records = channels.values_list(Func(first, function="UNNEST", output_field=UUIDField()), flat=True)
    due_at = Subquery(found.filter(record=OuterRef("record"), part=OuterRef("part")).values("due_at")[:1])
    rows = Message.objects.shown().filter(record__in=records).alias(latest=latest_in_channel(), due_at=due_at)
    rows = rows.filter(due_at__isnull=False).annotate(overdue=_OVERDUE).select_related("conversation")
    casts = Casts(load_labels(workspace_id=workspace.pk))
    waiting = rows.defer("body", "words").order_by(F("overdue").desc(), "order_time", "pk")[:MAX_UNANSWERED]
    said = mark_sentences(waiting)
    return [
        {
            "id": message.pk,
            "title": shorten(said[message.pk] or name_conversation(message.conversation), MAX_ASKED_LENGTH),
            "line": make_line(message, casts.find(message.conversation)),
            "waited": write_elapsed(vars(message)["overdue"] + STALLED_AFTER),
            "dialect": name_dialect(message.dialect),
        }
        for message in waiting
    ]


@within_workspace("GET")
@on_replica
def show_activity(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Messages over time by dialect: a part that comes when it is counted, and says where that takes too long."""
    workspace = membership.workspace
    period = _read_period(request)
    channel = read_scope(request, membership).channel
    span = find_span(workspace=workspace, period=PERIODS[period][1], channel=channel)
    counted = fetch(count_over_time(workspace=workspace, span=span, channel=channel), PATIENCE_MS) if span else []
    within = f"channel:{quote(channel.name)} " if channel else ""
    days = fetch(count_days(workspace=workspace, channel=channel), PATIENCE_MS)
    context = {
        "span": span,
        "days": Days(*days[0]) if days else None,
        "is_counted": counted is not None,
        "plots": _draw(counted or [], span, workspace.slug, within) if span else [],
        "ticks": [span.start + span.width * (SLOTS * quarter // 4) for quarter in range(4)] if span else [],
        "slot": write_elapsed(span.width) if span else "",
        "form": _choose_form(span),
    }
    return render_part(request, membership, "overview/_activity.html", context)


def _choose_form(span: Span | None) -> str:
    """How the times below the bars are written: as exactly as tells them apart."""
    if span is None or span.end - span.start >= CLOCK_BELOW:
        return "day"
    return "clock" if span.end - span.start < SECONDS_BELOW else "hour"


def _draw(counted: list[tuple[str, int, int]], span: Span, slug: str, within: str) -> list[dict[str, Any]]:
    """One plot for each dialect, each on a scale of its own, whose top is its peak."""
    slots = fill_slots(counted)
    return [
        {
            "dialect": name_dialect(dialect),
            "number": sum(numbers),
            "url": link_search(slug, f"{within}dialect:{dialect} {_within(span.start, span.end)}"),
            "most": max(numbers),
            "columns": [
                _draw_column(at, number, max(numbers), span, slug, f"{within}dialect:{dialect}")
                for at, number in enumerate(numbers)
                if number
            ],
        }
        for dialect, numbers in slots.items()
    ]


def _draw_column(at: int, number: int, most: int, span: Span, slug: str, query: str) -> dict[str, Any]:
    # What is there at all is seen.
    height = max(2.0, PLOT_HEIGHT * number / most)
    start = span.start + span.width * at
    return {
        "x": f"{100 * at / SLOTS:.2f}%",
        "y": f"{PLOT_HEIGHT - height:.1f}",
        "height": f"{height:.1f}",
        "number": number,
        "start": start,
        "url": link_search(slug, f"{query} {_within(start, start + span.width)}"),
    }


def _within(start: datetime, end: datetime) -> str:
    """A stretch of time in the search language, whoever reads it."""
    return f'after:"{start.isoformat()}" before:"{end.isoformat()}"'
