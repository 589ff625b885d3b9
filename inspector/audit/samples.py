"""Drawing an audit sample: a pure function of the seed and of the conversations; and its strata in people's words.

Nothing random enters, and no id that the database made. The identity of a conversation is SHA-256 over the name of its
channel and its key, which comes from what the log says (its id, or the source that it is). Its score is SHA-256 over
the method, the seed and that identity, joined by NUL bytes; of each stratum those with the smallest scores are drawn.
How many of each is settled before: one of every stratum, and the rest in proportion to what is left of each, by the
largest remainders. Where there are more strata than are wanted, all are given out by the largest remainders. Equal
remainders are told apart by SHA-256 over the method, the seed and the name of the stratum.
"""

from __future__ import annotations

import hashlib
import heapq
import secrets
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from dialects import title_of
from inspector.accounts.models import Membership, Workspace
from inspector.database import make_storable, take_page
from inspector.threads.models import Conversation, Message
from inspector.trail.services import Thing, record_deed

from .models.reviews import AuditSample, ReviewItem, SampledConversation
from .reviews.queues import MAX_AT_ONCE, create_queue, fill_queue

# Between the names that a stratum is made of.
AND: Final = " and "


def say_stratum(sample: AuditSample, name: str) -> str:
    """A stratum of a sample as people call it: dialects by their titles, everything else as it is."""
    if sample.stratum != AuditSample.Stratum.DIALECT:
        return name
    return AND.join(map(title_of, name.split(AND)))


