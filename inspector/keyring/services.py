"""The keyring: keys added and removed, what is noted of them, and reads of both. No secret is read here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from inspector.accounts.models import ApiKey, Membership, Role, User, Workspace
from inspector.accounts.workspaces import require_owner, set_choice
from inspector.database import take_page
from inspector.trail.services import Thing, record_deed

from .encryption import KeyEncryptionKey, KeyringError, hold_ring, load_keks, rewrap_key, seal_key
from .models import EscrowedKey, KeyEvent, PeriodKey
from .periods import ensure_kek, rewrap_period_key
from .spellings import PlainKey

MAX_KEYS = 500
MAX_LABEL_LENGTH = 120


@transaction.atomic
def add_keys(
    *, membership: Membership, keys: Sequence[PlainKey], label: str, expires_at: datetime | None = None
) -> list[EscrowedKey]:
    """Keep keys, all or none of them. What they open is the business of whoever calls this.

    Args:
        membership: who adds them; an owner.
        keys: at least one.
        label: what those are called that bring no name of their own.
        expires_at: when they are removed; none where somebody has to.

    Raises:
        PermissionDenied: for anybody but an owner.
        ValidationError: for a key that is here already, for too many, without a label, for a time that is over, and
            where the keyring cannot be used.
    """
    if not membership.is_owner:
        raise PermissionDenied("only an owner adds keys")
    workspace, now = membership.workspace, timezone.now()
    if expires_at is not None and expires_at <= now:
        raise ValidationError("The key would expire before it is kept: name a later day.")
    hold_ring(workspace.pk, is_shared=False)
    # As it is now, and not as it was when the page was asked for.
    waits = Workspace.objects.values_list("releases_keys_by_two", flat=True).get(pk=workspace.pk)
    released = {} if waits else {"released_by": membership.user, "released_at": now}
    kek = _load_kek()
    here = {_identify(row): row.label for row in EscrowedKey.objects.filter(workspace=workspace)}
    if len(here) + len(keys) > MAX_KEYS:
        raise ValidationError(f"A workspace holds at most {MAX_KEYS} keys: remove unused ones.")
    added = []
    for number, plain in enumerate(keys, 1):
        row = EscrowedKey(
            workspace=workspace,
            added_by=membership.user,
            label=_name(plain, label, number, len(keys)),
            expires_at=expires_at,
            **released,
        )
        seal_key(row, plain, kek)
        if _identify(row) in here:
            raise ValidationError(f"This key is here already, as “{here[_identify(row)]}”. Nothing was added.")
        here[_identify(row)] = row.label
        added.append(row)
    EscrowedKey.objects.bulk_create(added)
    note_events(kind=KeyEvent.Kind.ADDED, counts=dict.fromkeys(added, 0), by=membership.user)
    for row in added:
        details = {"kind": row.kind, "fingerprint": row.fingerprint, "session": row.session, "waits": waits}
        record_deed("key.added", workspace_id=workspace.pk, by=membership, on=_name_row(row), details=details)
    return added


def _load_kek() -> KeyEncryptionKey:
    """The key-encryption key.

    Raises:
        ValidationError: where there is none that can be used.
    """
    try:
        return ensure_kek()
    except KeyringError as error:
        raise ValidationError(str(error)) from None


def _name_row(row: EscrowedKey) -> Thing:
    return Thing("key", row.pk, row.label)


def _identify(row: EscrowedKey) -> tuple[str, str, bytes]:
    return row.fingerprint, row.session, bytes(row.peer)


def _name(plain: PlainKey, label: str, number: int, count: int) -> str:
    name = plain.label or (f"{label} ({number})" if label and count > 1 else label)
    name = " ".join(name.replace("\x00", "").split())
    if not name:
        raise ValidationError("Give the key a label: whose it is, and what it is for.")
    if len(name) > MAX_LABEL_LENGTH:
        raise ValidationError(f"A label has at most {MAX_LABEL_LENGTH} characters.")
    return name


@transaction.atomic
def remove_key(*, membership: Membership, key: EscrowedKey, unreadable: int) -> None:
    """Remove a key for good. What it opened goes with it, by the database's own rule.

    Args:
        membership: who removes it; an owner of its workspace.
        unreadable: how many messages nobody can read any more after it.

    Raises:
        PermissionDenied: for anybody but an owner of its workspace.
        ValidationError: where it is gone already.
    """
    if not membership.is_owner or membership.workspace_id != key.workspace_id:
        raise PermissionDenied("only an owner of this workspace removes keys")
    named = _name_row(key)
    if EscrowedKey.objects.filter(pk=key.pk).delete()[0] == 0:
        raise ValidationError("somebody else has removed it already")
    note_events(kind=KeyEvent.Kind.REMOVED, counts={key: unreadable}, by=membership.user)
    details = {"fingerprint": key.fingerprint, "unreadable_messages": unreadable}
    record_deed("key.removed", workspace_id=key.workspace_id, by=membership, on=named, details=details)


@transaction.atomic
def release_key(*, membership: Membership, key: EscrowedKey) -> None:
    """Let a key that a second owner has to release open messages. What it opens is the business of whoever calls this.

    Raises:
        PermissionDenied: for anybody but an owner of its workspace.
        ValidationError: for whoever added it, and where it is released already, expired or gone.
    """
    if not membership.is_owner or membership.workspace_id != key.workspace_id:
        raise PermissionDenied("only an owner of this workspace releases keys")
    if membership.user == key.added_by:
        raise ValidationError("The owner who added a key cannot release it: another owner has to.")
    hold_ring(key.workspace_id, is_shared=False)
    now = timezone.now()
    waiting = EscrowedKey.objects.filter(pk=key.pk, released_at=None).exclude(expires_at__lte=now)
    if not waiting.update(released_by=membership.user, released_at=now):
        raise ValidationError("The key does not wait for a release any more.")
    note_events(kind=KeyEvent.Kind.RELEASED, counts={key: 0}, by=membership.user)
    record_deed("key.released", workspace_id=key.workspace_id, by=membership, on=_name_row(key))


@transaction.atomic
def remove_expired_keys() -> int:
    """Remove the keys whose time is over, with what they opened; how many."""
    expired = EscrowedKey.objects.select_for_update(skip_locked=True).filter(expires_at__lte=timezone.now())
    rows = list(expired.order_by("pk"))
    EscrowedKey.objects.filter(pk__in=[row.pk for row in rows]).delete()
    note_events(kind=KeyEvent.Kind.EXPIRED, counts=dict.fromkeys(rows, 0))
    for row in rows:
        details = {"fingerprint": row.fingerprint}
        record_deed("key.expired", workspace_id=row.workspace_id, on=_name_row(row), details=details)
    return len(rows)


@transaction.atomic
def set_two_for_keys(workspace: Workspace, by: Membership | None, *, is_required: bool) -> None:
    """Have each key that is added from now on wait until a second owner releases it, or no more.

    A key that waits goes on waiting.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: where it is so already, or nobody could release what the only owner adds.
    """
    require_owner(workspace, by)
    owners = Membership.objects.filter(workspace=workspace, role=Role.OWNER, user__is_active=True)
    if is_required and owners.count() < 2:
        raise ValidationError("the workspace has one owner, and nobody could release the keys that they add")
    already = f"keys {'wait for a second owner' if is_required else 'need no second owner'} already"
    code = "workspace.two-for-keys" if is_required else "workspace.one-for-keys"
    set_choice(workspace, by, "releases_keys_by_two", is_required, code=code, already=already)


def note_events(
    *,
    kind: str,
    counts: Mapping[EscrowedKey, int],
    by: User | None = None,
    api_key: ApiKey | None = None,
    door: str = "",
    messages: Mapping[EscrowedKey, Sequence[uuid.UUID]] | None = None,
    conversation_id: uuid.UUID | None = None,
) -> None:
    """Note what was done with some keys; one row for each.

    Args:
        kind: of `KeyEvent.Kind`.
        counts: how many messages it concerned, by key.
        by, api_key: who did it; neither where the product did.
        door: of `KeyEvent.Door`, where opened text was shown.
        messages: which messages, by key.
        conversation_id: in which conversation, where it is one.
    """
    KeyEvent.objects.bulk_create(
        KeyEvent(
            workspace_id=key.workspace_id,
            kind=kind,
            key=key.pk,
            label=key.label,
            fingerprint=key.fingerprint,
            by=by,
            by_api_key=str(api_key)[:160] if api_key else "",
            door=door,
            count=count,
            messages=list(messages.get(key, ())) if messages else [],
            conversation=conversation_id,
        )
        for key, count in counts.items()
    )


def rewrap_keys() -> tuple[int, int]:
    """Seal every data key with the key-encryption key in use; how many were, and how many could not be opened.

    Records come in meanwhile: whoever writes under the key of a period does not wait for this.

    Raises:
        KeyringError: where there is none that can be used.
    """
    keks = load_keks()
    by_id = {kek.id: kek for kek in keks}
    escrowed = _rewrap(EscrowedKey.objects.all(), rewrap_key, ("kek_id", "data_key", "fingerprint"), by_id, keks[0])
    periods = PeriodKey.objects.filter(destroyed_at=None)
    sealing = _rewrap(periods, rewrap_period_key, ("kek_id", "data_key"), by_id, keks[0])
    return escrowed[0] + sealing[0], escrowed[1] + sealing[1]


def _rewrap(
    rows: QuerySet[Any],
    rewrap: Callable[[Any, KeyEncryptionKey | None, KeyEncryptionKey], None],
    columns: Sequence[str],
    by_id: Mapping[str, KeyEncryptionKey],
    kek: KeyEncryptionKey,
) -> tuple[int, int]:
    done = failed = 0
    for pk in rows.exclude(kek_id=kek.id).values_list("pk", flat=True):
        with transaction.atomic():
            row = rows.select_for_update().filter(pk=pk).first()
            if row is None:
                continue
            try:
                rewrap(row, by_id.get(row.kek_id), kek)
            except KeyringError:
                failed += 1
                continue
            row.save(update_fields=columns)
            done += 1
    return done, failed


_SEALED = ("secret", "data_key")


def list_keys(*, workspace: Workspace) -> QuerySet[EscrowedKey]:
    """The keys of a workspace, newest first, without what is sealed in them."""
    rows = EscrowedKey.objects.select_related("added_by", "released_by").filter(workspace=workspace)
    return rows.defer(*_SEALED).order_by("-added_at", "-pk")


def find_key(*, workspace: Workspace, key_id: uuid.UUID) -> EscrowedKey | None:
    """The key of that id in this workspace, or None."""
    return list_keys(workspace=workspace).filter(pk=key_id).first()


def list_period_keys(*, workspace_id: uuid.UUID) -> QuerySet[PeriodKey]:
    """The keys that records of a workspace were sealed with, the latest month first, without the keys themselves."""
    return PeriodKey.objects.filter(workspace=workspace_id).defer("data_key").order_by("-period")


def has_keys(*, workspace_id: uuid.UUID) -> bool:
    """Whether the workspace holds any key that may open messages."""
    return EscrowedKey.objects.in_force().filter(workspace_id=workspace_id).exists()


def find_last_uses(*, workspace: Workspace, key_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, datetime]:
    """When each of these keys last opened something, or what it opened was last shown."""
    rows = KeyEvent.objects.filter(
        workspace=workspace, key__in=list(key_ids), kind__in=[KeyEvent.Kind.OPENED, KeyEvent.Kind.SHOWN]
    )
    return dict(rows.values_list("key").annotate(last=Max("at")))


def list_events(
    *, workspace: Workspace, before: tuple[datetime, uuid.UUID] | None = None, limit: int = 50
) -> list[KeyEvent]:
    """What was done with the keys of a workspace, newest first, by keyset.

    Args:
        before: (at, id) of the last one seen.
    """
    rows = KeyEvent.objects.select_related("by").filter(workspace=workspace)
    return take_page(rows, "at", before, limit)
