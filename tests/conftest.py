"""What every test shares: the static files are listed once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import pytest
from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware


@pytest.fixture(scope="session", autouse=True)
def static_files() -> Iterator[None]:
    """List the static files once a run: each new test client starts the middleware anew, which would list them again.

    That listing took more time than everything else together that most tests of pages do.
    """
    listed: dict[Hashable, dict[str, Any]] = {}
    list_files = WhiteNoiseMiddleware.add_files_from_finders

    def list_once(middleware: WhiteNoiseMiddleware) -> None:
        key = (middleware.static_prefix, middleware.max_age, middleware.charset, *settings.STATICFILES_DIRS)
        if key not in listed:
            list_files(middleware)
            listed[key] = dict(middleware.files)
        middleware.files.update(listed[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", list_once)
        yield
