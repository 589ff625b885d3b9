"""The wire of a message as a list shows it: cut at its fields, and as much of it as the page can carry."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from inspector.intake.concealing import may_hold_secret
from inspector.threads.messages import has_record, reread
from inspector.threads.models import Message

from .budgets import fit, weigh
from .fields import cut_layers, find_masked
from .markup import Stretch

WIRE_CHARACTERS: Final = 5_000
# What the mark of a field costs in a wire.
MARK_BYTES: Final = 12
# A longer record is shown on its own page only: in a list it would cost more than all the others together.
MAX_SHOWN_RECORD_BYTES: Final = 100_000
# And a window of a conversation shows so much together: each is read anew, a megabyte of fields in six seconds.
MAX_RECORD_BYTES: Final = 500_000


def cut_wire(message: Message) -> tuple[str, Sequence[Stretch]]:
    """The text of a message's record cut at its fields, so that secrets are masked; nothing where it is not loaded."""
    if not has_record(message):
        return "", ()
    return message.record.wire_text, cut_layers(reread(message=message)).get(0, ())


def mask_wire(message: Message) -> tuple[str, Sequence[Stretch]]:
    """The text of a message's record with its masked stretches alone; nothing where it is not loaded.

    Most records hold nothing that could be a secret: they are shown as they are, without being read.
    """
    if not has_record(message):
        return "", ()
    record = message.record
    wire = record.wire_text
    if not may_hold_secret(wire, record.envelope + record.facts, dialect=message.read_in):
        return wire, ()
    return wire, find_masked(reread(message=message))


def weigh_wire(wire: str, stretches: Sequence[Stretch]) -> int:
    """What the wire of a row weighs, the marks of its fields among it."""
    return weigh(wire, WIRE_CHARACTERS) + MARK_BYTES * bisect_left(stretches, WIRE_CHARACTERS, key=attrgetter("start"))


def fit_wire(wire: str, stretches: Sequence[Stretch], max_bytes: int) -> int:
    """How many characters of the wire weigh at most so much."""
    weight = weigh_wire(wire, stretches)
    shown = min(len(wire), WIRE_CHARACTERS)
    return shown if weight <= max_bytes else min(fit(wire, max_bytes, shown), shown * max_bytes // weight)
