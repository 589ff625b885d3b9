"""What a person says of a whole delivery: which dialect it is in, and who speaks where nothing in the log says so.

These facts belong to the delivery and stand beside the log's own envelope, never in it: which record is new is decided
without them, so that the same log is the same records whatever was said of it. Wire and envelope win over them, save
for the dialect, which is an override. Of a record that several deliveries hold, the facts are those of the sighting
with the smallest order key among the deliveries that are not withdrawn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dialects import Candidate, Envelope, Reading, read

from .concealing import conceal_reading
from .identity import read_envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is said of one record: a dialect that is forced, a sender, receivers. None and () say nothing."""

    dialect: str | None = None
    sender: str | None = None
    receivers: tuple[str, ...] = ()

    def write(self) -> str:
        """The facts as canonical JSON text (ASCII), or the empty text where nothing is said."""
        said = {"dialect": self.dialect, "from": self.sender, "to": list(self.receivers)}
        given = {name: value for name, value in said.items() if value}
        return json.dumps(given, sort_keys=True, separators=(",", ":")) if given else ""

    @classmethod
    def load(cls, text: str) -> Facts:
        """The facts that `write` wrote."""
        said = json.loads(text) if text else {}
        return cls(dialect=said.get("dialect"), sender=said.get("from"), receivers=tuple(said.get("to", ())))


def facts_at(options: Mapping[str, Any], index: int) -> Facts:
    """What a delivery says of its record at that index.

    Args:
        options: the delivery's options; `dialect` is a slug, `speakers` has one name, or two that take turns, record
            by record, the first of them with the first record.
        index: the record's place in the delivery, from zero.
    """
    speakers = options.get("speakers") or []
    dialect = options.get("dialect")
    if len(speakers) == 2:
        return Facts(dialect=dialect, sender=speakers[index % 2], receivers=(speakers[1 - index % 2],))
    return Facts(dialect=dialect, sender=speakers[0] if speakers else None)


def read_with_facts(wire: str, envelope: str, facts: str, *, dialect: str | None = None) -> Reading:
    """Read a record's text with its own envelope and with what its delivery says. Never raises for any text.

    Tokens are hidden in what comes out: see `concealing`.

    Args:
        wire: the text.
        envelope: the log's own envelope, as `write_envelope` writes it.
        facts: as `Facts.write` writes them.
        dialect: a slug that forces the dialect over everything else.
    """
    own, said = read_envelope(envelope), Facts.load(facts)
    dialect = dialect or said.dialect
    reading = read(wire, own, dialect=dialect)
    if said.sender and not any(message.sender for message in reading.messages):
        # Who receives is only filled in where the record names nobody at all: a dialogue of others is not theirs.
        is_open = not any(message.receivers or message.broadcast for message in reading.messages)
        given = (own or Envelope()).replace(sender=said.sender)
        reading = read(wire, given.replace(receivers=said.receivers) if is_open else given, dialect=dialect)
    if said.dialect:
        # A guess gives way to what the conversation speaks; what a person said does not.
        chosen = Candidate(dialect=reading.dialect, score=1.0, why="chosen by the sender of the delivery")
        others = (candidate for candidate in reading.candidates if candidate.dialect != reading.dialect)
        reading = reading.replace(candidates=(chosen, *others))
    return conceal_reading(reading, around=envelope + facts)