# It changes when the same seed would draw others.
METHOD: Final = "sample 1"
MAX_SEED_LENGTH: Final = 64
MAX_STRATUM_LENGTH: Final = 300
_COLUMNS: Final = ("pk", "key", "channel__name", "dialects", "agents", "severity", "generation", "settled_generation")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A conversation that was drawn. In the order of these a sample stands."""

    score: bytes
    identity: bytes
    stratum: str
    conversation: uuid.UUID


@dataclass(slots=True)
class _Pool:
    """A stratum while it is counted: how many, and the smallest scores of it as a heap with the largest on top."""

    population: int = 0
    least: list[tuple[int, bytes, uuid.UUID]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Draw:
    """What a seed draws: conversations in the order of their scores, and how many out of how many of each stratum."""

    drawn: Sequence[Drawn]
    strata: Sequence[tuple[str, int, int]]
    population: int
    unsettled: int

    @property
    def digest(self) -> bytes:
        """SHA-256 over the identities that were drawn, in ascending order."""
        return hashlib.sha256(b"".join(sorted(each.identity for each in self.drawn))).digest()


@transaction.atomic
def draw_sample(
    *,
    membership: Membership,
    name: str,
    stratum: str,
    wanted: int,
    seed: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    reviewers: int = 1,
    criteria: Sequence[str] = (),
) -> AuditSample:
    """Draw a sample of the workspace's conversations into a review queue of its own.

    Args:
        membership: who draws: an owner or an auditor.
        name: of the queue.
        stratum: one of `AuditSample.Stratum`.
        wanted: how many conversations, up to `filling.MAX_AT_ONCE`.
        seed: printed characters, up to `MAX_SEED_LENGTH`; a fresh one where it is empty.
        since, until: only conversations with a message between these, the end excluded.
        reviewers, criteria: of the queue, as `create_queue` takes them.

    Raises:
        PermissionDenied: for a viewer.
        ValidationError: for what cannot be so, or where there is nothing to draw from.
    """
    membership.require_auditor(membership.workspace_id, "draws samples")
    seed = seed.strip() or secrets.token_hex(8)
    if not (seed.isascii() and seed.isprintable() and len(seed) <= MAX_SEED_LENGTH):
        raise ValidationError({"seed": f"a seed has up to {MAX_SEED_LENGTH} letters, digits and signs of ASCII"})
    if stratum not in AuditSample.Stratum.values:
        raise ValidationError({"stratum": f"a sample is divided by one of {', '.join(AuditSample.Stratum.values)}"})
    if not 1 <= wanted <= MAX_AT_ONCE:
        raise ValidationError({"wanted": f"draw between 1 and {MAX_AT_ONCE:,} conversations"})
    if since is not None and until is not None and since >= until:
        raise ValidationError({"until": "the end comes after the beginning"})
    found = draw(workspace=membership.workspace, seed=seed, stratum=stratum, wanted=wanted, since=since, until=until)
    if not found.drawn:
        raise ValidationError("there is no conversation to draw from: widen the time, or load a log first")
    queue = create_queue(
        membership=membership,
        name=name,
        about=f"An audit sample: {len(found.drawn):,} of {found.population:,} conversations, by the seed {seed}.",
        reviewers=reviewers,
        criteria=criteria,
    )
    fill_queue(
        queue=queue,
        conversations=[each.conversation for each in found.drawn],
        why=f"Drawn for an audit sample by the seed {seed}",
        membership=membership,
    )
    sample = AuditSample.objects.create(
        workspace_id=membership.workspace_id,
        queue=queue,
        seed=seed,
        stratum=stratum,
        wanted=wanted,
        since=since,
        until=until,
        population=found.population,
        drawn=len(found.drawn),
        unsettled=found.unsettled,
        strata=[list(each) for each in found.strata],
        digest=found.digest,
        method=METHOD,
        made_by=membership.user,
    )
    SampledConversation.objects.bulk_create(
        [
            SampledConversation(
                sample=sample,
                workspace_id=membership.workspace_id,
                conversation_id=each.conversation,
                place=place,
                stratum=each.stratum,
                identity=each.identity,
            )
            for place, each in enumerate(found.drawn, 1)
        ]
    )
    record_deed(
        "sample.drawn",
        workspace_id=membership.workspace_id,
        by=membership,
        on=Thing("sample", sample.pk, queue.name),
        about=[queue.pk],
        details={"seed": seed, "stratum": stratum, "population": found.population, "drawn": len(found.drawn)},
    )
    return sample


def draw(
    *,
    workspace: Workspace,
    seed: str,
    stratum: str,
    wanted: int,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Draw:
    """What a seed draws of the conversations as they stand, in one statement; memory holds what is wanted of each."""
    rows = Conversation.objects.filter(workspace=workspace, message_count__gt=0)
    rows = rows.filter(_is_within(since, until)).order_by()
    pools: dict[str, _Pool] = {}
    unsettled = 0
    for pk, key, channel, dialects, agents, severity, generation, settled in rows.values_list(*_COLUMNS).iterator():
        identity = identify(channel, bytes(key))
        pool = pools.setdefault(name_stratum(stratum, channel, dialects, agents, severity), _Pool())
        pool.population += 1
        unsettled += settled < generation
        # The heap's top is the largest score kept, as a negative number.
        entry = (-int.from_bytes(score(seed, identity)), identity, pk)
        if len(pool.least) < wanted:
            heapq.heappush(pool.least, entry)
        elif entry > pool.least[0]:
            heapq.heapreplace(pool.least, entry)
    shares = share_out({name: pool.population for name, pool in pools.items()}, wanted, seed)
    drawn = [
        Drawn((-negative).to_bytes(32), identity, name, pk)
        for name, pool in pools.items()
        for negative, identity, pk in sorted(pool.least, reverse=True)[: shares[name]]
    ]
    return Draw(
        drawn=sorted(drawn, key=lambda each: (each.score, each.identity)),
        strata=[(name, pools[name].population, shares[name]) for name in sorted(pools)],
        population=sum(pool.population for pool in pools.values()),
        unsettled=unsettled,
    )


def _is_within(since: datetime | None, until: datetime | None) -> Q:
    """Whether a conversation was active in a span: it ended after its beginning, and began before its end."""
    within = Q()
    if since is not None:
        within &= Q(last_at__gte=since)
    if until is not None:
        within &= Q(first_at__lt=until)
    return within


def identify(channel: str, key: bytes) -> bytes:
    """The identity of a conversation, which no id of the database enters."""
    return hashlib.sha256(channel.encode() + b"\0" + key).digest()


def score(seed: str, identity: bytes) -> bytes:
    """By what it is drawn: the smallest first."""
    return hashlib.sha256(b"\0".join((METHOD.encode(), seed.encode(), identity))).digest()


def name_stratum(stratum: str, channel: str, dialects: Iterable[str], agents: Iterable[str], severity: int) -> str:
    """The stratum that a conversation stands in, in words."""
    if stratum == AuditSample.Stratum.CHANNEL:
        return channel
    if stratum == AuditSample.Stratum.DIALECT:
        return AND.join(sorted(set(dialects))) or "no dialect"
    if stratum == AuditSample.Stratum.SEVERITY:
        return str(Message.Severity(severity).label)
    names = sorted({name for name in agents if name})
    if len(names) > 2:
        return "more than two agents"
    words = AND.join(names) or "no named agent"
    return make_storable(words if len(words) <= MAX_STRATUM_LENGTH else f"a name of {len(words):,} characters")


def share_out(populations: Mapping[str, int], wanted: int, seed: str) -> dict[str, int]:
    """How many are drawn of each stratum; the module says by which rule. The sum is `wanted`, or everything."""
    total = sum(populations.values())
    if wanted >= total:
        return dict(populations)
    floor = 1 if len(populations) <= wanted else 0
    rest, pool = wanted - floor * len(populations), total - floor * len(populations)
    shares, remainders = {}, []
    for name, population in populations.items():
        share, remainder = divmod(rest * (population - floor), pool)
        shares[name] = floor + share
        remainders.append((-remainder, score(seed, name.encode()), name))
    for _, _, name in sorted(remainders)[: wanted - sum(shares.values())]:
        shares[name] += 1
    return shares


def list_samples(
    *, workspace: Workspace, after: tuple[datetime, uuid.UUID] | None = None, limit: int = 50
) -> list[AuditSample]:
    """The samples of a workspace, newest first, by keyset, each with its queue and who drew it."""
    rows: Any = AuditSample.objects.filter(workspace=workspace).select_related("queue", "made_by")
    return take_page(rows, "made_at", after, limit)


def find_sample(*, workspace: Workspace, sample_id: uuid.UUID) -> AuditSample | None:
    """The sample of that id in this workspace, or None."""
    rows = AuditSample.objects.select_related("queue", "made_by")
    return rows.filter(workspace=workspace, pk=sample_id).first()


def list_drawn(*, sample: AuditSample, after: int = 0, limit: int = 50) -> list[SampledConversation]:
    """The conversations of a sample in the order they were drawn, from a place on."""
    rows = SampledConversation.objects.filter(sample=sample, place__gt=after).select_related("conversation")
    return list(rows[:limit])


def find_items(*, sample: AuditSample, drawn: Collection[SampledConversation]) -> dict[uuid.UUID, ReviewItem]:
    """The items that these conversations of a sample have in its queue, by conversation; the latest of each."""
    rows = ReviewItem.objects.filter(queue=sample.queue_id, conversation__in=[each.conversation_id for each in drawn])
    return {item.conversation_id: item for item in rows.order_by("added_at", "pk")}
