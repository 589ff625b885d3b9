"""The WSGI entry: pages and API."""

import os

from django.core.wsgi import get_wsgi_application

from .memory import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

application = get_wsgi_application()

# A collection that goes through everything takes a tenth of a second, and somebody's page waits for it.
collect_seldom()
