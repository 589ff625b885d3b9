"""Short logs as the rules show them: who said which wire, a minute apart."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

# What stands below a message of agent-lingua.
FOOT: Final = "\n--👽lingua/0.4@agent-lingua"
_START: Final = datetime(2026, 11, 16, 9, tzinfo=UTC)


def say(*lines: tuple[str, str] | tuple[str, str, float]) -> str:
    """A log of wires in envelopes: (sender, wire), a minute apart, or (sender, wire, minutes since the start)."""
    rows = []
    for number, (sender, wire, *minutes) in enumerate(lines):
        at = _START + timedelta(minutes=minutes[0] if minutes else number)
        rows.append({"raw": wire, "from": sender, "conversation": "c", "at": at.isoformat()})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def clowl(mid: str, act: str, sender: str, receiver: str, *, minute: float = 0, pid: str = "", **data: Any) -> str:
    """A line of CLowl 0.2 about the task "x"."""
    message: dict[str, Any] = {
        "clowl": "0.2",
        "mid": mid,
        "ts": int(_START.timestamp() + 60 * minute),
        "p": act,
        "from": sender,
        "to": receiver,
        "cid": "c",
    }
    if pid:
        message["pid"] = pid
    message["body"] = {"t": "x", "d": data}
    return json.dumps(message, ensure_ascii=False) + "\n"


def pack(content: bytes | dict[str, Any]) -> str:
    """A payload of agent-lingua as it is packed: Base64, of JSON where it is an object."""
    return base64.b64encode(json.dumps(content).encode() if isinstance(content, dict) else content).decode()
