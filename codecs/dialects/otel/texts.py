"""What was said within a span: the messages given to a model, an agent or a tool, and what came back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import add
from typing import Any, Final, NamedTuple

from .._carrier import RULES
from .._json import JsonError, Path, load_whole
from .._turns import ASSISTANT, OTHER_ROLES
from .spans import NOTHING, Event, Found, Span
from .tables import MESSAGE_EVENTS

# So many texts of a span are told; of a long history the last.
MAX_TEXTS: Final = 100
_INDEX = r"\.(\d{1,6})\.(?:message\.)?"
_TAIL: Final = re.compile(
    r"(?P<role>role)\Z|(?P<text>content|contents\.\d{1,6}\.message_content\.text)\Z|(?P<id>tool_call_id)\Z"
    r"|tool_calls\.(?P<call>\d{1,6})\.(?:tool_call\.)?(?:function\.)?(?P<of_call>name|arguments|id)\Z"
)
# Conventions that number their messages in the names of attributes: those given, and those that came back.
_NUMBERED: Final = tuple(
    (re.compile(re.escape(prefix) + _INDEX), is_output)
    for prefix, is_output in (
        ("gen_ai.prompt", False),
        ("llm.input_messages", False),
        ("gen_ai.completion", True),
        ("llm.output_messages", True),
    )
)
# Attributes that hold messages, or a plain text; the first that says anything counts.
_INSTRUCTIONS: Final = ("gen_ai.system_instructions",)
_GIVEN: Final = ("gen_ai.tool.call.arguments", "gen_ai.input.messages", "gen_ai.prompt", "tool.parameters")
_BACK: Final = ("gen_ai.tool.call.result", "gen_ai.output.messages", "gen_ai.completion")
_GIVEN_OTHERWISE: Final = ("input.value", "traceloop.entity.input")
_BACK_OTHERWISE: Final = ("output.value", "traceloop.entity.output")

# What came back, by any name.
BACK: Final = (*_BACK, *_BACK_OTHERWISE)
# The tools that a request offers: a list of definitions, or one attribute or more for each.
_DEFINITIONS: Final = ("gen_ai.tool.definitions",)
_DEFINED: Final = re.compile(r"(?:llm\.tools\.\d{1,6}\.tool\.json_schema|llm\.request\.functions\.\d{1,6}\.name)\Z")


class Text(NamedTuple):
    """Something said: by which role, what kind of part it is (`text`, `call`, `response` or another), and where.

    Attributes:
        name: of what is called.
        opens: the path of the text of JSON in which it stands, if it stands in one.
        data: what stands there.
        named_at: the path of the name.
        id: of the call, be it made or answered.
        of: the path by which the parts of one message are known.
    """

    role: str | None
    kind: str
    path: Path | None
    name: str | None = None
    opens: Path | None = None
    data: Any = None
    named_at: Path | None = None
    id: Found = NOTHING
    of: Path = ()

    @property
    def is_answer(self) -> bool:
        """Whether the model itself has said it."""
        return OTHER_ROLES.get(self.role or "") is ASSISTANT


class Texts(NamedTuple):
    """All that was said within a span."""

    instructions: list[Text]
    given: list[Text]
    back: list[Text]

    def part(self) -> tuple[Texts, Texts]:
        """What earlier spans of the trace have said, up to what the model itself had answered last; and what is new:
        instructions are where it has not answered yet."""
        repeated = max((at for at, text in enumerate(self.given, start=1) if text.is_answer), default=0)
        if not repeated:
            return NO_TEXTS, self
        return Texts(self.instructions, self.given[:repeated], []), Texts([], self.given[repeated:], self.back)


NO_TEXTS: Final = Texts([], [], [])


def gather_texts(span: Span) -> Texts:
    """The texts of a span; of several forms that say the same the first counts: the present one, numbers, events."""
    events = [event for event in span.events if event.name.startswith("gen_ai.")]
    in_events = [_read_event(event) for event in events]
    otherwise = (_read_first(span.attributes, names) for names in (_GIVEN_OTHERWISE, _BACK_OTHERWISE))
    texts = Texts([], [], [])
    for form in (
        *_read_attributes(span.attributes),
        Texts(*(list(chain(*held)) for held in zip(*in_events, strict=True))) if in_events else NO_TEXTS,
        Texts([], *otherwise),
    ):
        for held, found in zip(texts, form, strict=True):
            held.extend(() if held else found)
    return texts


def _read_attributes(attributes: dict[str, Found]) -> tuple[Texts, Texts]:
    """The texts that attributes hold whole, and those whose messages are numbered."""
    numbered: tuple[list[Text], list[Text]] = ([], [])
    for pattern, is_output in _NUMBERED:
        numbered[is_output].extend(_read_numbered(attributes, pattern))
    whole = (_read_first(attributes, names) for names in (_INSTRUCTIONS, _GIVEN, _BACK))
    return Texts(*whole), Texts([], *numbered)


def _read_first(attributes: dict[str, Found], names: Sequence[str]) -> list[Text]:
    return next((said for name in names if name in attributes and (said := _read_messages(attributes[name]))), [])


def list_offered(span: Span) -> frozenset[str]:
    """The names of the tools that a request offers; empty also where not all of them can be read."""
    held = [span.find(*_DEFINITIONS), *(found for name, found in span.attributes.items() if _DEFINED.match(name))]
    names: list[str | None] = []
    for found in held:
        if found.data is None:
            continue
        data = found.data
        if isinstance(data, str) and data.lstrip()[:1] in ("[", "{"):
            try:
                data = load_whole(data, RULES).data
            except JsonError:
                data = None
        names.extend(map(_name_definition, data if isinstance(data, list) else [data]))
    return frozenset(filter(None, names)) if all(names) else frozenset()


def _name_definition(definition: Any) -> str | None:
    """The name of a tool's definition, as any of the interfaces of models writes it."""
    if isinstance(definition, str):
        return definition
    inner = definition.get("function", definition) if isinstance(definition, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def _read_event(event: Event) -> Texts:
    """The texts of an event: in its attributes, as those of a span, or as the one message that it is."""
    whole, numbered = _read_attributes(event.attributes)
    texts = Texts(*map(add, whole, numbered))
    role, is_output = MESSAGE_EVENTS.get(event.name, ("", False))
    called = event.attributes.get("id", NOTHING)
    said = event.attributes.get("content") or event.attributes.get("message")
    if said and isinstance(said.data, dict) and not {"content", "tool_calls"}.isdisjoint(said.data):
        # The role of the event's name is left out where it is the message's own.
        said = said._replace(data={"role": role, **said.data})
    for found in filter(None, (said, event.attributes.get("tool_calls")) if role else ()):
        for each in _read_messages(found):
            own = called if role == "tool" and each.id.data is None else each.id
            (texts.back if is_output else texts.given).append(each._replace(role=each.role or role, id=own))
    return texts


def _read_numbered(attributes: dict[str, Found], pattern: re.Pattern[str]) -> Iterator[Text]:
    numbered: dict[int, list[tuple[re.Match[str], Found]]] = {}
    for name, found in attributes.items():
        at = pattern.match(name)
        tail = _TAIL.match(name, at.end()) if at else None
        if at and tail and found.text:
            numbered.setdefault(int(at[1]), []).append((tail, found))
    for _, parts in sorted(numbered.items()):
        held = {tail.lastgroup: found for tail, found in parts}
        role, own, of = held.get("role", NOTHING).text, held.get("id", NOTHING), parts[0][1].path
        for tail, found in parts:
            if tail.lastgroup == "text":
                yield Text(role, "text", found.path, data=found.data, id=own, of=of)
        calls: dict[int, dict[str, Found]] = {}
        for tail, found in parts:
            if tail.lastgroup == "of_call":
                calls.setdefault(int(tail["call"]), {})[tail["of_call"]] = found
        for _, call in sorted(calls.items()):
            named, given, own = (call.get(key, NOTHING) for key in ("name", "arguments", "id"))
            name_at = named.path or None
            yield Text(role, "call", given.path or None, named.text, data=given.data, named_at=name_at, id=own, of=of)


def _read_messages(found: Found) -> list[Text]:
    """The messages of a value: of a list of them, or of a text of JSON that is one; any other text is one itself."""
    if not isinstance(found.data, str):
        listed = _list_texts(found.data, found.path)
        if listed or found.data in (None, {}, []):
            return listed
        return [Text(None, "text", found.path, data=found.data, of=found.path)]
    if found.data.lstrip()[:1] in ("[", "{"):
        try:
            inner = load_whole(found.data, RULES).data
        except JsonError:
            inner = None
        if listed := _list_texts(inner, found.path):
            return [text._replace(opens=found.path) for text in listed]
    return [Text(None, "text", found.path, data=found.data, of=found.path)] if found.data else []


def _list_texts(data: Any, path: Path) -> list[Text]:
    """The texts of messages or of their parts; none where any of them is neither."""
    items = [((*path, at), item) for at, item in enumerate(data)] if isinstance(data, list) else [(path, data)]
    if not all(isinstance(item, dict) and ("role" in item or _kind_of(item)) for _, item in items):
        return []
    return [text for at, item in items for text in _read_message(item, at)]


def _kind_of(part: dict[str, Any]) -> str | None:
    kind = part.get("type")
    return kind if isinstance(kind, str) and len(part) > 1 else None


def _read_message(message: dict[str, Any], path: Path) -> Iterator[Text]:
    role = message["role"] if isinstance(message.get("role"), str) else None
    if "role" not in message:
        yield from _read_part(message, path, role, path)
        return
    own = Found(message.get("tool_call_id"), (*path, "tool_call_id"))
    for key in ("parts", "content"):
        held = message.get(key)
        if isinstance(held, str) and held:
            yield Text(role, "text", (*path, key), data=held, id=own, of=path)
        for at, part in enumerate(held if isinstance(held, list) else ()):
            if isinstance(part, dict):
                yield from _read_part(part, (*path, key, at), role, path)
    calls = message.get("tool_calls")
    for at, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            yield _read_call(call, (*path, "tool_calls", at), role, path, "function")


def _read_part(part: dict[str, Any], path: Path, role: str | None, of: Path) -> Iterator[Text]:
    kind = _kind_of(part)
    if kind == "tool_call":
        yield _read_call(part, path, role, of)
    elif kind == "function" and isinstance(part.get("function"), dict):
        yield _read_call(part, path, role, of, "function")
    elif kind == "tool_call_response":
        key = next((key for key in ("response", "result", "content") if part.get(key) not in (None, "")), None)
        at, data = (None, None) if key is None else ((*path, key), part[key])
        yield Text(role, "response", at, data=data, id=Found(part.get("id"), (*path, "id")), of=of)
    else:
        key = next((key for key in ("content", "text") if isinstance(part.get(key), str) and part[key]), None)
        is_said = key is not None and kind in ("text", "reasoning", "output_text", "input_text")
        yield (
            Text(role, "text" if kind != "reasoning" else "thought", (*path, str(key)), data=part[str(key)], of=of)
            if is_said
            else Text(role, "other", path, kind, of=of)
        )


def _read_call(call: dict[str, Any], path: Path, role: str | None, of: Path, *below: str) -> Text:
    own, at = Found(call.get("id"), (*path, "id")), (*path, *below)
    for key in below:
        call = call[key]
    name, given = call.get("name"), call.get("arguments")
    is_given, is_named = given not in (None, "", {}), isinstance(name, str)
    return Text(
        role,
        "call",
        (*at, "arguments") if is_given else None,
        name if is_named else None,
        data=given,
        named_at=(*at, "name") if is_named else None,
        id=own,
        of=of,
    )
