"""What stands before a statement and sets something (definitions, namespaces, versions, groups, trust), what is in
force when one is told, and what it establishes for those after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from .._context import Context
from .._english import join_words, quote, say_name
from .._record import Entry, Message, Note
from .blocks import Node, definitions_of, parse_block, plain_value
from .notes import DEFINED_OTHERWISE
from .protocol import CONTEXT_KEYS
from .statements import Item, Part
from .vocabulary import NEWEST, load_vocabulary
from .wording import say_text
from .words import Scope


class Setting(NamedTuple):
    """One thing that is set: its kind, its name, its value, the value as written, and where it stands."""

    kind: str
    name: str
    value: Any
    raw: str
    start: int
    end: int


_ITEM_KINDS = frozenset({"domain", "vocabulary", "chunk", "signature", "trust", "inline"})


def read_settings(text: str, part: Part) -> list[Setting]:
    """Everything that a statement's items set, in the order of the wire."""
    found: list[Setting] = []
    for item in part.items:
        if item.kind == "block":
            found.extend(read_block(text, item))
        elif item.kind == "header":
            version, act, identity = item.data
            found.append(Setting("version", "", version, version, item.start, item.end))
            if act:
                found.append(Setting("handshake", act, version, act, item.start, item.end))
            if identity:
                found.append(Setting("id", "", identity, identity, item.start, item.end))
        elif item.kind == "broken-header":
            found.append(Setting(item.kind, "", item.data, item.data, item.start, item.end))
        elif item.kind in _ITEM_KINDS:
            kind = "reference" if item.kind == "vocabulary" else item.kind
            found.append(Setting(kind, "", item.data, text[item.start : item.end], item.start, item.end))
    return found


def read_block(text: str, item: Item) -> list[Setting]:
    """What a `{…}` block sets, key by key."""
    block = parse_block(text, item.start, item.end)
    found = [Setting("def", name, plain_value(value), value.text, *at) for name, value, at in definitions_of(block)]
    names = {name for name, *_ in definitions_of(block)}
    members: Node | None = None
    for entry in block.items:
        if entry.kind != "pair":
            found.append(Setting("other", "", plain_value(entry), entry.text, entry.start, entry.end))
            continue
        value = entry.items[0]
        place = (entry.start, entry.end)
        if entry.key == "def" and entry.text == ":":
            if value.kind not in ("pair", "block"):
                found.append(Setting("ctx", "def", plain_value(value), value.text, *place))
        elif entry.key in names and entry.text == "=":
            continue
        elif entry.key == "ctx" and value.text[:1] == "v" and value.text[1:2].isdigit():
            found.append(Setting("version", "ctx", value.text[1:], value.text[1:], *place))
        elif entry.key == "mbr":
            members = value
            found.append(Setting("members", "", plain_value(value), value.text, *place))
        else:
            found.append(Setting(_KINDS_SET.get(entry.key, "other"), entry.key, plain_value(value), value.text, *place))
    if members is not None:
        listed = plain_value(members)
        for index, setting in enumerate(found):
            if setting.kind == "group":
                found[index] = setting._replace(name=str(setting.value), value=listed)
    return sorted(found, key=lambda setting: setting.start)


_KINDS_SET = {
    "ns": "ns",
    "topic": "topic",
    "v": "version",
    "ver": "version",
    "id": "id",
    "ctx": "ctx",
    "t": "time",
    "grp": "group",
    "auth": "auth",
    "enc": "enc",
    "trust": "trust-level",
    "vocab": "vocabulary",
}


def is_data(text: str, part: Part) -> bool:
    """Whether a statement is nothing but a block of data: no key of it sets any context."""
    blocks = [item for item in part.items if item.kind == "block"]
    if part.form != "context" or not blocks:
        return False
    if any(item.kind not in ("block", "label", "speaker", "address", "relay", "trust") for item in part.items):
        return False
    keys = {entry.key for item in blocks for entry in parse_block(text, item.start, item.end).items}
    return bool(keys - {""}) and not keys & CONTEXT_KEYS.keys()


