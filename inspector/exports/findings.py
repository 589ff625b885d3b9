"""Findings as rows: one finding a row, with the text of the message that it is about; the same names in both forms.

A finding stands as it does when its row is written. What a message says of itself is as long as `MAX_BYTES` allows:
there can be many findings about one message.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from inspector.audit.findings.services import list_decisions
from inspector.audit.models import Finding, FindingAct
from inspector.audit.rules import RULES

from .cells import make_cell, write_cells
from .entries import Part, Row
from .lines import SEVERITIES, write_instant, write_value
from .listing import find_findings
from .models import Export

# Of a longer record neither text nor English is in a row.
MAX_BYTES: Final = 64 * 1024
COLUMNS: Final = (
    *("id", "rule", "title", "severity", "state", "holds", "is_suppressed", "assignee", "snoozed_until"),
    *("decided_by", "decided_at", "reason", "text", "cites", "at", "found_at", "sender", "channel", "conversation"),
    *("message", "record", "part", "span", "english", "raw", "is_masked", "sha256", "is_changed"),
)

Said = Mapping[tuple[str, int], Sequence[tuple[Finding, FindingAct | None]]]


def load_findings(export: Export, rows: Sequence[Row]) -> Said:
    """The findings that an export means of these records, by record and part, each with the latest decision on it."""
    found = list(find_findings(export, export.workspace).filter(record__in=[row.id for row in rows]))
    decisions = list_decisions(findings=found)
    said = defaultdict(list)
    for finding in found:
        said[str(finding.record_id), finding.part].append((finding, decisions.get(finding.pk)))
    return said


def write_findings(row: Row, *, said: Said, channels: Mapping[str, str], is_csv: bool) -> bytes:
    """The rows of the findings about a record's messages."""
    listed = (
        list(_list_values(finding, act, row, part, channels[row.channel]))
        for part in row.parts
        for finding, act in said.get((row.id, part.part), ())
    )
    if is_csv:
        return write_cells([_make_cell(value) for value in values] for values in listed)
    # ASCII, as every line of an export.
    return b"".join(json.dumps(dict(zip(COLUMNS, values, strict=True))).encode() + b"\n" for values in listed)


def _make_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return make_cell(value if isinstance(value, str) else write_value(value))


def _list_values(finding: Finding, act: FindingAct | None, row: Row, part: Part, channel: str) -> Iterator[Any]:
    """What stands in a row, in the order of `COLUMNS`, as JSON types."""
    is_masked = row.masked is not None or row.is_withheld
    has_text = len(row.source) <= MAX_BYTES and not row.is_withheld
    yield from (str(finding.pk), finding.rule, RULES[finding.rule].title if finding.rule in RULES else finding.rule)
    yield from (SEVERITIES[finding.severity], finding.state, finding.holds, finding.is_suppressed)
    yield finding.assignee.get_username() if finding.assignee else None
    yield write_instant(finding.snoozed_until) if finding.snoozed_until else None
    yield from (act.by.get_username(), write_instant(act.at), act.reason) if act else (None, None, None)
    yield from (finding.text, finding.cites, write_instant(finding.at), write_instant(finding.found_at))
    yield from (finding.sender, channel, str(finding.conversation_id), part.id, row.id, part.part, finding.place)
    yield part.told if has_text else None
    yield (row.text if row.masked is None else row.masked) if has_text else None
    yield from (is_masked, row.sha256, row.changed is not None)
