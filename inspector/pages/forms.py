"""What people fill in. Every widget names its class; errors are sentences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.utils import timezone

from dialects import all_dialects
from inspector.accounts.models import ApiKey, Channel, Role
from inspector.audit.models import Review
from inspector.threads.models import Conversation

INPUT = {"class": "input"}
SELECT = {"class": "select"}


class SignInForm(AuthenticationForm):
    """Name and password."""

    username = forms.CharField(
        max_length=150, widget=forms.TextInput(attrs={**INPUT, "autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        strip=False, widget=forms.PasswordInput(attrs={**INPUT, "autocomplete": "current-password"})
    )
    error_messages = {  # noqa: RUF012 (as Django declares it)
        "invalid_login": "Wrong username or password (case-sensitive).",
        "inactive": "This account is closed.",
    }


FAULTS = {"errors": "decoding errors", "missing": "missing messages"}


# What the addresses of a list name besides its filters.
PAGING = ("before", "grade", "since")


class TraceFilter(forms.Form):
    """Which traces are listed; an unknown value filters nothing, and the page says so."""

    state = forms.ChoiceField(
        required=False, choices=[("", "any"), *Conversation.State.choices], widget=forms.Select(attrs=SELECT)
    )
    dialect = forms.ChoiceField(required=False, widget=forms.Select(attrs=SELECT))
    agent = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={**INPUT, "size": 14, "placeholder": "whole name"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "filter-%s")
        super().__init__(*args, **kwargs)
        dialects = [(dialect.slug, dialect.title) for dialect in all_dialects()]
        self.fields["dialect"].choices = [("", "any"), *dialects]  # type: ignore[attr-defined]

    def read(self) -> dict[str, str]:
        """The filters that are set and valid, as `select_conversations` and `select_traces` take them."""
        self.is_valid()
        return {name: str(value) for name, value in self.cleaned_data.items() if value and name != "order"}

    def list_unknown(self) -> list[str]:
        """What the address asks for and no list can be filtered by: `state:`, a name, or `state:openn`, a value."""
        values = [f"{name}:{self.data.get(name)}" for name in self.errors]
        return [f"{name}:" for name in self.data if name not in {*self.fields, *PAGING}] + values


class ConversationFilter(TraceFilter):
    """Which conversations are listed, and in which order; whether its delivery exists is the page's to say."""

    fault = forms.ChoiceField(
        label="Problem", required=False, choices=[("", "any"), *FAULTS.items()], widget=forms.Select(attrs=SELECT)
    )
    delivery = forms.UUIDField(required=False, widget=forms.HiddenInput)
    channel = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    order = forms.ChoiceField(
        label="Sort",
        required=False,
        choices=[("", "latest activity"), ("worst", "most severe finding")],
        widget=forms.Select(attrs=SELECT),
    )

    def read_order(self) -> str:
        """The order that is chosen, empty for the usual one."""
        self.is_valid()
        return str(self.cleaned_data.get("order", ""))


class VerdictForm(forms.Form):
    """A verdict on a conversation as it was shown: `seen` is the digest of what the auditor saw."""

    verdict = forms.ChoiceField(
        choices=Review.Verdict.choices, widget=forms.RadioSelect, error_messages={"required": "Choose a verdict."}
    )
    # Whoever has new messages loaded into the page signs what it shows then.
    seen = forms.RegexField(r"\A[0-9a-f]{64}\Z", widget=forms.HiddenInput(attrs={"data-live-part": "seen"}))
    comment = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"class": "textarea", "rows": 3}),
        help_text="What you saw, for the next reader.",
    )


class MemberForm(forms.Form):
    """Somebody to invite."""

    name = forms.CharField(
        max_length=150,
        label="Name",
        widget=forms.TextInput(attrs={**INPUT, "autocomplete": "off", "spellcheck": "false"}),
        help_text="For this list: letters, digits and @ . + - _ only. They choose their user name themselves.",
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.AUDITOR, widget=forms.Select(attrs=SELECT))


class RenameForm(forms.Form):
    """Another name for the workspace."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={**INPUT, "autocomplete": "off"}),
        help_text="Its address stays the same.",
    )


class WorkspaceForm(forms.Form):
    """A new workspace."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={**INPUT, "autocomplete": "off"}),
        help_text="You own it. It shares no member, key or message with this one.",
    )
    slug = forms.SlugField(
        max_length=64,
        label="Address",
        widget=forms.TextInput(attrs={**INPUT, "autocomplete": "off", "spellcheck": "false"}),
        help_text="A word for its addresses, such as night-shift: letters, digits, - and _. It cannot be changed.",
    )


class RoleForm(forms.Form):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Role.choices)


class ZoneForm(forms.Form):
    """The time zone in which a person is shown times."""

    time_zone = forms.ChoiceField(
        label="Time zone",
        widget=forms.Select(attrs=SELECT),
        help_text="Times are shown in this zone. Stored and exported times stay in UTC.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = sorted(available_timezones() - {"localtime", "UTC"})
        self.fields["time_zone"].choices = [("UTC", "UTC"), *((name, name) for name in names)]  # type: ignore[attr-defined]


class PasswordForm(PasswordChangeForm):
    """A new password, by whoever knows the old one."""

    def __init__(self, *args: Any, asks_for_old: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not asks_for_old:  # There is none, or a link has just proven who this is.
            del self.fields["old_password"]
        for field in self.fields.values():
            field.widget.attrs.update(INPUT)


class InvitedForm(forms.Form):
    """A new account for somebody who was invited."""

    name = forms.CharField(
        max_length=150,
        label="User name",
        widget=forms.TextInput(attrs={**INPUT, "autocomplete": "username", "spellcheck": "false"}),
        help_text="Letters, digits and @ . + - _ only. Your reviews are kept under this name.",
    )
    password = forms.CharField(
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={**INPUT, "autocomplete": "new-password"}),
        help_text="At least 12 characters.",
    )


LIFETIMES = {"": None, "30": timedelta(days=30), "90": timedelta(days=90), "365": timedelta(days=365)}


class KeyForm(forms.Form):
    """A new API key."""

    name = forms.CharField(
        max_length=120, widget=forms.TextInput(attrs=INPUT), help_text="The program that will use it."
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices, initial=[ApiKey.Scope.INGEST], widget=forms.CheckboxSelectMultiple
    )
    agents = forms.CharField(
        required=False,
        max_length=2000,
        label="Agent names",
        widget=forms.TextInput(attrs=INPUT),
        help_text="The names of its agents, separated by commas. A message under another name is a finding.",
    )
    channel = forms.ChoiceField(
        required=False, widget=forms.Select(attrs=SELECT), help_text="A key bound to a channel sends to no other."
    )
    expires_in = forms.ChoiceField(
        required=False,
        label="Expires",
        choices=[("", "never"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year")],
        widget=forms.Select(attrs=SELECT),
    )

    def __init__(self, *args: Any, channels: list[Channel], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        choices = [("", "any channel"), *((name, name) for name in self._channels)]
        self.fields["channel"].choices = choices  # type: ignore[attr-defined]

    def read(self) -> dict[str, Any]:
        """What `create_api_key` takes, of a valid form."""
        said = self.cleaned_data
        lifetime = LIFETIMES[said["expires_in"]]
        return {
            "name": said["name"],
            "scopes": said["scopes"],
            "agents": said["agents"].split(","),
            "channel": self._channels.get(said["channel"]),
            "expires_at": timezone.now() + lifetime if lifetime else None,
        }
