"""The reader's test: its truth is that of the decoded records, its folder shows no raw text, its marks are fair."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench.reader import QUESTIONS, Question, draw, make_questions, make_recorded, mark, score
from bench.reader_stories import DIALECTS, UNKNOWN, count_riddles, write_talk


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CORPORA_DIR", raising=False)
    monkeypatch.setattr("bench.reader.print_english", lambda log: f"The English of {log.stem}.\n")
    draw(3, 5, tmp_path)
    return tmp_path


def load(folder: Path) -> list[Question]:
    rows: list[dict[str, Any]] = json.loads((folder / "truth" / "truth.json").read_text())
    return [Question(**{**row, "right": {name: tuple(each) for name, each in row["right"].items()}}) for row in rows]


def answer(question: Question) -> list[str]:
    """What a perfect reader fills in."""
    right = [UNKNOWN if question.right[name][0] == "*" else question.right[name][0] for name in QUESTIONS[:-1]]
    return [*right, "".join(each[0] for each in question.needed) or "-"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_riddle_is_decoded_as_it_was_written(dialect: str) -> None:
    for riddle in range(count_riddles(dialect)):
        _, questions = make_questions(
            "talk", write_talk(dialect, "talk", random.Random(riddle), riddle), random.Random(1)
        )
        wrong = [each.differs for each in questions if each.differs and "H" not in "".join(each.needed)]
        assert not wrong, (riddle, wrong)


def test_the_reader_sees_no_raw_text_and_no_truth(drawn: Path) -> None:
    shown = "".join(path.read_text() for path in (drawn / "reader").iterdir())
    for log in (drawn / "truth").glob("*.jsonl"):
        assert not any(line.strip() in shown for line in log.read_text().splitlines())
    assert "right" not in {word for line in shown.splitlines() for word in line.split('"')}


def test_a_perfect_reader_is_marked_right_and_an_idle_one_unanswered(drawn: Path) -> None:
    questions = load(drawn)
    _, counts = score(drawn)
    assert sum(counts.values()) == len(questions) == sum(n for (_, kind), n in counts.items() if kind == "unanswered")
    rows = "\n".join(" | ".join((question.name, *answer(question), "")) for question in questions)
    (drawn / "reader" / "answers-all.txt").write_text(rows)
    text, counts = score(drawn)
    assert {kind for _, kind in counts} == {"rightly"}, text


def test_of_what_is_no_act_both_that_it_is_not_known_and_that_it_is_something_else_are_right() -> None:
    alone = {"raw": "--\N{EXTRATERRESTRIAL ALIEN}lingua/0.4@agent-lingua"}
    said = {"raw": "\N{EXTRATERRESTRIAL ALIEN}hello"}
    acts = [
        make_recorded("agent_lingua", [each], [[said]], random.Random(1)).truths[0][0].act for each in (alone, said)
    ]
    assert acts == [(UNKNOWN, "other"), ("states",)]


def test_a_wrong_answer_misleads_an_open_one_and_a_missing_doubt_do_not(drawn: Path) -> None:
    for question in load(drawn):
        cells = answer(question)
        swapped = next(each for each in question.people if each not in question.right["who"])
        assert [miss.kind for miss in mark(question, [swapped, *cells[1:]])] == ["misled"]
        left_open = [miss.kind for miss in mark(question, [UNKNOWN, *cells[1:]])]
        assert left_open == ["in part"]
        if question.needed:
            assert [miss.kind for miss in mark(question, [*cells[:-1], "-"])] == ["in part"]


def test_the_same_seed_draws_the_same(drawn: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    draw(3, 5, again)
    first, second = ((folder / "truth" / "truth.json").read_bytes() for folder in (drawn, again))
    assert first == second
