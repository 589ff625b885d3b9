"""Logs for the rules over what was asked, and over what agents make of answers."""

from __future__ import annotations

import json
from typing import Final

from inspector.audit.rules.work import TAKEN_BACK_RULE, UNANSWERED

from .logs import Logs
from .writing import clowl, say


def hand_over(*agents: str, takes_over: bool = True) -> str:
    """A trace of the Agents SDK in which each of these hands the conversation over to the next, and hours pass."""
    said: list[tuple[int, dict[str, object]]] = []
    for at, name in enumerate(agents):
        if at == 0 or takes_over:
            said.append((2 * at, {"type": "agent", "name": name}))
        if at + 1 < len(agents):
            said.append((2 * at + 1, {"type": "handoff", "from_agent": name, "to_agent": agents[at + 1]}))
    said.append((180, {"type": "custom", "name": "closed", "data": {}}))
    spans = (
        {
            "object": "trace.span",
            "id": f"span_{minute}",
            "trace_id": "trace_1",
            "parent_id": None,
            "started_at": f"2026-11-16T{9 + minute // 60:02d}:{minute % 60:02d}:00Z",
            "ended_at": f"2026-11-16T{9 + minute // 60:02d}:{minute % 60:02d}:30Z",
            "span_data": data,
        }
        for minute, data in said
    )
    return "".join(json.dumps(span) + "\n" for span in spans)


_ASKED: Final = clowl("m1", "REQ", "oscar", "radar")
_ASKED_BACK: Final = clowl("m2", "QRY", "radar", "boss", minute=1, pid="m1")


