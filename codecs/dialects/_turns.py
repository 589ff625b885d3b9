"""Turns of a chat, in whatever carries them: what users, models and tools say, call and give back. One turn of a
speaker is its content as texts, media, thoughts, calls and results; the tables have the roles, how each speaks, the
kinds of content, and what is noted on a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ._denials import says_failure
from ._draft import Draft
from ._english import quote, say_name
from ._json import JsonError, Path, Rules, load, write
from ._jsonrpc import list_values, say_scalar, say_values
from ._record import Failure, NoteKind
from ._time import instant_of_log


class Role(NamedTuple):
    """Who speaks in a role, how it is said, and what act that is."""

    name: str
    speaker: str
    says: str
    performative: str


USER: Final = Role("user", "The user", "says", "inform")
ASSISTANT: Final = Role("assistant", "The assistant", "says", "inform")
SYSTEM: Final = Role("system", "The system prompt", "instructs the assistant", "control")
DEVELOPER: Final = Role("developer", "The developer", "instructs the assistant", "control")
TOOL: Final = Role("tool", "The tool", "answers", "done")

# The roles of OpenAI and Anthropic, by which a bare message is known.
ROLES: Final = {
    "user": USER,
    "assistant": ASSISTANT,
    "system": SYSTEM,
    "developer": DEVELOPER,
    "tool": TOOL,
    "function": TOOL,
}
# As ShareGPT and LangChain call them.
OTHER_ROLES: Final = {
    **ROLES,
    "human": USER,
    "gpt": ASSISTANT,
    "ai": ASSISTANT,
    "chatgpt": ASSISTANT,
    "bot": ASSISTANT,
    "model": ASSISTANT,
    "observation": TOOL,
}

# A block of content that is a text, and the key of the text.
TEXTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
    "logs": "logs",
}
# A block that is no text, as it is named.
MEDIA: Final = {
    "image": "an image",
    "image_url": "an image",
    "input_image": "an image",
    "computer_screenshot": "an image",
    "input_audio": "a sound",
    "audio": "a sound",
    "file": "a file",
    "input_file": "a file",
    "document": "a document",
    "container_upload": "a file",
    "video_url": "a video",
}
THOUGHTS: Final = {"thinking": "thinking", "reasoning": "reasoning", "redacted_thinking": "data"}
CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULTS: Final = frozenset(
    (
        *("tool_result", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result"),
        *("code_execution_tool_result", "bash_code_execution_tool_result"),
        *("text_editor_code_execution_tool_result", "tool_search_tool_result"),
    )
)

ARGUMENTS_INVALID: Final = NoteKind(
    code="chat.arguments-invalid",
    severity="warning",
    group="malformed",
    about="The arguments of a call are a text that is no JSON, or one cut short; the text is kept as it is.",
    cites="OpenAI Chat Completions, tool_calls.function.arguments",
)
NAME_MISSING: Final = NoteKind(
    code="chat.tool-unnamed",
    severity="warning",
    group="protocol",
    about="A call names no tool.",
)
CALL_ID_MISSING: Final = NoteKind(
    code="chat.call-id-missing",
    severity="warning",
    group="protocol",
    about="The result of a tool names no call, so that nobody can say what it answers.",
)
TOOL_FAILED: Final = NoteKind(
    code="chat.tool-failed",
    severity="notice",
    group="protocol",
    about="A tool ran and failed: its result says so.",
)
OTHER_SHAPE: Final = NoteKind(
    code="chat.other-shape",
    severity="info",
    group="undecoded",
    about="Something within a transcript has a form that is not known here; it is shown as it stands.",
)
NOTES: Final = (ARGUMENTS_INVALID, NAME_MISSING, CALL_ID_MISSING, TOOL_FAILED, OTHER_SHAPE)


def read_text(value: Any) -> str | None:
    """A text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def find_value(value: Any, *keys: str) -> Any:
    """What stands below these keys; None where one of them leads nowhere."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def say_value(draft: Draft, value: Any, path: Path) -> None:
    """A value: texts and what has members are carried, the rest is as JSON writes it."""
    if isinstance(value, (str, dict, list)):
        draft.carry(path)
    else:
        draft.say(say_scalar(value), path)


def say_content(draft: Draft, content: Any, path: Path) -> None:
    """A content of a message or a result: its texts are carried, media are named by kind and size."""
    if isinstance(content, list) and content:
        for index, block in enumerate(content):
            draft.say(" and " if index else "")
            say_block(draft, block, (*path, index))
    elif content in (None, "", [], {}):
        draft.say("nothing", path)
    else:
        say_block(draft, content, path)


def say_block(draft: Draft, block: Any, path: Path) -> None:
    """One block of a content."""
    kind = find_value(block, "type")
    key = TEXTS.get(kind) if isinstance(kind, str) else None
    if key and isinstance(block.get(key), str):
        draft.say("a refusal, " if kind == "refusal" else "").carry((*path, key))
        say_values(draft, block[key], (*path, key))
    elif isinstance(kind, str) and kind in MEDIA:
        draft.say(_name_media(block, MEDIA[kind]), path)
    elif isinstance(kind, str):
        draft.say(f"content of the kind {say_name(kind)}: ").carry(path)
        draft.note(OTHER_SHAPE, "this kind of content is not known here: shown as it stands", path)
    else:
        say_value(draft, block, path)
        say_values(draft, block, path)


def _name_media(block: dict[str, Any], words: str) -> str:
    """What is no text, by its kind, its type and its size in bytes, or by its name or address; never its data."""
    places = (
        block,
        block.get("source"),
        *(block.get(key) for key in ("image_url", "input_audio", "file", "video_url")),
    )
    about: list[str] = []
    for held in places:
        held = {"url": held} if isinstance(held, str) else held if isinstance(held, dict) else {}
        for key in ("media_type", "format", "filename", "title", "file_id", "url", "image_url", "data", "file_data"):
            value = read_text(held.get(key))
            if value is None:
                continue
            if value.startswith("data:"):
                media_type, _, value = value[5:].partition(",")
                about.append(say_name(media_type.partition(";")[0]))
                key = "data"
            if key in ("data", "file_data"):
                size = len(value) * 3 // 4 - len(value[-2:]) + len(value[-2:].rstrip("="))
                about.append(f"{size:,} bytes")
            else:
                about.append(quote(value) if key in ("url", "image_url") else say_name(value))
    return f"{words} ({', '.join(dict.fromkeys(about))})" if about else words


_RULES: Final = Rules(max_depth=64, allows_controls=True)
# Keys that say the same, by the name of the record; the first that is given stands.
_COLUMNS: Final = {
    "message_id": ("uuid", "id", "message_id"),
    "conversation_id": ("sessionId", "session_id", "conversation_id", "group_id", "thread_id", "conversation"),
    "trace_id": ("trace_id",),
    "parent_id": ("parentUuid", "parent_id", "previous_response_id"),
    "sent_at_raw": ("timestamp", "started_at", "created_at", "created"),
}


def read_columns(data: Mapping[str, Any]) -> dict[str, Any]:
    """Ids and time that an object says of itself, by the names of a message."""
    columns: dict[str, Any] = {}
    for name, keys in _COLUMNS.items():
        for key in keys:
            value = data.get(key)
            if key == "conversation" and isinstance(value, dict):
                value = value.get("id")
            if name == "sent_at_raw" and isinstance(value, (int, float)) and not isinstance(value, bool):
                value = write(value)
            if read_text(value):
                columns[name] = value
                break
    if "sent_at_raw" in columns:
        columns["sent_at"] = instant_of_log(columns["sent_at_raw"])
    return columns


def read_json(text: str) -> Any:
    """The value of a text that is one JSON value.

    Raises:
        JsonError: if it is none, or something follows it.
    """
    loaded = load(text, 0, _RULES)
    if text[loaded.end :].strip():
        raise JsonError("syntax", loaded.end, "something follows the value")
    return loaded.data


class Turn:
    """One turn of a speaker, of which drafts are made: what they say, and each call and result by itself.

    Args:
        path: of the object that is the turn.
        columns: ids, time and sender of the turn; its own id is the first draft's alone.
        aside: words behind the speaker, in brackets.
        again: the id by which several lines are one turn.
    """

    def __init__(
        self, role: Role, path: Path, columns: Mapping[str, Any], *, aside: str = "", again: str | None = None
    ) -> None:
        self.role, self.path, self.columns = role, path, dict(columns)
        self.drafts: list[Draft] = []
        self._aside, self._again = aside, again

    def begin(
        self, performative: str, native_act: str, otherwise: str | None = None, path: Path | None = None, **columns: Any
    ) -> Draft:
        """A new draft that begins with its speaker."""
        given = {**self.columns, **{name: value for name, value in columns.items() if value is not None}}
        draft = Draft(performative, native_act, **given)
        draft.say_sender(otherwise or self.role.speaker, self.path if path is None else path).say(self._aside)
        if self._again is not None and not self.drafts:
            draft.recall("chat-turn", self._again, "", self.path)
            words = f" (going on with the turn {say_name(self._again)})"
            draft.establish("chat-turn", self._again, words)
        self.columns.pop("message_id", None)
        self.drafts.append(draft)
        return draft

    def read_content(self, content: Any, path: Path) -> None:
        """Make drafts of a content: a text, or blocks of any kind."""
        waiting: list[tuple[Path, Any]] = []
        for index, block in enumerate(content) if isinstance(content, list) else ():
            kind = find_value(block, "type")
            kind = kind if isinstance(kind, str) else ""
            if kind in THOUGHTS or kind in CALLS or kind in RESULTS:
                self._say(waiting)
                waiting = []
                self._read_block(kind, block, (*path, index))
            else:
                waiting.append(((*path, index), block))
        if not isinstance(content, list) and content not in (None, ""):
            waiting = [(path, content)]
        self._say(waiting)

    def _read_block(self, kind: str, block: dict[str, Any], path: Path) -> None:
        if kind in THOUGHTS:
            self.think(block.get(THOUGHTS[kind]), (*path, THOUGHTS[kind]), kind, is_sealed=kind == "redacted_thinking")
        elif kind in CALLS:
            server = read_text(block.get("server_name"))
            self.call(block, path, kind, where=f" of the server {say_name(server)}" if server else "")
        else:
            error = block.get("is_error") is True or read_text(find_value(block, "content", "error_code"))
            self.answer(
                block.get("tool_use_id"),
                (*path, "tool_use_id"),
                block.get("content"),
                (*path, "content"),
                kind,
                failed_at=(*path, "is_error" if block.get("is_error") is True else "content") if error else None,
            )

    def _say(self, blocks: list[tuple[Path, Any]]) -> None:
        """What is said in texts and media, as one draft."""
        if not blocks:
            return
        if self.role.name == "tool":
            self.answer(None, self.path, [block for _, block in blocks], self.path, "tool")
            return
        content = blocks[0][1] if len(blocks) == 1 else [block for _, block in blocks]
        draft = self.begin(self.role.performative, self.role.name, content=content)
        draft.say(f" {self.role.says}: ")
        for index, (path, block) in enumerate(blocks):
            draft.say(" and " if index else "")
            say_block(draft, block, path)

    def think(self, thought: Any, path: Path, kind: str, *, is_sealed: bool = False) -> None:
        """Make a draft of reasoning; of what is sealed its size is said."""
        if thought in (None, "", []):
            return
        is_sealed = is_sealed and isinstance(thought, str)
        draft = self.begin("inform", kind, content=None if is_sealed else thought)
        if is_sealed:
            draft.say(f" reasons in what is encrypted ({len(thought):,} characters)", path)
        else:
            draft.say(" reasons: ")
            say_content(draft, thought, path)

    def call(
        self,
        data: Mapping[str, Any],
        path: Path,
        kind: str,
        keys: tuple[str, str, str] = ("name", "id", "input"),
        *,
        where: str = "",
        says: str = "calls",
        is_free: bool = False,
    ) -> Draft:
        """Make a draft of a call of a tool; `keys` lead to its name, its id and its arguments, as `function.name`.

        Its arguments need be no JSON where they are `is_free`.
        """
        steps = [key.split(".") for key in keys]
        name, own, given = ((find_value(data, *each), (*path, *each)) for each in steps)
        return self.draft_call(kind, name, own, given, where=where, says=says, is_free=is_free)

    def draft_call(
        self,
        kind: str,
        name: tuple[Any, Path],
        own: tuple[Any, Path],
        given: tuple[Any, Path],
        *,
        where: str = "",
        says: str = "calls",
        is_free: bool = False,
    ) -> Draft:
        """The same of a call whose name, id and arguments stand apart, each with its path."""
        (_, name_at), (_, id_at), (held, input_at) = name, own, given
        topic, correlation = read_text(name[0]), read_text(own[0])
        arguments, is_read = (held or None, True) if is_free else _read_arguments(held)
        draft = self.begin(
            "request",
            kind,
            correlation_id=correlation,
            topic=topic,
            content=arguments,
            attributes={"tool": topic} if topic else None,
        )
        if topic:
            draft.say(f" {says} the tool ").say(say_name(topic), name_at)
            draft.called = (topic, name_at, False)
        else:
            draft.say(f" {says} a tool that it does not name").note(NAME_MISSING, "the call names no tool", self.path)
        draft.say(where)
        if correlation:
            draft.say(" (call ").say(say_name(correlation), id_at).say(")")
            draft.establish("chat-call", correlation, f"its call of {say_name(topic)}" if topic else "a call")
        _say_arguments(draft, held, arguments, input_at, is_read=is_read)
        return draft

    def answer(
        self,
        call_id: Any,
        id_path: Path,
        content: Any,
        path: Path,
        kind: str,
        *,
        failed_at: Path | None = None,
        name: str | None = None,
    ) -> Draft:
        """Make a draft of what a tool gave back; `failed_at` is the path of what says that it failed."""
        parent = read_text(call_id)
        failed_at = failed_at or (path if says_failure(content) else None)
        error = Failure(message=_first_text(content)) if failed_at is not None else None
        draft = self.begin(
            "failure" if error else "done",
            kind,
            f"The tool {say_name(name)}" if name else "The tool",
            parent_id=parent,
            content=content,
            topic=name,
            error=error,
        )
        draft.say(" says that it failed to do what was asked" if error else " answers", failed_at)
        if parent:
            say_call(draft, parent, id_path)
        else:
            draft.columns.pop("parent_id", None)
            draft.note(CALL_ID_MISSING, "the result names no call: what it answers is not known", self.path)
        draft.say(": ")
        say = say_value if error and isinstance(content, dict) else say_content
        say(draft, content, path)
        if failed_at is not None:
            draft.note(TOOL_FAILED, "the tool ran and failed", failed_at)
        return draft


def say_call(draft: Draft, call_id: str, path: Path) -> None:
    """The call that is answered, by its id and as it was told."""
    draft.say(" (call ").say(say_name(call_id), path).say(", ")
    draft.recall("chat-call", call_id, "which is not known here", path).say(")")


def fill_columns(drafts: list[Draft], around: Mapping[str, Any]) -> list[Draft]:
    """The drafts with what stands around them and they do not say."""
    for draft in drafts:
        draft.columns = {**{name: value for name, value in around.items() if value}, **draft.columns}
    return drafts


def _read_arguments(given: Any) -> tuple[Any, bool]:
    """The arguments of a call, and whether a text of them is JSON."""
    if not isinstance(given, str) or not given.strip():
        return given or None, True
    try:
        return read_json(given), True
    except JsonError:
        return given, False


def _say_arguments(draft: Draft, given: Any, arguments: Any, path: Path, *, is_read: bool) -> None:
    if not is_read:
        draft.say(", with arguments that are no whole JSON: ").carry(path)
        draft.note(ARGUMENTS_INVALID, "the arguments are no JSON, or cut short: kept as the text they are", path)
        return
    if not isinstance(arguments, dict):
        if arguments is not None:
            draft.say(" with ")
            say_value(draft, given, path)
        return
    if isinstance(given, str):
        draft.open(path)
    for index, (name, at, value) in enumerate(list_values(arguments, path)):
        draft.say(" with " if index == 0 else ", ").say(f"{name} = ", at)
        say_value(draft, value, at)


def _first_text(content: Any) -> str | None:
    if isinstance(content, dict):
        said = (content.get("message"), content.get("error"), find_value(content, "error", "message"))
        return next(filter(None, map(read_text, said)), None)
    if isinstance(content, str):
        return content
    texts = (find_value(block, "text") for block in content) if isinstance(content, list) else ()
    return next((text for text in texts if isinstance(text, str)), None)
