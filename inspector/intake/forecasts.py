"""What taking records in would do: how many are new, here before, or not text. Nothing is stored for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dialects import LogRecord
from inspector.accounts.models import Channel, Workspace

from .identity import BY_TIME, count_equal, draft_record
from .models import Record
from .warnings import Warned, add_warnings, list_warnings


class Forecaster:
    """Counts the records of one file as storing them would, against what the channel holds now.

    Without workspace or channel nothing can be there yet. Records that are twice within the file count as new twice.
    """

    def __init__(self, *, workspace: Workspace | None, channel: Channel | None, received_at: datetime) -> None:
        self._workspace = workspace
        self._channel = channel
        self._received_at = received_at
        self._equal: Counter[bytes] = Counter()
        self.new = self.duplicate = self.quarantined = 0
        self._warnings: dict[str, Any] = {}

    @property
    def received(self) -> int:
        """How many records were counted."""
        return self.new + self.duplicate + self.quarantined

    @property
    def warnings(self) -> Warned:
        """What their sender should be told of them."""
        return list_warnings(self._warnings)

    def take(self, records: Iterable[LogRecord]) -> None:
        """Count the next records of the file."""
        identities, drafts = [], []
        for framed in records:
            if framed.problem is not None:
                self.quarantined += 1
                continue
            draft = draft_record(framed, series=None, start=None, received_at=self._received_at)
            if draft.rule == BY_TIME and draft.likeness:
                draft.identity = count_equal(draft.likeness, self._equal[draft.likeness])
                self._equal[draft.likeness] += 1
            identities.append(draft.identity)
            drafts.append(draft)
        self._warnings = add_warnings(self._warnings, drafts)
        held = self._find(identities)
        self.duplicate += sum(identity in held for identity in identities)
        self.new += sum(identity not in held for identity in identities)

    def _find(self, identities: list[bytes]) -> set[bytes]:
        if self._workspace is None or self._channel is None:
            return set()
        rows = Record.objects.filter(workspace=self._workspace, channel=self._channel, identity__in=identities)
        return {bytes(identity) for identity in rows.values_list("identity", flat=True)}
