"""The ASGI entry: for the live tail's event stream behind a proxy."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

application = get_asgi_application()
