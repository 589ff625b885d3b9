"""A JSON array, element by element, and exports of OpenTelemetry (`{"resourceSpans": [...]}`, or logs alike), span by
span: each a record of its exact bytes; nothing but the element at hand is held.

White space, commas, `//` comments and the brackets of the array are scaffold, and so is a comma too many. An object may
hold the array as `messages`; what else is in that object is scaffold too, and so is what stands around spans. Of a
resource the name of its service becomes the envelope of the spans after it, which is where exporters write it; an agent
that a span names is not contradicted by that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from .._record import Envelope
from .blocks import Brackets
from .envelopes import read_object, read_string
from .lines import explain_bytes
from .tape import Problem, Tape

_BETWEEN = re.compile(rb"[\s,]*+")
_BARE_END = re.compile(rb"[,\]\n]")
_CLOSE, _SLASH, _QUOTE = b']/"'
_OPENING = frozenset(b"{[")


class ArrayForm:
    """Frames the elements of one array. The cursor is at `[` when it begins, or at the `{` of the object around it.

    It is in one phase at a time: `enter` (some bytes to the first element), `between` elements, in a `comment`, in
    an `element`, in the `tail` of the object around the array, or `done`.

    Args:
        state: what `to_state` gave.
        enter: how many bytes from the cursor lie before the first element.
        is_wrapped: whether the array stands in an object.
    """

    name = "array"

    def __init__(self, state: dict[str, Any] | None = None, *, enter: int = 0, is_wrapped: bool = False) -> None:
        fresh: dict[str, Any] = {
            "phase": "enter",
            "enter": enter,
            "is_wrapped": is_wrapped,
            "is_bare": False,
            "brackets": {},
        }
        state = state or fresh
        self._phase: str = state["phase"]
        self._enter: int = state["enter"]
        self._is_wrapped: bool = state["is_wrapped"]
        # The way through the element or the tail; unused in an element that is neither string, object nor array.
        self._brackets = Brackets(**state["brackets"])
        self._is_bare: bool = state["is_bare"]
        self._read: dict[str, Callable[[Tape, bool], bool]] = {
            "enter": self._read_enter,
            "between": self._read_between,
            "comment": self._read_comment,
            "element": self._read_element,
            "tail": self._read_tail,
        }

    def to_state(self, *, is_in_long: bool) -> dict[str, Any]:
        """What must be known to go on at the cursor. An element is read again from its start, but a long one."""
        is_again = self._phase == "element" and not is_in_long
        return {
            "phase": "between" if is_again else self._phase,
            "enter": self._enter,
            "is_wrapped": self._is_wrapped,
            "is_bare": self._is_bare,
            "brackets": self._brackets.to_state(),
        }

    def run(self, tape: Tape, *, is_last: bool) -> bool:
        """Read what can be read; True where the array, and the object around it, came to its end."""
        while self._phase != "done" and tape.unread:
            if not self._read[self._phase](tape, is_last):
                break
        if is_last and self._phase != "done":
            tape.ending = Problem(code="cut", reason="the JSON array is not closed", offset=tape.position)
        return self._phase == "done"

    def _read_enter(self, tape: Tape, is_last: bool) -> bool:
        count = min(self._enter, tape.unread)
        self._enter -= count
        tape.skip_to(tape.at + count)
        if not self._enter:
            self._phase = "between"
        return True

    def _read_between(self, tape: Tape, is_last: bool) -> bool:
        buffer = tape.buffer
        tape.skip_to(_BETWEEN.match(buffer, tape.at).end())  # type: ignore[union-attr]  # it matches nothing, too
        if not tape.unread:
            return False
        byte = buffer[tape.at]
        if byte == _CLOSE:
            tape.skip_to(tape.at + 1)
            self._phase = "tail" if self._is_wrapped else "done"
            self._brackets = Brackets(1)
            return True
        if byte == _SLASH:
            if tape.unread == 1 and not is_last:
                return False
            if buffer.startswith(b"//", tape.at):
                self._phase = "comment"
                return True
        self._phase = "element"
        self._is_bare = byte not in _OPENING and byte != _QUOTE
        self._brackets = Brackets(in_string=byte == _QUOTE)
        tape.scanned = tape.at + (byte == _QUOTE)
        return True

    def _read_comment(self, tape: Tape, is_last: bool) -> bool:
        end = tape.buffer.find(b"\n", tape.at)
        tape.skip_to(len(tape.buffer) if end < 0 else end)
        if end >= 0:
            self._phase = "between"
        return True

    def _read_tail(self, tape: Tape, is_last: bool) -> bool:
        end, is_closed = self._brackets.scan(tape.buffer, tape.at)
        # A backslash at the end of what was fed is looked at again, together with what it escapes.
        tape.skip_to(len(tape.buffer) if is_last and not is_closed else end)
        if is_closed:
            self._phase = "done"
        return is_closed

    def _read_element(self, tape: Tape, is_last: bool) -> bool:
        buffer, start = tape.buffer, max(tape.at, tape.scanned)
        if self._is_bare:
            found = _BARE_END.search(buffer, start)
            end, is_closed = (found.start(), True) if found else (len(buffer), False)
        else:
            end, is_closed = self._brackets.scan(buffer, start)
        tape.scanned = end
        size = (end if is_closed else len(buffer)) - tape.at
        if tape.is_in_long or size > tape.options.max_record_bytes:
            tape.take_long(end if is_closed else len(buffer), is_end=is_closed or is_last)
        elif is_closed:
            self._take(tape, end)
        elif is_last:
            reason = "the JSON array breaks off within this element"
            tape.take_to(len(buffer), problem=Problem(code="cut", reason=reason, offset=tape.offset + len(buffer)))
        else:
            return False
        if not is_closed:
            return False
        tape.scanned = 0
        self._phase = "between"
        return True

    def _take(self, tape: Tape, end: int) -> None:
        """Read up to the index `end` as an element."""
        raw = bytes(tape.buffer[tape.at : end])
        kept = raw.rstrip()
        try:
            text = kept.decode()
        except UnicodeDecodeError as error:
            tape.take_to(tape.at + len(kept), problem=explain_bytes(error, tape.position))
            return
        wire, envelope = self._read_text(text, tape.options.fields)
        tape.take_to(tape.at + len(kept), wire, envelope)

    def _read_text(self, text: str, fields: Mapping[str, str]) -> tuple[str, Envelope | None]:
        """The wire and the envelope of an element."""
        if text[:1] == "{":
            return read_object(text, fields)
        string = read_string(text) if text[:1] == '"' else None
        return text if string is None else string, None


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

_BETWEEN_SPANS: Final = re.compile(rb"[\s,:]*+")

_BARE: Final = re.compile(rb"[^\s,{}\[\]\"]++")

_OPEN, _OPEN_LIST = b"{["

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
        tape.skip_to(_BETWEEN_SPANS.match(tape.buffer, tape.at).end())  # type: ignore[union-attr]  # it matches nothing, too
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
        return self._pass_over(tape)

    def _read_member(self, tape: Tape, is_last: bool) -> bool:
        """A key with the beginning of its value."""
        found = _KEY.match(tape.buffer, tape.at)
        if found is None:
            if not is_last and tape.unread < MAX_KEY_BYTES:
                return False
            return self._pass_over(tape)
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

    def _pass_over(self, tape: Tape) -> bool:
        """Pass over what stands where an export has nothing of its kind: no record tells of it."""
        reason = "the export holds something that is no resource, no scope and no span or record of a log"
        tape.ending = tape.ending or Problem(code="passed-over", reason=reason, offset=tape.position)
        return self._pass_value(tape, tape.at)

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
