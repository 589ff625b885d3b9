"""What a rule is: what it looks for, why that matters, and how grave it is."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import dialects

if TYPE_CHECKING:
    from ..findings.scene import Scene


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
    """

    code: str
    title: str
    why: str
    severity: str
    group: str
    cites: str = ""
    notes: frozenset[str] = frozenset()
    look: Callable[[Scene], Iterable[Hit]] | None = None

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
