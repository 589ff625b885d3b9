"""The WSGI entries: pages and API; and the same behind the front, where what it says of a request is true and it alone
says it."""

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from .bounds import end_work_of_the_gone
from .upkeep import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")

application = get_wsgi_application()
end_work_of_the_gone()

# Before the process takes a request: else the first that comes to it waits until all pages are loaded.
import_module(settings.ROOT_URLCONF)

# While a collection goes through everything there is, somebody's page waits for it.
collect_seldom()

from .api.bodies import BODY  # noqa: E402  # it needs Django, which is set up now


def behind_front(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The application of the processes behind the front."""
    environ["REMOTE_ADDR"] = environ.pop("HTTP_X_FRONT_ADDRESS", "")
    environ[BODY] = environ.pop("HTTP_X_FRONT_BODY", "")
    answer: Iterable[bytes] = application(environ, start_response)
    return answer
