"""Placing is a pure function of the set: parents, ghosts, cycles, runs, and any order of processing."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta

from dialects import Message, Reply
from inspector.threads.outline import outline
from inspector.threads.placing import Elsewhere, Node, place

START = datetime(2026, 11, 21, 9, tzinfo=UTC)


def node(number: int, **names: object) -> Node:
    """A node whose order key is its number."""
    given = {
        "id": uuid.UUID(int=number),
        "record": uuid.UUID(int=number),
        "part": 1,
        "sort_key": (START + timedelta(seconds=number), b"", number, 1, b""),
        "dialect": "prose",
        "sender": None,
        "receivers": (),
        "native_id": None,
        "correlation": (),
        "task": None,
        "turn": None,
        "replies": (),
    }
    return Node(**given | names)  # type: ignore[arg-type]


def cites(native_id: str) -> tuple[Reply, ...]:
    return (Reply(whom="message-id", basis="explicit", why="it names its parent", value=native_id),)


def nowhere(keys: object) -> dict[bytes, list[Elsewhere]]:
    return {}


def shape(nodes: list[Node]) -> list[tuple[int | None, int]]:
    return [(row.id.int if row.id else None, row.depth) for row in outline(nodes)]


def test_an_explicit_parent_may_come_later() -> None:
    placed = place([node(1, replies=cites("b")), node(2, native_id="b")], nowhere)
    assert shape(placed) == [(2, 0), (1, 1)]


def test_orphans_hang_under_one_ghost() -> None:
    placed = place([node(1, replies=cites("lost")), node(2, replies=cites("lost")), node(3)], nowhere)
    assert shape(placed) == [(None, 0), (1, 1), (2, 1), (3, 0)]


def test_a_message_that_names_itself_is_a_root() -> None:
    placed = place([node(1, native_id="a", replies=cites("a"))], nowhere)
    assert placed[0].parent is None
    assert "itself" in placed[0].why


def test_a_cycle_is_cut_at_its_smallest_order_key() -> None:
    placed = place(
        [
            node(3, native_id="c", replies=cites("b")),
            node(1, native_id="a", replies=cites("c")),
            node(2, native_id="b", replies=cites("a")),
        ],
        nowhere,
    )
    assert shape(placed) == [(1, 0), (2, 1), (3, 2)]
    assert "circle" in placed[0].why


def test_a_cited_message_elsewhere_is_no_ghost() -> None:
    other = Elsewhere(uuid.UUID(int=99), "")
    placed = place([node(1, replies=cites("far"))], lambda keys: {key: [other] for key in keys})
    assert placed[0].parent == other.id
    assert placed[0].ghost is None


def test_an_id_that_several_bear_stays_unresolved() -> None:
    others = [Elsewhere(uuid.UUID(int=98), ""), Elsewhere(uuid.UUID(int=99), "")]
    placed = place([node(1, replies=cites("far"))], lambda keys: dict.fromkeys(keys, others))
    assert placed[0].parent is None
    assert placed[0].ghost is not None
    assert "2 messages bear that id" in placed[0].why


def test_what_merely_follows_is_never_drawn_as_an_answer() -> None:
    follows = (Reply(whom="previous", basis="adjacency", why="it follows"),)
    placed = place([node(1), node(2, replies=follows)], nowhere)
    assert placed[1].parent == uuid.UUID(int=1)
    assert placed[1].basis == "adjacency"
    assert shape(placed) == [(1, 0), (2, 0)]


def test_a_response_answers_the_latest_unanswered_statement_of_the_other() -> None:
    answers = (Reply(whom="latest-unanswered-of-other", basis="turn", why="inferred"),)
    placed = place(
        [
            node(1, sender="a"),
            node(2, sender="a"),
            node(3, sender="b", replies=answers),
            node(4, sender="b", replies=answers),
            node(5, sender="b", replies=answers),
        ],
        nowhere,
    )
    assert [one.parent.int if one.parent else None for one in placed] == [None, None, 2, 1, None]


def test_without_a_known_sender_there_is_no_other() -> None:
    answers = (Reply(whom="latest-of-other", basis="turn", why="inferred"),)
    assert place([node(1, sender="a"), node(2, replies=answers)], nowhere)[1].parent is None


def test_turns_order_before_the_key_within_a_run() -> None:
    placed = place(
        [node(9, dialect="nslip", sender="0", turn=1), node(1, dialect="nslip", sender="1", turn=2)], nowhere
    )
    assert [one.turn for one in placed] == [1, 2]


def test_a_turn_said_again_after_a_later_one_opens_a_new_run() -> None:
    said = [(1, "0"), (2, "1"), (1, "0"), (2, "1")]
    placed = place(
        [node(at, dialect="nslip", sender=sender, turn=turn) for at, (turn, sender) in enumerate(said)], nowhere
    )
    assert [one.run for one in placed] == [1, 1, 2, 2]


def test_any_order_of_processing_gives_the_same_tree() -> None:
    chance = random.Random(20261121)
    nodes = [
        {
            "native_id": f"m{number % 35}",
            "sender": chance.choice("abc"),
            "replies": chance.choice([(), cites(f"m{chance.randrange(40)}"), cites("gone")]),
        }
        for number in range(40)
    ]
    expected = None
    for _ in range(200):
        shuffled = [node(number, **names) for number, names in enumerate(nodes)]
        chance.shuffle(shuffled)
        found = [(one.id, one.parent, one.ghost, one.why) for one in place(shuffled, nowhere)]
        expected = expected or found
        assert found == expected


def test_a_chain_of_a_hundred_thousand_replies_needs_no_recursion() -> None:
    nodes = [node(at, native_id=str(at), replies=cites(str(at - 1)) if at else ()) for at in range(100_000)]
    rows = list(outline(place(nodes, nowhere)))
    assert rows[-1].depth == 99_999


def test_a_node_is_made_of_a_message() -> None:
    from inspector.threads.placing import make_node

    made = make_node(
        message_id=uuid.UUID(int=1),
        record=uuid.UUID(int=2),
        sort_key=(START, b"", 0, 1, b""),
        dialect="prose",
        message=Message(sender="ada", parent_id="m0", correlation_id="k"),
    )
    assert made.replies[0].value == "m0"
    assert made.correlation == ("k",)
