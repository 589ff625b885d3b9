"""Lines of session files: Claude Code's, its SDK's stream, and Codex's."""

from __future__ import annotations

from typing import Any, Final

from .._draft import Draft
from .._english import quote, say_name
from .._json import Path
from .._record import Failure
from .._turns import OTHER_SHAPE, ROLES, SYSTEM, Role, Turn, find_value, read_columns, read_text, say_content
from .messages import draft_message
from .responses import draft_item, score_item

_PROGRAM: Final = Role("program", "The program", "notes", "inform")
_CODEX: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
# Of an event, the keys of which one holds its text.
_SAID: Final = ("content", "summary", "message", "text", "last_agent_message", "reason", "lastPrompt")


def score_line(data: dict[str, Any]) -> tuple[float, str] | None:
    """How likely an object is a line of a session file, and why."""
    kind = data.get("type")
    if not isinstance(kind, str):
        return None
    if kind in _CODEX and isinstance(data.get("payload"), dict) and isinstance(data.get("timestamp"), str):
        return 0.93, "a line of a session of Codex"
    session = read_text(data.get("sessionId")) or read_text(data.get("session_id"))
    message = data.get("message")
    if session and kind in ("user", "assistant") and isinstance(find_value(message, "role"), str):
        return 0.93, "a line of a session of Claude Code"
    is_summary = kind == "summary" and isinstance(data.get("summary"), str) and isinstance(data.get("leafUuid"), str)
    is_snapshot = kind == "file-history-snapshot" and isinstance(data.get("snapshot"), dict)
    is_result = kind == "result" and isinstance(data.get("is_error"), bool) and session and "subtype" in data
    is_opening = kind == "system" and session and ("subtype" in data or "parentUuid" in data)
    is_other = isinstance(data.get("sessionId"), str) and ("uuid" in data or kind == "queue-operation")
    if is_summary or is_snapshot or is_result or is_opening or is_other:
        return 0.93, f"a line of a session of Claude Code ({kind})"
    return None


def draft_line(data: dict[str, Any]) -> list[Draft]:
    """The drafts of a line of a session file."""
    if data["type"] in _CODEX and isinstance(data.get("payload"), dict):
        return _draft_codex(data)
    columns, message = read_columns(data), data.get("message")
    aside = _say_sub_agent(data)
    if isinstance(message, dict) and isinstance(message.get("role"), str) and data["type"] in ("user", "assistant"):
        role = ROLES.get(message["role"], ROLES[data["type"]])
        if data.get("isCompactSummary") is True:
            return [_sum_up(Turn(_PROGRAM, (), columns, aside=aside), message.get("content"), ("message", "content"))]
        again = read_text(message.get("id")) if role.name == "assistant" else None
        if data.get("isMeta") is True:
            aside += " (in words that the program put in)"
        return draft_message(message, ("message",), Turn(role, ("message",), columns, aside=aside, again=again))
    return [_DRAFT.get(data["type"], _note_event)(Turn(_PROGRAM, (), columns, aside=aside), data, ())]


def _say_sub_agent(data: dict[str, Any]) -> str:
    is_sub_agent = data.get("isSidechain") is True or read_text(data.get("parent_tool_use_id")) is not None
    if not is_sub_agent:
        return ""
    name = read_text(data.get("agentId"))
    own = f" {say_name(name)}" if name else ""
    return f" (as the sub-agent{own})" if data.get("type") == "assistant" else f" (to the sub-agent{own})"


def _sum_up(turn: Turn, content: Any, path: Path) -> Draft:
    """A summary that stands for what came before."""
    draft = turn.begin("inform", "summary", content=content)
    draft.say(" sums up what came before: ")
    say_content(draft, content, path)
    return draft


def _draft_summary(turn: Turn, data: dict[str, Any], path: Path) -> Draft:
    draft = _sum_up(turn, data.get("summary"), (*path, "summary"))
    leaf = read_text(data.get("leafUuid"))
    if leaf:
        # Usually of another session: it is named, and nothing is missing where it is not here.
        draft.say(" (up to the line ").say(say_name(leaf), (*path, "leafUuid")).say(")")
    return draft


