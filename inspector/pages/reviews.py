"""Reviews: the queues of a workspace, one with its items, its rubric and who did what; making, filling, closing one.
And audit samples: the list of them, the form that draws one, and one with its seed, its strata and what was drawn.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.models import AuditSample, ReviewItem, ReviewQueue, SampledConversation
from inspector.audit.models.reviews import MAX_NAME_LENGTH
from inspector.audit.reviews import queues, verdicts
from inspector.audit.reviews.queues import MAX_ABOUT_LENGTH, MAX_AT_ONCE, MAX_CRITERIA, Filled
from inspector.audit.reviews.selectors import (
    DISPUTED,
    DONE,
    MINE,
    OPEN,
    QUEUES_AT_ONCE,
    SECOND,
    STALE,
    QueueCount,
    count_queue,
    count_reviewers,
    find_queue,
    list_fillable,
    list_items,
    list_queues,
    list_rubrics,
    read_queue_key,
    walk_queues,
    write_queue_key,
)
from inspector.audit.rules import RULES
from inspector.audit.samples import (
    MAX_SEED_LENGTH,
    draw_sample,
    find_items,
    find_sample,
    list_drawn,
    list_samples,
    say_stratum,
)
from inspector.search.aids import list_saved
from inspector.search.language import MAX_CHARACTERS
from inspector.search.models import SavedSearch
from inspector.search.selectors import Place, read_key, write_key
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import find_conversation

from .findings import find_way_back
from .lists import Walk, cut_page, list_page, read_place, read_scope, read_walk
from .review_items import make_item_rows
from .shell import PageForm, attempt, read_number, render_page, require_auditor, within_workspace, write_query
from .shown.findings import title_conversation
from .shown.told import find_openings_of


class QueueForm(PageForm):
    """A new queue. What does not belong to its source is left aside."""

    name = forms.CharField(max_length=MAX_NAME_LENGTH, error_messages={"required": "Give it a name."})
    about = forms.CharField(
        label="Purpose",
        required=False,
        max_length=MAX_ABOUT_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    reviewers = forms.TypedChoiceField(
        label="Reviewers",
        coerce=int,
        initial=1,
        choices=[
            (1, "One auditor decides"),
            (2, "Two, independently; if they differ, a third decides"),
        ],
        widget=forms.RadioSelect,
    )
    criteria = forms.CharField(
        label="Rubric",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=f"One criterion a line, at most {MAX_CRITERIA}. Each is answered with pass, fail or not applicable.",
    )
    source = forms.ChoiceField(
        label="Source",
        initial=ReviewQueue.Source.HAND,
        choices=[
            (ReviewQueue.Source.HAND, "People, from the page of a conversation"),
            (ReviewQueue.Source.FINDINGS, "Open findings, as soon as they are found"),
            (ReviewQueue.Source.SEARCH, "A search, whenever somebody fills it anew"),
        ],
        widget=forms.RadioSelect,
    )
    rules = forms.MultipleChoiceField(
        label="Findings of these rules",
        required=False,
        widget=forms.SelectMultiple(attrs={"size": 6}),
        help_text="None selected means all.",
    )
    severity = forms.TypedChoiceField(
        label="Minimum severity",
        required=False,
        coerce=int,
        empty_value="0",
        choices=[("0", "any"), *((each.value, each.label) for each in Message.Severity if each.value)],
    )
    saved = forms.ChoiceField(label="A saved search", required=False)
    query = forms.CharField(
        label="Or a new search",
        required=False,
        max_length=MAX_CHARACTERS,
        widget=forms.TextInput(attrs={"placeholder": "finding:>=warning -reviewed:yes"}),
    )

    def __init__(self, *args: Any, membership: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._saved: dict[str, SavedSearch] = {str(each.pk): each for each in list_saved(membership=membership)}
        self.offer("rules", [(rule.code, rule.title) for rule in RULES.values()])
        self.offer("saved", [("", "none"), *((key, each.name) for key, each in self._saved.items())])

    def read(self) -> dict[str, Any]:
        """What `create_queue` takes; call when the form is valid."""
        said = dict(self.cleaned_data)
        saved = self._saved.get(said.pop("saved"))
        said["query"] = saved.query if saved else said["query"]
        said["severity"] = int(said["severity"])
        said["criteria"] = said["criteria"].splitlines()
        return said


PAGE_ROWS: Final = 50

SHOWN: Final = {
    OPEN: "open",
    MINE: "mine",
    SECOND: "needs a second",
    DISPUTED: "disputed",
    DONE: "signed off",
    STALE: "stale",
}

_QUEUES: Final = "review queues"


@within_workspace("GET")
def show_reviews(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The queues with their progress, a page of them at a time."""
    workspace = membership.workspace
    after = read_queue_key(read_key(request.GET.get("after"), workspace.pk, of=_QUEUES))
    is_stale = request.GET.get("show") == STALE
    scope = read_scope(request, membership)
    walk = read_walk(request, membership, places=("after",))
    narrowed: dict[str, Any] = {
        "workspace": workspace,
        "is_stale": is_stale,
        "channel": scope.channel,
        "limit": QUEUES_AT_ONCE + 1,
    }
    if walk.is_rest:
        begun = (datetime.fromisoformat(walk.after[0]), uuid.UUID(walk.after[1])) if walk.after else None
        found = walk_queues(after=begun, within=walk.written, **narrowed)
    else:
        found = list_queues(after=after, **narrowed)
    page, last = walk.cut(found, QUEUES_AT_ONCE, ReviewQueue.objects.filter(workspace=workspace))
    context = {
        "scope": scope,
        "queues": [_describe_count(count) for count in page],
        "open": sum(count.open for count in page),
        "is_stale": is_stale,
        "is_part": last is not None or not walk.is_first,
        "next_url": _write_next(walk, last.queue) if last else "",
        "walk": walk,
    }
    return render_page(request, membership, "reviews/reviews.html", context, section="reviews")


