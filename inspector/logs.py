"""Log lines: one event, one line, whatever hostile text an event carries."""

import logging
import re
from typing import Final

from inspector.tokens import hide_tokens

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


# What signs somebody in stands in the path of a link.
_LINKS: Final = re.compile(r"(/(?:sign-in|invitation)/)[\w-]+")


def hide_links(text: str) -> str:
    """The text with the paths of links that sign somebody in, but without the part that does."""
    return _LINKS.sub(r"\1…", text)


def escape_controls(text: str) -> str:
    """The text with control and direction characters written as escapes, so that no value can forge a line."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class LineFormatter(logging.Formatter):
    """`2026-11-21T09:00:00Z INFO inspector.intake message`, tracebacks folded into the same line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def format(self, record: logging.LogRecord) -> str:
        """The record as exactly one line, without the tokens that it may quote."""
        return escape_controls(hide_links(hide_tokens(super().format(record))))
