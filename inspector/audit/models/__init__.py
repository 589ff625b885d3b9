"""What the rules found, what auditors said of it, and what they decided, bound to what was seen."""

from __future__ import annotations

from .alerts import Alert as Alert
from .alerts import Webhook as Webhook
from .comments import Comment as Comment
from .comments import CommentTurn as CommentTurn
from .findings import Examination as Examination
from .findings import Finding as Finding
from .findings import FindingAct as FindingAct
from .findings import RuleChange as RuleChange
from .findings import Suppression as Suppression
from .reviews import Binding as Binding
from .reviews import Review as Review
from .reviews import ReviewItem as ReviewItem
from .reviews import ReviewQueue as ReviewQueue
from .reviews import Rubric as Rubric
from .samples import AuditSample as AuditSample
from .samples import SampledConversation as SampledConversation
