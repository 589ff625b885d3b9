"""What the rules see of a conversation as it is settled: what is odd in it, and not the whole of it.

A scene depends on what settling stored and on the keys of nothing else, and so not on the order of processing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from inspector.threads.models import Conversation


class Seen(NamedTuple):
    """A message as the rules see it; the names are those of its row."""

    id: uuid.UUID
    conversation: uuid.UUID
    record: uuid.UUID
    part: int
    dialect: str
    performative: str | None
    sender: str
    receivers: Sequence[str]
    native_id: str
    at: datetime
    parent: uuid.UUID | None
    cited: bytes | None
    basis: str
    why: str


class SeenTask(NamedTuple):
    """A task as the rules see it; the names are those of its row."""

    conversation_id: uuid.UUID
    key: bytes
    within_key: bytes | None
    native_id: str
    request: uuid.UUID | None
    act: str
    requester: str
    performer: str
    state: str
    deadline_at: datetime | None
    first_at: datetime
    last_at: datetime
    finished_at: datetime | None
    failures: int
    is_answered: bool
    steps: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A message with the notes that its decoder made of it, each as the record's JSON has it."""

    message: Seen
    notes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Skewed:
    """A message whose time is impossible: before the message it answers, or after it was received here."""

    message: Seen
    parent: uuid.UUID | None
    seconds: float


@dataclass(slots=True)
class Scene:
    """One conversation as the rules see it. Lists are in the order of the timeline.

    `odd` are those that were placed oddly, or cite what was not received; `cited_ids` says which id, where it is known.
    `leaning` carry what their record says of contexts, conditions and parts. `doubles` are records under one id.
    `failures` carry what their record says of the error. `tasks` are the remarkable ones, and those in the course of
    which work was handed on. `sealed` are encrypted, the first of each sender and receivers; `open` are not, in a
    conversation where others are or are agreed to be; `pacts` carry what they established of sessions, each as [kind,
    name, value and more]; `refused` are not opened by the key of their session. `hidden` hold characters that cannot
    be seen, `mixed` words that look Latin and are not. `judged` accept or evaluate a message of their own sender, which
    stands beside each. `strangers` came by a key whose agents have other names, each
    with what the key is called.
    """

    conversation: Conversation
    noted: list[Noted] = field(default_factory=list)
    odd: list[Seen] = field(default_factory=list)
    cited_ids: dict[uuid.UUID, str] = field(default_factory=dict)
    leaning: list[tuple[Seen, Mapping[str, Any]]] = field(default_factory=list)
    doubles: list[list[Seen]] = field(default_factory=list)
    failures: list[tuple[Seen, Mapping[str, Any]]] = field(default_factory=list)
    tasks: list[SeenTask] = field(default_factory=list)
    after_end: list[tuple[SeenTask, Seen]] = field(default_factory=list)
    skewed: list[Skewed] = field(default_factory=list)
    sealed: list[Seen] = field(default_factory=list)
    open: list[Seen] = field(default_factory=list)
    pacts: list[tuple[Seen, Sequence[Sequence[Any]]]] = field(default_factory=list)
    refused: list[Seen] = field(default_factory=list)
    hidden: list[tuple[Seen, str]] = field(default_factory=list)
    mixed: list[tuple[Seen, Sequence[str]]] = field(default_factory=list)
    judged: list[tuple[Seen, Seen]] = field(default_factory=list)
    strangers: list[tuple[Seen, str]] = field(default_factory=list)
    first: Seen | None = None
