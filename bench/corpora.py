"""`python -m bench.corpora PATH`: recorded conversations, loaded in random order, come out as they were.

PATH is a folder with a folder for each dialect, and in these JSON Lines files `conversations*.jsonl`: an object a line
with `conversation` (its name) and `messages`, each `{"raw", "from", "to"}`; parents are recorded as `replies_to_prev`,
or in a CLowl message's own `pid`. Each message gets an envelope with a time in the order of the file, and an id where
the wire has none. The messages of all conversations are shuffled together and delivered in random batches, with work
in between or not; then orders and parents are compared with the recorded ones, and the rounds with each other.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .installation import Installation
from .measure import align
from .product import Product, enter_product

START = datetime(2026, 11, 1, 8, tzinfo=UTC)
# A record that a told body cites by its id.
_CITED = re.compile(r"(?<=\"source\":\[\")([0-9a-f-]{36})(?=\")")
HEADINGS = ("dialect", "conversations", "messages", "order", "equal", "parents", "equal", "only follow", "different")
MAX_BATCH = 40


@dataclass(frozen=True)
class Line:
    """One recorded message: its place in its conversation, what is delivered, and its recorded parent's place."""

    place: int
    text: bytes
    native_id: str
    parent: int | None
    # A recorded parent that is not among the conversation's messages, by the id that is cited.
    outside: str = ""
    # The time that its wire carries: it goes before any envelope's.
    wire_time: int | None = None


@dataclass(frozen=True)
class Recorded:
    """A conversation as it was recorded."""

    dialect: str
    name: str
    lines: Sequence[Line]


@dataclass
class Count:
    """What was compared of one dialect, and why what differs does."""

    conversations: int = 0
    messages: int = 0
    ordered: int = 0
    parents: int = 0
    equal: int = 0
    follows: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def cells(self, dialect: str) -> tuple[str, ...]:
        """The line of the table."""
        known = self.equal + self.follows
        numbers = (self.conversations, self.messages, self.conversations, self.ordered, self.parents)
        return (dialect, *(f"{number:,}" for number in (*numbers, self.equal, self.follows, self.parents - known)))


def read_corpora(folder: Path) -> Iterator[Recorded]:
    """The recorded conversations of a folder.

    Raises:
        ValueError: where there is none.
    """
    files = sorted(folder.glob("*/conversations*.jsonl"))
    if not files:
        raise ValueError(f"{folder} holds no */conversations*.jsonl")
    start = START
    for path in files:
        for text in path.read_text().splitlines():
            said = json.loads(text)
            yield Recorded(path.parent.name, said["conversation"], list(_read_lines(said, start)))
            start += timedelta(hours=1)


def _read_lines(said: dict[str, Any], start: datetime) -> Iterator[Line]:
    ids = {(each.get("parsed") or {}).get("mid"): place for place, each in enumerate(said["messages"])}
    for place, each in enumerate(said["messages"]):
        wire = each.get("parsed") or {}
        native_id = wire.get("mid") or f"{said['conversation']}/{place}"
        at = (start + timedelta(seconds=place)).isoformat()
        envelope = {"raw": each["raw"], "id": native_id, "at": at, "conversation": said["conversation"]}
        # An envelope must not disagree with the wire.
        envelope |= {"conversation": wire["cid"]} if wire.get("cid") else {}
        envelope |= {name: each[name] for name in ("from", "to") if each.get(name)}
        cited = wire.get("pid")
        parent = place - 1 if each.get("replies_to_prev") and place else ids.get(cited) if cited else None
        outside = cited if cited and parent is None else ""
        text = json.dumps(envelope).encode() + b"\n"
        yield Line(place, text, native_id, parent, outside, wire.get("ts"))


