"""What the logs of a rule are."""

from __future__ import annotations

from typing import NamedTuple


class Logs(NamedTuple):
    """Short logs, each as it would be uploaded, in which a rule finds something, and such that look alike, in which it
    must not."""

    triggers: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
