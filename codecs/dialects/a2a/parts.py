"""The parts of messages and artifacts in words: texts and data are carried, files named; ids and times in columns."""

from __future__ import annotations

from typing import Any

from .._draft import Draft
from .._english import join_words, quote, say_name
from .._jsonrpc import say_values
from .spots import Spot


def say_parts(draft: Draft, parts: Spot) -> None:
    """What a list of parts holds, in any generation's way of writing."""
    items = list(parts.items)
    if not items:
        draft.say("nothing", parts.path)
    for index, part in enumerate(items):
        if index:
            draft.say(" and ")
        _say_part(draft, part)


def _say_part(draft: Draft, part: Spot) -> None:
    held = part.at("text") if isinstance(part.at("text").value, str) else part.at("data")
    if held.value is not None:
        say_values(draft.carry(held.path), held.value, held.path)
    else:
        file = part.at("file") if part.at("file").members else part
        about = [text for text in (file.find("name", "filename"), file.find("mimeType", "mediaType")) if text]
        address = file.find("uri", "url")
        is_file = address or about or file.at("bytes").text or file.at("raw").text
        words = ", ".join(quote(text) for text in about) if about else "without a name"
        place = f", at the address {quote(address)}" if address else ""
        draft.say(f"a file ({words}{place})" if is_file else "a part of an unknown kind", part.path)


def read_content(parts: Spot) -> Any:
    """The text of a single part of text, else the parts as they are."""
    items = list(parts.items)
    text = items[0].at("text").value if len(items) == 1 else None
    return text if isinstance(text, str) else parts.value


def read_columns(spot: Spot) -> dict[str, Any]:
    """The ids that a message of A2A bears, and the tasks that it refers to."""
    refers = [item.text for item in spot.at("referenceTaskIds").items if item.text]
    return {
        "message_id": spot.find("messageId"),
        "conversation_id": spot.find("contextId", "sessionId"),
        "task_id": spot.find("taskId"),
        "content": read_content(spot.at("parts")),
        "attributes": {"referenceTaskIds": refers} if refers else {},
    }


def say_references(draft: Draft, spot: Spot) -> None:
    """The tasks that a message refers to."""
    names = [say_name(item.text) for item in spot.at("referenceTaskIds").items if item.text]
    if names:
        word = "task" if len(names) == 1 else "tasks"
        draft.say(f"; it refers to the {word} {join_words(names)}", spot.at("referenceTaskIds").path)
