"""Placing is a pure function of the set: parents, ghosts, cycles, runs, and any order of processing."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping

import dialects
from dialects import Message
from dialects._transcript import find_answer
from inspector.threads.dependencies import View
from inspector.threads.keys import Guess, Way, key_of_id, links_of, read_links, write_links
from inspector.threads.lines import ADJACENCY, Kind, name_ghost
from inspector.threads.models import Conversation
from inspector.threads.nodes import Citation, Elsewhere, StoredNode, count_bearers
from inspector.threads.resolving.linking import Linker, order_nodes
from inspector.threads.resolving.passes import list_citations

from .plain_trees import Knot, draw


def node(number: int, **names: object) -> StoredNode:
    """A node whose place by the order key is its number."""
    given = {
        "id": uuid.UUID(int=number),
        "record": uuid.UUID(int=number),
        "part": 1,
        "instant": number,
        "dialect": "agent_lingua",
        "sender": None,
        "receivers": (),
        "key": None,
        "correlation": (),
        "task": None,
        "turn": None,
        "ways": (),
    }
    return StoredNode(**given | names)  # type: ignore[arg-type]


LookUp = Callable[[set[Citation]], Mapping[Citation, Elsewhere]]


def place(*given: StoredNode, look_up: LookUp = lambda citations: {}) -> list[StoredNode]:
    """The messages of a conversation of one block, in the order of the timeline and linked; elsewhere is none."""
    view = View()
    nodes = order_nodes(sorted(given, key=lambda each: each.instant), view)
    for position, each in enumerate(nodes):
        each.position = position
    elsewhere = look_up(list_citations(nodes, {each.key for each in nodes if each.key}))
    Linker(Conversation(), nodes, view, (), elsewhere).link()
    return nodes


def cites(native_id: str) -> tuple[Way, ...]:
    return (Way("message-id", "explicit", "it names its parent", key_of_id(native_id)),)


def shape(nodes: list[StoredNode]) -> list[tuple[int | None, int]]:
    """The tree as (number, depth); a message that merely follows is drawn below none."""
    knots = [
        Knot(
            id=each.id,
            at=0,
            performative=None,
            severity=0,
            parent=None if each.basis == ADJACENCY else (None if each.above is None else each.above.position),
            ghost=None if each.ghost is None else name_ghost(b"", each.ghost),
        )
        for each in nodes
    ]
    return [(line.id.int if line.kind == Kind.MESSAGE else None, depth) for depth, line in draw(knots)]


def parents(nodes: list[StoredNode]) -> list[int | None]:
    return [each.parent.int if each.parent else None for each in nodes]


def test_an_explicit_parent_may_come_later() -> None:
    placed = place(node(1, ways=cites("b")), node(2, key=key_of_id("b")))
    assert shape(placed) == [(2, 0), (1, 1)]


def test_orphans_hang_under_one_ghost() -> None:
    placed = place(node(1, ways=cites("lost")), node(2, ways=cites("lost")), node(3))
    assert shape(placed) == [(None, 0), (1, 1), (2, 1), (3, 0)]


def test_a_message_that_names_itself_is_a_root() -> None:
    placed = place(node(1, key=key_of_id("a"), ways=cites("a")))
    assert placed[0].parent is None
    assert "itself" in placed[0].why


def test_a_cycle_is_cut_at_its_smallest_order_key() -> None:
    placed = place(
        node(3, key=key_of_id("c"), ways=cites("b")),
        node(1, key=key_of_id("a"), ways=cites("c")),
        node(2, key=key_of_id("b"), ways=cites("a")),
    )
    assert shape(placed) == [(1, 0), (2, 1), (3, 2)]
    assert "circle" in placed[0].why


def test_a_cited_message_elsewhere_is_no_ghost() -> None:
    other = Elsewhere(uuid.UUID(int=99))
    placed = place(node(1, ways=cites("far")), look_up=lambda citations: dict.fromkeys(citations, other))
    assert placed[0].parent == other.id
    assert placed[0].ghost is None


def test_an_id_that_several_bear_stays_unresolved() -> None:
    placed = place(
        node(1, ways=cites("far")), look_up=lambda citations: dict.fromkeys(citations, Elsewhere(None, count=2))
    )
    assert placed[0].parent is None
    assert placed[0].ghost is not None
    assert "2 messages bear that id" in placed[0].why


def test_what_merely_follows_is_never_drawn_as_an_answer() -> None:
    follows = (Way("previous", "adjacency", "it follows"),)
    placed = place(node(1), node(2, ways=follows))
    assert placed[1].parent == uuid.UUID(int=1)
    assert placed[1].basis == "adjacency"
    assert shape(placed) == [(1, 0), (2, 0)]


def test_a_response_answers_the_latest_unanswered_statement_of_the_other() -> None:
    answers = (Way("latest-unanswered-of-other", "turn", "inferred"),)
    placed = place(
        node(1, sender="a"),
        node(2, sender="a"),
        node(3, sender="b", ways=answers),
        node(4, sender="b", ways=answers),
        node(5, sender="b", ways=answers),
    )
    assert parents(placed) == [None, None, 2, 1, None]


def test_without_a_known_sender_there_is_no_other() -> None:
    answers = (Way("latest-of-other", "turn", "inferred"),)
    assert place(node(1, sender="a"), node(2, ways=answers))[1].parent is None


def test_turns_order_before_the_key_within_a_run() -> None:
    placed = place(node(9, dialect="nslip", sender="0", turn=1), node(1, dialect="nslip", sender="1", turn=2))
    assert [one.turn for one in placed] == [1, 2]


def test_a_turn_said_again_in_other_bytes_after_a_later_one_opens_a_new_run() -> None:
    said = [(1, "0", b"a"), (2, "1", b"b"), (1, "0", b"c"), (2, "1", b"b")]
    placed = place(
        *[
            node(at, dialect="nslip", sender=sender, turn=turn, said=wire)
            for at, (turn, sender, wire) in enumerate(said)
        ]
    )
    assert [one.run for one in placed] == [1, 1, 2, 2]
    assert [one.why for one in placed if "run 2 begins" in one.why] == [placed[2].why]


def test_a_turn_that_is_only_repeated_opens_no_run() -> None:
    said = [(1, "0", b"a"), (2, "1", b"b"), (1, "0", b"a"), (3, "0", b"c"), (3, "0", b"d")]
    placed = place(
        *[
            node(at, dialect="nslip", sender=sender, turn=turn, said=wire)
            for at, (turn, sender, wire) in enumerate(said)
        ]
    )
    assert [(one.run, one.turn) for one in placed] == [(1, 1), (1, 1), (1, 2), (1, 3), (1, 3)]


TO_ME = (Way("latest-to-me", "turn", "inferred"), Way("previous", "adjacency", "it follows"))


def test_a_turn_answers_an_earlier_turn_and_none_of_its_own_number() -> None:
    """Two agents that speak in the same turn do not answer each other."""
    placed = place(
        node(1, dialect="nslip", sender="0", receivers=("1",), turn=1, ways=TO_ME),
        node(2, dialect="nslip", sender="0", receivers=("1",), turn=2, ways=TO_ME),
        node(3, dialect="nslip", sender="1", receivers=("0",), turn=2, ways=TO_ME),
        node(4, dialect="nslip", sender="0", receivers=("1",), turn=3, ways=TO_ME),
        node(5, dialect="nslip", sender="2", receivers=("0",), turn=3, ways=TO_ME),
    )
    found = [(one.parent.int if one.parent else None, one.basis) for one in placed]
    assert found == [(None, ""), (1, "adjacency"), (1, "turn"), (3, "turn"), (3, "adjacency")]


def test_a_turn_answers_what_shares_its_task() -> None:
    placed = place(
        node(1, dialect="nslip", sender="0", receivers=("1",), turn=1, task="7", ways=TO_ME),
        node(2, dialect="nslip", sender="0", receivers=("1",), turn=2, ways=TO_ME),
        node(3, dialect="nslip", sender="1", receivers=("0",), turn=3, task="7", ways=TO_ME),
        node(4, dialect="nslip", sender="1", receivers=("0",), turn=4, ways=TO_ME),
    )
    assert parents(placed) == [None, 1, 1, 2]


CORRELATES = (
    Way("correlation-id", "correlation", "it carries the id", key_of_id("job-1")),
    Way("latest-unanswered-of-other", "turn", "inferred"),
)


def test_a_correlation_id_means_the_latest_statement_that_bears_it() -> None:
    named = (key_of_id("job-1"),)
    placed = place(
        node(1, sender="a", correlation=named),
        node(2, sender="b", correlation=named, ways=CORRELATES),
        node(3, sender="a", correlation=named),
        node(4, sender="a"),
        node(5, sender="b", correlation=named, ways=CORRELATES),
    )
    assert parents(placed) == [None, 1, None, None, 3]


def test_a_number_that_was_used_for_something_else_is_nobody_and_a_repetition_is_the_latest() -> None:
    name, ten, hundred = (key_of_id("job-1"),), b"pay 10", b"pay 100"
    asked = {"sender": "a", "receivers": ("b",), "correlation": name}
    placed = place(
        node(1, **asked, said=ten),
        node(2, **asked, said=ten),
        node(3, sender="b", correlation=name, ways=CORRELATES),
        node(4, **asked, said=hundred),
        node(5, sender="b", correlation=name, ways=CORRELATES),
        node(6, sender="c", receivers=("b",), correlation=name, said=ten),
        node(7, sender="b", receivers=("c",), correlation=name, ways=CORRELATES),
    )
    assert parents(placed) == [None, None, 2, None, None, None, 6]
    assert placed[4].why == "it carries the id; in this conversation 2 messages bear that id"
    assert placed[4].ghost == name[0]


def test_a_number_of_very_many_statements_is_nobodys() -> None:
    name = (key_of_id("job-1"),)
    asked = [node(at, sender=f"a{at}", receivers=("b",), correlation=name, said=b"x") for at in range(40)]
    placed = place(*asked, node(41, sender="b", receivers=("a3",), correlation=name, ways=CORRELATES))
    assert placed[-1].parent is None
    assert placed[-1].why == "it carries the id; in this conversation more than 10 messages bear that id"


def test_a_correlation_id_is_found_also_where_clocks_put_the_statement_later() -> None:
    placed = place(node(1, sender="b", ways=CORRELATES), node(2, sender="a", correlation=(key_of_id("job-1"),)))
    assert placed[0].parent == uuid.UUID(int=2)


def test_a_correlation_id_that_nobody_bears_is_a_ghost_and_never_what_bears_another() -> None:
    """It becomes the statement when that arrives; without any other id, what was said last may be meant."""
    another = node(1, sender="a", key=key_of_id("m1"), correlation=(key_of_id("job-2"), key_of_id("m1")))
    answer = node(2, sender="b", ways=CORRELATES)
    place(another, answer)
    assert (answer.parent, answer.basis, answer.ghost) == (None, "correlation", key_of_id("job-1"))

    late, again = node(3, sender="a", correlation=(key_of_id("job-1"),)), node(2, sender="b", ways=CORRELATES)
    place(another, again, late)
    assert (again.parent, again.ghost) == (late.id, None)

    unnamed = node(1, sender="a", key=key_of_id("m1"), correlation=(key_of_id("m1"),))
    inferred = node(2, sender="b", ways=CORRELATES)
    place(unnamed, inferred)
    assert (inferred.parent, inferred.basis, inferred.ghost) == (unnamed.id, "turn", None)


def test_an_answer_is_to_whom_it_speaks() -> None:
    """Among several who speak, the other party is the one that the answer is sent to."""
    for whom in ("latest-of-other", "latest-unanswered-of-other"):
        answers = (Way(whom, "turn", "inferred"),)
        placed = place(
            node(1, sender="a", receivers=("b",)),
            node(2, sender="a", receivers=("c",)),
            node(3, sender="c", receivers=("d",)),
            node(4, sender="b", receivers=("a",), ways=answers),
            node(5, sender="d", ways=answers),
        )
        assert parents(placed[3:]) == [1, 3]


def test_what_was_said_to_somebody_else_is_answered_by_an_id_alone() -> None:
    for whom in ("latest-of-other", "latest-unanswered-of-other"):
        answers = (Way(whom, "turn", "inferred"),)
        placed = place(
            node(1, sender="a", receivers=("c",)),
            node(2, sender="b", receivers=("a",), ways=answers),
            node(3, sender="b", ways=answers),
        )
        assert parents(placed) == [None, None, None]


# What is said in random talks: (dialect, raw message).
SAID = (
    ("agent_lingua", "👽24|#/srv/a.gz"),
    ("agent_lingua", "👽13|@bob|#r1|$cGF5IDEw"),
    ("agent_lingua", "👽135|@bob|#r1|$cGF5IDEw"),
    ("agent_lingua", "👽13|@bob|#r1|$cGF5IDEwMA=="),
    ("agent_lingua", "👽24|#r1"),
    ("agent_lingua", "👽 hello"),
    ("agent_lingua", "^0"),
    ("agent_lingua", "^0|#r1"),
    ("lambda_lang", "!Ik"),
    ("lambda_lang", ".rn/ta"),
    ("lambda_lang", "<+"),
    ("prose", "Some text."),
)


def test_the_shell_and_the_threads_find_the_same_answers() -> None:
    """Without addresses on the way, so that the envelope alone says who speaks to whom."""
    chance = random.Random(20261127)
    found = set()
    for _ in range(300):
        transcript, nodes, shown, talk = dialects.Transcript(), [], [], []
        for number in range(12):
            # The threads know what comes later, too, and the shell does not: a number is named once it is given.
            is_given = any("#r1" in raw and raw[0] != "^" for _, raw in talk)
            dialect, raw = chance.choice(SAID if is_given else [each for each in SAID if each[1] != "^0|#r1"])
            talk.append((dialect, raw))
            names = chance.sample(("ann", "bob", "cid"), chance.choice([0, 1, 1, 2]))
            sender = chance.choice(("ann", "bob", "cid", None))
            (read,) = dialects.read(raw, dialects.Envelope(sender=sender), dialect=dialect).messages
            read = read.replace(receivers=tuple(names))
            answer = find_answer(read, dialect, transcript.lines)
            transcript.tell(read, dialect=dialect, wire=raw, answer=answer)
            shown.append([line.number - 1 for line in answer.lines] if answer else [])
            made = links_of(read, dialect=dialect)
            is_statement = read.performative not in (None, "inform")
            given = {"key": made.key, "correlation": made.correlation, "ways": made.ways, "said": made.said}
            said = {"sender": read.sender, "receivers": tuple(names), "is_statement": is_statement}
            nodes.append(node(number, dialect=dialect, **given, **said))
        for line, each in zip(shown, place(*nodes), strict=True):
            assert len(line) == (count_bearers(each.why) or each.parent is not None)
            assert each.parent is None or line == [each.parent.int]
            found.add(len(line))
    assert {0, 1, 2} <= found


def test_text_beside_a_statement_waits_for_no_answer() -> None:
    answers = (Way("latest-unanswered-of-other", "turn", "inferred"),)
    placed = place(node(1, sender="a"), node(2, sender="a", is_statement=False), node(3, sender="b", ways=answers))
    assert placed[2].parent == uuid.UUID(int=1)


def test_an_id_that_two_messages_of_the_conversation_bear_is_nobody() -> None:
    """Whoever writes a second message under an id cannot take the answers of the first."""
    placed = place(node(1, key=key_of_id("a")), node(2, key=key_of_id("a")), node(3, ways=cites("a")))
    assert (placed[2].parent, placed[2].ghost) == (None, None)
    assert placed[2].why == "it names its parent, but 2 messages of this conversation bear that id"


def test_any_order_of_processing_gives_the_same_tree() -> None:
    chance = random.Random(20261121)
    nodes = [
        {
            "key": key_of_id(f"m{number % 35}"),
            "sender": chance.choice("abc"),
            "ways": chance.choice([(), cites(f"m{chance.randrange(40)}"), cites("gone")]),
        }
        for number in range(40)
    ]
    expected = None
    for _ in range(200):
        shuffled = [node(number, **names) for number, names in enumerate(nodes)]
        chance.shuffle(shuffled)
        found = [(one.id, one.parent, one.ghost, one.why) for one in place(*shuffled)]
        expected = expected or found
        assert found == expected


def test_a_chain_of_a_hundred_thousand_replies_needs_no_recursion() -> None:
    nodes = [node(at, key=key_of_id(str(at)), ways=cites(str(at - 1)) if at else ()) for at in range(100_000)]
    placed = place(*nodes)
    assert [each.above.position if each.above else None for each in placed] == [None, *range(99_999)]


def test_links_are_what_was_written() -> None:
    message = Message(sender="ada", message_id="m1", parent_id="m0\x00\ud800", correlation_id="k" * 10_000)
    guess = Guess("prose", {"prose": 0.1, "nslip": 0.3})
    links = links_of(message, dialect="prose", guess=guess, size_bytes=7)
    assert links.ways[0].key == key_of_id("m0\x00\ud800")
    assert links.correlation == (key_of_id("k" * 10_000), key_of_id("m1"))
    assert read_links(write_links(links), links.key) == links
    assert len(write_links(links)) < 1000


def test_links_of_a_message_that_says_nothing_of_its_place() -> None:
    links = links_of(Message(), dialect="prose")
    assert read_links(write_links(links)) == links
