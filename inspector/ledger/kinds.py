"""What is evidence: of which tables the ledger has entries, and which of their columns a leaf is made of.

A leaf is canonical JSON: `{"at", "id", "kind", "sha256", "v"}`, with the SHA-256 of the row's content. The content is
canonical JSON too: the columns named here, none of which ever changes. Bytes are their SHA-256 or, where they are one
already, hex. What changes later in a row is an entry of its own, as `withdrawal-undone` is. Everything else that people
do is in the audit log, whose entries are entered as `action`.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import BinaryField, Case, F, Func, Model, OuterRef, Q, QuerySet, Subquery, UUIDField, Value, When
from django.db.models.functions import Coalesce, Length
from django.db.models.lookups import Exact

from inspector.audit.models import Comment, CommentTurn, FindingAct, Review
from inspector.intake.models import Delivery, Record, Withdrawal
from inspector.intake.sealed import clear_sha256
from inspector.keyring.models import KeyEvent
from inspector.retention.models import Erasure, Tombstone
from inspector.trail.models import Deed

from .merkle import hash_leaf

VERSION: Final = 1
_MAX_NUMBER: Final = (1 << 63) - 1


EVERY: Final = Q()
OWN_ID: Final = F("pk")
EMPTY: Final = Value(hashlib.sha256(b"").digest(), output_field=BinaryField())


class Sha256(Func):
    """The SHA-256 of a column, worked out by the database: the bytes stay there."""

    function = "sha256"
    output_field = BinaryField()


class NumberAsId(Func):
    """A number as a UUID, for tables whose keys are numbers."""

    template = "lpad(to_hex(%(expressions)s), 32, '0')::uuid"
    output_field = UUIDField()


class Leaf(NamedTuple):
    """What is entered of a row: whose workspace, since when it is there, and its content.

    Of one whose content was erased `digest` is what its tombstone keeps of it.
    """

    workspace: uuid.UUID
    subject: uuid.UUID
    at: datetime
    content: Mapping[str, Any]
    digest: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A table, or one act that its rows record.

    Attributes:
        model: whose rows they are.
        columns: what a leaf is made of, by its name there.
        at: the column that says when it was done.
        holds: which rows are complete: only these are entered.
        workspace: the path to the workspace's id.
        subject: the row's id, as a UUID.
        since: rows that may be new since a moment, by what has an index.
        erased: how a row looks whose content was erased: of such a one its tombstone has the digest.
    """

    name: str
    model: type[Model]
    columns: Mapping[str, Any]
    at: str
    holds: Q = EVERY
    workspace: str = "workspace_id"
    subject: Any = OWN_ID
    since: Callable[[datetime], Q] = lambda moment: Q(pk__gte=first_id(moment))
    erased: Q | None = None

    @property
    def rows(self) -> QuerySet[Any]:
        """The rows that are complete, each with its id as `subject`."""
        rows: QuerySet[Any] = self.model._default_manager.filter(self.holds).alias(subject=self.subject)
        return rows

    def find(self, subjects: Sequence[uuid.UUID]) -> QuerySet[Any]:
        """The rows with these ids."""
        is_number = isinstance(self.subject, NumberAsId)
        return self.rows.filter(pk__in=[each.int & _MAX_NUMBER for each in subjects] if is_number else subjects)

    def read(self, rows: QuerySet[Any]) -> Iterator[tuple[Any, Leaf]]:
        """The leaves of rows of this table, each with the key of its row."""
        values = [F(value) if isinstance(value, str) else value for value in self.columns.values()]
        # A name of a column cannot be that of an annotation.
        shown = {f"evidence_{at}": value for at, value in enumerate(values)}
        if self.erased is not None:
            shown["evidence_digest"] = Case(When(self.erased, then=kept_digest(self.name)))
        for row in rows.values_list("pk", self.workspace, self.subject, self.at, *shown.values()):
            key, workspace, subject, at, *found = row
            digest = found.pop() if self.erased is not None else None
            content = dict(zip(self.columns, map(_spell, found), strict=True))
            yield key, Leaf(workspace, subject, at, content, bytes(digest) if digest else None)

    def make(self, row: Any, subject: uuid.UUID, **known: Any) -> Leaf:
        """The leaf of a row that is loaded already; `known` are the columns that the database works out."""
        found = {name: known[name] if name in known else getattr(row, value) for name, value in self.columns.items()}
        content = {name: _spell(value) for name, value in found.items()}
        return Leaf(getattr(row, self.workspace), subject, getattr(row, self.at), content)


