"""What an object of A2A is, by its members: a message, a task, one of its events, a card, or where news is sent; a
value with the path to it, and its members, in camel case or in snake; and parts in words: texts and data are carried,
files named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from .._draft import Draft
from .._english import join_words, quote, say_name
from .._json import Path
from .._jsonrpc import say_values
from .tables import STATES, read_state

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Spot(NamedTuple):
    """A value and where it stands; None where a path leads nowhere."""

    value: Any
    path: Path = ()

    def at(self, *names: str) -> Spot:
        """The member under these names, each in its way of writing; of what is no object a member is absent."""
        spot = self
        for name in names:
            held = spot.value if isinstance(spot.value, dict) else {}
            snake = _HUMP.sub("_", name).lower()
            key = snake if name not in held and snake in held else name
            spot = Spot(held.get(key), (*spot.path, key))
        return spot

    @property
    def items(self) -> Iterator[Spot]:
        """The items of a list; of anything else none."""
        for index, value in enumerate(self.value if isinstance(self.value, list) else ()):
            yield Spot(value, (*self.path, index))

    @property
    def text(self) -> str | None:
        """The value where it is a text with anything in it."""
        return self.value if isinstance(self.value, str) and self.value else None

    @property
    def members(self) -> dict[str, Any]:
        """The value where it is an object, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    def find(self, *names: str) -> str | None:
        """The first text among the members of these names."""
        return next((text for name in names if (text := self.at(name).text) is not None), None)


ROLES: Final = {"user": "user", "agent": "agent", "ROLE_USER": "user", "ROLE_AGENT": "agent"}
_DOMAIN: Final = "a2a-protocol.org"
# What the types of errors begin with where HTTP carries them as RFC 9457 has it.
PROBLEMS_AT: Final = f"https://{_DOMAIN}/errors/"
# What version 1.0 puts around an answer or an event, by the one member that it has.
WRAPPERS: Final = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
}


def find_shape(spot: Spot) -> str | None:
    """The kind of an object as version 0.3 names it, also card, config, configs, tasks, error or problem; None for any
    other."""
    held = spot.members
    if not held:
        # Version 0.3 answers with a bare list of them.
        listed = list(spot.items)
        return "configs" if listed and all(find_shape(item) == "config" for item in listed) else None
    if _is_message(spot):
        return "message"
    if held.keys() == {"error"} and is_error(spot.at("error")):
        return "error"
    if is_problem(spot):
        return "problem"
    if isinstance(spot.at("artifact", "parts").value, list) and spot.find("taskId", "id"):
        return "artifact-update"
    if has_state(spot):
        if held.get("kind") in ("task", "status-update"):
            return str(held["kind"])
        is_event = spot.find("taskId") or isinstance(held.get("final"), bool)
        return "status-update" if is_event else "task" if spot.find("id") else None
    is_card = isinstance(held.get("skills"), list) and isinstance(held.get("capabilities"), dict)
    if is_card and spot.find("name") and (spot.find("url") or spot.at("supportedInterfaces").value):
        return "card"
    if spot.find("taskId", "id") and (spot.at("pushNotificationConfig", "url").text or is_config(spot)):
        return "config"
    for name, inner in (("configs", "config"), ("tasks", "task")):
        items = list(spot.at(name).items)
        if items and all(find_shape(item) == inner for item in items):
            return name
    return "tasks" if spot.at("tasks").value == [] and _is_page(spot) else None


def is_error(spot: Spot) -> bool:
    """Whether an error names A2A as whose it is, as version 1.0 has them in JSON-RPC and in the bodies of HTTP."""
    details = (item for name in ("details", "data") for item in spot.at(name).items)
    return is_problem(spot.at("data")) or any(item.at("domain").value == _DOMAIN for item in details)


def is_problem(spot: Spot) -> bool:
    """Whether it is an error of HTTP (RFC 9457) whose type is A2A's."""
    return str(spot.at("type").value).startswith(PROBLEMS_AT)


def _is_page(spot: Spot) -> bool:
    """Whether it says which page of a list it is, with all that version 1.0 demands for that."""
    sizes = (spot.at(name).value for name in ("pageSize", "totalSize"))
    return isinstance(spot.at("nextPageToken").value, str) and all(type(size) is int for size in sizes)


