"""Relating: what scenes hold that takes several messages to see, looked up for those alone that are suspected of it.

Whom to suspect is among a message's sights; whether it is so is asked here, for a sight may outlast what it said.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from inspector.accounts.models import ApiKey
from inspector.intake.models import Sighting
from inspector.lookups import HasAnyBit, IsAny
from inspector.threads.models import Message, Task
from inspector.threads.rendering import terms
from inspector.threads.rendering.rule_flags import CLOCK_SKEW, FLAGGED, RuleFlag
from inspector.threads.rendering.terms import has_term
from inspector.threads.tasks.rows import read_steps

from .scene import Scene, Seen, Skewed

COLUMNS: Final = (
    *("id", "conversation_id", "record_id", "part", "dialect", "performative", "sender", "receivers", "native_id"),
    *("order_time", "parent", "parent_key", "parent_basis", "parent_why"),
)
# As settling orders them: of one order key by the identity of the record.
ORDER: Final = ("conversation_id", "order_time", "order_source", "order_index", "record__identity", "part")
# What somebody did, found or proposes: these can be judged.
JUDGED: Final = ("done", "inform", "observe", "propose", "commit")
# The events of a task that give its result.
RESULTS: Final = frozenset({"done", "gave-result", "answered"})
_IS_SEALED: Final = HasAnyBit("sights", RuleFlag.SEALED.value)
# The level at which a session is agreed to be encrypted.
_ENCRYPTED: Final = "E"


@dataclass(slots=True)
class Suspects:
    """Messages that may bear the id of another, answer what is later, judge their own work, or have a strange key."""

    id_keys: set[bytes] = field(default_factory=set)
    early: list[uuid.UUID] = field(default_factory=list)
    judging: list[uuid.UUID] = field(default_factory=list)
    strange: list[uuid.UUID] = field(default_factory=list)

    def take(self, message: Seen, sights: int, id_key: bytes | None) -> None:
        """Put a message where its sights say."""
        if sights & RuleFlag.DOUBLE and id_key is not None:
            self.id_keys.add(bytes(id_key))
        if sights & RuleFlag.EARLY:
            self.early.append(message.id)
        if sights & RuleFlag.JUDGING:
            self.judging.append(message.id)
        if sights & RuleFlag.STRANGE:
            self.strange.append(message.id)


def see(row: Sequence[Any]) -> Seen:
    """A message of a row that begins with `COLUMNS`."""
    seen = Seen._make(row[: len(COLUMNS)])
    return seen if seen.cited is None else seen._replace(cited=bytes(seen.cited))


def see_all(messages: QuerySet[Message]) -> Iterator[Seen]:
    """These messages, in the order given."""
    return map(see, messages.values_list(*COLUMNS))


def load_related(scenes: Mapping[uuid.UUID, Scene], messages: QuerySet[Message], suspects: Suspects) -> None:
    """Complete scenes whose messages were looked at one by one.

    Args:
        scenes: by the ids of their conversations, of one workspace.
        messages: all of them.
        suspects: who is to be looked at beside others.
    """
    ordered = messages.order_by(*ORDER)
    if suspects.id_keys:
        _load_doubles(scenes, ordered, suspects.id_keys)
    if suspects.early:
        _load_early(scenes, ordered.filter(IsAny("id", suspects.early)))
    if suspects.judging:
        _load_judged(scenes, ordered.filter(IsAny("id", suspects.judging)))
    if suspects.strange:
        _load_strangers(scenes, ordered.filter(IsAny("id", suspects.strange)))
    _load_sealed(scenes, messages)


def _load_doubles(scenes: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message], id_keys: set[bytes]) -> None:
    channels = {scene.conversation.channel_id for scene in scenes.values()}
    workspaces = {scene.conversation.workspace_id for scene in scenes.values()}
    bearers = ordered.filter(workspace_id__in=workspaces, channel_id__in=channels, id_key__in=list(id_keys))
    found: dict[tuple[uuid.UUID, bytes], list[Seen]] = defaultdict(list)
    for row in bearers.values_list(*COLUMNS, "id_key"):
        message = see(row)
        found[message.conversation, bytes(row[-1])].append(message)
    for (conversation, _), several in found.items():
        # The parts of one record may share its id, and conflict with nothing.
        if len({message.record for message in several}) > 1:
            scenes[conversation].doubles.append(several)


def _load_early(scenes: Mapping[uuid.UUID, Scene], suspects: QuerySet[Message]) -> None:
    """Answers that are earlier than what they answer, by clocks that wire or envelope carry."""
    parent = Message.objects.filter(pk=OuterRef("parent")).exclude(order_basis="receipt")
    answers = suspects.exclude(order_basis="receipt").filter(
        parent__isnull=False, parent_basis__in=("explicit", "correlation")
    )
    early = answers.annotate(asked_at=Subquery(parent.values("order_time")[:1])).filter(
        asked_at__gt=F("order_time") + CLOCK_SKEW
    )
    for row in early.values_list(*COLUMNS, "asked_at"):
        message = see(row)
        seconds = (row[-1] - message.at).total_seconds()
        scenes[message.conversation].skewed.append(Skewed(message, message.parent, seconds))


def _load_judged(scenes: Mapping[uuid.UUID, Scene], suspects: QuerySet[Message]) -> None:
    """Judgements of one's own: of the message that the wire says, else of the last result of the task."""
    judging: list[Seen] = []
    works: dict[uuid.UUID, uuid.UUID | None] = {}
    for row in suspects.exclude(sender="").values_list(*COLUMNS, "task"):
        judging.append(message := see(row))
        works[message.id] = row[-1]
    results: dict[uuid.UUID | None, list[uuid.UUID]] = {
        pk: [step.message_id for step in read_steps(steps) if step.event in RESULTS]
        for pk, steps in Task.objects.filter(IsAny("id", set(works.values()) - {None})).values_list("pk", "steps")
    }
    said = {message.parent for message in judging if message.parent}.union(*results.values())
    judged = {message.id: message for message in see_all(Message.objects.shown().filter(IsAny("id", said)))}
    for message in judging:
        is_said = message.parent is not None and message.basis in ("explicit", "correlation")
        named = [message.parent] if is_said else results.get(works[message.id], [])
        own = [judged[pk] for pk in named if pk in judged]
        own = [one for one in own if one.sender == message.sender and one.at <= message.at]
        if own and own[-1].id != message.id and own[-1].performative in JUDGED:
            scenes[message.conversation].judged.append((message, own[-1]))


