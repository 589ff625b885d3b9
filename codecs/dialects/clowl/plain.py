"""The short way for ordinary messages: one v0.2 object that breaks no rule and holds nothing odd.

Almost every message is of this kind, so it is read without the general machinery: one scan of the JSON, one walk
over the checks, one dictionary of columns. Whatever is the least unusual is left to `reading`, which reads an
ordinary message in just the same way; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from .._record import Reference
from .._time import instant_of_seconds
from .._value import Value
from .columns import fill_details
from .details import ACT_CHECKS, failing_key
from .json_text import MAX_DEPTH, Digits, make_fraction
from .schema import HASH
from .tables import ACTS, MODES
from .tokens import is_message

_PERFORMATIVES = {code: act.performative for code, act in ACTS.items()}
_MAY_FAIL = frozenset({"status", "success", "ok", "error", "errors"})
_CONTEXT_KEYS = frozenset({"ref", "inline", "hash"})
# How a negative zero can stand as a value; Python's integers have none.
_NEGATIVE_ZERO = (":-0", " -0", ",-0", "[-0", "\n-0", "\t-0", "\r-0")
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800
_SECONDS = tuple(f"{second:02d}Z" for second in range(60))


_ValueT = TypeVar("_ValueT", bound=Value)
_new, _set = object.__new__, object.__setattr__


def build(kind: type[_ValueT], values: dict[str, Any]) -> _ValueT:
    """A value from a dictionary that is known to hold its names and no other: the checks are left out.

    Values are built by the hundred thousand, and checking the names costs more than all the rest of one.
    """
    made = _new(kind)
    _set(made, "__dict__", values)
    return made


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


def scan(wire: str) -> dict[str, Any] | None:
    """The object that is the whole text, if nothing about its JSON is unusual; else None."""
    # Where no white space stands before a colon, `":` comes once for each member, and once more wherever a string
    # holds it escaped. So if there are as many as the members that are held, then no key was repeated.
    keys = wire.count('":')
    if " :" in wire or "\t" in wire or "\r" in wire or keys + wire.count("[") > MAX_DEPTH:
        return None
    if ("\n" in wire and "\n:" in wire) or ("\\" in wire and "\\u" in wire):
        return None
    try:
        data, end = _scan(wire, 0)
    except (ValueError, StopIteration, _OddError):
        return None
    if end != len(wire) or type(data) is not dict:
        return None
    body, context = data.get("body"), data.get("ctx")
    if type(body) is not dict:
        return None
    details = body.get("d")
    if type(details) is not dict:
        return None
    count = len(data) + len(body) + len(details)
    if type(context) is dict:
        count += len(context)
    may_hold_zero = 0 in details.values()
    if count != keys:
        may_hold_zero = True
        nested = [value for value in details.values() if type(value) is dict or type(value) is list]
        if count + sum(map(_count_all, nested)) != keys or any(map(is_message, nested)):
            return None
    # Python's integers have no negative zero: the wire's would be lost.
    if may_hold_zero and "-0" in wire and any(before in wire for before in _NEGATIVE_ZERO):
        return None
    return data


def _count_all(value: Any) -> int:
    if type(value) is dict:
        return len(value) + sum(_count_all(inner) for inner in value.values() if type(inner) in (dict, list))
    return sum(_count_all(inner) for inner in value if type(inner) in (dict, list))


def fill_plain(data: dict[str, Any]) -> dict[str, Any] | None:
    """The columns of a v0.2 message that breaks no rule; None if it may break one."""
    try:
        version, mid, ts, act = data["clowl"], data["mid"], data["ts"], data["p"]
        sender, to, cid, body = data["from"], data["to"], data["cid"], data["body"]
        topic, details = body["t"], body["d"]
        performative = _PERFORMATIVES[act]
    except (KeyError, TypeError):
        return None
    if not (
        version == "0.2"
        and type(mid) is type(sender) is type(cid) is type(topic) is str
        and 0 < len(mid) <= 128
        and 0 < len(sender) <= 128
        and 0 < len(cid) <= 128
        and 0 < len(topic) <= 128
        and type(ts) is int
        and _EARLIEST <= ts < _LATEST
        and len(body) == 2
    ):
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
        "message_id": mid,
        "conversation_id": cid,
        "sent_at": _write_minute(minute) + _SECONDS[second],
        "sent_at_raw": str(ts),
    }
    if to == "*":
        columns["broadcast"] = True
    elif type(to) is str and 0 < len(to) <= 128:
        columns["receivers"] = (to,)
    elif not (type(to) is list and _fill_names(to, columns)):
        return None
    if len(data) > 8 and not _fill_optional(data, columns, attributes):
        return None
    if act == "DLGT":
        mode = details.get("delegation_mode")
        if type(mode) is not str or mode not in MODES:
            return None
        columns["delegation"] = mode
    elif act == "DONE":
        if not _MAY_FAIL.isdisjoint(details) and failing_key(details) is not None:
            return None
    elif act == "PROG" and type(details.get("pct")) is int and 0 <= details["pct"] <= 100:
        columns["progress"] = details["pct"]
    elif act in ACT_CHECKS:
        if any(ACT_CHECKS[act](details, ("body", "d"), "0.2")):
            return None
        fill_details(columns)
        return columns
    if "status" in details or "delegation_mode" in details:
        fill_details(columns)
    return columns


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
        if not _fill_context(data["ctx"], columns):
            return False
    if "det" in data:
        count += 1
        attributes["det"] = data["det"]
        if type(data["det"]) is not bool:
            return False
    return count == len(data)


def _fill_context(context: Any, columns: dict[str, Any]) -> bool:
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
    columns["references"] = (build(Reference, given),)
    return True
