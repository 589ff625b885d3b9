"""What people fill in. The class of a widget follows from its kind; errors are sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.utils import timezone

from dialects import all_dialects
from inspector.accounts.models import ApiKey, Channel, Role
from inspector.audit.models import Review
from inspector.threads.models import Conversation

T = TypeVar("T")

# For what a browser shall neither fill in nor correct.
PLAIN: Final = {"autocomplete": "off", "spellcheck": "false"}
# The class of a widget by its kind; boxes to tick, files and what is hidden have none.
_CLASSES: Final = (
    (forms.Textarea, "textarea"),
    (forms.Select, "select"),
    ((forms.TextInput, forms.NumberInput, forms.PasswordInput), "input"),
)


class PageForm(forms.Form):
    """A form in the dress of the pages, which can hand what was filled in to a service."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for widget in (field.widget for field in self.fields.values()):
            for kinds, name in _CLASSES:
                if isinstance(widget, kinds):
                    widget.attrs.setdefault("class", name)

    def offer(self, name: str, choices: Iterable[tuple[str, str]], initial: str | None = None) -> None:
        """Let a field be one of these choices, which are known only now."""
        self.fields[name].choices = list(choices)  # type: ignore[attr-defined]
        self.fields[name].initial = initial

    def hand_to(self, service: Callable[[], T], *, field: str | None = None) -> T | None:
        """What the service made of the form; None where the form is not valid, or the service refused it.

        Args:
            field: the one that a refusal stands beside which names no field of the form.
        """
        if not self.is_valid():
            return None
        try:
            return service()
        except ValidationError as error:
            said = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
            for name, sentences in said.items():
                self.add_error(name if name in self.fields else field, sentences)
        return None


def list_dialects(words: str) -> list[tuple[str, str]]:
    """The dialects as choices, behind the one of none, which is called by these words."""
    return [("", words), *((dialect.slug, dialect.title) for dialect in all_dialects())]


class SignInForm(PageForm, AuthenticationForm):
    """Name and password."""

    username = forms.CharField(
        max_length=150, widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}))
    error_messages = {  # noqa: RUF012 (as Django declares it)
        "invalid_login": "Wrong username or password (case-sensitive).",
        "inactive": "This account is closed.",
    }


FAULTS = {"errors": "decoding errors", "missing": "missing messages"}


# What the addresses of a list name besides its filters.
PAGING = ("before", "grade", "since")


class TraceFilter(PageForm):
    """Which traces are listed; an unknown value filters nothing, and the page says so."""

    state = forms.ChoiceField(required=False, choices=[("", "any"), *Conversation.State.choices])
    dialect = forms.ChoiceField(required=False, choices=partial(list_dialects, "any"))
    agent = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"size": 14, "placeholder": "whole name"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "filter-%s")
        super().__init__(*args, **kwargs)

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

    fault = forms.ChoiceField(label="Problem", required=False, choices=[("", "any"), *FAULTS.items()])
    delivery = forms.UUIDField(required=False, widget=forms.HiddenInput)
    channel = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    order = forms.ChoiceField(
        label="Sort",
        required=False,
        choices=[("", "latest activity"), ("worst", "most severe finding")],
    )

    def read_order(self) -> str:
        """The order that is chosen, empty for the usual one."""
        self.is_valid()
        return str(self.cleaned_data.get("order", ""))


class VerdictForm(PageForm):
    """A verdict on a conversation as it was shown: `seen` is the digest of what the auditor saw."""

    verdict = forms.ChoiceField(
        choices=Review.Verdict.choices, widget=forms.RadioSelect, error_messages={"required": "Choose a verdict."}
    )
    # Whoever has new messages loaded into the page signs what it shows then.
    seen = forms.RegexField(r"\A[0-9a-f]{64}\Z", widget=forms.HiddenInput(attrs={"data-live-part": "seen"}))
    comment = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What you saw, for the next reader.",
    )

    def read(self) -> dict[str, Any]:
        """What `give_verdict` takes, of a valid form."""
        return {**self.cleaned_data, "seen": bytes.fromhex(self.cleaned_data["seen"])}


class MemberForm(PageForm):
    """Somebody to invite."""

    name = forms.CharField(
        max_length=150,
        label="Name",
        widget=forms.TextInput(attrs=PLAIN),
        help_text="For this list: letters, digits and @ . + - _ only. They choose their user name themselves.",
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.AUDITOR)


class RenameForm(PageForm):
    """Another name for the workspace."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Its address stays the same.",
    )


class WorkspaceForm(PageForm):
    """A new workspace."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="You own it. It shares no member, key or message with this one.",
    )
    slug = forms.SlugField(
        max_length=64,
        label="Address",
        widget=forms.TextInput(attrs=PLAIN),
        help_text="A word for its addresses, such as night-shift: letters, digits, - and _. It cannot be changed.",
    )


class RoleForm(PageForm):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Role.choices)


def _list_zones() -> list[tuple[str, str]]:
    return [(name, name) for name in ("UTC", *sorted(available_timezones() - {"localtime", "UTC"}))]


class ZoneForm(PageForm):
    """The time zone in which a person is shown times."""

    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=_list_zones,
        help_text="Times are shown in this zone. Stored and exported times stay in UTC.",
    )


class PasswordForm(PageForm, PasswordChangeForm):
    """A new password, by whoever knows the old one."""

    def __init__(self, *args: Any, asks_for_old: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not asks_for_old:  # There is none, or a link has just proven who this is.
            del self.fields["old_password"]


class InvitedForm(PageForm):
    """A new account for somebody who was invited."""

    name = forms.CharField(
        max_length=150,
        label="User name",
        widget=forms.TextInput(attrs={"autocomplete": "username", "spellcheck": "false"}),
        help_text="Letters, digits and @ . + - _ only. Your reviews are kept under this name.",
    )
    password = forms.CharField(
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 12 characters.",
    )


LIFETIMES = {"": None, "30": timedelta(days=30), "90": timedelta(days=90), "365": timedelta(days=365)}


class KeyForm(PageForm):
    """A new API key."""

    name = forms.CharField(max_length=120, help_text="The program that will use it.")
    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices, initial=[ApiKey.Scope.INGEST], widget=forms.CheckboxSelectMultiple
    )
    agents = forms.CharField(
        required=False,
        max_length=2000,
        label="Agent names",
        help_text="The names of its agents, separated by commas. A message under another name is a finding.",
    )
    channel = forms.ChoiceField(required=False, help_text="A key bound to a channel sends to no other.")
    expires_in = forms.ChoiceField(
        required=False,
        label="Expires",
        choices=[("", "never"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year")],
    )

    def __init__(self, *args: Any, channels: list[Channel], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        self.offer("channel", [("", "any channel"), *((name, name) for name in self._channels)])

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
