"""The narrator: conversations in five dialects, each message with the truth of it, by rules of the narrator's own.

Nothing here asks the product. Each kind of conversation is written so that the rulings leave one answer only, and the
narrator keeps it while writing: who is answered and how that is known, in which order the messages stand, which ids
are cited and never sent, and what a defined word means at that point.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 21, 9, tzinfo=UTC)


@dataclass
class Told:
    """One message and the truth of it; `parent` is the id of the message answered, `basis` how that is known."""

    id: str
    line: bytes
    parent: str | None = None
    basis: str = ""
    # Cites an id that nobody bears, or several do.
    is_orphan: bool = False
    # What its English must hold.
    says: str = ""


@dataclass
class Talk:
    """One conversation of a channel, its messages in the order in which they must be shown."""

    channel: str
    id: str
    messages: list[Told] = field(default_factory=list)
    state: str | None = None


@dataclass
class Story:
    """Conversations by channel, and lines that are sent by mistake and withdrawn again."""

    talks: list[Talk]
    mistakes: dict[str, list[bytes]]

    def lines(self, channel: str) -> list[bytes]:
        """Every line of a channel, in order."""
        return [told.line for talk in self.talks if talk.channel == channel for told in talk.messages]


class _Clock:
    """Times that never repeat, so that the narrator's order is the only one."""

    def __init__(self) -> None:
        self._at = START

    def tick(self) -> datetime:
        self._at += timedelta(seconds=1)
        return self._at


def tell_story(seed: int) -> Story:
    """A story of two channels, in which the same ids mean different things."""
    chance = random.Random(seed)
    talks = []
    mistakes: dict[str, list[bytes]] = {}
    for channel in ("main", "side"):
        clock = _Clock()
        for number, write in enumerate(chance.sample(_KINDS, len(_KINDS))):
            talks.append(write(_Writer(channel, f"talk-{number}", clock, chance)))
        mistakes[channel] = [
            _envelope(f"mistake-{at}", "By mistake.", clock.tick(), conversation="talk-0", sender="eve")
            for at in range(chance.randint(1, 3))
        ]
        mistakes[channel].append(_define("mistaken", "fp", "WRONG", START, "talk-words", "eve"))
    return Story(talks, mistakes)


def _envelope(native_id: str, raw: str, at: datetime | None, **names: Any) -> bytes:
    said = {"raw": raw, "id": native_id, "conversation": names.pop("conversation"), "from": names.pop("sender")}
    if at is not None:
        said["at"] = at.isoformat()
    return json.dumps(said | {name: value for name, value in names.items() if value is not None}).encode() + b"\n"


def _define(native_id: str, word: str, meaning: str, at: datetime, conversation: str, sender: str) -> bytes:
    raw = f'{{def:{word}="{meaning}"}}!ta'
    return _envelope(native_id, raw, at, conversation=conversation, sender=sender, dialect="lambda_lang")


@dataclass
class _Writer:
    channel: str
    name: str
    clock: _Clock
    chance: random.Random

    def talk(self, name: str = "") -> Talk:
        return Talk(self.channel, name or self.name)

    def some(self, least: int = 4, most: int = 9) -> range:
        return range(self.chance.randint(least, most))


def _write_clowl(writer: _Writer) -> Talk:
    """Parents by id: earlier, later, missing, in the talk itself alone."""
    talk, chance = writer.talk(), writer.chance
    names = [f"m{at}" for at in writer.some()]
    for at, name in enumerate(names):
        parent = chance.choice([None, "gone", *names[:at]])
        said: dict[str, Any] = {"clowl": "0.2", "mid": name, "cid": talk.id, "from": "ada", "to": "bob"}
        said |= {"ts": int(writer.clock.tick().timestamp()), "pid": parent, "body": {"t": f"matter {at}", "d": {}}}
        said |= {"p": "INF" if at else "REQ"}
        orphan = parent == "gone"
        known = parent if parent and not orphan else None
        talk.messages.append(
            Told(name, json.dumps(said).encode() + b"\n", known, "explicit" if parent else "", is_orphan=orphan)
        )
    last = {"DONE": "done", "CNCL": "cancelled", "REQ": "open"}
    act = chance.choice(list(last))
    said = {"clowl": "0.2", "mid": "end", "cid": talk.id, "p": act, "from": "bob", "to": "ada", "pid": names[0]}
    said |= {"ts": int(writer.clock.tick().timestamp()), "body": {"t": "matter 0", "d": {}}}
    talk.messages.append(Told("end", json.dumps(said).encode() + b"\n", names[0], "explicit"))
    talk.state = last[act]
    return talk


