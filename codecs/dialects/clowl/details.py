"""The details of a message: their texts and labels, and the checks of what each act demands of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from .._denials import (
    FAILED,
    FAILED_MEANWHILE,
    MAX_DEPTH,
    REFUSED,
    SUCCEEDED,
    UNFINISHED,
    Denial,
    Place,
    find_denial,
)
from .._english import quote, say_name
from .._json import Digits
from .._positions import Path
from .._record import NoteKind
from . import notes, tables
from .parts import Profile
from .tables import FIELDS

# What stands within these is found without their name: nobody looks for the task anywhere but in the body.
_UNSAID = frozenset({(), ("body",), ("body", "d"), ("semantic",), ("data",), ("semantic", "data")})


def say_field(path: Path) -> str:
    """A place in words: `the task`, `the key “x”`, `item 2 of the receiver`. The note's span shows where it is."""
    if not path:
        return "the message"
    step = path[-1]
    if isinstance(step, int):
        return f"item {step + 1} of {say_field(path[:-1])}"
    code = ".".join(str(step) for step in path)
    known = FIELDS.get(code) or FIELDS.get(code.removeprefix("semantic."))
    within = "" if path[:-1] in _UNSAID or (known and "." in code) else f" in {say_field(path[:-1])}"
    return f"the {known[0]}{within}" if known else f"the key {quote(step)}{within}"


# What a check has found: the kind of note, where, and in which words.
Found = tuple[NoteKind, Path, str]

_CODE = re.compile(r"E[0-9]{3}\Z|[A-Z0-9_]{3,32}\Z")


def describe_type(value: Any) -> str:
    """The JSON type of a value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Digits | int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a value is a JSON string."""
    return isinstance(value, str) and not isinstance(value, Digits)


def check_details(data: Mapping[str, Any], profile: Profile, base: Path) -> Iterator[Found]:
    """The demands that one act makes on its details (spec-v0.2 sections 4 and 7)."""
    path: Path = (*base, "data") if profile == "semantic" else ("body", "d")
    holder = data if profile == "semantic" else data.get("body")
    details = holder.get(path[-1]) if isinstance(holder, dict) else None
    act = data.get("p")
    if not is_text(act) or not isinstance(details, dict):
        return
    act = act.upper()
    if found := find_contradiction(act, details):
        own = (*path, *found[0])
        yield found[1].kind, own, f"it says {act}, and {say_field(own)} says {found[1].says}; the data count"
    if check := ACT_CHECKS.get(act):
        yield from check(details, path, profile)


def _check_failure(details: dict[str, Any], path: Path, profile: Profile) -> Iterator[Found]:
    for key in ("code", "msg"):
        if key not in details:
            yield notes.MISSING, path, f"{say_field((*path, key))} is missing"
        elif not is_text(details[key]):
            yield (
                notes.WRONG_TYPE,
                (*path, key),
                f"{say_field((*path, key))} is {describe_type(details[key])} and must be a text",
            )
    code, retry = details.get("code"), details.get("retry")
    if (
        is_text(code)
        and tables.name_error(str(code)) is None
        and not (profile == "semantic" and _CODE.match(str(code)))
    ):
        yield notes.ERROR_CODE, (*path, "code"), f"{say_name(code)} is in no table of error codes"
    if "retry" in details and not isinstance(retry, bool):
        own = (*path, "retry")
        yield notes.WRONG_TYPE, own, f"{say_field(own)} is {describe_type(retry)} and must be true or false"
    row = tables.ERROR_CODES.get(code) if is_text(code) else None
    if row is not None and isinstance(retry, bool) and retry != row.is_retryable:
        table = "may" if row.is_retryable else "may not"
        said = "true" if retry else "false"
        yield notes.RETRY_DISAGREES, (*path, "retry"), f"retry is {said}, and by the table {code} {table} be retried"


def _check_delegation(details: dict[str, Any], path: Path, profile: Profile) -> Iterator[Found]:
    if profile != "0.2":
        return
    own = (*path, "delegation_mode")
    if "delegation_mode" not in details:
        yield notes.DELEGATION_MODE, path, f"{say_field(own)} is missing"
    elif not (is_text(details["delegation_mode"]) and details["delegation_mode"] in tables.MODES):
        yield notes.DELEGATION_MODE, own, f"{say_field(own)} is none of transfer, fork and assist"


class Contradiction(NamedTuple):
    """What in the data denies an act, how deep it is looked for, what they then say, and the note."""

    denial: Denial
    depth: int
    says: str
    kind: NoteKind


# Ruling 12a: what the data say against the act wins. Below the first level of an error or of progress stands what else
# came of something.
_CONTRADICTIONS: dict[str, tuple[Contradiction, ...]] = {
    "ACK": (Contradiction(REFUSED, MAX_DEPTH, "that it does not accept", notes.ACK_REFUSING),),
    "DONE": (
        Contradiction(FAILED, MAX_DEPTH, "that it failed", notes.DONE_FAILING),
        Contradiction(UNFINISHED, 0, "that it is not done", notes.DONE_FAILING),
    ),
    "PROG": (Contradiction(FAILED_MEANWHILE, 0, "that it failed", notes.ACT_DENIED),),
    "ERR": (Contradiction(SUCCEEDED, 0, "that it did not fail", notes.ACT_DENIED),),
}
# The keys of details that can deny an act, wherever they stand.
DENYING_KEYS = {
    act: frozenset().union(*(each.denial.keys for each in several)) for act, several in _CONTRADICTIONS.items()
}


def find_contradiction(act: str, details: Mapping[str, Any]) -> tuple[Place, Contradiction] | None:
    """Where the data of a message deny its act, and how; None where they do not."""
    for each in _CONTRADICTIONS.get(act, ()) if details else ():
        if place := find_denial(details, each.denial, each.depth):
            return place, each
    return None


def is_percentage(value: Any) -> bool:
    """Whether a value is a number from 0 to 100."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100


def _check_progress(details: dict[str, Any], path: Path, profile: Profile) -> Iterator[Found]:
    if details.get("pct") is not None and not is_percentage(details["pct"]):
        yield notes.PROGRESS, (*path, "pct"), f"{say_field((*path, 'pct'))} is not a number from 0 to 100"


def is_names(value: Any) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(is_text(name) for name in value)


def _check_capabilities(details: dict[str, Any], path: Path, profile: Profile) -> Iterator[Found]:
    own = (*path, "supports")
    if "supports" in details and not is_names(details["supports"]):
        yield notes.CAPABILITIES, own, f"{say_field(own)} is not a list of names"


ACT_CHECKS: dict[str, Callable[[dict[str, Any], Path, Profile], Iterator[Found]]] = {
    "ERR": _check_failure,
    "DLGT": _check_delegation,
    "PROG": _check_progress,
    "CAPS": _check_capabilities,
}
