"""Bodies that are given up before their end: the line is handed back to the server as it was lent, and at once."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest

from inspector.api.bodies import BrokenBodyError, read_body


class Line:
    """The server's socket, as far as it is lent."""

    def __init__(self) -> None:
        self.timeout: float | None = 7.0
        self.is_closed = False

    def gettimeout(self) -> float | None:
        return self.timeout

    def settimeout(self, seconds: float | None) -> None:
        if self.is_closed:
            raise OSError(9, "Bad file descriptor")
        self.timeout = seconds

    def shutdown(self, how: int) -> None:
        raise OSError(9, "Bad file descriptor")


class GoneInput(io.BytesIO):
    """Some bytes, and then a sender that is not there any more."""

    def __init__(self, data: bytes, line: Line) -> None:
        super().__init__(data)
        self._line = line

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        if not piece:
            self._line.is_closed = True
            raise ConnectionResetError("the line is cut")
        return piece


def make_request(body: io.BytesIO, line: Line, **headers: str) -> WSGIRequest:
    environment: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "gunicorn.socket": line,
        **headers,
    }
    return WSGIRequest(environment)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_body_that_is_not_read_to_its_end_gives_the_line_back_when_closed(encoding: str) -> None:
    line = Line()
    data = b"a line of text\n" * 50_000
    packed = gzip.compress(data) if encoding == "gzip" else data
    body = read_body(make_request(io.BytesIO(packed), line, HTTP_CONTENT_ENCODING=encoding), max_bytes=10**9)
    assert next(body)
    assert line.timeout == 30
    body.close()
    assert line.timeout == 7.0


def test_a_body_over_the_limit_gives_the_line_back_before_it_is_refused() -> None:
    line = Line()
    body = read_body(make_request(io.BytesIO(b"x" * 500_000), line), max_bytes=200_000)
    timeouts = []
    with pytest.raises(BrokenBodyError) as caught:
        timeouts.extend(line.timeout for _ in body)
    # While the error is held, so is every frame it came through: nothing may depend on their being let go.
    assert caught.value.status == 413
    assert timeouts == [30]
    assert line.timeout == 7.0


def test_a_line_that_is_closed_already_is_no_error() -> None:
    line = Line()
    body = read_body(make_request(GoneInput(b"x" * 10, line), line), max_bytes=10**9)
    assert next(body) == b"x" * 10
    with pytest.raises(BrokenBodyError, match="the line is cut"):
        next(body)
