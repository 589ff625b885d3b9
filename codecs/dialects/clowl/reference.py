"""The line that clowl 0.2.0 prints for a message, byte for byte, wherever that library neither invents nor fails.

It invents a time where `ts` is missing or zero, a mode where a delegation has none, and "authenticated" where a token
is merely carried; it joins the letters of a text it takes for a list. It fails on many wrong types. In those cases
the line here has the same form and says only what the wire says (spec: `CLowlMessage.to_human`, clowl 0.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from .._json import write
from .._record import Message
from .parts import Piece
from .tables import ACTS


class _NotToldError(Exception):
    """The reference would invent something here."""


# What the reference raises on values of a wrong type or out of range.
_FAILURES = (TypeError, ValueError, AttributeError, KeyError, OverflowError, OSError, _NotToldError)


def write_reference_line(message: Message, piece: Piece) -> str | None:
    """The reference's line for the object of a message; None for a part that is no object."""
    if piece.kind != "object":
        return None
    # The reference rounds a number that no float holds, or makes it infinite; here it keeps its digits.
    if piece.loaded is not None and piece.loaded.has_exact_numbers:
        return _write_honestly(message, piece)
    try:
        return _write(piece.data)
    except _FAILURES:
        return _write_honestly(message, piece)


def _write(data: Mapping[str, Any]) -> str:
    act, sender, receivers, _ = data["p"], data["from"], data["to"], data["cid"]
    body = data.get("body", {})
    topic, details = body.get("t", ""), body.get("d", {}) or {}
    instant = data.get("ts")
    if not instant or data.get("auth"):
        raise _NotToldError
    moment = datetime.fromtimestamp(instant, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    trace, parent = data.get("tid"), data.get("pid")
    to = "[" + ", ".join(receivers) + "]" if isinstance(receivers, list) else receivers
    shown = _NAMES.get(act, act)
    summary = _SUMMARIES.get(act, _summarise)(topic, details)
    context = _summarise_context(data["ctx"]) if data.get("ctx") else ""
    return (
        f"[{moment}] "
        + (f"[{trace}] " if trace else "")
        + f"{sender} → {to}: {shown} {summary}{context}"
        + (" [deterministic]" if data.get("det", False) else "")
        + (f" (re: {parent[:8]}…)" if parent else "")
    )


_NAMES = {code: act.name for code, act in ACTS.items()}


def _summarise(topic: Any, details: Any) -> Any:
    return f"{topic} — {json.dumps(details)}" if details else topic


def _summarise_failure(topic: Any, details: Any) -> str:
    tail = " — retryable" if details.get("retry") else ""
    return f"[{details.get('code', '?')}] {details.get('msg', 'unknown error')}{tail}"


def _summarise_capabilities(topic: Any, details: Any) -> str:
    supports = details.get("supports", [])
    if isinstance(supports, str) and len(supports) > 1:
        raise _NotToldError
    return f"CLowl v{details.get('clowl', '?')} | supports: {', '.join(supports)}"


def _summarise_delegation(topic: Any, details: Any) -> str:
    rest = {key: value for key, value in details.items() if key != "delegation_mode"}
    if "delegation_mode" not in details:
        raise _NotToldError
    return f"{topic} [{details['delegation_mode']}]" + (f" — {json.dumps(rest)}" if rest else "")


def _summarise_progress(topic: Any, details: Any) -> str:
    percent, remark = details.get("pct"), details.get("note", "")
    return f"{topic} — {remark}" if percent is None else f"{topic} — {percent}% {remark}".strip(" —")


def _summarise_acknowledgement(topic: Any, details: Any) -> str:
    eta = details.get("eta")
    return f"Acknowledged {topic}" + (f" — ETA {eta}" if eta else "")


_SUMMARIES: dict[Any, Callable[[Any, Any], Any]] = {
    "ERR": _summarise_failure,
    "CAPS": _summarise_capabilities,
    "DLGT": _summarise_delegation,
    "PROG": _summarise_progress,
    "ACK": _summarise_acknowledgement,
}


def _summarise_context(context: Any) -> str:
    ref, digest = context.get("ref"), context.get("hash")
    if not ref:
        return ""
    return f" | ctx: {ref}" + (f" (sha256: {digest[:12]}…)" if digest else "")


def _write_honestly(message: Message, piece: Piece) -> str:
    """The same form, from the columns: what is absent is said to be absent, what is odd is shown as it is."""
    if message.sent_at is not None and message.sent_at_raw is not None and "ts" in piece.data:
        moment = message.sent_at.replace("T", " ").replace("Z", " UTC")
    elif "ts" in piece.data:
        moment = f"ts {write(piece.data['ts'])}"
    else:
        moment = "no time"
    receivers = ", ".join(message.receivers)
    to = "*" if message.broadcast and not receivers else f"[{receivers}]" if len(message.receivers) > 1 else receivers
    act = message.native_act or "?"
    references = "".join(_cite(reference.ref, reference.hash) for reference in message.references)
    return (
        f"[{moment}] "
        + (f"[{message.trace_id}] " if message.trace_id else "")
        + f"{message.sender or '?'} → {to or '?'}: {_NAMES.get(act, act)} {_detail(message, act)}{references}"
        + (" [deterministic]" if message.attributes.get("det") is True else "")
        + (f" (re: {message.parent_id[:8]}…)" if message.parent_id else "")
        + (" [carries a token, unverified]" if message.security.claims else "")
    )


def _cite(ref: str | None, digest: str | None) -> str:
    sealed = f"sha256: {digest[:12]}…" if digest else ""
    if ref:
        return f" | ctx: {ref}" + (f" ({sealed})" if sealed else "")
    return f" | ctx: {sealed}" if sealed else ""


def _detail(message: Message, act: str) -> str:
    topic, details = message.topic or "?", message.content
    if not isinstance(details, dict):
        return topic if details is None else f"{topic} — {_dump(details)}"
    if act == "DLGT" and "delegation_mode" not in details:
        return f"{topic} [no delegation mode]" + (f" — {_dump(details)}" if details else "")
    if act == "CAPS" and not isinstance(details.get("supports", []), list):
        return f"CLowl v{details.get('clowl', '?')} | supports: {_dump(details['supports'])}"
    try:
        return str(_SUMMARIES.get(act, _summarise)(topic, details))
    except _FAILURES:
        return f"{topic} — {_dump(details)}"


def _dump(value: Any) -> str:
    return write(value, ", ", ": ")
