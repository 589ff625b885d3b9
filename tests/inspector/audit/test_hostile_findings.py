"""Those of the 48 hostile inputs whose outcome is a finding: each is found by its rule, through each of the doors.

The numbers are those of the list of hostile inputs; what else each of them leads to is in `test_hostile`.
"""

from __future__ import annotations

from typing import Final

import pytest

from inspector.accounts.models import Channel
from inspector.audit.models import Finding
from inspector.audit.rules import RULES
from inspector.audit.rules.logs import clowl, say
from inspector.intake.models import Door

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

ASKED: Final = clowl("m1", "REQ", "oscar", "radar")
INPUTS: Final[dict[str, tuple[str, str]]] = {
    "2 duplicate key": ("said-twice", ASKED.replace('"p": "REQ"', '"p": "REQ", "p": "DONE"')),
    "7 impossible time": ("impossible-time", ASKED.replace('"ts": ', '"ts": -')),
    "7 a time in the future": ("skewed-time", clowl("m1", "REQ", "oscar", "radar", minute=60 * 24 * 400)),
    "13 conflicting duplicate": ("conflicting-duplicate", ASKED + clowl("m1", "REQ", "oscar", "radar", amount=9)),
    "15 circle": (
        "circle",
        clowl("a", "REQ", "oscar", "radar", pid="c")
        + clowl("b", "DONE", "radar", "oscar", minute=1, pid="a")
        + clowl("c", "REQ", "oscar", "radar", minute=2, pid="b"),
    ),
    "15 itself": ("circle", clowl("a", "REQ", "oscar", "radar", pid="a")),
    "16 unknown": ("missing-message", clowl("a", "DONE", "radar", "oscar", pid="nowhere")),
    "28 redefined": ("word-redefined", RULES["word-redefined"].triggers[0]),
    "30 bomb": ("bomb", RULES["bomb"].triggers[0]),
    "32 low order": ("key-unfit", RULES["key-unfit"].triggers[0]),
    "33 nonce": ("nonce-reused", RULES["nonce-reused"].triggers[0]),
    "34 another key": ("key-changed", RULES["key-changed"].triggers[0]),
    "37 direction": ("hidden-characters", say(("ada", "pay \u2066bob\u2069 now"))),
    "38 homoglyph": ("names-alike", say(("radar", "yes"), ("r\u0430dar", "no"))),
    "42 bearer": ("token-in-clear", say(("ada", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz012345"))),
    "42 key": ("token-in-clear", say(("ada", "-----BEGIN RSA PRIVATE KEY-----"))),
}


@pytest.mark.parametrize("door", [Door.API, Door.UPLOAD, Door.IMPORT])
def test_each_is_found(cast: Cast, door: str) -> None:
    wanted = {}
    for number, (rule, log) in enumerate(INPUTS.values()):
        channel = Channel.objects.create(workspace=cast.workspace, name=f"input-{number}")
        deliver(cast, log.encode(), channel=channel, door=door, name=f"{number}.log")
        wanted[channel.pk] = rule
    settle_all()
    found = set(Finding.objects.filter(holds=True).values_list("channel_id", "rule"))
    missing = [name for name, channel in zip(INPUTS, wanted, strict=True) if (channel, wanted[channel]) not in found]
    assert missing == []
    # Nothing that a finding says gives the secret away.
    assert not Finding.objects.filter(text__contains="abcdefghijklmnop").exists()