def _write_next(walk: Walk, last: ReviewQueue) -> str:
    after = write_key(write_queue_key(last), walk.membership.workspace.pk, of=_QUEUES)
    return walk.write_on([last.created_at.isoformat(), str(last.pk)], after=after)


@within_workspace("GET", "POST", needs="auditor")
def make_queue(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The form of a new queue, and making it."""
    # A search or a rule leads here with what it finds filled in.
    given = {name: request.GET[name] for name in ("source", "query") if name in request.GET}
    initial = {**given, "rules": request.GET.getlist("rules")}
    form = QueueForm(request.POST or None, membership=membership, initial=initial)
    made = form.hand_to(lambda: _make_queue(membership, form))
    if made is not None:
        queue, filled = made
        flashes.success(request, f"The queue is made. {_say_filled(filled) if filled else ''}".strip())
        return redirect("pages:queue", membership.workspace.slug, queue.pk)
    status = 422 if request.method == "POST" else 200
    return render_page(request, membership, "reviews/new.html", {"form": form}, section="reviews", status=status)


def _make_queue(membership: Membership, form: QueueForm) -> tuple[ReviewQueue, Filled | None]:
    queue = queues.create_queue(membership=membership, **form.read())
    if queue.source == ReviewQueue.Source.HAND:
        return queue, None
    return queue, queues.fill_from_source(membership=membership, queue=queue)


@within_workspace("GET", of=find_queue)
def show_queue(request: HttpRequest, membership: Membership, queue: ReviewQueue) -> HttpResponse:
    """One queue: its items, how far it is, its rubric with earlier versions."""
    return _answer(request, membership, queue)


@within_workspace("POST", of=find_queue)
def act_on_queue(request: HttpRequest, membership: Membership, queue: ReviewQueue) -> HttpResponse:
    """Take the next item, fill the queue, close or open it, or change its rubric, as `act` says."""
    require_auditor(membership)
    act = request.POST.get("act", "")
    if act not in ("next", "fill", "close", "open", "rubric"):
        return _answer(request, membership, queue, error="choose what is to be done")
    try:
        if act == "next":
            item = verdicts.claim_next(membership=membership, queue=queue)
            if item is not None:
                return redirect("pages:review-item", membership.workspace.slug, item.pk)
            flashes.info(request, "No items waiting that you may review now.")
        elif act == "fill":
            flashes.success(request, _say_filled(queues.fill_from_source(membership=membership, queue=queue)))
        elif act in ("close", "open"):
            queues.close_queue(membership=membership, queue=queue, is_closed=act == "close")
            flashes.success(request, "The queue is closed." if act == "close" else "The queue is open again.")
        else:
            queues.change_rubric(
                membership=membership,
                queue=queue,
                criteria=request.POST.get("criteria", "").splitlines(),
                expected=_read_number(request.POST.get("expected", "")),
            )
            flashes.success(request, "The rubric is changed. Reviews in progress keep their version.")
    except ValidationError as error:
        return _answer(request, membership, queue, error=" ".join(error.messages))
    return redirect("pages:queue", membership.workspace.slug, queue.pk)


@within_workspace("POST", of=find_conversation)
def enqueue(request: HttpRequest, membership: Membership, conversation: Conversation) -> HttpResponse:
    """Put a conversation into a queue by hand."""
    require_auditor(membership)
    wanted = request.POST.get("queue", "")
    queue = next((each for each in list_fillable(workspace=membership.workspace) if str(each.pk) == wanted), None)
    if queue is None:
        flashes.error(request, "Choose a queue that is open.")
    else:
        fill = partial(queues.fill_queue, queue=queue, conversations=[conversation.pk], why="put here by hand")
        attempt(
            request,
            lambda: fill(membership=membership),
            lambda filled: f"It now waits in “{queue}”." if filled.added else f"It waits in “{queue}” already.",
        )
    address = reverse("pages:conversation", args=[membership.workspace.slug, conversation.pk])
    # It is also put there from the page of a finding.
    return redirect(find_way_back(request, membership) if "next" in request.POST else f"{address}#verdict")


def _answer(request: HttpRequest, membership: Membership, queue: ReviewQueue, *, error: str = "") -> HttpResponse:
    workspace, show = membership.workspace, request.GET.get("show", "")
    show = show if show in SHOWN else DONE if queue.is_standing else OPEN
    before = read_place(request, membership)
    walk = read_walk(request, membership, places=("before",))
    scope = read_scope(request, membership)
    if walk.is_rest:
        before = (queue.created_at, uuid.UUID(walk.after[0])) if walk.after else None
    items = list_items(
        queue=queue,
        show=show,
        reader=membership.user,
        after=before,
        limit=PAGE_ROWS + 1,
        within=scope.conversations & Q(walk.written) if walk.is_rest else scope.conversations,
        is_by_id=walk.is_rest,
    )
    page, last = walk.cut(items, PAGE_ROWS, ReviewItem.objects.filter(queue=queue))
    count = count_queue(queue=queue)
    rubrics = list_rubrics(queue=queue)
    address = reverse("pages:queue", args=[workspace.slug, queue.pk])
    context = {
        "queue": _describe_count(count),
        "rows": make_item_rows(page, workspace, membership.user),
        "scope": scope,
        "show": show,
        "views": [
            {
                "name": words,
                "url": f"{address}?{urlencode({'show': name, **scope.parameters})}",
                "is_current": name == show,
                "count": _count(count, name),
            }
            for name, words in SHOWN.items()
        ],
        "reviewers": count_reviewers(queue=queue, reader_id=membership.user_id),
        "rubrics": rubrics,
        "rubric_number": rubrics[0].number if rubrics else 0,
        "criteria": request.POST.get("criteria") if error else "\n".join(rubrics[0].criteria if rubrics else []),
        "max_criteria": MAX_CRITERIA,
        "error": error,
        "next_url": walk.write_older(last, "ended_at" if show in (DONE, STALE) else "added_at"),
        "walk": walk,
    }
    status = 422 if error else 200
    return render_page(request, membership, "reviews/queue.html", context, section="reviews", status=status)


def _count(count: QueueCount, show: str) -> int | None:
    """How many a view has, where that is counted anyway."""
    counts = {OPEN: count.open, DONE: count.settled, STALE: count.stale}
    return counts.get(show, None if show == MINE else count.states.get(show, 0))


def _describe_count(count: QueueCount) -> dict[str, Any]:
    queue = count.queue
    return {
        "row": queue,
        "filled_by": _say_source(queue),
        "count": count,
        "second": count.states.get(SECOND, 0),
        "disputed": count.states.get(DISPUTED, 0),
    }


def _say_source(queue: ReviewQueue) -> str:
    if queue.is_standing:
        return "verdicts given on a conversation's page"
    if queue.source == ReviewQueue.Source.SEARCH:
        return "a search"
    if queue.source != ReviewQueue.Source.FINDINGS:
        return "people"
    grave = f" of {Message.Severity(queue.severity).label} or more" if queue.severity else ""
    names = [RULES[code].title for code in queue.rules if code in RULES]
    more = f" and {len(names) - 2} more rules" if len(names) > 2 else ""
    return f"open findings{grave}{': ' if names else ''}{', '.join(names[:2])}{more}"


def _say_filled(filled: Filled) -> str:
    came = "1 conversation came in" if filled.added == 1 else f"{filled.added:,} conversations came in"
    more = "; there are more: fill it again for them" if filled.has_more else ""
    return f"{came}{more}." if filled.added else "Nothing new came in."


def _read_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1


# So many strata are printed; of the others how many they are, and what was drawn of them.
MAX_STRATA: Final = 200

_DATE: Final = {"type": "date"}


class SampleForm(PageForm):
    """A sample to be drawn: out of what, how much of it, by which seed, and how it is reviewed."""

    name = forms.CharField(
        label="Name",
        max_length=MAX_NAME_LENGTH,
        error_messages={"required": "Give it a name."},
        help_text="Of the sample and of its review queue.",
    )
    wanted = forms.IntegerField(
        label="Number of conversations",
        min_value=1,
        max_value=MAX_AT_ONCE,
        initial=25,
        widget=forms.NumberInput(attrs={"min": 1, "max": MAX_AT_ONCE}),
    )
    stratum = forms.ChoiceField(
        label="Divided by",
        choices=AuditSample.Stratum.choices,
        initial=AuditSample.Stratum.DIALECT,
        help_text="One of each is drawn, and the rest in proportion.",
    )
    since = forms.DateField(label="Active from", required=False, widget=forms.DateInput(attrs=_DATE))
    until = forms.DateField(
        label="Active to, that day included",
        required=False,
        widget=forms.DateInput(attrs=_DATE),
        help_text="Days in UTC. Leave empty for all.",
    )
    seed = forms.CharField(
        label="Seed",
        required=False,
        max_length=MAX_SEED_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Leave empty for a new seed. The same seed over the same records draws the same conversations.",
    )
    reviewers = forms.TypedChoiceField(
        label="Reviewers",
        coerce=int,
        initial=1,
        choices=[(1, "One auditor"), (2, "Two, independently; if they differ, a third decides")],
        widget=forms.RadioSelect,
    )
    criteria = forms.CharField(
        label="Rubric",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"One criterion a line, at most {MAX_CRITERIA}.",
    )

    def read(self) -> dict[str, Any]:
        """What `draw_sample` takes; call when the form is valid."""
        said = dict(self.cleaned_data)
        since, until = said.pop("since"), said.pop("until")
        said["criteria"] = said["criteria"].splitlines()
        said["since"] = datetime.combine(since, time.min, UTC) if since else None
        # To the end of that day; nothing ends after the last one there is.
        is_bound = until is not None and until < date.max
        said["until"] = datetime.combine(until, time.min, UTC) + timedelta(days=1) if is_bound else None
        return said


@within_workspace("GET")
def show_samples(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The samples of the workspace, newest first, by keyset."""

    def find(before: Place | None, limit: int) -> list[AuditSample]:
        return list_samples(workspace=membership.workspace, after=before, limit=limit)

    page, pages = list_page(request, membership, find, PAGE_ROWS, "made_at")
    return render_page(request, membership, "samples/samples.html", {"rows": page, **pages}, section="reviews")


@within_workspace("GET", "POST", needs="auditor")
def draw(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The form of a sample, and drawing it; a refusal gives the form back as it was filled in."""
    form = SampleForm(request.POST or None)
    sample = form.hand_to(lambda: draw_sample(membership=membership, **form.read()))
    if sample is not None:
        flashes.success(request, "The sample is drawn, and waits in its queue.")
        return redirect("pages:sample", membership.workspace.slug, sample.pk)
    status = 422 if request.method == "POST" else 200
    return render_page(request, membership, "samples/new.html", {"form": form}, section="reviews", status=status)


@within_workspace("GET", of=find_sample)
def show_sample(request: HttpRequest, membership: Membership, sample: AuditSample) -> HttpResponse:
    """One sample: how it was drawn, out of how many of each stratum, and what was drawn, a page at a time."""
    after = read_number(request, "after")
    page, last = cut_page(list_drawn(sample=sample, after=after, limit=PAGE_ROWS + 1), PAGE_ROWS)
    context = {
        "sample": sample,
        "digest": bytes(sample.digest).hex(),
        "strata": [(say_stratum(sample, name), *counts) for name, *counts in sample.strata[:MAX_STRATA]],
        "more_strata": max(0, len(sample.strata) - MAX_STRATA),
        "more_population": sum(population for _, population, _ in sample.strata[MAX_STRATA:]),
        "more_drawn": sum(drawn for _, _, drawn in sample.strata[MAX_STRATA:]),
        "rows": _describe_drawn(sample, page),
        "next_url": write_query(request, after=str(last.place)) if last else "",
        "first_url": write_query(request, after=None) if after else "",
    }
    return render_page(request, membership, "samples/sample.html", context, section="reviews")


def _describe_drawn(sample: AuditSample, page: Sequence[SampledConversation]) -> list[dict[str, Any]]:
    openings = find_openings_of(each.conversation for each in page)
    items = find_items(sample=sample, drawn=page)
    return [
        {
            "drawn": each,
            "title": title_conversation(each.conversation, openings),
            "stratum": say_stratum(sample, each.stratum),
            "identity": bytes(each.identity).hex(),
            "item": items.get(each.conversation_id),
        }
        for each in page
    ]
