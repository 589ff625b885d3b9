"""A conversation's tally: what its page says first, counted once by settling and not on every visit.

Messages stand by their places, so that equal sets of records give equal tallies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

# The acts that ask somebody for something.
ASKING: Final = ("request", "query", "delegate", "propose", "subscribe")
# The acts that say it did not work.
FAILING: Final = ("failure", "not-understood")
# What such a message is about is the exchange itself, or what another has named before.
GREETING: Final = ("acknowledge", "handshake", "control")
MOST_GRAVE = 3
# The first agents of a conversation are counted one by one.
MOST_SENDERS = 50


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a conversation's messages.

    `asked` is the place, in hexadecimal, of the first that asks for something. `severities` counts messages by their
    gravest note (0 is none), `senders` by who sent them, for the agents that appear first. `gravest` are places.
    `hidden` counts those that a withdrawal hides; nothing else here counts them.
    """

    asked: str | None
    asked_count: int
    failed_count: int
    malformed_count: int
    severities: dict[int, int]
    senders: dict[str, int]
    gravest: list[str]
    hidden: int = 0


def write_tally(tally: Tally) -> str:
    """The tally as JSON text."""
    return msgspec.json.encode(tally).decode()


def read_tally(text: str) -> Tally:
    """The tally that `write_tally` wrote."""
    return msgspec.json.decode(text, type=Tally)
