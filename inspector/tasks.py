"""The Celery tasks and the sweeper: doorbells. What is to be done stands in the job rows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from celery import shared_task
from celery.beat import ScheduleEntry, Scheduler
from django.conf import settings
from django.db import close_old_connections

from inspector import pipeline
from inspector.accounts.services import forget_sign_ins
from inspector.exports.making import drop_expired
from inspector.intake import jobs
from inspector.intake.staging import discard_expired
from inspector.threads.feed import forget_announcements


@shared_task(name="inspector.work", ignore_result=True)
def work() -> None:
    """Work off what is due, for a slice of time; ring again if more is left."""
    close_old_connections()
    try:
        pipeline.run_due()
        if jobs.has_due():
            work.delay()
    finally:
        close_old_connections()


@shared_task(name="inspector.sweep", ignore_result=True)
def sweep() -> bool:
    """Find the work that no doorbell was heard for: after a crash, a lost queue, a pause that is over."""
    return pipeline.sweep()


@shared_task(name="inspector.tidy", ignore_result=True)
def tidy() -> None:
    """Throw away what was kept for hours or days."""
    discard_expired()
    forget_announcements()
    drop_expired()
    forget_sign_ins()


class Sweeper(Scheduler):
    """Celery's beat, which does what is scheduled itself and needs no broker for it: it is there for when that fails.

    Where nobody hears the doorbell, it starts a process that works off what is due. A record that kills its worker
    kills that one, and never the sweeper.
    """

    # Beat asks for it before each entry, and would wait here for a broker that is away.
    producer = None  # type: ignore[assignment]
    _helper: subprocess.Popen[bytes] | None = None

    def apply_async(self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: Any) -> None:
        """Run what is due here and now. What it raises is logged by beat, which goes on."""
        close_old_connections()
        try:
            is_unheard = self.app.tasks[entry.task or ""]()
        finally:
            close_old_connections()
        if is_unheard and (self._helper is None or self._helper.poll() is not None):
            command = [sys.executable, "-m", "django", "work"]
            self._helper = subprocess.Popen(command, cwd=settings.BASE_DIR)  # noqa: S603  # our own command
