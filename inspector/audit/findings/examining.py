"""Examining: what the rules find in resolved conversations. A pure function of what resolving stored.

How a workspace has set a rule decides what is kept of it: whether it is on, how grave it is, what is suppressed;
`storing` says how. The sweep notes what became due since, puts it into its queues, and announces it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import F, Q

from inspector.browsing.directory import find_changed_keys, find_next_shown
from inspector.browsing.transcripts import say_changed_key
from inspector.database import IsAny, make_storable
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.threads.dependencies import DECODER_VERSION, name_form
from inspector.threads.inserting import hold_conversations, mark_conversations
from inspector.threads.models import Block, Conversation, Message
from inspector.tokens import hide_tokens

from ..models.findings import Examination, Finding, RuleChange, Suppression
from ..reviews.bindings import check
from ..reviews.queues import fill_by_findings
from ..rules import BY_NOTE, RULES, VERSION, Hit, Rule
from .loading import load_scenes
from .scene import Noted, Scene
from .storing import Found, find_changed, grade_conversations, note_due, write_findings


@dataclass(frozen=True, slots=True)
class Settings:
    """The latest change of each rule that was ever set, and the suppressions in force."""

    changes: Mapping[str, RuleChange]
    suppressions: Mapping[str, Sequence[Suppression]]

    def is_on(self, rule: str) -> bool:
        """Whether a rule is examined."""
        return rule not in self.changes or self.changes[rule].is_on

    def find_severity(self, rule: Rule) -> int:
        """How grave what the rule finds is here."""
        change = self.changes.get(rule.code)
        return rule.rank if change is None or change.severity is None else change.severity

    def is_suppressed(self, rule: str, conversation_id: uuid.UUID, sender: str) -> bool:
        """Whether what the rule finds of this sender, in this conversation, is not to be shown."""
        return any(
            (each.conversation_id is None or each.conversation_id == conversation_id) and each.sender in ("", sender)
            for each in self.suppressions.get(rule, ())
        )


def load_settings(*, workspace_id: uuid.UUID) -> Settings:
    """What is in force in a workspace, in two statements."""
    rows = RuleChange.objects.filter(workspace=workspace_id).order_by("rule", "-at", "-id").distinct("rule")
    suppressions: dict[str, list[Suppression]] = {}
    for each in Suppression.objects.filter(workspace=workspace_id, lifted_at=None):
        suppressions.setdefault(each.rule, []).append(each)
    return Settings({row.rule: row for row in rows}, suppressions)


def list_changes(*, workspace_id: uuid.UUID, rule: str, limit: int = 50) -> list[RuleChange]:
    """How a rule was set, the latest first, each with who did."""
    rows = RuleChange.objects.select_related("by").filter(workspace=workspace_id, rule=rule)
    return list(rows.order_by("-at", "-id")[:limit])


def list_suppressions(*, workspace_id: uuid.UUID, rule: str, limit: int = 50) -> list[Suppression]:
    """What is suppressed of a rule, and what was: those in force first, then the latest."""
    rows = Suppression.objects.select_related("by", "lifted_by", "conversation")
    rows = rows.filter(workspace=workspace_id, rule=rule)
    return list(rows.order_by(F("lifted_at").desc(nulls_first=True), "-at", "-id")[:limit])


def find_suppression(*, workspace_id: uuid.UUID, suppression_id: uuid.UUID) -> Suppression | None:
    """The suppression of that id in this workspace, or None."""
    return Suppression.objects.filter(workspace=workspace_id, pk=suppression_id).first()


# By which decoders and rules a conversation was examined.
EXAMINED_BY: Final = f"{DECODER_VERSION}/{VERSION}"
MAX_TEXT_LENGTH: Final = 2000
_OUTDATED_AT_ONCE: Final = 1000
# The rule that compares conversations with each other.
_REKEYED: Final = "key-changed"
# Of one rule no more are kept of a conversation; the last one says how many more there are.
MAX_OF_A_RULE: Final = 1000


class Cited(NamedTuple):
    """A message that a finding is about, as its row and its record have it."""

    id: uuid.UUID
    record_id: uuid.UUID
    identity: bytes
    part: int
    sender: str
    order_time: datetime


def examine(
    *,
    conversations: Sequence[Conversation],
    finish: Callable[[], None],
) -> None:
    """Examine conversations of one workspace, and keep what comes out.

    Args:
        conversations: one, or several that are small.
        finish: called at the end of the writing transaction, so that their jobs end together with the work; raises when
            another worker has taken over.
    """
    ids = [each.pk for each in conversations]
    workspace_id = conversations[0].workspace_id
    settings = load_settings(workspace_id=workspace_id)
    # First, so that it is not lost where this is broken off: what it needs was stored by resolving.
    if settings.is_on(_REKEYED):
        _ask_next_shown(conversations)
    found = find(load_scenes(conversations), settings)
    with transaction.atomic():
        hold_conversations(ids)
        write_findings(
            [each for several in found.values() for each in several],
            conversations=conversations,
            version=EXAMINED_BY,
            told_otherwise=_find_told_otherwise(ids),
        )
        check(conversations=set(ids))
        fill_by_findings(workspace_id=workspace_id, conversations=set(ids))
        finish()


@transaction.atomic
def _ask_next_shown(conversations: Sequence[Conversation]) -> None:
    """Have those conversations examined again whose keys are compared with keys of these, and come out otherwise."""
    following = find_next_shown(conversations)
    if not following:
        return
    stored = Finding.objects.filter(conversation__in=following, rule=_REKEYED, holds=True)
    rows = list(stored.only("conversation_id", "text", "related"))
    full = {pk for pk, count in Counter(row.conversation_id for row in rows).items() if count >= MAX_OF_A_RULE}
    told = {(row.conversation_id, row.text, record) for row in rows for record, _ in row.list_related()}
    changed = find_changed_keys(following)
    expected = {
        (each.conversation, make_storable(say_changed_key(each))[:MAX_TEXT_LENGTH], each.other_record)
        for each in changed
    }
    examined = set(Examination.objects.filter(conversation__in=following).values_list("conversation", flat=True))
    if stale := ({pk for pk, *_ in told ^ expected} & examined) - full:
        jobs.ask(kind=Job.Kind.EXAMINE, subjects=stale, workspace_id=conversations[0].workspace_id)


def _find_told_otherwise(conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Which of these conversations were told by other decoders, and by which: they are to be told anew first.

    One that waits to be examined while the product is upgraded is such a case.
    """
    others = Block.objects.filter(IsAny("conversation_id", conversation_ids)).exclude(form=name_form())
    return dict(others.order_by("conversation_id").values_list("conversation_id", "form"))


