"""Writes of audit that other apps call: reviews in queues and directly, their leases and verdicts."""

from __future__ import annotations

from .filling import fill_from_source as fill_from_source
from .filling import fill_queue as fill_queue
from .leases import claim as claim
from .leases import claim_next as claim_next
from .leases import release as release
from .leases import renew as renew
from .queues import change_rubric as change_rubric
from .queues import close_queue as close_queue
from .queues import create_queue as create_queue
from .queues import remove_item as remove_item
from .verdicts import give_verdict as give_verdict
from .verdicts import judge_item as judge_item
from .verdicts import review_again as review_again
from .verdicts import withdraw_verdict as withdraw_verdict
