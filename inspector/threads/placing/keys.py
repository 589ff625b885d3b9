"""The keys of conversations and ids: digests, so that names of any length can be looked up."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dialects import Message, Reading
from inspector.intake.identity import digest_parts, digest_texts

_LONG_ID: Final = 200


def key_of_id(native_id: str) -> bytes:
    """The look-up key of a message id within its channel; 32 bytes."""
    return _find_key(native_id) if len(native_id) < _LONG_ID else digest_texts("message", native_id)


# An id is asked for several times with its message, and again with each that names it.
@lru_cache(maxsize=1024)
def _find_key(native_id: str) -> bytes:
    return digest_texts("message", native_id)


# What the key of a call begins with where a request bears it, and where the answer does.
ASKED, ANSWERED = b"?", b"!"


def key_of_call(message: Message, home: bytes) -> bytes | None:
    """By what a request that names no conversation, and an answer that is the first to name theirs, find each other:
    the correlation id of the request within `home`, the conversation of what names none; 33 bytes."""
    name, begin = (message.parent_id, ANSWERED) if message.conversation_id else (message.correlation_id, ASKED)
    return begin + digest_parts(home, key_of_id(name)) if name else None


# How far a trace id joins: what only the wire says stays within its channel; what the envelope says, or what is random
# by form, is one trace across channels (architecture, decision 10).
WIRE: Final = "wire"
ENVELOPE: Final = "envelope"
RANDOM: Final = "random"

_HEXADECIMAL: Final = "[0-9a-f]"
_RANDOM_FORMS: Final = re.compile(
    # A UUID, a trace id or a traceparent of W3C Trace Context (all zeros are none), and `t-` with 12 digits.
    rf"{_HEXADECIMAL}{{8}}-{_HEXADECIMAL}{{4}}-[1-8]{_HEXADECIMAL}{{3}}-[89ab]{_HEXADECIMAL}{{3}}-{_HEXADECIMAL}{{12}}"
    rf"|(?!0{{32}}){_HEXADECIMAL}{{32}}"
    rf"|{_HEXADECIMAL}{{2}}-(?!0{{32}}){_HEXADECIMAL}{{32}}-(?!0{{16}}){_HEXADECIMAL}{{16}}-{_HEXADECIMAL}{{2}}"
    rf"|t-{_HEXADECIMAL}{{12}}",
    re.IGNORECASE,
)


def key_of_trace(native_id: str) -> bytes:
    """The look-up key of a trace id, of whatever channel; 32 bytes."""
    return digest_texts("trace", native_id)


def find_trace_basis(message: Message, reading: Reading) -> str:
    """How far the trace id of a message joins: one of the three, empty where it has none."""
    if not message.trace_id:
        return ""
    if _RANDOM_FORMS.fullmatch(message.trace_id):
        return RANDOM
    said_outside = reading.envelope.trace if reading.envelope else None
    return ENVELOPE if "trace_id" in reading.from_envelope and said_outside == message.trace_id else WIRE


def key_of_conversation(message: Message, *, source: bytes, is_from_file: bool) -> tuple[bytes, str]:
    """The key of a message's conversation within its channel, and its id as said ("" where none is). Where neither wire
    nor envelope names one, a file is one conversation by `source`, the digest of its first record, and what was posted
    belongs to the channel; either is split by the parties where a message names both."""
    if message.conversation_id:
        return digest_texts("conversation", message.conversation_id), message.conversation_id
    place = digest_parts(b"file", source) if is_from_file else digest_parts(b"posts")
    parties = sorted({message.sender, *message.receivers}) if message.sender and message.receivers else []
    return digest_parts(place, digest_texts(*parties) if parties else b""), ""
