"""The WSGI entry: pages and API."""

import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from .effort import end_work_of_the_gone
from .upkeep import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

application = get_wsgi_application()
end_work_of_the_gone()

# Before the process takes a request: else the first that comes to it waits until all pages are loaded.
import_module(settings.ROOT_URLCONF)

# While a collection goes through everything there is, somebody's page waits for it.
collect_seldom()