def _draft_system(turn: Turn, data: dict[str, Any], path: Path) -> Draft:
    kind = read_text(data.get("subtype"))
    if kind == "init":
        tools = data.get("tools")
        draft = turn.begin("control", "init").say(" opens the session", (*path, "subtype"))
        return draft.say(f" with {len(tools)} tools", (*path, "tools")) if isinstance(tools, list) else draft
    if kind == "compact_boundary":
        return turn.begin("control", kind).say(" replaces what came before with a summary", (*path, "subtype"))
    return _note_event(turn, data, path)


def _draft_queue(turn: Turn, data: dict[str, Any], path: Path) -> Draft:
    operation = read_text(data.get("operation"))
    draft = turn.begin("control", "queue-operation")
    words = {"enqueue": "puts a message in the queue", "dequeue": "takes a message from the queue"}
    draft.say(f" {words.get(operation or '', 'changes the queue of messages')}", (*path, "operation"))
    return draft.say(": ").carry((*path, "content")) if read_text(data.get("content")) else draft


def _draft_snapshot(turn: Turn, data: dict[str, Any], path: Path) -> Draft:
    draft = turn.begin("control", "file-history-snapshot", message_id=None)
    return draft.say(" keeps the state of files", (*path, "snapshot"))


def _draft_result(turn: Turn, data: dict[str, Any], path: Path) -> Draft:
    is_failure, text = data.get("is_error") is True, read_text(data.get("result"))
    error = Failure(code=read_text(data.get("subtype")), message=text) if is_failure else None
    draft = turn.begin("failure" if is_failure else "done", "result", content=text, error=error)
    draft.say(" says that the session failed" if is_failure else " ends the session", (*path, "is_error"))
    return draft.say(": ").carry((*path, "result")) if text else draft


def _note_event(turn: Turn, data: dict[str, Any], path: Path) -> Draft:
    """An event of the program: what it repeats of what others said is quoted, and is no message of theirs."""
    kind = read_text(data.get("subtype")) or str(data.get("type"))
    draft = turn.begin("inform", kind)
    draft.say(" notes an event of the kind ").say(say_name(kind), (*path, "subtype" if "subtype" in data else "type"))
    key = next((key for key in _SAID if read_text(data.get(key))), None)
    return draft.say(f": {quote(data[key])}", (*path, key)) if key else draft


_DRAFT: Final = {
    "summary": _draft_summary,
    "system": _draft_system,
    "queue-operation": _draft_queue,
    "file-history-snapshot": _draft_snapshot,
    "result": _draft_result,
}


def _draft_codex(data: dict[str, Any]) -> list[Draft]:
    payload, columns, path = data["payload"], read_columns(data), ("payload",)
    kind = data["type"]
    if kind == "response_item":
        if score_item(payload):
            return draft_item(payload, path, columns)
        draft = _note_event(Turn(_PROGRAM, (), columns), payload, path)
        return [draft.note(OTHER_SHAPE, "this kind of item is not known here", path)]
    turn = Turn(_PROGRAM, (), columns)
    if kind == "compacted":
        return [_sum_up(turn, payload.get("message"), (*path, "message"))]
    if kind == "event_msg":
        return [_note_event(turn, payload, path)]
    if kind == "turn_context":
        model = read_text(payload.get("model"))
        draft = turn.begin("control", kind).say(" begins a turn", path)
        return [draft.say(f" of the model {say_name(model)}", (*path, "model")) if model else draft]
    turn.columns["conversation_id"] = read_text(payload.get("id"))
    draft = turn.begin("control", kind).say(" opens a session of Codex", path)
    if find_value(payload, "source", "subagent") is not None:
        draft.say(", of a sub-agent", (*path, "source"))
    instructions = payload.get("instructions", payload.get("base_instructions"))
    key = "instructions" if "instructions" in payload else "base_instructions"
    at: Path = (*path, key, "text") if isinstance(instructions, dict) else (*path, key)
    text = read_text(find_value(instructions, "text") if isinstance(instructions, dict) else instructions)
    if text is None:
        return [draft]
    told = Turn(SYSTEM, path, {**columns, "conversation_id": draft.columns.get("conversation_id")})
    told.read_content(text, at)
    return [draft, *told.drafts]
