"""A text decoded: the dialect it is in is found or forced, it is read, and told in the context of its conversation; and
the envelope's part in its record: it fills what the wire leaves open and never overrides what the wire says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ._context import Context, Keys, NoKeys
from ._dialect import all_dialects, detect, get_dialect
from ._english import note_hidden, say_name
from ._errors import EncodeError
from ._record import Encoded, Entry, Envelope, Identity, Loss, Message, Note, NoteKind, Reading, Told
from ._time import instant_of_log

DISAGREES = NoteKind(
    code="envelope.disagrees",
    severity="warning",
    group="protocol",
    about="The log's envelope and the wire name different values; the wire's stands.",
)

TIMES_DISAGREE = NoteKind(
    code="envelope.times-disagree",
    severity="warning",
    group="protocol",
    about="The log's envelope and the wire name times a minute or more apart; the wire's stands.",
)
TIMES_DIFFER = NoteKind(
    code="envelope.times-differ",
    severity="info",
    group="protocol",
    about="The log's envelope and the wire name times less than a minute apart; the wire's stands.",
)

NOTES = (DISAGREES, TIMES_DISAGREE, TIMES_DIFFER)

# What an export adds of its own to the record of a line stands under this name; no log said it.
INSPECTED = "inspected"
_KNOWN = {"raw", "at", "from", "to", "conversation", "trace", "parent", "id", "dialect", "label", "prior", "keys"}


def envelope_of(mapping: Mapping[str, Any]) -> Envelope:
    """The envelope that a JSON object of the HTTP contract describes; names it does not know are kept in `extra`.

    Args:
        mapping: at (a time in text, or its number), from, to (a name or a list), conversation, trace, parent, id,
            dialect and label; `raw`, `prior`, `keys` and `inspected` are not the envelope's and are passed over.
    """
    at = mapping.get("at")
    at_raw = _text(at)
    to = mapping.get("to")
    receivers = to if isinstance(to, list) else [to]
    return Envelope(
        at=instant_of_log(at_raw) if at_raw else None,
        at_raw=at_raw,
        sender=_text(mapping.get("from")),
        receivers=tuple(str(name) for name in receivers if name not in (None, "")),
        conversation=_text(mapping.get("conversation")),
        trace=_text(mapping.get("trace")),
        parent=_text(mapping.get("parent")),
        id=_text(mapping.get("id")),
        dialect=_text(mapping.get("dialect")),
        label=_text(mapping.get("label")),
        extra={name: value for name, value in mapping.items() if name not in _KNOWN and name != INSPECTED},
    )


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


# (name of the message, name of the envelope)
NAMES = (
    ("sender", "sender"),
    ("receivers", "receivers"),
    ("conversation_id", "conversation"),
    ("trace_id", "trace"),
    ("parent_id", "parent"),
    ("message_id", "id"),
    ("sent_at", "at"),
)


def apply_envelope(reading: Reading, envelope: Envelope | None, *, is_numbered: bool = False) -> Reading:
    """The reading with the envelope's names where the wire is silent; a disagreement becomes a note.

    A message id names one message: with several parts the envelope's id goes to the first alone. Where the dialect
    numbers its parties (`is_numbered`), a name in the envelope is the number's name, and no disagreement.
    """
    if envelope is None:
        return reading
    if not reading.messages:
        return reading.replace(envelope=envelope)
    filled: set[str] = set()
    notes: list[Note] = []
    messages = tuple(_fill(message, envelope, filled, notes, is_numbered=is_numbered) for message in reading.messages)
    return reading.replace(
        messages=messages,
        envelope=envelope,
        from_envelope=tuple(name for name, _ in NAMES if name in filled),
        notes=(*reading.notes, *notes),
    )


def _fill(message: Message, envelope: Envelope, filled: set[str], notes: list[Note], *, is_numbered: bool) -> Message:
    given: dict[str, Any] = {}
    for name, source in NAMES:
        said, outside = getattr(message, name), getattr(envelope, source)
        if not outside or (name == "message_id" and message.part > 1):
            continue
        # Who speaks inside a message, and to whom, its carrier has decided by what the log says.
        if message.carrier_part is not None and name in ("sender", "receivers") and not said:
            continue
        if name == "receivers" and (message.broadcast or (message.target is not None and said)):
            continue
        if not said:
            given[name] = outside
            filled.add(name)
            if name == "sent_at":
                given["sent_at_raw"] = message.sent_at_raw or envelope.at_raw
        # A text inside a message may call its speakers otherwise than the log around it does.
        elif (
            said != outside and message.carrier_part is None and not (is_numbered and is_name_of_number(said, outside))
        ):
            notes.append(_compare_times(said, outside) if name == "sent_at" else _compare(name, said, outside))
    return message.replace(**given) if given else message


def is_name_of_number(said: Any, outside: Any) -> bool:
    """Whether the wire has a number for what the envelope has a name for."""
    numbers: tuple[str, ...] = (said,) if isinstance(said, str) else said or ()
    names: tuple[str, ...] = (outside,) if isinstance(outside, str) else outside or ()
    return len(numbers) == len(names) == 1 and numbers[0].isdecimal() and not names[0].isdecimal()


def _compare(name: str, said: Any, outside: Any) -> Note:
    return DISAGREES.note(f"the wire says {name} {_show(said)}, the envelope {_show(outside)}: the wire's stands")


def _compare_times(said: str, outside: str) -> Note:
    apart = abs(datetime.fromisoformat(said) - datetime.fromisoformat(outside))
    kind = TIMES_DIFFER if apart < timedelta(minutes=1) else TIMES_DISAGREE
    return kind.note(f"the message says {said} and the log {outside}, {apart} apart: the message's own time is used")


def _show(value: Any) -> str:
    return ", ".join(map(say_name, value)) if isinstance(value, tuple) else say_name(str(value))


# Below this score a guess yields to a dialect that the conversation is known to speak.
_SURE = 0.5
# Of a longer sentence a loss tells the beginning.
_MAX_TOLD = 500
# The conversation that was quiet longest is forgotten first.
MAX_CONVERSATIONS = 1000
# And so it is when all together established more names than these.
MAX_NAMES = 50_000


def identify(wire: str, dialect: str | None = None) -> Identity:
    """Conversation, id and time where the wire itself carries them. Cheap; never raises for any text."""
    chosen = get_dialect(dialect) if dialect else get_dialect(detect(wire)[0].dialect)
    return chosen.identify(wire)


def read(wire: str, envelope: Envelope | None = None, *, dialect: str | None = None) -> Reading:
    """Read a text into a record, without context. Never raises for any text.

    Args:
        wire: the text.
        envelope: what the log says around it; its `dialect`, when known here, forces that dialect.
        dialect: a slug that forces the dialect, whatever the text looks like.

    Raises:
        UnknownDialectError: for a `dialect` that does not exist.
    """
    candidates = detect(wire)
    forced = dialect or _known(envelope.dialect if envelope else None)
    chosen = get_dialect(forced or candidates[0].dialect)
    reading = chosen.read(wire, envelope)
    reading = note_hidden(reading.replace(candidates=candidates), envelope)
    return apply_envelope(reading, envelope, is_numbered=chosen.numbers_agents)


def _known(slug: str | None) -> str | None:
    return slug if slug and any(dialect.slug == slug for dialect in all_dialects()) else None


def tell(reading: Reading, context: Context | None = None, keys: Keys | None = None) -> Told:
    """Tell a record in English, in the context of its conversation, and add to that context what it establishes.

    A record whose dialect was a guess is read anew in the dialect that the conversation is known to speak, where
    that is among its candidates; the answer's `reading` is then the new one. Never raises for any reading.
    """
    context = Context() if context is None else context
    reading = choose_dialect(reading, context)
    told = get_dialect(reading.dialect).tell(reading, context, keys or NoKeys())
    spoken = Entry(kind="dialect", name=reading.dialect, value=reading.dialect)
    context.add((*told.entries, spoken) if reading.dialect != "prose" else told.entries)
    return told


def choose_dialect(reading: Reading, context: Context) -> Reading:
    """The reading, or one in another of its candidates if it was a guess and its conversation speaks that dialect."""
    scores = {candidate.dialect: candidate.score for candidate in reading.candidates}
    if scores.get(reading.dialect, 1.0) >= _SURE:
        return reading
    spoken = [slug for slug in context.all_of("dialect") if slug in scores and slug != "prose"]
    if not spoken or reading.dialect in spoken:
        return reading
    best = max(spoken, key=lambda slug: scores[slug])
    return read(reading.wire, reading.envelope, dialect=best)


def decode(
    wire: str,
    envelope: Envelope | None = None,
    *,
    dialect: str | None = None,
    prior: Iterable[tuple[str, Envelope | None]] = (),
    keys: Keys | None = None,
) -> Reading:
    """Read and tell one text: the reading with its messages told, and the layers and fields that telling added.

    Args:
        wire: the text.
        envelope: what the log says around it.
        dialect: a slug that forces the dialect.
        prior: what was said earlier in the same conversation, oldest first, as (wire, envelope).
        keys: a resolver of keys for sealed messages.
    """
    context = Context()
    for index, (earlier, around) in enumerate(prior):
        context.record, context.position = index, index + 1
        tell(read(earlier, around), context, keys)
    context.record, context.position = None, context.position + 1
    return tell(read(wire, envelope, dialect=dialect), context, keys).whole


def encode(messages: Reading | Sequence[Message], dialect: str | None = None, *, spoken: str | None = None) -> Encoded:
    """Write a record in a dialect; the losses list what its wire cannot hold.

    Args:
        messages: a reading, or its messages in order of their parts.
        dialect: the slug to write in; the reading's own where it is left out.
        spoken: the slug of the dialect that the messages were read in, where it is known; the reading's own for one.

    Raises:
        UnknownDialectError: for a dialect that does not exist.
        EncodeError: if the record cannot be written in that dialect at all.
    """
    if isinstance(messages, Reading):
        spoken = messages.dialect
        dialect = dialect or spoken
        messages = messages.messages
    if dialect is None:
        raise EncodeError("none", "a dialect must be named to write messages in")
    written = get_dialect(dialect).encode(messages)
    spoken = _known(spoken)
    if spoken is None or spoken == dialect:
        return written
    resolved = (loss for message in messages for loss in _find_resolved(message, _known(message.dialect) or spoken))
    return written.replace(losses=(*written.losses, *resolved))


def _find_resolved(message: Message, spoken: str) -> Iterator[Loss]:
    """What the English of a message tells and another dialect's wire does not: what was established in its
    conversation, and the meaning of words that only its own dialect has."""
    for said in dict.fromkeys(segment.text.strip() for segment in message.english if segment.source is not None):
        yield Loss(
            name="english", part=message.part, reason=f"what its conversation established is not written: {said}"
        )
    own = get_dialect(spoken)
    if own.has_own_words and message.content and isinstance(message.content, str) and message.sentence:
        told = message.sentence if len(message.sentence) <= _MAX_TOLD else f"{message.sentence[:_MAX_TOLD]} …"
        reason = f"the words are written as they stand in {own.title}, and not what they mean: {told}"
        yield Loss(name="english", part=message.part, reason=reason)


class Conversations:
    """Tells the records of a log in order, each in the context of its conversation.

    A record's conversation is the one that its first message names; all that name none share one.
    """

    def __init__(self) -> None:
        self._contexts: OrderedDict[str | None, Context] = OrderedDict()
        self._names = 0

    def tell(self, reading: Reading, index: int) -> Reading:
        """The reading, told; `index` stands for it where a later one cites it."""
        name = reading.messages[0].conversation_id if reading.messages else None
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = Context()
        self._contexts.move_to_end(name)
        context.record = index
        before = context.size
        whole = tell(reading, context).whole
        context.position += len(whole.messages)
        self._names += context.size - before
        while len(self._contexts) > MAX_CONVERSATIONS or self._names > MAX_NAMES:
            self._names -= self._contexts.popitem(last=False)[1].size
        return whole
