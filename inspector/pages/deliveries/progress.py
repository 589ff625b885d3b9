"""How far a delivery is, stage by stage, and what came of it: the piece of page that asks for itself again."""

from __future__ import annotations

from typing import Any

from inspector.api.backlog import estimate_told
from inspector.audit.findings.due import is_noted
from inspector.audit.findings.selectors import count_open_by_severity, of_delivery
from inspector.intake.models import Delivery, Door, Job
from inspector.intake.selectors import Progress, find_progress
from inspector.intake.withdrawals import is_weighing
from inspector.threads.models import Message
from inspector.threads.selectors import find_work

from ..templatetags.marks import size

STAGES = (
    ("framing", "Splitting into records"),
    ("reading", "Decoding"),
    ("settling", "Building threads"),
    ("examining", "Checking by rules"),
    ("done", "Done"),
)


def name_delivery(delivery: Delivery) -> str:
    """The file's name, else the door it came through."""
    records = f"{delivery.received:,} record{'' if delivery.received == 1 else 's'}"
    return delivery.file_name or f"{records} via {delivery.get_door_display()}"


def make_progress(delivery: Delivery, *, is_receipt: bool = False) -> dict[str, Any]:
    """What `_progress.html` shows of a delivery."""
    progress = find_progress(delivery=delivery)
    phase = find_phase(delivery, progress)
    total = max(progress.size_bytes, progress.framed_bytes)
    lines = f" · {progress.lines:,} lines" if progress.lines is not None else ""
    bars = {
        "receiving": (0, 0, f"{size(progress.framed_bytes)} so far · {delivery.received:,} records"),
        "framing": (
            progress.framed_bytes,
            total,
            f"{size(progress.framed_bytes)} of {size(total)}{lines} · {delivery.received:,} records",
        ),
        "reading": (
            progress.read,
            progress.stored,
            f"{progress.read:,} of {progress.stored:,} records read{_tell_wait(delivery, progress)}",
        ),
        "settling": (0, 0, "its conversations are being built"),
        "examining": (0, 0, "the rules look at its conversations"),
        "weighing": (0, 0, "its records are being hidden or shown, as the withdrawals in force say"),
    }
    done, total, words = bars.get(phase, (0, 0, ""))
    counts = {}
    if phase == "done":
        counts = count_open_by_severity(workspace=delivery.workspace, within=of_delivery(delivery.pk))
    return {
        "row": delivery,
        "findings": [
            {"severity": severity, "count": count, "name": Message.Severity(severity).label.lower()}
            for severity, count in counts.items()
        ],
        "findings_count": sum(counts.values()),
        "name": name_delivery(delivery),
        "phase": phase,
        "stages": _list_stages(phase),
        "words": words,
        "done": done,
        "total": total,
        "failure": progress.failure,
        "set_aside": progress.set_aside,
        "is_receipt": is_receipt,
    }


def _tell_wait(delivery: Delivery, progress: Progress) -> str:
    """How long it takes until what is posted is told, as its receipt says; of a file that is begun nobody knows."""
    seconds = estimate_told() if delivery.door == Door.API and not progress.read else 0
    return f" · processed in about {seconds:,} s" if seconds else ""


def find_phase(delivery: Delivery, progress: Progress) -> str:
    """Where a delivery stands.

    While it goes on: receiving, framing, reading, settling, examining, weighing. At its end: done; quarantined, where
    nothing of it is text; empty, where it holds no record; broken, where it could not be read to its end; stuck, where
    the work on it was given up.
    """
    if progress.failure and not delivery.failure:
        return "stuck"
    if not progress.is_framed:
        return delivery.state
    if not progress.is_read:
        return "reading"
    if is_weighing(delivery=delivery):
        return "weighing"
    work = find_work(delivery=delivery)
    if work == Job.Kind.SETTLE:
        return "settling"
    # What a matter of time has just made a finding is counted a moment later.
    if work == Job.Kind.EXAMINE or not is_noted(channel_id=delivery.channel_id):
        return "examining"
    if progress.failure:
        return "broken"
    if not delivery.received:
        return "empty"
    return "done" if delivery.stored or delivery.duplicate else "quarantined"


def _list_stages(phase: str) -> list[dict[str, Any]]:
    names = [name for name, _ in STAGES]
    at = names.index(phase) if phase in names else names.index("settling") if phase == "weighing" else 0
    return [
        {"name": words, "is_current": number == at, "is_past": number < at} for number, (_, words) in enumerate(STAGES)
    ]