def _load_strangers(scenes: Mapping[uuid.UUID, Scene], suspects: QuerySet[Message]) -> None:
    """What was brought in by a key that names its agents, under a name that is none of them."""
    keys = {
        key.pk: key
        for key in ApiKey.objects.filter(workspace_id=next(iter(scenes.values())).conversation.workspace_id)
        if key.agents
    }
    # Who delivers again what was here before said nothing under that name.
    brought = Sighting.objects.filter(
        record=OuterRef("record"), outcome=Sighting.Outcome.STORED, delivery__sent_by_key__in=list(keys)
    )
    rows = suspects.exclude(sender="").annotate(key=Subquery(brought.values("delivery__sent_by_key")[:1]))
    for row in rows.filter(key__isnull=False).values_list(*COLUMNS, "key"):
        message, key = see(row), keys[row[-1]]
        if message.sender not in key.agents:
            scenes[message.conversation].strangers.append((message, key.name))


def _load_sealed(scenes: Mapping[uuid.UUID, Scene], messages: QuerySet[Message]) -> None:
    """What is sealed, what no key opened though its session is known, and what stands open where others are sealed."""
    ordered = messages.order_by(*ORDER)
    sealed = messages.filter(FLAGGED, _IS_SEALED)
    firsts = sealed.order_by("conversation_id", "sender", "receivers", *ORDER[1:])
    firsts = firsts.distinct("conversation_id", "sender", "receivers")
    # As an array they are found once; joined, once for each message where the table's statistics are old.
    for message in see_all(ordered.filter(IsAny("id", ArraySubquery(firsts.values("pk"))))):
        scenes[message.conversation].sealed.append(message)
    if where := [pk for pk, scene in scenes.items() if scene.sealed]:
        refused = ordered.filter(FLAGGED, _IS_SEALED, IsAny("conversation_id", where), trial__is_refused=True)
        for message in see_all(refused):
            scenes[message.conversation].refused.append(message)
    agreed = {pk: scene for pk, scene in scenes.items() if scene.sealed or _is_agreed(scene)}
    for message in see_all(_find_open(agreed, ordered)) if agreed else ():
        scenes[message.conversation].open.append(message)


def _is_agreed(scene: Scene) -> bool:
    entries = (entry for _, said in scene.pacts for entry in said)
    return any(isinstance(value, dict) and value.get("level") == _ENCRYPTED for _, _, value, *_ in entries)


def _find_open(agreed: Mapping[uuid.UUID, Scene], ordered: QuerySet[Message]) -> QuerySet[Message]:
    """What can be in clear against what was agreed: what is said after that, in its dialect. Handshakes are open."""
    before = [
        message for scene in agreed.values() for message in (*scene.sealed, *(shaking for shaking, _ in scene.pacts))
    ]
    since = min(message.at for message in before)
    after = Q(order_time__gt=since, dialect__in={message.dialect for message in before})
    has_content = has_term(terms.term("has", "content"))
    return ordered.filter(
        IsAny("conversation_id", agreed), after | Q(performative="handshake"), has_content, ~Q(_IS_SEALED)
    )
