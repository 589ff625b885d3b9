"""One reading of the largest body that is decoded for an answer ends well within the share of the processor.

The share is looked at between records (`inspector.bounds`), so one record may not take it all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

import pytest
from django.conf import settings

import dialects
from inspector import bounds
from inspector.bounds import fit_answer
from tests.codecs import test_carriers
from tests.each import for_each
from tests.timing import is_within


def find_worst(slug: str) -> dict[str, Callable[[int], str]]:
    """The texts of a dialect that cost most, by the module of its tests; those of every carrier where it has none."""
    try:
        tests = import_module(f"tests.codecs.test_{slug}")
    except ModuleNotFoundError:
        return test_carriers.WORST
    return getattr(tests, "WORST", None) or getattr(tests, "HOSTILE", None) or test_carriers.WORST


WORST = {each.slug: find_worst(each.slug) for each in dialects.all_dialects() if each.slug != "prose"}
TEXTS = [(slug, name) for slug, texts in WORST.items() for name in texts]


def write_largest(make: Callable[[int], str], max_bytes: int) -> str:
    """A text of this kind, as long as may be sent: texts grow with their size, some by many bytes for each."""
    bytes_each = len(make(10_000).encode("utf-8", "replace")) / 10_000
    return make(int(max_bytes / bytes_each)).encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


@pytest.mark.long(seconds=120)
@for_each(TEXTS)
def test_the_worst_text_is_read_in_half_of_an_answers_share(slug: str, name: str) -> None:
    text = write_largest(WORST[slug][name], settings.LIMITS["decode_bytes"])
    for dialect in (slug, "prose", None):

        def answer(dialect: str | None = dialect) -> float:
            start = time.thread_time()
            reading = dialects.decode(text, dialect=dialect)
            fit_answer({"records": [dialects.show_values(0, reading, is_tree=True)]})
            return time.thread_time() - start

        assert is_within(bounds.MAX_SECONDS / 2, answer), dialect or "the dialect that is found"
