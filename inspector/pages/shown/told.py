"""What was told of a message, as the values that templates show: segments, notes, names, times; and a whole reading
as the panes of a page show it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

import dialects
from dialects import say_name, title_of
from inspector.browsing.directory import ChangedKey
from inspector.intake.models import Delivery
from inspector.search import refining as parts
from inspector.threads.models import Conversation, Message
from inspector.threads.nodes import SAID_TIMES, write_bearers
from inspector.threads.selectors import find_openings, split_mark

from .agents import AgentMark, Cast
from .fields import MAX_LAYERS, cut_layers, has_secret, list_layers, list_rows, measure_syntax, write_offsets
from .markup import Segment, Span, shorten_name

Segments = Sequence[Segment]

MAX_TITLE_LENGTH = 90
MAX_ID_LENGTH: Final = 24
# No id at all is the shortest of them.
_NUMBER: Final = re.compile(r"[\W\d_]*")
# So many receivers of a message are named in a line; of the rest their number.
MAX_RECEIVERS = 5
_JOIN: Final = re.compile(r"^(?:(?:to|that|about)\s+|[,:]\s*)+")
# The receiver stands within so many characters behind the sender.
_MAX_VERB_LENGTH: Final = 40
# Of each way by which the time of a message is known, what is to be said beside it.
TIME_WORDS: Final = {
    "wire": "",
    "envelope": "the message does not say when it was sent: the time of its envelope",
    "start": "the message does not say when it was sent: ordered by the declared start",
    "receipt": "the message does not say when it was sent: ordered by receipt",
}
# Before a time at which, as far as anybody knows, nothing was sent.
ABOUT: Final = "≈ "
NOT_RECEIVED = "was not received"
WITHDRAWN = "was received and is withdrawn"


def link_rekeyed(changed: Iterable[ChangedKey], slug: str) -> list[dict[str, Any]]:
    """Where the other key was shown that a message contradicts: [{name, url}]."""
    return [
        {
            "name": f"where {shorten_name(each.sender)} showed another key",
            "url": reverse("pages:message", args=[slug, each.other]),
        }
        for each in changed
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteLine:
    """A note with the characters it is about."""

    severity: str
    group: str
    code: str
    text: str
    cites: str
    spans: tuple[Span, ...]
    offsets: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Who says what to whom, and when: what every list of messages shows. `basis` is how the time is known."""

    at: datetime | None
    basis: str
    sender: AgentMark | None
    receivers: Sequence[AgentMark]
    is_broadcast: bool
    is_to_itself: bool
    performative: str | None
    native_act: str
    more_receivers: int = 0


def make_line(message: Message, cast: Cast) -> Line:
    """The line of a message, its agents coloured by the cast of the page."""
    receivers = [name for name in message.receivers if name]
    where: dict[str, Any] = {"channel_id": message.channel_id, "dialects": (message.dialect,)}
    is_to_itself = bool(message.sender) and receivers == [message.sender]
    return Line(
        at=message.order_time,
        basis=message.order_basis,
        sender=cast.find(message.sender, **where) if message.sender else None,
        receivers=[] if is_to_itself else cast.find_all(receivers[:MAX_RECEIVERS], **where),
        more_receivers=max(0, len(receivers) - MAX_RECEIVERS),
        is_broadcast=message.is_broadcast,
        is_to_itself=is_to_itself,
        performative=message.performative,
        native_act=message.native_act,
    )


def read_segments(rows: Iterable[Mapping[str, Any]] | None, *, are_apart: bool = False) -> Segments:
    """Stored segments as the markup takes them; `are_apart` puts a comma between those that are a list."""
    segments: list[Segment] = []
    for row in rows or ():
        if are_apart and segments:
            segments.append((", ", (), "exact"))
        spans = tuple((span[0], span[1], span[2]) for span in row.get("spans") or ())
        segments.append((row["text"], spans, row.get("basis", "exact")))
    return segments


def read_notes(rows: Iterable[Mapping[str, Any]]) -> list[NoteLine]:
    """Stored notes, the gravest first."""
    notes = [
        NoteLine(
            severity=row["severity"],
            group=row["group"],
            code=row["code"],
            text=row["text"],
            cites=row.get("cites") or "",
            spans=(tuple(row["span"]),) if row.get("span") else (),
            offsets=write_offsets(tuple(row["span"]) if row.get("span") else None),
        )
        for row in rows
    ]
    ranks = ("error", "warning", "notice", "info")
    return sorted(notes, key=lambda note: ranks.index(note.severity))


