"""What every endpoint shares: its parameters are read strictly, its answer has one type, its refusals are described."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from django.db import DatabaseError
from django.utils.cache import patch_cache_control
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import MethodNotAllowed, NotAcceptable
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from inspector.accounts.models import ApiKey, Workspace
from inspector.accounts.services import add_reads
from inspector.bounds import GoneError, SpentError, fit_answer
from inspector.database import or_404

from .authentication import caller_of, refuse_haste
from .parameters import Parameter, read_parameters
from .problems import CONTENT_TYPE, TITLES, ProblemSerializer

Found = TypeVar("Found")
# What any request may be answered with instead; an address with an id in it adds 404.
EVERYWHERE: Final = (400, 401, 403, 406, 429, 503)
WAITING: Final = (429, 503)


class Negotiation(BaseContentNegotiation):
    """One type an endpoint: an Accept header that does not admit it is refused, whatever the parameters say."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        """None: bodies are read as bytes."""
        return None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The only renderer.

        Raises:
            NotAcceptable: where the Accept header admits no answer of the endpoint.
        """
        view = request.parser_context["view"]
        if not admits(request.headers.get("Accept", ""), view.media_type):
            raise NotAcceptable
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""


def admits(accept: str, media_type: str) -> bool:
    """Whether an Accept header admits a type (RFC 9110, section 12.5.1); no header admits all."""
    group = media_type.partition("/")[0]
    found: dict[str, bool] = {}
    for piece in accept.split(","):
        name, *parameters = (part.strip().lower() for part in piece.split(";"))
        weights = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
        if name:
            found[name] = not weights or weights[0].strip("0.") != ""
    for name in (media_type, f"{group}/*", "*/*"):
        if name in found:
            return found[name]
    return not found


class EndpointSchema(AutoSchema):
    """Adds to each operation its parameters, summary and subject, and the problems that it may be answered with."""

    view: Endpoint  # type: ignore[override]  # it describes no other views

    def get_override_parameters(self) -> list[OpenApiParameter | Any]:
        """The endpoint's table for this method."""
        return [parameter.describe() for parameter in self.view.parameters.get(self.method, ())]

    def get_summary(self) -> str:
        """The name of the operation in words: `list_exports` is "List exports"."""
        return str(self.get_operation_id()).replace("_", " ").capitalize()

    def get_tags(self) -> list[str]:
        """What it is about, which is the first word of its path: "Deliveries"."""
        subject = self.path.removeprefix("/api/").removeprefix("v1/").partition("/")[0]
        return [subject.replace("-", " ").capitalize()]

    def get_operation(self, *args: Any, **names: Any) -> Any:
        """The operation with its refusals."""
        operation = super().get_operation(*args, **names)
        if operation is None:
            return None
        problem = self.resolve_serializer(ProblemSerializer, "response").ref
        statuses = {*EVERYWHERE, *self.view.refusals.get(self.method, ())} | ({404} if "{" in self.path else set())
        for status in sorted(statuses):
            content = self.view.problem_content or {CONTENT_TYPE: {"schema": problem}}
            answer: dict[str, Any] = {"description": TITLES[status], "content": content}
            if status in WAITING:
                answer["headers"] = {
                    "Retry-After": {
                        "description": "seconds to wait before sending again",
                        "required": True,
                        "schema": {"type": "integer"},
                    }
                }
            operation["responses"].setdefault(str(status), answer)
        return operation


class Endpoint(APIView):
    """A view of the API.

    `scopes` names the scope that each method needs, or several of which one is enough; reading is all that a view has
    that names none. `parameters` is the table of each,
    and `refusals` the statuses that a method may be answered with besides those of every endpoint. What `parameters`
    read is in `given`.
    """

    scopes: ClassVar[Mapping[str, str | tuple[str, ...]]] = {"GET": "read"}
    parameters: ClassVar[Mapping[str, Sequence[Parameter]]] = {}
    refusals: ClassVar[Mapping[str, Sequence[int]]] = {}
    # What it shows of messages, in a word or two: that a key read it is in the audit log.
    reads: ClassVar[str] = ""
    media_type: ClassVar[str] = "application/json"
    # What refusals are, by type, where a protocol has them in a form of its own.
    problem_content: ClassVar[Mapping[str, Any]] = {}
    # `initial` asks for the key before a body is read, and `bodies` bounds each by what its endpoint takes.
    takes_large_bodies: ClassVar[bool] = True
    content_negotiation_class = Negotiation
    schema = EndpointSchema()
    given: Mapping[str, Any]

    @property
    def key(self) -> ApiKey:
        """The key that the request was made with."""
        return caller_of(self.request)

    @property
    def workspace(self) -> Workspace:
        """The workspace of the key."""
        return self.key.workspace

    def find(self, select: Callable[..., Found | None], **named: uuid.UUID) -> Found:
        """What the address names, of the key's workspace.

        Raises:
            Http404: where the selector finds nothing of that id there.
        """
        return or_404(select(workspace=self.workspace, **named))

    def finalize_response(self, request: Request, response: Any, *args: Any, **names: Any) -> Any:
        """The answer within its budget, which no browser and no proxy keeps: it is for the holder of the key."""
        if isinstance(response, Response) and response.data is not None:
            try:
                response.data = fit_answer(response.data)
            except (SpentError, GoneError) as error:
                response = self.handle_exception(error)
        if self.reads and request.method == "GET" and response.status_code < 300:
            try:
                add_reads(key_id=caller_of(request).pk, what=self.reads)
            except DatabaseError as error:
                response = self.handle_exception(error)
        answer = super().finalize_response(request, response, *args, **names)
        patch_cache_control(answer, no_store=True)
        return answer

    def initial(self, request: Request, *args: Any, **names: Any) -> None:
        """Let the request in: its method, its key, its pace, its parameters.

        Raises:
            MethodNotAllowed: before anything else is looked at, for no key makes a method be there.
            ProblemError: 400 for parameters that are none, 429 for a key that asks too often.
        """
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method not in self.allowed_methods:
            raise MethodNotAllowed(method)
        super().initial(request, *args, **names)
        refuse_haste(request)
        if method != "OPTIONS":
            known = self.parameters.get(method, ())
            self.given = read_parameters(request._request.GET, known, has_body=method == "POST")
