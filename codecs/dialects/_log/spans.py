"""Exports of OpenTelemetry, `{"resourceSpans": [...]}`, span by span, or logs alike: each a record of its bytes.

What stands around spans is scaffold. Of a resource the name of its service becomes the envelope of the spans after
it, which is where exporters write it; an agent that a span names is not contradicted by that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .._record import Envelope
from .blocks import Brackets
from .elements import ArrayForm
from .tape import Tape

# The lists that lead to spans and to records of logs, by how many brackets are open around their key.
_LISTS: Final = {
    1: (b"resourceSpans", b"resource_spans", b"resourceLogs", b"resource_logs"),
    3: (b"scopeSpans", b"scope_spans", b"instrumentationLibrarySpans", b"scopeLogs", b"scope_logs"),
    5: (b"spans", b"logRecords", b"log_records"),
}
_IN_SPANS: Final = 6
# A longer resource names no service here; a longer key is none that leads to spans.
MAX_RESOURCE_BYTES: Final = 256 * 1024
MAX_KEY_BYTES: Final = 4096
_KEY: Final = re.compile(rb'"((?>(?:[^"\\]++|\\.)*))"\s*+:\s*+(?=\S)', re.DOTALL)
_BETWEEN: Final = re.compile(rb"[\s,:]*+")
_BARE: Final = re.compile(rb"[^\s,{}\[\]\"]++")
_QUOTE, _OPEN, _OPEN_LIST = b'"{['
_AGENT: Final = re.compile(r'"(?:gen_ai\.)?agent\.name"')


class SpansForm(ArrayForm):
    """Frames the spans of one export. The cursor is at its `{`, or in white space before it, when it begins.

    Its phases are those of an array, and `skip` in a value that is none of a span's.
    """

    name = "spans"

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        super().__init__(state)
        # How many brackets are open; those of values that are passed over do not count.
        self._depth: int = state["depth"] if state else 0
        self._service: str | None = state["service"] if state else None
        self._read["skip"] = self._skip

    def to_state(self, *, is_in_long: bool) -> dict[str, Any]:
        """What must be known to go on at the cursor."""
        return super().to_state(is_in_long=is_in_long) | {"depth": self._depth, "service": self._service}

    def _read_between(self, tape: Tape, is_last: bool) -> bool:
        tape.skip_to(_BETWEEN.match(tape.buffer, tape.at).end())  # type: ignore[union-attr]  # it matches nothing, too
        if not tape.unread:
            return False
        byte = tape.buffer[tape.at]
        if byte in b"}]":
            tape.skip_to(tape.at + 1)
            self._depth -= 1
            if self._depth <= 0:
                self._phase = "done"
            return True
        if self._depth == _IN_SPANS and byte in b'"{[':
            self._phase = "element"
            self._brackets = Brackets(in_string=byte == _QUOTE)
            tape.scanned = tape.at + (byte == _QUOTE)
            return True
        if self._depth % 2 and byte == _QUOTE:
            return self._read_member(tape, is_last)
        if byte == _OPEN and self._depth % 2 == 0:
            tape.skip_to(tape.at + 1)
            self._depth += 1
            # Of the resource before nothing holds for this one.
            self._service = None if self._depth == 3 else self._service
            return True
        return self._pass_value(tape, tape.at)

    def _read_member(self, tape: Tape, is_last: bool) -> bool:
        """A key with the beginning of its value."""
        found = _KEY.match(tape.buffer, tape.at)
        if found is None:
            if not is_last and tape.unread < MAX_KEY_BYTES:
                return False
            return self._pass_value(tape, tape.at)
        key, start = found[1], found.end()
        if key in _LISTS[self._depth] and tape.buffer[start] == _OPEN_LIST:
            tape.skip_to(start + 1)
            self._depth += 1
            return True
        if self._depth == 3 and key == b"resource" and tape.buffer[start] == _OPEN:
            end, is_closed = Brackets().scan(tape.buffer, start)
            if is_closed:
                self._service = _find_service(bytes(tape.buffer[start:end]))
                tape.skip_to(end)
                return True
            if not is_last and len(tape.buffer) - start < MAX_RESOURCE_BYTES:
                return False
        return self._pass_value(tape, start)

    def _pass_value(self, tape: Tape, start: int) -> bool:
        """Pass over the value that begins at an index, or at least over a character that is none."""
        byte = tape.buffer[start]
        if byte in b'"{[':
            self._brackets = Brackets(in_string=byte == _QUOTE)
            self._phase = "skip"
            tape.skip_to(start + (byte == _QUOTE))
        else:
            bare = _BARE.match(tape.buffer, start)
            tape.skip_to(bare.end() if bare else start + 1)
        return True

    def _skip(self, tape: Tape, is_last: bool) -> bool:
        end, is_closed = self._brackets.scan(tape.buffer, tape.at)
        # A backslash at the end of what was fed is looked at again, together with what it escapes.
        tape.skip_to(len(tape.buffer) if is_last and not is_closed else end)
        if is_closed:
            self._phase = "between"
        return is_closed

    def _read_text(self, text: str, fields: Mapping[str, str]) -> tuple[str, Envelope | None]:
        """A span is its own wire; the service is its sender where it names no agent."""
        if self._service is None:
            return text, None
        sender = None if _AGENT.search(text) else self._service
        return text, Envelope(sender=sender, extra={"service": self._service})


def _find_service(resource: bytes) -> str | None:
    """The name of the service of a resource; None where it has none, or the SDK's word for one that nobody named."""
    try:
        attributes = json.loads(resource).get("attributes")
    except (ValueError, RecursionError):
        return None
    for each in attributes if isinstance(attributes, list) else ():
        if isinstance(each, dict) and each.get("key") == "service.name" and isinstance(each.get("value"), dict):
            name = each["value"].get("stringValue")
            return name if isinstance(name, str) and name and not name.startswith("unknown_service") else None
    return None
