"""What must hold after a kill, asked of the database in plain SQL that shares no code with the product."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

import psycopg

from .ledger import Claim, Ledger

Connection = psycopg.Connection[tuple[Any, ...]]
POLL_S = 0.2
# Where nothing moves for a third of the patience, nothing will: by default longer than a lease, the pause after a
# failure, the sweep and the start of a worker together.
STILL_SHARE = 1 / 3


@dataclass
class Findings:
    """What was found: digests of records, and sentences about everything else."""

    lost: set[bytes] = field(default_factory=set)
    doubled: set[bytes] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.faults)

    def add(self, other: Findings) -> None:
        """These too."""
        self.lost |= other.lost
        self.doubled |= other.doubled
        self.faults += [fault for fault in other.faults if fault not in self.faults]

    def tell(self) -> list[str]:
        """The sentences, at most a few."""
        counts = [f"{len(self.lost)} records lost"] * bool(self.lost)
        counts += [f"{len(self.doubled)} records doubled"] * bool(self.doubled)
        return [*counts, *self.faults[:8]]


def check_durable(connection: Connection, ledger: Ledger, claim: Claim, channel: str) -> Findings:
    """What holds at every moment: all that was accepted is there, once, with its bytes, and every receipt adds up."""
    found = Findings()
    with connection.transaction():
        # Of one moment: else what is framed between two questions has no records in the first.
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        _check_moment(connection, ledger, claim, channel, found)
    return found


def _check_moment(connection: Connection, ledger: Ledger, claim: Claim, channel: str, found: Findings) -> None:
    rows = connection.execute(
        "SELECT sha256(record.source), count(*) FROM intake_record record "
        "JOIN accounts_channel channel ON channel.id = record.channel_id WHERE channel.name = %s GROUP BY 1",
        [channel],
    ).fetchall()
    present = {bytes(digest): count for digest, count in rows}
    found.lost = {digest for digest in claim.posted if digest not in present}
    found.doubled = {digest for digest, count in present.items() if count != 1}
    strangers = ledger.list_strangers(list(present))
    if strangers:
        _check_strangers(connection, ledger, strangers, found)
    _check_files(connection, claim, channel, present, found)
    _check_receipts(connection, claim, found)
    _check_accounts(connection, channel, found)


def _check_strangers(connection: Connection, ledger: Ledger, digests: Sequence[bytes], found: Findings) -> None:
    """What nobody sent so may only be what came of a record whose sender's line was cut in the middle of it."""
    rows = connection.execute(
        "SELECT source, is_quarantined, reason FROM intake_record WHERE sha256(source) = ANY(%s)", [list(digests)]
    ).fetchall()
    for source, is_quarantined, reason in rows:
        is_cut = is_quarantined and str(reason).startswith("the record is cut")
        if is_cut and ledger.is_part(bytes(source)):
            ledger.parts.add(bytes(source))
        else:
            found.faults.append(f"a record that nobody sent, or with other bytes: {bytes(source)[:300]!r}, {reason}")


def _check_files(connection: Connection, claim: Claim, channel: str, present: Iterable[bytes], found: Findings) -> None:
    """An accepted upload has its bytes, in pieces or framed."""
    rows = connection.execute(
        "SELECT delivery.file_name, delivery.size_bytes, delivery.sha256, delivery.state, "
        "(SELECT sha256(coalesce(string_agg(piece.data, ''::bytea ORDER BY piece.\"offset\"), '')) "
        " FROM intake_chunk piece WHERE piece.delivery_id = delivery.id) "
        "FROM intake_delivery delivery JOIN accounts_channel channel ON channel.id = delivery.channel_id "
        "WHERE channel.name = %s AND delivery.door = 'upload'",
        [channel],
    ).fetchall()
    held: dict[str, list[tuple[Any, ...]]] = {}
    for name, *facts in rows:
        held.setdefault(name, []).append(tuple(facts))
    known = set(present)
    for load in claim.files:
        digest = sha256(load.body).digest()
        same = [one for one in held.get(load.name, []) if one[:2] == (len(load.body), digest)]
        if not same:
            found.lost |= load.digests
            found.faults.append(f"{load.name} has no delivery")
        elif any(state == "framed" for _, _, state, _ in same):
            missing = load.digests - known
            found.lost |= missing
            found.faults += [f"{load.name} is framed without {len(missing)} of its records"] * bool(missing)
        elif not any(bytes(pieces) == digest for *_, pieces in same):
            found.faults.append(f"the pieces of {load.name} are not what was sent")


def _check_receipts(connection: Connection, claim: Claim, found: Findings) -> None:
    """What a POST was answered is what its delivery says ever after."""
    names = ("state", "received", "stored", "duplicate", "quarantined")
    rows = connection.execute(
        "SELECT id, state, received, stored, duplicate, quarantined, encode(sha256, 'hex') FROM intake_delivery "
        "WHERE id = ANY(%s::uuid[])",
        [[receipt["delivery"] for receipt in claim.receipts]],
    ).fetchall()
    held = {str(row[0]): row[1:] for row in rows}
    for receipt in claim.receipts:
        told = (*(receipt[name] for name in names), receipt["expected"]["sha256"])
        if held.get(receipt["delivery"]) != told or receipt["received"] != receipt["expected"]["received"]:
            found.faults.append(f"receipt {told} is now {held.get(receipt['delivery'])}")


