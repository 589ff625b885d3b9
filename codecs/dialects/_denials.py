"""What a payload says against its act: a result that failed, an acknowledgement that refuses: the payload wins; and
what a tool gave back that says of itself that it failed, whatever its carrier says around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ._json import JsonError, Rules, load

# Where a result says in a word how it went.
OUTCOMES: Final = frozenset({"status", "state", "result", "outcome", "st"})
REFUSING: Final = frozenset({"rejected", "denied", "refused", "declined", "not accepted"})
FAILING: Final = (
    REFUSING
    | {"failed", "failure", "fail", "error", "errored", "unsuccessful", "incomplete", "blocked"}
    | {"cancelled", "canceled", "aborted", "timeout", "timed out", "not completed", "not done", "unfinished"}
)
_SUCCEEDING: Final = frozenset(
    {"ok", "success", "successful", "succeeded", "done", "completed", "complete", "finished"}
)
_FALSE: Final = frozenset({"false", "no"})
_TRUE: Final = frozenset({"true", "yes"})
MAX_DEPTH: Final = 3
_MAX_OBJECTS: Final = 100

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Denial:
    """What counts: words of an outcome, keys that deny where they are true, where they are false, and where filled."""

    words: frozenset[str]
    if_true: frozenset[str]
    if_false: frozenset[str]
    if_filled: frozenset[str] = frozenset()
    # Nothing else is looked at: most details have none of these.
    keys: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """What no one gives: the keys are those of all four."""
        object.__setattr__(self, "keys", OUTCOMES | self.if_true | self.if_false | self.if_filled)


FAILED: Final = Denial(
    words=FAILING,
    if_true=frozenset({"failed", "failure"}),
    if_false=frozenset({"success", "ok", "completed", "complete", "done", "succeeded"}),
    if_filled=frozenset({"error", "errors"}),
)
# In a part that succeeded an error is that of the rest.
FAILED_IN_WHOLE: Final = Denial(FAILED.words, FAILED.if_true, FAILED.if_false)
# Of what goes on, that it is not complete or waits for something is no failure.
FAILED_MEANWHILE: Final = Denial(
    words=FAILING - {"incomplete", "blocked", "not completed", "not done", "unfinished"},
    if_true=FAILED.if_true,
    if_false=frozenset({"success", "ok", "succeeded"}),
)
UNFINISHED: Final = Denial(
    words=frozenset({"pending", "waiting", "queued", "running", "in progress", "not started", "started", "working"}),
    if_true=frozenset({"pending"}),
    if_false=frozenset(),
)
SUCCEEDED: Final = Denial(words=_SUCCEEDING, if_true=FAILED.if_false, if_false=FAILED.if_true)
REFUSED: Final = Denial(
    words=REFUSING,
    if_true=frozenset({"declined", "rejected", "refused"}),
    if_false=frozenset({"accepted", "accept", "ok", "success"}),
)


def fold_status(value: Any) -> str:
    """A status as the words above are written: `Timed_Out` is `timed out`."""
    return " ".join(value.lower().replace("_", " ").replace("-", " ").split()) if isinstance(value, str) else ""


def find_denial(details: Mapping[str, Any], denial: Denial, depth: int = MAX_DEPTH) -> Place | None:
    """Where details say so, as the keys and numbers on the way there; None where they do not."""
    keys = denial.keys
    for key, value in details.items():
        kind = type(value)
        if depth and (kind is dict or kind is list):
            look = find_denial if kind is dict else _find_in_all
            if inner := look(value, denial, depth - 1):
                return (key, *inner)
        if key not in keys:
            continue
        is_denied = False
        if kind is str:
            folded = fold_status(value)
            is_denied = (
                (key in OUTCOMES and folded in denial.words)
                or (key in denial.if_false and folded in _FALSE)
                or (key in denial.if_true and folded in _TRUE)
            )
        elif kind is bool:
            is_denied = key in (denial.if_true if value else denial.if_false)
        if is_denied or (value and key in denial.if_filled):
            return (key,)
    return None


def _find_in_all(values: list[Any], denial: Denial, depth: int) -> Place | None:
    first: Place | None = None
    for number, value in enumerate(values[:_MAX_OBJECTS]):
        found = find_denial(value, denial, depth) if type(value) is dict else None
        if found is None:
            return None
        first = first or (number, *found)
    return first if len(values) <= _MAX_OBJECTS else None


_RULES: Final = Rules(max_depth=64, allows_controls=True)
_SUCCESS: Final = ("success", "ok")
_FAILURE: Final = ("isError", "is_error")


def says_failure(content: Any) -> bool:
    """Whether a result is an object, or a text of one, alone or as the only block, whose members say that it failed.

    These are an `error` with anything in it, a `success` or `ok` that is false, and the status "error". What says that
    it succeeded is believed.
    """
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    if isinstance(content, str):
        if content.lstrip()[:1] != "{":
            return False
        try:
            loaded = load(content, 0, _RULES)
        except JsonError:
            return False
        content = None if content[loaded.end :].strip() else loaded.data
    if not isinstance(content, dict) or any(content.get(key) is True for key in _SUCCESS):
        return False
    error, status = content.get("error"), content.get("status")
    says_why = error is True or (isinstance(error, (str, dict)) and bool(error))
    says_so = any(content.get(key) is False for key in _SUCCESS) or any(content.get(key) is True for key in _FAILURE)
    return says_why or says_so or (isinstance(status, str) and status.lower() == "error")
