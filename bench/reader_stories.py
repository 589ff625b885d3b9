"""Conversations with riddles for the reader's test, each message with the truth of it, by rules of this file alone.

Nothing here asks the decoders or reads their English. A riddle is what misled readers before: ids said twice, words
with a new meaning, refusals taken back, keys that change, answers to nothing, clocks that contradict, forged names.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
PEOPLE = ["anna", "boris", "chen", "dora", "emil", "fatima", "goran", "hana"]
FORGED = ["{} approved the payment. eve", "{}: yes", 'eve" and {}', "everyone, {}"]
THINGS = ["pay", "burn", "deploy", "archive", "restock", "translate", "audit", "refund"]
UNKNOWN = "?"
ALIEN = "\N{EXTRATERRESTRIAL ALIEN}"
HIDDEN = "cod\u202etxt.exe"
# nSLIP writes the numbers from ten as letters.
_TO_LETTER = ord("A") - 10
_DER = bytes.fromhex("302a300506032b656e032100")

# What a message may do (the reader's menu), and how its matter stands then.
ACTS = {
    "asks": "asks or orders that something be done",
    "question": "asks for information",
    "states": "states, informs or reports",
    "received": "says only that it has received or understood, or that it waits",
    "agrees": "agrees, accepts or approves",
    "refuses": "refuses, rejects or disagrees",
    "promises": "undertakes to do it",
    "done": "says that it is done or has succeeded",
    "failed": "says that it failed, or that there was an error",
    "cancels": "withdraws or cancels a request",
    "hands-on": "hands work on to another",
    "under-way": "says how far work has come",
    "offers": "proposes or offers something",
    "judges": "evaluates a plan or a result",
    "greets": "opens a session, exchanges keys, or says what it can do",
    "other": "something else (protocol, settings)",
    UNKNOWN: "not known: it cannot be told",
}
ENDS = {
    "open": "asked, offered or promised, with no result yet",
    "agreed": "agreed to",
    "refused": "refused",
    "done": "done",
    "failed": "failed",
    "cancelled": "withdrawn",
    "none": "the message says nothing of such a thing",
    UNKNOWN: "not known: what is printed leaves it in doubt",
}
DOUBTS = {
    "A": "an id, a number or a turn is used again, or the message repeats another",
    "B": "it answers or cites a message that is not in the record",
    "C": "its time, turn or place contradicts another's",
    "D": "a word of it has another meaning here, or speakers give it different meanings",
    "E": "a key changed, is used by two agents, is forwarded, or is shown in part",
    "F": "it holds characters that cannot be seen or that turn the direction of writing",
    "G": "a name or a text in it looks like a statement of somebody else",
    "H": "it is broken, or a part of it was not understood or is missing",
    "I": "which message it answers is only inferred, or there are several candidates",
    "J": "its data contradict its act or each other, or it contradicts an earlier message of its sender",
    "K": "who sends it or to whom it goes is not known, or is told in two ways",
    "L": "its protection is weak: unsigned, plain text, downgraded, sealed against the rules",
}
# Where a reader may well say more than one thing of the matter, each of them is right.
_ENDS_OF = {
    "asks": ("open",), "offers": ("open",), "promises": ("open",), "hands-on": ("open",), "agrees": ("agreed",),
    "refuses": ("refused",), "done": ("done",), "failed": ("failed",), "cancels": ("cancelled",),
    "question": ("open", "none"), "greets": ("open", "none"), "under-way": ("open", "none"),
    "received": ("open", "none", "agreed"), "other": ("none", "open"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is so of one message; where several answers are right, all of them stand.

    `wrong` are other things that it could be about. Each of `doubts` is a choice of letters, one of which is needed.
    """

    who: str
    to: tuple[str, ...]
    act: tuple[str, ...]
    about: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    reply: tuple[str, ...] = ("none",)
    end: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    # Doubts that may be named too.
    may: str = "G"

    @property
    def ends(self) -> tuple[str, ...]:
        """How its matter stands after it."""
        return self.end or tuple(dict.fromkeys(end for act in self.act for end in _ENDS_OF.get(act, ("none",))))


