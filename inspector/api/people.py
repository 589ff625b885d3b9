"""A person's acts by a key, in the name of the member who made it: decided by what that person may do today."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.core.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.selectors import find_membership

from .authentication import caller_of
from .problems import ProblemError

# What an act with a body may be refused with, beside what every endpoint may be.
ACT_REFUSALS: Final = (408, 409, 413, 415, 422)


def find_person(key: ApiKey) -> Membership:
    """The member who made the key, as a member of its workspace today.

    Raises:
        ProblemError: 403 where that is nobody.
    """
    person = find_membership(user=key.created_by, slug=key.workspace.slug) if key.created_by else None
    if person is None:
        raise ProblemError(403, "this is a person's act: use a key that a member of the workspace made")
    return person


@contextmanager
def act_for(request: Request) -> Iterator[Membership]:
    """Act as the person who made the key; what the service refuses becomes a problem.

    Raises:
        ProblemError: 403 where that person may not, 422 for what cannot be so (with the `members` at fault), 409 where
            it cannot be done as things stand.
    """
    person = find_person(caller_of(request))
    try:
        yield person
    except PermissionDenied as error:
        raise ProblemError(403, f"{error}: the member who made this key may not do it today") from error
    except ValidationError as error:
        detail = "; ".join(error.messages)
        if hasattr(error, "error_dict"):
            raise ProblemError(422, detail, members=sorted(error.error_dict)) from error
        raise ProblemError(409, detail) from error
