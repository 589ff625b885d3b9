"""The tables of threads."""

from .agents import MAX_FRIENDLY_NAME as MAX_FRIENDLY_NAME
from .agents import Agent as Agent
from .agents import AgentTotal as AgentTotal
from .agents import AgentWord as AgentWord
from .agents import Declaration as Declaration
from .agents import Exchange as Exchange
from .agents import PairTotal as PairTotal
from .agents import key_of_name as key_of_name
from .agents import make_agent_id as make_agent_id
from .blocks import Block as Block
from .blocks import Fact as Fact
from .blocks import Read as Read
from .conversations import Conversation as Conversation
from .conversations import Standing as Standing
from .conversations import Trace as Trace
from .conversations import TreeGroup as TreeGroup
from .messages import Announcement as Announcement
from .messages import MaskedWire as MaskedWire
from .messages import Message as Message
from .messages import MessageQuerySet as MessageQuerySet
from .messages import OpenedMessage as OpenedMessage
from .messages import OpeningTrial as OpeningTrial
from .messages import Wording as Wording
from .tasks import Task as Task
