"""Recorded messages (`CORPORA_DIR`): is each found in its dialect, and how much of the recorded English ours has.

The corpora are a folder for each dialect with JSON Lines: an object a line with `raw`, or with `messages` that have it.
Lambda's also have what the sender's side meant (`meaning`) and what the reference made of it (`expected.english`).
Content words are counted as they are written, without stemming: "tests" is not in "test". The most that any telling
can have is told beside it: every form of every meaning that any release and domain gives an atom of the message. More
than that can only be guessed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import dialects
from dialects.lambda_lang import lexicon, vocabulary

from .measure import Goal, Row

SLUGS = {"clowl": "clowl", "nslip": "nslip", "lambda": "lambda_lang", "agent-lingua": "agent_lingua"}
# Lists of words from a benchmark, where the English was written beside each message.
BENCHMARK = "benchmark_samples"
MAX_MESSAGES = 3_000
PLAIN = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at for from by with and or is are was were be been being has have had it its this that"
        " all as no not into than then per via over any their your you i we my our out up do does",
    )
)


def measure_recorded() -> Iterator[Row]:
    """The share of content words, ours and the reference's, then a row of detection for each dialect."""
    words = Goal("W1", "Lambda, content words of the recorded English that ours has", 0.304, 0.5)
    theirs = Goal("W1", "the same, the reference's translator", 0, 0)
    most = Goal("W1", "the same, all that any vocabulary gives the atoms", 0, 0)
    folder = os.environ.get("CORPORA_DIR")
    if not folder:
        yield Row(words, None, remark="give CORPORA_DIR")
        return
    told = [each for each in read_messages(Path(folder, "lambda"), BENCHMARK) if each.get("meaning")]
    ours = fmean(_share(each["meaning"], _tell(each["raw"])) for each in told)
    yield Row(words, ours, remark=f"{ours:.3f} of {len(told)} messages of {BENCHMARK}")
    reference = fmean(_share(each["meaning"], each["expected"]["english"]) for each in told)
    yield Row(theirs, reference, remark=f"{reference:.3f}")
    known = fmean(_share(each["meaning"], f"{_tell(each['raw'])} {_list_forms(each['raw'])}") for each in told)
    yield Row(most, known, remark=f"{known:.3f}")
    for name, slug in SLUGS.items():
        found = [_is_found(each["raw"], slug) for each in read_messages(Path(folder, name))]
        goal = Goal("W2", f"{slug}, recorded messages that are found in their dialect", 0, 1)
        yield Row(goal, fmean(found), remark=f"{sum(found):,} of {len(found):,}")


def read_messages(folder: Path, stem: str = "*") -> Iterator[dict[str, Any]]:
    """The messages of a dialect's files, of each no more than `MAX_MESSAGES`."""
    for path in sorted(folder.glob(f"{stem}.jsonl")):
        lines = (json.loads(line) for line in path.read_text("utf-8").splitlines())
        messages = [each for line in lines for each in line.get("messages", [line]) if isinstance(each.get("raw"), str)]
        yield from messages[:MAX_MESSAGES]


def _tell(wire: str) -> str:
    return " ".join(message.sentence for message in dialects.decode(wire, dialect="lambda_lang").messages)


def _share(meant: str, told: str) -> float:
    wanted = _list_words(meant)
    return len(wanted & _list_words(told)) / max(len(wanted), 1)


def _list_forms(wire: str) -> str:
    """The wire's own values, and every form of every meaning of its atoms, whatever the release and the domain."""
    found = [wire]
    for atom in set(re.findall("[A-Za-z]+", wire)):
        histories = (atoms.get(atom, ()) for atoms in vocabulary.histories().values())
        for meaning in {meaning for history in histories for _, meaning in history if meaning}:
            word = lexicon.find_word(meaning)
            uses = (word.noun, word.verb, word.adjective, word.adverb)
            found += [
                meaning,
                *(
                    str(form)
                    for use in uses
                    if use
                    for form in ([use] if isinstance(use, str) else use.given().values())
                ),
            ]
    return " ".join(found)


def _list_words(text: str) -> set[str]:
    return {word.strip(".") for word in re.findall(r"[a-z0-9.]+", text.lower())} - PLAIN - {""}


def _is_found(wire: str, slug: str) -> bool:
    found = dialects.detect(wire)
    return bool(found) and found[0].dialect == slug
