"""Dependencies: what a conversation had established when a message was told, and that its telling asked for.

An entry (kind, name, value) stands with the message that established it and holds from that message's order key on,
until a later one of its name, or a reset of its kind. Which of them a telling asked for is known by their digests
(`contexts`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models.functions import Length

from ..models import Message
from ..placing.numbering import load_places
from .contexts import asks_for, questions_of

# So many messages that establish something are looked back over, none with more text than this.
MAX_LOOKED_AT: Final = 300
LONGEST_ESTABLISHED: Final = 20_000
MAX_DEPENDENCIES: Final = 20
LONGEST_VALUE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """An entry that was asked for: what it says, who said it in which message (`number` in its conversation).

    `is_told` is whether a piece of the English itself comes from it.
    """

    kind: str
    name: str
    value: str
    speaker: str
    message_id: uuid.UUID
    number: int
    is_told: bool


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a message leans on, the nearest first; `is_whole` is False where more may stand further back."""

    entries: Sequence[Dependency]
    is_whole: bool = True


def list_dependencies(*, message: Message, body: Mapping[str, Any]) -> Dependencies:
    """The entries of earlier messages that were in force and were asked for when it was told: two queries."""
    asked = questions_of(message.told_in)
    if not asked or message.place is None:
        return Dependencies(())
    places = load_places(message.conversation)
    rows = (
        Message.objects.shown()
        .filter(conversation_id=message.conversation_id, place__lt=message.place)
        .exclude(established="")
        .annotate(size=Length("established"))
        .filter(size__lte=LONGEST_ESTABLISHED)
        .order_by("-place")
        .values_list("id", "record_id", "part", "sender", "place", "established")[:MAX_LOOKED_AT]
    )
    told = _find_told(body)
    found: list[Dependency] = []
    seen: set[tuple[str, str]] = set()
    forgotten: set[str] = set()
    looked_at = 0
    for message_id, record_id, _, sender, place, established in rows:
        looked_at += 1
        for kind, *rest in reversed(json.loads(established)):
            if not rest:
                forgotten.add(kind)
                continue
            name, value, speaker, record, part, *_ = rest
            if kind in forgotten or (kind, name) in seen or not asks_for(asked, kind, name):
                continue
            seen.add((kind, name))
            found.append(
                Dependency(
                    kind=kind,
                    name=name,
                    value=_write(value)[:LONGEST_VALUE],
                    speaker=speaker or sender,
                    message_id=message_id,
                    number=places.find_position(place) + 1,
                    is_told=(record or str(record_id), part) in told,
                )
            )
            if len(found) == MAX_DEPENDENCIES:
                return Dependencies(found, is_whole=False)
    return Dependencies(found, is_whole=looked_at < MAX_LOOKED_AT)


def _find_told(body: Mapping[str, Any]) -> set[tuple[str, int]]:
    """The record and part of each message that a piece of the English comes from."""
    told = body["message"]
    pieces = (piece for name in ("english", "also", "gloss") for piece in told.get(name) or ())
    return {(str(piece["source"][0]), piece["source"][1]) for piece in pieces if piece.get("source")}


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
