"""What a list of findings is narrowed to and how it is sorted, as its address says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from django.db.models import Q

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import CLOSED, EVERYWHERE, SNOOZED, SUPPRESSED, of_assignee
from inspector.audit.models import Finding
from inspector.threads.models import Message
from inspector.threads.selectors import WORST

ALL: Final = "all"
# The states that a list can be narrowed to: (in the address, in words).
STATES: Final = {
    Finding.State.OPEN.value: "open",
    SNOOZED: "snoozed",
    Finding.State.ACCEPTED.value: "accepted",
    Finding.State.FIXED.value: "fixed",
    Finding.State.FALSE_ALARM.value: "false alarms",
    ALL: "all current",
    SUPPRESSED: "suppressed",
    CLOSED: "no longer applies",
}
# A person in the address of a list: the number of an account.
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
# The orders of a list of findings of several rules; without one they stand by rule.
ORDERS: Final = {WORST: "most severe first", "newest": "newest first"}
SEVERITIES: Final = {
    severity.label.lower(): severity.value for severity in reversed(Message.Severity) if severity.value
}


def read_filters(said: Mapping[str, str]) -> dict[str, str]:
    """The filters of the address; what they do not know narrows nothing, and open is where one begins."""
    state, severity = said.get("state", ""), said.get("severity", "")
    assignee = said.get("assignee", "")
    return {
        "state": state if state in STATES else Finding.State.OPEN.value,
        "severity": severity if severity in SEVERITIES else "",
        "q": said.get("q", "").strip(),
        "assignee": assignee if assignee in ("me", "nobody") or _NUMBER.fullmatch(assignee) else "",
        "order": said.get("order", "") if said.get("order") in ORDERS else "",
    }


def name_state(filters: Mapping[str, str]) -> str:
    """The state as `select_findings` takes it: empty for all current ones."""
    return "" if filters["state"] == ALL else filters["state"]


def read_assignee(filters: Mapping[str, str], membership: Membership) -> Q:
    """The findings of whoever the filter names: the reader, nobody, or a person by number."""
    named = filters["assignee"]
    if named == "me":
        return of_assignee(membership.user_id)
    if named == "nobody":
        return of_assignee(None)
    return of_assignee(int(named)) if named else EVERYWHERE
