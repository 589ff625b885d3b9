"""Telling FIPA-ACL and KQML: each message's sentence, what that sentence leaves out, and the gloss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from .._context import Context, Keys
from .._english import Sentence, enclose, quote, say_instant, say_name, say_seconds
from .._inner import Contents, say_inner
from .._places import hide
from .._record import Basis, Message, Reading, Segment, Span, Told
from .parsing import Call, Parameter, Prose, is_end, parse_record, span_of
from .reading import Opened


def tell(reading: Reading, context: Context, keys: Keys) -> Told:
    """The messages with their English, what the sentence leaves out, and the gloss. Never raises."""
    wire = reading.wire
    record = parse_record(wire)
    if record.error:
        call = record.calls[0] if len(record.calls) == 1 else None
        messages = tuple(_tell_malformed(message, call, wire) for message in reading.messages)
        return Told(reading=reading, messages=messages)
    opened: Opened = reading.parsed
    contents = Contents(reading, context, keys)
    waiting, told = iter(reading.messages), []
    for index, part in enumerate(record.parts):
        message, inner = next(waiting), opened.inner.get(index)
        said = [] if inner is None else contents.tell(inner, message, [next(waiting) for _ in inner.reading.messages])
        own = _tell_part(message, part, record.calls, wire, said)
        told += [hide(own, opened.hidden) if opened.hidden else own, *said]
    return Told(
        reading=reading,
        messages=tuple(told),
        layers=tuple(contents.layers),
        fields=tuple(contents.fields),
        entries=tuple(contents.entries),
    )


def _tell_part(
    message: Message, part: Prose | Call, calls: Sequence[Call], wire: str, said: Sequence[Message]
) -> Message:
    if isinstance(part, Prose):
        before, text, after = enclose(wire[part.start : part.end])
        own = Segment(text=text, spans=((0, part.start, part.end),))
        english = (Segment(text=f"{_say_where(part, calls)}: {before}"), own, Segment(text=f"{after}."))
        return message.replace(english=english, gloss=(Segment(text=before), own, Segment(text=after)))
    also = tuple(_tell_rest(message, part, wire))
    return message.replace(english=_tell_call(message, part, said), also=also, gloss=_gloss(part, wire))


def _say_where(part: Prose, calls: Sequence[Call]) -> str:
    """Where text stands beside the messages, so that it is not taken for a message of its own."""
    what = "the message" if len(calls) == 1 else "the messages"
    if part.end <= calls[0].start:
        return f"Text before {what}"
    return f"Text after {what}" if part.start >= calls[-1].end else f"Text between {what}"


def _say_agents(sentence: Sentence, names: Sequence[str], span: Span | None, sender: str | None = None) -> None:
    for index, name in enumerate(names):
        if index:
            sentence.say(" and " if index == len(names) - 1 else ", ")
        sentence.say(f"itself ({say_name(name)})" if name == sender else say_name(name), span)


def _say_parties(message: Message, before: str, after: str, used: dict[str, Parameter], act: Span | None) -> Sentence:
    """Who says it, the verb, and to whom."""
    sentence = Sentence()
    sender, receiver = used.get("sender"), used.get("receiver")
    if message.sender is None:
        sentence.say("Someone", basis="unknown")
    else:
        sentence.say(say_name(message.sender), sender and span_of(sender))
    sentence.say(f" {before}", act)
    if message.receivers:
        _say_agents(sentence, message.receivers, receiver and span_of(receiver), message.sender)
    else:
        sentence.say("someone", basis="unknown")
    return sentence.say(after, act)


def _tell_call(message: Message, call: Call, said: Sequence[Message]) -> tuple[Segment, ...]:
    used = call.used()
    unknown = f"sends {{whom}} {quote(call.name)} (an act that neither FIPA-ACL nor KQML has)"
    before, _, after = (call.act.verb if call.act else unknown.partition("{whom}")[0]).partition("{whom}")
    if call.act is None:
        before, after = "sends ", unknown.partition("{whom}")[2]
    sentence = _say_parties(message, before, after, used, call.act_span)
    content = used.get("content")
    if content and said:
        sentence.say(": ").add([*say_inner(said, message.part, span_of(content))]).say("”")
    elif content and isinstance(message.content, str):
        opening, text, closing = enclose(message.content)
        sentence.say(f": {opening}").say(text, span_of(content)).say(closing)
    elif content is None:
        sentence.say("; no content is given", basis="unknown")
    _say_deadline(sentence, message, used.get("reply-by"))
    reply_to = used.get("reply-to")
    if reply_to and reply_to.value:
        sentence.say(", with answers to go to ")
        _say_agents(sentence, [*dict.fromkeys(each.name for each in reply_to.value.agents)], span_of(reply_to))
    if message.parent_id is not None:
        cited = used.get("in-reply-to")
        sentence.say(f", in reply to message {say_name(message.parent_id)}", cited and span_of(cited))
    told = sentence.segments()
    # What is told inside the marks ends the sentence.
    is_ended = bool(said) and told[-1].text == "”" and told[-2].text.endswith(".")
    return told if is_ended else sentence.say(".").segments()


def _say_deadline(sentence: Sentence, message: Message, read: Parameter | None) -> None:
    moment = message.deadline
    if moment is None or read is None:
        return
    if moment.instant:
        said = f"by {say_instant(datetime.fromisoformat(moment.instant))}"
    elif moment.seconds is not None:
        whole = int(moment.seconds)
        is_whole = whole == moment.seconds
        said = f"within {say_seconds(whole) if is_whole else f'{moment.seconds} seconds'}"
    else:
        zone = "in a local time of no named zone" if moment.kind == "local" else "not understood"
        said = f"by {quote(moment.raw)} ({zone})"
    sentence.say(
        f", and wants an answer {said}", span_of(read), basis="exact" if moment.kind != "unread" else "unknown"
    )


def _tell_malformed(message: Message, call: Call | None, wire: str) -> Message:
    """Who sent it to whom, as far as that is known, and its text; why it cannot be read is a caution of its own."""
    used = call.used() if call else {}
    sentence = _say_parties(message, "sends ", " a message that cannot be read", used, call and call.act_span)
    if call and call.act:
        sentence.say("; what can be read of it: ").say(f"the act {call.act.name}", call.act_span)
    sentence.say("; as it stands: ").say(quote(wire), (0, 0, len(wire)), basis="unknown").say(".")
    return message.replace(english=sentence.segments(), gloss=_gloss(call, wire) if call else ())


# What stands beside the sentence, by the key of its parameter.
_BESIDE = {
    "language": "content in the language {}",
    "encoding": "content in the encoding {}",
    "ontology": "words of the ontology {}",
    "protocol": "a step of the protocol {}",
    "conversation-id": "in conversation {}",
    "reply-with": "message {}",
}


def _tell_rest(message: Message, call: Call, wire: str) -> Iterator[Segment]:
    """What the message carries beyond its sentence, one phrase each."""
    used = call.used()
    protocol, content = used.get("protocol"), message.content
    said = protocol.value.text if protocol and protocol.value else None
    if call.act and call.act.name == "inform" and is_end(said, content if isinstance(content, str) else None):
        why = protocol if is_end(said, None) else used.get("content")
        text = f"by its {'protocol' if why is protocol else 'content'} this says that the work is done"
        yield Segment(text=text, spans=(span_of(why),) if why else (), basis="inferred")
    for each in call.parameters:
        spans, key = (span_of(each),), each.name.lower()
        label = each.slot.label if each.slot else f"parameter {say_name(each.name)}"
        if each.role == "again":
            yield Segment(text=f"a second {label}, {quote(wire[each.start : each.end])}, is not used", spans=spans)
        elif each.role == "unread" and each.node:
            text = f"the {label} is written {quote(each.node.value)}, which is not understood"
            yield Segment(text=text, spans=spans, basis="unknown")
        elif each.role == "used" and each.value and key in _BESIDE:
            yield Segment(text=_BESIDE[key].format(say_name(each.value.text)), spans=spans)
        elif each.role == "used" and each.value and (each.slot is None or each.slot.key not in _IN_SENTENCE):
            yield Segment(text=f"{label} {quote(each.value.text)}", spans=spans)
        for agent in each.value.agents if each.value else ():
            for what in (*(f"at {quote(at)}" for at in agent.addresses), *(f"with {quote(of)}" for of in agent.rest)):
                yield Segment(text=f"{say_name(agent.name)} {what}", spans=((0, agent.start, agent.end),))
    for node in call.strays:
        text = f"{quote(node.value)} stands without the name of a parameter and is not read"
        yield Segment(text=text, spans=(span_of(node),), basis="unknown")


_IN_SENTENCE = frozenset({"sender", "receiver", "reply-to", "content", "in-reply-to", "reply-by"})


def _gloss(call: Call, wire: str) -> tuple[Segment, ...]:
    """One segment a parameter, in wire order, with marks between."""
    segments = [Segment(text=call.name.upper() if call.act else quote(call.name), spans=(call.act_span,))]
    for each in call.parameters:
        said = f"{say_name(each.name)} without a value"
        if each.role == "again":
            said = f"{quote(wire[each.start : each.end])} not used"
        elif each.value and each.value.agents:
            said = f"{say_name(each.name)} {', '.join(say_name(agent.name) for agent in each.value.agents)}"
        elif each.node and each.role != "empty":
            said = f"{say_name(each.name)} {quote(each.node.value)}"
        basis: Basis = "unknown" if each.role == "unread" else "exact"
        segments += [Segment(text=" · "), Segment(text=said, spans=(span_of(each),), basis=basis)]
    return tuple(segments)
