"""Placing parameters in the record: which names of a message each value fills."""

from __future__ import annotations

import re
from typing import Any

from .._record import Message
from .parsing import Call
from .tables import WORK_PROTOCOLS

# The content of an inform that says that an action is done, or what came of it (SC00008I; SC00026H).
_DONE = re.compile(r"[\x00-\x20(]*+(?:done|result)(?=[\x00-\x20(])", re.IGNORECASE)


def message_of(call: Call, part: int) -> Message:
    """The message that a call is."""
    given: dict[str, Any] = {"part": part, "native_act": call.act.name if call.act else call.name}
    attributes: dict[str, Any] = {}
    others: dict[str, str] = {}
    agents: dict[str, dict[str, list[str]]] = {"addresses": {}, "identifiers": {}}
    for each in call.parameters:
        slot, value = each.slot, each.value
        if each.role == "unread" and each.node:
            attributes.setdefault("unread", {})[each.name.lower()] = each.node.value
        if each.role != "used" or value is None:
            continue
        if slot is None:
            others[each.name] = value.text
            continue
        names = tuple(dict.fromkeys(agent.name for agent in value.agents))
        filled: Any = value.text if value.moment is None else value.moment
        if slot.shape == "agent":
            filled = names[0]
        elif slot.shape == "agents":
            filled = [*names] if slot.is_attribute else names
        (attributes if slot.is_attribute else given)[slot.place] = filled
        for agent in value.agents:
            _add(agents["addresses"], agent.name, agent.addresses)
            _add(agents["identifiers"], agent.name, agent.rest)
    attributes |= {name: held for name, held in agents.items() if held}
    if others:
        attributes["parameters"] = others
    if attributes:
        given["attributes"] = attributes
    given["performative"] = _find_performative(call, attributes.get("protocol"), given.get("content"))
    return Message(**given, notes=call.notes)


def _add(held: dict[str, list[str]], name: str, said: tuple[str, ...]) -> None:
    if said:
        own = held.setdefault(name, [])
        own.extend(dict.fromkeys(each for each in said if each not in own))


def _find_performative(call: Call, protocol: str | None, content: str | None) -> str:
    if call.act is None:
        return "unknown"
    return "done" if call.act.name == "inform" and is_end(protocol, content) else call.act.performative


def is_end(protocol: str | None, content: str | None) -> bool:
    """Whether an inform is the end of work: by its protocol, or because its content says that something is done."""
    return (protocol or "").lower() in WORK_PROTOCOLS or _DONE.match(content or "") is not None
