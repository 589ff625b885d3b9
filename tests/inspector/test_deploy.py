"""The files of `deploy/`: each measure that they name is one that /metrics writes, with its labels and values."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.samples import Sample

from inspector.intake.selectors import list_measures

from .conftest import Cast, deliver

PROJECT = Path(__file__).resolve().parents[2]
ALERTS = PROJECT / "deploy" / "alerts.yml"
DASHBOARD: dict[str, Any] = json.loads((PROJECT / "deploy" / "grafana-dashboard.json").read_text())
_GROUPS: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"]
RULES = [rule for group in _GROUPS for rule in group["rules"]]


def list_expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])


def list_samples() -> Iterator[tuple[str, list[Sample]]]:
    """The samples of each measure, by the name that a query asks for."""
    yield from ((measure.samples[0].name, measure.samples) for measure in list_measures())


@pytest.mark.django_db
def test_every_measure_that_is_named_exists_with_its_labels(cast: Cast) -> None:
    deliver(cast, b"hello\n")
    there = dict(list_samples())
    named = set()
    for expression in list_expressions():
        for name, labels in re.findall(r"(inspector_\w+)(?:\{([^}]*)\})?", expression):
            named.add(name)
            known = {pair for sample in there[name] for pair in sample.labels.items()}
            assert set(re.findall(r'(\w+)="(\w+)"', labels)) <= known, expression
        for by in re.findall(r"\bby \(([^)]*)\)", expression):
            labels_of = {label for name in re.findall(r"inspector_\w+", expression) for label in there[name][0].labels}
            assert set(re.split(r",\s*", by)) <= labels_of, expression
    # A measure that neither the dashboard nor an alert looks at is one that nobody sees.
    assert named == set(there)


@pytest.mark.django_db
def test_names_and_units_are_by_the_rules_of_prometheus(cast: Cast) -> None:
    """https://prometheus.io/docs/practices/naming: one application prefix, base units, total for what only grows."""
    deliver(cast, b"hello\n")
    for measure in list_measures():
        assert re.fullmatch(r"inspector_[a-z]+(_[a-z]+)*", measure.name)
        assert measure.type in ("counter", "gauge")
        total = "_total" if measure.type == "counter" else ""
        assert {sample.name for sample in measure.samples} == {measure.name + total}
        assert not re.search(r"_(ms|milliseconds|minutes|hours|kb|mb|percent|count|sum|bucket)$", measure.name)
        assert measure.documentation.endswith(".")


def test_each_alert_says_what_to_do_in_a_section_that_exists() -> None:
    sections = re.findall(r"^### (\w+)$", (PROJECT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(rule["alert"] for rule in RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{rule['alert'].lower()}"


def test_panels_lie_side_by_side_and_ask_the_source_that_was_chosen() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["datasource"]["uid"] == "${source}"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing")
def test_promtool_understands_the_alerts() -> None:
    checked = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
