"""Why a message is told as it is, and what it was told as before: the context behind it, the words that changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from inspector.threads.models import Message, Wording
from inspector.threads.rendering.dependencies import list_dependencies
from inspector.threads.rendering.wordings import list_wordings, read_words

from ..shown.told import name_dialect, name_dialect_of

# A longer sentence is shown whole, without the difference: to find it would take too long.
MAX_COMPARED_LENGTH: Final = 4000
MAX_SHOWN: Final = 10

_KINDS: Final = {
    "def": "Definition",
    "ns": "Namespace",
    "domain": "Domain",
    "topic": "Topic",
    "vocabulary": "Vocabulary",
    "session": "Session",
    "session-use": "Use of the session",
    "group": "Group",
    "context": "Context",
    "setting": "Setting",
    "floor": "Floor",
    "security": "Security offered",
    "handshake": "Handshake",
    "public-key": "Public key",
    "fingerprint": "Fingerprint",
    "nonce": "Nonce",
    "agent-name": "Name",
    "agent-number": "Number",
    "conversation-name": "Name of the conversation",
    "goal-name": "Name of the goal",
    "clowl-task": "State of the task",
    "clowl-latest-task": "Latest task between the two",
    "clowl-conversation": "State of the conversation",
}
_CAUSES: Final = {
    "late": "an earlier message arrived late",
    "withdrawal": "a delivery it depends on was withdrawn",
    "return": "a delivery it depends on is shown again",
    "decoder": "the decoder was changed",
    "dialect": "its conversation turned out to speak another dialect",
    "moved": "it, or a message it depends on, was moved",
}
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


def explain_english(message: Message, body: Mapping[str, Any]) -> dict[str, Any]:
    """The context behind a message's English: what was in force and asked for, vocabulary, and other readings."""
    record = body["record"]
    leanings = list_dependencies(message=message, body=body)
    others = [each for each in record.get("candidates") or () if each["dialect"] not in (message.read_in, "prose")]
    return {
        "leanings": [
            {
                "kind": _KINDS.get(entry.kind, entry.kind),
                "name": "" if entry.name == "active" else entry.name,
                "entry": entry,
            }
            for entry in leanings.entries
        ],
        "is_whole": leanings.is_whole,
        "dialect": name_dialect_of(message, record),
        "vocabulary": record.get("vocabulary") or "",
        "decoder": record.get("decoder") or "",
        "others": [
            {
                "dialect": name_dialect(each["dialect"]),
                "url": f"?as={each['dialect']}",
                "why": each.get("why") or "",
                "percent": round(each["score"] * 100),
            }
            for each in others
        ],
    }


def show_wordings(message: Message) -> dict[str, Any]:
    """The earlier wordings of a message, the latest first, each with what changed after it."""
    earlier = list_wordings(message=message)
    following = [*((each.english, each.also) for each in earlier[1:]), read_words(message.body)]
    lines = [_compare(each, english, also) for each, (english, also) in zip(earlier, following, strict=False)]
    return {"wordings": lines[::-1][:MAX_SHOWN], "more_wordings": max(0, len(lines) - MAX_SHOWN)}


def _compare(earlier: Wording, english: str, also: Sequence[str]) -> dict[str, Any]:
    return {
        "row": earlier,
        "why": _CAUSES.get(earlier.cause, earlier.cause),
        "pieces": find_difference(earlier.english, english),
        "also_gone": [text for text in earlier.also if text not in also],
        "also_new": [text for text in also if text not in earlier.also],
    }


def find_difference(before: str, after: str) -> list[tuple[str, str]]:
    """What two sentences share and what differs, word by word: pieces (`same`, `gone` or `new`, text), in order."""
    if max(len(before), len(after)) > MAX_COMPARED_LENGTH:
        return [("gone", before), ("new", after)]
    old, new = _WORD.findall(before), _WORD.findall(after)
    pieces: list[tuple[str, str]] = []
    for what, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            pieces.append(("same", "".join(old[start:end])))
            continue
        pieces += [("gone", "".join(old[start:end]))] if end > start else []
        pieces += [("new", "".join(new[new_start:new_end]))] if new_end > new_start else []
    return pieces
