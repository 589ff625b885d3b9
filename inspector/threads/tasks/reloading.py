"""Tasks as they are stored, with all that is part of them and with their messages: what playing them again takes.

Whatever there is of them, it is found by a few statements, and there is a bound on how much may be found.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from django.db.models import Q

from ..models import Task
from ..placing.nodes import StoredNode, load_placed
from ..uncertainty import UncertainError
from .found import key_of_id, make_task_id
from .ledger import read_steps

# So many tasks and messages are gone through rather than all of their conversation.
MOST_TASKS: Final = 200
MOST_MESSAGES: Final = 2000

# UNION drops what was found before, so that tasks which are part of each other come to an end too.
_PARTS: Final = """
    WITH RECURSIVE part (id, key) AS (
        SELECT id, key FROM threads_task
        WHERE conversation_id = %(conversation)s AND (key = ANY(%(keys)s) OR within_key = ANY(%(keys)s))
        UNION
        SELECT task.id, task.key FROM threads_task task
        JOIN part ON task.conversation_id = %(conversation)s AND task.within_key = part.key
    )
    SELECT * FROM threads_task WHERE id IN (SELECT id FROM part LIMIT %(most)s)
"""


class Span(NamedTuple):
    """From which place to which, both included, a window reaches in the timeline of its conversation."""

    first: bytes
    last: bytes

    def holds(self, place: bytes) -> bool:
        """Whether what stands at a place stands in the window."""
        return self.first <= place <= self.last


@dataclass(slots=True)
class Reloaded:
    """Tasks of a conversation as they are stored, by key, and their messages outside of a window.

    `keys` are those that are played again, stored or not; `outside` are their messages in the order of the timeline,
    `parents` what these answer, by id, as far as it is none of them; `around` are tasks that they may be part
    of, by id.
    """

    conversation_id: uuid.UUID
    span: Span
    keys: set[bytes] = field(default_factory=set)
    rows: dict[bytes, Task] = field(default_factory=dict)
    outside: list[StoredNode] = field(default_factory=list)
    parents: dict[uuid.UUID, StoredNode] = field(default_factory=dict)
    around: dict[uuid.UUID, Task] = field(default_factory=dict)

    def load_parts(self, keys: Iterable[bytes]) -> None:
        """Find the tasks with these keys and all that is part of them.

        Raises:
            UncertainError: where these are more, or more messages belong to them, than shall be gone through.
        """
        self.keys |= set(keys)
        if len(self.keys) > MOST_TASKS:
            raise UncertainError
        wanted = {"conversation": self.conversation_id, "keys": list(self.keys), "most": MOST_TASKS + 1}
        self.rows = {bytes(row.key): row for row in Task.objects.raw(_PARTS, wanted)}
        self.keys |= self.rows.keys()
        if len(self.keys) > MOST_TASKS or sum(row.message_count for row in self.rows.values()) > MOST_MESSAGES:
            raise UncertainError

    def load_messages(self, window: Mapping[uuid.UUID, StoredNode]) -> None:
        """Find the messages of these tasks outside of the window, what they answer, and what tasks stand around.

        Args:
            window: the messages of the window as they are stored, by id.

        Raises:
            UncertainError: where these are not all of them.
        """
        rows = {row.pk: row for row in self.rows.values()}
        held = sum(node.task_id in rows for node in window.values())
        missing = sum(row.message_count for row in rows.values()) - held
        if missing:
            beyond = Q(place__lt=self.span.first) | Q(place__gt=self.span.last)
            self.outside = load_placed(self.conversation_id, Q(task__in=rows.keys()) & beyond)
            self.outside.sort(key=lambda node: node.place)
        if len(self.outside) != missing:
            raise UncertainError
        known = {node.id for node in self.outside} | window.keys()
        wanted = {node.parent for node in self.outside if node.parent is not None} - known
        if wanted:
            # A parent in another conversation is not found, and says nothing here.
            self.parents = {node.id: node for node in load_placed(self.conversation_id, Q(pk__in=wanted))}

    def load_around(self, nodes: Iterable[StoredNode]) -> None:
        """Find the tasks that those which are played again may be part of; `nodes` are the messages of the window."""
        keys = {bytes(row.within_key) for row in self.rows.values() if row.within_key is not None}
        for node in (*self.outside, *nodes):
            keys |= {key_of_id(node.run, node.work.within)} if node.work.within else set()
        keys |= {node.above.of_task.key for node in nodes if node.above is not None and node.above.of_task is not None}
        ids = {make_task_id(self.conversation_id, key) for key in keys - self.keys}
        requests = {row.request for row in self.rows.values()}
        answered = {node.parent for node in self.outside if node.id in requests and node.parent is not None}
        ids |= {task_id for pk in answered & self.parents.keys() if (task_id := self.parents[pk].task_id) is not None}
        ids -= {make_task_id(self.conversation_id, key) for key in self.keys} | self.around.keys()
        if ids:
            self.around |= Task.objects.filter(conversation_id=self.conversation_id).in_bulk(list(ids))

    def find_around(self, key: bytes) -> Task | None:
        """A task that none of those which are played again is; None where no message belongs to it."""
        return self.around.get(make_task_id(self.conversation_id, key))

    def read_links(self) -> dict[uuid.UUID, str]:
        """How messages belong to their tasks where these say so, by the ids of the messages."""
        return {step.message_id: step.link for row in self.rows.values() for step in read_steps(row.steps)}
