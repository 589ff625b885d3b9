"""What people fill in about agents: which are listed, what one is called, which two are one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django import forms

from inspector.accounts.models import Channel
from inspector.audit.naming import MAX_REASON
from inspector.browsing.directory import Choice
from inspector.intake.text import make_storable
from inspector.threads.models import MAX_FRIENDLY_NAME

from ..forms import PLAIN, PageForm, list_dialects


class AgentFilter(PageForm):
    """Which agents are listed; unknown values filter nothing. The channel is asked for where there are several."""

    name = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"size": 14, "placeholder": "part of a name"}),
    )
    channel = forms.ChoiceField(required=False)
    dialect = forms.ChoiceField(required=False, choices=partial(list_dialects, "any"))

    def __init__(self, *args: Any, channels: Sequence[Channel], **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "filter-%s")
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        self.offer("channel", [("", "any"), *((name, name) for name in self._channels)])
        if len(self._channels) < 2:
            del self.fields["channel"]

    def read(self) -> Choice:
        """The filters that are set and valid."""
        self.is_valid()
        said = self.cleaned_data
        return Choice(
            name=make_storable(said.get("name") or ""),
            channel=self._channels.get(said.get("channel") or ""),
            dialect=said.get("dialect") or "",
        )


class NameForm(PageForm):
    """What an auditor calls an agent."""

    friendly_name = forms.CharField(
        label="Friendly name",
        max_length=MAX_FRIENDLY_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="For people, in this channel. The raw name stays beside it.",
    )
    reason = forms.CharField(
        label="Reason (optional)",
        required=False,
        max_length=MAX_REASON,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class JoinForm(PageForm):
    """Which agent this one is: a name as the wire has it, in a channel."""

    same_as = forms.CharField(
        label="It is the same agent as",
        max_length=2000,
        widget=forms.TextInput(attrs={**PLAIN, "list": "candidates"}),
        help_text="The other's name, exactly as in the raw messages. This agent is shown as the other from then on.",
    )
    channel = forms.ChoiceField(label="Its channel", required=False)
    reason = forms.CharField(
        label="Reason",
        max_length=MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Give the reason: later readers of this agent will see it."},
    )

    def __init__(self, *args: Any, channels: Sequence[Channel], own: Channel, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        self._own = own
        self.offer("channel", [(name, name) for name in self._channels], own.name)
        if len(self._channels) < 2:
            del self.fields["channel"]

    def read_channel(self) -> Channel:
        """The channel that is chosen; the agent's own where there is no choice."""
        return self._channels.get(self.cleaned_data.get("channel") or "", self._own)
