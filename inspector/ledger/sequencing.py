"""Entering what is new: a few seconds after it was committed, by whoever works, and never in a person's request; and
the key that signs checkpoints, made once for an installation, and sealed by the key-encryption key.

What is looked at are the rows since the oldest transaction that ran when the last pass began, and a minute before it: a
row's id is made, or its time is set, by the transaction that writes it. So nothing is passed over that is committed
late. From time to time everything is looked at, which also enters what was there before there was a ledger.

One process at a time enters (`alone`), so that indexes follow each other. Evidence is read and never written to.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from inspector.accounts.models import Workspace
from inspector.database import copy_rows
from inspector.intake.liveness import alone
from inspector.keyring.encryption import KeyringError, bind, load_keks, make_kek

from .kinds import KINDS, SLACK, Kind, Leaf, hash_of
from .merkle import TILE, TILE_HEIGHT, compute_root, fold
from .models import LedgerCheckpoint, LedgerEntry, LedgerHash, LedgerKey
from .notes import Checkpoint, Note, sign
from .proofs import get_key, get_size, make_reader, name_origin

_BOUND_TO = bind(b"ledger")
_opened: dict[bytes, Ed25519PrivateKey] = {}


def ensure_key() -> LedgerKey:
    """The installation's key, made where there is none. Whoever calls this is alone.

    Raises:
        KeyringError: where there is no key-encryption key to seal it with, and none can be made.
    """
    key = get_key()
    if key is None:
        make_kek()
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        sealed = load_keks()[0].wrap(private.private_bytes_raw(), _BOUND_TO)
        key = LedgerKey.objects.create(name=f"inspector-{public.hex()[:12]}", public=public, sealed=sealed)
    return key


def sign_checkpoint(key: LedgerKey, workspace_id: uuid.UUID, size: int, root: bytes) -> Note:
    """A checkpoint, signed.

    Raises:
        KeyringError: where the private part cannot be opened.
    """
    origin = name_origin(key, workspace_id)
    text = Checkpoint(origin, size, root).text
    return Note(text, (sign(text, origin, _open(key)),))


def _open(key: LedgerKey) -> Ed25519PrivateKey:
    sealed = bytes(key.sealed)
    if sealed not in _opened:
        _opened.clear()
        _opened[sealed] = Ed25519PrivateKey.from_private_bytes(_unwrap(sealed))
    return _opened[sealed]


def rewrap_signing_key() -> int:
    """Seal the private part with the key-encryption key in use; how many were sealed anew, 0 or 1.

    Raises:
        KeyringError: where it cannot be opened.
    """
    key, kek = get_key(), load_keks()[0]
    if key is None:
        return 0
    try:
        kek.unwrap(bytes(key.sealed), _BOUND_TO)
    except KeyringError:
        LedgerKey.objects.filter(pk=key.pk).update(sealed=kek.wrap(_unwrap(bytes(key.sealed)), _BOUND_TO))
        return 1
    return 0


def _unwrap(sealed: bytes) -> bytes:
    failed: KeyringError | None = None
    for kek in load_keks():
        try:
            return kek.unwrap(sealed, _BOUND_TO)
        except KeyringError as error:
            failed = error
    raise failed or KeyringError("There is no key-encryption key.")


logger = logging.getLogger(__name__)

_LOCK: Final = 0x6C6564676572
# How often a process looks, and how often at everything.
LOOK_SECONDS, LOOK_AT_ALL_SECONDS = 5.0, 3_600.0

# So many rows are entered in one transaction, and for so long in one pass: others sweep meanwhile.
MAX_TOGETHER: Final = 2_000
MAX_SECONDS: Final = 2.0
_LOOK: Final = """
SELECT least(clock_timestamp(), (SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database())),
       pg_current_wal_insert_lsn()::text
