"""The sample logs: taken in through the HTTP API like anybody's, followed until every conversation is resolved, and
shown.

`--once` proves the counts of the samples' README, and finds a fresh message by search and reads it in English.
"""

import hashlib
import http.client
import json
import re
import secrets
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from . import EmbeddedError
from .processes import Supervisor
from .state import PROJECT


@dataclass(frozen=True, kw_only=True)
class Door:
    """The API of one server with one key. The connection is direct: no proxy of the environment is asked."""

    host: str
    port: int
    token: str

    def post_log(self, body: bytes, *, content_type: str, idempotency_key: str) -> dict[str, Any]:
        """Send a log and answer its receipt.

        Raises:
            EmbeddedError: where the API answers otherwise than it promises.
        """
        return self._ask(
            "POST", "/api/v1/messages", body, {"Content-Type": content_type, "Idempotency-Key": idempotency_key}
        )

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """Read one resource; errors as of `post_log`."""
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path, None, {})

    def list_conversations(self) -> list[dict[str, Any]]:
        """All of them."""
        page = self.get("/api/v1/conversations", limit=200)
        found = list(page["results"])
        while page["next"]:
            page = self.get("/api/v1/conversations", limit=200, cursor=page["next"])
            found += page["results"]
        return found

    def is_open(self) -> bool:
        """Whether the server answers at all."""
        return self._answers("GET", "/api/v1/limits")

    def takes_messages(self) -> bool:
        """Whether the processes that take bodies in answer: here with what is wrong with an empty one."""
        return self._answers("POST", "/api/v1/messages")

    def _answers(self, method: str, path: str) -> bool:
        try:
            return self._send(method, path, b"", {})[0] < http.client.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        status, answer = self._send(method, path, body, headers)
        if status >= http.client.BAD_REQUEST:
            raise EmbeddedError(f"{method} {path} was answered with {status}: {answer[:500].decode(errors='replace')}")
        read = json.loads(answer)
        if not isinstance(read, dict):
            raise EmbeddedError(f"{method} {path} was answered with something else than an object")
        return read

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120.0)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **headers})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


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
PROOF_S = 60.0
# Of so long a body the front asks the processes behind it whether they take it, before it takes it in.
LONG_BYTES = 96 * 1024

# How far the work on some deliveries has come: the counts of their receipts, with `conversations`, those `settled`, the
# `messages` in them, and whether all `is_read`.
Progress = dict[str, int]


def list_files() -> list[Path]:
    """The sample logs in their order: each name begins with its number, other files are no logs."""
    return sorted(path for path in FOLDER.glob("[0-9]*") if path.suffix in CONTENT_TYPES)


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
    """Show how the work goes on until everything is read and resolved.

    Raises:
        EmbeddedError: if it is not done after some minutes.
    """
    wanted = list(deliveries)
    deadline = time.monotonic() + PATIENCE_S
    earlier, since = None, time.monotonic()
    while True:
        progress = measure(door, wanted)
        show(progress)
        if progress != earlier:
            earlier, since = progress, time.monotonic()
        # A conversation is not listed before it is first resolved, so a moment without any change has to pass as well.
        is_settled = progress["settled"] == progress["conversations"] and progress["messages"] >= progress["read"]
        if progress["is_read"] and is_settled and time.monotonic() - since > QUIET_S:
            return progress
        if time.monotonic() > deadline:
            raise EmbeddedError(f"The samples are not processed after {PATIENCE_S:.0f} seconds: see the worker's log.")
        supervisor.wait_until(lambda: False, seconds=PAUSE_S)


def measure(door: Door, deliveries: Iterable[str]) -> Progress:
    """How far the work on these deliveries has come, as the API tells it."""
    told = [door.get(f"/api/v1/deliveries/{pk}") for pk in deliveries]
    for delivery in told:
        if delivery["failure"]:
            raise EmbeddedError(f"A delivery failed: {delivery['failure']}")
    conversations = door.list_conversations()
    names = ("received", "stored", "duplicate", "quarantined", "read")
    return {name: sum(one[name] for one in told) for name in names} | {
        "conversations": len(conversations),
        "settled": sum(1 for conversation in conversations if conversation["is_settled"]),
        "messages": sum(conversation["message_count"] for conversation in conversations),
        "is_read": all(one["is_read"] for one in told),
    }


def compare_counts(door: Door, deliveries: Mapping[str, str]) -> list[str]:
    """What differs between the receipts and the table of `samples/README.md`: one sentence for each difference.

    The table is written by hand, and the tests count the files by rules of their own to compare both.
    """
    rows = re.findall(r"^\| `([^`]+)` \|[^|]*\| *(\d+) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
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
    conversations = door.list_conversations()
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
    conversations = door.list_conversations()
    agents = {agent for conversation in conversations for agent in conversation["agents"]}
    dialects = {dialect for conversation in conversations for dialect in conversation["dialects"]}
    messages = sum(conversation["message_count"] for conversation in conversations)
    groups = f"{len(conversations)} conversations of {len(agents)} agents, in {len(dialects)} dialects"
    return f"{messages} messages in {groups}"


def make_printable(text: str) -> str:
    """Text from outside for the terminal: what would steer the terminal is shown as U+FFFD, very long text is cut."""
    visible = "".join(char if unicodedata.category(char)[0] != "C" else "\ufffd" for char in text)
    return visible if len(visible) <= MAX_SHOWN else visible[: MAX_SHOWN - 1] + "…"


def prove(door: Door, deliveries: Mapping[str, str], supervisor: Supervisor, say: Callable[[str], None]) -> bool:
    """Whether everything is as it should be; each finding is said in words."""
    differences = compare_counts(door, deliveries)
    for difference in differences:
        say(f"  WRONG: {difference}.")
    if not differences:
        say(f"  The counts of all {len(deliveries)} sample files agree with samples/README.md.")
    english = find_fresh_message(door, supervisor)
    if english is None:
        say(f"  WRONG: a message that was just posted could not be found by its word within {PROOF_S:.0f} seconds.")
    else:
        say(f"  A message with a fresh word was posted, found by search and reads: {make_printable(english)}")
    return not differences and english is not None


def find_fresh_message(door: Door, supervisor: Supervisor) -> str | None:
    """Post a message that holds a word nobody ever used, and search for it until its English holds the word."""
    word = "".join(secrets.choice("bcdfghjklmnpqrstvwxz") for _ in range(16))
    wire = {
        "clowl": "0.2",
        "mid": f"once-{word}",
        "cid": f"once-{word[:8]}",
        "ts": int(time.time()),
        "p": "REQ",
        "from": "make-run",
        "to": "inspector",
        "body": {"t": "search", "d": {"q": word}},
    }
    body = json.dumps(wire).encode().ljust(LONG_BYTES)
    door.post_log(body, content_type="application/json", idempotency_key=f"once-{word}")
    english: list[str] = []

    def has_arrived() -> bool:
        found = door.get("/api/v1/messages", q=word)["results"]
        english[:] = [message["english"] for message in found if word in message["english"]]
        return len(found) == 1 and len(english) == 1

    return english[0] if supervisor.wait_until(has_arrived, seconds=PROOF_S) else None
