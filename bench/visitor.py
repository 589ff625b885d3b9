"""A person with a browser, as far as the server can tell: signs in by a link, keeps cookies, sends forms with files."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlencode

TIMEOUT_S = 600.0


class VisitorError(Exception):
    """The server answered otherwise than a browser would need."""


class Visitor:
    """One browser session.

    Args:
        host, port: the web server.
        link: the path that signs in once, with its code.
    """

    def __init__(self, *, host: str, port: int, link: str) -> None:
        self._address = (host, port)
        self._cookies: dict[str, str] = {}
        address, _, code = link.partition("#")
        form, *_ = read_forms(self._ask("GET", address)[2])
        status, answer = self.send(form, code=code, confirm="")
        if status != 302:
            raise VisitorError(f"the link does not sign in: {status} {answer[-2000:]!r}")
        status, headers, _ = self._ask("GET", "/")
        # The home page leads to the workspace: /w/<slug>/…
        if status != 302 or not headers["Location"].startswith("/w/"):
            raise VisitorError(f"signing in led nowhere: {status} {headers.get('Location')}")
        self.workspace = "/".join(headers["Location"].split("/")[:3])

    def go_to(self, host: str, port: int) -> None:
        """Go on at another server of the same installation, with the same cookies: as behind a proxy."""
        self._address = (host, port)

    def open(self, path: str) -> bytes:
        """A page of the workspace.

        Raises:
            VisitorError: for anything but 200.
        """
        status, _, body = self._ask("GET", self.workspace + path)
        if status != 200:
            raise VisitorError(f"{path} was answered with {status}: {body[:300]!r}")
        return body

    def stage(self, name: str, pieces: Iterable[bytes], *, size_bytes: int, channel: str) -> tuple[int, bytes]:
        """Send a file as the upload page does, its other fields as they stand there.

        Returns:
            the status and the answer: with 201 the cards of what waits now to be loaded, one form for each file.
        """
        path = f"{self.workspace}/upload/"
        page = next((form for form in read_forms(self._ask("GET", path)[2]) if form.file_field), None)
        if page is None:
            raise VisitorError("the upload page has no field for a file")
        border = f"----{secrets.token_hex(16)}"
        head = b"".join(
            f'--{border}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
            for field, value in {**dict(page.values), "channel": channel}.items()
        )
        head += (
            f'--{border}\r\nContent-Disposition: form-data; name="{page.file_field}"; filename="{name}"\r\n'
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
            "Referer": self._refer(path),
        }
        status, _, body = self._ask("POST", path, stream(), headers)
        return status, body

    def load(self, card: Form) -> tuple[int, bytes]:
        """Press a card's button that takes what waits into the log; 302 says that it is there, also from before."""
        status, answer = self.send(card, action="load")
        if status == 302 and "/deliveries/" not in answer.decode():
            raise VisitorError(f"loading led elsewhere: {answer!r}")
        return status, answer

    def send(self, form: Form, /, **pressed: str) -> tuple[int, bytes]:
        """Send a form as it stands, by the button that was pressed; the status, and the answer or where it leads."""
        body = urlencode([*form.values, *pressed.items()]).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Referer": self._refer(form.action)}
        headers["Content-Length"] = str(len(body))
        status, told, answer = self._ask("POST", form.action, [body], headers)
        return status, told["Location"].encode() if status == 302 else answer

    def upload(self, name: str, pieces: Iterable[bytes], *, size_bytes: int, channel: str) -> None:
        """Send a file and load it as it stands.

        Raises:
            VisitorError: when it is not taken.
        """
        status, answer = self.stage(name, pieces, size_bytes=size_bytes, channel=channel)
        for card in read_forms(answer) if status == 201 else []:
            status, answer = self.load(card)
        if status != 302:
            raise VisitorError(f"the upload was answered with {status}: {answer[:500]!r}")

    def _refer(self, path: str) -> str:
        return f"http://{self._address[0]}:{self._address[1]}{path}"

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


@dataclass
class Form:
    """A form with the values it has before anybody touches it.

    Attributes:
        action: where it is sent; empty for its own page.
        values: names and values, in order.
        file_field: the name of its field for files, or nothing.
    """

    action: str
    values: list[tuple[str, str]] = field(default_factory=list)
    file_field: str = ""


def read_forms(page: bytes) -> list[Form]:
    """The forms of a page, in order."""
    reader = _FormReader()
    reader.feed(page.decode())
    return reader.forms


class _FormReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._form: Form | None = None
        self._select = ""
        self._is_chosen = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._form = Form(said.get("action", ""))
            self.forms.append(self._form)
        elif self._form is None:
            return
        elif tag == "select":
            self._select, self._is_chosen = said.get("name", ""), False
        elif tag == "option" and self._select:
            self._take_option(self._form, said)
        elif tag == "input" and said.get("name"):
            self._take_input(self._form, said)

    def _take_option(self, form: Form, said: dict[str, str]) -> None:
        """The one that is selected, else the first."""
        if self._is_chosen and "selected" in said:
            form.values.pop()
        if "selected" in said or not self._is_chosen:
            form.values.append((self._select, said.get("value", "")))
            self._is_chosen = True

    @staticmethod
    def _take_input(form: Form, said: dict[str, str]) -> None:
        kind = said.get("type", "text")
        if kind == "file":
            form.file_field = said["name"]
        elif kind not in ("checkbox", "radio", "submit", "button"):
            form.values.append((said["name"], said.get("value", "")))
        elif kind in ("checkbox", "radio") and "checked" in said:
            form.values.append((said["name"], said.get("value", "on")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "select":
            self._select = ""
