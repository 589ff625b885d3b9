"""Audit samples: the same seed over the same records draws the same, in whatever order these came in."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from django.core.exceptions import PermissionDenied, ValidationError

from inspector.accounts.models import Channel
from inspector.audit.models import AuditSample, ReviewItem, ReviewQueue, SampledConversation
from inspector.audit.samples import METHOD, draw, draw_sample, find_sample, list_drawn, list_samples, share_out
from inspector.intake.models import Delivery
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db


def say(conversation: int, sender: str, *, number: int = 0, day: int = 1) -> bytes:
    at = f"2026-10-{day:02d}T09:00:{number:02d}Z"
    envelope = {"from": sender, "to": ["radar"], "conversation": f"c{conversation}", "id": f"{conversation}-{number}"}
    raw = "?Uk/co" if conversation % 3 else "Good morning, everybody."
    return json.dumps({"raw": raw, "at": at} | envelope).encode() + b"\n"


LINES = [
    say(number, "oscar" if number % 4 else "muse", number=part, day=1 + number)
    for number in range(24)
    for part in range(2)
]


def names(found: list[SampledConversation]) -> list[str]:
    return [each.conversation.native_id for each in found]


def test_the_same_records_give_the_same_sample_in_any_order(cast: Cast) -> None:
    deliver(cast, *LINES)
    resolve_all()
    first = draw(workspace=cast.workspace, seed="s1", stratum="pair", wanted=7)
    other = cast.stranger.workspace
    channel = Channel.objects.get(workspace=other)
    stranger = Cast(other, cast.stranger, cast.stranger, cast.stranger, cast.owner)
    # Both halves of each conversation come in files of their own, the later one first.
    for start in (1, 0):
        deliver(stranger, *reversed(LINES[start::2]), name=f"{start}.jsonl", channel=channel)
    resolve_all()
    second = draw(workspace=other, seed="s1", stratum="pair", wanted=7)
    assert {each.conversation for each in first.drawn} & {each.conversation for each in second.drawn} == set()
    assert [each.identity for each in first.drawn] == [each.identity for each in second.drawn]
    assert first.strata == second.strata == [("muse and radar", 6, 2), ("oscar and radar", 18, 5)]
    assert first.digest == second.digest
    another = draw(workspace=other, seed="s2", stratum="pair", wanted=7)
    assert another.digest != first.digest


def test_a_sample_is_checked_by_hand(cast: Cast) -> None:
    deliver(cast, *LINES)
    resolve_all()
    sample = draw_sample(membership=cast.auditor, name="October", stratum="channel", wanted=5, seed="by hand")
    scores = {}
    for conversation in Conversation.objects.filter(workspace=cast.workspace):
        identity = hashlib.sha256(b"main\0" + bytes(conversation.key)).digest()
        text = METHOD.encode() + b"\0by hand\0" + identity
        scores[hashlib.sha256(text).digest()] = conversation.native_id
    assert names(list_drawn(sample=sample)) == [scores[each] for each in sorted(scores)[:5]]
    assert sample.strata == [["main", 24, 5]]


def test_it_fills_a_queue_once_and_for_all(cast: Cast) -> None:
    deliver(cast, *LINES)
    resolve_all()
    sample = draw_sample(
        membership=cast.auditor,
        name="October",
        stratum="dialect",
        wanted=6,
        reviewers=2,
        criteria=["Within its task?"],
    )
    assert (sample.population, sample.drawn, sample.unsettled) == (24, 6, 0)
    assert sum(drawn for _, _, drawn in sample.strata) == 6
    assert all(drawn >= 1 for _, _, drawn in sample.strata)
    items = ReviewItem.objects.filter(queue=sample.queue)
    assert {item.conversation_id for item in items} == {each.conversation_id for each in list_drawn(sample=sample)}
    assert {item.needed for item in items} == {2}
    assert sample.seed in items[0].why
    assert len(sample.seed) == 16
    assert list_samples(workspace=cast.workspace) == [sample]
    assert find_sample(workspace=cast.stranger.workspace, sample_id=sample.pk) is None
    assert [each.place for each in list_drawn(sample=sample, after=4)] == [5, 6]


def test_the_population_is_what_is_shown_in_the_time(cast: Cast) -> None:
    deliver(cast, *LINES)
    resolve_all()
    since, until = datetime(2026, 10, 3, tzinfo=UTC), datetime(2026, 10, 5, tzinfo=UTC)
    found = draw(workspace=cast.workspace, seed="s", stratum="severity", wanted=9, since=since, until=until)
    assert found.population == len(found.drawn) == 2
    withdraw_delivery(membership=cast.auditor, delivery=Delivery.objects.get(), reason="wrong file")
    resolve_all()
    assert draw(workspace=cast.workspace, seed="s", stratum="severity", wanted=9).population == 0


@pytest.mark.parametrize(
    ("populations", "wanted", "shares"),
    [
        ({"a": 90, "b": 9, "c": 1}, 10, {"a": 7, "b": 2, "c": 1}),
        ({"a": 2, "b": 1}, 5, {"a": 2, "b": 1}),
        ({"a": 50, "b": 50}, 4, {"a": 2, "b": 2}),
        ({"a": 100, "b": 1, "c": 1}, 1, {"a": 1, "b": 0, "c": 0}),
    ],
)
def test_shares(populations: dict[str, int], wanted: int, shares: dict[str, int]) -> None:
    assert share_out(populations, wanted, "s") == shares


def test_shares_never_exceed_what_there_is() -> None:
    populations = {f"s{number}": 1 + number * number % 7 for number in range(40)}
    for wanted in range(1, sum(populations.values()) + 3):
        shares = share_out(populations, wanted, "s")
        assert sum(shares.values()) == min(wanted, sum(populations.values()))
        assert all(0 <= shares[name] <= populations[name] for name in populations)


def test_what_is_refused(cast: Cast) -> None:
    deliver(cast, *LINES[:2])
    resolve_all()
    given = {"name": "n", "stratum": "dialect", "wanted": 1}
    with pytest.raises(PermissionDenied):
        draw_sample(membership=cast.viewer, **given)  # type: ignore[arg-type]
    late, early = datetime(2030, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)
    for wrong in (
        *({"seed": "é"}, {"seed": "x" * 65}, {"stratum": "colour"}, {"wanted": 0}, {"wanted": 1001}, {"name": " "}),
        *({"since": late}, {"since": late, "until": early}),
    ):
        with pytest.raises(ValidationError):
            draw_sample(membership=cast.auditor, **given | wrong)  # type: ignore[arg-type]
    assert not AuditSample.objects.exists()
    assert not ReviewQueue.objects.filter(is_standing=False).exists()
