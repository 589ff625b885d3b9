"""A new queue as a person fills it in: who reviews, what is answered, and what puts conversations into it."""

from __future__ import annotations

from typing import Any

from django import forms

from inspector.accounts.models import Membership
from inspector.audit.models import ReviewQueue
from inspector.audit.models.reviews import MAX_NAME_LENGTH
from inspector.audit.reviews.queues import MAX_ABOUT_LENGTH, MAX_CRITERIA
from inspector.audit.rules import RULES
from inspector.search.language import MAX_CHARACTERS
from inspector.search.models import SavedSearch
from inspector.search.saved import list_saved
from inspector.threads.models import Message

from ..forms import PageForm


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
