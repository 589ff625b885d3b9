"""The WSGI entry: pages and API."""

import os

from django.core.wsgi import get_wsgi_application

from .leaving import end_work_of_the_gone
from .memory import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

application = get_wsgi_application()
end_work_of_the_gone()

# While a collection goes through everything there is, somebody's page waits for it.
collect_seldom()
