"""Records written as CLowl: the version they came in, or v0.2 for a record of another dialect.

The canonical spelling is one compact object a message and one message a line, keys in the order of the specification's
examples. What a wire cannot hold is found by reading it back: the losses are exactly the names that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from .._errors import EncodeError
from .._json import write
from .._record import Encoded, Loss, Message
from .columns import HASH_PREFIX, PROFILE_NAMES
from .reading import read
from .tables import ACTS, CODE_OF

Object = dict[str, Any]
# Names that telling or placing gives; a wire does not carry them.
_NOT_CARRIED = frozenset({"part", "english", "also", "gloss", "notes", "reference_line", "parent"})
_REASONS = {
    "security": "a token is never kept in the record, so it cannot be written",
    "attributes": "v0.2 has no key for it",
    "content": "the details of a message are an object; a text is written as `message`",
    "sent_at": "CLowl counts whole seconds",
    "sent_at_raw": "CLowl writes time as whole seconds",
    "native_act": "CLowl has its own word for the act",
    "performative": "CLowl's act is a wider one",
    "receivers": "v0.2 cannot write a message to nobody",
}
_NOT_HELD = "CLowl has no field for it"
_ADDED = "the record has none, and every CLowl message has one"


def encode(messages: Sequence[Message]) -> Encoded:
    """Write messages as CLowl, one a line.

    Raises:
        EncodeError: for a message whose act CLowl does not have, or one that could not be read.
    """
    if not messages:
        raise EncodeError("clowl", "there is no message to write")
    # Text is written as text beside a message alone; by itself it becomes the details of an inform.
    has_message = not all(_is_text(message) for message in messages)
    wire = "\n".join([_write_message(message, has_message=has_message) for message in messages])
    return Encoded(wire=wire, losses=tuple(_find_losses(messages, wire)))


def _find_losses(messages: Sequence[Message], wire: str) -> Iterator[Loss]:
    again = read(wire).messages
    if len(again) != len(messages):
        for message in messages:
            if _is_text(message):
                yield Loss(name="content", part=message.part, reason="the text beside it reads as one with others")
        again = tuple(read(_write_message(message)).messages[0] for message in messages)
    for message, other in zip(messages, again, strict=True):
        if _is_text(message) and other.performative is None:  # alone, a text is no message of CLowl's
            continue
        for name in Message._order:
            if name not in _NOT_CARRIED and getattr(message, name) != getattr(other, name):
                reason = _REASONS.get(name, _NOT_HELD) if getattr(message, name) else _ADDED
                yield Loss(name=name, part=message.part, reason=reason)


def _is_own(message: Message) -> bool:
    attributes = message.attributes
    return "clowl" in attributes or "cl" in attributes or "profile" in attributes or "extra" in attributes


def _is_text(message: Message) -> bool:
    """Whether a part is the text beside a message, or one that could not be read."""
    act = message.performative
    return isinstance(message.content, str) and message.native_act is None and act in ("inform", "unknown")


def _write_message(message: Message, *, has_message: bool = True) -> str:
    if message.performative is None:
        raise EncodeError("clowl", "an unreadable message has no act to write", message.part)
    if has_message and _is_text(message) and not _is_own(message) and message.sender is None:
        return str(message.content)
    data = _ShapeOf(message).shape()
    comment = message.attributes.get("comment")
    before = "".join(f"// {line}\n" for line in comment.split("\n")) if isinstance(comment, str) else ""
    return before + write(data)


class _ShapeOf:
    """The object that a message is written as."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.attributes = message.attributes
        self.is_own = _is_own(message)

    def shape(self) -> Object:
        profile = self.attributes.get("profile")
        if profile == PROFILE_NAMES["semantic"]:
            data = self._shape_semantic("")
        elif profile == PROFILE_NAMES["coordination"]:
            data = self._shape_coordination()
        else:
            data = self._shape_plain()
        return self._add_extra(data)

    def _put(self, data: Object, key: str, value: Any, base: str = "") -> None:
        """The key with what the record keeps of it: a value that fits no column, or else the column."""
        kept = base + key
        if kept in self.attributes:
            data[key] = self.attributes[kept]
        elif value is not None:
            data[key] = value

    def _act(self) -> str | None:
        message = self.message
        act = ACTS.get(message.native_act or "")
        if act is not None and act.performative == message.performative:
            return act.code
        if message.performative == "unknown":
            return message.native_act
        code = CODE_OF.get(message.performative or "")
        if code is None:
            raise EncodeError("clowl", f"CLowl has no act for {message.performative}", message.part)
        return code

    def _time(self) -> int | None:
        message = self.message
        if message.sent_at_raw is not None and message.sent_at_raw.lstrip("-").isdecimal():
            return int(message.sent_at_raw)
        if message.sent_at is None or self.is_own:  # the time of a message that named none is the log's
            return None
        moment = datetime.fromisoformat(message.sent_at)
        return int(moment.astimezone(UTC).timestamp())

    def _receivers(self) -> str | list[str] | None:
        message = self.message
        if message.broadcast:
            return ["*", *message.receivers] if message.receivers else "*"
        return list(message.receivers) if len(message.receivers) > 1 else next(iter(message.receivers), None)

    def _shape_plain(self) -> Object:
        message, attributes = self.message, self.attributes
        data: Object = {}
        if not self.is_own:
            data["clowl"] = "0.2"
        for key in ("clowl", "cl"):
            if attributes.get(key) is not None:
                data[key] = attributes[key]
        self._put(data, "mid", message.message_id)
        self._put(data, "ts", self._time())
        self._put(data, "tid", message.trace_id)
        self._put(data, "pid", message.parent_id)
        self._put(data, "p", self._act())
        self._put(data, "from", message.sender)
        self._put(data, "to", self._receivers())
        self._put(data, "cid", message.conversation_id)
        self._put(data, "body", self._shape_body())
        self._put(data, "ctx", self._shape_context("cl" in attributes))
        for key in ("auth", "det"):
            self._put(data, key, None)
        return data

    def _shape_body(self) -> Object | None:
        body: Object = {}
        self._put(body, "t", self.message.topic, "body.")
        self._put(body, "d", self._details(), "body.")
        has_extra = any(path.startswith("$.body.") for path in self.attributes.get("extra", {}))
        return body if body or has_extra or not self.is_own else None

    def _details(self) -> Any:
        message = self.message
        if self.is_own:
            return message.content
        content = message.content
        details: Object = dict(content) if isinstance(content, dict) else {}
        if content is not None and not isinstance(content, dict):
            details["message" if isinstance(content, str) else "content"] = content
        lifted: Object = {"status": message.status, "delegation_mode": message.delegation}
        if message.performative == "failure" and message.error is not None:
            error = message.error
            lifted |= {"code": error.code, "msg": error.message, "retry": error.retryable, "cascade_err": error.cause}
        if message.performative == "progress":
            lifted["pct"] = message.progress
        if message.performative == "advertise" and message.capabilities:
            lifted["supports"] = list(message.capabilities)
        for key, value in lifted.items():
            if value is not None:
                details.setdefault(key, value)
        return details or (None if content is None else content)

    def _shape_context(self, is_text: bool) -> Any:
        reference = next(iter(self.message.references), None)
        if reference is None:
            return None
        if is_text:
            return HASH_PREFIX + reference.hash if reference.hash is not None else reference.ref
        context: Object = {}
        for key in ("ref", "inline", "hash"):
            self._put(context, key, getattr(reference, key), "ctx.")
            context.setdefault(key, None)
        return context

    def _shape_semantic(self, base: str) -> Object:
        message = self.message
        data: Object = {}
        self._put(data, "p", self._act(), base)
        self._put(data, "from", message.sender, base)
        self._put(data, "to", self._receivers(), base)
        self._put(data, "task", message.topic, base)
        self._put(data, "data", message.content, base)
        self._put(data, "ctx", self._shape_context(is_text=True), base)
        if not base:
            others = {"mid": message.message_id, "ts": self._time(), "tid": message.trace_id}
            others |= {"pid": message.parent_id, "cid": message.conversation_id}
            for key, value in others.items():
                self._put(data, key, value)
            for key in ("clowl", "cl", "auth", "det"):
                self._put(data, key, None)
        return data

    def _shape_coordination(self) -> Object:
        message = self.message
        data: Object = {}
        self._put(data, "clowl", None)
        self._put(data, "mid", message.message_id)
        self._put(data, "task_id", message.task_id)
        self._put(data, "state", message.status)
        self._put(data, "ts", self._time())
        trace: Object = {}
        self._put(trace, "trace_id", message.trace_id, "trace.")
        self._put(trace, "parent_task_id", message.parent_task_id, "trace.")
        self._put(trace, "parent_mid", message.parent_id, "trace.")
        self._put(data, "trace", trace or None)
        routing: Object = {}
        self._put(routing, "from", message.sender, "routing.")
        self._put(routing, "to", None if message.broadcast else self._receivers(), "routing.")
        self._put(routing, "broadcast", message.broadcast, "routing.")
        self._put(data, "routing", routing)
        auth: Object = {}
        for key in ("issuer", "scopes"):
            self._put(auth, key, None, "auth.")
        self._put(data, "auth", auth or None)
        self._put(data, "semantic", self._shape_semantic("semantic."))
        return data

    def _add_extra(self, data: Object) -> Object:
        """The keys that no version has, each in the object it was found in."""
        for written, value in self.attributes.get("extra", {}).items():
            holder, dot, key = written[2:].partition(".")
            if dot and holder in _HOLDERS:
                inner = data.setdefault(holder, {})
                if isinstance(inner, dict):
                    inner[key] = value
            else:
                data[written[2:]] = value
        return data


# Objects of the wire whose unknown keys are kept; a dot in a path leads into one of these alone.
_HOLDERS = frozenset({"body", "ctx", "trace", "routing", "auth", "semantic"})
