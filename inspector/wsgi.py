"""The WSGI entry: pages and API."""

import os

from django.core.wsgi import get_wsgi_application

from .memory import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

application = get_wsgi_application()

# While a collection goes through everything there is, somebody's page waits for it.
collect_seldom()
