"""One rule for many things: held to all of them in one test, which names every one that breaks it.

Thousands of small tests cost more to hand out and to report than to run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

MOST_NAMED, MOST_CHARACTERS = 20, 200


def for_each(
    things: Iterable[Any], *, name_of: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Let a test of one thing be a test of all of these; it fails with the names of those that break its rule.

    A rule with several arguments takes them from a row of as many.
    """
    items = list(things)

    def decorate(rule: Callable[..., None]) -> Callable[[], None]:
        is_row = len(inspect.signature(rule).parameters) > 1

        def hold() -> None:
            assert items, "there is nothing to hold the rule to"
            broken = [(item, error) for item in items if (error := _find_fault(item))]
            if not broken:
                return
            named = "\n".join(
                f"{name_of(item)[:MOST_CHARACTERS]}: {type(error).__name__}: {error}"
                for item, error in broken[:MOST_NAMED]
            )
            # The first of them with its place and its values, as if it stood alone.
            raise AssertionError(f"{len(broken)} of {len(items)} break the rule:\n{named}") from broken[0][1]

        def _find_fault(item: Any) -> BaseException | None:
            try:
                rule(*item if is_row else (item,))
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # whatever it is, it is told with the name of the thing
                return error
            return None

        hold.__name__, hold.__qualname__, hold.__doc__, hold.__module__ = (
            rule.__name__,
            rule.__qualname__,
            rule.__doc__,
            rule.__module__,
        )
        return hold

    return decorate
