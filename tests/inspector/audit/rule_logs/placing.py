"""Logs for the rules over how messages hang together, and over what one rests on."""

from __future__ import annotations

import hashlib
from typing import Final

from .logs import Logs
from .writing import FOOT, clowl, pack, say

_ASKED: Final = clowl("m1", "REQ", "oscar", "radar")
_ASKED_ELSEWHERE: Final = _ASKED.replace('"cid": "c"', '"cid": "elsewhere"')
_NUMBERED: Final = (("ada", f"👽13|@bob|#r1|${pack(b'pay 10')}{FOOT}"), ("bob", f"^0|#r1{FOOT}"))
_ANSWERED: Final = clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")
_INLINE: Final = "the plan of monday"
_HASH: Final = hashlib.sha256(_INLINE.encode()).hexdigest()


def _cite(ref: str, digest: str) -> str:
    line = clowl(ref + digest[:1], "INF", "oscar", "radar")
    return line.replace('"body"', f'"ctx": {{"ref": "{ref}", "hash": "{digest}"}}, "body"')


def _give(inline: str) -> str:
    line = clowl("m1", "INF", "oscar", "radar")
    return line.replace('"body"', f'"ctx": {{"inline": "{inline}", "hash": "{_HASH}"}}, "body"')


def _part(number: int, total: int) -> tuple[str, str]:
    return ("ada", f"👽13|%P{number}/{total}|@bob|$aGk=" + FOOT)


LOGS: Final[dict[str, Logs]] = {
    "conflicting-duplicate": Logs(
        triggers=(
            _ASKED + clowl("m1", "REQ", "oscar", "radar", q=1),
            _ASKED + clowl("m1", "REQ", "oscar", "radar", minute=1),
        ),
        passes=(_ASKED + _ASKED, _ASKED + clowl("M1", "REQ", "oscar", "radar", minute=1)),
    ),
    "reused-number": Logs(
        triggers=(
            say(
                ("ada", f"👽13|@bob|#r1|${pack(b'pay 100')}{FOOT}"), ("ada", f"👽13|@bob|#r1|${pack(b'pay 10')}{FOOT}")
            ),
            say(("ada", "@a3|f0|c1|S0|d1|T1|k6#"), ("ada", "@a3|f0|c1|S0|d1|T1|k8#")),
        ),
        passes=(
            say(_NUMBERED[0], _NUMBERED[0]),
            say(_NUMBERED[0], ("bob", f"👽13|@ada|#r1|${pack(b'pay 100')}{FOOT}")),
            say(("ada", "@a3|f0|c1|S0|d1|T1|k6#"), ("bob", "@a6|f0|c1|S1|d0|T1|k6#")),
            say(*(("ada", f"@a3|f0|c1|S0|d1|T{turn}|k{turn}#") for turn in (1, 2, 1))),
        ),
    ),
    "circle": Logs(
        triggers=(
            clowl("m1", "REQ", "oscar", "radar", pid="m2") + _ANSWERED,
            clowl("m1", "REQ", "oscar", "radar", pid="m1"),
        ),
        passes=(
            _ASKED + _ANSWERED,
            _ASKED + _ANSWERED + clowl("m3", "REQ", "oscar", "radar", minute=2, pid="m2"),
        ),
    ),
    "missing-message": Logs(
        triggers=(_ANSWERED,),
        passes=(
            _ASKED + _ANSWERED,
            _ASKED_ELSEWHERE + _ANSWERED,
            _ASKED_ELSEWHERE + _ASKED.replace('"cid": "c"', '"cid": "another"') + _ANSWERED,
        ),
    ),
    "ambiguous-parent": Logs(
        triggers=(
            _ASKED_ELSEWHERE + _ASKED.replace('"cid": "c"', '"cid": "another"') + _ANSWERED,
            say(("ada", f"👽13|@bob|#r1|${pack(b'pay 100')}{FOOT}"), *_NUMBERED),
        ),
        passes=(_ANSWERED, _ASKED_ELSEWHERE + _ANSWERED, say(_NUMBERED[0], *_NUMBERED)),
    ),
    "answer-without-request": Logs(
        triggers=(
            '{"raw": "@a8|f0|c1|S1|d0|T3|k7#", "conversation": "c"}\n',
            say(("ada", "@a3|f0|c1|S0|d1|T1|k6#"), ("bob", "@a8|f0|c1|S1|d0|T2|k7#")),
        ),
        passes=(
            '{"raw": "@a3|f0|c1|S0|d1|T1|k7#", "conversation": "c"}\n'
            '{"raw": "@a8|f0|c1|S1|d0|T2|k7#", "conversation": "c"}\n',
        ),
    ),
    "act-after-cancel": Logs(
        triggers=(
            _ASKED
            + clowl("m2", "CNCL", "oscar", "radar", minute=1, pid="m1")
            + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1"),
            # Who handed it over is still at work when it is cancelled.
            _ASKED
            + clowl("m2", "DLGT", "radar", "eve", minute=1, pid="m1", delegation_mode="transfer")
            + clowl("m3", "DONE", "eve", "radar", minute=2, pid="m2")
            + clowl("m4", "PROG", "radar", "oscar", minute=3, pid="m1", pct=90)
            + clowl("m5", "CNCL", "oscar", "radar", minute=4, pid="m1")
            + clowl("m6", "DONE", "radar", "oscar", minute=5, pid="m1"),
        ),
        passes=(
            _ASKED + _ANSWERED,
            _ASKED + _ANSWERED + clowl("m3", "CNCL", "oscar", "radar", minute=2, pid="m1"),
            _ASKED
            + clowl("m2", "CNCL", "oscar", "radar", minute=1, pid="m1")
            + clowl("m3", "ACK", "radar", "oscar", minute=2, pid="m1"),
        ),
    ),
    "skewed-time": Logs(
        triggers=(_ASKED + clowl("m2", "DONE", "radar", "oscar", minute=-60, pid="m1"),),
        passes=(_ASKED + _ANSWERED, _ASKED + clowl("m2", "DONE", "radar", "oscar", minute=-4, pid="m1")),
    ),
    "context-unavailable": Logs(
        triggers=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E003", msg="no such context"),
        ),
        passes=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="busy"),
        ),
    ),
    "hash-mismatch": Logs(
        triggers=(_give("the plan of friday"), _cite("plan", "a" * 64) + _cite("plan", "b" * 64)),
        passes=(
            _give(_INLINE),
            _cite("plan", "a" * 64) + _cite("other", "b" * 64),
            _cite("plan", "a" * 64) + _cite("plan", "a" * 64).replace("plana", "planc"),
        ),
    ),
    "partition-mismatch": Logs(
        triggers=(
            say(_part(4, 3)),
            say(_part(1, 3), _part(3, 3)),
            say(_part(1, 3), _part(2, 2)),
        ),
        passes=(
            say(_part(1, 2), _part(2, 2)),
            say(_part(1, 1), _part(1, 1)),
            say(_part(1, 2), _part(2, 2), _part(1, 3), _part(2, 3), _part(3, 3)),
        ),
    ),
}
