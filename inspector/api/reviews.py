"""Reviews: queues with their progress, their items and verdicts, of which a program learns what anybody may know; acts
of a key in the name of the member who made it; and audit samples, each with its seed, its strata and what it drew.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from rest_framework import serializers
from rest_framework.request import Request

from inspector.audit.models import AuditSample, Review, ReviewItem, ReviewQueue
from inspector.audit.models.reviews import MAX_NAME_LENGTH, Rubric
from inspector.audit.reviews import selectors, verdicts
from inspector.audit.reviews.bindings import KINDS, Standing, find_standings, list_item_reviews
from inspector.audit.reviews.queues import MAX_AT_ONCE, MAX_CRITERIA, MAX_CRITERION_LENGTH, find_rubric
from inspector.audit.reviews.verdicts import MAX_COMMENT_LENGTH
from inspector.audit.samples import MAX_SEED_LENGTH, draw_sample, find_items, find_sample, list_drawn, list_samples
from inspector.ledger.proofs import find_changed

from .authentication import act_for
from .endpoints import Endpoint, operation
from .parameters import (
    Document,
    take_choice,
    take_moment,
    take_number,
    take_text,
    take_texts,
)
from .problems import ProblemError
from .shapes import DigestField, cut_page, listing, read_place, read_row_key, show

STANDINGS: Final = ("holds", "stale", "unknown")
STATES: Final = tuple(ReviewItem.State.values)


class QueueSerializer(serializers.Serializer[Any]):
    """A queue of reviews and how far it is."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    about = serializers.CharField(allow_blank=True)
    reviewers = serializers.IntegerField(help_text="how many have to say the same of each conversation: 1 or 2")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # the queue's own word
        choices=ReviewQueue.Source.values, help_text="what fills it"
    )
    is_standing = serializers.BooleanField(help_text="it holds the verdicts given on a conversation's page")
    is_closed = serializers.BooleanField()
    open = serializers.IntegerField(help_text="items of which something is still to be said")
    second = serializers.IntegerField(help_text="of these: one of two has spoken, and another is needed")
    disputed = serializers.IntegerField(help_text="of these: two differ, and a third person decides")
    settled = serializers.IntegerField(help_text="items that are signed off")
    stale = serializers.IntegerField(help_text="sign-offs in force that differ from what is there by now")
    oldest = serializers.DateTimeField(allow_null=True, help_text="since when the oldest open one waits")


class RubricSerializer(serializers.Serializer[Any]):
    """The questions on each conversation."""

    number = serializers.IntegerField(help_text="its version")
    criteria = serializers.ListField(child=serializers.CharField())


class ReviewerSerializer(serializers.Serializer[Any]):
    """What a person did in a queue, as far as anybody may know it."""

    reviewer = serializers.CharField()
    verdicts = serializers.DictField(child=serializers.IntegerField(), help_text="how many, by what they say")
    held = serializers.IntegerField(help_text="how many items they hold")


class QueueDetailSerializer(QueueSerializer):
    """A queue with its rubric and who did how much in it."""

    rubric = RubricSerializer(allow_null=True, help_text="the version that holds")
    people = ReviewerSerializer(many=True, help_text="the busiest first; of two, nothing before both have spoken")


class ItemSerializer(serializers.Serializer[Any]):
    """A conversation in a queue."""

    id = serializers.UUIDField()
    queue = serializers.UUIDField(source="queue_id")
    conversation = serializers.UUIDField(source="conversation_id")
    state = serializers.ChoiceField(
        choices=STATES, help_text="second: one of two verdicts is in; both are shown when both are"
    )
    needed = serializers.IntegerField(help_text="how many have to speak")
    why = serializers.CharField(allow_blank=True, help_text="why it is in the queue")
    added_at = serializers.DateTimeField()
    holder = serializers.CharField(allow_null=True, help_text="who holds it now")
    held_until = serializers.DateTimeField(allow_null=True)
    verdict = serializers.ChoiceField(
        choices=Review.Verdict.values, allow_null=True, help_text="null until it is signed off, and while it is hidden"
    )
    ended_at = serializers.DateTimeField(allow_null=True)


class AnswerSerializer(serializers.Serializer[Any]):
    """An answer to a criterion of the rubric."""

    criterion = serializers.CharField()
    answer = serializers.ChoiceField(choices=Review.Answer.values)


