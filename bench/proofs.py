"""P18, R6, R14 to R16, R18 and R19 of the goals: what the tests that prove them tried, and how often it came out wrong.

Each of these tests says both by itself, in properties of pytest's report: under `failures` how often what must never
happen did, and under words of its own what was tried. They run here in a process of their own; a row adds up what
they said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from inspector.embedded.state import PROJECT

from .installation import choose_environment
from .measure import Goal, Row

FAILURES = "failures"
_LEDGER = "tests/inspector/ledger"
_PURITY = "tests/inspector/threads/test_purity.py"
_MAX_CHARACTERS = 200


@dataclass(frozen=True)
class Proof:
    """A row of the table: its goal, and the tests that count for it."""

    goal: Goal
    tests: Sequence[str]


PROOFS = (
    Proof(
        Goal("P18", "addresses that ask oftener with 1,000 messages than with 10, or over 12 times", 0, 0, True),
        ("tests/inspector/pages/test_statements.py::test_how_often_the_database_is_asked",),
    ),
    Proof(
        Goal("R6", "1,000 orders and batches: times that places, trees, tasks, findings or English differ", 0, 0, True),
        (f"{_PURITY}::test_what_is_resumed_is_what_is_settled_from_scratch",),
    ),
    Proof(
        Goal("R6", "the logs of the rules in any order and batches: times that a finding differs", 0, 0, True),
        (f"{_PURITY}::test_findings_are_the_same_in_any_order_and_any_batches",),
    ),
    Proof(
        Goal("R14", "roots and proofs that are not pymerkle's, and turned bits that were taken", 0, 0, True),
        (
            f"{_LEDGER}/test_merkle.py::test_pymerkle_has_the_same_roots_and_paths[2000]",
            f"{_LEDGER}/test_merkle.py::test_no_proof_holds_with_a_bit_turned[100000]",
            f"{_LEDGER}/test_notes.py::test_no_checkpoint_is_signed_with_any_bit_turned",
        ),
    ),
    Proof(
        Goal("R15", "tamperings of a superuser of which not the first bad entry was named", 0, 0, True),
        (
            f"{_LEDGER}/test_ledger.py::test_whoever_tampers_is_named_by_the_first_bad_entry",
            f"{_LEDGER}/test_ledger.py::test_a_swapped_verdict_is_named",
            f"{_LEDGER}/test_ledger.py::test_a_rolled_back_ledger_is_named",
        ),
    ),
    Proof(
        Goal("R16", "ways to change or empty the trail that the database did not refuse", 0, 0, True),
        (
            "tests/inspector/trail/test_trail.py::test_nobody_changes_deletes_or_empties_the_trail",
            "tests/inspector/trail/test_roles.py::test_the_application_cannot_change_delete_or_empty_the_trail",
        ),
    ),
    Proof(
        Goal("R18", "places where somebody who may not see it found a planted secret", 0, 0, True),
        ("tests/inspector/test_canaries.py::test_planted_secrets_are_found_nowhere",),
    ),
    Proof(
        Goal("R19", "payloads that were executed, and complaints of the policy, in a browser", 0, 0, True),
        ("tests/browser/test_payloads.py::test_no_payload_is_executed_on_any_page",),
    ),
)
PROVED = frozenset(proof.goal.id for proof in PROOFS)


def measure_proofs(wanted: set[str], *, permutations: int) -> Iterator[Row]:
    """The rows of the goals that are wanted; each takes from some seconds to some minutes.

    Args:
        wanted: ids of goals.
        permutations: of R6, in how many orders the story is told; it goes up to the next ten.
    """
    choose_environment()
    environment = {**os.environ, "PURITY_PERMUTATIONS": str(-(-permutations // 10) * 10)}
    for proof in PROOFS:
        if proof.goal.id in wanted:
            yield _measure(proof, environment)


def _measure(proof: Proof, environment: Mapping[str, str]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={report}"]
        done = subprocess.run(
            [*command, *proof.tests], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
        )
        if not report.exists():
            return Row(proof.goal, None, remark=(done.stderr or done.stdout).strip()[-_MAX_CHARACTERS:])
        return _read_report(proof.goal, ElementTree.parse(report).getroot())


def _read_report(goal: Goal, report: ElementTree.Element) -> Row:
    """The row of what the tests said; none where one of them broke off, or was not run, before it counted."""
    said: Counter[str] = Counter()
    troubles = []
    cases = list(report.iter("testcase"))
    for case in cases:
        counts = {each.attrib["name"]: int(each.attrib["value"]) for each in case.iter("property")}
        said.update(counts)
        odd = next((each for kind in ("failure", "error", "skipped") for each in case.iter(kind)), None)
        # What failed because of what it counted has said all; anything else has not.
        if not counts.get(FAILURES) and (odd is not None or FAILURES not in counts):
            message = odd.attrib.get("message", odd.tag) if odd is not None else "it counted nothing"
            troubles.append(f"{case.attrib['name']}: {' '.join(message.split())}"[:_MAX_CHARACTERS])
    if troubles or not cases:
        return Row(goal, None, remark="; ".join(troubles) or "no test was found")
    failures = said.pop(FAILURES)
    tried = ", ".join(f"{number:,} {name}" for name, number in said.items())
    return Row(goal, failures, remark=tried)