"""


class Watch:
    """What a process remembers from one pass to the next."""

    def __init__(self) -> None:
        self.looked_at = self.looked_at_all = float("-inf")
        self.since: datetime | None = None
        self.written = ""
        # How far a look at everything has come that takes longer than one pass, and what ran when it began.
        self.reached: dict[str, Any] = {}
        self.began: datetime | None = None


_watch = Watch()


def enter_new(*, at_once: bool = False) -> int:
    """Enter what is new in every workspace, and sign a checkpoint for each that grew; how many entries there were.

    Args:
        at_once: look, and at everything, whenever that was done last.
    """
    now = time.monotonic()
    if not at_once and now - _watch.looked_at < LOOK_SECONDS:
        return 0
    _watch.looked_at = now
    with connection.cursor() as cursor:
        cursor.execute(_LOOK)
        oldest, written = cursor.fetchone()
    is_whole = at_once or _watch.since is None or now - _watch.looked_at_all > LOOK_AT_ALL_SECONDS
    if written == _watch.written and not is_whole:
        return 0  # Nobody has written anything since.
    with alone(_LOCK) as is_ours:
        if not is_ours:
            return 0
        since = None if is_whole else _watch.since
        if is_whole and not _watch.reached:
            _watch.began = oldest
        until = now + MAX_SECONDS if not at_once else float("inf")
        done = [_enter_kind(kind, since, until) for kind in KINDS]
        _sign_grown()
    count = sum(entered for entered, _ in done)
    if all(is_all for _, is_all in done):
        # What was committed behind a look at everything, while it went on, is looked at by the next pass.
        began = _watch.began if is_whole and _watch.began else oldest
        _watch.since, _watch.written = min(began, oldest) - SLACK, "" if count else written
        if is_whole:
            _watch.looked_at_all = now
            _watch.reached.clear()
    return count


def _enter_kind(kind: Kind, since: datetime | None, until: float) -> tuple[int, bool]:
    """Enter the rows of one kind that have no entry, batch by batch; how many they were, and whether that is all.

    Args:
        since: only rows that may be new since then; None for all.
        until: when no further batch is begun.
    """
    is_entered = LedgerEntry.objects.filter(kind=kind.name, subject=OuterRef("subject"))
    rows = kind.rows.filter(kind.since(since) if since else Q()).filter(~Exists(is_entered)).order_by("pk")
    count, after = 0, _watch.reached.get(kind.name) if since is None else None
    while time.monotonic() < until:
        found = [*kind.read((rows.filter(pk__gt=after) if after is not None else rows)[:MAX_TOGETHER])]
        if found:
            with transaction.atomic():
                _enter(kind.name, [leaf for _, leaf in found])
        count += len(found)
        if len(found) < MAX_TOGETHER:
            return count, True
        after = found[-1][0]
        if since is None:
            _watch.reached[kind.name] = after
    return count, False


def _enter(kind: str, leaves: Sequence[Leaf]) -> None:
    """Append entries, and the hashes of the subtrees that they complete."""
    grouped: dict[uuid.UUID, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        grouped[leaf.workspace].append(leaf)
    now = datetime.now(UTC)
    for workspace, own in grouped.items():
        size = get_size(workspace)
        entries = [(workspace, size + at, kind, leaf.subject, hash_of(kind, leaf), now) for at, leaf in enumerate(own)]
        names = ("workspace_id", "index", "kind", "subject", "leaf_hash", "entered_at")
        copy_rows(model=LedgerEntry, columns=names, rows=entries)
        _complete(workspace, size, size + len(entries))


def _complete(workspace: uuid.UUID, old: int, new: int) -> None:
    """Keep the hash over each 256 hashes that are complete since the ledger had the old size."""
    height = 0
    while new >> TILE_HEIGHT > old >> TILE_HEIGHT:
        read = make_reader(workspace)
        old, new = old >> TILE_HEIGHT, new >> TILE_HEIGHT
        rows = [
            LedgerHash(workspace_id=workspace, height=height + TILE_HEIGHT, index=at,
                       hash=fold(read(height, at * TILE, TILE)))
            for at in range(old, new)
        ]  # fmt: skip
        LedgerHash.objects.bulk_create(rows)
        height += TILE_HEIGHT


def _sign_grown() -> None:
    """Sign a checkpoint for each workspace whose ledger has grown since its last one."""
    entered = LedgerEntry.objects.filter(workspace=OuterRef("pk")).order_by("-index").values("index")[:1]
    signed = LedgerCheckpoint.objects.filter(workspace=OuterRef("pk")).order_by("-size").values("size")[:1]
    sizes = Workspace.objects.annotate(size=Subquery(entered) + 1, signed=Coalesce(Subquery(signed), 0))
    grown = list(sizes.filter(size__gt=F("signed")).values_list("pk", "size"))
    if not grown:
        return
    try:
        key = ensure_key()
        for workspace, size in grown:
            root = compute_root(make_reader(workspace), size)
            note = str(sign_checkpoint(key, workspace, size, root))
            LedgerCheckpoint.objects.create(workspace_id=workspace, size=size, root=root, note=note)
    except KeyringError as error:
        # What is entered stays entered; the next pass signs it once the key is back.
        logger.warning("no checkpoint can be signed: %s", error)
