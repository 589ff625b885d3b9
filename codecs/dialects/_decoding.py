"""A text decoded: the dialect it is in is found or forced, it is read, and told in the context of its conversation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from ._context import Context, Keys, NoKeys
from ._envelope import apply_envelope
from ._errors import EncodeError
from ._hidden import note_hidden
from ._record import Encoded, Entry, Envelope, Identity, Loss, Message, Reading, Told
from ._registry import all_dialects, detect, get_dialect

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
