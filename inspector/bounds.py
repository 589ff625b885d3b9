"""The bounds of what comes and goes: a request's body, before anything is parsed, so that nobody fills a disk by a
form; and an answer, and what is told of a message in it: two mebibytes, whatever a record holds.

An address that takes more says so itself (`takes_large_bodies`): it asks who sends before it reads, and has limits of
its own. Everywhere else a body has one length, declared, of at most a mebibyte.

In an answer long texts become their beginnings and long lists their first items, and `cut` names each place with how
much it has in all. What is whole has addresses of its own: the bytes of a record (`/records/{id}/raw`) and the fields
of a message (`/messages/{id}/fields`). Values of the codecs are taken apart here, node by node, so that what is left
out costs nothing. The rows of a page (`results`) are never left out, for the cursor goes on behind them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from dialects import to_shallow_json

from .effort import check_effort

MAX_BYTES: Final = 1024 * 1024
_MARK: Final = "takes_large_bodies"


def takes_large_bodies(view: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a view that reads its bodies itself, after it has asked who sends them."""
    vars(view)[_MARK] = True
    return view


class BodyBoundsMiddleware:
    """Refuses a body that is too long, or of unknown length, before any of it is read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. An address that does not exist takes no body at all."""
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, names: object
    ) -> HttpResponseBase | None:
        """413 for what is longer than anybody needs, before the search for a CSRF token would read it."""
        if getattr(getattr(view, "cls", view), _MARK, False) or not _is_beyond(request):
            return None
        return refuse_length(request)


def refuse_length(request: HttpRequest) -> HttpResponse:
    """The page that says what is too long; the rest of the body is not waited for."""
    stop_reading(request)
    return render(request, "413.html", status=413)


def find_declared_length(request: HttpRequest) -> int:
    """The length that a request declares for its body, in bytes; 0 where it declares none."""
    declared = request.headers.get("Content-Length") or "0"
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def stop_reading(request: HttpRequest) -> None:
    """Take nothing more from the sender: what is still under way is left on the line, and the line is closed."""
    line = request.META.get("gunicorn.socket")
    if line is not None:
        with suppress(OSError):  # The other side may have closed it.
            line.shutdown(socket.SHUT_RD)


def _is_beyond(request: HttpRequest) -> bool:
    is_chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    return is_chunked or find_declared_length(request) > MAX_BYTES


MAX_ANSWER_BYTES: Final = 2 * 1024 * 1024

# A number or a name weighs about so much, with what stands around it; each character of a text six
# bytes, one beyond the first 65,536 twelve.
NODE_BYTES: Final = 12
MAX_CUTS: Final = 100
# No object of a declared shape has more members.
MIN_MEMBERS: Final = 100
ROWS: Final = "results"
_PLAIN: Final = frozenset({type(None), int, float, bool})

# How the description tells of it, wherever it may stand.
CUTS: Final[dict[str, Any]] = {
    "type": "array",
    "description": "the places where something was left out, of an answer or a message over two mebibytes",
    "items": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "total": {"type": "integer", "description": "how much there is in all"},
            "unit": {"type": "string", "enum": ["characters", "items", "members", "bytes"]},
        },
        "required": ["path", "total", "unit"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True)
class Measure:
    """How long a text, a list and the whole may be."""

    characters: int
    items: int


# An answer is tried in the first; one that is too heavy in the next. The last holds for every page of rows.
MEASURES: Final = (Measure(1_000_000, 1_000_000), Measure(65_536, 5_000), Measure(4_096, 500), Measure(120, 8))


class OverBudgetError(Exception):
    """In this measure the answer is too heavy."""


@dataclass(slots=True)
class _Fitting:
    measure: Measure
    most: int
    is_last: bool
    weight: int = 0
    cuts: list[dict[str, Any]] = field(default_factory=list)

    def fit(self, value: Any, path: str) -> Any:
        """The value as JSON types, within the measure.

        Raises:
            OverBudgetError: as soon as the whole weighs too much.
        """
        self._spend(NODE_BYTES)
        if type(value) in _PLAIN:
            return value
        if isinstance(value, str):
            return self._fit_text(value, path)
        if isinstance(value, Mapping):
            return self._fit_mapping(value, path)
        if isinstance(value, (list, tuple)):
            return self._fit_list(value, path)
        shallow = to_shallow_json(value) if hasattr(value, "given") or isinstance(value, bytes) else value
        return self._fit_mapping(shallow, path) if isinstance(shallow, Mapping) else shallow

    def _fit_text(self, text: str, path: str) -> str:
        kept = text
        if len(text) > self.measure.characters:
            kept = text[: self.measure.characters]
            self._note(path, len(text), "characters")
        self._spend(len(kept) if kept.isascii() else 3 * len(kept.encode("utf-16-le", "surrogatepass")))
        return kept

    def _fit_mapping(self, value: Mapping[Any, Any], path: str) -> dict[str, Any]:
        check_effort()
        shown = {}
        for number, (name, inner) in enumerate(value.items()):
            if number == max(self.measure.items, MIN_MEMBERS):
                self._note(path, len(value), "members")
                break
            self._spend(len(str(name)))
            shown[str(name)] = self.fit(inner, f"{path}.{name}" if path else str(name))
        return shown

    def _fit_list(self, value: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
        shown: list[Any] = []
        for number, inner in enumerate(value):
            if path != ROWS and (number == self.measure.items or self._is_full(path)):
                self._note(path, len(value), "items")
                break
            shown.append(self.fit(inner, f"{path}[{number}]"))
        return shown

    def _is_full(self, path: str) -> bool:
        """Whether the last measure is used up, outside of the rows of a page."""
        return self.is_last and self.weight > self.most and not path.startswith(ROWS)

    def _spend(self, weight: int) -> None:
        self.weight += weight
        if self.weight > self.most and not self.is_last:
            raise OverBudgetError

    def _note(self, path: str, total: int, unit: str) -> None:
        if len(self.cuts) < MAX_CUTS:
            self.cuts.append({"path": path[:200], "total": total, "unit": unit})


def fit_answer(data: Any, most: int = MAX_ANSWER_BYTES) -> Any:
    """The answer in JSON types and within the budget of so many bytes; with `cut` where something was left out.

    `cut` is a list of {path, total, unit}: where, how much there is in all, and of what; the first hundred places.
    """
    for measure in MEASURES:
        fitting = _Fitting(measure, most, is_last=measure is MEASURES[-1])
        try:
            shown = fitting.fit(data, "")
        except OverBudgetError:
            continue
        if fitting.cuts and isinstance(shown, dict):
            shown["cut"] = [*shown.get("cut", []), *fitting.cuts]
        return shown
    raise AssertionError("the last measure takes every answer")
