"""The logs that show each rule at work: of each of `triggers` it must find something, of each of `passes` nothing.

A module here has the logs of the rules of the module of its name in `inspector/audit/rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import decoding, placing, security, tools, work
from .logs import Logs

LOGS: Final[Mapping[str, Logs]] = security.LOGS | placing.LOGS | work.LOGS | tools.LOGS | decoding.LOGS
