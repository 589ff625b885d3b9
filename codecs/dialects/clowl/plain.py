"""The short way for ordinary messages: one v0.2 object that breaks no rule and holds nothing odd.

Almost every message is of this kind, so it is read without the general machinery: one scan of the JSON, one walk
over the checks, one dictionary of columns. Whatever is the least unusual is left to `reading`, which reads an
ordinary message in just the same way; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Any

from .._json import Digits, make_fraction
from .._record import Failure, Reference
from .._time import instant_of_seconds
from .columns import fill_details
from .parts import RULES, is_message
from .schema import DENYING_KEYS, HASH, find_contradiction
from .tables import ACTS, ERROR_CODES, MODES

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
    if (type(to) is not str or to == "*" or not 0 < len(to) <= 128) and not _fill_receivers(to, columns):
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


def _fill_receivers(to: Any, columns: dict[str, Any]) -> bool:
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
    columns["references"] = (Reference.trust(given),)
    return True
