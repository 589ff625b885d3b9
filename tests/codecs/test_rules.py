"""Every rule that a codec follows has vectors that show it, or says why no vector can."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dialects

from ..each import for_each
from .cases import load

HOME = Path(__file__).parent / "rules"
PROJECT = Path(__file__).parents[2]
# Prose has no specification, so it has no rules.
SLUGS = [dialect.slug for dialect in dialects.all_dialects() if dialect.slug != "prose"]


@cache
def rules_of(slug: str) -> list[dict[str, Any]]:
    """The rules of a dialect: id, rule, and vectors, a reason, tests, notes or severities; none where it has no file,
    which a test of its own says."""
    if not (HOME / f"{slug}.json").exists():
        return []
    return json.loads((HOME / f"{slug}.json").read_text("utf-8"))["rules"]


class Rule(NamedTuple):
    """A rule as its file has it, and whose it is."""

    slug: str
    said: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.slug}-{self.said['id']}"


each_rule = for_each([Rule(slug, said) for slug in SLUGS for said in rules_of(slug)])
each_dialect = pytest.mark.parametrize("slug", SLUGS)


def vectors_of(slug: str) -> list[dict[str, Any]]:
    return [*load(slug)["valid"], *load(slug)["malformed"]]


def codes_of(vector: dict[str, Any]) -> list[str]:
    """The codes that a vector claims: a malformed one claims a single note."""
    return vector["notes"] if "notes" in vector else [vector["note"]]


def test_every_file_of_rules_belongs_to_a_dialect() -> None:
    assert sorted(path.stem for path in HOME.iterdir()) == sorted(SLUGS)


@each_dialect
def test_an_id_names_one_rule_and_one_vector(slug: str) -> None:
    for ids in ([rule["id"] for rule in rules_of(slug)], [vector["id"] for vector in vectors_of(slug)]):
        assert sorted(ids) == sorted(set(ids))


@each_rule
def test_a_rule_is_one_sentence_with_a_stable_id(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z][1-9][0-9]?", rule.said["id"])
    assert rule.said["rule"].endswith(".")
    assert rule.said.keys() <= {"id", "rule", "vectors", "reason", "tests", "notes", "severities"}


@each_rule
def test_a_rule_has_vectors_or_a_reason(rule: Rule) -> None:
    assert rule.said.get("vectors") or rule.said.get("reason"), "neither a vector nor a reason"


@each_rule
def test_the_vectors_of_a_rule_exist(rule: Rule) -> None:
    known = {vector["id"] for vector in vectors_of(rule.slug)}
    assert [name for name in rule.said.get("vectors", ()) if name not in known] == []


@each_rule
def test_the_tests_of_a_rule_exist(rule: Rule) -> None:
    for name in rule.said.get("tests", ()):
        path, function = name.split("::")
        assert f"\ndef {function}(" in (PROJECT / path).read_text("utf-8"), (
            f"{name} is gone: name what shows the rule now"
        )


@each_rule
def test_the_severities_of_a_rule_hold(rule: Rule) -> None:
    held = {kind.code: kind.severity for kind in dialects.get_dialect(rule.slug).notes}
    expected = rule.said.get("severities", {})
    assert {code: held.get(code) for code in expected} == expected


@each_dialect
def test_every_note_appears_in_a_vector_or_its_rule_says_why_not(slug: str) -> None:
    seen = {code for vector in vectors_of(slug) for code in codes_of(vector)}
    excused = {code for rule in rules_of(slug) for code in rule.get("notes", ())}
    codes = {kind.code for kind in dialects.get_dialect(slug).notes}
    assert codes - seen == excused, "a note without a vector, or an excuse that is no longer needed"


@each_dialect
def test_an_excused_note_has_its_reason_and_a_test(slug: str) -> None:
    for rule in rules_of(slug):
        if rule.get("notes"):
            assert rule.get("reason")
            assert rule.get("tests")
