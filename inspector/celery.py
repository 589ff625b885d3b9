"""The Celery application: a doorbell for the job rows in PostgreSQL."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any, Final

from celery import Celery, bootsteps
from celery.beat import EmbeddedService
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

logger = logging.getLogger(__name__)

# What stands in a queue and is no message must not end the worker.
TRANSPORT_ALIASES |= {
    "filesystem": "inspector.intake.bells:Transport",
    "redis": "inspector.intake.redis_bells:Transport",
    "rediss": "inspector.intake.redis_bells:Transport",
}

app = Celery("inspector")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["inspector"])


class BeatKeeper(bootsteps.StartStopStep):
    """Starts the worker's own beat again when that process dies: Celery starts it once, and sweeps never after that.

    Where beat has a process of its own (`celery beat`), whoever started that looks after it.
    """

    requires = ("celery.worker.components:Beat",)
    LOOK_SECONDS: Final = 2.0

    def __init__(self, worker: Any, beat: bool = False, **names: Any) -> None:
        super().__init__(worker, **names)
        self.enabled = bool(beat)
        self._is_over = threading.Event()

    def start(self, parent: Any) -> None:
        """Look after it from now on."""
        threading.Thread(target=self._keep, args=(parent,), name="beat keeper", daemon=True).start()

    def stop(self, parent: Any) -> None:
        """The worker ends, and its beat with it."""
        self._is_over.set()

    def terminate(self, parent: Any) -> None:
        """The same in a hurry."""
        self._is_over.set()

    def _keep(self, worker: Any) -> None:
        step = worker.blueprint["celery.worker.components.Beat"]
        while not self._is_over.wait(self.LOOK_SECONDS):
            if worker.beat.is_alive():
                continue
            logger.error("the beat is gone; another one is started")
            worker.beat = step.obj = EmbeddedService(
                worker.app, schedule_filename=worker.schedule_filename, scheduler_cls=worker.scheduler
            )
            worker.beat.start()


app.steps["worker"].add(BeatKeeper)
