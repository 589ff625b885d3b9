"""A staged file as its card shows it: the first records told, the numbers so far, and what is still to be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dialects import Message
from inspector.accounts.models import Membership
from inspector.accounts.selectors import list_channels
from inspector.intake.models import Delivery
from inspector.intake.staging import KEPT_FOR, look_at, read_choices

from ..agents.marks import AgentMark, Cast
from ..shown.fields import cut_layers
from ..shown.readings import list_all_notes
from ..shown.told import Segments, name_dialect
from .foretelling import Foretold, foretell
from .forms import ReadingForm

MAX_NOTES = 3
MAX_PARTS = 3

TIME_WORDS = {"wire": "in the message", "envelope": "before the text"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Saying:
    """One message of a previewed record: who says what to whom, and whether that was named by the uploader."""

    sender: AgentMark | None
    receivers: Sequence[AgentMark]
    is_broadcast: bool
    is_to_itself: bool
    performative: str | None
    native_act: str
    segments: Segments
    more_receivers: int = 0


def make_card(delivery: Delivery, membership: Membership, form: ReadingForm | None = None) -> dict[str, Any]:
    """What `uploads/_staged.html` shows of a staged file.

    Args:
        form: what was filled in, shown again with its errors; without one the choices in force are shown.
    """
    choices = read_choices(delivery)
    beginning = look_at(delivery=delivery)
    told = foretell(records=beginning.records, options=delivery.options, start=choices.start)
    cast = Cast(choices.speakers)
    silent = [line for line in told if line.reading and not any(one.sender for one in line.reading.messages)]
    zone = membership.user.time_zone
    return {
        "row": delivery,
        "name": delivery.file_name or "a file without a name",
        "expires_at": delivery.received_at + KEPT_FOR,
        "form": form or ReadingForm(initial=ReadingForm.write(choices), zone=zone, auto_id=f"reading-{delivery.pk}-%s"),
        "channels": list(list_channels(workspace=membership.workspace)),
        "rows": [_make_row(line, cast) for line in told],
        "silent_count": len(silent),
        "asks_who": bool(silent or choices.speakers),
        "untimed_count": sum(1 for line in told if line.reading and not line.time_basis),
        "dialects": Counter(name_dialect(line.reading.dialect) for line in told if line.reading).most_common(),
        "malformed_count": sum(1 for line in told if line.reading and line.reading.error),
        "beginning": beginning,
    }


def _make_row(line: Foretold, cast: Cast) -> dict[str, Any]:
    reading, record = line.reading, line.record
    notes = list_all_notes(reading) if reading else []
    candidate = reading.candidates[0] if reading and reading.candidates else None
    messages = reading.messages if reading else ()
    return {
        "number": record.index + 1,
        "line": record.line,
        "length": record.length,
        "at": datetime.fromisoformat(line.time) if line.time else None,
        "time_words": TIME_WORDS.get(line.time_basis, ""),
        "dialect": name_dialect(reading.dialect, reading.version) if reading else "",
        "why": candidate.why if candidate else "",
        "sayings": [_make_saying(message, cast) for message in messages[:MAX_PARTS]],
        "more_parts": max(0, len(messages) - MAX_PARTS),
        "notes": notes[:MAX_NOTES],
        "more_notes": max(0, len(notes) - MAX_NOTES),
        "is_malformed": bool(reading and reading.error),
        "wire": reading.wire if reading else "",
        "stretches": [stretch for stretch in cut_layers(reading).get(0, ()) if stretch.kind == "masked"]
        if reading
        else (),
        "problem": record.problem.reason if record.problem else "",
    }


def _make_saying(message: Message, cast: Cast) -> Saying:
    receivers = [name for name in message.receivers if name]
    is_to_itself = bool(message.sender) and receivers == [message.sender]
    return Saying(
        sender=cast.find(message.sender) if message.sender else None,
        receivers=[] if is_to_itself else cast.find_all(receivers),
        is_broadcast=message.broadcast,
        is_to_itself=is_to_itself,
        performative=message.performative,
        native_act=message.native_act or "",
        segments=[(segment.text, segment.spans, segment.basis) for segment in message.english],
    )
