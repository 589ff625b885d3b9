"""Poison: a record that cannot be read, whatever it does to its reader, is set aside, and the rest of the log lands."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DataError, OperationalError

from inspector import pipeline, reading, steps
from inspector.intake import jobs, letters, readings
from inspector.intake.models import DeadLetter, Delivery, Door, Job, Record
from inspector.intake.selectors import find_progress
from inspector.threads.models import Message
from tests.lanes import begin_with

from ..conftest import Cast, deliver, resolve_all
from .processes import PROJECT, make_environment

POISON = "here is the poison"


def write_log(*poisoned: int, count: int = 40) -> bytes:
    lines = [
        json.dumps({"raw": POISON if number in poisoned else f"step {number}", "conversation": f"job {number % 3}"})
        for number in range(count)
    ]
    return "\n".join(lines).encode() + b"\n"


def numbers(delivery: Delivery) -> tuple[int, ...]:
    delivery.refresh_from_db()
    return (delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined)


@pytest.fixture
def poisonous(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[BaseException], list[str]]]:
    """Makes the reading of the poison raise this; gives back what was tried to be read of it."""
    read = readings.read

    def poison(error: BaseException) -> list[str]:
        tried: list[str] = []

        def fail(wire: str, *words: Any, **names: Any) -> Any:
            if POISON in wire:
                tried.append(wire)
                raise error
            return read(wire, *words, **names)

        monkeypatch.setattr(readings, "read", fail)
        return tried

    return poison  # type: ignore[return-value]


@pytest.mark.django_db
@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError(), RecursionError("too deep"), DataError("no")])
def test_one_poison_record_is_set_aside_after_three_attempts(
    cast: Cast, poisonous: Callable[..., list[str]], error: Exception
) -> None:
    tried = poisonous(error)
    delivery = deliver(cast, write_log(17))
    before = numbers(delivery)
    resolve_all()
    assert numbers(delivery) == before == (40, 40, 0, 0)
    assert Message.objects.count() == delivery.read == 39
    letter = DeadLetter.objects.get()
    assert (letter.state, letter.attempts, len(tried)) == (DeadLetter.State.DEAD, 3, 3)
    assert letter.failure.startswith(type(error).__name__)
    assert letter.sighting.index == 17
    assert letter.record.wire_text == POISON
    assert delivery.set_aside == 1
    assert find_progress(delivery=delivery).is_read
    assert Job.objects.get(kind=Job.Kind.INGEST).state == Job.State.DONE


@pytest.mark.django_db
@pytest.mark.parametrize("poisoned", [(0,), (39,), (0, 1, 2), (5, 20, 39), tuple(range(40))], ids=str)
def test_poison_anywhere_costs_only_itself(
    cast: Cast, poisonous: Callable[..., list[str]], poisoned: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_RECORDS", 7)
    poisonous(ValueError("a bug"))
    delivery = deliver(cast, write_log(*poisoned))
    resolve_all()
    assert numbers(delivery) == (40, 40, 0, 0)
    assert (delivery.read, delivery.set_aside) == (40 - len(poisoned), len(poisoned))
    found = DeadLetter.objects.filter(state=DeadLetter.State.DEAD, attempts=3)
    assert sorted(found.values_list("sighting__index", flat=True)) == sorted(poisoned)
    assert Message.objects.count() == 40 - len(poisoned)


@pytest.mark.django_db
def test_a_batch_after_the_poison_is_read_as_a_batch_again(
    cast: Cast, poisonous: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_RECORDS", 10)
    poisonous(ValueError("a bug"))
    batches: list[int] = []
    insert = reading.insert_arrivals
    monkeypatch.setattr(
        reading, "insert_arrivals", lambda **names: (batches.append(len(names["arrivals"])), insert(**names))
    )
    deliver(cast, write_log(13))
    resolve_all()
    assert batches == [10, *[1] * 9, 10, 10]


@pytest.mark.django_db
def test_it_is_read_when_the_decoder_is_mended(
    cast: Cast, poisonous: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    poisonous(ValueError("a bug"))
    delivery = deliver(cast, write_log(3, 4))
    resolve_all()
    assert letters.retry(membership=cast.auditor) == 2
    resolve_all()
    assert set(DeadLetter.objects.values_list("state", "attempts")) == {("dead", 3)}
    monkeypatch.undo()
    one = DeadLetter.objects.get(sighting__index=3)
    assert letters.retry(membership=cast.owner, ids=[one.pk]) == 1
    resolve_all()
    one.refresh_from_db()
    assert (one.state, one.failure, one.asked_by) == (DeadLetter.State.READ, "", cast.owner.user)
    assert numbers(delivery) == (40, 40, 0, 0)
    assert (delivery.read, delivery.set_aside) == (39, 1)
    assert letters.retry(membership=cast.owner) == 1
    resolve_all()
    delivery.refresh_from_db()
    assert (delivery.read, delivery.set_aside, Message.objects.count()) == (40, 0, 40)
    assert letters.retry(membership=cast.owner) == 0


@pytest.mark.django_db
def test_a_record_that_takes_too_long_is_interrupted(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    read = readings.read

    def dawdle(wire: str, *words: Any, **names: Any) -> Any:
        while POISON in wire:
            try:
                time.sleep(0.05)
            except ValueError:  # What a decoder catches must not make it immortal.
                continue
        return read(wire, *words, **names)

    monkeypatch.setattr(readings, "read", dawdle)
    monkeypatch.setattr(reading, "READING_SECONDS", 0.3)
    delivery = deliver(cast, write_log(5))
    started = time.monotonic()
    resolve_all()
    assert time.monotonic() - started < 10
    assert DeadLetter.objects.get().failure == "OutOfTimeError: it took longer than 0.3 seconds"
    assert numbers(delivery) == (40, 40, 0, 0)
    assert delivery.read == 39


@pytest.mark.django_db
def test_what_passes_by_itself_sets_nothing_aside(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    insert = reading.insert_arrivals
    failures = iter(["40P01", "40001", "53100", "57P01", "08006"] * 2)

    def fail(**names: Any) -> None:
        code = next(failures, None)
        if code is None:
            insert(**names)
            return
        cause = Exception("as the server says it")
        cause.sqlstate = code  # type: ignore[attr-defined]
        raise OperationalError("not now") from cause

    monkeypatch.setattr(reading, "insert_arrivals", fail)
    monkeypatch.setattr(steps.connection, "close", lambda: None)
    delivery = deliver(cast, write_log())
    resolve_all()
    assert next(failures, None) is None
    assert not DeadLetter.objects.exists()
    delivery.refresh_from_db()
    assert delivery.read == Message.objects.count() == 40


@pytest.mark.django_db
def test_a_letter_forgives_what_was_not_its_fault(
    cast: Cast, poisonous: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    poisonous(ValueError("a bug"))
    deliver(cast, write_log(3))
    resolve_all()
    monkeypatch.undo()
    letters.retry(membership=cast.owner)
    insert = reading.insert_arrivals
    failures = iter(range(7))

    def fail(**names: Any) -> None:
        if next(failures, None) is not None:
            raise OperationalError("the line broke")
        insert(**names)

    monkeypatch.setattr(reading, "insert_arrivals", fail)
    monkeypatch.setattr(steps.connection, "close", lambda: None)
    resolve_all()
    assert DeadLetter.objects.get().state == DeadLetter.State.READ


@pytest.mark.django_db
def test_a_viewer_and_a_stranger_retry_nothing(cast: Cast, poisonous: Callable[..., list[str]]) -> None:
    poisonous(ValueError("a bug"))
    deliver(cast, write_log(3))
    resolve_all()
    letter = DeadLetter.objects.get()
    with pytest.raises(PermissionDenied):
        letters.retry(membership=cast.viewer)
    assert letters.retry(membership=cast.stranger) == 0
    assert letters.retry(membership=cast.stranger, ids=[letter.pk]) == 0
    letter.refresh_from_db()
    assert letter.state == DeadLetter.State.DEAD


@pytest.mark.django_db
@pytest.mark.usefixtures("resolved_apart")
def test_work_that_was_given_up_is_asked_for_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall_over(**names: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(steps, "resolve", fall_over)
    deliver(cast, write_log())
    for _ in range(5):
        Job.objects.update(due_at="2020-01-01T00:00:00Z")
        pipeline.run_due(seconds=5)
    assert Job.objects.filter(state=Job.State.DEAD).count() == 3
    monkeypatch.undo()
    assert letters.retry(membership=cast.auditor) == 3
    resolve_all()
    assert not Message.objects.filter(told_digest=None).exists()


@pytest.mark.django_db
def test_a_duplicate_that_moves_a_poison_record_is_set_aside_too(
    cast: Cast, poisonous: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps({"raw": POISON, "id": "p1", "conversation": "c"}).encode()
    poisonous(ValueError("a bug"))
    first = deliver(cast, b"before\nand more\n" + line, door=Door.API)
    Delivery.objects.filter(pk=first.pk).update(received_at="2026-11-21T09:00:00Z")
    Record.objects.update(order_time="2027-11-21T09:00:00Z")
    second = deliver(cast, line, door=Door.API)
    resolve_all()
    assert numbers(first)[:3] == (3, 3, 0)
    assert numbers(second)[:3] == (1, 0, 1)
    assert (first.read, first.set_aside, second.read, second.set_aside) == (2, 1, 0, 0)
    assert DeadLetter.objects.count() == 2
    monkeypatch.undo()
    letters.retry(membership=cast.owner)
    resolve_all()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.read, first.set_aside, second.read, second.set_aside) == (3, 0, 0, 0)
    assert Message.objects.count() == 3


# A process that has read all it needs makes a worker of itself at each line, and tells how that one ended.
DEADLY = f"""
import os, signal, sys, traceback, django
django.setup()
from inspector import pipeline, reading, steps
from inspector.intake import jobs, readings
jobs.PAUSE_AFTER_DEATHS_SECONDS = 0
read = readings.read
def die(wire, *words, **names):
    if {POISON!r} in wire:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(wire, *words, **names)
