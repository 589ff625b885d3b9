"""The Celery tasks. What is to be done stands in the job rows; a task only has somebody look at them."""

from __future__ import annotations

from collections.abc import Callable

from celery import shared_task
from django.db import close_old_connections

from inspector import pipeline
from inspector.intake import jobs


def _in_session(step: Callable[[], object]) -> None:
    close_old_connections()
    try:
        step()
    finally:
        close_old_connections()


@shared_task(name="inspector.work", ignore_result=True)
def work() -> None:
    """Work off what is due, for two seconds, so that a worker can stop; wake another if more is left."""
    _in_session(lambda: pipeline.run_due(seconds=pipeline.LOOK_SECONDS))
    if jobs.has_due():
        work.delay()


@shared_task(name="inspector.sweep", ignore_result=True)
def sweep() -> None:
    """Find the work that nobody was woken for: after a crash, a lost queue, a pause that is over."""
    _in_session(pipeline.sweep)


@shared_task(name="inspector.tidy", ignore_result=True)
def tidy() -> None:
    """Discard what is kept for hours or days only."""
    _in_session(pipeline.tidy)
