"""R7 of the goals: records that break whoever reads them; the rest lands, and they are read when they can be."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from .crash.variants import CHOICE, POISON, POISONS, PRODUCT
from .installation import WORKER, Installation
from .measure import Goal, Row
from .visitor import Visitor, read_forms

ATTEMPTS = Goal("R7", "poison ({name}): attempts before it is set aside", 3, 3, True)
OTHERS = Goal("R7", "poison: records of the same delivery that did not land", 0, 0, True)
AGAIN = Goal("R7", "poison: records not read when they are tried again with a mended decoder", 0, 0, True)
RECORDS = 400
PATIENCE_S = 180.0
GONE = "the worker of job"


def measure_poison(installation: Installation) -> Iterator[Row]:
    """R7: one delivery with a record of each kind in it."""
    installation.variables |= {"DJANGO_SETTINGS_MODULE": "bench.crash.settings", CHOICE: "poison"}
    installation.start()
    installation.renew()
    door = installation.door
    places = {7 + number * (RECORDS // len(POISONS)): name for number, name in enumerate(POISONS)}
    lines = [
        json.dumps({"raw": f"{POISON}{places[number]}" if number in places else f"step {number}", "conversation": "c"})
        for number in range(RECORDS)
    ]
    start = time.perf_counter()
    receipt = door.post_log(
        "\n".join(lines).encode(), content_type="application/x-ndjson", idempotency_key=f"poison-{time.time_ns()}"
    )
    installation.wait_until_idle(seconds=PATIENCE_S, may_fail=True)
    spent = time.perf_counter() - start
    with installation.connect() as connection:
        letters = {
            places[int(str(index))]: (attempts, state, failure)
            for index, attempts, state, failure in connection.execute(
                "SELECT sighting.index, letter.attempts, letter.state, letter.failure FROM intake_deadletter letter "
                "JOIN intake_sighting sighting ON sighting.id = letter.sighting_id WHERE letter.delivery_id = %s",
                [receipt["delivery"]],
            )
        }
        told = _count_told(installation, receipt["delivery"])
    deaths = installation.read_log(WORKER, 100_000).count(GONE)
    for name in POISONS:
        attempts, state, failure = letters.get(name, (None, "not set aside", ""))
        goal = Goal(ATTEMPTS.id, ATTEMPTS.about.format(name=name), ATTEMPTS.required, ATTEMPTS.stretch, True)
        yield Row(goal, float(str(attempts)) if state == "dead" else None, remark=str(failure)[:80])
    missing = RECORDS - len(places) - told
    yield Row(
        OTHERS, missing, remark=f"{told} landed in {spent:.0f} s; jobs were taken back {deaths} times from the dead"
    )
    yield _measure_retry(installation, str(receipt["delivery"]), len(places))
    installation.stop()


def _measure_retry(installation: Installation, delivery: str, poisoned: int) -> Row:
    """The decoder is mended, and an auditor has all of them tried again on the page."""
    installation.stop()
    installation.variables[CHOICE] = PRODUCT
    installation.start()
    installation.renew()
    visitor = Visitor(host=installation.door.host, port=installation.door.port, link=installation.link)
    form = next(form for form in read_forms(visitor.open("/dead-letters/")) if form.action.endswith("/retry/"))
    status, _ = visitor.send(form)
    installation.wait_until_idle(seconds=PATIENCE_S, may_fail=True)
    return Row(
        AGAIN, RECORDS - _count_told(installation, delivery), remark=f"{poisoned} tried again, answered {status}"
    )


def _count_told(installation: Installation, delivery: str) -> int:
    with installation.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM threads_message message JOIN intake_sighting sighting "
            "ON sighting.record_id = message.record_id WHERE sighting.delivery_id = %s AND told_digest IS NOT NULL",
            [delivery],
        ).fetchone()
    return int(str(row[0])) if row else 0
