"""Seeing: which messages of conversations their scenes are made of.

They are those whose row shows something: its sights say so, which are kept with it, or placing made a remark. One index
holds them, so that examining costs in proportion to what there is to look at, and not to what a conversation holds. One
statement asks for all that a message's own row can say, and each body is read once.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import (
    BooleanField,
    Case,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)

from inspector.lookups import HasAnyBit, IsAny
from inspector.threads.models import Conversation, Message
from inspector.threads.models.packed_text import PackedTextField
from inspector.threads.placing.keys import key_of_id
from inspector.threads.rendering.hidden_characters import LOOKALIKES, UNSEEN
from inspector.threads.rendering.rule_flags import FLAGGED, ODD, OF_SESSIONS, RuleFlag

from .bodies import Body, read_body, read_value
from .relating import COLUMNS, ORDER, Suspects, load_related, see, see_all
from .scene import Noted, Scene, Seen, Skewed
from .working import load_tasks, load_words_after_end

# Bodies may be a hundred times as long as what is kept of them.
_BODIES_AT_ONCE: Final = 50
_UNSEEN: Final = re.compile(UNSEEN)
# What belongs to the writing: a joiner within an emoji, the tags of a flag, joiners after letters of the Arabic and the
# Indian scripts, marks of direction beside Hebrew and Arabic.
_WRITTEN: Final = re.compile(
    "(?<=[\u2600-\u27ff\ufe0f\U0001f000-\U0001ffff])\u200d(?=[\u2600-\u27ff\U0001f000-\U0001ffff])"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"
    "|(?<=[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc])[\u200c\u200d]"
    "|(?<=[\u0590-\u08ff])[\u200e\u200f]|[\u200e\u200f](?=[\u0590-\u08ff])"
)
_WORD: Final = re.compile(r"\w+")
# Of these the body says what there is to see, as it does of those that are placed oddly.
_IN_BODY: Final = RuleFlag.NOTED | RuleFlag.LEANING | RuleFlag.FAILED


class _Shown(NamedTuple):
    """What a row shows, and the texts that are needed to say more."""

    sights: int
    is_odd: bool
    id_key: bytes | None
    received_at: datetime
    established: str
    english: str
    body: str


def load_scenes(conversations: Sequence[Conversation]) -> list[Scene]:
    """The scenes of these conversations of one workspace, in a number of statements that no message adds to."""
    scenes = {each.pk: Scene(each) for each in conversations}
    messages = Message.objects.shown().filter(IsAny("conversation_id", scenes))
    suspects = Suspects()
    for message, row in _look(messages.order_by(*ORDER)):
        _take(scenes[message.conversation], message, row)
        suspects.take(message, row.sights, row.id_key)
    load_related(scenes, messages, suspects)
    load_tasks(scenes)
    load_words_after_end(scenes, messages)
    _load_first(scenes)
    return list(scenes.values())


def _look(ordered: QuerySet[Message]) -> Iterator[tuple[Seen, _Shown]]:
    """The messages whose rows show something, in the order given; of what is sealed and no more see `relating`."""
    beside = HasAnyBit("sights", ~(RuleFlag.DECIDED | RuleFlag.SEALED).value)
    texts = {
        f"its_{name}": Case(When(condition, then=F(name)), default=Value("", kind()), output_field=kind())
        for name, kind, condition in (
            ("established", TextField, HasAnyBit("sights", RuleFlag.AGREEING.value)),
            ("english", TextField, HasAnyBit("sights", RuleFlag.WRITTEN.value)),
            ("body", PackedTextField, Q(HasAnyBit("sights", _IN_BODY.value)) | ODD),
        )
    }
    is_odd = ExpressionWrapper(ODD, output_field=BooleanField())
    rows = ordered.annotate(is_odd=is_odd, **texts).filter(FLAGGED, Q(beside) | ODD)
    columns = (*COLUMNS, "sights", "is_odd", "id_key", "record__created_at", *texts)
    for row in rows.values_list(*columns).iterator(chunk_size=_BODIES_AT_ONCE):
        yield see(row), _Shown._make(row[len(COLUMNS) :])


def _take(scene: Scene, message: Seen, row: _Shown) -> None:
    """Put a message where its row shows that it belongs; it may be to several."""
    body = read_body(row.body)
    if row.sights & RuleFlag.NOTED:
        scene.noted.append(Noted(message, body.list_notes(part=message.part)))
    if row.is_odd:
        scene.odd.append(message)
        scene.cited_ids[message.id] = _find_cited(message, body)
    if row.sights & RuleFlag.LEANING:
        said = {"references": read_value(body.message.references), "condition": read_value(body.message.condition)}
        scene.leaning.append((message, said))
    if row.sights & RuleFlag.FAILED:
        scene.failures.append((message, read_value(body.message.error) or {}))
    if row.sights & RuleFlag.AGREEING:
        entries = [entry for entry in json.loads(row.established) if entry[0] in OF_SESSIONS]
        scene.pacts.append((message, entries))
    if row.sights & RuleFlag.WRITTEN:
        _take_text(scene, message, row.english)
    if row.sights & RuleFlag.FUTURE:
        scene.skewed.append(Skewed(message, None, (message.at - row.received_at).total_seconds()))


def _find_cited(message: Seen, body: Body) -> str:
    """The id that a message cites and that was not received, as it says; empty where no name of it is that id."""
    return next((name for name in body.names() if key_of_id(name) == message.cited), "")


def _take_text(scene: Scene, message: Seen, english: str) -> None:
    signs = sorted(set(_UNSEEN.findall(_WRITTEN.sub("", f"{message.sender} {english}"))))
    if signs:
        scene.hidden.append((message, "".join(signs)))
    if words := _find_mixed(english, names=scene.conversation.agents):
        scene.mixed.append((message, words))


def _find_mixed(text: str, *, names: Sequence[str]) -> Sequence[str]:
    """Words that look Latin and are not, each once; names have a rule of their own."""
    known = {word for name in names for word in _WORD.findall(name)}
    words = dict.fromkeys(word for word in _WORD.findall(text) if not word.isascii())
    return [
        word
        for word in words
        if word not in known
        and any(sign.isascii() and sign.isalpha() for sign in word)
        and any(sign in LOOKALIKES for sign in word)
        and all(sign.isascii() or sign in LOOKALIKES for sign in word)
    ]


def _load_first(scenes: Mapping[uuid.UUID, Scene]) -> None:
    first = Message.objects.shown().filter(conversation=OuterRef("pk")).order_by(*ORDER[1:]).values("pk")[:1]
    openings = Conversation.objects.filter(IsAny("id", scenes)).values_list(Subquery(first), flat=True)
    for message in see_all(Message.objects.filter(IsAny("id", [pk for pk in openings if pk]))):
        scenes[message.conversation].first = message
