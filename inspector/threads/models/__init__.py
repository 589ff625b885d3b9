"""The tables of threads."""

from .agents import MAX_FRIENDLY_NAME, Agent, AgentTotal, AgentWord, Declaration, Exchange, PairTotal
from .agents import key_of_name as key_of_name
from .agents import make_agent_id as make_agent_id
from .blocks import Block, Fact, Read
from .conversations import Conversation, Standing, Trace, TreeGroup
from .messages import Announcement, MaskedWire, Message, MessageQuerySet, OpenedMessage, OpeningTrial, Wording
from .tasks import Task

__all__ = ["MAX_FRIENDLY_NAME", "Agent", "AgentTotal", "AgentWord", "Declaration", "Exchange", "PairTotal"]
__all__ += ["Block", "Conversation", "Fact", "Read", "Standing", "Task", "Trace", "TreeGroup"]
__all__ += ["Announcement", "MaskedWire", "Message", "MessageQuerySet", "OpenedMessage", "OpeningTrial", "Wording"]
