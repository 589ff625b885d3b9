"""Changing: what changes anywhere in stored trees is put into few of their blocks, and reads as drawn whole."""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Iterable, Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.intake.models import Record
from inspector.threads.models import Conversation, Message, Outline, OutlineBlock, Trace
from inspector.threads.placing.instants import read_instant
from inspector.threads.placing.places import PLACE_BYTES
from inspector.threads.trees.changes import Change, Was
from inspector.threads.trees.changing import Alteration, Altered, change_trees
from inspector.threads.trees.growing import UngrowableError
from inspector.threads.trees.outline import Kind, draw_lines
from inspector.threads.trees.windows import StoredTree, load_tree

from ..conftest import Cast
from .test_grafting import write_plainly
from .test_growing import LARGE, draw, list_stored, make_owner, name_blocks, read, stand
from .test_regrafting import (
    REFUSED,
    Maker,
    World,
    change_large,
    find_latest,
    find_news,
    list_changes,
    list_knots,
    make_shoot,
)


def put_messages(cast: Cast, owner: Conversation | Trace, world: World, names: Iterable[bytes] | None = None) -> None:
    """The rows of these messages, or of all, as far as their tree asks for them; there are no others then."""
    said = [world[name] for name in (world if names is None else names)]
    for table in (Message, Record):
        rows = table.objects.filter(workspace=cast.workspace)
        rows._raw_delete(rows.db)
    channel, groups = cast.channel, {each.group for each in said if each.group}
    Conversation.objects.bulk_create(
        [Conversation(pk=uuid.UUID(bytes=key), workspace=cast.workspace, channel=channel, key=key) for key in groups],
        ignore_conflicts=True,
    )
    records, messages = [], []
    for each in said:
        key = {
            "workspace": cast.workspace,
            "channel": channel,
            "order_time": read_instant(each.at),
            "order_basis": "wire",
            "order_source": b"source",
            "order_index": int(each.rank * 1e9),
        }
        record = Record(identity=each.id * 2, rule=0, source=b"", **key)
        message = Message(
            pk=uuid.UUID(bytes=each.id),
            conversation_id=uuid.UUID(bytes=each.group) if each.group else owner.pk,
            record=record,
            dialect="prose",
            performative=each.performative,
            place=struct.pack(">Q", int(each.rank * 1e9) + (1 << 62)).ljust(PLACE_BYTES, b"\0"),
            parent=uuid.UUID(bytes=each.parent) if each.parent else None,
            parent_basis="wire" if each.parent or each.ghost else "",
            trace_key=None if isinstance(owner, Conversation) else owner.key,
            **key,
        )
        records.append(record)
        messages.append(message)
    Record.objects.bulk_create(records)
    Message.objects.bulk_create(messages)


def alter(owner: Conversation | Trace, changes: Sequence[Change], **more: object) -> Altered:
    kind = "conversation" if isinstance(owner, Conversation) else "trace"
    return change_trees([Alteration(owner.pk, changes, **more)], kind, owner.workspace_id)[owner.pk]  # type: ignore[arg-type]


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_a_stored_tree_that_changes_is_what_is_drawn_whole(cast: Cast, seed: int) -> None:
    chance = random.Random(seed)
    maker = Maker.choose(chance)
    owner: Conversation | Trace = make_owner(cast)
    if maker.is_grouped:
        owner = Trace.objects.create(workspace=cast.workspace, key=uuid.uuid4().bytes, native_id="t")
    world = maker.make_world(chance.choice((0, 1, 10, 30)))
    reasons: set[str] = set()
    draw(owner, list_knots(world, is_by_turn=maker.is_by_turn))
    for _ in range(2):
        after = maker.alter(world, chance.choice((1, 3, 8)))
        changes = list_changes(world, after, chance)
        put_messages(cast, owner, after)
        knots = list_knots(after, is_by_turn=maker.is_by_turn)
        expected = write_plainly(list(draw_lines(knots)))
        try:
            if changes:
                alter(owner, changes, new_groups=find_news(world, after), is_by_turn=maker.is_by_turn)
        except UngrowableError as error:
            reasons |= set(error.reasons.values())
            draw(owner, knots)
        assert read(owner) == expected
        tree = load_tree(owner)
        assert tree is not None
        assert tree.latest == find_latest(expected, knots)
        blocks = OutlineBlock.objects.filter(outline=tree.outline_id)
        assert {entry.digest for entry in tree.entries} <= {bytes(block.digest) for block in blocks}
        world = after
    assert reasons <= REFUSED


