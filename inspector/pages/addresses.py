"""Addresses of many things of one kind: a list asks for hundreds, and finding the pattern of a name is dear."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from django.urls import reverse

_ANY: Final = uuid.UUID(int=0)


def address_each(name: str, slug: str) -> Callable[[uuid.UUID], str]:
    """What gives the address of each thing of a kind by its id; the pattern is looked up once.

    Args:
        name: of an address within a workspace that has one id in it.
        slug: the workspace's.
    """
    before, _, behind = reverse(name, args=[slug, _ANY]).rpartition(str(_ANY))
    return lambda pk: f"{before}{pk}{behind}"
