"""The keys of conversations and ids: digests, so that names of any length can be looked up."""

from __future__ import annotations

from dialects import Message
from inspector.intake.identity import digest_parts, digest_texts


def key_of_id(native_id: str) -> bytes:
    """The look-up key of a message id within its channel; 32 bytes."""
    return digest_texts("message", native_id)


def key_of_conversation(message: Message, *, source: bytes, is_from_file: bool) -> tuple[bytes, str]:
    """The key of a message's conversation within its channel, and its id as said ("" where none is).

    Where neither wire nor envelope names one, a file is one conversation by the digest of its first record, and what
    was posted belongs to the channel; either is split by the parties where a message names both.

    Args:
        message: a message as read, its envelope applied.
        source: the digest that names the source of the record's smallest order key.
        is_from_file: whether that source is a file.
    """
    if message.conversation_id:
        return digest_texts("conversation", message.conversation_id), message.conversation_id
    place = digest_parts(b"file", source) if is_from_file else digest_parts(b"posts")
    parties = sorted({message.sender, *message.receivers}) if message.sender and message.receivers else []
    return digest_parts(place, digest_texts(*parties) if parties else b""), ""
