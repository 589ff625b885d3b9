"""A form of exports: Markdown, a message a line, for notes and tickets.

A line has the whole record, as docs/exports.md says of JSON Lines; its secrets are masked where the file's are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inspector.exports.exporters import Exporter

# What would begin something of its own, were it not a character of a message.
_MARKS = re.compile(r"[\\`*_{}\[\]()<>#+\-.!|~&]")


def _write(line: Mapping[str, Any]) -> bytes:
    told = line["inspected"]
    texts = [message["english"] or line["raw"] or "" for message in told["messages"]]
    rows = [f"- {told['at']} {_MARKS.sub(_escape, ' '.join(text.split()))}\n" for text in texts]
    # A log may hold half of a character, which no file in UTF-8 can.
    return "".join(rows).encode("utf-8", "backslashreplace")


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


EXPORTER = Exporter(
    slug="md",
    title="Markdown",
    about="a message a line, for notes and tickets",
    media_type="text/markdown; charset=utf-8",
    write=_write,
    head=b"# Messages\n\n",
)
