"""The reveal log: what was opened of messages, for those who may see it, and the record of who saw it."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from dialects import KeyList, Keys
from inspector.accounts.models import ApiKey, User, Workspace
from inspector.intake.models import Job, Record
from inspector.intake.text import make_storable
from inspector.keyring.encryption import KeyringError
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.keyring.ring import unseal_keys
from inspector.keyring.services import note_events
from inspector.threads.models import Message, OpenedMessage
from inspector.trail.acting import Acting
from inspector.trail.services import Thing, record_deed

# So many messages of a record are named in the trail of its bytes.
_MAX_NAMED = 500


class Opening(NamedTuple):
    """What keys have opened of one message: what telling says otherwise with them, and what opens its field tree."""

    labels: tuple[str, ...]
    keys: tuple[EscrowedKey, ...]
    said: Mapping[str, Any]
    notes: Sequence[Mapping[str, Any]]
    resolver: Keys

    @property
    def english(self) -> str:
        return make_storable("".join(segment["text"] for segment in self.said.get("english") or ()))

    def lay_over(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the message as told, with what was opened in the place of what was sealed."""
        told = {**body["message"], **self.said}
        told["notes"] = [*(told.get("notes") or ()), *self.notes]
        return {**body, "message": {name: value for name, value in told.items() if value is not None}}


def find_openings_of(*, messages: Sequence[Message]) -> dict[uuid.UUID, Opening]:
    """What was opened of these messages, by their ids; what cannot be unsealed now is left out. Only for readers who
    may see it; `disclose` notes that they did."""
    sealed = [message.pk for message in messages if message.is_sealed]
    rows = list(_in_force().select_related("key").filter(message_id__in=sealed)) if sealed else []
    held = {key.row.pk: key for key in unseal_keys(list({row.key_id: row.key for row in rows}.values())).keys}
    found: dict[uuid.UUID, list[tuple[EscrowedKey, Any]]] = defaultdict(list)
    codec_keys: dict[uuid.UUID, list[Any]] = defaultdict(list)
    for row in rows:
        key = held.get(row.key_id)
        if key is None:
            continue
        try:
            text = json.loads(key.unseal(bytes(row.sealed), row.message_id))
        except KeyringError:
            continue  # The row was changed from outside: what it says is nobody's, and the message stays sealed.
        found[row.message_id].append((key.row, text))
        codec_keys[row.message_id] += key.list_codec_keys([bytes.fromhex(text["peer"])] if text["peer"] else [])
    openings = {}
    for pk, pairs in found.items():
        pairs.sort(key=lambda pair: (pair[0].label, pair[0].fingerprint, pair[0].pk))
        labels, text = tuple(dict.fromkeys(key.label for key, _ in pairs)), pairs[0][1]
        keys = tuple(key for key, _ in pairs)
        openings[pk] = Opening(labels, keys, text["message"], text["notes"], KeyList(codec_keys[pk]))
    return openings


def _in_force() -> QuerySet[OpenedMessage]:
    """What keys have opened that may open it still: a key that has expired may wait for being removed."""
    return OpenedMessage.objects.filter(key__in=EscrowedKey.objects.in_force())


def disclose(
    openings: Mapping[uuid.UUID, Opening], *, door: str, by: User | None = None, api_key: ApiKey | None = None
) -> None:
    """Note that somebody was shown what was opened of these messages; nothing where there are none."""
    messages: dict[EscrowedKey, list[uuid.UUID]] = defaultdict(list)
    for message_id, opening in openings.items():
        for key in opening.keys:
            messages[key].append(message_id)
    if not messages:
        return
    ids, keys = list(openings), list(messages)
    conversations = sorted(set(Message.objects.filter(pk__in=ids).values_list("conversation_id", flat=True)))
    # One look is one deed, whatever it shows; the keyring's own trace says which key opened which message.
    named = Thing("message", ids[0], "") if len(ids) == 1 else Thing("messages", "", "")
    about = [*conversations, *ids, *(key.pk for key in keys)]
    details = {"at": KeyEvent.Door(door).label, "keys": sorted({key.label for key in keys}), "count": len(ids)}
    counts = {key: len(each) for key, each in messages.items()}
    with transaction.atomic():
        note_events(kind=KeyEvent.Kind.SHOWN, counts=counts, by=by, api_key=api_key, door=door, messages=messages)
        record_deed("opened.shown", workspace_id=keys[0].workspace_id, on=named, about=about, details=details)


def disclose_source(*, record: Record, by: Acting) -> None:
    """Record that somebody is given the exact bytes of a record, whatever they hold; call it before the first byte."""
    messages = Message.objects.filter(workspace_id=record.workspace_id, record=record).order_by("part")
    found = list(messages.values_list("pk", "conversation_id")[:_MAX_NAMED])
    about = [*dict.fromkeys(conversation for _, conversation in found), *(pk for pk, _ in found)]
    named = Thing("record", record.pk, "")
    record_deed("raw.downloaded", workspace_id=record.workspace_id, by=by, on=named, about=about)


def find_opened_ids(*, messages: Sequence[Message]) -> set[uuid.UUID]:
    """Which of these messages somebody with the permission could read."""
    sealed = [message.pk for message in messages if message.is_sealed]
    rows = _in_force().filter(message_id__in=sealed).values_list("message_id", flat=True)
    return set(rows) if sealed else set()


def count_opened(*, workspace: Workspace) -> dict[uuid.UUID, int]:
    """How many messages each key of a workspace opens."""
    rows = OpenedMessage.objects.filter(key__workspace=workspace)
    return dict(rows.values_list("key_id").annotate(count=Count("id")))


def count_unreadable_without(*, key: EscrowedKey) -> tuple[int, int]:
    """How many messages the key opens, and how many of them no other key opens."""
    rows = OpenedMessage.objects.filter(key=key)
    others = OpenedMessage.objects.filter(message_id=OuterRef("message_id")).exclude(key=key)
    return rows.count(), rows.filter(~Exists(others)).count()


def count_opening(*, workspace: Workspace) -> int:
    """How many conversations are still to be tried with the keys."""
    states = [Job.State.QUEUED, Job.State.RUNNING]
    return Job.objects.filter(workspace=workspace, kind=Job.Kind.OPEN, state__in=states).count()


def find_opening_failure(*, workspace: Workspace) -> str:
    """Why conversations were given up that were to be tried with the keys; empty where none was."""
    rows = Job.objects.filter(workspace=workspace, kind=Job.Kind.OPEN, state=Job.State.DEAD)
    return rows.order_by("-updated_at").values_list("failure", flat=True).first() or ""
