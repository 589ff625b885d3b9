"""What a reader may see of sealed messages: the opened text for owners and auditors, for others that there is some."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inspector.accounts.models import Membership
from inspector.opening.reveals import Opening, disclose, find_opened_ids, find_openings_of
from inspector.threads.models import Message
from inspector.threads.selectors import TreeRow


@dataclass(frozen=True, slots=True)
class Disclosed:
    """What was opened of the messages of a page, and which of them are open to others than this reader."""

    openings: Mapping[uuid.UUID, Opening] = field(default_factory=dict)
    withheld: frozenset[uuid.UUID] = frozenset()

    def name_keys(self, message: Message) -> str:
        """The labels of the keys that opened a message; empty where none is shown to have."""
        opening = self.openings.get(message.pk)
        return ", ".join(opening.labels) if opening else ""

    def lay_over(self, row: TreeRow) -> TreeRow:
        """A row with what was opened in the place of what was sealed."""
        opening = self.openings.get(row.message.pk) if row.message else None
        return row._replace(body=opening.lay_over(row.body)) if opening else row


NOTHING_DISCLOSED = Disclosed()


def open_for(membership: Membership, messages: Sequence[Message], *, door: str) -> Disclosed:
    """What this reader may see of these messages; that an owner or auditor is shown something is noted first.

    Args:
        membership: who reads.
        messages: those of the page.
        door: of `KeyEvent.Door`.
    """
    if not membership.is_auditor:
        return Disclosed(withheld=frozenset(find_opened_ids(messages=messages)))
    openings = find_openings_of(messages=messages)
    disclose(openings, door=door, by=membership.user)
    return Disclosed(openings=openings)
