"""Growing: what is appended to a stored tree is put into the few blocks that it touches, and reads as drawn whole."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from hashlib import sha256

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.threads.models import Conversation, Outline, OutlineBlock, Trace
from inspector.threads.trees.blocks import read_directory
from inspector.threads.trees.grafting import Shoot
from inspector.threads.trees.growing import Base, Effort, Growth, UngrowableError, grow_trees
from inspector.threads.trees.outline import Knot, draw_lines
from inspector.threads.trees.stored import Tree, write_trees
from inspector.threads.trees.windows import StoredTree, load_tree

from ..conftest import Cast
from .test_grafting import find_new_groups, forests, make_shoots, write_plainly
from .test_trees import SHAPES, Parents
from .test_trees import make_knots as make_plain_knots

LARGE = 20_000


def make_knots(parent_of: Parents, count: int) -> list[Knot]:
    """Knots whose ids are spread as those of messages are: the database finds one by its bytes."""
    return [knot._replace(id=sha256(knot.id).digest()[:16]) for knot in make_plain_knots(parent_of, count)]


def make_owner(cast: Cast) -> Conversation:
    return Conversation.objects.create(workspace=cast.workspace, channel=cast.channel, key=uuid.uuid4().bytes)


def draw(owner: Conversation | Trace, knots: Sequence[Knot], held: frozenset[bytes] = frozenset()) -> None:
    kind = "conversation" if isinstance(owner, Conversation) else "trace"
    write_trees(trees=[Tree(owner.pk, knots, held)], owner=kind, workspace_id=owner.workspace_id)  # type: ignore[arg-type]


def read(owner: Conversation | Trace) -> list[tuple[object, ...]]:
    tree = load_tree(owner)
    assert tree is not None
    found = [(line.id, line.kind, depth, *line[2:]) for depth, line in tree.read_all()]
    assert tree.count == len(found)
    return found


def grow(owner: Conversation | Trace, shoots: Sequence[Shoot], **more: object) -> Effort:
    kind = "conversation" if isinstance(owner, Conversation) else "trace"
    return grow_trees([Growth(owner.pk, shoots, **more)], kind, owner.workspace_id)  # type: ignore[arg-type]


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(forest=forests(), is_trace=st.booleans())
def test_a_stored_tree_that_grows_is_what_is_drawn_whole(
    cast: Cast, forest: tuple[list[Knot], list[int]], is_trace: bool
) -> None:
    knots, cuts = forest
    owner: Conversation | Trace = make_owner(cast)
    if is_trace:
        owner = Trace.objects.create(workspace=cast.workspace, key=uuid.uuid4().bytes, native_id="t")
    cuts = cuts or [0]
    draw(owner, knots[: cuts[0]])
    for low, high in zip(cuts, [*cuts[1:], len(knots)], strict=True):
        held = knots[:high]
        expected = write_plainly(list(draw_lines(held)))
        last = knots[low - 1].id if low else None
        try:
            grow(owner, make_shoots(held, low), new_groups=find_new_groups(held, low), after=last)
        except UngrowableError:
            draw(owner, held)
        assert read(owner) == expected
        tree = load_tree(owner)
        assert tree is not None
        assert expected[tree.latest][0] == held[-1].id
        blocks = OutlineBlock.objects.filter(outline=tree.outline_id)
        assert {entry.digest for entry in tree.entries} <= {bytes(block.digest) for block in blocks}


@pytest.mark.long(seconds=2)
@pytest.mark.django_db
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("where", ["below the first", "below one in the middle", "below the last", "below nothing"])
def test_one_appended_message_touches_few_blocks_of_a_large_tree(cast: Cast, shape: str, where: str) -> None:
    knots = make_knots(SHAPES[shape], LARGE)
    owner = make_owner(cast)
    draw(owner, knots)
    parent = {"below the first": 0, "below one in the middle": LARGE // 2, "below the last": LARGE - 1}.get(where)
    late = make_knots(lambda at: parent, LARGE + 1)[-1]
    held = [*knots, late]
    before = load_tree(owner)
    assert before is not None
    with CaptureQueriesContext(connection) as caught:
        effort = grow(owner, make_shoots(held, LARGE), after=knots[-1].id)
    assert len(caught) <= 7, "statements"
    assert effort.opened <= 4
    assert 1 <= effort.written <= 3 < len(before.entries)
    assert read(owner) == write_plainly(list(draw_lines(held)))
    again = StoredTree(before.outline_id, before.count, before.latest, before.entries)
    assert len(list(again.read_all())) == LARGE, "who read the directory before still finds its blocks"


@pytest.mark.django_db
def test_many_messages_appended_one_by_one_leave_blocks_of_a_bearable_size(cast: Cast) -> None:
    knots = make_knots(SHAPES["star"], 4600)
    owner = make_owner(cast)
    draw(owner, knots[:1900])
    for low in range(1900, 4600, 300):
        grow(owner, make_shoots(knots[: low + 300], low))
    assert read(owner) == write_plainly(list(draw_lines(knots)))
    tree = load_tree(owner)
    assert tree is not None
    assert all(500 <= entry.size <= 2000 for entry in tree.entries)
    held = OutlineBlock.objects.filter(outline=tree.outline_id).count()
    assert held <= len(tree.entries) + 2, "of earlier trees the last one is kept"


@pytest.mark.long(seconds=2)
@pytest.mark.django_db
def test_many_answers_to_many_places_of_a_large_tree_are_found(cast: Cast) -> None:
    knots = make_knots(SHAPES["random"], LARGE)
    owner = make_owner(cast)
    draw(owner, knots)
    held = make_knots(lambda at: at * 7919 % LARGE if at >= LARGE else SHAPES["random"](at), LARGE + 12)
    effort = grow(owner, make_shoots(held, LARGE))
    assert effort.opened <= 2 * 12 + 2
    assert read(owner) == write_plainly(list(draw_lines(held)))


@pytest.mark.django_db
def test_many_trees_grow_in_as_many_statements_as_one(cast: Cast) -> None:
    knots = make_knots(SHAPES["random"], 30)
    owners = [make_owner(cast) for _ in range(20)]
    for owner in owners:
        draw(owner, knots[:20])
    counts = []
    for low, chosen in ((20, owners[:1]), (20, owners[1:]), (25, owners)):
        growths = [Growth(owner.pk, make_shoots(knots[: low + 5], low)) for owner in chosen]
        with CaptureQueriesContext(connection) as caught:
            grow_trees(growths, "conversation", cast.workspace.pk)
        counts.append(len(caught))
    assert max(counts) == min(counts) <= 5
    for owner in owners:
        assert read(owner) == write_plainly(list(draw_lines(knots)))


@pytest.mark.django_db
def test_what_cannot_be_sure_is_refused_before_anything_is_written(cast: Cast) -> None:
    knots = make_knots(SHAPES["chain"], 20)
    fine, stale, bare, orphan, twice = (make_owner(cast) for _ in range(5))
    for owner in (fine, stale, orphan, twice):
        draw(owner, knots[:10])
    shoots = make_shoots(knots, 10)
    before = list(Outline.objects.order_by("pk").values_list("count", "directory"))
    with pytest.raises(UngrowableError) as caught:
        grow_trees(
            [
                Growth(fine.pk, shoots, after=knots[9].id),
                Growth(stale.pk, shoots, after=knots[8].id),
                Growth(bare.pk, shoots),
                Growth(orphan.pk, [shoots[0]._replace(parent=b"nobody's" * 2)]),
                Growth(twice.pk, make_shoots(knots, 9)),
            ],
            "conversation",
            cast.workspace.pk,
        )
    assert caught.value.reasons == {
        stale.pk: "the tree ends with another message",
        bare.pk: "there is no tree",
        orphan.pk: "a message answers one that is not in the tree",
        twice.pk: "a message stands in the tree already",
    }
    assert list(Outline.objects.order_by("pk").values_list("count", "directory")) == before


def stand(owner: Conversation | Trace) -> Base:
    """The tree as it is stored now."""
    outline = Outline.objects.get(conversation=owner)
    return Base(bytes(outline.directory), outline.latest)


def name_blocks(*bases: Base) -> frozenset[bytes]:
    return frozenset(entry.digest for base in bases for entry in read_directory(base.directory))


def list_stored(owner: Conversation | Trace) -> set[bytes]:
    return {bytes(block.digest) for block in OutlineBlock.objects.filter(outline__conversation=owner)}


@pytest.mark.django_db
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(forest=forests(), seed=st.integers(0, 99))
def test_a_tree_that_grows_from_what_it_was_is_what_is_drawn_whole(
    cast: Cast, forest: tuple[list[Knot], list[int]], seed: int
) -> None:
    knots, cuts = forest
    chance = random.Random(seed)
    owner = make_owner(cast)
    bases: dict[int, Base] = {}
    for count in [*cuts, len(knots)]:
        draw(owner, knots[:count], held=name_blocks(*bases.values()))
        bases[count] = stand(owner)
    for _ in range(4):
        low, base = chance.choice(list(bases.items()))
        # What followed is not what follows now: some of it never was.
        places = [*range(low), *(at for at in range(low, len(knots)) if chance.random() < 0.7)]
        held = keep(knots, places)
        last = knots[low - 1].id if low else None
        news = find_new_groups(held, low)
        try:
            grow(
                owner, make_shoots(held, low), base=base, held=name_blocks(*bases.values()), new_groups=news, after=last
            )
        except UngrowableError:
            draw(owner, held, held=name_blocks(*bases.values()))
        expected = write_plainly(list(draw_lines(held)))
        assert read(owner) == expected
        tree = load_tree(owner)
        assert tree is not None
        assert tree.latest == (-1 if not held else [line[0] for line in expected].index(held[-1].id))


def keep(knots: Sequence[Knot], places: Sequence[int]) -> list[Knot]:
    """Those of these knots; an answer to one that is not kept is an answer to none."""
    found = {at: new for new, at in enumerate(places)}
    return [
        knots[at]._replace(parent=None if (parent := knots[at].parent) is None else found.get(parent)) for at in places
    ]


@pytest.mark.long(seconds=2)
@pytest.mark.django_db
def test_the_blocks_of_what_a_tree_grows_from_stay_as_long_as_they_are_held(cast: Cast) -> None:
    knots = make_knots(SHAPES["random"], 4600)
    owner = make_owner(cast)
    bases = []
    for count in (1500, 2500, 3500):
        draw(owner, knots[:count], held=name_blocks(*bases))
        bases.append(stand(owner))
    for base, count in ((bases[0], 1500), (bases[1], 2500), (bases[0], 1500)):
        held = name_blocks(bases[0], bases[1])
        grow(owner, make_shoots(knots, count), base=base, after=knots[count - 1].id, held=held)
        assert read(owner) == write_plainly(list(draw_lines(knots)))
        assert held <= list_stored(owner)
    standing = stand(owner)
    late = make_knots(SHAPES["random"], 4601)
    grow(owner, make_shoots(late, 4600))
    assert list_stored(owner) == name_blocks(standing, stand(owner)), "what nobody holds any more is gone"


@pytest.mark.django_db
def test_a_tree_goes_back_to_what_it_was_where_nothing_follows(cast: Cast) -> None:
    knots = make_knots(SHAPES["random"], 30)
    owner = make_owner(cast)
    draw(owner, knots[:20])
    base = stand(owner)
    grow(owner, make_shoots(knots, 20), held=name_blocks(base))
    grow(owner, (), base=base)
    assert stand(owner) == base
    assert read(owner) == write_plainly(list(draw_lines(knots[:20])))


@pytest.mark.django_db
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_tree_does_not_grow_from_one_of_which_a_block_is_gone(cast: Cast, which: int) -> None:
    knots = make_knots(SHAPES["star"], 2500)
    owner = make_owner(cast)
    draw(owner, knots[:2400])
    base = stand(owner)
    lost = read_directory(base.directory)[which].digest
    OutlineBlock.objects.filter(outline__conversation=owner, digest=lost).delete()
    with pytest.raises(UngrowableError, match="a block of the tree is missing"):
        grow(owner, make_shoots(knots, 2400), base=base)
    assert stand(owner) == base
