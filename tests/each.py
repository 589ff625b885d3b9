"""One rule for many things: held to all of them in one test, which names every one that breaks it.

Thousands of small tests cost more to hand out and to report than to run.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

MAX_NAMED, MAX_CHARACTERS = 20, 200


def for_each(
    things: Iterable[Any], *, of: Sequence[str] = (), name_of: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a test of one thing be a test of all of these; it fails with the names of those that break its rule.

    A rule with several arguments takes them from a row of as many. Where some arguments are fixtures, `of` names the
    others: all things meet the same fixtures, so that no rule may change what they hold.
    """
    items = list(things)

    def decorate(rule: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(rule)
        names = of or tuple(signature.parameters)

        def hold(**fixtures: Any) -> None:
            assert items, "there is nothing to hold the rule to"
            broken = [(item, error) for item in items if (error := _find_fault(item, fixtures))]
            if not broken:
                return
            named = "\n".join(
                f"{name_of(item)[:MAX_CHARACTERS]}: {type(error).__name__}: {error}"
                for item, error in broken[:MAX_NAMED]
            )
            # The first of them with its place and its values, as if it stood alone.
            raise AssertionError(f"{len(broken)} of {len(items)} break the rule:\n{named}") from broken[0][1]

        def _find_fault(item: Any, fixtures: Mapping[str, Any]) -> BaseException | None:
            row = item if len(names) > 1 else (item,)
            try:
                rule(**dict(zip(names, row, strict=True)), **fixtures)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # it is told with the name of the thing
                return error
            return None

        functools.update_wrapper(hold, rule)
        given = [each for name, each in signature.parameters.items() if name not in names]
        hold.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        del hold.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for its arguments
        return hold

    return decorate
