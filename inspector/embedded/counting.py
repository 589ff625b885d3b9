"""A second opinion on how many records a log holds, by plain rules that share no code with the product's framing.

| file | a record is |
|---|---|
| `.jsonl`, `.ndjson` | a line that is not blank |
| `.json` | an element of the array, or of its `messages`; a span of OTLP; anything else is one record |
| `.csv` | a row below the header that has any text |
| other text | a line that is not blank, no comment (`#`), no part of a bracket opened above, no signature |

Good enough for logs that we wrote, wrong for wild ones: it checks that nothing was lost on the way, not the framing.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

OPENING, CLOSING = "{[", "}]"
# A lingua statement's signature stands on a line of its own.
SIGNATURE = re.compile(r"^\s*(?:--|—|—\s|sig(?:nature)?:)", re.IGNORECASE)


def count_records(path: Path) -> int:
    """How many records the file holds."""
    text = path.read_bytes().decode("utf-8-sig", errors="replace")  # What is no text is a record all the same.
    return RULES.get(path.suffix, count_lines_and_blocks)(text)


def count_lines(text: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in text.splitlines() if line.strip())


def count_elements(text: str) -> int:
    """Elements of a JSON array, or spans of an export of OpenTelemetry."""
    read = json.loads(text)
    if isinstance(read, dict) and "resourceSpans" in read:
        return sum(len(scope["spans"]) for each in read["resourceSpans"] for scope in each["scopeSpans"])
    if isinstance(read, dict):
        read = read.get("messages", [read])
    return len(read) if isinstance(read, list) else 1


def count_rows(text: str) -> int:
    """Rows of a table below its header."""
    return sum(1 for row in list(csv.reader(io.StringIO(text)))[1:] if any(cell.strip() for cell in row))


def count_lines_and_blocks(text: str) -> int:
    """Lines and blocks of a text log."""
    count = depth = 0
    for line in text.splitlines():
        is_first = depth == 0
        depth = max(0, depth + _measure_depth(line))
        if is_first and line.strip() and not line.lstrip().startswith("#") and not SIGNATURE.match(line):
            count += 1
    return count


def _measure_depth(line: str) -> int:
    """Brackets opened less brackets closed, outside of double quotes."""
    plain = re.sub(r'"(?:\\.|[^"\\])*"', "", line)
    return sum(plain.count(mark) for mark in OPENING) - sum(plain.count(mark) for mark in CLOSING)


RULES: Mapping[str, Callable[[str], int]] = {
    ".jsonl": count_lines,
    ".ndjson": count_lines,
    ".json": count_elements,
    ".csv": count_rows,
}
