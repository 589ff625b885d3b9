"""Which lane a case of a law is in: the first few in that of `make test`, the others in that of `make test-long`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import hypothesis
import pytest

# Of so many generated cases the short lane tries one: other ones in each run.
SHORT_PART = 4


def begin_with(few: int, cases: Iterable[Any], *, seconds: float) -> list[Any]:
    """The cases of a parametrised test, each one more than the first few marked as long, with its seconds."""
    left = iter(cases)
    mark = pytest.mark.long(seconds=seconds)
    return [
        *islice(left, few),
        *(pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=mark) for each in left),
    ]


def generated(
    examples: int, *, seconds: float = 5, **strategies: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a law be tried with so many cases that these strategies make, a quarter of them in the short lane."""

    def decorate(law: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize(
            "count", [examples // SHORT_PART, pytest.param(examples, marks=pytest.mark.long(seconds=seconds))]
        )
        def hold(count: int) -> None:
            hypothesis.settings(max_examples=count, deadline=None)(hypothesis.given(**strategies)(law))()

        hold.__name__, hold.__qualname__, hold.__doc__, hold.__module__ = (
            law.__name__,
            law.__qualname__,
            law.__doc__,
            law.__module__,
        )
        return hold

    return decorate
