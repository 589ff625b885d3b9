"""What is to be exported, as an address names it, and how, as a person chooses."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms

from inspector.accounts.models import Membership
from inspector.accounts.selectors import find_channel
from inspector.audit.rules import RULES
from inspector.audit.samples.drawing import find_sample
from inspector.exports.exporters import BROUGHT
from inspector.exports.manifests import say_secrets
from inspector.exports.models import Export
from inspector.intake.selectors import find_delivery
from inspector.search.language import MAX_CHARACTERS
from inspector.threads.selectors import find_conversation

from ..findings.narrowing import name_state, read_filters
from ..forms import ConversationFilter, PageForm
from ..shown.told import name_conversation, shorten

Forms = Sequence[tuple[str, str]]
FORMS: Final[Forms] = (
    (Export.Form.JSONL, "JSON Lines: exact, and can be delivered again"),
    (Export.Form.CSV, "CSV: for a spreadsheet"),
    *((slug, f"{exporter.title}: {exporter.about}") for slug, exporter in BROUGHT.items()),
)
FORMS_AND_REPORT: Final[Forms] = (
    *FORMS,
    (
        Export.Form.REPORT,
        "Report: to read and to print, with English, raw, fields, findings, verdicts, comments and hashes",
    ),
)
FORMS_OF_FINDINGS: Final[Forms] = (
    (Export.Form.CSV, "CSV: for a spreadsheet"),
    (Export.Form.JSONL, "JSON Lines: for programs"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """What is to be exported: what `ask_for_export` takes, in words, and as hidden fields of a form.

    `forms` are those that a person can choose, each with its words; the first is chosen to begin with.
    """

    given: Mapping[str, Any]
    title: str
    kind: str
    hidden: tuple[tuple[str, str], ...]
    forms: Forms = FORMS
    is_everything: bool = False


def read_meant(said: Mapping[str, str], membership: Membership) -> Meant | None:
    """What the parameters of an address or a form name; None for a conversation or a sample that is not there.

    `findings` is there for a list of findings, with its filters; `conversation` is the id of one, `sample` that of an
    audit sample; `conversations` is there for a list of them, with its filters; else `q` is a query, and nothing at all
    is every message.
    """
    if "findings" in said:
        return _read_findings(said, membership)
    if said.get("conversation"):
        try:
            conversation_id = uuid.UUID(said["conversation"])
        except ValueError:
            return None
        conversation = find_conversation(workspace=membership.workspace, conversation_id=conversation_id)
        if conversation is None:
            return None
        return Meant(
            given={"conversation_id": conversation_id},
            title=shorten(name_conversation(conversation)),
            kind="The conversation",
            hidden=(("conversation", str(conversation_id)),),
            forms=FORMS_AND_REPORT,
        )
    if said.get("sample"):
        return _read_sample(said["sample"], membership)
    if "conversations" in said:
        filters = ConversationFilter(said).read()
        words = ", ".join(f"{name} {value}" for name, value in filters.items())
        return Meant(
            given={"filters": filters},
            title=f"Conversations with {words}" if words else "All conversations",
            kind="Every message of",
            hidden=(("conversations", "1"), *filters.items()),
        )
    query = said.get("q", "").strip()[:MAX_CHARACTERS]
    return Meant(
        given={"query": query},
        title=query or "Every message of the workspace",
        kind="Messages that the search finds" if query else "Messages",
        hidden=(("q", query),),
        is_everything=not query,
    )


def _read_sample(text: str, membership: Membership) -> Meant | None:
    try:
        sample = find_sample(workspace=membership.workspace, sample_id=uuid.UUID(text))
    except ValueError:
        return None
    if sample is None:
        return None
    return Meant(
        given={"sample_id": sample.pk},
        title=shorten(sample.queue.name),
        kind="The audit sample",
        hidden=(("sample", str(sample.pk)),),
        forms=FORMS_AND_REPORT,
    )


def _read_findings(said: Mapping[str, str], membership: Membership) -> Meant | None:
    """The findings of a list, narrowed by the parameters of its address; None where one names what is not there."""
    asked = read_filters(said)
    filters = {name: value for name, value in asked.items() if value and name != "order"} | {
        name: said[name] for name in ("rule", "channel", "delivery", "conversation") if said.get(name)
    }
    if not _is_there(filters, membership):
        return None
    hidden = (("findings", "1"), *filters.items())
    words = " and ".join(f"{name} {value}" for name, value in filters.items())
    filters["state"] = name_state(asked)
    if asked["assignee"] == "me":
        filters["assignee"] = str(membership.user_id)
    return Meant(
        given={"filters": filters, "has_findings": True},
        title=f"Findings with {words}",
        kind="Findings of the list",
        hidden=hidden,
        forms=FORMS_OF_FINDINGS,
    )


def _is_there(filters: Mapping[str, str], membership: Membership) -> bool:
    """Whether the rule, channel, delivery and conversation that are named are there."""
    workspace = membership.workspace
    try:
        ids = {name: uuid.UUID(filters[name]) for name in ("delivery", "conversation") if name in filters}
    except ValueError:
        return False
    return (
        filters.get("rule", "") in ("", *RULES)
        and ("channel" not in filters or find_channel(workspace=workspace, name=filters["channel"]) is not None)
        and ("delivery" not in ids or find_delivery(workspace=workspace, delivery_id=ids["delivery"]) is not None)
        and (
            "conversation" not in ids
            or find_conversation(workspace=workspace, conversation_id=ids["conversation"]) is not None
        )
    )


class ExportForm(PageForm):
    """The form of the file, and whether it includes secrets; only who may see them can choose that."""

    form = forms.ChoiceField(
        widget=forms.RadioSelect,
        error_messages={"required": "Choose a form.", "invalid_choice": "Choose a form."},
    )
    include_secrets = forms.BooleanField(required=False, label="Include secrets")
    has_mark = forms.BooleanField(required=False, label="CSV: begin with a byte order mark, for Excel")

    def __init__(self, *args: Any, membership: Membership, choices: Forms, secrets: int | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer("form", choices, choices[0][0])
        self.may_choose = membership.is_auditor
        if secrets is not None:
            self.fields["include_secrets"].label = f"Include secrets: {say_secrets(secrets)}"

    def read(self) -> dict[str, Any]:
        """What `ask_for_export` takes, of a valid form."""
        said = self.cleaned_data
        return {
            "form": said["form"],
            "is_masked": not (said["include_secrets"] and self.may_choose),
            "has_mark": said["has_mark"],
        }