class ChangeSerializer(serializers.Serializer[Any]):
    """In what messages differ from what was signed."""

    kind = serializers.ChoiceField(choices=KINDS)
    count = serializers.IntegerField()


class VerdictSerializer(serializers.Serializer[Any]):
    """A verdict that this key may see."""

    id = serializers.UUIDField()
    reviewer = serializers.CharField(source="reviewer.username")
    verdict = serializers.ChoiceField(choices=Review.Verdict.values)
    comment = serializers.CharField(allow_blank=True)
    is_adjudication = serializers.BooleanField(help_text="it decided between two that differ")
    answers = AnswerSerializer(many=True)
    rubric = serializers.IntegerField(
        source="rubric.number", allow_null=True, help_text="the version of the rubric that was answered"
    )
    at = serializers.DateTimeField(source="created_at")
    messages = serializers.IntegerField(source="seen_messages", help_text="how many messages were seen")
    digest = DigestField(
        source="binding.digest", allow_null=True, help_text="what it is bound to; docs/reviews.md says over what"
    )
    is_changed = serializers.BooleanField(
        help_text="it is not what was entered in the ledger: somebody changed its row"
    )
    standing = serializers.ChoiceField(
        choices=STANDINGS, help_text="unknown: processed again, and not compared yet with the sign-off"
    )
    changes = ChangeSerializer(many=True, help_text="in what it is stale")


class ItemDetailSerializer(ItemSerializer):
    """An item with its rubric, and the verdicts on it that this key may see."""

    rubric = RubricSerializer(allow_null=True, help_text="its own while it is held; before, the one of its queue")
    settled_digest = DigestField(
        source="conversation.settled_digest",
        allow_null=True,
        help_text="digest of the conversation as it is now: a verdict names it as `seen`",
    )
    verdicts = VerdictSerializer(many=True, help_text="the first first; none before both of two have spoken")


class GivenSerializer(serializers.Serializer[Any]):
    """A verdict that was just given, and its item as anybody sees it."""

    given = VerdictSerializer()
    item = ItemDetailSerializer()


def show_queue(count: selectors.QueueCount) -> dict[str, Any]:
    """A queue and how far it is."""
    return show(
        QueueSerializer,
        count.queue,
        is_closed=count.queue.closed_at is not None,
        open=count.open,
        second=count.states.get(ReviewItem.State.SECOND, 0),
        disputed=count.states.get(ReviewItem.State.DISPUTED, 0),
        settled=count.settled,
        stale=count.stale,
        oldest=count.oldest,
    )


def show_item(item: ReviewItem) -> dict[str, Any]:
    """An item as anybody may know it; loaded as `audit.reviews.selectors` does."""
    is_told = not vars(item)["is_hidden"]
    return show(
        ItemSerializer,
        item,
        holder=item.holder.get_username() if item.holder and item.is_held else None,
        held_until=item.held_until if item.is_held else None,
        verdict=item.verdict or None if is_told else None,
    )


def show_whole_queue(count: selectors.QueueCount) -> dict[str, Any]:
    """A queue with its rubric and who did how much in it, as far as anybody may know."""
    people = selectors.count_reviewers(queue=count.queue, reader_id=None)
    return {
        **show_queue(count),
        "rubric": _show_rubric(find_rubric(queue=count.queue)),
        "people": [show(ReviewerSerializer, each) for each in people],
    }


def show_whole_item(item: ReviewItem) -> dict[str, Any]:
    """An item with the verdicts that anybody may know: of two reviewers nothing before both have spoken."""
    reviews = list_item_reviews(item=item, reader_id=None)
    standings = find_standings(reviews=reviews, conversation=item.conversation, is_compared=True)
    # Which version an item keeps from a hand that gave it back would tell that there was one.
    changed = find_changed("verdict", [review.pk for review in reviews]) if reviews else {}
    is_own = item.is_held or item.state != ReviewItem.State.WAITING
    rubric = _show_rubric(item.rubric if is_own else find_rubric(queue=item.queue))
    shown = [show_verdict(review, standings[review.pk], changed) for review in reviews]
    return show(ItemDetailSerializer, item, **show_item(item), rubric=rubric, verdicts=shown)


def _show_rubric(rubric: Rubric | None) -> Mapping[str, Any] | None:
    return show(RubricSerializer, rubric) if rubric else None