def list_notes(message: Message, body: Mapping[str, Any]) -> list[NoteLine]:
    """The notes of a message; those of its record stand at its first part."""
    own = body["message"].get("notes") or ()
    shared = (body["record"].get("notes") or ()) if message.part == 1 else ()
    return read_notes((*own, *shared))


def name_dialect(slug: str, version: str | None = None) -> str:
    """A dialect as people write it, with its version where one is known."""
    title = title_of(slug)
    return f"{title} {version}" if version else title


def name_dialects(slugs: Iterable[str]) -> str:
    """Dialects as people write them, one after the other."""
    return ", ".join(map(name_dialect, slugs))


def name_dialect_of(message: Message, record: Mapping[str, Any]) -> str:
    """The dialect of a message with its version, and that of what carries it: "nSLIP in MCP 2025-06-18".

    Args:
        record: what its body says of its record.
    """
    read_in = name_dialect(message.read_in, record.get("version"))
    return f"{title_of(message.dialect)} in {read_in}" if message.carrier else read_in


def is_named(conversation: Conversation) -> bool:
    """Whether anything said in it gives it a name; an id that is a number, as `5` or `11`, is none."""
    return bool(conversation.title or conversation.subject or not _NUMBER.fullmatch(conversation.native_id))


def name_conversation(conversation: Conversation) -> str:
    """What a conversation is about, else what it is called, else that it has no name."""
    return conversation.title or conversation.subject or conversation.native_id or "Untitled conversation"


def shorten_id(conversation: Conversation, title: str) -> str:
    """The id of a conversation, for beside its title, by which those of one title are told apart: what its agents call
    it, shortened in the middle; empty where it has none, and where the title is the id."""
    whole = conversation.native_id
    if whole == title or len(whole) <= MAX_ID_LENGTH:
        return "" if whole == title else whole
    kept = MAX_ID_LENGTH - 1
    return f"{whole[: kept - kept // 2]}…{whole[-(kept // 2) :]}"


def name_opened(conversation: Conversation) -> str:
    """The same of one that was read with what it opens with, as `opening`."""
    opening: str | None = vars(conversation)["opening"]
    return (not is_named(conversation) and opening) or name_conversation(conversation)


def find_openings_of(conversations: Iterable[Conversation]) -> dict[uuid.UUID, str]:
    """What those of these conversations that have no name open with; asks for nothing where all have one."""
    unnamed = {conversation.pk for conversation in conversations if not is_named(conversation)}
    return find_openings(conversation_ids=sorted(unnamed)) if unnamed else {}


def name_conversations(conversations: Iterable[Conversation]) -> dict[uuid.UUID, str]:
    """The names of conversations; one that nothing names is called by the English that it opens with."""
    listed = list(conversations)
    openings = find_openings_of(listed)
    return {each.pk: openings.get(each.pk) or name_conversation(each) for each in listed}


