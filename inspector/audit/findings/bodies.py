"""Bodies: what the rules need of a told message's JSON, and no more of it is read.

The database cannot pick it out: its JSON refuses escapes that ours has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

Notes = list[dict[str, Any]]
NO_BYTES: Final = msgspec.Raw(b"null")


class OfMessage(msgspec.Struct):
    """What is read of the message; `references`, `condition` and `error` as they stand, for `read_value`."""

    notes: Notes = []
    parent_id: Any = None
    correlation_id: Any = None
    task_id: Any = None
    object_id: Any = None
    references: msgspec.Raw = NO_BYTES
    condition: msgspec.Raw = NO_BYTES
    error: msgspec.Raw = NO_BYTES


class OfRecord(msgspec.Struct):
    """What is read of its record."""

    notes: Notes = []


class Body(msgspec.Struct):
    """A told body; empty of a message that has not been told."""

    message: OfMessage = msgspec.field(default_factory=OfMessage)
    record: OfRecord = msgspec.field(default_factory=OfRecord)

    def list_notes(self, *, part: int) -> Sequence[Mapping[str, Any]]:
        """The notes of the message; those of its record are told once, with its first part."""
        return [*self.message.notes, *self.record.notes] if part == 1 else self.message.notes

    def names(self) -> tuple[str, ...]:
        """The names under which it may cite another message, the likeliest first."""
        said = (self.message.parent_id, self.message.correlation_id, self.message.task_id, self.message.object_id)
        return tuple(name for name in said if name)


_read = msgspec.json.Decoder(Body).decode


def read_body(text: str) -> Body:
    """The body of a message as settling wrote it."""
    if not text:
        return Body()
    try:
        return _read(text)
    except msgspec.MsgspecError:
        # Half a surrogate pair is a character to us and to Python's reader, and none to the quick one.
        return msgspec.convert(_to_raw(json.loads(text)), Body)


def _to_raw(said: dict[str, Any]) -> dict[str, Any]:
    """The same with the values that are kept as they stand written anew."""
    message = said.get("message", {})
    kept = {name: msgspec.Raw(json.dumps(message[name]).encode()) for name in _KEPT if name in message}
    return {**said, "message": {**message, **kept}}


_KEPT: Final = ("references", "condition", "error")


def read_value(said: msgspec.Raw) -> Any:
    """A value that was kept as it stands."""
    return json.loads(bytes(said))