def show_given(review: Review, item: ReviewItem) -> dict[str, Any]:
    """A verdict to who gave it, and its item as anybody sees it."""
    standing = find_standings(reviews=[review], conversation=item.conversation)[review.pk]
    given = show_verdict(review, standing, find_changed("verdict", [review.pk]))
    return {"given": given, "item": show_whole_item(item)}


def show_verdict(review: Review, standing: Standing, changed: Collection[uuid.UUID]) -> dict[str, Any]:
    """A verdict that this key may see; `changed` are those that are not as they were entered."""
    criteria = review.rubric.criteria if review.rubric else []
    answers = zip(criteria, review.answers, strict=True)
    return show(
        VerdictSerializer,
        review,
        answers=[{"criterion": criterion, "answer": answer} for criterion, answer in answers],
        is_changed=review.pk in changed,
        standing="stale" if standing.is_stale else "holds" if standing.is_known else "unknown",
        changes=[{"kind": kind, "count": change.count} for kind, change in standing.changes.items()],
    )


logger = logging.getLogger(__name__)


def _read_digest(value: Any) -> bytes:
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        raise ValueError
    return bytes.fromhex(value)


_VERDICT: Final = Document(
    '{"verdict": "fine", "comment": "…", "seen": "…", "answers": ["pass"]}',
    (
        take_choice("verdict", choices=Review.Verdict.values, is_required=True),
        take_text("comment", default="", max_characters=MAX_COMMENT_LENGTH, about="why"),
        replace(
            take_text(
                "seen",
                is_required=True,
                max_characters=64,
                about="`settled_digest` of the item as it was read: nobody signs what they have not seen",
            ),
            allowed="the settled_digest of the item, in hexadecimal",
            read=_read_digest,
        ),
        take_texts(
            "answers",
            default=(),
            choices=Review.Answer.values,
            most=MAX_CRITERIA,
            about="one for each criterion of the rubric of the item, in their order",
        ),
    ),
)


