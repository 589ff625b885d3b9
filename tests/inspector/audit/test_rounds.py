"""Work that comes back: what walking up from each task finds, in time that grows with the tasks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.audit.findings.scene import SeenTask
from inspector.audit.rules.work import find_rounds

START = datetime(2026, 11, 16, tzinfo=UTC)


def make_task(number: int, within: int | None, requester: str, performer: str, *, act: str = "delegate") -> SeenTask:
    key, above = number.to_bytes(4), None if within is None else within.to_bytes(4)
    request = None if act == "unasked" else uuid.UUID(int=number + 1)
    names = (requester, performer)
    return SeenTask(
        uuid.UUID(int=0),
        key,
        above,
        "",
        request,
        "delegate" if act == "unasked" else act,
        *names,
        "open",
        None,
        START,
        START,
        None,
        0,
        False,
        "",
    )


def walk_up(tasks: Sequence[SeenTask]) -> Iterator[tuple[SeenTask, SeenTask]]:
    """The same by walking up from each."""
    by_key = {task.key: task for task in tasks}
    for task in tasks:
        if task.act != "delegate" or not task.request or not task.performer:
            continue
        seen, above = {task.key}, by_key.get(task.within_key or b"")
        while above is not None and above.key not in seen:
            seen.add(above.key)
            if above.act == "delegate" and above.request and above.requester == task.performer:
                yield task, above
                break
            above = by_key.get(above.within_key or b"")


NAMES = st.sampled_from(("", "ada", "bob", "cid", "dot"))


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 12)), NAMES, NAMES, st.sampled_from(("delegate", "request", "unasked"))
        ),
        max_size=12,
    )
)
def test_the_nearest_who_handed_it_on_is_found_also_where_tasks_go_round(
    said: list[tuple[int | None, str, str, str]],
) -> None:
    tasks = [make_task(number, *names, act=act) for number, (*names, act) in enumerate(said)]  # type: ignore[arg-type]
    assert list(find_rounds(tasks)) == list(walk_up(tasks))


def test_a_long_chain_is_gone_through_once() -> None:
    """A hundred thousand who hand it on, each to the next: nobody walks up from each of them."""
    count = 100_000
    tasks = [
        make_task(number, number - 1 if number else None, f"a{number}", f"a{number + 1}") for number in range(count)
    ]
    assert list(find_rounds(tasks)) == []
    back = make_task(count, count - 1, f"a{count}", "a0")
    assert list(find_rounds([*tasks, back])) == [(back, tasks[0])]
