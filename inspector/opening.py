"""Opening: sealed messages tried with the keys that a workspace holds, apart from resolving, in the background; and the
reveal log, what was opened of messages, for those who may see it, and the record of who saw it.

A message is told without keys; that is stored, indexed and signed. Beside it stands, for each key that opens it, what
telling says otherwise with the key, sealed under that key. Nothing that was opened is part of a context, so that no
other message can say it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Length, NullIf

from dialects import Context, Key, KeyList, Keys, Message, NoKeys, Reading, tell, to_json_type
from inspector.accounts.models import ApiKey, Membership, User, Workspace
from inspector.database import cut_windows, make_storable
from inspector.intake.jobs import wake_workers
from inspector.intake.models import Job, Record
from inspector.intake.readings import conceal_told
from inspector.keyring.encryption import HeldKey, KeyringError, Ring, load_ring, unseal_keys
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.keyring.services import add_keys, note_events, release_key
from inspector.keyring.spellings import PlainKey, SpellingError, read_public
from inspector.threads.dependencies import DECODER_VERSION
from inspector.threads.inserting import Fence, ask_to_open, hold_rows, read_record
from inspector.threads.models import Message as MessageRow
from inspector.threads.models import OpenedMessage, OpeningTrial
from inspector.trail.acting import Acting
from inspector.trail.services import Thing, record_deed

_BATCH, _BATCH_BYTES = 200, 4 * 1024 * 1024
# The codecs try at most 64 keys on one message, so that a call that ends there would look like one that has opened it.
_AT_ONCE = 60
# A log that shows more public keys than these in one conversation means to keep us busy.
_MAX_PEERS = 256


@transaction.atomic
def escrow_keys(
    *, membership: Membership, keys: Sequence[PlainKey], label: str, expires_at: datetime | None = None
) -> tuple[list[EscrowedKey], int]:
    """Keep keys (`add_keys`), and have all that is sealed tried with them; the keys, and in how many conversations."""
    added = add_keys(membership=membership, keys=keys, label=label, expires_at=expires_at)
    return added, _try_all(membership.workspace_id)


@transaction.atomic
def open_with_released(*, membership: Membership, key: EscrowedKey) -> int:
    """Release a key (`release_key`), and have all that is sealed tried with it; in how many conversations."""
    release_key(membership=membership, key=key)
    return _try_all(membership.workspace_id)


def _try_all(workspace_id: uuid.UUID) -> int:
    count = ask_to_open(workspace_id=workspace_id)
    wake_workers()
    return count


class Attempt(NamedTuple):
    """What the sealed messages of one conversation are tried with."""

    conversation_id: uuid.UUID
    workspace_id: uuid.UUID
    ring: Ring
    peers: tuple[bytes, ...]

    @classmethod
    def begin(cls, *, conversation_id: uuid.UUID, workspace_id: uuid.UUID) -> Attempt:
        """The ring as it is now, and the peers as the conversation has shown them."""
        ring = load_ring(workspace_id=workspace_id)
        return cls(conversation_id, workspace_id, ring, find_peers(conversation_id) if ring.needs_peers else ())

    @property
    def digest(self) -> bytes:
        """What tells whether a message was tried with just these."""
        said = [DECODER_VERSION, *sorted(str(key.row.pk) for key in self.ring.keys), *map(bytes.hex, self.peers)]
        return hashlib.sha256("\n".join(said).encode()).digest()[:16]


def find_peers(conversation_id: uuid.UUID) -> tuple[bytes, ...]:
    """The X25519 public keys that the handshakes of a conversation show, in an order of their own."""
    rows = MessageRow.objects.shown().filter(conversation_id=conversation_id, established__contains='["public-key",')
    found = set()
    for established in rows.values_list("established", flat=True).iterator():
        for kind, *rest in json.loads(established):
            if kind == "public-key" and len(rest) > 1 and isinstance(rest[1], str):
                try:
                    found.add(read_public(rest[1]))
                except SpellingError:
                    continue  # What a log shows as a key may be anything; the handshake's own notes say so.
    return tuple(sorted(found)[:_MAX_PEERS])


# The dialect that a message's record is read in: see `Message.read_in`.
_READ_IN: Final = Coalesce(NullIf("carrier", Value("")), "dialect")


def open_batch(attempt: Attempt, fence: Fence) -> bool:
    """Try the next messages of a conversation that were not tried with just these keys; whether there were any."""
    batch = _find_untried(attempt) if attempt.ring.keys else []
    if not batch:
        return False
    records = Record.objects.in_bulk({record_id for _, record_id, *_ in batch})
    found: dict[uuid.UUID, dict[HeldKey, bytes]] = {}
    refused: set[uuid.UUID] = set()
    for (record_id, dialect), rows in groupby(batch, key=itemgetter(1, 3)):
        opened, unopened = open_record(records[record_id], dialect, attempt.ring.keys, attempt.peers)
        for message_id, _, part, _, _ in rows:
            found[message_id] = opened.get(part, {})
            if part in unopened:
                refused.add(message_id)
    with transaction.atomic():
        fence()
        _write(attempt, found, refused)
    return True


def _find_untried(attempt: Attempt) -> list[tuple[uuid.UUID, uuid.UUID, int, str, int]]:
    rows = (
        MessageRow.objects.filter(conversation_id=attempt.conversation_id, is_sealed=True)
        .filter(Q(trial__isnull=True) | ~Q(trial__digest=attempt.digest))
        .order_by("record_id", "part")
        .values_list("id", "record_id", "part", _READ_IN, Length("record__source"))
    )
    windows = cut_windows(rows[:_BATCH], size_of=itemgetter(4), max_items=_BATCH, max_bytes=_BATCH_BYTES)
    return next(windows, [])


def open_record(
    record: Record, dialect: str, keys: Sequence[HeldKey], peers: Sequence[bytes]
) -> tuple[dict[int, dict[HeldKey, bytes]], set[int]]:
    """What each key opens of a record, as JSON text, by part; and the parts that refuse a key of their session."""
    reading = read_record(record, dialect=dialect).reading
    sealed = {message.part: message for message in _tell(reading, NoKeys())}
    options = [(held, key) for held in keys for key in held.list_codec_keys(peers)]
    found: dict[int, dict[HeldKey, bytes]] = defaultdict(dict)
    for start in range(0, len(options), _AT_ONCE):
        trier = _Trier(options[start : start + _AT_ONCE])
        while opened := trier.match(_tell(reading, trier)):
            for message, held, key in opened:
                found[message.part].setdefault(held, _write_opened(sealed[message.part], message, key))
    sessions = {key.session for _, key in options if key.session is not None}
    refused = {part for part, message in sealed.items() if part not in found and message.security.session in sessions}
    return found, refused


def _tell(reading: Reading, keys: Keys) -> Sequence[Message]:
    # The dialect was decided with the conversation; a guess must not be guessed again.
    decided = reading.replace(candidates=())
    return conceal_told(tell(decided, Context(), keys), decided).messages


class _Trier:
    """A resolver that knows which of its keys opened which message, and gives that one no more."""

    def __init__(self, options: Sequence[tuple[HeldKey, Key]]) -> None:
        self._options = options
        # By the number of the call, which is the same for each telling of a record.
        self._given: list[tuple[HeldKey, Key] | None] = []
        self._spent: dict[int, set[uuid.UUID]] = defaultdict(set)

    def find(self, session: str | None) -> Iterator[Key]:
        """The keys for a session one by one: whoever stops asking has found the one that opens."""
        call = len(self._given)
        self._given.append(None)
        for held, key in self._options:
            if key.session in (None, session) and held.row.pk not in self._spent[call]:
                self._given[call] = held, key
                yield key
        self._given[call] = None

    def match(self, messages: Sequence[Message]) -> list[tuple[Message, HeldKey, Key]]:
        """The messages of the telling just done that were opened, each with its key. The next telling starts anew."""
        calls = [(call, given) for call, given in enumerate(self._given) if given is not None]
        opened = [message for message in messages if message.security.opened]
        matched = []
        for message, (call, (held, key)) in zip(opened, calls, strict=True):
            self._spent[call].add(held.row.pk)
            matched.append((message, held, key))
        self._given = []
        return matched


def _write_opened(sealed: Message, opened: Message, key: Key) -> bytes:
    """What telling says otherwise with a key, as canonical JSON text; None is what it does not say any more."""
    before, after = ({name: to_json_type(value) for name, value in each.given().items()} for each in (sealed, opened))
    names = (before.keys() | after.keys()) - {"notes"}
    said = {name: after.get(name) for name in names if before.get(name) != after.get(name)}
    notes = [note.to_dict() for note in opened.notes if note not in sealed.notes]
    found = {"message": said, "notes": notes, "peer": key.peer.hex() if key.peer else ""}
    return json.dumps(found, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=str).encode()


def _write(
    attempt: Attempt, found: Mapping[uuid.UUID, Mapping[HeldKey, bytes]], refused: Collection[uuid.UUID]
) -> None:
    """Bring the rows of these messages in line with what was found; messages and keys that are gone are passed over."""
    # Kept from being deleted until the transaction ends.
    alive = [pk for (pk,) in hold_rows("threads_message", found, lock="KEY SHARE")]
    keys = {
        pk for (pk,) in hold_rows("keyring_escrowedkey", (key.row.pk for key in attempt.ring.keys), lock="KEY SHARE")
    }
    rows = OpenedMessage.objects.filter(message_id__in=alive)
    before = {(row.message_id, row.key_id): row for row in rows.defer("sealed")}
    fresh: list[OpenedMessage] = []
    news: dict[EscrowedKey, list[uuid.UUID]] = defaultdict(list)
    for message_id in alive:
        for held, text in found[message_id].items():
            if held.row.pk not in keys:
                continue
            digest = held.digest(text)
            known = before.pop((message_id, held.row.pk), None)
            if known is None:
                news[held.row].append(message_id)
            elif bytes(known.told_digest) == digest:
                continue
            made = {"workspace_id": held.row.workspace_id, "message_id": message_id, "key": held.row}
            fresh.append(OpenedMessage(**made, sealed=held.seal(text, message_id), told_digest=digest))
    # A key that could not be used this time keeps what it opened before.
    gone = [row.pk for row in before.values() if row.key_id in keys]
    OpenedMessage.objects.filter(pk__in=gone).delete()
    OpenedMessage.objects.bulk_create(
        fresh,
        update_conflicts=True,
        unique_fields=["message", "key"],
        update_fields=["sealed", "told_digest", "opened_at"],
    )
    said = {"workspace_id": attempt.workspace_id, "digest": attempt.digest}
    OpeningTrial.objects.bulk_create(
        [OpeningTrial(message_id=pk, is_refused=pk in refused, **said) for pk in alive],
        update_conflicts=True,
        unique_fields=["message"],
        update_fields=["digest", "is_refused"],
    )
    note_events(
        kind=KeyEvent.Kind.OPENED,
        counts={key: len(ids) for key, ids in news.items()},
        messages=news,
        conversation_id=attempt.conversation_id,
    )


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


def find_openings_of(*, messages: Sequence[MessageRow]) -> dict[uuid.UUID, Opening]:
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
    conversations = sorted(set(MessageRow.objects.filter(pk__in=ids).values_list("conversation_id", flat=True)))
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
    messages = MessageRow.objects.filter(workspace_id=record.workspace_id, record=record).order_by("part")
    found = list(messages.values_list("pk", "conversation_id")[:_MAX_NAMED])
    about = [*dict.fromkeys(conversation for _, conversation in found), *(pk for pk, _ in found)]
    named = Thing("record", record.pk, "")
    record_deed("raw.downloaded", workspace_id=record.workspace_id, by=by, on=named, about=about)


def find_opened_ids(*, messages: Sequence[MessageRow]) -> set[uuid.UUID]:
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
