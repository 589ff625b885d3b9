"""The columns of the normalised record, filled from an object: one function a version, driven by its keys; and the
short way for ordinary messages: one v0.2 object that breaks no rule and holds nothing odd.

What has no column of its own goes to `attributes` under its wire key, with its JSON value: the version, `det`, an
explicit null, a value of the wrong type. Keys the version does not know are under `extra`, by path. Nothing is
invented, and a token is never carried along: `security` says only that there is one.

Almost every message is ordinary, so it is read without the general machinery: one scan of the JSON, one walk over the
checks, one dictionary of columns. Whatever is the least unusual is left to `reading`, which reads an ordinary message
in just the same way; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from .._json import Digits, Path, make_fraction, write, write_path
from .._record import MASK, Failure, Reference, Security
from .._time import instant_of_seconds
from .parts import RULES, Profile, is_message, profile_of
from .schema import DENYING_KEYS, HASH, PROFILES, find_contradiction, is_names, is_percentage, is_text
from .tables import ACTS, ERROR_CODES, MODES

PROFILE_NAMES: dict[Profile, str] = {"semantic": "CLowl-S", "coordination": "CLowl coordination envelope"}
HASH_PREFIX = "sha256:"

Columns = dict[str, Any]
Data = Mapping[str, Any]


def fill(data: Data, profile: Profile) -> Columns:
    """The columns of one object. Tokens must have been hidden in everything but `auth` before."""
    columns: Columns = {}
    attributes: dict[str, Any] = {}
    if profile in PROFILE_NAMES:
        attributes["profile"] = PROFILE_NAMES[profile]
    if profile == "coordination":
        _fill_coordination(data, columns, attributes)
    else:
        _fill_ids(data, profile, columns, attributes)
        _fill_body(data, profile, columns, attributes)
    fill_details(columns)
    extra = {write_path(path): value for path, value in find_extra(data, profile)}
    if extra:
        attributes["extra"] = extra
    columns["attributes"] = attributes
    return columns


def _take(columns: Columns, name: str, data: Data, key: str, attributes: dict[str, Any], base: str = "") -> None:
    """An id or name: a text as it is, a whole number as its digits; anything else is an attribute."""
    if key not in data:
        return
    value = data[key]
    if (is_text(value) and value) or (isinstance(value, int | Digits) and not isinstance(value, bool)):
        columns[name] = str(value)
    else:
        attributes[base + key] = value


def _fill_ids(data: Data, profile: Profile, columns: Columns, attributes: dict[str, Any]) -> None:
    for key in ("clowl", "cl"):
        if key in data:
            attributes[key] = data[key]
        elif key == "clowl" and profile == "0.2":
            attributes[key] = None
    _take(columns, "message_id", data, "mid", attributes)
    _fill_time(data, columns, attributes)
    _take(columns, "trace_id", data, "tid", attributes)
    _take(columns, "parent_id", data, "pid", attributes)
    _fill_act(data, columns, attributes, "")
    _take(columns, "sender", data, "from", attributes)
    _fill_receivers(data, columns, attributes, "")
    _take(columns, "conversation_id", data, "cid", attributes)
    if "det" in data:
        attributes["det"] = data["det"]
    if data.get("auth") is not None:
        columns["security"] = Security(claims=("token",))
    elif "auth" in data:
        attributes["auth"] = None


def _fill_time(data: Data, columns: Columns, attributes: dict[str, Any]) -> None:
    if "ts" not in data:
        return
    value = data["ts"]
    if type(value) is int:
        columns["sent_at_raw"] = str(value)
        instant = instant_of_seconds(value)
        if instant is not None:
            columns["sent_at"] = instant
        return
    attributes["ts"] = value
    if value is not None:
        columns["sent_at_raw"] = str(value) if is_text(value) else write(value)


def _fill_act(data: Data, columns: Columns, attributes: dict[str, Any], base: str) -> None:
    value = data.get("p")
    act = ACTS.get(value) or ACTS.get(value.upper()) if is_text(value) else None
    columns["performative"] = act.performative if act else "unknown"
    if act is not None:
        columns["native_act"] = act.code
    elif is_text(value):
        columns["native_act"] = value
    elif "p" in data:
        attributes[base + "p"] = value


def _fill_receivers(data: Data, columns: Columns, attributes: dict[str, Any], base: str) -> None:
    if "to" not in data:
        return
    value = data["to"]
    names = value if isinstance(value, list) else [value]
    told = tuple(name for name in names if is_text(name) and name)
    if "*" in told:
        columns["broadcast"] = True
    named = tuple(name for name in told if name != "*")
    if named:
        columns["receivers"] = named
    if len(told) != len(names) or not names:
        attributes[base + "to"] = value


def _fill_body(data: Data, profile: Profile, columns: Columns, attributes: dict[str, Any]) -> None:
    body = data if profile == "semantic" else data.get("body")
    topic, details = ("task", "data") if profile == "semantic" else ("t", "d")
    base = "" if profile == "semantic" else "body."
    if isinstance(body, dict):
        value = body.get(topic)
        if is_text(value) and value:
            columns["topic"] = value
        elif topic in body:
            attributes[base + topic] = value
        if body.get(details) is not None:
            columns["content"] = body[details]
        elif details in body:
            attributes[base + details] = None
    elif "body" in data:
        attributes["body"] = body
        columns["content"] = body
    _fill_context(data, profile, columns, attributes, "")


def _fill_context(data: Data, profile: Profile, columns: Columns, attributes: dict[str, Any], base: str) -> None:
    if "ctx" not in data:
        return
    value = data["ctx"]
    if is_text(value):
        bare = value.removeprefix(HASH_PREFIX)
        is_hash = bare != value and HASH.match(bare) is not None
        columns["references"] = (Reference(hash=bare) if is_hash else Reference(ref=value),)
        if profile == "0.2":
            attributes["ctx"] = value
    elif isinstance(value, dict) and profile == "0.2":
        given = {key: value[key] for key in ("ref", "hash", "inline") if is_text(value.get(key))}
        columns["references"] = (Reference(**given),)
        for key in ("ref", "inline", "hash"):
            if value.get(key) is not None and key not in given:
                attributes[f"ctx.{key}"] = value[key]
    else:
        attributes[base + "ctx"] = value


def _fill_coordination(data: Data, columns: Columns, attributes: dict[str, Any]) -> None:
    if "clowl" in data:
        attributes["clowl"] = data["clowl"]
    _take(columns, "message_id", data, "mid", attributes)
    _take(columns, "task_id", data, "task_id", attributes)
    _take(columns, "status", data, "state", attributes)
    _fill_time(data, columns, attributes)
    trace, routing, auth = (_object(data, key, attributes) for key in ("trace", "routing", "auth"))
    for name, keys in (
        ("trace_id", ("trace_id", "tid")),
        ("parent_task_id", ("parent_task_id",)),
        ("parent_id", ("parent_mid", "pid")),
    ):
        for key in keys:
            if name not in columns:
                _take(columns, name, trace, key, attributes, "trace.")
    _take(columns, "sender", routing, "from", attributes, "routing.")
    _fill_receivers(routing, columns, attributes, "routing.")
    if routing.get("broadcast") is True:
        columns["broadcast"] = True
    elif "broadcast" in routing and routing["broadcast"] is not False:
        attributes["routing.broadcast"] = routing["broadcast"]
    for key in ("issuer", "scopes"):
        if key in auth:
            attributes[f"auth.{key}"] = auth[key]
    outside = data.get("auth")
    if auth.get("token") is not None or (outside is not None and not isinstance(outside, dict)):
        columns["security"] = Security(claims=("token",))
    _fill_semantic(_object(data, "semantic", attributes), columns, attributes)


def _object(data: Data, key: str, attributes: dict[str, Any]) -> Data:
    value = data.get(key)
    if isinstance(value, dict):
        return value
    if key in data:
        attributes[key] = None if key == "auth" else value
    return {}


def _fill_semantic(inner: Data, columns: Columns, attributes: dict[str, Any]) -> None:
    own: Columns = {}
    _fill_act(inner, columns, attributes, "semantic.")
    _take(own, "sender", inner, "from", attributes, "semantic.")
    _fill_receivers(inner, own, attributes, "semantic.")
    for key, name in (("from", "sender"), ("to", "receivers")):
        if name in own and name not in columns and not (name == "receivers" and columns.get("broadcast")):
            columns[name] = own[name]
        elif name in own and own[name] != columns.get(name):
            attributes[f"semantic.{key}"] = inner[key]
    value = inner.get("task")
    if is_text(value) and value:
        columns["topic"] = value
    elif "task" in inner:
        attributes["semantic.task"] = value
    if inner.get("data") is not None:
        columns["content"] = inner["data"]
    elif "data" in inner:
        attributes["semantic.data"] = None
    _fill_context(inner, "semantic", columns, attributes, "semantic.")


def fill_details(columns: Columns) -> None:
    """The copies that are lifted from the details, by what they are and by the act."""
    details, act = columns.get("content"), columns.get("native_act")
    if not isinstance(details, dict):
        return
    if "status" not in columns and is_text(details.get("status")):
        columns["status"] = details["status"]
    if is_text(details.get("delegation_mode")) and details["delegation_mode"]:
        columns["delegation"] = details["delegation_mode"]
    if act == "ERR":
        columns["error"] = _read_failure(details)
    elif act == "PROG" and is_percentage(details.get("pct")):
        columns["progress"] = details["pct"]
    elif act == "CAPS" and is_names(details.get("supports")):
        columns["capabilities"] = tuple(details["supports"])
    nested = tuple(_show_nested(value) for value in details.values() if is_message(value))
    if nested:
        columns["nested"] = nested


def _read_failure(details: Data) -> Failure:
    given: dict[str, Any] = {}
    for name, key in (("code", "code"), ("message", "msg"), ("cause", "cascade_err")):
        if details.get(key) is not None:
            given[name] = details[key] if is_text(details[key]) else write(details[key], ", ", ": ")
    if isinstance(details.get("retry"), bool):
        given["retryable"] = details["retry"]
    return Failure(**given)


def _show_nested(value: dict[str, Any]) -> Mapping[str, Any]:
    profile = profile_of(value)
    return fill(value, profile) if profile else {}


def find_extra(data: Data, profile: Profile) -> Iterator[tuple[Path, Any]]:
    """The keys that the version does not have, by path, with their values; masked where they lie in `auth`."""
    rules, read_anyway = PROFILES[profile], _READ_ANYWAY[profile]
    for key, value in data.items():
        rule = rules.get(key)
        if rule is None and key not in read_anyway:
            yield (key,), value
        elif rule is not None and rule.kind in _OPEN and isinstance(value, dict):
            known = _KNOWN_WITHIN[key]
            for inner, held in value.items():
                if inner not in known:
                    yield (key, inner), MASK if key == "auth" else held


_KNOWN_WITHIN: dict[str, frozenset[str]] = {
    "body": frozenset({"t", "d"}),
    "ctx": frozenset({"ref", "inline", "hash"}),
    "trace": frozenset({"trace_id", "parent_task_id", "parent_mid", "tid", "pid"}),
    "routing": frozenset({"from", "to", "broadcast"}),
    "auth": frozenset({"issuer", "token", "scopes"}),
    "semantic": frozenset(PROFILES["semantic"]),
}
_OPEN = frozenset({"body", "context", "trace", "routing", "auth", "semantic"})
# Keys that belong to another version of the same shape and have a column all the same.
_SAME_SHAPE = frozenset(
    {"clowl", "cl", "mid", "ts", "tid", "pid", "p", "from", "to", "cid", "body", "ctx", "auth", "det"}
)
_READ_ANYWAY: dict[Profile, frozenset[str]] = {
    "0.1": _SAME_SHAPE,
    "0.2": _SAME_SHAPE,
    "semantic": _SAME_SHAPE - {"body"},
    "coordination": frozenset(),
}


_PERFORMATIVES = {code: act.performative for code, act in ACTS.items()}
_RETRYABLE = {code: row.is_retryable for code, row in ERROR_CODES.items()}
_CONTEXT_KEYS = frozenset({"ref", "inline", "hash"})
# How a negative zero can stand as a value; Python's integers have none.
_NEGATIVE_ZERO = (":-0", " -0", ",-0", "[-0", "\n-0", "\t-0", "\r-0")
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800
_SECONDS = tuple(f"{second:02d}Z" for second in range(60))


class _OddError(Exception):
    pass


def _take_fraction(raw: str) -> float:
    value = make_fraction(raw) if len(raw) < 40 else None
    if value is None or type(value) is Digits:
        raise _OddError
    return value  # type: ignore[return-value]  # Digits are ruled out above


def _refuse(name: str) -> None:
    raise _OddError


# The C scanner itself, without the search for white space around the value that `loads` makes.
_decoder: Any = json.JSONDecoder(parse_float=_take_fraction, parse_constant=_refuse)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once


@lru_cache(maxsize=4096)
def _write_minute(minute: int) -> str:
    instant = instant_of_seconds(minute * 60)
    return instant[:-3] if instant else ""


_take_required = itemgetter("clowl", "mid", "ts", "p", "from", "to", "cid", "body")


def read_plain(wire: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The object of an ordinary text, and its columns; None if anything about it may be unusual."""
    if "\\" in wire and "\\u" in wire:
        return None
    try:
        data, end = _scan(wire, 0)
        version, mid, ts, act, sender, to, cid, body = _take_required(data)
        topic, details = body["t"], body["d"]
        performative = _PERFORMATIVES[act]
    except (ValueError, StopIteration, LookupError, TypeError, RecursionError, _OddError):
        return None
    if not (
        end == len(wire)
        and version == "0.2"
        and type(mid) is type(sender) is type(cid) is type(topic) is str
        and type(ts) is int
        and type(details) is dict
        and 0 < len(mid) <= 128
        and 0 < len(sender) <= 128
        and 0 < len(cid) <= 128
        and 0 < len(topic) <= 128
        and _EARLIEST <= ts < _LATEST
        and len(body) == 2
    ):
        return None
    count = len(data)
    # Each member has one colon. So if there are as many as the members that are held, then no key was repeated; else,
    # or if there is a list, the text is looked at more closely.
    is_flat = count + 2 + len(details) == wire.count(":") and "[" not in wire
    if not is_flat and not _is_regular(wire, data, details):
        return None
    # Python's integers have no negative zero: the wire's would be lost.
    if 0 in details.values() and _may_hold_negative_zero(wire):
        return None
    minute, second = divmod(ts, 60)
    attributes: dict[str, Any] = {"clowl": version}
    columns: dict[str, Any] = {
        "performative": performative,
        "native_act": act,
        "topic": topic,
        "content": details,
        "attributes": attributes,
        "sender": sender,
        "receivers": (to,),
        "message_id": mid,
        "conversation_id": cid,
        "sent_at": _write_minute(minute) + _SECONDS[second],
        "sent_at_raw": str(ts),
    }
    if (type(to) is not str or to == "*" or not 0 < len(to) <= 128) and not _take_receivers(to, columns):
        return None
    if count > 8 and not _fill_optional(data, columns, attributes):
        return None
    if (
        act in DENYING_KEYS
        and not (is_flat and DENYING_KEYS[act].isdisjoint(details))
        and find_contradiction(act, details)
    ):
        return None
    fill = _FILLERS.get(act)
    if fill is not None and not fill(details, columns):
        return None
    if "status" in details or ("delegation_mode" in details and act != "DLGT"):
        fill_details(columns)
    return data, columns


