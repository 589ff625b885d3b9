"""The cast of every test: an owner, an auditor, a viewer, and a stranger who must see nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.core.signals import request_finished
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.test import Client
from psycopg.pq import TransactionStatus

from inspector import pipeline
from inspector.accounts.models import Channel, Membership, Role, User, Workspace
from inspector.accounts.services import create_api_key
from inspector.accounts.sessions import BACKEND
from inspector.database import or_404
from inspector.intake import jobs as job_rows
from inspector.intake.framing import take_stream
from inspector.intake.models import Delivery, Door
from inspector.intake.services import open_delivery
from inspector.threads.models import Message
from inspector.threads.selectors import find_message
from inspector.trail import row_security
from inspector.trail.models import Deed
from inspector.trail.services import Thing, record_deed
from tests.lanes import begin_with

from .doors import DOORS, Way


@dataclass(frozen=True)
class Cast:
    """Two workspaces, who belongs to the first, and who does not."""

    workspace: Workspace
    owner: Membership
    auditor: Membership
    viewer: Membership
    stranger: Membership

    @property
    def channel(self) -> Channel:
        return self.workspace.channels.get(name=Channel.DEFAULT)


def use_link(client: Client, link: str, *, follow: bool = False, **said: str) -> Any:
    """What the page of a link answers to the code behind its "#", and to what else is said."""
    address, _, code = link.partition("#")
    return client.post(address, {"code": code, **said}, follow=follow)


def make_user(name: str) -> User:
    return User.objects.create_user(username=name, password=None)


@pytest.fixture
def cast(db: None) -> Cast:
    """What the services make in thirty statements, in five: nearly two thousand tests begin with it (test_cast.py)."""
    owner, auditor, viewer, stranger = User.objects.bulk_create(
        User(username=name, password=make_password(None)) for name in ("olivia", "amir", "vera", "sam")
    )
    acme, other = Workspace.objects.bulk_create(
        [Workspace(slug="acme", name="Acme"), Workspace(slug="other", name="Other")]
    )
    Channel.objects.bulk_create(Channel(workspace=each, name=Channel.DEFAULT) for each in (acme, other))
    roles = [(acme, owner, Role.OWNER), (other, stranger, Role.OWNER)]
    roles += [(acme, auditor, Role.AUDITOR), (acme, viewer, Role.VIEWER)]
    members = Membership.objects.bulk_create(
        Membership(workspace=workspace, user=user, role=role.value) for workspace, user, role in roles
    )
    deeds: list[Deed] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deed.objects, "create", lambda **names: deeds.append(Deed(**names)))
        for each in (acme, other):
            record_deed("workspace.made", workspace_id=each.pk, on=Thing("workspace", each.pk, each.name))
        for member in members:
            on = Thing("member", member.user_id, member.user.username)
            record_deed("member.added", workspace_id=member.workspace_id, on=on, details={"role": member.role})
    Deed.objects.bulk_create(deeds)
    return Cast(workspace=acme, owner=members[0], stranger=members[1], auditor=members[2], viewer=members[3])


@pytest.fixture(autouse=True)
def unpaced(settings: Any) -> None:
    """Let a test ask for as many pages a minute as it likes, on a quick machine too."""
    settings.PAGES_PER_MINUTE = 0


@pytest.fixture
def sign_in() -> Callable[[Membership], Client]:
    def enter(membership: Membership) -> Client:
        client = Client()
        client.force_login(membership.user, backend=BACKEND)
        return client

    return enter


@pytest.fixture
def auditor(cast: Cast, sign_in: Callable[..., Client]) -> Client:
    return sign_in(cast.auditor)


@pytest.fixture
def viewer(cast: Cast, sign_in: Callable[..., Client]) -> Client:
    return sign_in(cast.viewer)


@pytest.fixture
def owner(cast: Cast, sign_in: Callable[..., Client]) -> Client:
    return sign_in(cast.owner)


@pytest.fixture
def token(cast: Cast) -> str:
    """A key of the first workspace that may send and read."""
    return create_api_key(workspace=cast.workspace, name="test", scopes=["ingest", "read"])[1]


@pytest.fixture
def stranger_token(cast: Cast) -> str:
    """A key of the other workspace."""
    return create_api_key(workspace=cast.stranger.workspace, name="test", scopes=["ingest", "read"])[1]


@pytest.fixture(params=begin_with(1, DOORS, seconds=5))
def way(request: pytest.FixtureRequest, cast: Cast, token: str, tmp_path: Path) -> Way:
    """Each of the doors, with the auditor before it: the first in the short lane, unless a test says in which turn."""
    return Way(request.param, cast.auditor, token, tmp_path)


# How long the product waits for an answer, in milliseconds.
_PATIENCE = ("PATIENCE_MS", "AT_ONCE_MS", "GLANCE_MS", "BY_TERMS_MS", "HIDDEN_MS")


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the database equally often on a machine that is busy: nothing is given up and asked for in another way, and
    nothing that is due once in a second or minute falls into one of two requests that are compared."""
    for name, module in list(sys.modules.items()):
        for bound in _PATIENCE:
            if name.startswith("inspector.") and hasattr(module, bound):
                monkeypatch.setattr(module, bound, 60_000)
    monkeypatch.setattr("inspector.accounts.sessions.WRITE_SECONDS", 3600)
    monkeypatch.setattr("inspector.accounts.limits.KEPT_SECONDS", 3600.0)


