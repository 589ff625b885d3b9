"""Generated stories come out as their narrator knows them, whatever the order, the batches and the mistakes between."""

from __future__ import annotations

import os
import random

import pytest

from inspector.accounts.models import Channel
from inspector.intake.models import Delivery, Door
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.threads.models import Conversation, Message
from tests.lanes import begin_with
from tests.stories import Story, tell_story

from ..conftest import Cast, deliver, resolve_all
from .pictures import forget, picture

pytestmark = pytest.mark.django_db

# STORIES=200 tells as many.
STORIES = int(os.environ.get("STORIES", "2"))


def send(cast: Cast, story: Story, chance: random.Random) -> None:
    """Every line of the story, in overlapping files, between mistakes that are withdrawn again."""
    channels = {channel.name: channel for channel in cast.workspace.channels.all()}
    parcels: list[tuple[str, list[bytes], bool]] = []
    for name, mistakes in story.mistakes.items():
        lines = story.lines(name)
        chance.shuffle(lines)
        while lines:
            size = chance.randint(1, 12)
            parcel, lines = lines[:size], lines[size:]
            parcels.append((name, [*parcel, *chance.sample(parcel, chance.randint(0, len(parcel)))], False))
        parcels.append((name, [*mistakes, *chance.sample(story.lines(name), 2)], True))
    chance.shuffle(parcels)
    withdrawn = []
    for at, (name, lines, is_mistake) in enumerate(parcels):
        door = chance.choice([Door.API, Door.IMPORT])
        delivery = deliver(cast, *lines, door=door, name=f"{at}.log", channel=channels[name])
        if chance.random() < 0.3:
            resolve_all()
        if is_mistake:
            act = {"membership": cast.owner, "delivery": Delivery.objects.get(pk=delivery.pk), "reason": "a mistake"}
            withdraw_delivery(**act)
            withdrawn.append(act)
    resolve_all()
    if chance.random() < 0.5:
        take_back(**withdrawn[0])
        resolve_all()
        withdraw_delivery(**withdrawn[0])
        resolve_all()


def check(story: Story) -> None:
    """The truth of every message, as its narrator knows it."""
    for talk in story.talks:
        conversation = Conversation.objects.get(native_id=talk.id, channel__name=talk.channel)
        shown = list(Message.objects.shown().filter(conversation=conversation).order_by("place"))
        names = {message.pk: message.native_id for message in shown}
        where = f"{talk.channel}/{talk.id}"
        assert [message.native_id for message in shown] == [told.id for told in talk.messages], where
        for message, told in zip(shown, talk.messages, strict=True):
            parent = names.get(message.parent) if message.parent else None
            assert (parent, message.parent_basis) == (told.parent, told.basis), f"{where}/{told.id}"
            assert told.says in message.english, f"{where}/{told.id}: {message.english}"
        cited = any(told.is_orphan for told in talk.messages)
        assert (conversation.message_count, conversation.missing_count) == (len(shown), int(cited)), where
        if talk.state is not None:
            assert conversation.state == talk.state, where
    assert Conversation.objects.filter(message_count__gt=0).count() == len(story.talks)


def list_untimed() -> set[str]:
    """The conversations that no wire and no envelope gives a time: what they say of when depends on the receipt."""
    rows = Conversation.objects.filter(messages__order_basis="receipt").values_list("channel__name", "key")
    return {f"{channel} {bytes(key).hex()}" for channel, key in rows}


@pytest.mark.parametrize("seed", begin_with(1, range(STORIES), seconds=25))
def test_a_story_comes_out_as_it_was_told(cast: Cast, seed: int) -> None:
    Channel.objects.create(workspace=cast.workspace, name="side")
    story = tell_story(seed)
    pictures = []
    for again in range(2):
        send(cast, story, random.Random(seed * 2 + again))
        check(story)
        pictures.append({name: each for name, each in picture().items() if name not in list_untimed()})
        forget()
    assert pictures[0] == pictures[1]
