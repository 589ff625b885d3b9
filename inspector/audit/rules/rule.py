"""What a rule is: what it looks for, why that matters, how grave it is, and the short logs that show it at work."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import dialects

if TYPE_CHECKING:
    from ..findings.scene import Scene


# What stands below a message of agent-lingua.
FOOT: Final = "\n--👽lingua/0.4@agent-lingua"
_START: Final = datetime(2026, 11, 16, 9, tzinfo=UTC)


def say(*lines: tuple[str, str] | tuple[str, str, float]) -> str:
    """A log of wires in envelopes: (sender, wire), a minute apart, or (sender, wire, minutes since the start)."""
    rows = []
    for number, (sender, wire, *minutes) in enumerate(lines):
        at = _START + timedelta(minutes=minutes[0] if minutes else number)
        rows.append({"raw": wire, "from": sender, "conversation": "c", "at": at.isoformat()})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def clowl(mid: str, act: str, sender: str, receiver: str, *, minute: float = 0, pid: str = "", **data: Any) -> str:
    """A line of CLowl 0.2 about the task "x"."""
    message: dict[str, Any] = {
        "clowl": "0.2",
        "mid": mid,
        "ts": int(_START.timestamp() + 60 * minute),
        "p": act,
        "from": sender,
        "to": receiver,
        "cid": "c",
    }
    if pid:
        message["pid"] = pid
    message["body"] = {"t": "x", "d": data}
    return json.dumps(message, ensure_ascii=False) + "\n"


def pack(content: bytes | dict[str, Any]) -> str:
    """A payload of agent-lingua as it is packed: Base64, of JSON where it is an object."""
    return base64.b64encode(json.dumps(content).encode() if isinstance(content, dict) else content).decode()


SEVERITIES = ("none", "info", "notice", "warning", "error")
Span = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """That a rule holds of a message.

    Args:
        text: what is the matter, in a sentence an auditor understands. Never a secret.
        cites: the section of the specification; where it is empty, the rule's own counts.
        span: the characters of the wire it is about.
        detail: what tells it from other hits of the same rule on the same message. Nothing that chance decides.
        related: the other messages it is about.
        related_spans: of some of these, the characters it is about.
        due_at: from when on it holds, where that is a matter of time.
    """

    message: uuid.UUID
    text: str
    cites: str = ""
    span: Span | None = None
    detail: str = ""
    related: tuple[uuid.UUID, ...] = ()
    related_spans: Mapping[uuid.UUID, Span] = field(default_factory=dict)
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, declared.

    Args:
        code: stable, as search and the API name it.
        title: what it finds, in a few words.
        why: why an auditor wants to know, in a sentence or two.
        severity: one of `SEVERITIES`; a workspace may grade it anew.
        group: as of notes: malformed, undecoded, protocol, sequence, assumption, security.
        cites: what it rests on, where the hit itself cites nothing.
        notes: the codes of the decoders' notes that it gathers.
        look: what else it looks for in a conversation.
        triggers: logs in which it finds something, each a log as it would be uploaded.
        passes: logs that look alike, in which it must not.
    """

    code: str
    title: str
    why: str
    severity: str
    group: str
    cites: str = ""
    notes: frozenset[str] = frozenset()
    look: Callable[[Scene], Iterable[Hit]] | None = None
    triggers: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """The severity as a number, as messages and findings store it."""
        return SEVERITIES.index(self.severity)


def select_notes(*, group: str, severities: Iterable[str], but: Iterable[str] = ()) -> frozenset[str]:
    """The codes of all notes of all dialects of this group and one of these severities, but for some."""
    return frozenset(
        note.code
        for dialect in dialects.all_dialects()
        for note in dialect.notes
        if note.group == group and note.severity in set(severities)
    ) - frozenset(but)
