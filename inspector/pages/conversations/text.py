"""A conversation as text: numbered lines of English, to be copied or kept, with every hidden character visible."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse

from inspector.accounts.models import Membership
from inspector.threads.transcripts import write_text

from ..shell import read_number, within_workspace
from .frame import open_conversation


@within_workspace("GET")
def show_text(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """The conversation from `offset` on, as far as one text goes; its end says which message is next."""
    conversation = open_conversation(membership, conversation_id)
    text = write_text(conversation=conversation, offset=read_number(request, "offset"))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
