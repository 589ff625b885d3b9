"""Exporters: further forms of a file, which other packages bring by entry points of the group `inspector.exporters`.

Each entry point is named by its exporter's slug and names the object. A slug that there is already, or that cannot be
one, stops the start. An exporter is given records as their lines have them in JSON Lines (docs/exports.md): what is
masked there is masked for it too, and it sees nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dialects import list_installed

INSTALLED: Final = "inspector.exporters"
# The forms that are there without: `Export.Form`.
_OURS: Final = ("jsonl", "csv", "html")
_SLUG: Final = re.compile(r"[a-z0-9]{1,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A form that files of messages may have.

    Attributes:
        slug: names it in the API, and ends file names: at most eight small letters and digits.
        title: what people call it.
        about: what it is for, behind the title.
        media_type: of the file, such as `text/markdown; charset=utf-8`.
        write: the bytes of one record, of the object of its line in JSON Lines; it knows of no other record.
        head, end: the bytes before the first record and after the last.
    """

    slug: str
    title: str
    about: str
    media_type: str
    write: Callable[[Mapping[str, Any]], bytes]
    head: bytes = b""
    end: bytes = b""


def _gather() -> dict[str, Exporter]:
    found: dict[str, Exporter] = {}
    for point in list_installed(INSTALLED):
        brought = point.load()
        if not isinstance(brought, Exporter) or brought.slug != point.name or not _SLUG.fullmatch(point.name):
            raise TypeError(f"{point.value} is no exporter called {point.name!r}, in at most eight letters and digits")
        if brought.slug in (*_OURS, *found):
            raise ValueError(f"{point.value} calls itself {brought.slug!r}, which there is already")
        found[brought.slug] = brought
    return found


BROUGHT: Final[dict[str, Exporter]] = _gather()