@pytest.mark.long(seconds=2)
@pytest.mark.django_db
@pytest.mark.parametrize(("form", "way"), [("star", "late"), ("random", "found"), ("tops", "leaves")])
def test_one_change_near_the_front_touches_few_blocks_of_a_large_tree(cast: Cast, form: str, way: str) -> None:
    before, after, changes = change_large(form, way, LARGE)
    owner = make_owner(cast)
    draw(owner, list_knots(before, is_by_turn=False))
    # The front is all that is asked for.
    put_messages(cast, owner, after, list(after)[:400])
    stood = load_tree(owner)
    assert stood is not None
    with CaptureQueriesContext(connection) as caught:
        altered = alter(owner, changes)
    assert len(caught) <= 16, "statements"
    assert altered.opened <= 8
    assert 1 <= altered.written <= 6 < len(stood.entries)
    assert read(owner) == write_plainly(list(draw_lines(list_knots(after, is_by_turn=False))))
    again = StoredTree(stood.outline_id, stood.count, stood.latest, stood.entries)
    assert len(list(again.read_all())) == stood.count, "who read the directory before still finds its blocks"


@pytest.mark.django_db
def test_many_trees_are_changed_in_as_many_statements_as_one(cast: Cast) -> None:
    before, after, changes = change_large("random", "late", 30)
    owners = [make_owner(cast) for _ in range(10)]
    for owner in owners:
        draw(owner, list_knots(before, is_by_turn=False))
    put_messages(cast, owners[0], after)
    counts = []
    for chosen in (owners[:1], owners[1:]):
        with CaptureQueriesContext(connection) as caught:
            change_trees([Alteration(owner.pk, changes) for owner in chosen], "conversation", cast.workspace.pk)
        counts.append(len(caught))
    assert counts[0] == counts[1] <= 6
    for owner in owners:
        assert read(owner) == write_plainly(list(draw_lines(list_knots(after, is_by_turn=False))))


@pytest.mark.django_db
def test_what_a_tree_does_not_hold_is_refused_before_anything_is_written(cast: Cast) -> None:
    before, after, changes = change_large("chain", "late", 30)
    name, said = next(iter(before.items()))
    child = make_shoot(list(before.values())[1], before)
    fine, bare, lacking, twice, early, other, orphan = (make_owner(cast) for _ in range(7))
    for owner in (fine, lacking, twice, early, other, orphan):
        draw(owner, list_knots(before, is_by_turn=False))
    put_messages(cast, fine, after)
    stood = list(Outline.objects.order_by("pk").values_list("count", "directory"))
    late = next(change.now for change in changes if change.now is not None)
    was = Was(said.at, said.performative)
    with pytest.raises(UngrowableError) as caught:
        change_trees(
            [
                Alteration(fine.pk, changes),
                Alteration(bare.pk, changes),
                Alteration(lacking.pk, [Change(late.id, was, late)]),
                Alteration(twice.pk, [Change(child.id, None, child)]),
                Alteration(early.pk, [Change(name, was._replace(at=said.at - 1), make_shoot(said, before))]),
                Alteration(other.pk, [Change(name, was._replace(hangs=(child.id, Kind.MESSAGE)), None)]),
                Alteration(orphan.pk, [Change(name, was, None)]),
            ],
            "conversation",
            cast.workspace.pk,
        )
    assert caught.value.reasons == {
        bare.pk: "there is no tree",
        lacking.pk: "a message is not in the tree",
        twice.pk: "a message stands in the tree already",
        early.pk: "a message stands at another time",
        other.pk: "a message hangs on another line",
        orphan.pk: "a message hangs on one that leaves",
    }
    assert list(Outline.objects.order_by("pk").values_list("count", "directory")) == stood


@pytest.mark.django_db
def test_the_blocks_that_are_held_stay(cast: Cast) -> None:
    before, after, changes = change_large("star", "late", 3000)
    owner = make_owner(cast)
    draw(owner, list_knots(before, is_by_turn=False))
    put_messages(cast, owner, after, list(after)[:400])
    first = stand(owner)
    alter(owner, changes, held=name_blocks(first))
    second = stand(owner)
    late = next(change.now for change in changes if change.now is not None)
    alter(owner, [Change(late.id, Was(late.at, late.performative), None)], held=name_blocks(first))
    assert list_stored(owner) == name_blocks(first, second, stand(owner))
    assert read(owner) == write_plainly(list(draw_lines(list_knots(before, is_by_turn=False))))