def load(product: Product, recorded: Sequence[Recorded], chance: random.Random) -> None:
    """Deliver every message once, in random order and batches, working in between as it comes."""
    from inspector.intake.framing import take_stream
    from inspector.intake.models import Door
    from inspector.intake.services import open_delivery

    lines = [line.text for conversation in recorded for line in conversation.lines]
    chance.shuffle(lines)
    while lines:
        size = chance.randint(1, MAX_BATCH)
        batch, lines = lines[:size], lines[size:]
        delivery = open_delivery(workspace=product.workspace, channel=product.channel, door=Door.API)
        take_stream(delivery=delivery, chunks=batch)
        if chance.random() < 0.3:
            product.work()
    product.work()


def compare(recorded: Sequence[Recorded]) -> dict[str, Count]:
    """What came out, beside what was recorded."""
    from inspector.threads.models import Message

    counts: dict[str, Count] = {}
    by_pk = {row.pk: row for row in Message.objects.filter(part=1)}
    by_native = {row.native_id: row for row in by_pk.values()}
    for conversation in recorded:
        count = counts.setdefault(conversation.dialect, Count())
        found = [by_native[line.native_id] for line in conversation.lines]
        count.conversations += 1
        count.messages += len(found)
        order = sorted(conversation.lines, key=lambda line: (line.wire_time or 0, line.place))
        shown = sorted(
            range(len(found)), key=lambda place: (found[place].conversation_id.bytes, bytes(found[place].place or b""))
        )
        if shown == [line.place for line in conversation.lines]:
            count.ordered += 1
        elif shown == [line.place for line in order]:
            count.causes["order: the wire's own times say otherwise than the file's order, and go before it"] += 1
        else:
            count.causes[f"order: {conversation.name} came out as {shown}"] += 1
        for line, row in zip(conversation.lines, found, strict=True):
            if line.parent is None and not line.outside:
                continue
            count.parents += 1
            parent = by_pk.get(row.parent) if row.parent else None
            wanted = found[line.parent].native_id if line.parent is not None else line.outside
            if parent is None or parent.native_id != wanted:
                named = f"{parent.native_id} ({row.parent_basis})" if parent else "nobody"
                count.causes[f"parent: {row.native_id} answers {wanted}, and came out below {named}"] += 1
            elif row.parent_basis == "adjacency":
                count.follows += 1
            else:
                count.equal += 1
    return counts


def picture() -> list[tuple[object, ...]]:
    """What settling made of all messages, without the ids that the application gave them."""
    from inspector.intake.models import Record
    from inspector.threads.models import Message

    columns = ("pk", "parent", "conversation__native_id", "place", "native_id", "part", "run")
    told = ("parent_basis", "parent_why", "english", "body")
    rows = list(Message.objects.order_by("conversation__native_id", "place").values_list(*columns, *told))
    # A place names the order key of a block, which is another one in another file; its number is the same.
    numbers = {row[0]: number for number, row in enumerate(rows)}
    rows = [(*row[:3], numbers[row[0]], *row[4:]) for row in rows]
    places = {row[0]: row[2:6] for row in rows}
    records = {str(pk): bytes(identity).hex() for pk, identity in Record.objects.values_list("pk", "identity")}
    return [(places.get(row[1]), *row[2:-1], _CITED.sub(lambda cited: records[cited[1]], row[-1])) for row in rows]


def main() -> int:
    """Load the corpora in several random orders, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="how many random orders (default 3)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    recorded = list(read_corpora(arguments.path))
    first: list[tuple[object, ...]] | None = None
    is_same = True
    with Installation() as installation, enter_product(installation) as product:
        for turn in range(arguments.rounds):
            product.clear()
            load(product, recorded, random.Random(arguments.seed + turn))
            found = picture()
            first = first or found
            is_same = is_same and found == first
            print(f"round {turn + 1}: {len(found):,} messages", file=sys.stderr, flush=True)
        counts = compare(recorded)
    print(align([HEADINGS, *(count.cells(dialect) for dialect, count in counts.items())]))
    for dialect, count in counts.items():
        for cause, number in count.causes.items():
            print(f"{dialect}: {number:,} x {cause}")
    print(f"{arguments.rounds} orders: {'the same picture each time' if is_same else 'THEY DIFFER'}")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