def _write_late_parents(writer: _Writer) -> Talk:
    """Envelope parents, some of which stand later in time than what answers them: clocks differ."""
    talk, chance = writer.talk(), writer.chance
    names = [f"p{at}" for at in writer.some()]
    for at, name in enumerate(names):
        # Later ones are answered by the first alone, so that no circle closes.
        parent = chance.choice([None, *names[:at]]) if at else chance.choice([None, names[-1]])
        if at == len(names) - 1:
            parent = None
        raw = f"Plain words number {at}."
        line = _envelope(name, raw, writer.clock.tick(), conversation=talk.id, sender="cid", parent=parent)
        talk.messages.append(Told(name, line, parent, "explicit" if parent else "", says=raw))
    return talk


def _write_lingua(writer: _Writer) -> Talk:
    """Responses by correlation id, else to the latest statement of the other that nothing has answered."""
    talk, chance = writer.talk(), writer.chance
    waiting: list[tuple[str, str]] = []
    for at in writer.some(6, 12):
        name, when = f"l{at}", writer.clock.tick()
        parent = basis = None
        if waiting and chance.random() < 0.5:
            if chance.random() < 0.5:
                parent, handle = chance.choice(waiting)
                raw, basis = f"^0|#{handle}|${base64.b64encode(b'fine').decode()}", "correlation"
            else:
                parent, handle = waiting[-1]
                raw, basis = f"^0|${base64.b64encode(b'well').decode()}", "turn"
            waiting.remove((parent, handle))
            who, whom = "mill", "buyer"
        else:
            handle = f"{talk.id}-{at}"
            raw, who, whom = f"👽22|@mill|#{handle}", "buyer", "mill"
            waiting.append((name, handle))
        line = _envelope(name, raw, when, conversation=talk.id, sender=who, to=[whom], dialect="agent_lingua")
        talk.messages.append(Told(name, line, parent, basis or ""))
    return talk


def _write_lambda(writer: _Writer) -> Talk:
    """Acknowledgements answer what the one they speak to said last to them, though a third one talks in between."""
    talk, chance = writer.talk(), writer.chance
    latest: dict[tuple[str, str], str] = {}
    people = ["ada", "bob", "cid"]
    for at in writer.some(6, 12):
        name = f"a{at}"
        who, whom = chance.sample(people, 2)
        answered = latest.get((whom, who))
        is_answer = answered is not None and chance.random() < 0.6
        raw = chance.choice(["<+", "<-", "!er:un"]) if is_answer else chance.choice(["?Uk/co", "!Ik/co"])
        line = _envelope(
            name, raw, writer.clock.tick(), conversation=talk.id, sender=who, to=[whom], dialect="lambda_lang"
        )
        talk.messages.append(Told(name, line, answered if is_answer else None, "turn" if is_answer else ""))
        latest[who, whom] = name
    return talk


def _write_words(writer: _Writer) -> Talk:
    """A word means what the latest definition before it says, and nothing before the first."""
    talk, chance = writer.talk("talk-words"), writer.chance
    meaning = ""
    for at in writer.some(5, 10):
        name, when = f"w{at}", writer.clock.tick()
        if at and chance.random() < 0.4:
            meaning = f"meaning {at}"
            talk.messages.append(Told(name, _define(name, "fp", meaning, when, talk.id, "ada")))
            continue
        line = _envelope(name, "?Uk/fp", when, conversation=talk.id, sender="bob", dialect="lambda_lang")
        talk.messages.append(Told(name, line, says=f'"{meaning}"' if meaning else 'unknown "fp"'))
    return talk


def _write_nslip(writer: _Writer) -> Talk:
    """Turns order what carries no time; a task is answered by whom it was given to, and all else only follows."""
    number = 40 + int(writer.name[-1])
    talk, chance = writer.talk(str(number)), writer.chance
    given: dict[str, tuple[int, str]] = {}
    previous: str | None = None
    for turn in range(1, chance.randint(6, 11)):
        name = f"n{turn}"
        agent = chance.choice(["1", "2"])
        parent, basis = previous, "adjacency" if previous else ""
        if agent in given and chance.random() < 0.6:
            task, parent = given.pop(agent)
            raw, basis = f"@a6|f0|c{_base62(number)}|S{agent}|d0|T{_base62(turn)}|k{_base62(task)}#", "turn"
        else:
            raw = f"@a3|f0|c{_base62(number)}|S0|d{agent}|T{_base62(turn)}|k{_base62(turn)}#"
            given[agent] = (turn, name)
        said = {"raw": raw, "id": name}
        talk.messages.append(Told(name, json.dumps(said).encode() + b"\n", parent, basis))
        previous = name
    return talk


def _base62(number: int) -> str:
    signs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    digits = signs[number % 62]
    while number := number // 62:
        digits = signs[number % 62] + digits
    return digits


_KINDS: list[Callable[[_Writer], Talk]] = [
    _write_clowl,
    _write_late_parents,
    _write_lingua,
    _write_lambda,
    _write_words,
    _write_nslip,
]
