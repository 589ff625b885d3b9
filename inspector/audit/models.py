"""What the rules found, what auditors said of it, and what they decided, bound to what was seen."""

from __future__ import annotations

from .alerts.tables import Alert as Alert
from .alerts.tables import Webhook as Webhook
from .comments.tables import Comment as Comment
from .comments.tables import CommentTurn as CommentTurn
from .findings.tables import Examination as Examination
from .findings.tables import Finding as Finding
from .findings.tables import FindingAct as FindingAct
from .findings.tables import RuleChange as RuleChange
from .findings.tables import Suppression as Suppression
from .reviews.tables import Binding as Binding
from .reviews.tables import Review as Review
from .reviews.tables import ReviewItem as ReviewItem
from .reviews.tables import ReviewQueue as ReviewQueue
from .reviews.tables import Rubric as Rubric
from .samples.tables import AuditSample as AuditSample
from .samples.tables import SampledConversation as SampledConversation