def _is_regular(wire: str, data: dict[str, Any], details: dict[str, Any]) -> bool:
    """Whether an object with colons in its texts or nested details repeats no key, and holds nothing odd within."""
    # Where no white space stands before a colon, `":` comes once for each member, and once more wherever a string
    # holds it escaped.
    if " :" in wire or "\t" in wire or "\r" in wire or ("\n" in wire and "\n:" in wire):
        return False
    count, context = len(data) + 2 + len(details), data.get("ctx")
    if type(context) is dict:
        count += len(context)
    nested = [value for value in details.values() if type(value) is dict or type(value) is list]
    if nested:
        if wire.count("{") + wire.count("[") > RULES.max_depth or any(map(is_message, nested)):
            return False
        if _may_hold_negative_zero(wire):
            return False
        count += sum(map(_count_all, nested))
    return count == wire.count('":')


def _may_hold_negative_zero(wire: str) -> bool:
    return "-0" in wire and any(before in wire for before in _NEGATIVE_ZERO)


def _count_all(value: Any) -> int:
    if type(value) is dict:
        return len(value) + sum(_count_all(inner) for inner in value.values() if type(inner) in (dict, list))
    return sum(_count_all(inner) for inner in value if type(inner) in (dict, list))


def _fill_failure(details: dict[str, Any], columns: dict[str, Any]) -> bool:
    code, message = details.get("code"), details.get("msg")
    if not (type(code) is type(message) is str and code in _RETRYABLE and "cascade_err" not in details):
        return False
    failure: dict[str, Any] = {"code": code, "message": message}
    if "retry" in details:
        failure["retryable"] = retry = details["retry"]
        if retry is not _RETRYABLE[code]:
            return False
    columns["error"] = Failure.trust(failure)
    return True


