"""The lit piece of a message: the spans that an address names."""

from __future__ import annotations

import re
from typing import Final

from django.http import HttpRequest

from ..shown.markup import Span

# So many spans a piece of English may come from; an address that names more is no piece of a page.
MAX_SPANS: Final = 40
_SPAN: Final = re.compile(r"(\d{1,9}):(\d{1,9})-(\d{1,9})")


def read_light(request: HttpRequest) -> tuple[Span, ...]:
    """The spans that `?span=0:25-27` names, several with a space or a + between them; what is none is passed over."""
    given = request.GET.get("span", "").replace("+", " ").split()[:MAX_SPANS]
    found = (_SPAN.fullmatch(text) for text in given)
    return tuple((int(each[1]), int(each[2]), int(each[3])) for each in found if each)
