"""The columns of the normalised record, filled from an object: one function a version, driven by its keys.

What has no column of its own goes to `attributes` under its wire key, with its JSON value: the version, `det`, an
explicit null, a value of the wrong type. Keys the version does not know are under `extra`, by path. Nothing is
invented, and a token is never carried along: `security` says only that there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._json import Digits, write
from .._positions import Path, write_path
from .._record import MASK, Failure, Reference, Security
from .._time import instant_of_seconds
from .parts import Profile, is_message, profile_of
from .schema import HASH, PROFILES, is_names, is_percentage, is_text
from .tables import ACTS

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
