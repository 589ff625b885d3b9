"""The words of the screen: phrases that were replaced by the field's own terms must not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
# What an auditor reads: pages, the words that Python gives them, and the documents.
READ = (
    "templates/**/*.html",
    "inspector/pages/**/*.py",
    "inspector/audit/rules/*.py",
    "inspector/api/*.py",
    "docs/*.md",
    "README.md",
)
# A phrase that must not come back, and what is said instead.
REPLACED = {
    "stands still": "is stalled",
    "stands open": "open findings",
    "gravest open finding": "most severe open finding",
    "among equals": "then",
    "all that hold": "all current",
    "no longer true": "no longer applies",
    "What you make of it": "Decision",
    "Judge the chosen": "Apply to selected",
    "whoever looks next": "the next reader",
    "the place lit": "at this spot",
    "What is the matter": "Details",
    "It rests on": "Evidence",
    "Nothing to object to": "No issues",
    "Of concern": "Concern",
    "Keep this verdict": "Sign off",
    "Nobody has spoken": "No verdicts yet",
    ">Take it<": "Claim",
    "Give back": "Release",
    "Hold longer": "Extend",
    "Who looked": "Reviewed",
    "errors of the wire": "decoding errors",
    "what never came": "missing messages",
    "nobody by name</": "no recipient",
    'that no dialect reads"': "Unreadable message",
    "An end that was taken back": "Outcome reversed",
    "A secret in clear": "Exposed secret",
    'could not be had"': "unavailable",
    "that nobody agreed on": "without handshake",
    "known word another meaning": "Term redefined",
    "first word back": "first reply",
    "no wire is believed": "States come only from the messages",
    "Says it can": "Capabilities",
    "It is one with another agent": "Same as another agent",
    "Give the name": "Save name",
    "As answers": "Threaded",
    "Wire beside": "Raw: side",
    "Also carries": "More fields",
    "Around it": "Context",
    "silent here": "sent nothing",
    "look at it otherwise": "Preview only",
    "stays to be seen": "a trace remains",
    "Nothing received answers it": "No reply received",
    "What can be asked": "Search reference",
    "To begin with</": "Defaults",
    "Load all as chosen": "Import all",
    "hrow away</": "Discard",
    "Said of it": "Overrides",
    "kept aside": "kept",
    "This is not yours to do": "You do not have permission",
    "To the conversations": "Back to the overview",
    "do not go together": "Wrong username or password",
    "The inspector made a mistake": "Something went wrong",
    "when the worker begins": "Snapshot taken when the export starts",
    "Keep it, sealed": "Save key",
    "Make the key": "Create key",
    "those that stand so": "filter by state",
    "No deed is like this": "No matching actions",
    "its trail": "history",
    "word back": "first reply",
    'nobody by name"': "no named recipient",
    "called so</": "alias",
    "Take back": "Undo withdrawal, Withdraw",
    "took this back": "withdrew this",
    "hrown away": "discarded",
    "after framing": "after importing",
    ">Framed<": "Imported",
    "Asked by {%": "A asked B",
    "thing,things": "more fields",
    "what looks like {": "looks like an exposed",
    "hoever made": "the member who made",
    "gravest note": "most severe note",
    "no time on the wire": "no time in the message",
}


@pytest.mark.parametrize("phrase", REPLACED)
def test_a_replaced_phrase_stays_away(phrase: str) -> None:
    files = [path for pattern in READ for path in PROJECT.glob(pattern)]
    assert len(files) > 200
    found = [
        f"{path.relative_to(PROJECT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if phrase in line
    ]
    assert not found, f"say “{REPLACED[phrase]}”"


def test_every_head_of_a_column_says_what_stands_below_it() -> None:
    heads = [
        (str(path.relative_to(PROJECT)), head)
        for path in PROJECT.glob("templates/**/*.html")
        for head in re.findall(r"<th\b(?![^>]*scope=\"row\")[^>]*>", path.read_text())
    ]
    assert len(heads) > 100
    assert [
        each for each in heads if ' scope="col"' not in each[1] or not re.search(r' title="[^"]{5,}"', each[1])
    ] == []