def _fill_delegation(details: dict[str, Any], columns: dict[str, Any]) -> bool:
    columns["delegation"] = mode = details.get("delegation_mode")
    return type(mode) is str and mode in MODES


def _fill_progress(details: dict[str, Any], columns: dict[str, Any]) -> bool:
    if "pct" in details:
        percentage = details["pct"]
        if type(percentage) is not int or not 0 <= percentage <= 100:
            return False
        columns["progress"] = percentage
    return True


def _fill_capabilities(details: dict[str, Any], columns: dict[str, Any]) -> bool:
    names = details.get("supports", ())
    if "supports" in details and type(names) is not list:
        return False
    if set(map(type, names)) - {str}:
        return False
    if "supports" in details:
        columns["capabilities"] = tuple(names)
    return True


# What an act demands of its details, and the columns that it draws from them; other acts demand nothing.
_FILLERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], bool]] = {
    "ERR": _fill_failure,
    "DLGT": _fill_delegation,
    "PROG": _fill_progress,
    "CAPS": _fill_capabilities,
}


def _take_receivers(to: Any, columns: dict[str, Any]) -> bool:
    """Everyone, or several."""
    if to == "*":
        columns["broadcast"] = True
        del columns["receivers"]
        return True
    return type(to) is list and _fill_names(to, columns)