class Reviews(Endpoint):
    """Queues of reviews, their items, and verdicts on these."""

    @listing(
        "Queue",
        QueueSerializer,
        "Queues of the workspace, open ones first, the standing one last; `next` is the cursor of the page after.",
        scope="review",
    )
    def list_review_queues(self, request: Request) -> dict[str, Any]:
        """A page of them, with how far each is, in the order in which they were made."""
        found = selectors.walk_queues(workspace=self.workspace, after=read_place(self), limit=self.given["limit"] + 1)
        page, cursor = cut_page(self, found, lambda each: (each.queue.created_at, each.queue.pk))
        return {"results": [show_queue(count) for count in page], "next": cursor}

    @operation(QueueDetailSerializer, scope="review")
    def get_review_queue(self, request: Request, queue_id: uuid.UUID) -> dict[str, Any]:
        """How far it is, its rubric, and who did how much in it."""
        return show_whole_queue(selectors.count_queue(queue=self.find(selectors.find_queue, queue_id=queue_id)))

    @listing(
        "Item",
        ItemSerializer,
        "Items, longest waiting first, signed-off ones newest first; `next` is the cursor of the page after.",
        take_choice(
            "state",
            about="which items: open, needing a second reviewer, disputed, done, or done with a stale sign-off",
            choices=[selectors.OPEN, selectors.SECOND, selectors.DISPUTED, selectors.DONE, selectors.STALE],
            default=selectors.OPEN,
        ),
        scope="review",
    )
    def list_review_items(self, request: Request, queue_id: uuid.UUID) -> dict[str, Any]:
        """A page of its items: longest waiting first, done ones newest first."""
        queue, given = self.find(selectors.find_queue, queue_id=queue_id), self.given
        found = selectors.list_items(
            queue=queue, show=given["state"], reader=None, after=read_place(self), limit=given["limit"] + 1
        )
        page, cursor = cut_page(self, found, lambda item: (item.ended_at or item.added_at, item.pk))
        return {"results": [show_item(item) for item in page], "next": cursor}

    @operation({200: ItemDetailSerializer}, scope="sign", refusals=(409,))
    def take_next_review(self, request: Request, queue_id: uuid.UUID) -> dict[str, Any]:
        """Claim the item that waits longest and that the member who made the key may judge; 409 where there is none."""
        queue = self.find(selectors.find_queue, queue_id=queue_id)
        with act_for(request) as person:
            item = verdicts.claim_next(membership=person, queue=queue)
        if item is None:
            raise ProblemError(409, "nothing waits in this queue for the member who made this key")
        logger.info("key %s: took review %s", self.key.prefix, item.pk)
        return self._answer(item.pk)

    @operation(ItemDetailSerializer, scope="review")
    def get_review_item(self, request: Request, item_id: uuid.UUID) -> dict[str, Any]:
        """The item with the verdicts that anybody may know: of two reviewers nothing before both have spoken."""
        return self._answer(item_id)

    @operation({200: ItemDetailSerializer}, scope="sign", refusals=(409,))
    def take_review(self, request: Request, item_id: uuid.UUID) -> dict[str, Any]:
        """Claim it for half an hour, in the name of the member who made the key; 409 where another person does."""
        return self._act(item_id, verdicts.claim)

    @operation({200: ItemDetailSerializer}, scope="sign", refusals=(409,))
    def hold_review(self, request: Request, item_id: uuid.UUID) -> dict[str, Any]:
        """Hold it for another half hour from now on; 409 where one does not hold it any more."""
        return self._act(item_id, verdicts.renew)

    @operation({200: ItemDetailSerializer}, scope="sign", refusals=(409,))
    def give_review_back(self, request: Request, item_id: uuid.UUID) -> dict[str, Any]:
        """Give it back, so that anybody may take it; 409 where one does not hold it any more."""
        return self._act(item_id, verdicts.release)

    @operation({201: GivenSerializer}, body=_VERDICT, scope="sign")
    def give_verdict(self, request: Request, item_id: uuid.UUID) -> dict[str, Any]:
        """Give a verdict on an item that one holds; on a disputed one it decides.

        409 where one does not hold it, has spoken, or the conversation has changed since it was read.
        """
        item, said = self.find(selectors.find_item, item_id=item_id), _VERDICT.read(request)
        with act_for(request) as person:
            review = verdicts.judge_item(membership=person, item=item, **said)
        logger.info("key %s: gave verdict %s in review %s", self.key.prefix, review.pk, item.pk)
        return show_given(review, self.find(selectors.find_item, item_id=item_id))

    @operation({200: ItemDetailSerializer}, scope="sign", refusals=(409,))
    def withdraw_verdict(self, request: Request, item_id: uuid.UUID) -> dict[str, Any]:
        """Take one's verdict back as long as the other reviewer has not spoken. It is kept, as withdrawn."""
        return self._act(item_id, verdicts.withdraw_verdict)

    def _act(self, item_id: uuid.UUID, act: Callable[..., Any]) -> dict[str, Any]:
        item = self.find(selectors.find_item, item_id=item_id)
        with act_for(self.request) as person:
            act(membership=person, item=item)
        logger.info("key %s: %s review %s", self.key.prefix, act.__name__, item.pk)
        return self._answer(item_id)

    def _answer(self, item_id: uuid.UUID) -> dict[str, Any]:
        return show_whole_item(self.find(selectors.find_item, item_id=item_id))


# So many strata stand in an answer; `strata_from` asks for the others.
MAX_STRATA: Final = 500
_DRAW: Final = Document(
    '{"name": "November", "stratum": "dialect", "wanted": 25}',
    (
        take_text("name", is_required=True, max_characters=MAX_NAME_LENGTH, about="of the sample and of its queue"),
        take_choice("stratum", choices=AuditSample.Stratum.values, is_required=True, about="what divides it"),
        take_number(
            "wanted", in_body=True, is_required=True, least=1, most=MAX_AT_ONCE, about="how many conversations"
        ),
        take_text(
            "seed", default="", max_characters=MAX_SEED_LENGTH, about="printed ASCII; a fresh one where it is left out"
        ),
        take_moment("since", about="only conversations that were active from here on"),
        take_moment("until", about="only conversations that were active before this"),
        take_number("reviewers", in_body=True, default=1, least=1, most=2, about="how many review each conversation"),
        take_texts("criteria", default=(), most=MAX_CRITERIA, max_characters=MAX_CRITERION_LENGTH, about="the rubric"),
    ),
)


