"""The HTTP API as a client sees it: what the samples come in by, and what the result is read through."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from .errors import EmbeddedError

TIMEOUT_S = 120.0


class DoorError(EmbeddedError):
    """The API answered otherwise than it promises."""


@dataclass(frozen=True, kw_only=True)
class Door:
    """The API of one server with one key. The connection is direct: no proxy of the environment is asked."""

    host: str
    port: int
    token: str

    def post_log(self, body: bytes, *, content_type: str, idempotency_key: str) -> dict[str, Any]:
        """Send a log and answer its receipt."""
        headers = {"Content-Type": content_type, "Idempotency-Key": idempotency_key}
        return self._ask("POST", "/api/v1/messages", body, headers)

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """Read one resource."""
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def list_all(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """Read a list to its end."""
        page = self.get(path, limit=200, **query)
        yield from page["results"]
        while page["next"]:
            page = self.get(path, limit=200, cursor=page["next"], **query)
            yield from page["results"]

    def is_open(self) -> bool:
        """Whether the server answers at all."""
        try:
            return self._send("GET", "/api/v1/limits", None, {})[0] < http.client.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False

    def takes_messages(self) -> bool:
        """Whether the processes that take bodies in answer: here with what is wrong with an empty one."""
        try:
            return self._send("POST", "/api/v1/messages", b"", {})[0] < http.client.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        status, answer = self._send(method, path, body, headers or {})
        if status >= http.client.BAD_REQUEST:
            raise DoorError(f"{method} {path} was answered with {status}: {answer[:500].decode(errors='replace')}")
        read = json.loads(answer)
        if not isinstance(read, dict):
            raise DoorError(f"{method} {path} was answered with something else than an object")
        return read

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **headers})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