def deliver(
    cast: Cast, *pieces: bytes, door: str = Door.IMPORT, name: str = "test.log", channel: Channel | None = None
) -> Delivery:
    """Take a log in by a door; nothing of it is read yet."""
    delivery = open_delivery(
        workspace=cast.workspace, channel=channel or cast.channel, door=door, file_name=name if door != Door.API else ""
    )
    return take_stream(delivery=delivery, chunks=pieces)


def take_in(cast: Cast, *pieces: bytes, is_examined: bool = True, **names: Any) -> Delivery:
    """Take a log in and settle what comes of it."""
    delivery = deliver(cast, *pieces, **names)
    resolve_all(is_examined=is_examined)
    return delivery


def ask_to_resolve() -> None:
    """Ask for every conversation to be resolved by a job of its own."""
    from inspector.intake.models import Job
    from inspector.threads.models import Conversation

    for conversation in Conversation.objects.all():
        job_rows.ask(kind=Job.Kind.RESOLVE, subjects=[conversation.pk], workspace_id=conversation.workspace_id)


@pytest.fixture
def resolved_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every conversation be resolved by a job of its own, also where the batch that reaches it could do so."""
    monkeypatch.setattr("inspector.threads.resolving.arrivals._choose", lambda *given, **names: [])


def resolve_all(*, is_examined: bool = True) -> None:
    """Work off every job, note what became due as the sweep does, and fail if a job did not end well.

    What is not to be examined yet waits for the next time: for tests that look at how messages are placed, told and
    drawn after each of many pieces, and at no finding.
    """
    from django.utils import timezone

    from inspector.audit.findings.examining import note_all_due
    from inspector.intake.models import Job

    step_out()
    kinds = tuple(kind for kind in Job.Kind.values if is_examined or kind != Job.Kind.EXAMINE)
    jobs = Job.objects.filter(kind__in=kinds)
    for turn in range(100):
        waiting = jobs.filter(state=Job.State.QUEUED).update(due_at=timezone.now())
        # At first there may be those whose workers are gone.
        has_worked = bool(waiting or not turn) and pipeline.run_due(seconds=60, only=kinds)
        if not has_worked and not (is_examined and note_all_due()):
            break
    left = list(jobs.exclude(state=Job.State.DONE).values_list("kind", "state", "failure"))
    assert not left


def deliver_one(cast: Cast, wire: str) -> Message:
    """The message of this wire, taken in and processed, as a page finds it."""
    deliver(cast, wire.encode() + b"\n")
    resolve_all()
    return or_404(find_message(workspace=cast.workspace, message_id=Message.objects.get().pk))


def step_out(**_: Any) -> None:
    """Be in no workspace, as a worker is, and a test that looks at all of them."""
    row_security._workspace.set(None)
    session = connection.connection
    if vars(connections[DEFAULT_DB_ALIAS]).pop(row_security._STATE, None) is None or session is None:
        return
    # A transaction that failed takes it back by itself.
    if session.info.transaction_status != TransactionStatus.INERROR:
        session.execute("SELECT set_config('role', 'none', FALSE)")


@pytest.fixture(autouse=True)
def nobody_within() -> Iterator[None]:
    """Step out when a request is answered, and after each test: what it does not read to its end is never closed."""
    request_finished.connect(step_out)
    yield
    request_finished.disconnect(step_out)
    step_out()
