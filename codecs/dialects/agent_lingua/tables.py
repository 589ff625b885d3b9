"""The code tables of agent-lingua 0.4.0: decoding, English, encoding and the glossary all read these rows. The verb of
every domain and action is one infinitive for each pair, with a slot for what it acts on.

Specification: 0.4.0 Domain and Action Encoding Tables. `{}` is the object; `{many}` asks for its plural where the
statement names no single one. A pair that is not listed is composed from its action's own phrase.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .._english import quote

SPECIFICATION = "agent-lingua 0.4.0"
VOCABULARY = "0.4.0"
KNOWN_VERSIONS = ("0.1", "0.2", "0.3", "0.4")
SOURCE = "agent-lingua"
DEFAULT_SIGNATURE = "0.4@agent-lingua"

ALIEN: Final = "\N{EXTRATERRESTRIAL ALIEN}"
# The alien's four UTF-8 bytes, read as Windows-1252 and as Latin-1.
MANGLED_ALIENS = ("ðŸ‘½", "ð\x9f\x91½")
ALIENS = (ALIEN, *MANGLED_ALIENS)
# Variation selectors that ask for emoji or for text presentation, and the first one mangled.
SELECTORS = ("\ufe0f", "\ufe0e", "ï¸\x8f")


class Domain(NamedTuple):
    """A domain: its code and name, what it covers, and the nouns a sentence needs for what it acts on."""

    code: str
    name: str
    meaning: str
    one: str
    many: str
    the: str
    target: str


# The kind of a named target follows the domain; None: an agent is assumed, with a notice.
DOMAINS: dict[str, Domain] = {
    row.code: row
    for row in (
        Domain("0", "SYS", "system", "a system operation", "system operations", "the system operation", "agent"),
        Domain("1", "MSG", "messages", "a message", "messages", "the message", "agent"),
        Domain("2", "FSX", "files", "a file", "files", "the file", "object"),
        Domain("3", "WEB", "web", "a web resource", "web resources", "the web resource", "object"),
        Domain("4", "CRN", "scheduling", "a scheduled reminder", "scheduled reminders", "the scheduled reminder", ""),
        Domain("5", "MEM", "memory", "a memory entry", "memory entries", "the memory entry", ""),
        Domain("6", "EXC", "execution", "a command", "commands", "the command", "agent"),
        Domain("7", "MBK", "Moltbook", "a post", "posts", "the post", "place"),
        Domain("8", "SOC", "other social platforms", "a post", "posts", "the post", "place"),
        Domain("9", "FIN", "finance", "a transaction", "transactions", "the transaction", "object"),
        Domain("A", "ANA", "analysis", "an analysis", "analyses", "the analysis", ""),
        Domain("B", "MDA", "media", "a media file", "media files", "the media file", "object"),
        Domain("C", "LOC", "locations", "a location", "locations", "the location", "place"),
        Domain("D", "IOT", "devices", "a device", "devices", "the device", "object"),
        Domain("E", "SEC", "security", "a security record", "security records", "the security record", ""),
        Domain("F", "EXT", "extensions", "an extension item", "extension items", "the extension item", ""),
    )
}
DOMAIN_CODES = {row.name: code for code, row in DOMAINS.items()}


class Action(NamedTuple):
    """An action: its code and name, its meaning, and the act it stands for in the shared vocabulary."""

    code: str
    name: str
    meaning: str
    performative: str


ACTIONS: dict[str, Action] = {
    row.code: row
    for row in (
        Action("0", "NOP", "no operation (heartbeat)", "control"),
        Action("1", "GET", "read", "query"),
        Action("2", "PUT", "create", "request"),
        Action("3", "PST", "post", "request"),
        Action("4", "DEL", "delete", "request"),
        Action("5", "UPD", "update", "request"),
        Action("6", "QRY", "search", "query"),
        Action("7", "SUB", "subscribe", "subscribe"),
        Action("8", "USB", "unsubscribe", "unsubscribe"),
        Action("9", "HSK", "handshake", "handshake"),
        Action("A", "REJ", "reject", "reject"),
        Action("B", "FWD", "forward", "request"),
        Action("C", "SYN", "synchronise", "request"),
        Action("D", "VFY", "verify", "query"),
        Action("E", "TRF", "transform or translate", "request"),
        Action("F", "XTD", "extended action", "request"),
    )
}
ACTION_CODES = {row.name: code for code, row in ACTIONS.items()}

# On Moltbook the documents' own examples read two actions against their tables; both readings are shown.
IDIOMS = {"1": "upvote", "3": "post", "9": "comment or reply"}

MODIFIERS = {
    "0": "normal",
    "1": "urgent",
    "2": "silent",
    "3": "batch",
    "4": "test",
    "5": "retry",
    "6": "async",
    "7": "encrypted",
    "8": "compressed",
    "9": "confirm",
}
MODIFIER_CODES = {name: code for code, name in MODIFIERS.items()}
MODIFIER_MEANINGS = {
    "normal": "normal handling",
    "urgent": "urgent, high priority",
    "silent": "silent, no notification",
    "batch": "a batch operation",
    "test": "a test, a dry run",
    "retry": "a retry",
    "async": "asynchronous",
    "encrypted": "the payload is encrypted",
    "compressed": "the payload is compressed",
    "confirm": "confirmation is required",
}


class Status(NamedTuple):
    """A response's status: its code, its name and the act it stands for."""

    code: str
    name: str
    performative: str


