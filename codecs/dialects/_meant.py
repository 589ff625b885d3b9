"""Which statements are meant by an answer that names an id, where several bear it.

An object may be named as often as one likes, and its latest statement is meant. A number that a sender gave to a
statement names that one: where it was given to another one too, what answers it may mean either. The same said again is
no other one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ._record import Message
from ._value import to_json_type

# What makes a numbered statement another one. Whether it is said again (a retry), and how it is signed, does not.
_CONTENT = ("native_act", "target", "receivers", "content", "schedule", "condition", "attributes")
OF_FORM = frozenset({"signature", "payload_raw"})


class Bearer(Protocol):
    """A statement that bears the id."""

    @property
    def sender(self) -> str | None:
        """Who said it."""

    @property
    def receivers(self) -> Sequence[str]:
        """To whom, by name."""


_Bearer = TypeVar("_Bearer", bound=Bearer)


def find_meant(
    bearers: Sequence[_Bearer],
    *,
    sender: str | None,
    receivers: Sequence[str],
    get_content: Callable[[_Bearer], object],
) -> Sequence[_Bearer]:
    """The bearers that an answer may mean: one, or the latest of each that is another statement.

    Those of anyone else come first, of them what was said to the sender of the answer or to nobody by name, and of that
    what was said by those to whom it speaks.

    Args:
        bearers: the statements, the latest last.
        sender: of the answer.
        receivers: of the answer.
        get_content: what stands for what a bearer says; nothing where the id is that of an object.
    """
    found: Sequence[_Bearer] = [each for each in bearers if each.sender != sender] or bearers
    found = [each for each in found if not each.receivers or sender in each.receivers] or found
    found = [each for each in found if each.sender in receivers] or found
    latest: dict[object, _Bearer] = {}
    for each in found:
        content = get_content(each)
        key = (each.sender, content) if content else None
        latest.pop(key, None)
        latest[key] = each
    several = [each for key, each in latest.items() if key is not None]
    return several if len(several) > 1 else found[-1:]


def write_content(message: Message) -> str:
    """What a numbered statement says, as a text that is the same where it is said again."""
    said: dict[str, Any] = {name: to_json_type(getattr(message, name)) for name in _CONTENT}
    said["attributes"] = {name: value for name, value in said["attributes"].items() if name not in OF_FORM}
    return json.dumps(said, sort_keys=True, separators=(",", ":"))