def ask_outdated() -> None:
    """Have conversations examined again that other decoders or rules examined, some at each sweep.

    Where it was another decoder they are resolved again first, which reads their records anew and leads to examining.
    """
    outdated = Q(version__lt=EXAMINED_BY) | Q(version__gt=EXAMINED_BY)
    columns = ("workspace_id", "conversation_id", "version")
    by_workspace: dict[tuple[uuid.UUID, bool], list[uuid.UUID]] = {}
    for workspace_id, conversation_id, version in Examination.objects.filter(outdated).values_list(*columns)[
        :_OUTDATED_AT_ONCE
    ]:
        is_told_anew = not version.startswith(f"{DECODER_VERSION}/")
        by_workspace.setdefault((workspace_id, is_told_anew), []).append(conversation_id)
    for (workspace_id, is_told_anew), subjects in by_workspace.items():
        kinds = (Job.Kind.EXAMINE, Job.Kind.RESOLVE)
        waiting = Job.objects.filter(kind__in=kinds, subject__in=subjects).exclude(state=Job.State.DONE)
        fresh = set(subjects) - set(waiting.values_list("subject", flat=True))
        if is_told_anew:
            with transaction.atomic():
                mark_conversations(conversation_ids=fresh, workspace_id=workspace_id)
                _hide_names(fresh)
        else:
            jobs.ask(kind=Job.Kind.EXAMINE, subjects=fresh, workspace_id=workspace_id)


def _hide_names(conversation_ids: Iterable[uuid.UUID]) -> None:
    """Take tokens out of names of conversations from before tokens were looked for: resolving never renames."""
    for pk, name in Conversation.objects.filter(pk__in=conversation_ids).values_list("pk", "native_id"):
        hidden = hide_tokens(name)
        if hidden != name:
            Conversation.objects.filter(pk=pk).update(native_id=hidden)


def find(scenes: Sequence[Scene], settings: Settings) -> dict[uuid.UUID, list[Found]]:
    """What the rules that are switched on find in each of these conversations, ready to be stored."""
    hits = {scene.conversation.pk: list(_bound(_look(scene, settings))) for scene in scenes}
    messages = _load_messages(hit for pairs in hits.values() for _, hit in pairs)
    return {
        scene.conversation.pk: [
            _make(scene.conversation, rule, hit, messages, settings)
            for rule, hit in hits[scene.conversation.pk]
            # A message that was withdrawn meanwhile has its conversation resolved, and examined, again.
            if hit.message in messages
        ]
        for scene in scenes
    }


