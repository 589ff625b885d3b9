"""Blocks of content in words: texts are carried, media are named by kind and size, values are as JSON writes them."""

from __future__ import annotations

from typing import Any

from .._draft import Draft
from .._english import quote, say_name
from .._jsonrpc import say_scalar, say_values
from .._positions import Path
from .tables import MEDIA, OTHER_SHAPE, TEXTS


def read_text(value: Any) -> str | None:
    """A text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def find_value(value: Any, *keys: str) -> Any:
    """What stands below these keys; None where one of them leads nowhere."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def say_value(draft: Draft, value: Any, path: Path) -> None:
    """A value: texts and what has members are carried, the rest is as JSON writes it."""
    if isinstance(value, (str, dict, list)):
        draft.carry(path)
    else:
        draft.say(say_scalar(value), path)


def say_content(draft: Draft, content: Any, path: Path) -> None:
    """A content of a message or a result: its texts are carried, media are named by kind and size."""
    if isinstance(content, list) and content:
        for index, block in enumerate(content):
            draft.say(" and " if index else "")
            say_block(draft, block, (*path, index))
    elif content in (None, "", [], {}):
        draft.say("nothing", path)
    else:
        say_block(draft, content, path)


def say_block(draft: Draft, block: Any, path: Path) -> None:
    """One block of a content."""
    kind = find_value(block, "type")
    key = TEXTS.get(kind) if isinstance(kind, str) else None
    if key and isinstance(block.get(key), str):
        draft.say("a refusal, " if kind == "refusal" else "").carry((*path, key))
        say_values(draft, block[key], (*path, key))
    elif isinstance(kind, str) and kind in MEDIA:
        draft.say(_name_media(block, MEDIA[kind]), path)
    elif isinstance(kind, str):
        draft.say(f"content of the kind {say_name(kind)}: ").carry(path)
        draft.note(OTHER_SHAPE, "this kind of content is not known here: shown as it stands", path)
    else:
        say_value(draft, block, path)
        say_values(draft, block, path)


def _name_media(block: dict[str, Any], words: str) -> str:
    """What is no text, by its kind, its type and its size in bytes, or by its name or address; never its data."""
    places = (
        block,
        block.get("source"),
        *(block.get(key) for key in ("image_url", "input_audio", "file", "video_url")),
    )
    about: list[str] = []
    for held in places:
        held = {"url": held} if isinstance(held, str) else held if isinstance(held, dict) else {}
        for key in ("media_type", "format", "filename", "title", "file_id", "url", "image_url", "data", "file_data"):
            value = read_text(held.get(key))
            if value is None:
                continue
            if value.startswith("data:"):
                media_type, _, value = value[5:].partition(",")
                about.append(say_name(media_type.partition(";")[0]))
                key = "data"
            if key in ("data", "file_data"):
                size = len(value) * 3 // 4 - len(value[-2:]) + len(value[-2:].rstrip("="))
                about.append(f"{size:,} bytes")
            else:
                about.append(quote(value) if key in ("url", "image_url") else say_name(value))
    return f"{words} ({', '.join(dict.fromkeys(about))})" if about else words
