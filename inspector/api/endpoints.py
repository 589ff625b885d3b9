"""What every endpoint shares: its operations, each with its parameters, its scope and its shapes; answers of one type,
in JSON as the codecs write it; and refusals that are described.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, Final, TypeVar

from django.db import DatabaseError
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from django.utils.cache import patch_cache_control
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import MethodNotAllowed, NotAcceptable, NotFound
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from dialects import write_json
from inspector.accounts.models import ApiKey, Workspace
from inspector.accounts.services import add_reads
from inspector.bounds import GoneError, SpentError, fit_answer
from inspector.database import or_404

from .authentication import caller_of
from .parameters import Document, Parameter, read_parameters
from .problems import CONTENT_TYPE, TITLES, ProblemSerializer

Found = TypeVar("Found")
# What any request may be answered with instead; an address with an id in it adds 404.
EVERYWHERE: Final = (400, 401, 403, 406, 429, 503)
WAITING: Final = (429, 503)
# What an act with a body may be refused with besides.
BODY_REFUSALS: Final = (408, 409, 413, 415, 422)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is known of an operation: see `operation`."""

    scopes: tuple[str, ...] = ("read",)
    parameters: Sequence[Parameter] = ()
    refusals: Sequence[int] = ()
    reads: str = ""
    media_type: str = "application/json"


# What another method than those there are needs: what reading does.
NO_OPERATION: Final = Operation()


def operation(
    responses: Any,
    *,
    body: Document | Mapping[str, Any] | None = None,
    headers: Sequence[OpenApiParameter] | None = None,
    scope: str | tuple[str, ...] = "read",
    refusals: Sequence[int] = (),
    **known: Any,
) -> Callable[[Callable[..., Any]], Callable[..., HttpResponseBase]]:
    """An operation of the API, whose id in the schema is the name of its method. The method gives what is shown, or a
    response of its own.

    Args:
        responses: the shape of its answer, or shapes by status, as `extend_schema` has it.
        body: what it takes, if anything; what a `Document` may be refused with need not be said.
        headers: what it reads besides, and headers of its answers.
        scope: what a key needs for it, or several scopes of which one is enough.
        refusals: the statuses that it may be answered with besides those of every endpoint.
        known: `parameters`, the table of those in its address; `reads`, what it shows of messages, in a word or two:
            that a key read it is in the audit log; `media_type` of its answer.
    """
    refusals = refusals or (BODY_REFUSALS if isinstance(body, Document) else ())
    row = Operation(scopes=(scope,) if isinstance(scope, str) else scope, refusals=refusals, **known)

    status = next(iter(responses)) if isinstance(responses, Mapping) and len(responses) == 1 else 200
    request = body.schema if isinstance(body, Document) else body

    def mark(method: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
        @wraps(method)
        def answer(*args: Any, **named: Any) -> HttpResponseBase:
            shown = method(*args, **named)
            return shown if isinstance(shown, HttpResponseBase) else Response(shown, status=status)

        vars(answer)["operation"] = row
        described: Callable[..., HttpResponseBase] = extend_schema(
            operation_id=method.__name__, request=request, responses=responses, parameters=headers
        )(answer)
        return described

    return mark


class ExactRenderer(JSONRenderer):
    """The plain renderer, and the codecs' own writing for what it refuses.

    A log may hold 1e400 or a number of five thousand digits. Such a message has to be shown like any other.
    """

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """The data as JSON; numbers that JSON has not become text, lone surrogates their escapes."""
        try:
            written: bytes = super().render(data, accepted_media_type, renderer_context)
        except ValueError:
            return write_json(self._flatten(data)).encode()
        return written

    def _flatten(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(name): self._flatten(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._flatten(inner) for inner in value]
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        return self._flatten(self.encoder_class().default(value))


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
        """The table of the operation."""
        return [parameter.describe() for parameter in self.view.operation.parameters]

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
        statuses = {*EVERYWHERE, *self.view.operation.refusals} | ({404} if "{" in self.path else set())
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


class Endpoint(ViewSet):
    """The operations on one subject, which `urls` gives their addresses and methods.

    What the parameters of the one that is asked for read is in `given`.
    """

    # What refusals are, by type, where a protocol has them in a form of its own.
    problem_content: ClassVar[Mapping[str, Any]] = {}
    # `initial` asks for the key before a body is read, and `bodies` bounds each by what its operation takes.
    takes_large_bodies: ClassVar[bool] = True
    renderer_classes = (ExactRenderer,)
    content_negotiation_class = Negotiation
    schema = EndpointSchema()
    given: Mapping[str, Any]

    @property
    def operation(self) -> Operation:
        """The operation that is asked for."""
        row: Operation = getattr(getattr(self, self.action or "", None), "operation", NO_OPERATION)
        return row

    @property
    def media_type(self) -> str:
        """The type of the answer."""
        return self.operation.media_type

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
        if request.method == "GET" and response.status_code < 300 and (what := self.operation.reads):
            try:
                add_reads(key_id=caller_of(request).pk, what=what)
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
        if (request.method or "") not in self.allowed_methods:
            raise MethodNotAllowed(request.method or "")
        super().initial(request, *args, **names)
        if request.method != "OPTIONS":
            query = request._request.GET
            self.given = read_parameters(query, self.operation.parameters, has_body=request.method == "POST")


class Nothing(Endpoint):
    """Every address below /api/ that is none: a problem document like any other refusal."""

    authentication_classes = ()
    permission_classes = ()
    schema = None  # type: ignore[assignment]  # it is not described

    def initial(self, request: Request, *args: Any, **names: Any) -> None:
        """Refuse whatever the method.

        Raises:
            NotFound: always; it names the address that was probably meant.
        """
        path = request.path
        other = path.rstrip("/") if path.endswith("/") else f"{path}/"
        try:
            is_address = resolve(other).url_name != "nothing"
        except Resolver404:
            is_address = False
        if is_address:
            slash = "without its last slash" if path.endswith("/") else "with a slash at its end"
            raise NotFound(f"there is no such address: the one {slash} is {other}")
        raise NotFound("there is no such address; GET /api/schema/ lists all addresses")
