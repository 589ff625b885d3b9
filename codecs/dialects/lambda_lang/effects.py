"""What a statement's settings do to its message: definitions, ids, times, chunks, references and claims."""

from __future__ import annotations

from typing import Any

from .._record import Definition, Note, Reference, Security
from .._time import instant_of_seconds, instant_of_text
from .form_notes import LONG_ID
from .notes import BAD_CHUNK, BROKEN_HEADER, NOT_FETCHED, NOT_VERIFIED
from .protocol import HANDSHAKES, TRUST
from .settings import Setting
from .statements import Part

# No release names a limit; a longer id is more likely a mistake than a name.
LONGEST_ID = 256


def apply_settings(
    wire: str,
    part: Part,
    settings: tuple[Setting, ...],
    given: dict[str, Any],
    attributes: dict[str, Any],
    notes: list[Note],
) -> None:
    """Put what a statement's settings establish into the names given, the attributes and the notes."""
    defines: list[Definition] = []
    claims: list[str] = []
    is_encrypted = part.form == "sealed"
    if given.get("native_act") != "data":
        blocks = [wire[item.start : item.end] for item in part.items if item.kind == "block"]
        if blocks:
            attributes["context"] = blocks
    else:
        settings = tuple(setting for setting in settings if setting.kind not in ("other", "members"))
    for setting in settings:
        span = (0, setting.start, setting.end)
        kind, value = setting.kind, setting.value
        if kind in _DEFINED:
            name = setting.name if kind in ("def", "group", "other", "ctx") else "active"
            defines.append(Definition(kind=_DEFINED[kind], name=name or "active", value=value))
        elif kind == "version" and isinstance(value, str):
            attributes["version"] = value
        elif kind == "broken-header":
            attributes.setdefault("broken_headers", []).append(value)
            text = f"{value} opens as a header and is none: it sets no version, no id and no domain"
            notes.append(BROKEN_HEADER.note(text, span))
        elif kind == "handshake":
            _read_handshake(part, setting, given)
        elif kind == "id" and isinstance(value, str):
            given["message_id"] = value
            if len(value) > LONGEST_ID:
                notes.append(LONG_ID.note(f"the message id has {len(value):,} characters: it is kept whole", span))
        elif kind == "time":
            given["sent_at_raw"] = setting.raw
            given["sent_at"] = instant_of_text(setting.raw) or _instant(setting.raw)
        elif kind == "chunk":
            message, number, count = value
            attributes["chunk"] = {"of": message, "number": number, "count": count}
            given["correlation_id"], given["object_id"] = message, f"#{number}"
            if not 1 <= number <= count:
                notes.append(BAD_CHUNK.note(f"chunk {number} of {count}", span))
        elif kind in ("vocabulary", "reference"):
            given["references"] = (*given.get("references", ()), Reference(ref=str(value)))
            notes.append(NOT_FETCHED.note(f"{value} is shown and never fetched", span))
        elif kind == "inline":
            attributes["domain"] = value
        elif kind == "enc":
            is_encrypted = True
            attributes["cipher"] = value
        elif kind in ("auth", "signature", "trust", "trust-level"):
            claims.append(_say_claim(setting))
            notes.append(NOT_VERIFIED.note(f"{setting.raw} is a claim: nothing here verifies it", span))
            if kind == "trust":
                attributes["trust"] = value
    if defines:
        given["defines"] = tuple(defines)
    if claims or is_encrypted:
        given["security"] = Security(encrypted=is_encrypted, claims=tuple(claims))
    if given.get("sent_at") is None:
        given.pop("sent_at", None)


_DEFINED = {
    "def": "def",
    "ns": "ns",
    "topic": "topic",
    "group": "group",
    "domain": "domain",
    "ctx": "context",
    "other": "setting",
}


def _say_claim(setting: Setting) -> str:
    if setting.kind == "trust":
        return TRUST[setting.value][0]
    if setting.kind == "signature":
        return f"signature {setting.value[0]}:{setting.value[1]}"
    if setting.kind == "auth":
        return f"authentication {setting.raw}"
    return f"trust {setting.raw}"


def _read_handshake(part: Part, setting: Setting, given: dict[str, Any]) -> None:
    """The statement after `#h` is the handshake's content, its type symbol included."""
    act = HANDSHAKES[setting.name]
    content = given.get("content")
    given |= {"performative": act.performative, "native_act": setting.name}
    given.pop("modifiers", None)
    if part.symbol and content is not None:
        given["content"] = f"{part.symbol}{content}"
    elif content is None:
        given.pop("content", None)


def _instant(raw: str) -> str | None:
    try:
        return instant_of_seconds(float(raw)) if len(raw) < 20 else None
    except ValueError:
        return None