class Standing:
    """The conversation's settings as a record is told, statement by statement.

    What a statement sets holds for itself and for all after it, in this record and, through `entries`, in the
    conversation. A reset forgets what was set, here and in the context.
    """

    def __init__(self, context: Context, declared: str | None) -> None:
        self.context = context
        self.entries: list[Entry] = []
        self._own: dict[tuple[str, str], Entry] = {}
        # Most conversations define nothing: then no word need be looked up.
        self._has_definitions = self._has_domains = False
        spoken: Entry | None = None
        if context.size:
            self._has_definitions = context.knows("def")
            self._has_domains = any(context.find(kind, "active") is not None for kind in ("domain", "ns"))
            spoken = context.find("vocabulary", "active")
        self.is_declared = declared is not None or spoken is not None
        self.version = declared or (str(spoken.value) if spoken else NEWEST)
        self._undivided = _scope_of(self.version)
        self.vocabulary = self._undivided.vocabulary

    def find(self, kind: str, name: str) -> Entry | None:
        """The entry in force, from this record or from the conversation."""
        return self._own.get((kind, name)) or self.context.find(kind, name)

    def find_definition(self, word: str) -> Entry | None:
        """A sender's definition of a word."""
        return self.find("def", word)

    def establish(self, message: Message, settings: tuple[Setting, ...]) -> None:
        """Let what a statement sets hold from here on."""
        if not settings and message.native_act not in _FLOOR:
            return
        for setting in settings:
            kind = _KINDS.get(setting.kind)
            if kind is None:
                continue
            if setting.kind == "domain" and setting.value == "*":
                self._reset()
                continue
            name = setting.name if kind in ("def", "group", "setting", "context") and setting.name else "active"
            self._add(kind, name, setting.value, message)
        if message.native_act in _FLOOR:
            self._add("floor", message.sender or "", message.native_act, message)

    def note_clashes(self, settings: tuple[Setting, ...]) -> Iterator[Note]:
        """That a word is defined otherwise before, by each speaker; asked before `establish`."""
        for setting in settings:
            if setting.kind != "def":
                continue
            own = self._own.get(("def", setting.name))
            held = [own] if own is not None else self.context.find_each("def", setting.name)
            # Who says again what holds changes nothing.
            if held and held[-1].value != setting.value:
                others = [entry for entry in held if entry.value != setting.value]
                told = join_words([self._say_definition(entry) for entry in others[-_MAX_CLASHES:]])
                text = f"{quote(setting.name)} was defined otherwise before, by {told}"
                yield DEFINED_OTHERWISE.note(text, (0, setting.start, setting.end))

    def _say_definition(self, entry: Entry) -> str:
        who = say_name(entry.speaker) if entry.speaker else "somebody"
        is_here = entry.source is not None and entry.source[0] == self.context.record
        where = f"in part {entry.source[1]} of this record" if is_here and entry.source else _say_place(entry)
        meaning = str(entry.value)
        cut = quote(meaning) if len(meaning) <= _MAX_CLASH_LENGTH else f"{quote(meaning[:_MAX_CLASH_LENGTH])} …"
        return f"{who} {where} as {cut}"

    def _add(self, kind: str, name: str, value: Any, message: Message) -> None:
        entry = Entry(
            kind=kind,
            name=name,
            value=value,
            speaker=message.sender,
            source=(self.context.record, message.part),
            position=self.context.position,
        )
        self.entries.append(entry)
        self._has_definitions = self._has_definitions or kind == "def"
        self._has_domains = self._has_domains or kind in ("domain", "ns")
        self._own[kind, name] = entry

    def _reset(self) -> None:
        for kind in ("domain", "ns"):
            self.context.remove(kind)
            self._own.pop((kind, "active"), None)
            self.entries = [entry for entry in self.entries if entry.kind != kind]

    def say_origin(self, entry: Entry, part: int) -> str:
        """Whose definition a word has and where it was given: `as defined by oscar in message 3`.

        Another speaker's definition that says otherwise is told beside it, though it holds no longer.
        """
        who = f" by {entry.speaker}" if entry.speaker else ""
        if entry.source == (self.context.record, part):
            said = "as defined here"
        elif entry.source is not None and entry.source[0] == self.context.record:
            said = f"as defined{who} in part {entry.source[1]} of this record"
        else:
            said = f"as defined{who} {_say_place(entry)}"
        for other in self.context.find_each(entry.kind, entry.name):
            if other.speaker != entry.speaker and other.value != entry.value:
                said += f"; {other.speaker or 'somebody'} defined it as {say_text(other.value)} {_say_place(other)}"
        return said

    def scope(self, inline: str | None) -> Scope:
        """What words mean now: the domain of the statement itself first, then `@D`, then the namespaces."""
        if inline is None and not self._has_domains:
            if not self._has_definitions:
                return self._undivided
            return Scope(self.vocabulary, (), self.find_definition)
        names: list[str] = [inline] if inline else []
        for kind in ("domain", "ns"):
            held = self.find(kind, "active")
            if held is not None:
                values = held.value if isinstance(held.value, list) else [held.value]
                names.extend(str(value) for value in values)
        domains = tuple(dict.fromkeys(self.vocabulary.names.get(name, name) for name in names))
        if not self._has_definitions:
            return Scope(self.vocabulary, domains)
        return Scope(self.vocabulary, domains, self.find_definition)


def _say_place(entry: Entry) -> str:
    return f"in message {entry.position}" if entry.position is not None else "earlier"


@lru_cache(maxsize=64)
def _scope_of(version: str) -> Scope:
    """What words mean in a release where nothing else is in force."""
    return Scope(load_vocabulary(version))


# So many definitions by others are named, and so much of each.
_MAX_CLASHES: Final = 3
_MAX_CLASH_LENGTH: Final = 80
_FLOOR = frozenset({">>", "<<", "><", "--"})
_KINDS = {
    "def": "def",
    "ns": "ns",
    "topic": "topic",
    "domain": "domain",
    "version": "vocabulary",
    "handshake": "session",
    "group": "group",
    "ctx": "context",
    "other": "setting",
}