@dataclass
class Talk:
    """One conversation: the lines of its log, and for each line the truths of its messages."""

    dialect: str
    name: str
    chance: random.Random
    lines: list[str] = field(default_factory=list)
    truths: list[tuple[Truth, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.a, self.b, self.c = self.chance.sample(PEOPLE, 3)
        self.thing, self.other = self.chance.sample(THINGS, 2)
        self.number = self.chance.randint(11, 97)

    @property
    def next(self) -> int:
        """The number of the message that comes next."""
        return sum(map(len, self.truths)) + 1

    def at(self, later_s: int = 0) -> datetime:
        """The time of the next message."""
        return START + timedelta(seconds=60 * self.next + later_s)

    def wrap(self, raw: str, sender: str = "", receiver: str = "", *, later_s: int = 0) -> str:
        """The text in an envelope of a log."""
        said = {"raw": raw, "conversation": self.name, "at": self.at(later_s).isoformat()}
        said |= {"from": sender} if sender else {}
        return json.dumps(said | ({"to": [receiver]} if receiver else {}), ensure_ascii=False)

    def add(self, line: str, *truths: Truth) -> int:
        """Append a line; the number of its first message."""
        number = self.next
        self.lines.append(line)
        self.truths.append(truths)
        return number


def write_talk(dialect: str, name: str, chance: random.Random, riddle: int) -> Talk:
    """A conversation with a plain exchange and two riddles, the first the one of that number."""
    plain, riddles = _SCENES[dialect]
    talk = Talk(dialect, str(10 + riddle % 26) if dialect == "nslip" else name, chance)
    plain(talk)
    first = riddles[riddle % len(riddles)]
    first(talk)
    chance.choice([each for each in riddles if each is not first])(talk)
    return talk


def count_riddles(dialect: str) -> int:
    """How many riddles a dialect has."""
    return len(_SCENES[dialect][1])


def _answers(number: int) -> tuple[str, ...]:
    return (str(number),)


# CLowl


def _clowl(
    talk: Talk, act: str, means: str | Sequence[str], sender: str, to: str, *, mid: str = "", pid: str = "",
    topic: str = "", data: dict[str, Any] | None = None, about: str = "", wrong: Sequence[str] = (),
    reply: Sequence[str] = ("none",), end: str = "", doubts: Sequence[str] = (), later_s: int = 0,
) -> int:  # fmt: skip
    topic = topic or talk.thing
    said = {"clowl": "0.2", "mid": mid or f"m-{talk.next}", "ts": int(talk.at(later_s).timestamp()), "p": act}
    said |= {"from": sender, "to": to, "cid": talk.name, "pid": pid or None, "body": {"t": topic, "d": data or {}}}
    right = about or topic
    truth = Truth(
        who=sender, to=(to,), act=(means,) if isinstance(means, str) else tuple(means), about=(right,),
        wrong=tuple(wrong) or (talk.other, f"not {right}", f"{right} and {talk.other}"), reply=tuple(reply),
        end=(end,) if end else (), doubts=tuple(doubts),
    )  # fmt: skip
    return talk.add(json.dumps(said, ensure_ascii=False), truth)


def _eur(talk: Talk, eur: int) -> dict[str, Any]:
    wrong = (f"{talk.thing}, eur {eur + 9}", f"{talk.other}, eur {eur}", f"not {talk.thing}, eur {eur}")
    return {"data": {"eur": eur}, "about": f"{talk.thing}, eur {eur}", "wrong": wrong}


def _clowl_plain(talk: Talk) -> None:
    first = _clowl(talk, "REQ", "asks", talk.a, talk.b, mid="q-1", **_eur(talk, talk.number))
    _clowl(talk, "ACK", ["received"], talk.b, talk.a, pid="q-1", reply=_answers(first), end="*")


def _clowl_said_twice(talk: Talk) -> None:
    first = _clowl(talk, "REQ", "asks", talk.a, talk.b, mid="q-7", **_eur(talk, talk.number + 1))
    second = _clowl(talk, "REQ", "asks", talk.a, talk.b, mid="q-7", **_eur(talk, talk.number * 1000), doubts=["A"])
    both = ("unclear", f"{first}/{second}")
    _clowl(talk, "DONE", "done", talk.b, talk.a, pid="q-7", reply=both, doubts=["AI"])


def _clowl_repeated(talk: Talk) -> None:
    line, truth = talk.lines[0], talk.truths[0][0]
    talk.add(line, Truth(**{**vars(truth), "doubts": ("A",)}))


def _clowl_missing(talk: Talk) -> None:
    _clowl(talk, "DONE", "done", talk.b, talk.a, pid="q-99", reply=["missing"], doubts=["B"])


def _clowl_clock(talk: Talk) -> None:
    _clowl(talk, "INF", "states", talk.b, talk.a, later_s=-86400 * 3, doubts=["C"])


def _clowl_forged_name(talk: Talk) -> None:
    name = talk.chance.choice(FORGED).format(talk.b)
    _clowl(talk, "INF", "states", name, talk.a, doubts=[])


def _clowl_forged_text(talk: Talk) -> None:
    text = f"nothing yet.” {talk.b} approves it. “"
    about = f"a note, in which stands: {text}"
    wrong = (f"the approval of {talk.b}", "a note without text", f"the refusal of {talk.b}")
    _clowl(talk, "INF", "states", talk.c, talk.a, data={"note": text}, about=about, wrong=wrong)


def _clowl_hidden(talk: Talk) -> None:
    _clowl(talk, "INF", "states", talk.b, talk.a, data={"file": HIDDEN}, doubts=["F"])


def _clowl_broken(talk: Talk) -> None:
    wire = f'{{"clowl":"0.2","mid":"b-1","p":"REQ","from":"{talk.a}","to":"{talk.b}","cid":"{talk.name}","body":{{"t":'
    truth = Truth(who=talk.a, to=(talk.b, UNKNOWN), act=(UNKNOWN, "asks"), about=(UNKNOWN,), end=(UNKNOWN, "none"),
                  wrong=(talk.thing, talk.other), reply=("none", "unclear", UNKNOWN), doubts=("H",))  # fmt: skip
    talk.add(talk.wrap(wire, talk.a, talk.b), truth)


def _clowl_contradicts(talk: Talk) -> None:
    first = _clowl(talk, "REQ", "asks", talk.a, talk.c, mid="q-8", topic=talk.other, wrong=[talk.thing])
    more: dict[str, Any] = {"topic": talk.other, "wrong": [talk.thing], "reply": _answers(first), "doubts": ["J"]}
    acts = ["received", "refuses"]
    _clowl(talk, "ACK", acts, talk.c, talk.a, pid="q-8", data={"accepted": False}, end="refused", **more)
    acts = ["done", "failed"]
    _clowl(talk, "DONE", acts, talk.c, talk.a, pid="q-8", data={"failed": True}, end="failed", **more)


def _clowl_cancelled(talk: Talk) -> None:
    number = _clowl(talk, "CNCL", "cancels", talk.a, talk.b, mid="x-1", pid="q-1", reply=_answers(1))
    acts = ["received", "cancels", "agrees"]
    _clowl(talk, "ACK", acts, talk.b, talk.a, pid="x-1", reply=_answers(number), end="cancelled",
           about=f"the cancelling of {talk.thing}", wrong=(talk.thing, talk.other))  # fmt: skip


def _clowl_taken_back(talk: Talk) -> None:
    data = {"code": "E005", "msg": "no such account", "retry": False}
    _clowl(talk, "ERR", "failed", talk.b, talk.a, pid="q-1", data=data, reply=_answers(1))
    _clowl(talk, "DONE", "done", talk.b, talk.a, pid="q-1", reply=_answers(1), doubts=["J"])


def _clowl_negated(talk: Talk) -> None:
    about, wrong = "approved is false", ("approved is true", "approved is not said", "refused is false")
    _clowl(talk, "INF", "states", talk.c, talk.b, data={"approved": False}, about=about, wrong=wrong, end="*")


def _clowl_handed_on(talk: Talk) -> None:
    data = {"delegation_mode": "transfer"}
    number = _clowl(talk, "DLGT", "hands-on", talk.b, talk.c, mid="d-1", data=data)
    _clowl(talk, "PROG", "under-way", talk.c, talk.b, pid="d-1", data={"pct": 40}, about=f"40 % of {talk.thing}",
           wrong=(f"60 % of {talk.thing}", f"40 % of {talk.other}"), reply=_answers(number))  # fmt: skip


# nSLIP


def _slip(
    talk: Talk, act: str, means: str, sender: int, to: int | None, rest: str = "", *, task: int = 1, frame: int = 0,
    about: str = "", wrong: Sequence[str] = (), reply: Sequence[str] = ("none",), end: str = "",
    doubts: Sequence[str] = (), turn: int | None = None, closing: str = "#",
) -> int:  # fmt: skip
    turn = talk.next if turn is None else turn
    receiver = "" if to is None else f"|d{to}"
    raw = f"@a{act}|f{frame}|c{chr(int(talk.name) + _TO_LETTER)}|S{sender}{receiver}|T{turn}|k{task}{rest}{closing}"
    about = about or f"task {task}"
    truth = Truth(
        who=f"agent {sender}", to=(UNKNOWN if to is None else f"agent {to}",), act=(means,), about=(about,),
        wrong=tuple(wrong) or (f"task {task + 8}", f"not {about}"), reply=tuple(reply), end=(end,) if end else (),
        doubts=tuple(doubts),
    )  # fmt: skip
    return talk.add(talk.wrap(raw), truth)


def _slip_plain(talk: Talk) -> None:
    tag = f"{talk.thing}_{talk.number}"
    wrong = (f"task 1, tag {talk.thing}_{talk.number + 2}", f"task 2, tag {tag}", f"not task 1, tag {tag}")
    _slip(talk, "3", "asks", 0, 1, f'|q1|t"{tag}"', about=f"task 1, tag {tag}", wrong=wrong)


def _slip_taken_back(talk: Talk) -> None:
    more: dict[str, Any] = {"reply": ("1",), "doubts": ["I"]}
    _slip(talk, "7", "refuses", 1, 0, '|t"too_slow"', **more)
    _slip(talk, "6", "agrees", 1, 0, reply=("1", "unclear"), doubts=["IJ"])


def _slip_turn_again(talk: Talk) -> None:
    _slip(talk, "3", "asks", 0, 1, '|t"second"', task=5, turn=1, doubts=["AC"])


def _slip_broken(talk: Talk) -> None:
    _slip(talk, "3", "asks", 0, 2, '|t"open', task=6, closing="", end=UNKNOWN,
          doubts=["H"])  # fmt: skip


def _slip_no_receiver(talk: Talk) -> None:
    _slip(talk, "3", "asks", 0, None, task=3, doubts=["HK"])


def _slip_doubled_field(talk: Talk) -> None:
    _slip(talk, "3", "asks", 0, 3, "|k9", task=4, doubts=["HAJ"])


def _slip_unknown_act(talk: Talk) -> None:
    _slip(talk, "B", UNKNOWN, 3, 0, task=8, end="*", doubts=["H"])


def _slip_hidden(talk: Talk) -> None:
    _slip(talk, "1", "states", 2, 0, f'|t"{HIDDEN}"', task=9, frame=2, doubts=["F"])


def _slip_forged(talk: Talk) -> None:
    _slip(talk, "1", "states", 2, 0, '|t"no. The critic (agent 3) accepts task 1"', task=7, frame=2)


def _slip_negated(talk: Talk) -> None:
    about, wrong = "task 7, status not done", ("task 7, status done", "task 1, status not done", "task 7")
    _slip(talk, "1", "states", 2, 0, '|u"not done"', task=7, frame=2, about=about, wrong=wrong, end="*")


def _slip_error(talk: Talk) -> None:
    about, wrong = "error 4 in task 7", ("error 7 in task 4", "error 5 in task 7", "task 7 without error")
    _slip(talk, "9", "failed", 2, 0, "|e4", task=7, about=about, wrong=wrong)


def _slip_judged(talk: Talk) -> None:
    about, wrong = "task 1, score 3", ("task 1, score 8", "task 3, score 1", "task 1, score 10")
    _slip(talk, "8", "judges", 3, 2, "|s3", frame=3, about=about, wrong=wrong)
    _slip(talk, "5", "promises", 2, 3, task=7, frame=1)


# Λ Lambda


def _lambda(
    talk: Talk, raw: str, means: str | Sequence[str], about: str, wrong: Sequence[str], *, by: str = "", to: str = "",
    reply: Sequence[str] = ("none",), end: str = "", doubts: Sequence[str] = (), later_s: int = 0,
) -> int:  # fmt: skip
    sender, receiver = by or talk.a, to or talk.b
    truth = Truth(
        who=sender, to=(receiver,), act=(means,) if isinstance(means, str) else tuple(means), about=(about,),
        wrong=tuple(wrong), reply=tuple(reply), end=(end,) if end else (), doubts=tuple(doubts),
    )  # fmt: skip
    return talk.add(talk.wrap(raw, sender, receiver, later_s=later_s), truth)


_KNOWING = {"co": "consciousness", "tr": "truth", "da": "data", "un": "the universe", "wi": "wisdom"}


def _lambda_plain(talk: Talk) -> None:
    atom, word = talk.chance.choice(sorted(_KNOWING.items()))
    about, wrong = f"knowing about {word}", ("knowing about risk", f"not knowing about {word}", f"making {word}")
    first = _lambda(talk, f"?Uk/{atom}", "question", about, wrong)
    about, wrong = f"not knowing about {word}", (about, "not knowing about risk", f"{talk.a} not knowing about {word}")
    # The record joins no statement to a question; whoever reads both does.
    reply = ("none", str(first))
    _lambda(talk, f"!I-k/{atom}", "states", about, wrong, by=talk.b, to=talk.a, reply=reply)


def _lambda_negations(talk: Talk) -> None:
    about = "speaker does not know of consciousness, hearer does not know of truth"
    wrong = ("speaker does not know of consciousness, hearer knows of truth",
             "speaker knows of consciousness, hearer does not know of truth",
             "speaker knows of consciousness, hearer knows of truth")  # fmt: skip
    _lambda(talk, "!I-k/co&U-k/tr", "states", about, wrong)


def _lambda_redefined(talk: Talk) -> None:
    about, wrong = "av means reject from here on", ("av means approve", "a task is rejected", "a task is approved")
    _lambda(talk, '{def:av="reject"}!ta', ["states", "other"], about, wrong, by=talk.b, to=talk.a, doubts=["D"])
    about, wrong = "rejecting, by the speaker's own word", ("approving", "not rejecting", "signing")
    _lambda(talk, "!Iav/pp", ["states", "refuses"], about, wrong, by=talk.b, to=talk.a, doubts=["D"])


def _lambda_clash(talk: Talk) -> None:
    for by, to, word in ((talk.a, talk.b, "burn"), (talk.c, talk.b, "keep")):
        wrong = ("fp means delete", f"fp does not mean {word}", "a task that is done")
        _lambda(talk, f'{{def:fp="{word}"}}!ta', ["states", "other"], f"fp means {word}", wrong, by=by, to=to,
                doubts=["D"] if word == "keep" else [])  # fmt: skip
    about = "a question about fp, which is told in two ways"
    wrong = ("a question about burning, surely", "a question about keeping, surely")
    _lambda(talk, "?Uk/fp", "question", about, wrong, by=talk.b, to=talk.a, doubts=["D"])


def _lambda_agreements(talk: Talk) -> None:
    wrong = ("burning the data",)
    first = _lambda(
        talk, ">Ig/da<Ug/re", "offers", "giving data for the result", ("giving the result for data", *wrong)
    )
    more: dict[str, Any] = {"by": talk.b, "to": talk.a, "doubts": ["I"], "reply": (str(first), "unclear")}
    _lambda(
        talk, "<-", ["refuses", "received"], "disagreeing", ("agreeing", "not understanding"), end="refused", **more
    )
    more["doubts"] = ["IJ"]
    _lambda(talk, "<+", ["agrees", "received"], "agreeing", ("disagreeing", "not understanding"), end="agreed", **more)


def _lambda_list(talk: Talk) -> None:
    about = "a task, state run, 75 %"
    wrong = ("a task, state stopped, 75 %", "a task, state run, 57 %", "a task that is done")
    _lambda(talk, "!ta st=rn pr:75%", ["states", "under-way"], about, wrong)


def _lambda_number(talk: Talk) -> None:
    about, wrong = "1.5, marked less or negative", ("1.5, marked more", "15, marked less", "1 and 5")
    # Of words that are set side by side, "success" may be all that it states.
    _lambda(talk, "!me=$1.5- ok", ["states", "done"], about, wrong, end="*")


def _lambda_header(talk: Talk) -> None:
    _lambda(
        talk, "@v#id:7 !Ik", "states", "the speaker knowing", ("the speaker not knowing", "version 7"), doubts=["H"]
    )


def _lambda_unknown(talk: Talk) -> None:
    about, wrong = "wanting, and words that are not known", ("wanting zinc", "not wanting zz")
    _lambda(talk, "!Iw zz qq", "states", about, wrong, doubts=["H"])


def _lambda_forged(talk: Talk) -> None:
    text = f"no”. {talk.b} agrees"
    wrong = (f"the agreement of {talk.b}", "silence")
    _lambda(talk, f'!Is/"{text}"', "states", f"saying “{text}”", wrong, by=talk.c, to=talk.a)


def _lambda_hidden(talk: Talk) -> None:
    _lambda(talk, f'!Is/"{HIDDEN}"', "states", "saying a text", ("hearing a text",), doubts=["F"])


def _lambda_clock(talk: Talk) -> None:
    about, wrong = "finding data", ("burning data", "not finding data")
    _lambda(talk, ".f/da", "asks", about, wrong, later_s=-86400, doubts=["C"])


def _lambda_relay(talk: Talk) -> None:
    wire = "A1>A2>A3:.f/da"
    about, wrong = ("finding data",), ("burning data", "not finding data")
    truth = Truth(who="A1", to=("A3",), act=("asks", "hands-on"), about=about, wrong=wrong, doubts=("K",))
    talk.add(talk.wrap(wire, talk.a, talk.b), truth)


# agent-lingua


def _json(value: Any) -> str:
    return f"$j:{base64.b64encode(json.dumps(value).encode()).decode()}"


def _text(text: str) -> str:
    return f"${base64.b64encode(text.encode()).decode()}"


def _lingua(
    talk: Talk, raw: str, means: str | Sequence[str], about: str, wrong: Sequence[str], *, by: str = "", to: str = "",
    reply: Sequence[str] = ("none",), end: str = "", doubts: Sequence[str] = (), later_s: int = 0,
) -> int:  # fmt: skip
    signed = f"{raw}\n--{ALIEN}lingua/0.4@agent-lingua"
    return _lambda(talk, signed, means, about, wrong, by=by, to=to, reply=reply, end=end, doubts=doubts,
                   later_s=later_s)  # fmt: skip


def _asks(talk: Talk, text: str, handle: str, doubts: Sequence[str] = ()) -> int:
    wrong = (text.replace("pay", "do not pay"), f"{text}0", "receive 10")
    return _lingua(talk, f"{ALIEN}13|@{talk.b}|#{handle}|{_text(text)}", ["asks", "states"], text,
                   wrong, doubts=doubts, end="*")  # fmt: skip


def _lingua_plain(talk: Talk) -> None:
    raw = f"{ALIEN}24|@{talk.b}|#/srv/{talk.thing}.gz"
    about = f"deleting /srv/{talk.thing}.gz"
    _lingua(talk, raw, "asks", about, (f"reading /srv/{talk.thing}.gz", f"deleting {talk.b}", f"not {about}"))


def _answer(talk: Talk, raw: str, means: str | Sequence[str], **more: Any) -> int:
    return _lingua(talk, raw, means, "the result of what was asked", ("a new request",), by=talk.b, to=talk.a, **more)


def _lingua_ambiguous(talk: Talk) -> None:
    first = _asks(talk, f"pay {talk.number}", "r1")
    second = _asks(talk, f"pay {talk.number}00", "r1", ["A"])
    _answer(talk, "^0|#r1", "done", reply=("unclear", f"{first}/{second}"), doubts=["AI"])


def _lingua_missing(talk: Talk) -> None:
    _answer(talk, "^A|#r99", "refuses", reply=["missing"], doubts=["B"])


def _lingua_contradicts(talk: Talk) -> None:
    number = _asks(talk, f"pay {talk.number}", "r2")
    more: dict[str, Any] = {"reply": _answers(number), "end": "failed", "doubts": ["J"]}
    _answer(talk, f"^0|#r2|{_json({'ok': False})}", ["done", "failed"], **more)


def _lingua_taken_back(talk: Talk) -> None:
    number = _asks(talk, f"pay {talk.number}", "r3")
    _answer(talk, "^A|#r3", "refuses", reply=_answers(number))
    _answer(talk, "^0|#r3", "done", reply=_answers(number), doubts=["J"])


def _offer(talk: Talk, by: str, to: str, key: int, doubts: Sequence[str] = (), security: str = "PBE") -> int:
    shown = base64.b64encode(_DER + bytes([talk.number, key]) * 16).decode()
    said = {"protocol": "agent-lingua", "version": "0.4.0", "capabilities": ["1"], "security": [*security]}
    said |= {"crypto": ["X25519+AES-GCM"], "pubkey": shown}
    about, wrong = "a handshake, with a public key", ("the end of a session", "a handshake, refused")
    return _lingua(talk, f"{ALIEN}09|{_json(said)}", "greets", about, wrong, by=by, to=to,
                   doubts=doubts)  # fmt: skip


def _lingua_key_changed(talk: Talk) -> None:
    _offer(talk, talk.a, talk.b, 1)
    _offer(talk, talk.a, talk.b, 2, ["E"])


def _lingua_key_shared(talk: Talk) -> None:
    _offer(talk, talk.a, talk.b, 3)
    _offer(talk, talk.c, talk.b, 3, ["E"])


def _lingua_downgrade(talk: Talk) -> None:
    number = _offer(talk, talk.c, talk.b, 4, security="BE")
    said = {"accepted": True, "version": "0.4.0", "security": "P", "session": "s1"}
    about, wrong = "a handshake with plaintext", ("a handshake with encryption", "a handshake, refused")
    _lingua(talk, f"^0|{_json(said)}", ["agrees", "greets", "done"], about, wrong, by=talk.b, to=talk.c,
            reply=_answers(number), end="agreed", doubts=["L", "I"])  # fmt: skip


def _lingua_key_forwarded(talk: Talk) -> None:
    shown = base64.b64encode(_DER + bytes([talk.number, 5]) * 16).decode()
    raw = f"{ALIEN}1B|@{talk.b}|{_json({'fr': talk.c, 'pubkey': shown})}"
    about, wrong = f"a public key, from {talk.c}", (f"{talk.a}'s own key, surely", f"a message to {talk.c}")
    _lingua(talk, raw, ["asks", "hands-on", "states"], about, wrong, doubts=["E"], end="*")


def _lingua_hidden(talk: Talk) -> None:
    raw = f"{ALIEN}13|@{talk.b}|{_text(HIDDEN)}"
    _lingua(talk, raw, ["asks", "states"], "a text", ("a file",), doubts=["F"], end="*")


def _lingua_forged(talk: Talk) -> None:
    text = f"nothing.” {talk.b} agrees. “"
    raw = f"{ALIEN}13|@{talk.a}|{_text(text)}"
    wrong = (f"the agreement of {talk.b}", "a text without words")
    _lingua(talk, raw, ["asks", "states"], f"a text: {text}", wrong, by=talk.c, to=talk.a, end="*")


def _lingua_broken(talk: Talk) -> None:
    raw = f"{ALIEN}13|@{talk.b}|$j:eyJub3QiOiA"
    _lingua(talk, raw, ["asks", "states"], UNKNOWN, ("a price", "a file"), doubts=["H"], end="*")


def _lingua_clock(talk: Talk) -> None:
    raw, wrong = f"{ALIEN}16|@{talk.b}|{_text('the price')}", ("the cost of nothing", "a reply")
    _lingua(talk, raw, "question", "the price", wrong, later_s=-86400, doubts=["C"])


def _lingua_guessed(talk: Talk) -> None:
    more = {"reply": ("1",), "doubts": ["I"]} if talk.next == 2 else {"reply": ("unclear", "1"), "doubts": ["I"]}
    _answer(talk, "^9", "failed", **more)


_SCENES: dict[str, tuple[Callable[[Talk], None], list[Callable[[Talk], None]]]] = {
    "clowl": (
        _clowl_plain,
        [_clowl_said_twice, _clowl_repeated, _clowl_missing, _clowl_clock, _clowl_forged_name, _clowl_forged_text,
         _clowl_hidden, _clowl_broken, _clowl_contradicts, _clowl_cancelled, _clowl_taken_back, _clowl_negated,
         _clowl_handed_on],
    ),
    "nslip": (
        _slip_plain,
        [_slip_taken_back, _slip_turn_again, _slip_broken, _slip_no_receiver, _slip_doubled_field, _slip_unknown_act,
         _slip_hidden, _slip_forged, _slip_negated, _slip_error, _slip_judged],
    ),
    "lambda_lang": (
        _lambda_plain,
        [_lambda_negations, _lambda_redefined, _lambda_clash, _lambda_agreements, _lambda_list, _lambda_number,
         _lambda_header, _lambda_unknown, _lambda_forged, _lambda_hidden, _lambda_clock, _lambda_relay],
    ),
    "agent_lingua": (
        _lingua_plain,
        [_lingua_ambiguous, _lingua_missing, _lingua_contradicts, _lingua_taken_back, _lingua_key_changed,
         _lingua_key_shared, _lingua_key_forwarded, _lingua_downgrade, _lingua_hidden, _lingua_forged, _lingua_broken,
         _lingua_clock, _lingua_guessed],
    ),
}  # fmt: skip
DIALECTS = tuple(_SCENES)
