"""Which task each message of a block belongs to, and what was asked of whom before it.

In this order: its task id (and run) says so; it asks for something, and so is a task itself; it answers, however far
above, a message that belongs to one; it answers what was not received. What no link of the wire says is inferred, and
says by which rule (`states.LINKS`). An answer to what stands later belongs to the task that the other one names or is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from .. import states
from ..dependencies import Key, View
from ..models import Conversation
from ..nodes import Ref, StoredNode
from ..states import TaskState, key_of_id, make_key, make_task_id
from ..tasks import Tasks, take

_ENDS: Final = frozenset({"done", *states.WITHDRAWN})
# So many of what somebody asked for are looked at for what is withdrawn or asked again.
MAX_ASKED: Final = 512


class Asking(NamedTuple):
    """That a task was asked for, by a message, and how often it had ended before: it is over when it ends once more."""

    ref: Ref
    task: uuid.UUID
    ends: int
    receivers: tuple[str, ...] = ()
    act: str = ""
    handles: tuple[str, ...] = ()

    @classmethod
    def read(cls, written: Sequence[Any]) -> Asking:
        """One as it was stored."""
        ref, task, ends, receivers, act, handles = written
        return cls(Ref.read(ref), uuid.UUID(hex=task), ends, tuple(receivers), act, tuple(handles))


def _read_pairs(written: Sequence[Any]) -> list[tuple[str, Asking]]:
    return [(sender, Asking.read(asking)) for sender, asking in written]


def _take_latest(found: Iterable[Asking | None]) -> Asking | None:
    return max((each for each in found if each is not None), key=lambda each: each.ref.find_moment(), default=None)


class Assigner:
    """Assigns the messages of a block, linked, to their tasks, in the order of the timeline."""

    def __init__(self, conversation: Conversation, nodes: Sequence[StoredNode], view: View, tasks: Tasks) -> None:
        self._conversation_id = conversation.pk
        self._nodes = nodes
        self._view = view
        self._tasks = tasks
        # Who asked first for each task that has an id: (run, id on the wire).
        self._requests: dict[tuple[int, str], list[Any]] = {}
        self._spoken: set[str | None] = set()

    def assign(self) -> None:
        """Give each node its task, and how that is inferred where it is; and take it into the course of that."""
        self._find_requests()
        self._expect()
        for node in self._nodes:
            state = self._assign(node)
            # What a task is part of counts from the message on that says so, in whatever block that stands.
            if state is not None:
                take(state, node)
            self._remember(node, state)
        if self._nodes and not self._view.is_only:
            # Nobody may have asked on the way for the one that earlier blocks left.
            is_left = self._view.get(("next-word",), Asking.read) is not None
            if is_left and self._get_question() is None:
                self._view.put(("next-word",), None)

    def _find_requests(self) -> None:
        """For each task id the first to ask for work, else the first to ask for anything, in the whole conversation."""
        firsts: dict[tuple[int, str], tuple[list[Any] | None, list[Any] | None]] = {}
        for node in self._nodes:
            if node.task is None:
                continue
            name = (node.run, node.task)
            work, anything = firsts.get(name, (None, None))
            if node.performative in states.ASKS:
                asks = [node.id.hex, node.sender or "", node.performative, _find_only(node), node.work.mode]
                anything = anything or asks
                if node.performative in states.WORK:
                    work = work or asks
            firsts[name] = (work, anything)
            if node.work.within:
                firsts.setdefault((node.run, node.work.within), (None, None))
        view = self._view
        keys = {name: ("asks", *name) for name in firsts}
        others = view.list_everywhere(list(keys.values()))
        for name, (work, anything) in firsts.items():
            key = keys[name]
            earlier = [each.value for each in others[key] if each.border < view.border]
            later = [each.value for each in others[key] if each.border > view.border]
            is_known = any(each[0] for each in earlier) or (work is None and any(each[1] for each in earlier))
            if (work or anything) and not is_known:
                view.put(key, [work, anything])
            every = [*earlier, [work, anything], *later]
            chosen = [asks for asks, _ in every if asks] or [asks for _, asks in every if asks]
            if chosen:
                self._requests[name] = chosen[0]

    def _find_by_id(self, run: int, native_id: str) -> TaskState:
        key = key_of_id(run, native_id)
        state = self._tasks.make(key, native_id)
        request = self._requests.get((run, native_id))
        if request is not None and (state.request is None or state.request.hex != request[0]):
            name, sender, act, receiver, mode = request
            state.name_request(uuid.UUID(hex=name), sender, act, receiver, mode)
        return state

    def _expect(self) -> None:
        if self._view.is_first:
            return
        keys: dict[Key, None] = {}
        for node in self._nodes:
            if node.task is not None:
                keys["task", make_task_id(self._conversation_id, key_of_id(node.run, node.task)).hex] = None
            above = node.above
            if above is not None and above.position < 0 and above.task_id is not None:
                keys["task", above.task_id.hex] = None
        self._view.expect(keys)

    def _assign(self, node: StoredNode) -> TaskState | None:
        linked = node.basis in states.LINKED
        above = self._find_above(node) if linked else None
        if node.task is not None:
            named = self._find_by_id(node.run, node.task)
            if linked and node.parent_elsewhere and named.request is None:
                named.asked_elsewhere = named.asked_elsewhere or node.parent
            self._place_within(named, node, above)
            state: TaskState | None = named
        elif node.performative in states.ASKS:
            state = self._begin(node, above)
        else:
            state = self._find(node, above, is_linked=linked)
        if state is not None:
            state.is_touched = True
        node.of_task = state
        node.task_id = state.id if state is not None else None
        return state

    def _find_above(self, node: StoredNode) -> TaskState | None:
        above = node.above
        if above is None:
            return None
        if above.position < 0:
            self._view.note(("above", above.id.hex))
            return self._tasks.find(above.task_id) if above.task_id is not None else None
        if above.position < node.position:
            return above.of_task
        # Of one that stands later it is what it names, or what it asks for.
        if above.task is not None:
            return self._find_by_id(above.run, above.task)
        return self._make_request(above) if above.performative in states.ASKS else None

    def _make_request(self, node: StoredNode) -> TaskState:
        state = self._tasks.make(make_key("request", node.id.hex))
        if state.request is None:
            name = (node.id, node.sender or "", node.performative or "", _find_only(node), node.work.mode)
            state.name_request(*name)
        return state

    def _place_within(self, state: TaskState, node: StoredNode, above: TaskState | None) -> None:
        """What a task with an id is part of: the one that is named, else that in the course of which it is asked."""
        if state.part_of is not None:
            return
        within = None
        if node.work.within:
            within = self._find_by_id(node.run, node.work.within)
        elif state.request == node.id and above is not None and not above.is_asked_by(node.sender):
            within = above
        elif (
            (state.request is None and above is not None and above.request is not None and not above.native_id)
            and not (node.basis == states.TURN or node.performative in states.ASKS or above.is_asked_by(node.sender))
        ):  # fmt: skip
            # Whoever answers a request without an id made this task: its end is the end of that.
            state.requester, state.wish, state.mode = above.requester, above.wish, "transfer"
            within = above
        if within is not None and within is not state:
            self._set_within(state, within)

    def _set_within(self, state: TaskState, within: TaskState) -> None:
        state.part_of = within.key
        # It goes on within the other unless that leads back to itself.
        at: TaskState | None = within
        while at is not None:
            if at is state:
                return
            at = at.within
        state.within = within
        within.is_touched = True

    def _begin(self, node: StoredNode, above: TaskState | None) -> TaskState:
        """A request without a task id: a task of its own, unless it asks again for what has failed."""
        if above is not None and above.is_asked_by(node.sender):
            parent = node.above
            if parent is not None and (parent.performative in states.RETRIED or above.has_failed):
                if node.basis == states.TURN:
                    node.link = states.TURN
                return above
            above = None
        if above is None and node.work.is_retry and not node.work.is_public:
            repeated = self._find_repeated(node)
            if repeated is not None:
                if not node.handles:
                    node.link = states.RETRY
                return repeated
        state = self._make_request(node)
        if above is not None and state.part_of is None:
            self._set_within(state, above)
        return state

    def _find(self, node: StoredNode, above: TaskState | None, *, is_linked: bool) -> TaskState | None:
        if above is not None:
            if node.basis != states.TURN:
                return above
            is_answer = above.is_asked_by(node.sender) and node.performative in states.ANSWERS
            better = self._find_latest(node) if is_answer else None
            node.link = states.TURN if better is None else states.LATEST
            return above if better is None else better
        # A span lies within another, and is no answer to it.
        is_answer = node.performative in states.ENDERS and (node.dialect, node.basis) != states.LIES_WITHIN
        if is_linked and node.above is None and node.cited is not None and is_answer:
            state = self._tasks.make(make_key("cited", node.cited.hex()))
            if node.ghost is None:
                state.asked_elsewhere = node.parent
            return state
        if is_linked or node.performative is None:
            return None
        found = None
        if node.performative in states.WITHDRAWN:
            found, link = self._find_withdrawn(node), states.TAKEN_BACK
        elif node.performative in states.ANSWERS:
            found, link = self._find_latest(node), states.LATEST
        elif node.performative in states.STATES:
            found, link = self._find_question(node), states.NEXT_WORD
            if found is None and (node.meaning or node.work.has_progress or node.work.has_result):
                found, link = self._find_latest(node), states.LATEST
        if found is not None:
            node.link = link
        return found

    def _find_latest(self, node: StoredNode) -> TaskState | None:
        """The latest thing that one of the receivers asked of the sender, or anyone else where it names no receiver."""
        if not node.sender:
            return None
        view = self._view
        if node.receivers:
            latest = _take_latest(
                view.get(("asked-of-by", name, asked), Asking.read)
                for name in node.receivers
                for asked in (node.sender, "")
            )
        else:
            latest = _take_latest(
                asking
                for name in (node.sender, "")
                for sender, asking in view.get(("asked-of", name), _read_pairs) or ()
                if sender != node.sender
            )
        return self._tasks.find(latest.task) if latest is not None else None

    def _find_question(self, node: StoredNode) -> TaskState | None:
        """The question that waits for the sender's next word; of nobody by name where the wire names no receivers."""
        if not node.sender:
            return None
        for name in node.receivers:
            for asked in (node.sender, ""):
                question = self._view.get(("question-of", name, asked), Asking.read)
                if question is not None and not self._has_answered(question, name, asked):
                    return self._tasks.find(question.task)
        if node.receivers:
            return None
        question = self._get_question()
        if question is None or not question.ref.sender or question.ref.sender == node.sender:
            return None
        return self._tasks.find(question.task) if not question.receivers or node.sender in question.receivers else None

    def _get_question(self) -> Asking | None:
        """The question to nobody by name that waits for the next word of anybody else."""
        key: Key = ("next-word",)
        question: Asking | None = self._view.get(key, Asking.read)
        if key in self._view.own or question is None:
            return question
        return None if any(sender != question.ref.sender for sender in self._spoken) else question

    def _has_answered(self, question: Asking, name: str, asked: str) -> bool:
        """Whether the one asked, or anybody where none was, has said something to who asked since."""
        heard = self._view.get(("heard", name, asked), Ref.read)
        return heard is not None and heard.find_moment() > question.ref.find_moment()

    def _find_withdrawn(self, node: StoredNode) -> TaskState | None:
        """The latest thing its sender asked of a receiver, or of anyone where it names none, that has not ended."""
        act = states.WITHDRAWN[node.performative or ""]
        for asking in self._walk_asked(node.sender or ""):
            is_named = node.receivers and asking.receivers
            if act in ("", asking.act) and not (is_named and set(asking.receivers).isdisjoint(node.receivers)):
                state = self._tasks.find(asking.task)
                if state is not None and not state.has_ended and state.ends == asking.ends:
                    return state
        return None

    def _find_repeated(self, node: StoredNode) -> TaskState | None:
        """What a retry asks again: what bears the same id, or where it has none, the latest of its kind."""
        act = node.performative or ""
        asked = [asking for asking in self._walk_asked(node.sender or "") if asking.act == act]
        if node.handles:
            alike = (each for name in node.handles for each in asked if name.hex() in each.handles)
        else:
            receivers = node.receivers or ("",)
            alike = (each for each in asked if not set(each.receivers or ("",)).isdisjoint(receivers))
        found = next(alike, None)
        return self._tasks.find(found.task) if found is not None else None

    def _walk_asked(self, sender: str) -> Iterable[Asking]:
        entries = (each for held in self._view.walk(("asked-by", sender)) for each in reversed(held))
        return (each if isinstance(each, Asking) else Asking.read(each) for each in islice(entries, MAX_ASKED))

    def _remember(self, node: StoredNode, state: TaskState | None) -> None:
        """Keep what was asked of whom; and a question has had its next word once the one asked says anything."""
        view, sender = self._view, node.sender or ""
        ref = Ref.of(node)
        for name in node.receivers:
            view.own["heard", name, sender] = view.own["heard", name, ""] = ref
        self._spoken.add(node.sender)
        question = view.own.get(("next-word",))
        if question.ref.sender != node.sender if question is not None else len(self._spoken) > 1:
            view.own["next-word",] = None
        if state is None:
            return
        is_own = state.is_asked_by(node.sender)
        self._note_end(node, state, is_own=is_own)
        if node.performative not in states.ASKS or not (state.request == node.id or is_own):
            return
        handles = tuple(name.hex() for name in node.handles)
        asking = Asking(ref, state.id, state.ends, node.receivers, node.performative or "", handles)
        if sender:
            view.own.setdefault(("asked-by", sender), []).append(asking)
        for name in node.receivers or ("",):
            view.own["asked-of-by", sender, name] = asking
            if sender:
                key: Key = ("asked-of", name)
                of_another = [pair for pair in view.get(key, _read_pairs) or () if pair[0] != sender][-1:]
                view.put(key, [*of_another, (sender, asking)])
        if state.request == node.id and node.performative == "query":
            view.own["question-of", sender, node.receivers[0] if len(node.receivers) == 1 else ""] = asking
            view.own["next-word",] = asking

    def _note_end(self, node: StoredNode, task: TaskState, *, is_own: bool) -> None:
        """A message belongs to a task, which it may end, or begin again."""
        act = node.performative or ""
        if act in states.ASKS and is_own:
            # What was answered before it was asked, by a clock that is behind, has not begun again.
            if node.task is not None or task.request != node.id:
                task.go_on()
        elif act in states.RETRIED and not is_own:
            task.fail(is_end=not node.is_retryable)
        elif act in _ENDS or (act in states.STATES and task.act == "query" and not is_own):
            task.end()


def _find_only(node: StoredNode) -> str:
    return node.receivers[0] if len(node.receivers) == 1 else ""
