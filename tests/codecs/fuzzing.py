"""Fuzzing the codecs: mutated vectors and soups of their own tokens; nothing may raise, and nothing take over 50 ms.

`python -m tests.codecs.fuzzing --inputs 2000000` is the long form; the suite runs a short one. A run is repeatable
from its printed seed. An input that fails is printed whole, so that it can become a vector.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pool

import dialects

from .cases import load
from .test_laws import assert_covers

MAX_MS = 50.0
MAX_CHARACTERS = 4000
SOUP = {
    "clowl": [
        '{"clowl":"0.2",',
        '"mid":',
        '"m1"',
        '"ts":',
        "1795118400",
        '"p":"REQ"',
        '"body":{"t":"x","d":{}}',
        '"to":["a"]',
    ],
    "nslip": ["@a3|", "f0|", "c1|", "S0|", "d1|", "T1|", "k", "zz", 't"', '"', "\\", "#", "|", "@|a8", "s8"],
    "lambda_lang": [
        "!I",
        "?U",
        "k/",
        "co",
        "{def:",
        "}",
        "@v0.6#h",
        "[n12]",
        "||",
        "<",
        ">",
        "-",
        "e:jo",
        "$4",
        "'E",
        "=",
    ],
    "agent_lingua": [
        "👽",
        "73",
        "|@",
        "|#",
        "|~+1d",
        "|%K>5",
        "|$",
        "$j:eyJ0IjoxfQ==",
        "$z:",
        "$e:",
        ";;",
        "^0",
        "!E2W",
        "\n",
    ],
    "chat": [
        '{"role":"user",',
        '"content":',
        '"hi"',
        "[",
        "]",
        "{",
        "}",
        "null",
        "7,",
        '{"type":"tool_use","id":"t","name":"f","input":{}}',
        '"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{"}}]',
        '{"messages":[',
        '{"object":"trace.span","span_data":{"type":"agent"}',
        '{"type":"response_item","timestamp":"","payload":{"type":"reasoning","summary":[]}}',
        '"sessionId":"s","uuid":null,"type":"user","message":{"role":[]}',
    ],
    "a2a": [
        '{"jsonrpc":"2.0","id":1,',
        '"method":"message/send","params":',
        '"result":',
        '{"kind":"task","id":"t1","contextId":"c1","status":{"state":"working"}}',
        '{"message":{"role":"user","messageId":"m1","parts":[',
        '{"kind":"text","text":"!I"}',
        "]}}",
        "null",
        "data: ",
        "}",
    ],
    "fipa": [
        "(inform ",
        "(ask-one ",
        ":content ",
        ":sender ",
        "(agent-identifier :name a)",
        ":receiver (set ",
        '"',
        '\\"',
        '#4"',
        "(",
        ")",
        ":X-a ",
        ":reply-by +00000000T000001000 ",
        "\n",
    ],
    "otel": [
        '{"traceId":"',
        "5b8efff798038103d269b633813fc60c",
        '"spanId":',
        '"name":"x",',
        '"attributes":[{"key":',
        '"value":',
        '{"kvlistValue":{"values":[{"key":"role",',
        '{"arrayValue":{"values":[',
    ],
    "mcp": [
        '{"jsonrpc":"2.0","id":1,',
        '"method":"tools/call",',
        '"params":{"name":"x","arguments":{"a":"',
        '"}}}',
        "@a3|f0|c1|S0|d1|T1#",
        '\\"clowl\\":\\"0.2\\",',
        '"result":{"content":[{"type":"text","text":"?Uk/co"}]}',
        "null",
        "[",
        "]",
    ],
    "slip": [
        *("SLIP v1 ", "SLIP v3 ", "SLIP: ", "a ", "b_1 ", "Request ", "Plan ", "Fallback ", "EvalReject ", "0x0011 "),
        *("thread42 ", "THOUGHT: ", "QUANTIZE: ", "-> AskStatus", '"', "\n"),
    ],
    "prose": ["SLIP v1 ", "word ", "."],
}
ODD = [
    "\x00",
    "\ud800",
    "\u202e",
    "\u200b",
    "\ufe0f",
    "é",
    "\u0301",
    "\n",
    "\r\n",
    "\t",
    "﻿",
    "9" * 30,
    "[" * 40,
    "{" * 40,
    "💥",
]


@dataclass
class Report:
    """What a run found."""

    dialect: str
    inputs: int = 0
    slowest_ms: float = 0.0
    slowest: str = ""
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.failures and self.slowest_ms <= MAX_MS


def make_inputs(dialect: str, count: int, seed: int) -> Iterator[str]:
    """Mutated wires of the dialect's vectors, and soups of its tokens."""
    chance = random.Random(f"{dialect} {seed}")
    vectors = load(dialect)
    wires = [
        case["wire"] for kind in ("valid", "malformed") for case in vectors[kind] if len(case["wire"]) < MAX_CHARACTERS
    ]
    tokens = SOUP[dialect] + ODD
    for _ in range(count):
        if not wires or chance.random() < 0.25:
            yield "".join(chance.choices(tokens, k=chance.randint(1, 25)))
        else:
            text = chance.choice(wires)
            for _ in range(chance.randint(1, 6)):
                text = mutate(text, wires, tokens, chance)
            yield text[:MAX_CHARACTERS]