def _check_accounts(connection: Connection, channel: str, found: Findings) -> None:
    """received = stored + duplicate + quarantined, and each of them is so many sightings."""
    rows = connection.execute(
        """
        SELECT delivery.id, delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined, seen.*
          FROM intake_delivery delivery
          JOIN accounts_channel channel ON channel.id = delivery.channel_id
          CROSS JOIN LATERAL (
               SELECT count(*), count(*) FILTER (WHERE outcome = 'stored'),
                      count(*) FILTER (WHERE outcome = 'duplicate'),
                      count(*) FILTER (WHERE outcome = 'quarantined')
                 FROM intake_sighting sighting WHERE sighting.delivery_id = delivery.id
               ) AS seen (received, stored, duplicate, quarantined)
         WHERE channel.name = %s
           AND ((delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined)
                IS DISTINCT FROM (seen.received, seen.stored, seen.duplicate, seen.quarantined)
                OR delivery.received <> delivery.stored + delivery.duplicate + delivery.quarantined)
         LIMIT 5
        """,
        [channel],
    ).fetchall()
    found.faults += [f"delivery {row[0]} says {row[1:5]}, its sightings {row[5:]}" for row in rows]


def check_settled(connection: Connection, claim: Claim, channel: str) -> Findings:
    """What holds when the backlog is gone: every stored record is read, told and placed once."""
    found = Findings()
    questions = {
        "uploads are not framed": "SELECT count(*) FROM intake_delivery delivery {0} AND door = 'upload' "
        "AND state <> 'framed'",
        "deliveries are not read to their end": "SELECT count(*) FROM intake_delivery delivery {0} AND read <> stored",
        "records have not one message each": "SELECT count(*) FROM intake_record delivery {0} AND NOT is_quarantined "
        "AND (SELECT count(*) FROM threads_message message WHERE message.record_id = delivery.id) <> 1",
        "records are set aside": "SELECT count(*) FROM intake_deadletter letter JOIN intake_delivery delivery "
        "ON delivery.id = letter.delivery_id {0} AND letter.state <> 'read'",
        "messages are not told": "SELECT count(*) FROM threads_message delivery {0} AND told_digest IS NULL",
        "conversations are not settled, or count otherwise": "SELECT count(*) FROM threads_conversation delivery {0} "
        "AND (settled_generation < generation OR message_count <> "
        "(SELECT count(*) FROM threads_message message WHERE message.conversation_id = delivery.id))",
    }
    scope = "WHERE delivery.channel_id = (SELECT id FROM accounts_channel WHERE name = %s)"
    for sentence, question in questions.items():
        row = connection.execute(question.format(scope), [channel]).fetchone()
        if row and row[0]:
            found.faults.append(f"{row[0]} {sentence}")
    rows = connection.execute("SELECT sha256(source) FROM intake_record record").fetchall()
    present = {bytes(digest) for (digest,) in rows}
    for load in claim.files:
        found.lost |= load.digests - present
    return found


def find_oldest_waiting(connection: Connection, channel: str) -> datetime | None:
    """When the oldest of what is not yet told, or not even framed, came in."""
    row = connection.execute(
        """
        SELECT least(
            (SELECT min(record.created_at) FROM intake_record record
              WHERE record.channel_id = channel.id AND NOT record.is_quarantined
                AND NOT EXISTS (SELECT 1 FROM threads_message message
                                 WHERE message.record_id = record.id AND message.told_digest IS NOT NULL)),
            (SELECT min(received_at) FROM intake_delivery delivery
              WHERE delivery.channel_id = channel.id AND door = 'upload' AND state = 'framing'))
          FROM accounts_channel channel WHERE name = %s
        """,
        [channel],
    ).fetchone()
    return row[0] if row else None


def drain(
    connect: Callable[[], Connection], *, patience_s: float, look_after: Callable[[], None]
) -> tuple[str | None, int]:
    """Wait until every job has ended; what was put aside after three attempts is driven again, as an operator would.

    Returns:
        what is wrong with it, or None; and how many jobs were driven again.
    """
    driven = 0
    moved_at = time.monotonic()
    deadline = moved_at + patience_s
    before: tuple[Any, ...] | None = None
    while time.monotonic() < deadline:
        look_after()
        try:
            with connect() as connection:
                driven += drive_again(connection)
                row = connection.execute(
                    "SELECT count(*) FILTER (WHERE state <> 'done'), max(updated_at) FROM intake_job"
                ).fetchone()
        except psycopg.OperationalError:
            row = None
        if row and not row[0]:
            return None, driven
        if row != before:
            before, moved_at = row, time.monotonic()
        if time.monotonic() - moved_at > patience_s * STILL_SHARE:
            return f"{row[0] if row else 'all'} jobs wait, and nothing moves", driven
        time.sleep(POLL_S)
    return f"the backlog is not drained after {patience_s:.0f} seconds", driven


def drive_again(connection: Connection) -> int:
    """What was put aside because its worker was killed too often is asked for again; how much that was."""
    with connection.transaction():
        letters = connection.execute(
            "UPDATE intake_deadletter SET state = 'waiting', attempts = 0 WHERE state = 'dead' RETURNING delivery_id"
        ).fetchall()
        jobs = connection.execute(
            "UPDATE intake_job SET state = 'queued', attempts = 0, due_at = now(), requests = requests + 1 "
            "WHERE state = 'dead' OR (kind = 'ingest' AND state = 'done' AND subject = ANY(%s))",
            [[delivery for (delivery,) in letters]],
        )
    return len(letters) + jobs.rowcount


def drop_key(connection: Connection) -> None:
    """The variant without a unique identity; an ordinary index serves the look-ups."""
    connection.execute("ALTER TABLE intake_record DROP CONSTRAINT record_identity_once")
    connection.execute("CREATE INDEX ON intake_record (workspace_id, channel_id, identity)")
