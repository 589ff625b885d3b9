"""Records that are read again: in another dialect than they stand in, or because a decoder has changed."""

from __future__ import annotations

from collections.abc import Sequence

from ..models import Conversation
from ..placing.nodes import StoredNode, find_misread
from ..telling.wordings import History
from .alone import Fence
from .rereading import read_again


def read_misread(
    conversation: Conversation, nodes: Sequence[StoredNode], spoken: dict[str, None], history: History, fence: Fence
) -> bool:
    """Read again what is to be read otherwise; whether there was anything. Its messages have to be loaded again then.

    Args:
        conversation: theirs.
        nodes: messages of it, in order key.
        spoken: the dialects that were spoken before them.
        history: of the conversation's wordings.
        fence: called before each; raises when another worker has taken over.
    """
    misread = list(find_misread(nodes, spoken))
    for record_id, dialect, guess in misread:
        fence()
        read_again(history, record_id, dialect, guess, fence)
    return bool(misread)
