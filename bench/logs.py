"""Logs made from a seed: mixed dialects, words by Zipf's law, shuffled arrival, duplicates, and lines that are broken.

The same seed gives the same bytes. Of a hundred lines one is sent twice, and one is invalid: half of these are no
UTF-8 and are quarantined, the others are messages that no dialect reads fully.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

SYLLABLES = ["ba", "cor", "dal", "en", "fir", "gos", "hul", "im", "jor", "kel", "lum", "mar", "nor", "os", "pel", "qui"]
VOCABULARY = 4096
START = 1_795_000_000
CONVERSATION_MESSAGES = 24
# How many nSLIP conversations go on at a time.
SESSIONS = 50
# How far from its place a message may arrive.
SHUFFLED_WITHIN = 200
AGENTS = ["planner", "archivist", "buyer", "mill", "gateway", "ledger", "courier", "desk"]
CLOWL_ACTS = ["REQ", "INF", "ACK", "QRY", "PROG", "DONE", "DLGT", "ERR"]
LAMBDA = ["?Uk/co", "!It>Ie", "!Ik", ".f/da", "!I-k/tr", "~It/tr", "!st/ta", "?Uw/re", "<+", "!er:un/co", ".f/re&da"]


@dataclass(frozen=True)
class Made:
    """How many records of each kind a log holds, for the exact counts that are to be found again."""

    received: int
    doubled: int
    quarantined: int

    @property
    def stored(self) -> int:
        """What is new in a channel that holds nothing."""
        return self.received - self.doubled - self.quarantined


class Log:
    """A log of so many records, or of so many bytes at least; going through it again gives the same lines.

    Args:
        seed: decides everything.
        records: how many lines.
        size_bytes: or how long.
        words: how many words of text the larger messages carry on average.
        after_s: how many seconds later than the first logs it begins; a second is a message.
        sessions_from: the number of the first of its fifty nSLIP conversations; logs of one number go on with them.
    """

    def __init__(
        self,
        *,
        seed: int,
        records: int | None = None,
        size_bytes: int | None = None,
        words: int = 12,
        after_s: int = 0,
        sessions_from: int = 0,
    ) -> None:
        self._seed, self._records, self._size, self._words = seed, records, size_bytes, words
        self._start, self._sessions_from = START + after_s, sessions_from
        self.made: Made | None = None

    def lines(self) -> Iterator[bytes]:
        """The lines, each without its end; `made` is known after the last."""
        chance = random.Random(self._seed)
        maker = _Maker(chance, self._seed, self._words, self._start, self._sessions_from)
        window: list[tuple[bytes, str]] = []
        number = size = 0
        counts = {"doubled": 0, "quarantined": 0}
        is_over = False
        while window or not is_over:
            while not is_over and len(window) < SHUFFLED_WITHIN:
                for one in maker.make(number):
                    window.append(one)
                    number += 1
                    size += len(one[0]) + 1
                is_over = number >= self._records if self._records is not None else size >= (self._size or 0)
            place = chance.randrange(len(window))
            window[place], window[-1] = window[-1], window[place]
            line, kind = window.pop()
            if kind in counts:
                counts[kind] += 1
            yield line
        self.made = Made(number, counts["doubled"], counts["quarantined"])

    def pieces(self, *, form: str = "lines", piece_bytes: int = 256 * 1024) -> Iterator[bytes]:
        """The bytes of the log: `lines`, or `array` for one JSON array (without what is no JSON)."""
        held: list[bytes] = []
        size = 0
        joint = b"\n" if form == "lines" else b",\n"
        if form == "array":
            held.append(b"[")
        is_first = True
        for line in self.lines():
            if form == "array" and not _is_json(line):
                continue
            if not is_first:
                held.append(joint)
            held.append(line)
            is_first = False
            size += len(line) + 2
            if size >= piece_bytes:
                yield b"".join(held)
                held, size = [], 0
        held.append(b"\n" if form == "lines" else b"]\n")
        yield b"".join(held)


class _Maker:
    """Makes one message after the other; what they hold depends on their number and on the chance alone."""

    def __init__(self, chance: random.Random, seed: int, words: int, start: int, sessions_from: int) -> None:
        self._chance, self._seed, self._length, self._start = chance, seed, words, start
        self._sessions_from = sessions_from
        self._vocabulary = [
            "".join(chance.choices(SYLLABLES, k=2 + rank.bit_length() // 6)) for rank in range(VOCABULARY)
        ]
        self._weights = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))
        self._makers: list[Callable[[int], bytes]] = [
            *[self._make_clowl] * 8,
            *[self._make_nslip] * 4,
            *[self._make_lingua] * 3,
            *[self._make_lambda] * 3,
            *[self._make_prose] * 2,
        ]

    def make(self, number: int) -> list[tuple[bytes, str]]:
        """A message, its double, or something broken; each with its kind."""
        luck = self._chance.random()
        if luck < 0.005:
            return [(b'{"raw": "\xff\xfe broken %d of %d"}' % (number, self._seed), "quarantined")]
        if luck < 0.01:
            return [(self._wrap(number, f'{{"clowl": "0.2", "mid": "x{number}", "p": '), "new")]
        line = self._chance.choice(self._makers)(number)
        return [(line, "new"), (line, "doubled")] if luck < 0.02 else [(line, "new")]

    def words(self, share: float = 1.0) -> str:
        """Some words, the common ones often."""
        count = max(1, round(self._length * share * self._chance.uniform(0.3, 1.7)))
        return " ".join(self._chance.choices(self._vocabulary, cum_weights=self._weights, k=count))

    def _place(self, number: int) -> str:
        return f"job-{self._seed}-{number // CONVERSATION_MESSAGES}"

    def _pair(self, number: int) -> list[str]:
        first = number // CONVERSATION_MESSAGES % len(AGENTS)
        pair = [AGENTS[first], AGENTS[(first + 3) % len(AGENTS)]]
        return pair if number % 2 else pair[::-1]

    def _wrap(self, number: int, wire: str) -> bytes:
        sender, receiver = self._pair(number)
        envelope = {
            "raw": wire,
            "id": f"e{self._seed}-{number}",
            "from": sender,
            "to": receiver,
            "conversation": self._place(number),
            "at": self._start + number,
        }
        return json.dumps(envelope, ensure_ascii=False).encode()

    def _make_clowl(self, number: int) -> bytes:
        act = CLOWL_ACTS[number % len(CLOWL_ACTS)]
        sender, receiver = self._pair(number)
        data: dict[str, object] = {"q": self.words(), "scope": "web"}
        if act == "ERR":
            data = {"code": "E005", "msg": self.words(), "retry": False}
        elif act == "DLGT":
            data["delegation_mode"] = "fork"
        elif act == "PROG":
            data = {"pct": number % 101, "note": self.words()}
        message = {
            "clowl": "0.2",
            "mid": f"m{self._seed}-{number}",
            "ts": self._start + number,
            "p": act,
            "from": sender,
            "to": receiver,
            "cid": self._place(number),
            "body": {"t": "search", "d": data},
        }
        if number % CONVERSATION_MESSAGES:
            message["pid"] = f"m{self._seed}-{number - 1}"
        return json.dumps(message).encode()

    def _make_nslip(self, number: int) -> bytes:
        text = self.words().replace(" ", "_")
        turn, session = number % CONVERSATION_MESSAGES, self._sessions_from + number % SESSIONS
        return self._wrap(number, f'@a{number % 10}|f{number % 5}|c{session}|S1|d2|T{turn}|k{number % 60}|t"{text}"#')

    def _make_lingua(self, number: int) -> bytes:
        payload = base64.b64encode(json.dumps({"sb": self.words(0.3), "bd": self.words(0.7)}).encode()).decode()
        return self._wrap(number, f"👽13|@{self._pair(number)[1]}|$j:{payload}")

    def _make_lambda(self, number: int) -> bytes:
        wire = LAMBDA[number % len(LAMBDA)]
        return self._wrap(number, f'{{def:nm="{self.words(0.5)}"}}{wire}' if number % 4 == 0 else wire)

    def _make_prose(self, number: int) -> bytes:
        return self._wrap(number, f"{self.words().capitalize()}.")


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
