"""Writes of audit that other apps call: reviews in queues and directly, their leases and verdicts."""

from .reviews.leases import claim as claim
from .reviews.leases import claim_next as claim_next
from .reviews.leases import release as release
from .reviews.leases import renew as renew
from .reviews.queues import change_rubric as change_rubric
from .reviews.queues import close_queue as close_queue
from .reviews.queues import create_queue as create_queue
from .reviews.queues import fill_from_source as fill_from_source
from .reviews.queues import fill_queue as fill_queue
from .reviews.queues import remove_item as remove_item
from .reviews.verdicts import give_verdict as give_verdict
from .reviews.verdicts import judge_item as judge_item
from .reviews.verdicts import review_again as review_again
from .reviews.verdicts import withdraw_verdict as withdraw_verdict
