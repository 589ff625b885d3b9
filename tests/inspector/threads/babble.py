"""Babble: long logs of every dialect by chance, in which whatever can be said of earlier messages is said at last.

No narrator knows what it means; it is for laws that compare one way of settling with another.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
# The last of them has a name that no text may hold.
AGENTS = ("ada", "bob", "cid", "dee", "eve\ud800")
FOOT = "\n--👽lingua/0.4@agent-lingua"
_ACTS = ("REQ", "QRY", "DLGT", "ACK", "PROG", "DONE", "ERR", "INF", "CNCL")
_LAMBDA = (
    '{def:fp="flash point"}!ta',
    "?ufp",
    '{def:fp="front page"}!ta',
    "@*\n!ta",
    '{def:fp="half \ud83d of it"}!ta\n?ufp\n!It',
    "<#1",
    "!er:un",
    "?Uk/co",
    ".Uf/X",
    "!It{st:done}",
    ".Uf/X{pr:^,ti:$60s}",
)
_LINGUA = (
    *(
        "👽33|@builders|#{}|$aGk=",
        "👽21|#{}",
        "👽73|@general|$aGk=",
        "👽79|#{}|$aGk=",
        "👽77|@builders",
        "👽78|@builders",
    ),
    *(f"^{act}|#{{}}{FOOT}" for act in "01389"),
    f"^8|#{{}}|~+5m{FOOT}",
    f"!E4|slow{FOOT}",
    # Asked again, with and without an id; by when; several at once.
    *("👽215|@builders|#{}", "👽335|@builders|#{}", "👽215|@builders", "👽775|@builders"),
    *("👽21|#{}|~=2025-12-05T09:00:00Z", "👽21|#{}|~@2024-02-03T15:00+08", "👽21|~+30m", "👽21|#{}|~soon"),
    "👽21|#{};;👽22|#{};;👽78|@builders",
    f"👽21|#{{}};;^0|#{{}}{FOOT}",
    # A number that is given to this and that.
    *("👽13|@builders|#{}|$cGF5IDEw", "👽13|#{}|$cGF5IDEwMA==", "👽135|@bob|#{}|$cGF5IDEw"),
    # What is sealed, for whom nobody may have agreed on anything.
    *("👽727|@bob|#{}|$e:c2VhbGVk", "👽08|#{}"),
)
_OFFERS = (
    {"capabilities": ["1", "7"], "pubkey": "MCowBQYDK2VuAyEA" + "x" * 32, "security": ["P"]},
    {"capabilities": ["2"], "security": ["N", "P"], "session": "s1", "nonce": "bm9uY2U="},
)
_PROSE = ("We go on.", "Then we rest.", "ok", "!ta", "{}", "?")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Babbler:
    """Says one line after the other, each a second after the one before.

    Args:
        seed: of its chance.
        ids: how many different ids, tasks and handles it uses: the fewer, the more of them mean one another.
        is_clowl: whether it speaks nothing but CLowl, in which every request establishes something.
        has_calls: whether it makes calls of A2A, too.
    """

    def __init__(self, seed: int, *, ids: int = 6, is_clowl: bool = False, has_calls: bool = False) -> None:
        self._chance = random.Random(seed)
        self._ids = ids
        self._said: list[str] = []
        self._turn = 0
        self._turns: list[str] = []
        self._at = 0
        self._ways: tuple[Callable[[], dict[str, Any]], ...] = (self._clowl, self._clowl, self._coordinate)
        if is_clowl:
            return
        self._ways = (
            *(self._clowl, self._lingua, self._lambda, self._nslip),
            *(self._clowl, self._lingua, self._lambda, self._nslip),
            *(self._coordinate, self._coordinate, self._offer, self._prose),
            *((self._call,) * 4 if has_calls else ()),
        )

    def babble(self, count: int) -> Iterator[bytes]:
        """So many lines."""
        for _ in range(count):
            self._at += 1
            said = self._chance.choice(self._ways)()
            at = (START + timedelta(seconds=self._at)).isoformat()
            yield json.dumps({"at": at, "conversation": said.pop("in", "mixed"), **said}).encode() + b"\n"

    def _pick(self, *options: Any) -> Any:
        return self._chance.choice(options)

    def _number(self) -> int:
        return self._chance.randint(1, self._ids)

    def _parties(self) -> dict[str, Any]:
        sender, receiver = self._chance.sample(AGENTS, 2)
        return {"from": sender, "to": self._pick([receiver], [receiver], [receiver, sender], [])}

    def _id(self) -> str:
        """A new id, and now and then one that was borne before, or by which answers know statements as well."""
        roll = self._chance.random()
        name = self._pick(*self._said) if self._said and roll < 0.02 else f"m{self._at}"
        name = f"p{self._number()}" if roll > 0.99 else name
        self._said = [*self._said[-20:], name]
        return str(name)

    def _cited(self) -> str | None:
        """An id that was said, or one that is said later, or never."""
        roll = self._chance.random()
        if roll < 0.6:
            return None
        if roll < 0.63:
            return f"m{self._at + self._number()}"
        return str(self._pick(*self._said)) if self._said and roll < 0.97 else f"lost{self._number()}"

    def _clowl(self) -> dict[str, Any]:
        parties = self._parties()
        act = self._pick(*_ACTS)
        body: dict[str, Any] = {"t": "work"}
        if act == "ERR":
            body |= {"code": "E006", "msg": "slow", "retry": self._pick(True, False)}
        if act == "DONE":
            body["status"] = self._pick("completed", "failed", "running")
        said: dict[str, Any] = {"clowl": "0.2", "mid": self._id(), "cid": "mixed", "p": act, "from": parties["from"]}
        said |= {"to": (parties["to"] or ["*"])[0], "body": body}
        if pid := self._cited():
            said["pid"] = pid
        if self._chance.random() < 0.3:
            said["tid"] = f"t{self._number()}"
        return {"raw": json.dumps(said), "in": self._pick("mixed", "clowl")}

    def _coordinate(self) -> dict[str, Any]:
        """CLowl's coordination envelope: tasks of tasks, passed on, and some that only others name."""
        sender, receiver = self._chance.sample(AGENTS, 2)
        act = self._pick(*_ACTS)
        data = {"delegation_mode": self._pick("transfer", "fork", "assist")} if act == "DLGT" else {}
        pair = {"from": sender, "to": receiver}
        said: dict[str, Any] = {"clowl": "0.3.0", "mid": self._id(), "task_id": f"k{self._number() + self._at // 40}"}
        said["state"] = self._pick("RUNNING", "COMPLETED", "FAILED", "WAITING")
        said["trace"] = {"trace_id": self._pick("t1", "t2")}
        if self._chance.random() < 0.4:
            said["trace"]["parent_task_id"] = self._pick(f"k{self._number()}", f"whole{self._number()}")
        if parent := self._cited():
            said["trace"]["parent_mid"] = parent
        said["routing"] = {**pair, "broadcast": False}
        said["semantic"] = {"p": act, **pair, "task": "ship", "data": data, "ctx": None}
        return {"raw": json.dumps(said), "in": self._pick("mixed", "tasks", "tasks")}

    def _offer(self) -> dict[str, Any]:
        """What an agent says that it can, and the keys that it shows."""
        text = base64.b64encode(json.dumps(self._pick(*_OFFERS)).encode()).decode()
        raw = self._pick(f"👽09|@bob|$j:{text}", f"^0|$j:{text}{FOOT}")
        return {"raw": raw, "in": self._pick("mixed", "lingua"), **self._parties()}

    def _prose(self) -> dict[str, Any]:
        """Text, and what may be text: in which dialect it is read, those decide that were spoken before."""
        said = {"raw": self._pick(*_PROSE), "in": self._pick("mixed", "lambda", "turns"), **self._parties()}
        if parent := self._cited():
            said["parent"] = parent
        return said | ({"trace": self._pick("t1", "t3")} if self._chance.random() < 0.3 else {})

    def _lingua(self) -> dict[str, Any]:
        raw = self._pick(*_LINGUA)
        said = {
            "raw": raw.format(*(f"p{self._number()}" for _ in range(raw.count("{}")))),
            "in": self._pick("mixed", "lingua"),
        }
        if self._chance.random() < 0.5:
            said["id"] = self._id()
        return said | self._parties()

    def _call(self) -> dict[str, Any]:
        """A request that may name no conversation, and an answer that may be the first to name it."""
        called = {"jsonrpc": "2.0", "id": f"call{self._number() // 3 + self._at // 12}"}
        message = {"messageId": self._id(), "parts": [{"kind": "text", "text": f"step {self._at}"}]}
        if self._chance.random() < 0.5:
            named = self._pick({}, {}, {"contextId": "mixed"})
            called |= {"method": "message/send", "params": {"message": {"role": "user", **message, **named}}}
            return {"raw": json.dumps(called), "in": None, "from": "ada", "to": "bob"}
        context = self._pick("mixed", "lambda")
        repeated = {"history": [{"role": "user", **message, "messageId": self._pick(*self._said)}]}
        task = {"kind": "task", "id": f"k{self._at}", "status": {"state": "working"}, **self._pick({}, repeated)}
        said = self._pick({"kind": "message", "role": "agent", **message}, task)
        called |= {"result": {"contextId": context, **said}}
        return {"raw": json.dumps(called), "in": None, "from": "bob", "to": "ada"}

    def _lambda(self) -> dict[str, Any]:
        said = {"raw": self._pick(*_LAMBDA), "in": self._pick("mixed", "lambda")}
        if parent := self._cited():
            said["parent"] = parent
        return said | self._parties()

    def _nslip(self) -> dict[str, Any]:
        """A turn, most often the next one; now and then one that was said before, or a new beginning."""
        roll = self._chance.random()
        if self._turns and roll < 0.05:
            return {"raw": self._pick(*self._turns[-8:]), "in": "turns"}
        self._turn = self._chance.randint(1, 3) if roll < 0.1 else self._turn + self._pick(1, 1, 1, 0)
        sender, receiver = self._chance.sample("012", 2)
        task = f"|k{self._number()}" if self._chance.random() < 0.7 else ""
        turn = (
            _DIGITS[self._turn % 62] if self._turn < 62 else _DIGITS[self._turn // 62 % 62] + _DIGITS[self._turn % 62]
        )
        raw = f'@a{self._pick(*"23456789A")}|f0|c1|S{sender}|d{receiver}|T{turn}{task}|t"step {self._at}"#'
        self._turns = [*self._turns[-8:], raw]
        return {"raw": raw, "in": "turns"}
