"""A conversation as a sequence: a window of its timeline, messages alike in a row together, and what is missing."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from django.db.models import BinaryField, Case, F, QuerySet, Value, When
from django.db.models.functions import MD5, Left, Length

from inspector.bounds import check_effort
from inspector.browsing.transcripts import load_cautions
from inspector.browsing.withdrawn import Cited, find_withdrawn
from inspector.threads.keys import Places, name_cited
from inspector.threads.models import Conversation, Message
from inspector.threads.models.packed_text import unpack_text
from inspector.threads.nodes import SEVERAL, count_bearers
from inspector.threads.states import FAILING
from inspector.threads.timeline import Key, Mark, Start, Window, load_places, read_window

WINDOW_STEPS: Final = 100
# Two alike are soon read; three and more are one arrow with their number.
MIN_ALIKE: Final = 3
# Said in full on the message's own page.
MAX_TOPIC, MAX_ENGLISH = 200, 400
# The name of a missing message stands in the told body; a larger body is not read for it.
MAX_BODY: Final = 100_000

_BEGINNING: Final = Start()
_NUMBER = re.compile(r"\d+")


class Step(NamedTuple):
    """A message of the sequence: who, to whom, which act, about what, and how it is linked. `topic` and `english` are
    their beginnings; `english_length` is the length of the whole. `missing` is the digest of a cited id that stands for
    no message here, `missing_name` that id, where the message says it in so many words. `cautions` are those that a
    transcript has of it. `is_withdrawn` says that what bears that id was received and is withdrawn."""

    id: uuid.UUID
    record_id: uuid.UUID
    part: int
    conversation_id: uuid.UUID
    position: int
    at: datetime
    at_basis: str
    dialect: str
    performative: str | None
    native_act: str
    sender: str
    receivers: tuple[str, ...]
    is_broadcast: bool
    topic: str
    topic_digest: str
    english: str
    english_length: int
    native_id: str
    parent: uuid.UUID | None
    parent_basis: str
    parent_why: str
    is_sealed: bool
    severity: int
    run: int
    order_source: bytes
    order_index: int
    missing: str = ""
    missing_name: str = ""
    cautions: str = ""
    is_withdrawn: bool = False

    @property
    def is_failed(self) -> bool:
        return self.performative in FAILING

    @property
    def bearers(self) -> int:
        """How many messages elsewhere bear the id that it cites, where that is why none is its parent."""
        return count_bearers(self.parent_why) if self.missing else 0

    @property
    def is_inferred(self) -> bool:
        return self.parent_basis == "turn"

    @property
    def is_to_itself(self) -> bool:
        """Whether it is sent by an agent to itself alone."""
        return bool(self.sender) and self.receivers == (self.sender,)

    def find_likeness(self) -> tuple[object, ...]:
        """What two messages share that are one arrow; without a topic, the sentence but for its numbers is compared."""
        about = self.topic_digest if self.topic else _NUMBER.sub("0", self.english)
        who = (self.sender, self.receivers, self.is_broadcast, self.is_sealed, self.is_inferred)
        return (*who, self.dialect, self.performative, self.native_act, about, self.run)


# Under which name the row of a message has what a step calls otherwise.
_COLUMNS: Final = {
    "position": "place",
    "at": "order_time",
    "at_basis": "order_basis",
    "topic": "topic_start",
    "english": "english_start",
    "missing": "parent_key",
    "missing_name": "citing_body",
}
_READ: Final = [_COLUMNS.get(name, name) for name in Step._fields if name not in ("cautions", "is_withdrawn")]


@dataclass(frozen=True, slots=True)
class Arrow:
    """Messages that are drawn as one arrow: one, or a bucket of those alike in a row."""

    steps: Sequence[Step]
    # Since the message before, which may be in the window before; None for the first of all.
    since: timedelta | None
    is_new_run: bool = False

    @property
    def first(self) -> Step:
        return self.steps[0]

    @property
    def last(self) -> Step:
        return self.steps[-1]

    @property
    def count(self) -> int:
        return len(self.steps)

    @property
    def is_bucket(self) -> bool:
        return len(self.steps) > 1

    @property
    def cautions(self) -> str:
        """Those of its messages, each once."""
        return " ".join(dict.fromkeys(step.cautions for step in self.steps if step.cautions))


def read_sequence(
    *,
    conversation: Conversation,
    start: Start = _BEGINNING,
    size: int = WINDOW_STEPS,
    opened: Collection[int] = (),
    is_all_opened: bool = False,
) -> tuple[list[Arrow], Window[Step]]:
    """A window of the sequence as arrows and as it is, in two statements and those of `load_cautions`. `opened` are
    positions: the bucket that begins at one of them is drawn message by message, or every one. Where something is cited
    that stands for no message here, one statement more looks for it among what is withdrawn."""
    places = load_places(conversation)
    window = read_window(
        conversation=conversation, start=start, size=size, read=lambda rows: _read_steps(rows, places), mark=_mark
    )
    cautions = load_cautions(conversation=conversation, first=window.first, last=window.last) if window.rows else {}
    rows = [step._replace(cautions=cautions.get(step.id, "")) for step in window.rows]
    window = replace(window, rows=_mark_withdrawn(conversation, rows))
    return list(_gather(window.rows, window.previous, opened, is_all_opened=is_all_opened)), window


def _mark_withdrawn(conversation: Conversation, steps: Sequence[Step]) -> list[Step]:
    cited = {
        step.id: Cited(conversation.channel_id, bytes.fromhex(step.missing))
        for step in steps
        if step.missing and not step.bearers
    }
    found = find_withdrawn(workspace_id=conversation.workspace_id, cited=cited.values())
    return [step._replace(is_withdrawn=cited.get(step.id) in found) for step in steps]


def _mark(step: Step) -> Mark:
    key = Key(step.at, bytes(step.order_source), step.order_index, step.record_id, step.part)
    return Mark(step.id, key, step.position + 1)


def _read_steps(rows: QuerySet[Message], places: Places) -> list[Step]:
    told = rows.annotate(
        topic_start=Left("topic", MAX_TOPIC),
        topic_digest=MD5("topic"),
        english_start=Left("english", MAX_ENGLISH),
        english_length=Length("english"),
        citing_body=Case(
            When(parent_key__isnull=False, parent=None, then=F("body")), default=Value(b""), output_field=BinaryField()
        ),
    ).values_list(*_READ)
    return [_make_step(Step(*row), places) for row in told]


def _make_step(row: Any, places: Places) -> Step:
    check_effort()
    body = unpack_text(row.missing_name, max_bytes=MAX_BODY)
    made: Step = row._replace(
        position=places.find_position(row.position),
        receivers=tuple(name for name in row.receivers or () if name),
        missing=bytes(row.missing).hex() if row.missing is not None and row.parent is None else "",
        missing_name=name_cited(msgspec.json.decode(body)["message"]) if body else "",
    )
    return made


def _gather(
    steps: Sequence[Step], previous: Step | None, opened: Collection[int], *, is_all_opened: bool
) -> Iterator[Arrow]:
    at = 0
    while at < len(steps):
        alike = _count_alike(steps, at)
        is_one = alike < MIN_ALIKE or is_all_opened or steps[at].position in opened
        for group in [[step] for step in steps[at : at + alike]] if is_one else [steps[at : at + alike]]:
            first = group[0]
            since = first.at - previous.at if previous else None
            yield Arrow(group, since, is_new_run=previous is not None and previous.run != first.run)
            previous = group[-1]
        at += alike


def _count_alike(steps: Sequence[Step], at: int) -> int:
    """How many messages from this one on are alike; one that cites what is missing stands alone, with its ghost."""
    if steps[at].missing:
        return 1
    likeness = steps[at].find_likeness()
    end = at + 1
    while end < len(steps) and not steps[end].missing and steps[end].find_likeness() == likeness:
        end += 1
    return end - at


class Missing(NamedTuple):
    """A message that cites what was not received: its position, and the digest of what it cites."""

    position: int
    key: str


def find_missing(*, conversation: Conversation, after: int | None = None) -> tuple[Missing | None, Missing | None]:
    """The first message that cites what was not received, and the first after a position, where there are any."""
    rows = Message.objects.shown().filter(conversation=conversation, parent_key__isnull=False, parent=None)
    missing = rows.exclude(parent_why__contains=SEVERAL)
    citing = missing.filter(place__isnull=False).order_by("place").values_list("place", "parent_key")
    places = load_places(conversation)
    both = citing[:1] if after is None else citing[:1].union(citing.filter(place__gte=places.find_place(after + 1))[:1])
    found = sorted(Missing(places.find_position(place), bytes(key or b"").hex()) for place, key in both)
    return (found[0] if found else None), (found[1] if len(found) > 1 else None)
