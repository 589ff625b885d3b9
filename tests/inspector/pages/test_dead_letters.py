"""The page of dead letters: what it says, to whom, and what it lets them do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector import pipeline, steps
from inspector.intake import readings
from inspector.intake.models import DeadLetter, Delivery, Job
from inspector.threads.models import Message
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in

from .conftest import page_of, shows

ADDRESS = page_of("dead-letters")
RETRY = page_of("retry-dead-letters")
FAILURE = 'ValueError: <b>cannot</b> read "it"'


@pytest.fixture
def poisoned(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Delivery:
    """A delivery of five records, two of which make their decoder fall over."""
    read = readings.read

    def fall_over(wire: str, *words: Any, **names: Any) -> Any:
        if "poison" in wire:
            raise ValueError('<b>cannot</b> read "it"')
        return read(wire, *words, **names)

    monkeypatch.setattr(readings, "read", fall_over)
    delivery = take_in(cast, b"one\npoison two\nthree\npoison four\nfive\n", name="week.log")
    delivery.refresh_from_db()
    return delivery


def test_it_says_what_failed_why_and_where(poisoned: Delivery, auditor: Client) -> None:
    page = auditor.get(ADDRESS).content.decode()
    assert page.count("&lt;b&gt;cannot&lt;/b&gt;") == 2
    shows(
        page,
        "record 2, line 2",
        "record 4, line 4",
        "3 attempts",
        page_of("delivery", poisoned.pk),
        never=["<b>cannot"],
    )
    for letter in DeadLetter.objects.all():
        assert page_of("raw", letter.record_id) in page


def test_the_bytes_of_a_dead_letter_are_those_that_came(poisoned: Delivery, auditor: Client) -> None:
    letter = DeadLetter.objects.get(sighting__index=1)
    response = auditor.get(page_of("raw", letter.record_id))
    assert b"".join(response) == b"poison two"


def test_a_viewer_sees_it_and_has_no_button(poisoned: Delivery, viewer: Client) -> None:
    page = viewer.get(ADDRESS).content.decode()
    shows(page, "cannot", never=[RETRY])
    assert viewer.post(RETRY).status_code == 403
    assert not DeadLetter.objects.exclude(state=DeadLetter.State.DEAD).exists()


def test_one_is_tried_again_and_then_the_rest(
    poisoned: Delivery, auditor: Client, monkeypatch: pytest.MonkeyPatch, cast: Cast
) -> None:
    monkeypatch.undo()
    letter = DeadLetter.objects.get(sighting__index=3)
    response = auditor.post(RETRY, {"id": str(letter.pk)}, follow=True)
    page = response.content.decode()
    shows(page, "1 is tried again", "will be tried", "asked for by amir")
    resolve_all()
    assert Message.objects.count() == 4
    assert auditor.get(ADDRESS).content.decode().count("record 4") == 0
    assert "1 is tried again" in auditor.post(RETRY, follow=True).content.decode()
    resolve_all()
    assert "No dead letters" in auditor.get(ADDRESS).content.decode()
    assert "nothing to try again" in auditor.post(RETRY, follow=True).content.decode()
    poisoned.refresh_from_db()
    assert (poisoned.read, poisoned.set_aside, Message.objects.count()) == (5, 0, 5)


@pytest.mark.parametrize("text", ["no-id", "", "\x00"])
def test_an_id_that_is_none_is_not_found(poisoned: Delivery, auditor: Client, text: str) -> None:
    assert auditor.post(RETRY, {"id": text}).status_code == 404
    assert auditor.get(ADDRESS, {"delivery": "no-id"}).status_code == 404


def test_a_delivery_links_to_its_own_letters(poisoned: Delivery, auditor: Client, cast: Cast) -> None:
    page = auditor.get(page_of("delivery", poisoned.pk)).content.decode()
    shows(page, "2 records of it could not be read and were put aside", f"{ADDRESS}?delivery={poisoned.pk}")
    # The receipt counts them as what they are: stored.
    assert "5 received = 5 + 0 + 0" in page
    other = take_in(cast, b"poison elsewhere\nfine\n", name="other.log")
    limited = auditor.get(ADDRESS, {"delivery": str(poisoned.pk)}).content.decode()
    assert limited.count("cannot") == 2
    assert auditor.get(ADDRESS).content.decode().count("cannot") == 3
    assert auditor.get(ADDRESS, {"delivery": str(other.pk)}).content.decode().count("cannot") == 1


def test_the_list_of_deliveries_says_that_there_are_some(
    cast: Cast, auditor: Client, request: pytest.FixtureRequest
) -> None:
    address = page_of("deliveries")
    assert ADDRESS not in auditor.get(address).content.decode()
    request.getfixturevalue("poisoned")
    page = auditor.get(address).content.decode()
    assert ADDRESS in page
    # What is set aside no longer counts as being read.
    assert 'data-state="running"' not in page


def test_a_delivery_whose_reading_never_began_says_so(
    cast: Cast, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall_over(job: Job) -> bool:
        raise RuntimeError("no luck")

    monkeypatch.setattr(steps, "ingest_together", fall_over)
    delivery = deliver(cast, b"one\n", name="week.log")
    for _ in range(4):
        Job.objects.update(due_at="2020-01-01T00:00:00Z")
        pipeline.run_due(seconds=5)
    page = auditor.get(ADDRESS).content.decode()
    shows(page, "Reading the records of", "RuntimeError: no luck")
    receipt = auditor.get(page_of("delivery", delivery.pk)).content.decode()
    shows(receipt, "could not be finished", ADDRESS)
    monkeypatch.undo()
    auditor.post(RETRY, {"id": str(Job.objects.get(kind=Job.Kind.INGEST).pk)})
    resolve_all()
    delivery.refresh_from_db()
    assert delivery.read == 1


def test_a_stranger_finds_nothing(poisoned: Delivery, cast: Cast, sign_in: Callable[..., Client]) -> None:
    stranger = sign_in(cast.stranger)
    assert stranger.get(ADDRESS).status_code == stranger.post(RETRY).status_code == 404
    own = reverse("pages:dead-letters", args=["other"])
    assert "cannot" not in stranger.get(own).content.decode()
    assert stranger.get(own, {"delivery": str(poisoned.pk)}).status_code == 404
    ids = [str(pk) for pk in DeadLetter.objects.values_list("pk", flat=True)]
    stranger.post(reverse("pages:retry-dead-letters", args=["other"]), {"id": ids})
    assert set(DeadLetter.objects.values_list("state", flat=True)) == {DeadLetter.State.DEAD}


@pytest.mark.long(seconds=2)
@pytest.mark.parametrize("count", [3, 60])
def test_its_queries_do_not_grow(
    cast: Cast, auditor: Client, count: int, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    def fall_over(*words: Any, **names: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr(readings, "read", fall_over)
    take_in(cast, *(b"line %d\n" % number for number in range(count)))
    with django_assert_max_num_queries(7):
        page = auditor.get(ADDRESS).content.decode()
    assert page.count("ValueError: a bug") == min(count, 50)
    assert ("Older →" in page) == (count > 50)


@pytest.mark.parametrize("kind", Job.Kind.values)
def test_every_kind_of_work_that_was_given_up_is_named(cast: Cast, owner: Client, kind: str) -> None:
    Job.objects.create(
        workspace=cast.workspace, kind=kind, subject=cast.channel.pk, state=Job.State.DEAD, failure="why"
    )
    page = owner.get(ADDRESS)
    assert page.status_code == 200
    assert [work["job"].failure for work in page.context["work"]] == ["why"]
