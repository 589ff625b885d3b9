"""Those of the 48 hostile inputs whose outcome is a finding: each is found by its rule, through each of the doors.

The numbers are those of the list of hostile inputs; what else each of them leads to is in `test_hostile`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Final

import pytest

from inspector.audit.models import Finding

from ..conftest import resolve_all
from ..doors import Way
from .rule_logs import LOGS
from .rule_logs.writing import clowl, say

pytestmark = pytest.mark.django_db

ASKED: Final = clowl("m1", "REQ", "oscar", "radar")
# Whatever day it is.
NEXT_YEAR: Final = int(time.time()) + 400 * 86_400
INPUTS: Final[dict[str, tuple[str, str]]] = {
    "2 duplicate key": ("said-twice", ASKED.replace('"p": "REQ"', '"p": "REQ", "p": "DONE"')),
    "7 impossible time": ("impossible-time", ASKED.replace('"ts": ', '"ts": -')),
    "7 a time in the future": ("skewed-time", re.sub(r'"ts": \d+', f'"ts": {NEXT_YEAR}', ASKED)),
    "13 conflicting duplicate": ("conflicting-duplicate", ASKED + clowl("m1", "REQ", "oscar", "radar", amount=9)),
    "15 circle": (
        "circle",
        clowl("a", "REQ", "oscar", "radar", pid="c")
        + clowl("b", "DONE", "radar", "oscar", minute=1, pid="a")
        + clowl("c", "REQ", "oscar", "radar", minute=2, pid="b"),
    ),
    "15 itself": ("circle", clowl("a", "REQ", "oscar", "radar", pid="a")),
    "16 unknown": ("missing-message", clowl("a", "DONE", "radar", "oscar", pid="nowhere")),
    "28 redefined": ("word-redefined", LOGS["word-redefined"].triggers[0]),
    "30 bomb": ("bomb", LOGS["bomb"].triggers[0]),
    "32 low order": ("key-unfit", LOGS["key-unfit"].triggers[0]),
    "33 nonce": ("nonce-reused", LOGS["nonce-reused"].triggers[0]),
    "34 another key": ("key-changed", LOGS["key-changed"].triggers[0]),
    "37 direction": ("hidden-characters", say(("ada", "pay \u2066bob\u2069 now"))),
    "38 homoglyph": ("names-alike", say(("radar", "yes"), ("r\u0430dar", "no"))),
    "42 bearer": ("token-in-clear", say(("ada", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz012345"))),
    "42 key": ("token-in-clear", say(("ada", "-----BEGIN RSA PRIVATE KEY-----"))),
}
CONVERSATION: Final = re.compile(r'("cid"|"conversation"): "c"')


def write_log() -> Iterator[str]:
    """All inputs in one log, each in a conversation that is called as it is."""
    for name, (_, lines) in INPUTS.items():
        named, count = CONVERSATION.subn(rf'\1: "{name}"', lines)
        assert count == lines.count("\n")
        yield named


def test_each_is_found(way: Way) -> None:
    assert not way.send("".join(write_log()).encode())
    resolve_all()
    found = set(Finding.objects.filter(holds=True).values_list("conversation__native_id", "rule"))
    assert [name for name, (rule, _) in INPUTS.items() if (name, rule) not in found] == []
    # Nothing that a finding says gives the secret away.
    assert not Finding.objects.filter(text__contains="abcdefghijklmnop").exists()
