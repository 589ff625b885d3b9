"""A conversation as text: numbered lines of English, to be copied or kept, with every hidden character visible."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from inspector.accounts.models import Membership
from inspector.browsing.transcripts import write_text

from ..shell import read_number, within_workspace
from .frame import open_conversation


@require_GET
@within_workspace
def show_text(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """The conversation from `offset` on, as far as one text goes; its end says which message is next."""
    conversation = open_conversation(membership, conversation_id)
    text = write_text(conversation=conversation, offset=read_number(request, "offset"))
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Cache-Control"] = "no-store, private"
    return response
