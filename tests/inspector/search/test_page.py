"""docs/search.md: every name there is, and every example finds what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.search.registry import names
from inspector.search.selectors import find_messages

from ..conftest import Cast, deliver, resolve_all

PAGE = (Path(__file__).parents[3] / "docs" / "search.md").read_text()


def rows_below(heading: str) -> list[tuple[str, str]]:
    """The rows of the first table below a heading; a pipe in a cell is escaped there."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", part, re.MULTILINE)
    return [(first.replace("\\|", "|"), second) for first, second in rows]


def test_the_page_names_every_name_and_no_other() -> None:
    assert rows_below("The names") == [(f"{name}:", about) for name, about in names().items()]


@pytest.mark.django_db
def test_every_example_finds_the_lines_it_says(cast: Cast) -> None:
    log = re.search(r"```jsonl\n(.*?)```", PAGE, re.DOTALL)
    assert log is not None
    deliver(cast, log[1].encode())
    resolve_all()
    examples = rows_below("Examples")
    assert len(examples) > 15
    found = {}
    for query, _ in examples:
        lines = sorted(message.order_index + 1 for message in find_messages(workspace=cast.workspace, query=query))
        found[query] = ", ".join(map(str, lines)) or "none"
    assert found == dict(examples)