def is_config(spot: Spot) -> bool:
    """Whether it is a place where news of a task is sent, as version 1.0 writes it."""
    return bool(spot.find("taskId") and spot.find("url"))


def has_state(spot: Spot) -> bool:
    """Whether it has the status of a task, in a state that is known, unless it names its kind."""
    state = spot.at("status", "state").text
    is_named = spot.members.get("kind") in ("task", "status-update")
    return state is not None and (is_named or read_state(state) in STATES)


def unwrap(spot: Spot) -> Spot:
    """What version 1.0 puts around an answer or an event, taken off."""
    if len(spot.members) == 1:
        for name, shape in WRAPPERS.items():
            inner = spot.at(name)
            if inner.members and find_shape(inner) == shape:
                return inner
    return spot


def find_request(spot: Spot) -> Spot | None:
    """The message in the body of a request to send it, as HTTP carries it without JSON-RPC."""
    inner = spot.at("message")
    is_asked = _is_message(inner) and ROLES.get(str(inner.at("role").value)) == "user"
    return inner if is_asked and not spot.members.keys() - {"message", "configuration", "metadata", "tenant"} else None


def find_version(spot: Spot) -> str | None:
    """The version whose way of writing an object shows; None where it may be any."""
    text: Any = spot.find("role") or spot.at("status", "state").text or ""
    if text.startswith(("ROLE_", "TASK_STATE_")):
        return "1.0"
    if spot.find("kind"):
        return "0.3"
    return "0.1" if spot.find("sessionId") else None


def _is_message(spot: Spot) -> bool:
    """A message names its role and its id; examples of the specifications leave out one of them where the other way of
    writing says enough."""
    if not isinstance(spot.at("parts").value, list):
        return False
    role, is_named = spot.at("role"), spot.members.get("kind") == "message"
    if role.text not in ROLES:
        return is_named and role.value is None and spot.find("messageId") is not None
    return is_named or bool(spot.find("messageId")) or str(role.text).startswith("ROLE_")


def say_parts(draft: Draft, parts: Spot) -> None:
    """What a list of parts holds, in any generation's way of writing."""
    items = list(parts.items)
    if not items:
        draft.say("nothing", parts.path)
    for index, part in enumerate(items):
        if index:
            draft.say(" and ")
        _say_part(draft, part)


def _say_part(draft: Draft, part: Spot) -> None:
    held = part.at("text") if isinstance(part.at("text").value, str) else part.at("data")
    if held.value is not None:
        say_values(draft.carry(held.path), held.value, held.path)
    else:
        file = part.at("file") if part.at("file").members else part
        about = [text for text in (file.find("name", "filename"), file.find("mimeType", "mediaType")) if text]
        address = file.find("uri", "url")
        is_file = address or about or file.at("bytes").text or file.at("raw").text
        words = ", ".join(quote(text) for text in about) if about else "without a name"
        place = f", at the address {quote(address)}" if address else ""
        draft.say(f"a file ({words}{place})" if is_file else "a part of an unknown kind", part.path)


def read_content(parts: Spot) -> Any:
    """The text of a single part of text, else the parts as they are."""
    items = list(parts.items)
    text = items[0].at("text").value if len(items) == 1 else None
    return text if isinstance(text, str) else parts.value


def read_columns(spot: Spot) -> dict[str, Any]:
    """The ids that a message of A2A bears, and the tasks that it refers to."""
    refers = [item.text for item in spot.at("referenceTaskIds").items if item.text]
    return {
        "message_id": spot.find("messageId"),
        "conversation_id": spot.find("contextId", "sessionId"),
        "task_id": spot.find("taskId"),
        "content": read_content(spot.at("parts")),
        "attributes": {"referenceTaskIds": refers} if refers else {},
    }


def say_references(draft: Draft, spot: Spot) -> None:
    """The tasks that a message refers to."""
    names = [say_name(item.text) for item in spot.at("referenceTaskIds").items if item.text]
    if names:
        word = "task" if len(names) == 1 else "tasks"
        draft.say(f"; it refers to the {word} {join_words(names)}", spot.at("referenceTaskIds").path)