LOGS: Final[dict[str, Logs]] = {
    UNANSWERED: Logs(
        triggers=(clowl("m1", "REQ", "oscar", "radar") + clowl("m2", "INF", "eve", "oscar", minute=180),),
        passes=(
            clowl("m1", "REQ", "oscar", "radar") + clowl("m2", "ACK", "radar", "oscar", minute=1, pid="m1"),
            clowl("m1", "REQ", "oscar", "radar") + clowl("m2", "DONE", "radar", "oscar", minute=180, pid="m1"),
            clowl("m1", "INF", "oscar", "radar") + clowl("m2", "INF", "eve", "oscar", minute=180),
            say(("ada", ".Uf/X{ti:$60s}"), ("eve", "!It>Ie", 180)),
            '{"raw": ".bg ss id=gamma", "at": "2026-11-16T09:00:00Z", "dialect": "lambda_lang"}\n'
            '{"raw": "That is all.", "at": "2026-11-16T12:00:00Z", "conversation": "later"}\n',
        ),
    ),
    "delegation-unanswered": Logs(
        triggers=(
            clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer")
            + clowl("m2", "INF", "eve", "oscar", minute=180),
            hand_over("Triage", "Billing", takes_over=False),
        ),
        passes=(
            clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer")
            + clowl("m2", "DONE", "radar", "oscar", minute=3, pid="m1"),
            clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer")
            + clowl("m2", "ACK", "radar", "oscar", minute=3, pid="m1")
            + clowl("m3", "INF", "eve", "oscar", minute=180),
            hand_over("Triage", "Billing"),
        ),
    ),
    "deadline-missed": Logs(
        triggers=(
            say(("ada", ".Uf/X{ti:$60s}"), ("eve", "!It>Ie", 180)),
            say(("ada", ".Uf/X{ti:$60s}"), ("bob", "!It{st:done}", 5)),
        ),
        passes=(
            say(("ada", ".Uf/X"), ("eve", "!It>Ie", 180)),
            say(("ada", ".Uf/X{ti:$600s}"), ("bob", "!It{st:done}", 5)),
        ),
    ),
    "delegation-circle": Logs(
        triggers=(
            clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer")
            + clowl("m2", "DLGT", "radar", "oscar", minute=1, pid="m1", delegation_mode="transfer"),
        ),
        passes=(
            clowl("m1", "DLGT", "oscar", "radar", delegation_mode="transfer")
            + clowl("m2", "DLGT", "radar", "eve", minute=1, pid="m1", delegation_mode="transfer")
            + clowl("m3", "DONE", "eve", "radar", minute=2, pid="m2"),
            hand_over("Triage", "Billing", "Triage"),
        ),
    ),
    TAKEN_BACK_RULE: Logs(
        triggers=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")
            + clowl("m3", "ERR", "radar", "oscar", minute=2, pid="m1", code="E004", msg="no"),
            say(
                ("ada", "@a3|f0|c1|S0|d1|T1|k6#"),
                ("bob", "@a7|f1|c1|S1|d0|T2|k6#"),
                ("bob", '@a1|f1|c1|S1|d0|T3|k6|u"done"#'),
            ),
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no", retry=False)
            + clowl("m3", "DONE", "radar", "oscar", minute=7, pid="m1"),
        ),
        passes=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no", retry=False)
            + clowl("m3", "REQ", "oscar", "radar", minute=2, pid="m2")
            + clowl("m4", "DONE", "radar", "oscar", minute=3, pid="m3"),
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E005", msg="busy", retry=True)
            + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1"),
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")
            + clowl("m3", "REQ", "oscar", "radar", minute=2, pid="m2")
            + clowl("m4", "ERR", "radar", "oscar", minute=3, pid="m3", code="E004", msg="no"),
        ),
    ),
    "vain-retry": Logs(
        triggers=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no", retry=False)
            + clowl("m3", "REQ", "oscar", "radar", minute=2, pid="m2"),
        ),
        passes=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E005", msg="busy", retry=True)
            + clowl("m3", "REQ", "oscar", "radar", minute=2, pid="m2"),
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no", retry=False)
            + clowl("m3", "REQ", "oscar", "eve", minute=2),
        ),
    ),
    "error-cascade": Logs(
        triggers=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no")
            + clowl("m3", "ERR", "oscar", "eve", minute=2, pid="m2", code="E004", msg="no")
            + clowl("m4", "ERR", "eve", "mia", minute=3, pid="m3", code="E004", msg="no"),
        ),
        passes=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="no"),
            "".join(
                clowl(f"m{at}", "REQ", "oscar", name, minute=at)
                + clowl(f"e{at}", "ERR", name, "oscar", minute=at + 0.5, pid=f"m{at}", code="E004", msg="no")
                for at, name in enumerate(("radar", "eve", "mia"))
            ),
        ),
    ),
    "unapproved": Logs(
        triggers=(
            _ASKED + _ASKED_BACK + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1"),
            _ASKED
            + _ASKED_BACK
            + clowl("m3", "DONE", "radar", "oscar", minute=2, pid="m1")
            + clowl("m4", "INF", "boss", "radar", minute=3, pid="m2"),
        ),
        passes=(
            _ASKED
            + _ASKED_BACK
            + clowl("m3", "INF", "boss", "radar", minute=2, pid="m2")
            + clowl("m4", "DONE", "radar", "oscar", minute=3, pid="m1"),
            _ASKED + _ASKED_BACK,
            _ASKED
            + clowl("m2", "DONE", "radar", "oscar", minute=1, pid="m1")
            + clowl("m3", "QRY", "radar", "boss", minute=2, pid="m1"),
        ),
    ),
    "own-judgement": Logs(
        triggers=(
            say(
                ("ada", "@a3|f0|c1|S0|d1|T1|k6#"),
                ("bob", '@a1|f1|c1|S1|d0|T2|k6|u"done"#'),
                ("bob", "@a6|f1|c1|S1|d0|T3|k6#"),
            ),
        ),
        passes=(
            say(
                ("ada", "@a3|f0|c1|S0|d1|T1|k6#"),
                ("bob", '@a1|f1|c1|S1|d0|T2|k6|u"done"#'),
                ("ada", "@a6|f0|c1|S0|d1|T3|k6#"),
            ),
        ),
    ),
}
