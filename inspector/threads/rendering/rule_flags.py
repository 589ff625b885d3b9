"""Rule flags: what a message shows that a rule may have to look at, as bits of its row; most show nothing and are not
read.

What a row says by itself is decided when it is told; what it takes others to see (`citations`) is added when it is
placed. A bit says where to look, and not that anything is found there: it may stay where what it said has gone, and may
never be missing. What placing remarks on (an id that was not received, a circle) is in columns of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import IntFlag
from typing import Final

from django.db.models import Q

from dialects import Message
from inspector.hidden_characters import has_deceptive, has_unseen
from inspector.intake.models import Record
from inspector.tool_words import find_orders, is_result, may_state

from . import terms

# A clock may be off by so much before an auditor wants to know.
CLOCK_SKEW: Final = timedelta(minutes=5)
# From this severity on a note is looked at.
MIN_SEVERITY: Final = 2
# Under which kinds a decoder says what was offered and agreed of sessions, as its entries are stored.
OF_SESSIONS: Final = ("handshake", "session")
# Under which it says which key an agent showed as its own, by the name that the key had.
OF_KEYS: Final = {"pubkey": "public-key", "fingerprint": "fingerprint"}
_STARTS_OF_SESSIONS: Final = tuple(f'["{kind}",' for kind in (*OF_SESSIONS, *OF_KEYS.values()))
_SEALED: Final = terms.term("security.encrypted", "true")
_LEANING: Final = frozenset({terms.term("has", "references"), terms.term("has", "condition")})


class RuleFlag(IntFlag):
    """What a message shows; a column of 16 bits holds them."""

    # It has been decided what its row shows.
    DECIDED = 1
    # Its decoder noted something of at least `MIN_SEVERITY`.
    NOTED = 1 << 1
    # It leans on a context, or on a condition.
    LEANING = 1 << 2
    FAILED = 1 << 3
    SEALED = 1 << 4
    # Its record established something of a session, or a key of its sender.
    AGREEING = 1 << 5
    # Its sentence or its sender holds signs that deceive.
    WRITTEN = 1 << 6
    # Its time is later than the moment at which it was received.
    FUTURE = 1 << 7
    # Another record of its conversation bears its id.
    DOUBLE = 1 << 8
    # It answers what is later than itself.
    EARLY = 1 << 9
    # It came by a key whose agents have other names than its sender.
    STRANGE = 1 << 10
    # It accepts or evaluates something.
    JUDGING = 1 << 11
    # It is what a tool gave back, and tells its reader what to do.
    ORDERING = 1 << 12
    # It is what a tool gave back, and states a value that a claim may contradict.
    STATING = 1 << 13
    # Its number or its turn was its sender's before, for other content.
    REUSED = 1 << 14


# The acts that judge what somebody did or proposed.
JUDGEMENTS: Final = ("accept", "evaluate")
# Placed with a remark, or citing what was not received.
ODD: Final = (
    Q(parent_key__isnull=False, parent__isnull=True)
    | Q(parent_why__contains="circle")
    | Q(parent_why__startswith="it names itself")
)
# The rows that show something: what the index of flags holds.
FLAGGED: Final = ~Q(sights=RuleFlag.DECIDED.value) | ODD


def decide_flags(*, record: Record, read: Message, severity: int, english: str = "", atoms: Sequence[str] = ()) -> int:
    """What a row shows by itself, but for what its record established. `read` is the message before it was told: its
    act and its sender are those of the row. `english` and `atoms` are its sentence and exact terms, where it has been
    told."""
    flags = RuleFlag.DECIDED.value
    if severity >= MIN_SEVERITY:
        flags |= RuleFlag.NOTED.value
    if read.performative == "failure":
        flags |= RuleFlag.FAILED.value
    if read.performative in JUDGEMENTS:
        flags |= RuleFlag.JUDGING.value
    if not _LEANING.isdisjoint(atoms):
        flags |= RuleFlag.LEANING.value
    if _SEALED in atoms:
        flags |= RuleFlag.SEALED.value
    if has_deceptive(english) or has_unseen(read.sender or ""):
        flags |= RuleFlag.WRITTEN.value
    if english and is_result(read.performative, read.native_act):
        if next(find_orders(english), None) is not None:
            flags |= RuleFlag.ORDERING.value
        if may_state(english):
            flags |= RuleFlag.STATING.value
    if record.order_basis != "receipt" and record.order_time > record.created_at + CLOCK_SKEW:
        flags |= RuleFlag.FUTURE.value
    return flags


def decide_established(established: str) -> int:
    """What a row shows by what its record established, as it is stored."""
    return RuleFlag.AGREEING.value if any(start in established for start in _STARTS_OF_SESSIONS) else 0
