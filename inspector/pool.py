"""The WSGI entry of the processes behind the front: what the front says of a request is true, and it alone says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .wsgi import application as product

from inspector.api.bodies import BODY  # isort: skip  # it needs Django, which the line before has set up


def _answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    environ["REMOTE_ADDR"] = environ.pop("HTTP_X_FRONT_ADDRESS", "")
    environ[BODY] = environ.pop("HTTP_X_FRONT_BODY", "")
    answer: Iterable[bytes] = product(environ, start_response)
    return answer


application = _answer
