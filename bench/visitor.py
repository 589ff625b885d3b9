"""A person with a browser, as far as the server can tell: signs in by a link, keeps cookies, sends forms with files."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from http.cookies import SimpleCookie

TIMEOUT_S = 600.0


class VisitorError(Exception):
    """The server answered otherwise than a browser would need."""


class Visitor:
    """One browser session.

    Args:
        host, port: the web server.
        link: the path that signs in once.
    """

    def __init__(self, *, host: str, port: int, link: str) -> None:
        self._address = (host, port)
        self._cookies: dict[str, str] = {}
        self._ask("GET", link)
        status, headers, _ = self._ask("GET", "/")
        # The home page leads to the workspace: /w/<slug>/…
        if status != 302 or not headers["Location"].startswith("/w/"):
            raise VisitorError(f"signing in led nowhere: {status} {headers.get('Location')}")
        self.workspace = "/".join(headers["Location"].split("/")[:3])

    def open(self, path: str) -> bytes:
        """A page of the workspace.

        Raises:
            VisitorError: for anything but 200.
        """
        status, _, body = self._ask("GET", self.workspace + path)
        if status != 200:
            raise VisitorError(f"{path} was answered with {status}: {body[:300]!r}")
        return body

    def upload(self, name: str, pieces: Iterable[bytes], *, size_bytes: int, channel: str) -> tuple[int, bytes]:
        """Send a file as the upload page does, its other fields as they stand there; the status and the answer."""
        path = f"{self.workspace}/upload/"
        form = _Form()
        form.feed(self._ask("GET", path)[2].decode())
        if not form.file_field:
            raise VisitorError("the upload page has no field for a file")
        border = f"----{secrets.token_hex(16)}"
        head = b"".join(
            f'--{border}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
            for field, value in {**dict(form.values), "channel": channel}.items()
        )
        head += (
            f'--{border}\r\nContent-Disposition: form-data; name="{form.file_field}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        tail = f"\r\n--{border}--\r\n".encode()

        def stream() -> Iterator[bytes]:
            yield head
            yield from pieces
            yield tail

        headers = {
            "Content-Type": f"multipart/form-data; boundary={border}",
            "Content-Length": str(len(head) + size_bytes + len(tail)),
            "HX-Request": "true",
            "Referer": f"http://{self._address[0]}:{self._address[1]}{path}",
        }
        status, _, body = self._ask("POST", path, stream(), headers)
        return status, body

    def _ask(
        self, method: str, path: str, body: Iterable[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection(*self._address, timeout=TIMEOUT_S)
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        try:
            connection.request(method, path, body, {"Cookie": cookie, **(headers or {})})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie", []):
            self._cookies.update({name: morsel.value for name, morsel in SimpleCookie(line).items()})
        return response.status, response.headers, answer


class _Form(HTMLParser):
    """The fields of the upload form with the values they have before anybody touches them."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[tuple[str, str]] = []
        self.file_field = ""
        self._is_inside = False
        self._select = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._is_inside = "data-upload" in said
        if not self._is_inside:
            return
        if tag == "select":
            self._select = said.get("name", "")
        elif tag == "option" and self._select and "selected" in said:
            self.values.append((self._select, said.get("value", "")))
        elif tag == "input" and said.get("name"):
            self._take_input(said)

    def _take_input(self, said: dict[str, str]) -> None:
        kind = said.get("type", "text")
        if kind == "file":
            self.file_field = said["name"]
        elif kind not in ("checkbox", "radio", "submit", "button"):
            self.values.append((said["name"], said.get("value", "")))
        elif kind in ("checkbox", "radio") and "checked" in said:
            self.values.append((said["name"], said.get("value", "on")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_inside = False
        elif tag == "select":
            self._select = ""
