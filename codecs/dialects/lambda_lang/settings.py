"""What stands before a statement and sets something: definitions, namespaces, versions, groups, trust."""

from __future__ import annotations

from typing import Any, NamedTuple

from .blocks import Node, definitions_of, parse_block, plain_value
from .protocol import CONTEXT_KEYS
from .statements import Item, Part


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
            found.append(Setting(_KINDS.get(entry.key, "other"), entry.key, plain_value(value), value.text, *place))
    if members is not None:
        listed = plain_value(members)
        for index, setting in enumerate(found):
            if setting.kind == "group":
                found[index] = setting._replace(name=str(setting.value), value=listed)
    return sorted(found, key=lambda setting: setting.start)


_KINDS = {
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
