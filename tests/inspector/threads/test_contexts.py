"""The context that settling tells in: it answers as a plain one does, and knows when an answer would be another."""

from __future__ import annotations

import random

from dialects import Context, Entry
from inspector.threads.dependencies import View
from inspector.threads.teller import Established
from tests.each import for_each

KINDS, NAMES, SPEAKERS = ["def", "task", "dialect"], ["a", "b", "c"], ["ada", "bob", None]


def test_every_way_to_ask_a_context_is_tracked() -> None:
    """A new way to ask that is not noted would let a message stand that would be told otherwise."""
    asked = {name for name in vars(Context) if not name.startswith("_")}
    assert asked <= set(vars(Established))


def make_context() -> Established:
    return Established(View())


def make_entry(chance: random.Random, part: int) -> Entry:
    return Entry(
        kind=chance.choice(KINDS),
        name=chance.choice(NAMES),
        value=chance.choice(["x", ["y", 1], {"z": None}]),
        speaker=chance.choice(SPEAKERS),
        source=("r", part),
    )


def ask(context: Context, questions: list[tuple[str, str, str | None]]) -> list[object]:
    answers: list[object] = []
    for kind, name, speaker in questions:
        answers += [context.find(kind, name, speaker=speaker), list(context.all_of(kind).items()), context.knows(kind)]
    return [*answers, bool(context.size)]


@for_each(range(40))
def test_what_is_allowed_is_what_a_plain_context_answers_alike(seed: int) -> None:
    chance = random.Random(seed)
    questions = [(chance.choice(KINDS), chance.choice(NAMES), chance.choice(SPEAKERS)) for _ in range(2)]
    plain, tracked = Context(), make_context()
    tracked.begin(record="r", identity="i", position=1)
    expected = ask(plain, questions)
    assert ask(tracked, questions) == expected
    told_in, _ = tracked.end("prose")
    for part in range(60):
        if chance.random() < 0.1:
            kind = chance.choice(KINDS)
            plain.remove(kind)
            tracked.remove(kind)
        else:
            entry = make_entry(chance, part % 3)
            plain.add([entry])
            tracked.add([entry])
        tracked.begin(record="r", identity="i", position=1)
        assert ask(tracked, questions) == ask(plain, questions)
        tracked.end("prose")
        if tracked.allows(told_in, dialect="prose", position=1):
            assert ask(plain, questions) == expected


def test_what_a_record_established_holds_again_when_it_is_gone_through() -> None:
    told, skipped = make_context(), make_context()
    told.begin(record="r", identity="i", position=4)
    told.remove("task")
    told.add([Entry(kind="def", name="a", value=["x"], speaker="ada", source=("r", 1), position=told.position)])
    told_in, established = told.end("prose")
    assert told_in.endswith("+")
    skipped.go_through(established, position=7)
    entry = skipped.find("def", "a")
    assert entry is not None
    assert (entry.value, entry.speaker, entry.source, entry.position) == (["x"], "ada", ("r", 1), 7)
    assert skipped.identities == {"r": "i"}


def test_who_looked_at_its_position_does_not_stand_elsewhere() -> None:
    context = make_context()
    context.begin(record="r", identity="i", position=4)
    assert context.position == 4
    told_in, _ = context.end("prose")
    assert context.allows(told_in, dialect="prose", position=4)
    assert not context.allows(told_in, dialect="prose", position=5)
    assert not context.allows(told_in, dialect="clowl", position=4)


def test_who_asks_for_much_stands_only_where_everything_is_the_same() -> None:
    context = make_context()
    context.begin(record="r", identity="i", position=1)
    for at in range(200):
        context.find("def", f"word {at}")
    told_in, _ = context.end("prose")
    assert len(told_in) < 100
    assert context.allows(told_in, dialect="prose", position=1)
    context.add([Entry(kind="def", name="other", value="x", source=("r", 1))])
    assert not context.allows(told_in, dialect="prose", position=1)
