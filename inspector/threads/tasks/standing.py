"""What stands to be answered: what was asked of whom before a message, and which question waits for its next word."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ..placing.nodes import StoredNode
from ..reads import Key, Reads
from ..uncertainty import UncertainError
from .asked import MOST_CARRIED, Asked, Asking, list_differing, note_latest, read_asking, replace, take_latest
from .found import Found
from .signs import ASKS


def asked_for(task: Found, node: StoredNode) -> bool:
    """Whether the sender of a message is who asked for a task."""
    return task.request is not None and bool(node.sender) and task.requester == node.sender


class Standing:
    """What was asked of whom before a message, and which question waits for its next word.

    That the next word has been said is no look-up: it leaves the same behind, whatever waited for it.
    """

    def __init__(self, asked: Asked | None = None) -> None:
        self.asked = asked or Asked()
        self._reads: Reads | None = None
        # What was asked is kept with the message that asked last, so that the latest is known.
        # By (who asked, who was asked): the latest task; and the latest question that still waits for a word.
        self._latest: dict[tuple[str, str], Asking] = {}
        self._questions: dict[tuple[str, str], Asking] = {}
        # Of each that was asked, "" for nobody by name: the latest task, and the latest that somebody else asked for.
        self._asked_of: dict[str, list[tuple[str, Asking]]] = {}
        self._question: Asking | None = None
        # Which of them were not carried over in full.
        self._cut: set[str] = set()

    def take_reads(self, reads: Reads) -> None:
        """Let what is looked up from here on be noted there, where it is found before where that starts."""
        self._reads = self.asked.reads = reads

    def find_latest(self, node: StoredNode) -> Found | None:
        """The latest thing that one of the receivers asked of the sender, or anyone else where it names no receiver."""
        if not node.sender:
            return None
        kind = "latest" if node.receivers else "asked_of"
        if node.receivers:
            keys: list[tuple[str, ...]] = [(name, asked) for name in node.receivers for asked in (node.sender, "")]
            latest = take_latest(self._latest.get((name, asked)) for name, asked in keys)
        else:
            keys = [(node.sender,), ("",)]
            asked_of = (pair for (name,) in keys for pair in self._asked_of.get(name, ()))
            latest = take_latest(asked for sender, asked in asked_of if sender != node.sender)
        note_latest(self._reads, kind, latest, *keys)
        if latest is None and self._cut:
            raise UncertainError
        return latest.task if latest is not None else None

    def find_question(self, node: StoredNode) -> Found | None:
        """The question that waits for the sender's next word; of nobody by name where the wire names no receivers."""
        if not node.sender:
            return None
        for name in node.receivers:
            for asked in (node.sender, ""):
                question = self._questions.get((name, asked))
                note_latest(self._reads, "questions", question, (name, asked))
                if question is not None:
                    return question.task
                # What comes first is meant, and not what was asked last: one that was left out may be it.
                if "questions" in self._cut:
                    raise UncertainError
        if node.receivers:
            return None
        note_latest(self._reads, "question", self._question, ())
        if self._question is None:
            return None
        asking = self._question.node
        if not asking.sender or asking.sender == node.sender:
            return None
        return self._question.task if not asking.receivers or node.sender in asking.receivers else None

    def remember(self, node: StoredNode, task: Found | None) -> None:
        """Keep what was asked of whom; and a question has had its next word once the one asked says anything."""
        sender = node.sender or ""
        for name in node.receivers:
            self._questions.pop((name, sender), None)
            self._questions.pop((name, ""), None)
        if self._question is not None and self._question.node.sender != node.sender:
            self._question = None
        if task is None:
            return
        is_own = asked_for(task, node)
        self.asked.note_end(node, task, is_own=is_own)
        if node.performative not in ASKS or not (task.request == node.id or is_own):
            return
        asking = Asking(node, task, task.ends)
        self.asked.add(asking)
        for name in node.receivers or ("",):
            replace(self._latest, (sender, name), asking)
            if sender:
                of_another = [pair for pair in self._asked_of.pop(name, ()) if pair[0] != sender][-1:]
                self._asked_of[name] = [*of_another, (sender, asking)]
        if task.request == node.id and node.performative == "query":
            replace(self._questions, (sender, node.receivers[0] if len(node.receivers) == 1 else ""), asking)
            self._question = asking

    # What is carried over the end of a conversation.

    def write(self) -> dict[str, Any]:
        """What is known, as JSON takes it: messages and tasks by the hexadecimal of their ids."""
        cut = set(self._cut)
        written: dict[str, Any] = {"asked": self.asked.write()}
        for kind, rows in self._list_last().items():
            if len(rows) > MOST_CARRIED:
                cut.add(kind)
            written[kind] = [[*key, *asking.write()] for key, asking in rows[-MOST_CARRIED:]]
        question = self._question.write() if self._question is not None else None
        return {**written, "question": question, "cut": sorted(cut)}

    def _list_last(self) -> dict[str, list[tuple[tuple[str, str], Asking]]]:
        return {
            "latest": self.asked.take_last(self._latest.items()),
            "questions": self.asked.take_last(self._questions.items()),
            "asked_of": self._take_last_asked(),
        }

    def _take_last_asked(self) -> list[tuple[tuple[str, str], Asking]]:
        """As `Asked.take_last`, of who was asked by whom: those who were asked last, each once at least."""
        every = self._asked_of.items()
        rows = _flatten(islice(reversed(every), MOST_CARRIED + 1))
        return self.asked.sort_last(rows if self.asked.are_in_order(rows) else _flatten(every))

    @classmethod
    def read(
        cls, written: dict[str, Any], nodes: Mapping[uuid.UUID, StoredNode], tasks: Mapping[uuid.UUID, Found]
    ) -> Standing:
        """What `write` wrote, from the messages and tasks that it names (`list_named`)."""
        held = cls(Asked.read(written["asked"], nodes, tasks))
        held._cut = set(written["cut"])
        for sender, name, *asking in written["latest"]:
            held._latest[sender, name] = read_asking(asking, nodes, tasks)
        for sender, name, *asking in written["questions"]:
            held._questions[sender, name] = read_asking(asking, nodes, tasks)
        for name, sender, *asking in written["asked_of"]:
            pairs = held._asked_of.pop(name, [])
            held._asked_of[name] = [*pairs, (sender, read_asking(asking, nodes, tasks))]
        if written["question"] is not None:
            held._question = read_asking(written["question"], nodes, tasks)
        return held

    def list_differences(self, other: Standing) -> set[Key]:
        """What one would find here and there, in what came of the same after different messages."""
        keys = self.asked.list_differences(other.asked)
        keys |= set(list_differing("latest", self._latest, other._latest))
        keys |= set(list_differing("questions", self._questions, other._questions))
        keys |= {
            ("asked_of", name)
            for name in self._asked_of.keys() | other._asked_of.keys()
            if self._list_asked_of(name) != other._list_asked_of(name)
        }
        waiting, others = ({(): held._question} if held._question is not None else {} for held in (self, other))
        return keys | set(list_differing("question", waiting, others))

    def _list_asked_of(self, name: str) -> list[Any]:
        return [(sender, *asking.names) for sender, asking in self._asked_of.get(name, ())]

    @staticmethod
    def list_named(written: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The ids of each message and task that something written names."""
        yield from Asked.list_named(written["asked"])
        for kind in ("latest", "questions", "asked_of"):
            yield from ((row[-2], row[-1]) for row in written[kind])
        if written["question"] is not None:
            yield written["question"][0], written["question"][1]


def _flatten(asked_of: Iterable[tuple[str, list[tuple[str, Asking]]]]) -> list[tuple[tuple[str, str], Asking]]:
    return [((name, sender), asking) for name, pairs in asked_of for sender, asking in pairs]
