"""Which lane a case of a law is in: the first few in that of `make test`, the others in that of `make test-long`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest


def begin_with(few: int, cases: Iterable[Any], *, seconds: float) -> list[Any]:
    """The cases of a parametrised test, each one more than the first few marked as long, with its seconds."""
    left = iter(cases)
    mark = pytest.mark.long(seconds=seconds)
    return [
        *islice(left, few),
        *(pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=mark) for each in left),
    ]
