"""The verb of every domain and action: one infinitive for each pair, with a slot for what it acts on.

Specification: 0.4.0 Domain and Action Encoding Tables. `{}` is the object; `{many}` asks for its plural where the
statement names no single one. A pair that is not listed is composed from its action's own phrase.
"""

from __future__ import annotations

from .._english import quote

_GENERAL = {
    "0": "do nothing with {many} (no operation)",
    "1": "read {many}",
    "2": "create {}",
    "3": "send {}",
    "4": "delete {}",
    "5": "update {}",
    "6": "search {many}",
    "7": "subscribe to updates on {many}",
    "8": "unsubscribe from updates on {many}",
    "9": "start a handshake about {many}",
    "A": "reject {}",
    "B": "forward {}",
    "C": "synchronise {many}",
    "D": "verify {many}",
    "E": "transform {}",
    "F": "carry out an extended action on {}",
}

_OWN = {
    "01": "read information on {many}",
    "02": "set up {}",
    "12": "write {}",
    "1E": "translate {}",
    "22": "write {}",
    "2E": "convert {}",
    "31": "fetch {many}",
    "32": "write to {}",
    "33": "post to {}",
    "36": "search the web for {many}",
    "3E": "translate {}",
    "51": "recall {many}",
    "52": "store {}",
    "61": "read the output of {many}",
    "64": "run {} (by the table, the action is “delete”)",
    "63": "submit {} for execution",
    "67": "subscribe to the results of {many}",
    "68": "unsubscribe from the results of {many}",
    "71": "read {many}",
    "73": "publish {}",
    "7E": "translate {}",
    "82": "draft {}",
    "83": "publish {}",
    "8E": "translate {}",
    "92": "record {}",
    "93": "submit {}",
    "A1": "read the results of {many}",
    "A2": "set up {}",
    "A3": "submit {}",
    "A6": "query {many}",
    "BE": "convert {}",
    "C2": "set {}",
    "C3": "share {}",
    "D1": "read the state of {many}",
    "D2": "set the state of {}",
    "D3": "send a command to {}",
    "D6": "query {many}",
    "E3": "submit {}",
}

# On Moltbook, by action and whether the statement names a post.
_IDIOMS = {("1", True): "upvote {}", ("9", True): "comment on {}", ("9", False): "write a comment or reply"}


def phrase_of(domain: str, action: str) -> str:
    """The infinitive for a domain and an action; for unknown codes too, in words that say so."""
    own = _OWN.get(domain + action)
    if own is not None:
        return own
    return _GENERAL.get(action, f"carry out the unknown action {quote(action)} on {{}}")


# A query asks for information; the noun for how it is found, by domain.
_SEARCHES = {"3": "a search of the web for {many}", "A": "a query of {many}", "D": "a query of {many}"}


def search_of(domain: str) -> str:
    """The noun of a query in this domain: what the information is to come from."""
    return _SEARCHES.get(domain, "a search of {many}")


def idiom_of(action: str, has_post: bool) -> str | None:
    """How Moltbook's idiom reads an action there, where it differs from the table."""
    return _IDIOMS.get((action, has_post))