class SampleSerializer(serializers.Serializer[Any]):
    """An audit sample: how it was drawn, so that anybody can draw it again."""

    id = serializers.UUIDField()
    name = serializers.CharField(source="queue.name")
    queue = serializers.UUIDField(source="queue_id", help_text="the queue of reviews that it filled")
    method = serializers.CharField(help_text="by which rules the seed drew")
    seed = serializers.CharField()
    stratum = serializers.ChoiceField(choices=AuditSample.Stratum.values)
    wanted = serializers.IntegerField()
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)
    population = serializers.IntegerField(help_text="out of how many it was drawn")
    drawn = serializers.IntegerField()
    unsettled = serializers.IntegerField(help_text="how many of the population were not processed then")
    digest = DigestField(help_text="SHA-256 over the identities that were drawn, in ascending order")
    made_by = serializers.CharField(source="made_by.username")
    made_at = serializers.DateTimeField()


class StratumSerializer(serializers.Serializer[Any]):
    """A stratum of a sample."""

    name = serializers.CharField(allow_blank=True)
    population = serializers.IntegerField()
    drawn = serializers.IntegerField()


class SampleDetailSerializer(SampleSerializer):
    """A sample with its strata, by name."""

    strata = StratumSerializer(many=True, help_text=f"at most {MAX_STRATA}, from `strata_from` on")
    strata_count = serializers.IntegerField()


class DrawnSerializer(serializers.Serializer[Any]):
    """A conversation that was drawn."""

    place = serializers.IntegerField(help_text="in the draw, from 1")
    conversation = serializers.UUIDField(source="conversation_id")
    stratum = serializers.CharField(allow_blank=True)
    identity = DigestField(help_text="SHA-256 of what the log says it is; no id of the database is in it")
    item = serializers.UUIDField(allow_null=True, help_text="its item in the queue of the sample, the latest")


class Samples(Endpoint):
    """Audit samples."""

    @listing("Sample", SampleSerializer, "Samples, newest first", scope="review")
    def list_samples(self, request: Request) -> dict[str, Any]:
        """A page of the samples of the workspace."""
        workspace = self.workspace
        found = list_samples(workspace=workspace, after=read_place(self), limit=self.given["limit"] + 1)
        page, cursor = cut_page(self, found, lambda sample: (sample.made_at, sample.pk))
        return {"results": [show(SampleSerializer, sample) for sample in page], "next": cursor}

    @operation({201: SampleDetailSerializer}, body=_DRAW, scope="sign")
    def draw_sample(self, request: Request) -> dict[str, Any]:
        """Draw one into a queue of its own, in the name of the member who made the key.

        409 where there is no conversation to draw from.
        """
        said = _DRAW.read(request)
        with act_for(request) as person:
            sample = draw_sample(membership=person, **said)
        logger.info("key %s: drew sample %s", self.key.prefix, sample.pk)
        return _show_sample(sample, 0)

    @operation(
        SampleDetailSerializer,
        parameters=(take_number("strata_from", about="how many strata are passed over", default=0, most=10**9),),
        scope="review",
    )
    def get_sample(self, request: Request, sample_id: uuid.UUID) -> dict[str, Any]:
        """How it was drawn, out of how many of each stratum."""
        return _show_sample(self.find(find_sample, sample_id=sample_id), self.given["strata_from"])

    @listing("Drawn", DrawnSerializer, "Conversations in the order they were drawn", scope="review")
    def list_drawn(self, request: Request, sample_id: uuid.UUID) -> dict[str, Any]:
        """A page of its conversations."""
        sample = self.find(find_sample, sample_id=sample_id)
        of = f"what a sample drew {sample.pk}"
        key = read_row_key(self, of)
        found = list_drawn(sample=sample, after=key[0] if key else 0, limit=self.given["limit"] + 1)
        page, cursor = cut_page(self, found, lambda each: [each.place], of)
        items = find_items(sample=sample, drawn=page)
        found_items = {pk: item.pk for pk, item in items.items()}
        rows = [show(DrawnSerializer, each, item=found_items.get(each.conversation_id)) for each in page]
        return {"results": rows, "next": cursor}


def _show_sample(sample: AuditSample, first: int) -> dict[str, Any]:
    strata = [
        {"name": name, "population": population, "drawn": drawn}
        for name, population, drawn in sample.strata[first : first + MAX_STRATA]
    ]
    return show(SampleDetailSerializer, sample, strata=strata, strata_count=len(sample.strata))
