"""What a person fills in to upload a log: the files, and how each of them is to be read."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone

from inspector.accounts.models import Channel
from inspector.accounts.services import check_channel_name
from inspector.intake.staging import Choices

from ..forms import PLAIN, PageForm, list_dialects

MAX_NAME_LENGTH = 200
CHANNEL_HELP = (
    "Message and conversation ids are unique only within a channel. Keep both sides of a conversation in one; "
    "name another where two systems could use the same ids."
)
PREFIX_HELP = "Example: “09:00:01 A -> B: …”. The prefix is split off if the rest decodes better."
WHO = (("unknown", "Nobody knows"), ("one", "One agent"), ("two", "Two, in turns"))
_NAME = {**PLAIN, "maxlength": str(MAX_NAME_LENGTH)}


class ManyFilesInput(forms.ClearableFileInput):
    """A file input that takes several."""

    allow_multiple_selected = True
    template_name = "django/forms/widgets/file.html"


class ManyFilesField(forms.FileField):
    """Several files, empty ones too: an empty log is a fact worth a receipt."""

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        """The files in the order they were chosen.

        Raises:
            ValidationError: for none, or for what is no file.
        """
        files = data if isinstance(data, list) else [data] if data else []
        if not files:
            raise forms.ValidationError("Choose at least one file.")
        return [super(ManyFilesField, self).clean(file, initial) for file in files]


class ChannelField(forms.CharField):
    """A channel by its name, which may be new."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.TextInput(attrs=PLAIN)
        super().__init__(max_length=64, initial=Channel.DEFAULT, widget=widget, help_text=CHANNEL_HELP, **kwargs)

    def validate(self, value: Any) -> None:
        """Refuse what no channel can be called."""
        super().validate(value)
        check_channel_name(value)


class UploadForm(PageForm):
    """Files, and what their reading begins with."""

    logs = ManyFilesField(
        label="Log files", allow_empty_file=True, max_length=1024, widget=ManyFilesInput(attrs={"multiple": True})
    )
    channel = ChannelField()
    has_prefixes = forms.BooleanField(
        required=False, initial=True, label="Lines may begin with times, labels and speakers", help_text=PREFIX_HELP
    )

    def read(self) -> Choices:
        """How a valid form wants its files to be read at first."""
        return Choices(channel=self.cleaned_data["channel"], has_prefixes=self.cleaned_data["has_prefixes"])


class ReadingForm(PageForm):
    """How one staged file is to be read. Until it `is_final` a name may be missing: somebody is about to type it."""

    dialect = forms.ChoiceField(
        required=False,
        choices=partial(list_dialects, "Detect for each record"),
        help_text="A dialect chosen here is used for every record.",
    )
    channel = ChannelField()
    start = forms.DateTimeField(
        required=False,
        label="The log begins at",
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    has_prefixes = forms.BooleanField(
        required=False, label="Lines may begin with times, labels and speakers", help_text=PREFIX_HELP
    )
    who = forms.ChoiceField(label="Who speaks?", choices=WHO, widget=forms.RadioSelect, required=False)
    first = forms.CharField(
        required=False,
        max_length=MAX_NAME_LENGTH,
        label="Name",
        widget=forms.TextInput(attrs={**_NAME, "placeholder": "oscar"}),
    )
    second = forms.CharField(
        required=False,
        max_length=MAX_NAME_LENGTH,
        label="The other’s name",
        widget=forms.TextInput(attrs={**_NAME, "placeholder": "radar"}),
    )

    def __init__(self, *args: Any, zone: str, is_final: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_final = is_final
        self.fields["start"].help_text = f"For records without a time, in {zone}; else they are ordered by receipt."

    @staticmethod
    def write(choices: Choices) -> dict[str, Any]:
        """These choices as what the form shows."""
        names = (*choices.speakers, "", "")
        return {
            "dialect": choices.dialect or "",
            "channel": choices.channel,
            "start": choices.start,
            "has_prefixes": choices.has_prefixes,
            "who": ("unknown", "one", "two")[len(choices.speakers)],
            "first": names[0],
            "second": names[1],
        }

    def clean(self) -> dict[str, Any]:
        """Names that are asked for must be there, and two must differ; a log does not begin in the future."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        wanted = {"one": ("first",), "two": ("first", "second")}.get(said.get("who") or "unknown", ())
        for name in wanted:
            if self._is_final and not said.get(name) and name not in self.errors:
                self.add_error(name, "Name who speaks, or choose “Nobody knows”.")
        if wanted == ("first", "second") and said.get("first") and said.get("first") == said.get("second"):
            self.add_error("second", "Both have the same name. For one speaker choose “One agent”.")
        start = said.get("start")
        if start and (start > timezone.now() + timedelta(days=1) or start.year < 1970):
            self.add_error("start", "A log begins after 1970 and not in the future.")
        return said

    def read(self) -> Choices:
        """The choices of a valid form."""
        said = self.cleaned_data
        names = {"one": (said["first"],), "two": (said["first"], said["second"])}.get(said["who"], ())
        return Choices(
            channel=said["channel"],
            dialect=said["dialect"] or None,
            has_prefixes=said["has_prefixes"],
            start=said["start"],
            speakers=names if all(names) else (),
        )
