"""Audit samples: the list of them, the form that draws one, and one with its seed, its strata and what was drawn."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.contrib import messages as flashes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from inspector.accounts.models import Membership
from inspector.audit.models import AuditSample, SampledConversation
from inspector.audit.models.reviews import MAX_NAME_LENGTH
from inspector.audit.reviews.queues import MAX_AT_ONCE, MAX_CRITERIA
from inspector.audit.samples import (
    MAX_SEED_LENGTH,
    draw_sample,
    find_items,
    find_sample,
    list_drawn,
    list_samples,
    say_stratum,
)
from inspector.database import or_404

from ..findings.rows import title_conversation
from ..forms import PageForm
from ..shell import (
    cut_page,
    read_number,
    read_place,
    render_page,
    turn_pages,
    within_workspace,
    write_query,
)
from ..shown.told import find_openings_of

PAGE_ROWS: Final = 50
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
    workspace = membership.workspace
    before = read_place(request, membership)
    page, last = cut_page(list_samples(workspace=workspace, after=before, limit=PAGE_ROWS + 1), PAGE_ROWS)
    context = {
        "rows": page,
        **turn_pages(request, membership, (last.made_at, last.pk) if last else None),
    }
    return render_page(request, membership, "samples/samples.html", context, section="reviews")


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


@within_workspace("GET")
def show_sample(request: HttpRequest, membership: Membership, sample_id: uuid.UUID) -> HttpResponse:
    """One sample: how it was drawn, out of how many of each stratum, and what was drawn, a page at a time."""
    workspace = membership.workspace
    sample = or_404(find_sample(workspace=workspace, sample_id=sample_id))
    after = read_number(request, "after")
    page, last = cut_page(list_drawn(sample=sample, after=after, limit=PAGE_ROWS + 1), PAGE_ROWS)
    context = {
        "sample": sample,
        "digest": bytes(sample.digest).hex(),
        "strata": [(say_stratum(sample, name), *counts) for name, *counts in sample.strata[:MAX_STRATA]],
        "more_strata": max(0, len(sample.strata) - MAX_STRATA),
        "more_population": sum(population for _, population, _ in sample.strata[MAX_STRATA:]),
        "more_drawn": sum(drawn for _, _, drawn in sample.strata[MAX_STRATA:]),
        "rows": _make_rows(sample, page),
        "next_url": write_query(request, after=str(last.place)) if last else "",
        "first_url": write_query(request, after=None) if after else "",
    }
    return render_page(request, membership, "samples/sample.html", context, section="reviews")


def _make_rows(sample: AuditSample, page: Sequence[SampledConversation]) -> list[dict[str, Any]]:
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
