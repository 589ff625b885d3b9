"""Bindings: what exactly a verdict was given on, as a digest of each shown message, and in what that differs by now.

The digest of a conversation is SHA-256 over its shown messages in the order of their order keys. Of each: SHA-256 of
the raw bytes of its record; the decoder that read it, as `dialect version`; SHA-256 of its sentence in English; and the
digest of everything that is told of it beside. The same four are kept for each message with its record and part, so
that a later comparison can say which messages differ, and in which of the four.

A conversation is read in one statement. Pages of lists never do: the worker compares whenever a conversation has been
settled, and they read what it found.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.db import connection
from django.utils import timezone

from inspector.threads.models import Conversation

from .tables import Binding

# Of what differs in one way no more messages are named; the count says how many there are.
MOST_NAMED: Final = 20
# What can differ of a message, and what can become of it.
KINDS: Final = ("bytes", "decoder", "english", "beside", "came", "gone", "order")

_LINE: Final = struct.Struct(">16sI32sH32s32s")
_READ: Final = """
    SELECT message.record_id, message.part, sha256(record.source),
           message.dialect || ' ' || split_part(message.told_in, ' ', 1),
           sha256(convert_to(message.english, 'UTF8')), message.told_digest
      FROM threads_message message JOIN intake_record record ON record.id = message.record_id
     WHERE message.conversation_id = %s
       AND NOT EXISTS (SELECT 1 FROM intake_hiddenrecord hidden WHERE hidden.record_id = message.record_id)
     ORDER BY message.order_time, message.order_source, message.order_index, record.identity, message.part
"""

Place = tuple[uuid.UUID, int]


class Line(NamedTuple):
    """What a verdict is bound to of one message."""

    record: uuid.UUID
    part: int
    raw: bytes
    decoder: str
    english: bytes
    told: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """That messages differ in one of `KINDS`: how many, and the first of them.

    `decoders` are (then, now) of what is read by another decoder, each as `dialect version`, once.
    """

    count: int
    places: Sequence[Place] = field(default=())
    decoders: Sequence[tuple[str, str]] = field(default=())


def read_lines(*, conversation_id: uuid.UUID) -> list[Line]:
    """The shown messages of a conversation in the order of their order keys, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [conversation_id])
        return [
            Line(record, part, bytes(raw), decoder, bytes(english), bytes(told or bytes(32)))
            for record, part, raw, decoder, english, told in cursor.fetchall()
        ]


def digest_lines(lines: Sequence[Line]) -> bytes:
    """SHA-256 over what a verdict is bound to; the module says of what."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.raw + line.decoder.encode() + b"\n" + line.english + line.told)
    return digest.digest()


def bind(*, conversation: Conversation) -> Binding:
    """What the conversation is now, to bind a verdict to; call in a transaction that holds it.

    Two who saw the same share a row. That it is as it was is known from here on.
    """
    lines = read_lines(conversation_id=conversation.pk)
    bound, _ = Binding.objects.update_or_create(
        conversation=conversation,
        digest=digest_lines(lines),
        defaults={
            "checked_digest": bytes(conversation.settled_digest or b""),
            "checked_at": timezone.now(),
            "changes": "",
        },
        create_defaults={
            "workspace_id": conversation.workspace_id,
            "messages": len(lines),
            "manifest": _pack(lines),
            "checked_digest": bytes(conversation.settled_digest or b""),
        },
    )
    return bound


def check(*, conversations: Collection[uuid.UUID]) -> None:
    """Compare what verdicts on these conversations are bound to with what is there, and keep what differs.

    Call in the transaction that holds them. Those that nobody judged, or that stand as they were compared last, cost
    one statement together.
    """
    rows = Binding.objects.filter(conversation__in=conversations).defer("manifest").select_related("conversation")
    due = [row for row in rows if bytes(row.checked_digest) != bytes(row.conversation.settled_digest or b"")]
    for conversation_id in {row.conversation_id for row in due}:
        lines = read_lines(conversation_id=conversation_id)
        for row in due:
            if row.conversation_id == conversation_id:
                row.changes = write_changes(compare(row, lines))
                row.checked_digest = bytes(row.conversation.settled_digest or b"")
                row.checked_at = timezone.now()
                row.save(update_fields=["changes", "checked_digest", "checked_at"])


def compare(bound: Binding, lines: Sequence[Line]) -> dict[str, Change]:
    """In what the messages of a conversation differ from what a verdict was bound to, by `KINDS`; empty: in nothing.

    Args:
        bound: what the verdict was bound to.
        lines: the messages now.
    """
    if digest_lines(lines) == bytes(bound.digest):
        return {}
    then = {(line.record, line.part): line for line in _unpack(bytes(bound.manifest))}
    found: dict[str, list[Place]] = {}
    decoders: dict[tuple[str, str], None] = {}
    for line in lines:
        place = (line.record, line.part)
        old = then.pop(place, None)
        for kind in ["came"] if old is None else _find_differences(old, line):
            found.setdefault(kind, []).append(place)
        if old is not None and old.decoder != line.decoder:
            decoders[old.decoder, line.decoder] = None
    if then:
        found["gone"] = list(then)
    # Where no message differs, they stand in another order.
    if not found:
        found["order"] = []
    named = sorted(decoders)[:MOST_NAMED]
    return {
        kind: Change(len(places), places[:MOST_NAMED], named if kind == "decoder" else ())
        for kind, places in found.items()
    }


def _find_differences(old: Line, new: Line) -> Iterator[str]:
    if old.raw != new.raw:
        yield "bytes"
    if old.decoder != new.decoder:
        yield "decoder"
    if old.english != new.english:
        yield "english"
    # Another decoder always tells otherwise, if only in saying which it is.
    elif old.decoder == new.decoder and old.told != new.told:
        yield "beside"


def write_changes(changes: Mapping[str, Change]) -> str:
    """What differs as it is kept: JSON text, empty where nothing does."""
    return json.dumps({kind: _write_change(change) for kind, change in changes.items()}) if changes else ""


def _write_change(change: Change) -> list[Any]:
    places = [[record.hex, part] for record, part in change.places]
    return [change.count, places, change.decoders] if change.decoders else [change.count, places]


def read_changes(text: str) -> dict[str, Change]:
    """What differs, from how it is kept."""
    return {kind: _read_change(*kept) for kind, kept in json.loads(text).items()} if text else {}


def _read_change(count: int, places: Sequence[Any], decoders: Sequence[Any] = ()) -> Change:
    """A change; what was kept before the decoders were named says nothing of them."""
    return Change(
        count, [(uuid.UUID(record), part) for record, part in places], [(then, now) for then, now in decoders]
    )


def _pack(lines: Sequence[Line]) -> bytes:
    """The decoders as a line of JSON, then each message in a fixed number of bytes."""
    decoders = list(dict.fromkeys(line.decoder for line in lines))
    numbers = {decoder: number for number, decoder in enumerate(decoders)}
    packed = [
        _LINE.pack(line.record.bytes, line.part, line.raw, numbers[line.decoder], line.english, line.told)
        for line in lines
    ]
    return json.dumps(decoders).encode() + b"\n" + b"".join(packed)


def _unpack(manifest: bytes) -> Iterator[Line]:
    head, _, body = manifest.partition(b"\n")
    decoders = json.loads(head)
    for record, part, raw, decoder, english, told in _LINE.iter_unpack(body):
        yield Line(uuid.UUID(bytes=record), part, raw, decoders[decoder], english, told)
