"""The ASGI entry: the event stream of the live pages, served behind a proxy beside the pages themselves."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")
django.setup()

from inspector.pages.live import EventStream  # noqa: E402  # it needs the settings

application = EventStream()
