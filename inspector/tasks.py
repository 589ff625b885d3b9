"""The Celery tasks: two doorbells. What is to be done stands in the job rows."""

from celery import shared_task

from inspector import pipeline
from inspector.intake import jobs
from inspector.intake.staging import discard_expired


@shared_task(name="inspector.work", ignore_result=True)
def work() -> None:
    """Work off what is due, for a slice of time; ring again if more is left."""
    pipeline.run_due()
    if jobs.has_due():
        work.delay()


@shared_task(name="inspector.sweep", ignore_result=True)
def sweep() -> None:
    """Find the work that no doorbell was heard for: after a crash, a lost queue, a pause that is over."""
    discard_expired()
    pipeline.run_due()