def _look(scene: Scene, settings: Settings) -> Iterator[tuple[Rule, Hit]]:
    for noted in scene.noted:
        yield from (pair for pair in _gather(noted) if settings.is_on(pair[0].code))
    for rule in RULES.values():
        if rule.look is not None and settings.is_on(rule.code):
            yield from ((rule, hit) for hit in rule.look(scene))


def _gather(noted: Noted) -> Iterator[tuple[Rule, Hit]]:
    """One hit for each rule that gathers notes of a message; it says what the gravest of them says."""
    by_rule: dict[str, list[Mapping[str, Any]]] = {}
    for note in noted.notes:
        rule = BY_NOTE.get(note["code"])
        if rule is not None:
            by_rule.setdefault(rule.code, []).append(note)
    for code, notes in by_rule.items():
        texts = list(dict.fromkeys(note["text"] for note in notes))
        spans = [note["span"] for note in notes if note.get("span")]
        cites = list(dict.fromkeys(note["cites"] for note in notes if note.get("cites")))
        more = f"; and {len(texts) - 3} more" if len(texts) > 3 else ""
        yield (
            RULES[code],
            Hit(
                message=noted.message.id,
                text="; ".join(texts[:3]) + more,
                cites="; ".join(cites),
                span=tuple(spans[0]) if spans else None,
            ),
        )


def _bound(hits: Iterable[tuple[Rule, Hit]]) -> Iterator[tuple[Rule, Hit]]:
    counts: dict[str, int] = {}
    for rule, hit in hits:
        counts[rule.code] = counts.get(rule.code, 0) + 1
        if counts[rule.code] <= MAX_OF_A_RULE:
            yield rule, hit


def _load_messages(hits: Iterable[Hit]) -> dict[uuid.UUID, Cited]:
    ids = {each for hit in hits for each in (hit.message, *hit.related)}
    if not ids:
        return {}
    columns = ("id", "record_id", "record__identity", "part", "sender", "order_time")
    rows = Message.objects.shown().filter(IsAny("id", ids)).values_list(*columns)
    return {row[0]: Cited._make(row) for row in rows}


def _make(
    conversation: Conversation, rule: Rule, hit: Hit, messages: Mapping[uuid.UUID, Cited], settings: Settings
) -> Found:
    message = messages[hit.message]
    related = [(messages[each], hit.related_spans.get(each)) for each in hit.related if each in messages]
    # The record stands by its content, so that a finding is the same one in every store.
    said = [rule.code, bytes(message.identity).hex(), message.part, hit.detail]
    return Found(
        conversation=conversation,
        key=hashlib.sha256(json.dumps(said).encode()).digest(),
        rule=rule.code,
        severity=settings.find_severity(rule),
        text=make_storable(hit.text)[:MAX_TEXT_LENGTH],
        cites=make_storable(hit.cites or rule.cites)[:MAX_TEXT_LENGTH],
        span=json.dumps(list(hit.span)) if hit.span else "",
        related=json.dumps([[each.record_id.hex, each.part, *([span] if span else [])] for each, span in related])
        if related
        else "",
        record_id=message.record_id,
        part=message.part,
        sender=message.sender,
        at=message.order_time,
        due_at=hit.due_at,
        is_suppressed=settings.is_suppressed(rule.code, conversation.pk, message.sender),
    )


# So many findings are looked at in one round, and so many rounds at one sweep: what is left waits for the next.
MAX_AT_ONCE: Final = 500
MAX_ROUNDS: Final = 8


def note_all_due() -> int:
    """Note what is due in all workspaces, some at each sweep; in how many conversations something was noted."""
    count = 0
    for _ in range(MAX_ROUNDS):
        by_workspace: dict[uuid.UUID, set[uuid.UUID]] = {}
        changed = find_changed(most=MAX_AT_ONCE)
        for workspace_id, conversation_id in changed:
            by_workspace.setdefault(workspace_id, set()).add(conversation_id)
        for workspace_id, conversations in sorted(by_workspace.items()):
            _note(workspace_id, conversations)
            count += len(conversations)
        if not changed:
            break
    return count


@transaction.atomic
def _note(workspace_id: uuid.UUID, conversations: Collection[uuid.UUID]) -> None:
    hold_conversations(conversations)
    note_due(conversations=conversations)
    grade_conversations(conversations)
    fill_by_findings(workspace_id=workspace_id, conversations=conversations)