def shorten(text: str, length: int = MAX_TITLE_LENGTH) -> str:
    """A sentence for a heading: one line, cut at a word with an ellipsis. The whole stands below it."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    line, mark = split_mark(line)
    words = line[:length].rsplit(" ", 1)[0].rstrip(",;:.")
    # One very long word must not swallow the heading.
    return f"{words if len(words) > length // 2 else line[:length]} …{mark}"


def strip_names(sentence: str, *, senders: Iterable[str], receivers: Iterable[str]) -> str:
    """The sentence without the names at its head and the verb between them, where tiles and arrows say them already.

    `oscar asks radar to search.` becomes `search.`, and `oscar ends the session.` `ends the session.` One that begins
    otherwise is left as it is. A receiver who stands behind what is quoted stays: that may not be left out.

    Args:
        senders, receivers: what the sentence may call the sender, and the first receiver.
    """
    heads = (*_spell_names(senders), *(["Someone"] if sentence.startswith(f"Someone{_PLAIN_TEXT}") else []))
    head = next((name for name in heads if sentence.startswith(f"{name} ")), None)
    if head is None:
        return sentence
    rest = sentence[len(head) :]
    if rest.startswith(_PLAIN_TEXT):
        return rest.removeprefix(_PLAIN_TEXT).removesuffix(".")
    # A name that is in quotation marks begins with the first of them.
    quoted = _QUOTE.search(rest, 0, _MAX_VERB_LENGTH)
    verb_end = quoted.start() if quoted else _MAX_VERB_LENGTH
    for name in _spell_names(receivers):
        found = re.search(rf"{_BEFORE_NAME}{re.escape(name)}{_BEHIND_NAME}", rest)
        said = _JOIN.sub("", rest[found.end() :].strip()) if found and found.start() <= verb_end else ""
        if said.strip("."):
            return said
    return rest.strip()


# A name is a whole one: no part of a longer name or word.
_BEFORE_NAME: Final = r"(?<![\w/:@+~#&.-])"
_BEHIND_NAME: Final = r"(?!\w|[/:@+~#&.'’-]\w)"

_QUOTE: Final = re.compile("[“«]")

# Of text in no dialect the row says as much by its dialect.
_PLAIN_TEXT: Final = " writes plain text: "


def _spell_names(names: Iterable[str]) -> Iterator[str]:
    """Each name as a sentence may have it: as it is, and as one that is quoted."""
    for name in filter(None, names):
        yield name
        if (quoted := say_name(name)) != name:
            yield quoted


def write_elapsed(elapsed: timedelta) -> str:
    """A span of time in words: `2 min 40 s`; below a second `0 s`."""
    seconds = int(elapsed.total_seconds())
    for size, name, smaller_size, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // smaller_size
            return f"{seconds // size:,} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"


def is_said(basis: str) -> bool:
    """Whether a time that is known this way is the message's or its log's own, and not that of its delivery."""
    return basis in SAID_TIMES


def say_fate(bearers: int | None, *, is_withdrawn: bool = False) -> str:
    """What goes on after the name of a cited message.

    Args:
        bearers: how many messages of other conversations bear the id; 0 for none, None where that is not known.
        is_withdrawn: whether what bears it was received and is withdrawn.
    """
    if is_withdrawn:
        return WITHDRAWN
    if bearers is None:
        return "is not here"
    return f"is one of {write_bearers(bearers)} messages elsewhere that bear this id" if bearers else NOT_RECEIVED


MAX_PARTS: Final = 10


def show_parts(reading: dialects.Reading) -> dict[str, Any]:
    """The first messages of a reading as `parts`, and how many more there are."""
    return {
        "parts": [
            {
                "performative": message.performative,
                "native_act": message.native_act or "",
                "english": read_segments(segment.to_dict() for segment in message.english),
                "also": read_segments((segment.to_dict() for segment in message.also), are_apart=True),
                "gloss": read_segments(segment.to_dict() for segment in message.gloss),
                "reference_line": message.reference_line or "",
            }
            for message in reading.messages[:MAX_PARTS]
        ],
        "more_parts": max(0, len(reading.messages) - MAX_PARTS),
    }


def show_pieces(reading: dialects.Reading) -> dict[str, Any]:
    """The fields and the layers of a reading."""
    stretches = cut_layers(reading)
    fields, more_fields = list_rows(reading)
    return {
        "is_unfolded": True,
        "fields": fields,
        "more_fields": more_fields,
        "syntax": measure_syntax(stretches.get(0, ())),
        "layers": list_layers(reading, stretches),
        "more_layers": max(0, len(reading.layers) - MAX_LAYERS),
        "is_masked": has_secret(stretches),
    }


def list_all_notes(reading: dialects.Reading) -> list[NoteLine]:
    """The notes of a record and of all its messages, the gravest first."""
    notes = (*reading.notes, *(note for message in reading.messages for note in message.notes))
    return read_notes([note.to_dict() for note in notes])


def name_delivery(delivery: Delivery) -> str:
    """The file's name, else the door it came through."""
    records = f"{delivery.received:,} record{'' if delivery.received == 1 else 's'}"
    return delivery.file_name or f"{records} via {delivery.get_door_display()}"


def write_term(name: str, value: str) -> str:
    """A term of the search language; empty where the value is too long to be asked for."""
    return parts.write_term(name, (value,)) if len(value) <= 300 else ""


def link_search(slug: str, query: str) -> str:
    """The address of a search; of no query that of the page."""
    address = reverse("pages:search", args=[slug])
    return f"{address}?{urlencode({'q': query})}" if query else address
