"""The sample logs: taken in through the API like anybody's, followed until every conversation is settled, and shown."""

import hashlib
import json
import re
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .door import Door
from .errors import EmbeddedError
from .processes import Supervisor
from .state import PROJECT

FOLDER = PROJECT / "samples"
CONTENT_TYPES = {
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".json": "application/json",
    ".csv": "text/csv",
    ".txt": "text/plain",
    ".log": "text/plain",
}
SHOWN_MESSAGES = 14
WIDTH = 108
MAX_SHOWN = 320
MAX_DEPTH = 6  # Deeper replies are not indented further: the lines would have no room left.
PATIENCE_S = 300.0
PAUSE_S = 0.25
QUIET_S = 1.0


# How far the work on some deliveries has come: the counts of their receipts, with `conversations`, those `settled`, the
# `messages` in them, and whether all `is_read`.
Progress = dict[str, int]


class SamplesError(EmbeddedError):
    """The samples did not arrive as they should."""


def list_files(folder: Path = FOLDER) -> list[Path]:
    """The sample logs in their order: each name begins with its number, other files are no logs."""
    return sorted(path for path in folder.glob("[0-9]*") if path.suffix in CONTENT_TYPES)


def load(door: Door, files: Iterable[Path], say: Callable[[str], None]) -> dict[str, str]:
    """Post each file and answer the delivery it became; a file that was posted before in this way adds nothing."""
    deliveries = {}
    for path in files:
        body = path.read_bytes()
        digest = hashlib.sha256(body).hexdigest()
        receipt = door.post_log(body, content_type=CONTENT_TYPES[path.suffix], idempotency_key=f"sample-{digest}")
        say(f"  {path.name:<38} {receipt['received']:>4} records received")
        deliveries[path.name] = receipt["delivery"]
    return deliveries


def follow(door: Door, deliveries: Iterable[str], supervisor: Supervisor, show: Callable[[Progress], None]) -> Progress:
    """Show how the work goes on until everything is read and settled.

    Raises:
        SamplesError: if it is not done after some minutes.
    """
    wanted = list(deliveries)
    deadline = time.monotonic() + PATIENCE_S
    earlier, since = None, time.monotonic()
    while True:
        progress = measure(door, wanted)
        show(progress)
        if progress != earlier:
            earlier, since = progress, time.monotonic()
        # A conversation is not listed before its first settling, so a moment without any change has to pass as well.
        is_settled = progress["settled"] == progress["conversations"] and progress["messages"] >= progress["read"]
        if progress["is_read"] and is_settled and time.monotonic() - since > QUIET_S:
            return progress
        if time.monotonic() > deadline:
            raise SamplesError(f"The samples are not processed after {PATIENCE_S:.0f} seconds: see the worker's log.")
        supervisor.wait_until(lambda: False, seconds=PAUSE_S)


def measure(door: Door, deliveries: Iterable[str]) -> Progress:
    """How far the work on these deliveries has come, as the API tells it."""
    told = [door.get(f"/api/v1/deliveries/{pk}") for pk in deliveries]
    for delivery in told:
        if delivery["failure"]:
            raise SamplesError(f"A delivery failed: {delivery['failure']}")
    conversations = list(door.list_all("/api/v1/conversations"))
    names = ("received", "stored", "duplicate", "quarantined", "read")
    return {name: sum(one[name] for one in told) for name in names} | {
        "conversations": len(conversations),
        "settled": sum(1 for conversation in conversations if conversation["is_settled"]),
        "messages": sum(conversation["message_count"] for conversation in conversations),
        "is_read": all(one["is_read"] for one in told),
    }


def compare_counts(door: Door, deliveries: Mapping[str, str], folder: Path = FOLDER) -> list[str]:
    """What differs between the receipts and the table of `samples/README.md`: one sentence for each difference.

    The table is written by hand, and the tests count the files by rules of their own to compare both.
    """
    rows = re.findall(r"^\| `([^`]+)` \|[^|]*\| *(\d+) \|", (folder / "README.md").read_text(), re.MULTILINE)
    known = {name: int(received) for name, received in rows}
    differences = []
    for name, pk in deliveries.items():
        receipt = door.get(f"/api/v1/deliveries/{pk}")
        if receipt["received"] != known.get(name):
            differences.append(
                f"{name} holds {known.get(name)} records by samples/README.md, and {receipt['received']} were received"
            )
        if receipt["received"] != receipt["stored"] + receipt["duplicate"] + receipt["quarantined"]:
            differences.append(f"{name}: received is not stored + duplicate + quarantined: {json.dumps(receipt)}")
    return differences


def describe_conversation(door: Door) -> list[str]:
    """The most telling conversation, in English: the one with most dialects, then most messages."""
    conversations = list(door.list_all("/api/v1/conversations"))
    if not conversations:
        return []
    chosen = max(conversations, key=lambda one: (len(one["dialects"]), one["message_count"], str(one["id"])))
    tree = door.get(f"/api/v1/conversations/{chosen['id']}/tree?limit={SHOWN_MESSAGES}")
    title = chosen["subject"] or chosen["native_id"] or "a conversation"
    lines = [make_printable(f"{title}  ·  in {', '.join(chosen['dialects'])}  ·  {chosen['state']}"), ""]
    for row in tree["rows"]:
        message = row["message"]
        clock = str(message["at"])[11:19] if message else ""
        english = message["english"] if message else "(a message that others answer to and that was not received)"
        indent = " " * (10 + 2 * min(row["depth"], MAX_DEPTH))
        first = f"{clock:<10}{indent[10:]}"
        lines += textwrap.wrap(make_printable(english), WIDTH, initial_indent=first, subsequent_indent=indent + "  ")
    left = chosen["message_count"] - SHOWN_MESSAGES
    if left > 0:
        lines.append(f"          … and {left} more")
    return lines


def describe_totals(door: Door) -> str:
    """What is there now, in one line."""
    conversations = list(door.list_all("/api/v1/conversations"))
    agents: set[str] = set()
    dialects: set[str] = set()
    for conversation in conversations:
        agents.update(_name(agent) for agent in conversation["agents"])
        dialects.update(conversation["dialects"])
    messages = sum(conversation["message_count"] for conversation in conversations)
    groups = f"{len(conversations)} conversations of {len(agents)} agents, in {len(dialects)} dialects"
    return f"{messages} messages in {groups}"


def make_printable(text: str) -> str:
    """Text from outside for the terminal: what would steer the terminal is shown as U+FFFD, very long text is cut."""
    visible = "".join(char if unicodedata.category(char)[0] != "C" else "\ufffd" for char in text)
    return visible if len(visible) <= MAX_SHOWN else visible[: MAX_SHOWN - 1] + "…"


def _name(agent: Any) -> str:
    return str(agent["name"]) if isinstance(agent, dict) else str(agent)