readings.read = die
def work():
    try:
        pipeline.run_due(seconds=60)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
for _ in sys.stdin:
    worker = os.fork() or work()
    print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Lets a worker live that its poison kills, and gives back how it ended; what it complains of is in a log."""
    log = tmp_path / "process.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-c", DEADLY],
            env=make_environment(tmp_path),
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as parent,
    ):
        assert parent.stdin is not None
        assert parent.stdout is not None
        asked, told = parent.stdin, parent.stdout

        def live_once() -> int:
            asked.write(b"\n")
            asked.flush()
            status = told.readline()
            assert status, log.read_text()
            return int(status)

        yield live_once


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("poisoned", begin_with(1, ([17], [8, 9], [0], [39]), seconds=8), ids=str)
def test_a_record_that_kills_its_worker_kills_it_three_times_at_most(
    cast: Cast, live: Callable[[], int], tmp_path: Path, poisoned: Sequence[int]
) -> None:
    delivery = deliver(cast, write_log(*poisoned))
    deaths = 0
    read_at_death = []
    while status := live():
        assert status == -9, (tmp_path / "process.log").read_text()
        deaths += 1
        delivery.refresh_from_db()
        read_at_death.append(delivery.read)
        assert deaths < 10
    # The first of several shares its first death, in their batch, with the others.
    assert deaths <= 3 * len(poisoned)
    resolve_all()
    assert numbers(delivery) == (40, 40, 0, 0)
    assert (delivery.read, delivery.set_aside) == (40 - len(poisoned), len(poisoned))
    assert set(DeadLetter.objects.values_list("state", "attempts", "failure")) == {("dead", 3, jobs.DIED)}
    # The last attempt comes when all the rest is there.
    assert read_at_death[-1] == 40 - len(poisoned)
    assert Message.objects.count() == 40 - len(poisoned)
    assert Job.objects.get(kind=Job.Kind.INGEST).state == Job.State.DONE
