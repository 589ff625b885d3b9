"""What CLowl's two published state machines would say to a step: advice, since they disagree with one another.

The lifecycle document follows one task, the TypeScript library one conversation. The specification's own flows are
wider than both, so a refusal by either is never a fault of the message. A step is judged only where the work was seen
to begin (to the library a DLGT goes on with work that began elsewhere); after its first refusal a machine no longer
mirrors the work, and says nothing more of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._context import Context
from .._record import Entry, Message

Machine = Mapping[str, Mapping[str, str]]

_OPENERS = frozenset({"REQ", "DLGT", "QRY"})

# state-machine document: state -> act -> next state. A task enters when it is sent. Waiting and running out of time
# are no acts, so no message leads there; an act that is not named anywhere here is no event of a task.
DOCUMENT: Machine = {
    "DISPATCHED": {"ACK": "ACKNOWLEDGED", "CNCL": "CANCELLED"},
    "ACKNOWLEDGED": {"PROG": "RUNNING", "CNCL": "CANCELLED"},
    "RUNNING": {"PROG": "RUNNING", "DONE": "COMPLETED", "ERR": "FAILED", "CNCL": "CANCELLED"},
    "COMPLETED": {},
    "FAILED": {},
    "CANCELLED": {},
}
_BEGINNERS = _OPENERS | {"INF", "CAPS"}
_ENDS = {"DONE": "COMPLETED", "ERR": "FAILED", "CNCL": "CANCELLED"}
# The library's table, seen from the one who asks. `ERR` that may be retried is an event of its own; QRY is none.
LIBRARY: Machine = {
    "IDLE": {"REQ": "REQUESTED", "INF": "IDLE", "CAPS": "IDLE"},
    "REQUESTED": {"ACK": "ACKNOWLEDGED", "ERR, to be retried": "RETRYING", **_ENDS},
    "ACKNOWLEDGED": {"PROG": "IN_PROGRESS", "DLGT": "DELEGATED", "ERR, to be retried": "RETRYING", **_ENDS},
    "IN_PROGRESS": {"PROG": "IN_PROGRESS", "ERR, to be retried": "RETRYING", **_ENDS},
    "DELEGATED": {"ACK": "DELEGATED", "PROG": "DELEGATED", "ERR, to be retried": "RETRYING", **_ENDS},
    "RETRYING": {"REQ": "REQUESTED", "CNCL": "CANCELLED"},
    "COMPLETED": {},
    "FAILED": {},
    "CANCELLED": {},
}
_DOCUMENT_EVENTS = frozenset(act for acts in DOCUMENT.values() for act in acts)
_LIBRARY_EVENTS = frozenset(act for acts in LIBRARY.values() for act in acts)
# In place of a state: the machine has refused a step, and is asked no more.
_LEFT = ""

_CONVERSATION, _TASK, _LATEST, _CANCEL = "clowl-conversation", "clowl-task", "clowl-latest-task", "clowl-cancel"


class Lifecycle:
    """The steps of one record against what its conversation has seen; `entries` are the states that it leads to."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._has_begun = context.knows(_CONVERSATION) or context.knows(_TASK)
        self._own: dict[tuple[str, str, str | None], Entry] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The states after the steps taken here."""
        return tuple(self._own.values())

    def answers_cancel(self, message: Message) -> bool:
        """Whether it acknowledges a cancellation: it names one, or names nothing and its task is cancelled."""
        if message.native_act != "ACK":
            return False
        if message.parent_id is not None:
            return self._find(_CANCEL, message.parent_id) is not None
        task = self._find_task(message) if self._own or self._has_begun else None
        return task is not None and self._find(_TASK, task) == "CANCELLED"

    def follow(self, message: Message) -> str | None:
        """Take one step; what the machines that would refuse it say, in words, or None."""
        act = message.native_act
        is_seen = self._has_begun or self._own
        if act == "CNCL" and message.message_id is not None:
            self._keep(_CANCEL, message.message_id, act)
        # Most messages come alone or in the middle: where nothing was seen to begin, nothing is looked up.
        if act is None or not (is_seen or act in _BEGINNERS):
            return None
        told = (*self._follow_conversation(message, act), *self._follow_task(message, act))
        if not told:
            return None
        return f"{' and '.join(told)}; this is advice, for CLowl's two published state machines disagree"

    def _follow_conversation(self, message: Message, act: str) -> Sequence[str]:
        conversation, failure = message.conversation_id, message.error
        event = "ERR, to be retried" if act == "ERR" and failure is not None and failure.retryable else act
        if conversation is None or event not in _LIBRARY_EVENTS:
            return ()
        state = self._find(_CONVERSATION, conversation)
        if state is None and message.parent_id is None and act in LIBRARY["IDLE"]:
            state = "IDLE"
        if not state:
            return ()
        following = LIBRARY[state].get(event, _LEFT)
        self._keep(_CONVERSATION, conversation, following)
        return () if following else (f"the TypeScript library takes no {event} in a conversation in state {state}",)

    def _follow_task(self, message: Message, act: str) -> Sequence[str]:
        if act in _OPENERS:
            self._open_task(message)
            return ()
        task = self._find_task(message) if act in _DOCUMENT_EVENTS else None
        state = self._find(_TASK, task) if task is not None else None
        if task is None or not state:
            return ()
        following = DOCUMENT[state].get(act, _LEFT)
        self._keep(_TASK, task, following)
        return () if following else (f"the lifecycle document takes no {act} for a task in state {state}",)

    def _open_task(self, message: Message) -> None:
        """A task is known by its own id, else by the message that opened it; and as the latest of the two parties."""
        if message.sender is None or len(message.receivers) != 1 or message.broadcast:
            return
        (receiver,) = message.receivers
        task = message.task_id or message.message_id or f"{message.sender} {receiver}"
        self._keep(_TASK, task, "DISPATCHED")
        self._keep(_LATEST, receiver, task, speaker=message.sender)

    def _find_task(self, message: Message) -> str | None:
        """The task by its id, by the message answered, else the latest between the two: told of by either party."""
        for name in (message.task_id, message.parent_id):
            if name is not None and self._find(_TASK, name) is not None:
                return name
        if message.sender is None or len(message.receivers) != 1:
            return None
        (receiver,) = message.receivers
        if message.native_act == "CNCL":
            return self._find(_LATEST, receiver, speaker=message.sender)
        return self._find(_LATEST, message.sender, speaker=receiver)

    def _find(self, kind: str, name: str, speaker: str | None = None) -> str | None:
        entry = self._own.get((kind, name, speaker))
        # Nothing else was kept before the first conversation or task, but that something is cancelled.
        if entry is None and (self._has_begun or kind is _CANCEL):
            entry = self._context.find(kind, name, speaker=speaker)
        return None if entry is None else entry.value

    def _keep(self, kind: str, name: str, value: str, speaker: str | None = None) -> None:
        entry = Entry.trust({"kind": kind, "name": name, "value": value, "speaker": speaker})
        self._own[kind, name, speaker] = entry