def spell(value: Mapping[str, Any]) -> bytes:
    """Canonical JSON: sorted names, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def spell_leaf(kind: str, leaf: Leaf) -> bytes:
    """The leaf data of an entry."""
    return spell(describe_leaf(kind, leaf))


def describe_leaf(kind: str, leaf: Leaf) -> dict[str, Any]:
    """What a leaf says."""
    digest = leaf.digest or digest_content(leaf)
    return {"v": VERSION, "kind": kind, "id": str(leaf.subject), "at": _spell(leaf.at), "sha256": digest.hex()}


def digest_content(leaf: Leaf) -> bytes:
    """The SHA-256 of what a row says."""
    return hashlib.sha256(spell(leaf.content)).digest()


def hash_of(kind: str, leaf: Leaf) -> bytes:
    """The leaf's hash, as its entry keeps it."""
    return hash_leaf(spell_leaf(kind, leaf))


def _spell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return [_spell(each) for each in value] if isinstance(value, list) else value


def first_id(moment: datetime) -> uuid.UUID:
    """The smallest UUIDv7 of a moment."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def kept_digest(kind: str) -> Subquery:
    """What the tombstone of a row keeps; null where the row was not erased."""
    return Subquery(Tombstone.objects.filter(kind=kind, subject=OuterRef("pk")).values("sha256")[:1])


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


KINDS: Final[Sequence[Kind]] = (
    Kind(
        name="record",
        model=Record,
        columns={
            **_same("channel_id", "identity", "is_quarantined"),
            # Of an erased record its tombstone has the digest; it vouches for no bytes that are there.
            "source": Case(
                When(Exact(Length("source"), 0), then=Coalesce(kept_digest("record"), EMPTY)),
                # Of one that is sealed the digest that it says: verifying opens it and compares.
                default=clear_sha256("source"),
            ),
        },
        at="created_at",
    ),
    Kind(
        name="delivery",
        model=Delivery,
        columns=_same(
            "channel_id", "door", "received_at", "framed_at", "file_name", "size_bytes", "sha256", "received", "stored",
            "duplicate", "quarantined", "remote_address", "idempotency_key",
        ),
        at="framed_at",
        holds=Q(framed_at__isnull=False),
        since=lambda moment: Q(framed_at__gte=moment),
        erased=Q(file_name="", remote_address="", idempotency_key=None),
    ),
    Kind(name="withdrawal", model=Withdrawal, columns=_same("delivery_id", "by_id", "at", "reason"), at="at"),
    Kind(
        name="withdrawal-undone",
        model=Withdrawal,
        columns=_same("delivery_id", "taken_back_by_id", "taken_back_at", "taken_back_reason"),
        at="taken_back_at",
        holds=Q(taken_back_at__isnull=False),
        since=lambda moment: Q(taken_back_at__gte=moment),
    ),
    Kind(
        name="verdict",
        model=Review,
        columns={
            **_same(
                "conversation_id", "item_id", "reviewer_id", "verdict", "comment", "rubric_id", "answers",
                "is_adjudication", "seen_digest", "seen_messages",
            ),
            "binding": "binding__digest",
        },
        at="created_at",
    ),
    Kind(
        name="verdict-withdrawn",
        model=Review,
        columns=_same("withdrawn_at"),
        at="withdrawn_at",
        holds=Q(withdrawn_at__isnull=False),
        since=lambda moment: Q(withdrawn_at__gte=moment),
    ),
    Kind(
        name="comment",
        model=Comment,
        columns={
            **_same("record_id", "part", "start", "end", "source_sha256", "english_sha256", "decoder", "author_id",
                    "words", "is_restricted"),
            "quoted": Sha256("quoted"),
        },
        at="created_at",
        erased=Q(words="", quoted=b""),
    ),
    Kind(
        name="comment-turn",
        model=CommentTurn,
        columns=_same("comment_id", "kind", "by_id", "words", "is_restricted", "of_id"),
        at="at",
        workspace="comment__workspace_id",
        erased=Q(words=""),
    ),
    Kind(
        name="finding-act",
        model=FindingAct,
        columns=_same("finding_id", "kind", "state", "until", "by_id", "reason"),
        at="at",
        workspace="finding__workspace_id",
    ),
    Kind(
        name="erasure",
        model=Erasure,
        columns=_same("kind", "channel_id", "target", "until", "by_id", "reason"),
        at="at",
    ),
    Kind(
        name="key",
        model=KeyEvent,
        columns=_same("kind", "key", "label", "fingerprint", "by_id", "by_api_key", "door", "count", "messages",
                      "conversation"),
        at="at",
    ),
    Kind(
        name="action",
        model=Deed,
        columns=_same("sequence", "actor_kind", "actor_id", "actor_name", "address", "code", "object_kind", "object_id",
                      "object_label", "about", "told", "details"),
        at="at",
        subject=NumberAsId("pk"),
        since=lambda moment: Q(at__gte=moment),
    ),
)  # fmt: skip
BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}
# What is looked at beyond the oldest running transaction: how long before it begins a row's id may have been made.
SLACK: Final = timedelta(seconds=60)
