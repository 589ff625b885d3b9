"""The messages that are new within the span of a model, each told as a turn of a chat is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from .._draft import Draft
from .._english import say_name
from .._json import Path
from .._record import NoteKind
from .._time import instant_of_log
from .._turns import ASSISTANT, OTHER_ROLES, SYSTEM, Role, Turn, say_value
from .spans import Span, read_id
from .tables import CONVERSATION
from .texts import Text, Texts, list_offered

NOT_OFFERED: Final = NoteKind(
    code="otel.tool-not-offered",
    severity="warning",
    group="protocol",
    about="A model called a tool that its request does not offer.",
    cites="GenAI, gen_ai.tool.definitions; OpenInference, llm.tools",
)
_PROMPT: Final = Role("prompt", "The prompt", "says", "inform")


def draft_messages(span: Span, texts: Texts) -> Iterator[Draft]:
    """A draft for each message, call and result among the texts that are new in a span."""
    offered, start = list_offered(span), span.start.text
    columns = {
        "message_id": None,
        "parent_id": read_id(span.place, 16),
        "trace_id": read_id(span.trace, 32),
        "conversation_id": span.find(*CONVERSATION).text,
        "sent_at": instant_of_log(start) if start else None,
        "sent_at_raw": start,
    }
    for held, otherwise in ((texts.instructions, SYSTEM), (texts.given, _PROMPT), (texts.back, ASSISTANT)):
        for _, group in groupby(held, key=lambda text: (text.role, text.of)):
            said = [*group]
            turn = Turn(_find_role(said[0], otherwise), said[0].of, columns)
            _draft_turn(turn, said, offered)
            for draft in turn.drafts:
                draft.dialect, draft.is_heard = "chat", turn.role is not ASSISTANT
                yield draft.say(".")


def _find_role(text: Text, otherwise: Role) -> Role:
    if text.role is not None:
        return OTHER_ROLES.get(text.role) or Role(text.role, f"The {say_name(text.role)}", "says", "inform")
    return ASSISTANT if text.kind == "call" else otherwise


def _draft_turn(turn: Turn, texts: Sequence[Text], offered: frozenset[str]) -> None:
    def is_said(text: Text) -> bool:
        return text.kind == "other" or (text.kind == "text" and turn.role.name != "tool")

    for is_plain, group in groupby(texts, key=is_said):
        if is_plain:
            _say_texts(turn, [*group])
            continue
        for text in group:
            path = text.path or text.of
            if text.kind == "thought":
                turn.think(text.data, path, "reasoning")
            elif text.kind == "call":
                name, own = (text.name, text.named_at or text.of), (text.id.text, text.id.path)
                call = turn.draft_call("tool_call", name, own, (text.data, path))
                note_not_offered(call, text, offered, name[1])
            else:
                result = turn.answer(text.id.text, text.id.path, text.data, path, "tool")
                if text.id.text:
                    result.columns |= {"correlation_id": text.id.text, "parent_id": turn.columns["parent_id"]}


def note_not_offered(draft: Draft, call: Text, offered: frozenset[str], path: Path) -> None:
    """Note that a called tool is not among those that its request offers, where it offers any."""
    if offered and call.name and call.name not in offered:
        draft.note(NOT_OFFERED, f"the tool {say_name(call.name)} is not among the tools of this request", path)


def _say_texts(turn: Turn, texts: Sequence[Text]) -> None:
    content = [text.data for text in texts if text.kind == "text"]
    draft = turn.begin(turn.role.performative, turn.role.name, content=content[0] if len(content) == 1 else content)
    draft.say(f" {turn.role.says}: ")
    for index, text in enumerate(texts):
        draft.say(" and " if index else "")
        if text.kind == "other":
            draft.say(f"a part of the kind {say_name(str(text.name))}", text.path)
        elif text.path is not None:
            say_value(draft, text.data, text.path)