def _fill_names(names: list[Any], columns: dict[str, Any]) -> bool:
    if not all(type(name) is str and 0 < len(name) <= 128 and name != "*" for name in names):
        return False
    columns["receivers"] = tuple(names)
    return 0 < len(names) == len(set(names))


def _fill_optional(data: dict[str, Any], columns: dict[str, Any], attributes: dict[str, Any]) -> bool:
    count = 8
    if "tid" in data:
        count = 9
        trace = data["tid"]
        if type(trace) is not str or not 0 < len(trace) <= 128:
            return False
        columns["trace_id"] = trace
    if "pid" in data:
        count += 1
        parent = data["pid"]
        if parent is None:
            attributes["pid"] = None
        elif type(parent) is str and 0 < len(parent) <= 128:
            columns["parent_id"] = parent
        else:
            return False
    if "ctx" in data:
        count += 1
        if not _take_context(data["ctx"], columns):
            return False
    if "det" in data:
        count += 1
        attributes["det"] = data["det"]
        if type(data["det"]) is not bool:
            return False
    return count == len(data)


def _take_context(context: Any, columns: dict[str, Any]) -> bool:
    if type(context) is not dict or len(context) != 3 or not _CONTEXT_KEYS.issuperset(context):
        return False
    given: dict[str, str] = {}
    ref, inline, digest = context["ref"], context["inline"], context["hash"]
    if ref is not None:
        if type(ref) is not str or not 0 < len(ref) <= 2048:
            return False
        given["ref"] = ref
    if digest is not None:
        if type(digest) is not str or not HASH.match(digest):
            return False
        given["hash"] = digest
    if inline is not None:
        if type(inline) is not str or len(inline) > 2000:
            return False
        given["inline"] = inline
    columns["references"] = (Reference.trust(given),)
    return True