STATUSES: dict[str, Status] = {
    row.code: row
    for row in (
        Status("0", "success", "done"),
        Status("1", "partial success", "progress"),
        Status("2", "waiting", "acknowledge"),
        Status("3", "queued", "acknowledge"),
        Status("8", "retry needed", "failure"),
        Status("9", "failed", "failure"),
        Status("A", "rejected", "reject"),
    )
}

ERRORS = {
    "0": "unknown error",
    "1": "parse error",
    "2": "permission denied",
    "3": "target not found",
    "4": "timeout",
    "5": "rate limited",
    "6": "invalid payload",
}
# The subtypes are defined for "permission denied" alone.
SUBTYPES = {"R": "read", "W": "write", "X": "execute"}

SUBMOLTS = {"1": "general", "2": "aithoughts", "3": "builders"}
GENERAL_TARGETS = {"H": ("human", "the human"), "A": ("all", "everyone"), "S": ("self", "the sender itself")}
DYNAMIC = "99"

TIME_SYMBOLS = {"+": "delay", "-": "before", "=": "exact", "@": "exact", "*": "repeat"}
TIME_MEANINGS = {"+": "after a delay of", "-": "before", "=": "exactly at", "@": "exactly at", "*": "every"}
UNITS = {"s": ("second", 1), "m": ("minute", 60), "h": ("hour", 3600), "d": ("day", 86400), "w": ("week", 604800)}

# letter: (kind, as a sentence says it)
CONDITIONS = {
    "K": ("karma", "karma"),
    "F": ("follower", "follower count"),
    "T": ("text", "text"),
    "N": ("quantity", "quantity"),
    "S": ("status", "status"),
    "P": ("partition", "partition"),
}
OPERATORS = {
    ">": "is greater than",
    "<": "is less than",
    "=": "is",
    "!": "is not",
    "~": "contains",
}
# Spellings the documents do not define, read as every programmer means them.
BORROWED_OPERATORS = {">=": "is at least", "<=": "is at most", "!=": "is not", "==": "is"}

# prefix letter: (kind, security level, meaning)
PREFIXES = {
    "": ("text", "L1", "Base64 text"),
    "j": ("json", "L1", "Base64 JSON"),
    "z": ("zlib", "L1", "Base64 of zlib-compressed text"),
    "r": ("raw", "L0", "raw plaintext"),
    "e": ("encrypted", "L2", "encrypted"),
}


# The order is the security order: a later level protects more.
LEVELS = {"P": "plaintext", "B": "Base64", "E": "encrypted"}

# Sigils of fields, in the order of the documents' grammar.
SIGILS = {"@": "target", "#": "identifier", "~": "time", "%": "condition", "$": "payload"}

# The standard field table for the keys of JSON payloads.
KEYS = {
    "t": "title",
    "c": "content",
    "s": "summary",
    "n": "name",
    "d": "description",
    "u": "URL",
    "i": "id",
    "k": "kind",
    "v": "value",
    "m": "meta",
    "p": "posted / count",
    "e": "errors",
    "l": "limit",
    "o": "offset",
    "r": "results",
    "ok": "success",
    "st": "status",
    "er": "error",
    "cd": "code",
    "ts": "timestamp",
    "dt": "date and time",
    "ex": "expires",
    "du": "duration",
    "ui": "user id",
    "un": "user name",
    "dn": "display name",
    "av": "avatar",
    "sm": "submolt",
    "ka": "karma",
    "up": "upvotes",
    "dw": "downvotes",
    "cm": "comments",
    "tg": "tags",
    "to": "recipient",
    "fr": "from",
    "sb": "subject",
    "bd": "body",
    "at": "attachments",
    "re": "reply to",
    "pt": "path",
    "fn": "file name",
    "sz": "size",
    "mt": "MIME type",
    "ct": "content",
    "md": "mode",
    "ls": "list",
    "a": "actions",
    "f": "fields",
}

# Names that are spelt out in full, as a sentence says them: those of handshakes and their answers, and those of the
# field table that are no words.
SPELT_KEYS = {
    "protocol": "protocol",
    "version": "version",
    "spec": "specification",
    "capabilities": "capabilities",
    "security": "security level",
    "crypto": "encryption",
    "pubkey": "public key",
    "pskHint": "pre-shared key hint",
    "accepted": "accepted",
    "learning": "learning the protocol",
    "session": "session",
    "fingerprint": "key fingerprint",
    "reason": "reason",
    "unsupported": "unsupported",
    "datetime": "date and time",
    "userId": "user id",
    "username": "user name",
    "displayName": "display name",
    "replyTo": "reply to",
    "filename": "file name",
    "mimeType": "MIME type",
}


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
