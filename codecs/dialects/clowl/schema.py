"""What each version demands of a message: its fields as tables, and the checks that walk them; and of its details:
their texts and labels, and the checks of what each act demands of them.

The v0.2 table is its JSON Schema, the strictest of the published descriptions; v0.1 is spec-v0.1 section 3, CLowl-S and
the coordination envelope are the two v0.3 draft schemas. A violation is a finding; the message is read anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from .._denials import FAILED, FAILED_MEANWHILE, MAX_DEPTH, REFUSED, SUCCEEDED, UNFINISHED, Denial, Place, find_denial
from .._english import quote, say_name
from .._json import Digits, Path
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
        yield found[1].kind, own, f"it says {act}, but {say_field(own)} in its data says {found[1].says}"
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


HASH = re.compile(r"[a-f0-9]{64}\Z")
_NAME = re.compile(r"[a-zA-Z0-9._-]+\Z")
_SEMVER = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}\Z", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")


class Rule(NamedTuple):
    """What one key must hold: its kind, whether it must be there, its longest length, whether null will do."""

    kind: str
    is_required: bool = False
    longest: int | None = None
    is_nullable: bool = False
    form: re.Pattern[str] | None = None


Rules = Mapping[str, Rule]

_BODY: Rules = {"t": Rule("text", True, 128), "d": Rule("object", True)}
_CONTEXT: Rules = {
    "ref": Rule("text", False, 2048, True),
    "inline": Rule("words", False, 2000, True),
    "hash": Rule("text", False, None, True, HASH),
}
_TRACE: Rules = {
    "trace_id": Rule("text", True, 128),
    "parent_task_id": Rule("text", False, 128, True),
    "parent_mid": Rule("text", False, 128, True),
}
_ROUTING: Rules = {
    "from": Rule("text", True, 128),
    "to": Rule("names", True, 128, True),
    "broadcast": Rule("flag", False),
}
_AUTH: Rules = {
    "issuer": Rule("text", True, 2048),
    "token": Rule("secret", True, 2048),
    "scopes": Rule("list", True),
}

PROFILES: dict[Profile, Rules] = {
    "0.1": {
        "cl": Rule("version", True),
        "mid": Rule("text", False, 128),
        "p": Rule("act", True),
        "from": Rule("text", True, 128),
        "to": Rule("text", True, 128),
        "cid": Rule("text", True, 128),
        "body": Rule("body", True),
        "ctx": Rule("text", False, 2048, True),
    },
    "0.2": {
        "clowl": Rule("version", True),
        "mid": Rule("text", True, 128),
        "ts": Rule("time", True),
        "p": Rule("act", True),
        "from": Rule("text", True, 128),
        "to": Rule("names", True, 128),
        "cid": Rule("text", True, 128),
        "body": Rule("body", True),
        "tid": Rule("text", False, 128),
        "pid": Rule("text", False, 128, True),
        "ctx": Rule("context", False, None, True),
        "auth": Rule("secret", False, 2048),
        "det": Rule("flag", False),
    },
    "semantic": {
        "p": Rule("act", True),
        "from": Rule("text", True, 128, False, _NAME),
        "to": Rule("text", True, 128, False, _NAME),
        "task": Rule("text", True, 256),
        "data": Rule("object", True),
        "ctx": Rule("text", True, 512, True),
    },
    "coordination": {
        "clowl": Rule("version", True),
        "mid": Rule("text", True, 128, False, _UUID),
        "task_id": Rule("text", True, 128, False, _UUID),
        "state": Rule("state", True),
        "ts": Rule("time", True),
        "trace": Rule("trace", True),
        "routing": Rule("routing", True),
        "auth": Rule("auth", True),
        "semantic": Rule("semantic", True),
    },
}
ACTS_OF: dict[Profile, frozenset[str]] = {
    "0.1": tables.V01_ACTS,
    "0.2": frozenset(tables.ACTS),
    "semantic": tables.SEMANTIC_ACTS,
    "coordination": tables.SEMANTIC_ACTS,
}
VERSION_KEY = {"0.1": "cl", "0.2": "clowl", "coordination": "clowl"}
_NESTED: dict[str, Rules] = {"body": _BODY, "context": _CONTEXT, "trace": _TRACE, "routing": _ROUTING, "auth": _AUTH}
# The draft's own example of the v0.3 envelope uses the v0.2 names inside `trace`.
TRACE_DRAFT = {"tid": "trace_id", "pid": "parent_mid"}


def examine(data: Mapping[str, Any], profile: Profile) -> Iterator[Found]:
    """Everything in which a message differs from what its version demands, in the order of the tables."""
    return _examine(data, profile, ())


def _examine(data: Mapping[str, Any], profile: Profile, base: Path) -> Iterator[Found]:
    yield from _check_members(data, PROFILES[profile], profile, base)
    if profile == "semantic" and not base:
        yield notes.VERSION_INFERRED, (), "no version is given: read as CLowl-S by its keys"
    if profile != "coordination":
        yield from check_details(data, profile, base)
    if profile == "coordination":
        yield from _check_envelope(data)


def _check_members(data: Mapping[str, Any], rules: Rules, profile: Profile, base: Path) -> Iterator[Found]:
    for key, rule in rules.items():
        path = (*base, key)
        if key not in data:
            if rule.is_required and not (base == ("trace",) and key == "trace_id" and "tid" in data):
                yield from _say_missing(key, path, profile)
            continue
        value = data[key]
        if value is None and rule.is_nullable:
            continue
        yield from _CHECKS[rule.kind](value, rule, path, profile)
    for key in data:
        if key not in rules:
            yield from _say_unknown(key, (*base, key), rules, data, profile)


def _say_missing(key: str, path: Path, profile: Profile) -> Iterator[Found]:
    if key == "clowl":
        yield notes.VERSION, path[:-1], "no version is given; read as v0.2 by its keys (E014)"
        return
    yield notes.MISSING, path[:-1], f"{say_field((*path[:-1], key))} is missing"


def _say_unknown(key: str, path: Path, rules: Rules, data: Mapping[str, Any], profile: Profile) -> Iterator[Found]:
    written = say_field(path)
    if path[:-1] == ("trace",) and key in TRACE_DRAFT:
        yield notes.TRACE_KEYS, path, f"{written} has the draft's name, {quote(key)} for {quote(TRACE_DRAFT[key])}"
        return
    meant = tables.PROBABLY_MEANT.get(key)
    if len(path) == 1 and meant in rules and meant not in data:
        yield notes.PROBABLY_MEANT, path, f"{written} is not a field of CLowl; {quote(str(meant))} was probably meant"
        return
    yield notes.UNKNOWN_KEY, path, f"{written} is not a field of this version; it is kept"


def _check_text(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if not is_text(value):
        yield notes.WRONG_TYPE, path, f"{say_field(path)} is {describe_type(value)} and must be a text"
    elif not value and rule.kind == "text":
        yield notes.EMPTY_FIELD, path, f"{say_field(path)} is empty"
    elif rule.longest is not None and len(value) > rule.longest:
        told = f"{len(value):,} characters; {rule.longest:,} are allowed"
        yield notes.TOO_LONG, path, f"{say_field(path)} has {told}"
    elif rule.form is not None and not rule.form.match(value):
        yield notes.PATTERN, path, f"{say_field(path)} does not have the form it must have"


def _check_names(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if not isinstance(value, list):
        yield from _check_text(value, Rule("text", longest=rule.longest), path, profile)
        return
    if not value:
        yield notes.NO_RECEIVER, path, f"{say_field(path)} is an empty list"
    seen: set[str] = set()
    for index, name in enumerate(value):
        yield from _check_text(name, Rule("text", longest=rule.longest), (*path, index), profile)
        if is_text(name):
            if name in seen:
                yield notes.RECEIVER_TWICE, (*path, index), f"{say_name(name)} is named more than once"
            seen.add(name)


def _check_time(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    written = say_field(path)
    if type(value) is not int:
        yield notes.WRONG_TYPE, path, f"{written} is {describe_type(value)} and must be whole seconds"
    elif not 946_684_800 <= value < 4_102_444_800:
        milliseconds = 946_684_800_000 <= value < 4_102_444_800_000
        hint = "; it looks like milliseconds" if milliseconds else ""
        yield notes.TIME, path, f"{written} does not lie between the years 2000 and 2100{hint}"


def _check_act(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    written = say_field(path)
    if not is_text(value):
        yield notes.WRONG_TYPE, path, f"{written} is {describe_type(value)} and must be a performative"
    elif value in ACTS_OF[profile]:
        return
    elif value in tables.ACTS:
        yield notes.ACT_OF_ANOTHER_VERSION, path, f"{value} is not a performative of this version"
    elif value.upper() in tables.ACTS:
        yield notes.ACT_CASE, path, f"{written} is written {quote(value)}; performatives are in capitals"
    else:
        is_blank = value.startswith("<") and value.endswith(">")
        blank = f": {quote(value[:40])} looks like a placeholder that was not filled in" if is_blank else ""
        yield notes.UNKNOWN_ACT, path, f"{written} is none of CLowl's performatives{blank}"


def _check_version(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    written = say_field(path)
    if not is_text(value):
        yield notes.VERSION, path, f"{written} is {describe_type(value)} and must be a text (E014)"
    elif profile == "coordination":
        if not _SEMVER.match(value):
            yield notes.VERSION, path, f"{written} is not of the form x.y.z (E014)"
    elif value != profile:
        yield notes.VERSION, path, f"{written} names a version that is not known here; read as v{profile} (E014)"


def _check_object(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield notes.WRONG_TYPE, path, f"{say_field(path)} is {describe_type(value)} and must be an object"


def _check_list(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if not isinstance(value, list):
        yield notes.WRONG_TYPE, path, f"{say_field(path)} is {describe_type(value)} and must be a list"


def _check_flag(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if not isinstance(value, bool):
        yield notes.WRONG_TYPE, path, f"{say_field(path)} is {describe_type(value)} and must be true or false"


def _check_nested(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if isinstance(value, dict):
        yield from _check_members(value, _NESTED[rule.kind], profile, path)
    elif rule.kind == "context" and is_text(value):
        yield notes.CONTEXT_TEXT, path, f"{say_field(path)} is a text, as in the v0.2 draft"
    else:
        yield from _check_object(value, rule, path, profile)


def _check_secret(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    yield from _check_text(value, rule, path, profile)
    if value is not None:
        yield notes.TOKEN, path, "nothing here verifies the token that it carries"


def _check_state(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if not is_text(value):
        yield from _check_text(value, rule, path, profile)
    elif value not in tables.STATES:
        yield notes.STATE, path, f"{say_field(path)} is none of the nine states"


def _check_semantic(value: Any, rule: Rule, path: Path, profile: Profile) -> Iterator[Found]:
    if isinstance(value, dict):
        yield from _examine(value, "semantic", path)
    else:
        yield from _check_object(value, rule, path, profile)


_CHECKS: dict[str, Callable[[Any, Rule, Path, Profile], Iterator[Found]]] = {
    "text": _check_text,
    "words": _check_text,
    "names": _check_names,
    "time": _check_time,
    "act": _check_act,
    "version": _check_version,
    "object": _check_object,
    "list": _check_list,
    "flag": _check_flag,
    "state": _check_state,
    "secret": _check_secret,
    "semantic": _check_semantic,
    "body": _check_nested,
    "context": _check_nested,
    "trace": _check_nested,
    "routing": _check_nested,
    "auth": _check_nested,
}

_PARTIES = {"from": "sender", "to": "receiver"}


def _check_envelope(data: Mapping[str, Any]) -> Iterator[Found]:
    routing, inner = data.get("routing"), data.get("semantic")
    if not (isinstance(routing, dict) and isinstance(inner, dict)):
        return
    for key in _PARTIES:
        outside, inside = routing.get(key), inner.get(key)
        if outside is not None and inside is not None and outside != inside:
            yield (
                notes.PARTIES_DISAGREE,
                ("routing", key),
                f"the routing and the message inside name different {_PARTIES[key]}s",
            )
