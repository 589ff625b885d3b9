"""What the rules found, what auditors said of it, and what they decided, bound to what was seen."""

from __future__ import annotations

from .findings import Alert as Alert
from .findings import Examination as Examination
from .findings import Finding as Finding
from .findings import FindingAct as FindingAct
from .findings import RuleChange as RuleChange
from .findings import Suppression as Suppression
from .findings import Webhook as Webhook
from .reviews import AuditSample as AuditSample
from .reviews import Binding as Binding
from .reviews import Comment as Comment
from .reviews import CommentTurn as CommentTurn
from .reviews import Review as Review
from .reviews import ReviewItem as ReviewItem
from .reviews import ReviewQueue as ReviewQueue
from .reviews import Rubric as Rubric
from .reviews import SampledConversation as SampledConversation
