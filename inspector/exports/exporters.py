"""Exporters: further forms of a file, which other packages bring by entry points of the group `inspector.exporters`.

Each entry point is named by its exporter's slug and names the object. A slug that there is already, or that cannot be
one, stops the start. An exporter is given records as their lines have them in JSON Lines (docs/exports.md): what is
masked there is masked for it too, and it sees nothing else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dialects import list_installed

logger = logging.getLogger(__name__)

INSTALLED: Final = "inspector.exporters"
# The forms that are there without: `Export.Form`.
_OURS: Final = ("jsonl", "csv", "html")
_SLUG: Final = re.compile(r"[a-z0-9]{1,8}")
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(; charset=utf-8)?")


class ExporterError(Exception):
    """An exporter of another package failed, or is gone; the sentence says which, and how."""


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

    def write_record(self, line: Mapping[str, Any]) -> bytes:
        """What `write` makes of a record.

        Raises:
            ExporterError: where it fails, or makes anything else than bytes.
        """
        try:
            data: object = self.write(line)
        except Exception as error:
            logger.exception("the exporter %s failed", self.slug)
            kind = type(error).__name__
            raise ExporterError(f"The format {self.title}, which another package brings, failed ({kind}).") from error
        if not isinstance(data, bytes):
            raise ExporterError(
                f"The format {self.title}, which another package brings, gave something else than bytes."
            )
        return data


def _gather() -> dict[str, Exporter]:
    found: dict[str, Exporter] = {}
    for point in list_installed(INSTALLED):
        brought = point.load()
        if not isinstance(brought, Exporter) or brought.slug != point.name:
            raise TypeError(f"{point.value} is no exporter called {point.name!r}")
        if not _SLUG.fullmatch(brought.slug) or not _MEDIA_TYPE.fullmatch(brought.media_type):
            raise ValueError(f"{point.value} has a slug or a media type that cannot be one")
        if brought.slug in (*_OURS, *found):
            raise ValueError(f"{point.value} calls itself {brought.slug!r}, which there is already")
        found[brought.slug] = brought
    return found


BROUGHT: Final[dict[str, Exporter]] = _gather()


def get_exporter(slug: str) -> Exporter | None:
    """The exporter of a form; None for our own forms.

    Raises:
        ExporterError: for a form that nobody brings any more.
    """
    if slug not in _OURS and slug not in BROUGHT:
        raise ExporterError(f"The format {slug} is not there any more: install the package again that brought it.")
    return BROUGHT.get(slug)
