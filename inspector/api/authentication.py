"""Who calls: a bearer key of one workspace, what it may do, the member in whose name it acts, and how fast it may ask,
whichever process answers.

What a key may send stands in its row. A process takes a second's worth out of it at a time, so that a busy key costs a
statement a second and not one a request.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from inspector.accounts import selectors, services
from inspector.accounts.limits import reserve_often
from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.selectors import find_membership
from inspector.accounts.workspaces import ARCHIVED
from inspector.trail.acting import note_actor
from inspector.trail.row_security import enter_workspace

from .problems import ProblemError

if TYPE_CHECKING:
    from rest_framework.views import APIView

    from .endpoints import Endpoint


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <key>`. The key is `request.auth`; there is no user."""

    enters_workspace = True

    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        """The key of the header, or None where there is no header.

        Raises:
            AuthenticationFailed: for another scheme, and for a key that is unknown, revoked or expired.
            ProblemError: 403 for a key of an archived workspace, and for one that was sent in clear.
        """
        header = self.find_header(request).split()
        if not header:
            return None
        if settings.IS_BEHIND_HTTPS and not request.is_secure():
            raise ProblemError(403, "this came in clear, and nothing of it was taken: use https, and a new key")
        if len(header) != 2 or header[0].lower() != b"bearer":
            raise AuthenticationFailed("send the key as: Authorization: Bearer <key>")
        key = selectors.find_api_key(token=header[1].decode("latin-1"))
        if key is None:
            raise AuthenticationFailed("the key is unknown, revoked or expired")
        request.META["inspector.key"] = key.prefix  # For the access log.
        if key.workspace.archived_at is not None:
            raise ProblemError(403, f"{ARCHIVED} All of its keys are refused until then.")
        services.note_api_key_use(key=key)
        note_actor(key)
        enter_workspace(key.workspace_id)
        return None, key

    def find_header(self, request: Request) -> bytes:
        """The header with the key, as it was sent."""
        return get_authorization_header(request)

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="api"'


class ExporterAuthentication(ApiKeyAuthentication):
    """The same, or `x-api-key: <key>`, which is how exporters of telemetry are mostly told a key."""

    def find_header(self, request: Request) -> bytes:
        """The header with the key; one of its own stands for a bearer's."""
        own = request.headers.get("X-Api-Key", "")
        header = super().find_header(request)
        return header or (b"Bearer " + own.encode("latin-1", "replace") if own else b"")


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its base has no types
    """How the schema tells of the key; drf-spectacular finds this class by itself."""

    target_class = ApiKeyAuthentication
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A bearer token."""
        return {"type": "http", "scheme": "bearer"}


class ExporterScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its base has no types
    """How the schema tells of an exporter's key."""

    target_class = ExporterAuthentication
    name = "exporter_key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A header."""
        return {"type": "apiKey", "in": "header", "name": "x-api-key"}


def caller_of(request: Request) -> ApiKey:
    """The key that the request was made with; `HasScope` has let it through."""
    key = request.auth
    if not isinstance(key, ApiKey):
        raise NotAuthenticated
    return key


class HasScope(BasePermission):
    """The key has the scope that the operation names, or one of several. HEAD needs what GET needs."""

    def has_permission(self, request: Request, view: Endpoint) -> bool:  # type: ignore[override]  # it guards no other
        """Whether there is a key; it has the scope then.

        Raises:
            ProblemError: 403 for a key without it; `scope` names the scopes of which one is needed.
        """
        if not isinstance(request.auth, ApiKey):
            return False
        needed = view.operation.scopes
        if set(needed).isdisjoint(request.auth.scopes):
            raise refuse_scope(*needed)
        return True


def may_see_secrets(key: ApiKey) -> bool:
    """Whether an owner gave this key the scope for it."""
    return ApiKey.Scope.SECRETS in key.scopes


def refuse_scope(*needed: str, what: str = "this") -> ProblemError:
    """The refusal of a key that has none of these scopes."""
    return ProblemError(403, f"{what} needs a key with the scope {' or '.join(needed)}", scope=list(needed))


@contextmanager
def act_for(request: Request) -> Iterator[Membership]:
    """Act as the person who made the key, a member of its workspace today; what the service refuses becomes a problem.

    Raises:
        ProblemError: 403 where that is nobody or that person may not, 422 for what cannot be so (with the `members` at
            fault), 404 for what is not there, 409 where it cannot be done as things stand.
    """
    key = caller_of(request)
    person = find_membership(user=key.created_by, slug=key.workspace.slug) if key.created_by else None
    if person is None:
        raise ProblemError(403, "this is a person's act: use a key that a member of the workspace made")
    try:
        yield person
    except PermissionDenied as error:
        raise ProblemError(403, f"{error}: the member who made this key may not do it today") from error
    except ValidationError as error:
        detail = "; ".join(error.messages)
        if hasattr(error, "error_dict"):
            raise ProblemError(422, detail, members=sorted(error.error_dict)) from error
        raise ProblemError(404 if getattr(error, "code", None) == "missing" else 409, detail) from error


class KeyThrottle(BaseThrottle):
    """Counts each request against its key."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Let the request pass.

        Raises:
            ProblemError: 429 with the time after which the next request passes.
        """
        most = settings.LIMITS["requests_per_minute"]
        key = request.auth
        if most and isinstance(key, ApiKey) and not reserve_often(f"key {key.pk}", most=most):
            wait = math.ceil(60 / most)
            raise ProblemError(
                429,
                f"this key sends more than {most} requests a minute: send more records in each, or wait {wait} s",
                retry_after=wait,
            )
        return True
