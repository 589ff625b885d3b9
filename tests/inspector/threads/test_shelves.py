"""What a conversation has established and does not carry is fetched from its shelf: nothing comes out otherwise."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialects import Entry
from inspector.intake.models import Door
from inspector.threads.models import Conversation, ShelvedName
from inspector.threads.settling import carries, settler
from inspector.threads.telling import carried
from inspector.threads.telling.carried import CarriedContext
from inspector.threads.telling.contexts import TrackedContext, questions_of
from inspector.threads.telling.shelves import Shelf, write_shelves
from inspector.threads.uncertainty import UncertainError
from tests.lanes import begin_with

from ..conftest import Cast, deliver, settle_all
from .test_purity import picture, settle_from_scratch
from .test_resuming import assert_same

pytestmark = pytest.mark.django_db

KINDS, NAMES, SPEAKERS = ["task", "def", "nonce"], [f"n{at}" for at in range(12)], ["ada", "bob\ud800", None]


@pytest.fixture
def conversation(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    """One of which no more than three names of a kind are carried."""
    monkeypatch.setattr(carried, "MOST_NAMES", 3)
    deliver(cast, b'{"raw": "Hello.", "conversation": "c"}\n', door=Door.API)
    settle_all()
    return Conversation.objects.get()


def border(count: int) -> bytes:
    """A place behind so many messages."""
    return count.to_bytes(4, "big")


def carry_on(conversation: Conversation, context: CarriedContext, count: int) -> CarriedContext:
    """The context as it is after it was written at the end of a settling, and read at the beginning of the next."""
    written = json.loads(json.dumps(context.write(border(count))))
    write_shelves([(conversation, context)])
    return CarriedContext.resume(written, conversation.pk)


def make_entry(chance: random.Random, count: int) -> Entry:
    source, position = ((f"r{count}", count % 3), count) if chance.random() < 0.5 else (None, None)
    return Entry(
        kind=chance.choice(KINDS),
        name=chance.choice(NAMES),
        value=chance.choice(["x", "y", ["\ud83d\0", 1], {"z": None}]),
        speaker=chance.choice(SPEAKERS),
        source=source,
        position=position,
    )


Question = tuple[str, str, str | None, str]


def ask(context: TrackedContext, questions: list[Question]) -> list[Any]:
    answers: list[Any] = [context.names]
    for kind, name, speaker, how in questions:
        if how == "find":
            answers.append(context.find(kind, name, speaker=speaker))
        else:
            answers.append(context.knows(kind) if how == "knows" else list(context.all_of(kind).items()))
    return answers


def tell(context: TrackedContext, count: int, questions: list[Question], said: list[Entry | str]) -> list[Any]:
    """What a record was answered, and what is stored with it; entries are added, kinds that are named are forgotten."""
    context.begin(record=f"r{count}", identity=f"i{count}", position=count)
    answers = ask(context, questions)
    for each in said:
        if isinstance(each, str):
            context.remove(each)
        else:
            context.add([each])
    # What it forgot or said itself, it may ask for as well.
    return [answers, ask(context, questions), context.end("prose")]


@pytest.mark.parametrize("seed", begin_with(3, range(12), seconds=2))
def test_a_context_answers_alike_however_often_it_is_carried(conversation: Conversation, seed: int) -> None:
    """Also where settling goes back to an earlier end, and where what was told is gone through in place of telling."""
    chance = random.Random(seed)
    context, plain, ends = CarriedContext(), TrackedContext(), []
    count, told_before = 0, []
    went_back = 0
    for _ in range(60):
        count += 1
        most = chance.choice([1, 3, 40])
        questions = [
            (
                chance.choice(KINDS),
                chance.choice(NAMES),
                chance.choice(SPEAKERS),
                chance.choice(["find"] * 6 + ["knows"]),
            )
            for _ in range(most)
        ]
        if chance.random() < 0.1:
            questions.append((chance.choice(KINDS), "", None, "all"))
        said: list[Entry | str] = [make_entry(chance, count) for _ in range(chance.randint(0, 3))]
        if chance.random() < 0.04:
            said.insert(0, chance.choice(KINDS))
        told_before.append((told := tell(plain, count, questions, said))[-1])
        if chance.random() < 0.3 and told[-1][1]:
            context.go_through(told[-1][1], position=count)
        else:
            assert tell(context, count, questions, said) == told
        asked = chance.sample(told_before, min(3, len(told_before)))
        context.expect(question for told_in, _ in asked for question in questions_of(told_in))
        for told_in, _ in asked:
            allowed = [each.allows(told_in, dialect="prose", position=count) for each in (context, plain)]
            assert allowed[0] is allowed[1]
        if chance.random() < 0.5:
            context = carry_on(conversation, context, count)
            ends.append((count, context.write(border(count)), copy.deepcopy(plain)))
            assert not context.take_shelved()
        if ends and chance.random() < 0.1:
            del ends[chance.randint(1, len(ends)) :]
            count, written, known = ends[-1]
            context, plain = CarriedContext.resume(written, conversation.pk), copy.deepcopy(known)
            went_back += 1
    assert went_back
    assert ShelvedName.objects.exists()


def put(
    context: TrackedContext, name: str, value: str = "x", *, speaker: str | None = None, kind: str = "task"
) -> None:
    context.add([Entry(kind=kind, name=name, value=value, speaker=speaker)])


@pytest.fixture
def shelved(conversation: Conversation) -> CarriedContext:
    """One of nine names, of which the latest is carried; the first said by two speakers."""
    context = CarriedContext()
    put(context, "n0", "later", speaker="ada")
    put(context, "n0", "latest", speaker="bob")
    for at in range(1, 9):
        put(context, f"n{at}")
    context = carry_on(conversation, context, 9)
    assert ShelvedName.objects.count() == 8
    return context


def find_value(context: TrackedContext, name: str, speaker: str | None = None) -> Any:
    found = context.find("task", name, speaker=speaker)
    return found.value if found is not None else None


def knows(context: TrackedContext, kind: str) -> bool:
    return context.knows(kind)


ASKED: dict[str, tuple[Callable[[TrackedContext], Any], Any, int]] = {
    "what is carried": (lambda context: find_value(context, "n8"), "x", 0),
    "what is on the shelf": (lambda context: find_value(context, "n0"), "latest", 1),
    "what a speaker said": (lambda context: find_value(context, "n0", "ada"), "later", 1),
    "what another speaker said": (lambda context: find_value(context, "n0", "cid"), None, 1),
    "what there is not": (lambda context: find_value(context, "n9"), None, 1),
    "one thing twice": (
        lambda context: [find_value(context, name) for name in ("n9", "n9", "n3", "n3")],
        [None, None, "x", "x"],
        2,
    ),
    "whether there are any": (lambda context: knows(context, "task"), True, 0),
    "whether there are any of another kind": (lambda context: knows(context, "def"), False, 1),
    "something of another kind": (lambda context: context.find("def", "n0"), None, 0),
    "how many": (lambda context: (context.size, context.names), (9, 9), 0),
    "all of a kind": (lambda context: list(context.all_of("task")), [f"n{at}" for at in range(9)], 1),
    "all of a kind, of which some was asked": (
        lambda context: [find_value(context, "n4"), list(context.all_of("task"))],
        ["x", [f"n{at}" for at in range(9)]],
        2,
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_reads_no_more_than_what_answers_it(shelved: CarriedContext, name: str) -> None:
    asked, expected, queries = ASKED[name]
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert asked(shelved) == expected
    assert len(captured) == queries


def test_what_is_expected_is_read_at_once(shelved: CarriedContext) -> None:
    plain = TrackedContext()
    plain.begin(record="r", identity="i", position=1)
    for at in range(12):
        plain.find("task", f"n{at}")
    told_in, _ = plain.end("prose")
    with CaptureQueriesContext(connection) as captured:
        shelved.expect(questions_of(told_in))
        assert [find_value(shelved, f"n{at}") for at in range(12)] == ["latest", *["x"] * 8, *[None] * 3]
    assert len(captured) == 1


def test_what_is_forgotten_does_not_come_back_from_the_shelf(
    conversation: Conversation, shelved: CarriedContext
) -> None:
    shelved.remove("task")
    assert find_value(shelved, "n0") is None
    context = carry_on(conversation, shelved, 10)
    assert not knows(context, "task")
    for at in range(20, 30):
        put(context, f"n{at}")
    context = carry_on(conversation, context, 20)
    assert [find_value(context, name) for name in ("n0", "n20", "n29")] == [None, "x", "x"]
    assert list(context.all_of("task")) == [f"n{at}" for at in range(20, 30)]


def test_what_is_settled_again_is_dropped_from_the_shelf(conversation: Conversation, shelved: CarriedContext) -> None:
    written = shelved.write(border(9))
    for at in range(9, 20):
        put(shelved, f"n{at}")
    put(shelved, "n0", "changed")
    for at in range(20, 30):
        put(shelved, f"n{at}")
    later = carry_on(conversation, shelved, 30)
    assert find_value(later, "n0") == "changed"
    again = CarriedContext.resume(written, conversation.pk)
    assert find_value(again, "n0") == "latest"
    put(again, "n9", "other")
    put(again, "n10", "other")
    put(again, "n11", "other")
    again = carry_on(conversation, again, 12)
    assert [find_value(again, name) for name in ("n0", "n9", "n20")] == ["latest", "other", None]
    assert set(map(bytes, ShelvedName.objects.values_list("since", flat=True))) == {border(9), border(12)}


def test_a_shelf_that_lacks_something_is_not_taken_for_the_whole(shelved: CarriedContext) -> None:
    ShelvedName.objects.filter(pk=ShelvedName.objects.order_by("pk").values("pk")[:1]).delete()
    with pytest.raises(UncertainError):
        shelved.all_of("task")


def test_what_was_digested_under_another_secret_is_not_gone_on_with(
    conversation: Conversation, shelved: CarriedContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = shelved.write(border(9))
    monkeypatch.setattr(carried, "name_secret", lambda: "another")
    with pytest.raises(UncertainError):
        CarriedContext.resume(written, conversation.pk)


def test_what_is_long_is_not_carried(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "MOST_NAMES", 400)
    context = CarriedContext()
    for name in ("n0", "n1", "n2"):
        put(context, name, name * 5000)
    put(context, "n3")
    put(context, "n4", "y" * 20_000, kind="def")
    written = context.write(border(5))
    assert len(json.dumps(written)) < 1000
    context = carry_on(conversation, context, 5)
    assert [find_value(context, name) for name in ("n0", "n1", "n2", "n3")] == [
        "n0" * 5000,
        "n1" * 5000,
        "n2" * 5000,
        "x",
    ]
    assert knows(context, "def")


def say(at: int, act: str, parent: int | None = None) -> bytes:
    pair = {"from": "ada", "to": "bob"} if parent is None else {"from": "bob", "to": "ada", "pid": f"m{parent}"}
    said = {"clowl": "0.2", "mid": f"m{at}", "cid": "c", "p": act, **pair, "body": {"t": "work"}}
    said["ts"] = 1_763_715_600 + at
    return json.dumps({"raw": json.dumps(said)}).encode() + b"\n"


@pytest.mark.parametrize("held", [40, 200])
def test_an_answer_to_an_old_request_reads_what_it_needs_of_the_shelf(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """However many requests there are: of the task that is answered, and of the one that is new, one row each."""
    monkeypatch.setattr(carries, "LEAST_MESSAGES", 1)
    monkeypatch.setattr(carried, "MOST_NAMES", 10)
    counted: Counter[str] = Counter()

    class Counting(settler._Settling):
        def write(self, *given: Any) -> None:
            counted["resumed"] += len(self.resumed)
            super().write(*given)

    monkeypatch.setattr(settler, "_Settling", Counting)
    deliver(cast, *(say(at, "REQ") for at in range(held)), door=Door.API)
    settle_all()
    assert ShelvedName.objects.count() == held - 5
    read = Shelf._read

    def count_rows(shelf: Shelf, questions: Any) -> Any:
        counted["asked"] += len(questions)
        for row in read(shelf, questions):
            counted["rows"] += 1
            yield row

    monkeypatch.setattr(Shelf, "_read", count_rows)
    deliver(
        cast,
        say(1000, "ACK", 3),
        say(1001, "REQ"),
        say(1002, "DONE", held - 1),
        door=Door.API,
    )
    settle_all()
    assert counted == {"resumed": 1, "asked": 2, "rows": 1}
    assert ShelvedName.objects.count() == held - 5
    found = picture()
    settle_from_scratch()
    assert_same(found, picture())
