"""What `--once` proves: the counts of the samples' README, and a fresh message found by search and read in English."""

import json
import secrets
import time
from collections.abc import Callable, Mapping

from . import samples
from .door import Door
from .processes import Supervisor

PATIENCE_S = 60.0
LETTERS = "bcdfghjklmnpqrstvwxz"


def prove(door: Door, deliveries: Mapping[str, str], supervisor: Supervisor, say: Callable[[str], None]) -> bool:
    """Whether everything is as it should be; each finding is said in words."""
    differences = samples.compare_counts(door, deliveries)
    for difference in differences:
        say(f"  WRONG: {difference}.")
    if not differences:
        say(f"  The counts of all {len(deliveries)} sample files agree with samples/README.md.")
    english = find_fresh_message(door, supervisor)
    if english is None:
        say(f"  WRONG: a message that was just posted could not be found by its word within {PATIENCE_S:.0f} seconds.")
    else:
        say(f"  A message with a fresh word was posted, found by search and reads: {samples.make_printable(english)}")
    return not differences and english is not None


def find_fresh_message(door: Door, supervisor: Supervisor) -> str | None:
    """Post a message that holds a word nobody ever used, and search for it until its English holds the word."""
    word = "".join(secrets.choice(LETTERS) for _ in range(16))
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
    door.post_log(json.dumps(wire).encode(), content_type="application/json", idempotency_key=f"once-{word}")
    english: list[str] = []

    def has_arrived() -> bool:
        found = door.get("/api/v1/messages", q=word)["results"]
        english[:] = [message["english"] for message in found if word in message["english"]]
        return len(found) == 1 and len(english) == 1

    return english[0] if supervisor.wait_until(has_arrived, seconds=PATIENCE_S) else None
