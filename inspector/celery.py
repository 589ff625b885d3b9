"""The Celery application: it wakes workers for the job rows in PostgreSQL, and runs what is periodic."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

app = Celery("inspector")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["inspector"], related_name="worker")