def mutate(text: str, wires: list[str], tokens: list[str], chance: random.Random) -> str:
    """One change: cut, doubled, swapped, spliced, a token or a character put in."""
    at, to = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
    kind = chance.randrange(7)
    if kind == 0:
        return text[:at] + text[to:]
    if kind == 1:
        return text[:to] + text[at:to] * chance.randint(1, 3) + text[to:]
    if kind == 2:
        return text[:at] + chance.choice(tokens) + text[at:]
    if kind == 3:
        other = chance.choice(wires)
        return text[:at] + other[chance.randint(0, len(other)) :]
    if kind == 4:
        return text[:at] + chr(chance.choice((chance.randrange(128), chance.randrange(0x3000)))) + text[at + 1 :]
    if kind == 5:
        return text[:at] + text[at:to][::-1] + text[to:]
    return text[:at]


def fuzz(dialect: str, count: int, seed: int) -> Report:
    """Decode each input in its dialect and as whatever it is taken for; check that the tree covers it."""
    report = Report(dialect)
    for text in make_inputs(dialect, count, seed):
        spent = _try(report, dialect, text)
        if spent > MAX_MS:
            # Another process may have had the machine: what is slow is slow three times.
            spent = min(spent, *(_try(report, dialect, text) for _ in range(2)))
        if spent > report.slowest_ms:
            report.slowest_ms, report.slowest = spent, text
        report.inputs += 1
    return report


def _try(report: Report, dialect: str, text: str) -> float:
    start = time.process_time()
    try:
        dialects.identify(text, dialect)
        reading = dialects.decode(text, dialect=dialect)
        spent = (time.process_time() - start) * 1000
        assert_covers(reading)
        if not report.inputs % 4:
            dialects.decode(text)
            _write(reading)
    except Exception as error:  # noqa: BLE001 (whatever is raised is what the run looks for)
        report.failures.append((text, f"{type(error).__name__}: {error}"))
        return 0.0
    return spent


def _write(reading: dialects.Reading) -> None:
    try:
        dialects.encode(reading)
    except dialects.EncodeError as refused:
        assert refused.reason  # noqa: PT017 (the one error that encoding may raise)


def _run(task: tuple[str, int, int]) -> Report:
    return fuzz(*task)


def main() -> int:
    """Fuzz each dialect, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000_000, help="for each dialect")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--dialect", choices=list(SOUP))
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    slugs = [chosen.dialect] if chosen.dialect else [slug for slug in SOUP if slug != "prose"]
    share = 20_000
    tasks = [
        (slug, min(share, chosen.inputs - at), chosen.seed + at)
        for slug in slugs
        for at in range(0, chosen.inputs, share)
    ]
    totals = {slug: Report(slug) for slug in slugs}
    with Pool(chosen.processes) as pool:
        for part in pool.imap_unordered(_run, tasks):
            total = totals[part.dialect]
            total.inputs += part.inputs
            total.failures += part.failures
            if part.slowest_ms > total.slowest_ms:
                total.slowest_ms, total.slowest = part.slowest_ms, part.slowest
    for total in totals.values():
        print(
            f"{total.dialect}: {total.inputs:,} inputs, {len(total.failures)} raised, slowest {total.slowest_ms:.1f} ms"
        )
        for text, reason in total.failures[:10]:
            print(f"  {reason}: {text!r}")
        if total.slowest_ms > MAX_MS:
            print(f"  over {MAX_MS:.0f} ms: {total.slowest!r}")
    return 0 if all(total.is_clean for total in totals.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
