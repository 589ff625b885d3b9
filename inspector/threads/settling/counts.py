"""Counts: what is carried beside a conversation's row, so that what it sums up can be gone on with and changed."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ..multiset import Multiset, read_multiset
from .digests import Moment

# Of so many agents it is carried where they appeared first, those that did so before all others.
MOST_AGENTS: Final = 400

# How a task stands: whether another gave rise to it, and its state. See `Play.standing`.
Standing = tuple[bool, str]


class Spoken(NamedTuple):
    """Where a dialect or an agent appeared first, as a place, and how many messages are in it, or sent by it."""

    place: bytes
    messages: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What a conversation's row does not say of what it sums up, and what is needed to go on with it.

    `dialects` stand in the order in which they were first spoken; `agents` are those of the row, as many of the first
    as are carried. `standings` counts tasks. `severities` are those of the gravest messages, by their places in
    hexadecimal. `named` is 2 where its subject is that of what asked first, 1 of what was said first, 0 where it has
    none; `subject` is the place of that message. `latest` is the time of its latest messages, and `settled` what its
    digest is of: see `digests`.
    """

    dialects: Mapping[str, Spoken] = field(default_factory=dict)
    agents: Sequence[Spoken] = ()
    standings: Counter[Standing] = field(default_factory=Counter)
    severities: Mapping[str, int] = field(default_factory=dict)
    named: int = 0
    subject: bytes = b""
    latest: Moment | None = None
    settled: Multiset = field(default_factory=Multiset)

    def write(self) -> dict[str, Any]:
        """They as JSON takes them."""
        return {
            "dialects": [[name, spoken.place.hex(), spoken.messages] for name, spoken in self.dialects.items()],
            "agents": [[spoken.place.hex(), spoken.messages] for spoken in self.agents],
            "standings": [[*standing, count] for standing, count in self.standings.items() if count],
            "severities": dict(self.severities),
            "named": self.named,
            "subject": self.subject.hex(),
            "latest": self.latest,
            "settled": base64.b64encode(self.settled.write()).decode(),
        }

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Counts:
        """What `write` wrote."""
        return cls(
            dialects={name: Spoken(bytes.fromhex(place), messages) for name, place, messages in written["dialects"]},
            agents=[Spoken(bytes.fromhex(place), messages) for place, messages in written["agents"]],
            standings=Counter({(is_part, state): count for is_part, state, count in written["standings"]}),
            severities=dict(written["severities"]),
            named=written["named"],
            subject=bytes.fromhex(written["subject"]),
            latest=Moment(*written["latest"]) if written["latest"] else None,
            settled=read_multiset(base64.b64decode(written["settled"])),
        )
