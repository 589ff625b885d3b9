"""The field tree: every character of the wire, with labels for people and the meaning of each code.

Leaves are cut from the statements that were read; separators become `syntax`, and what no rule could place `unread`.
Fields of an inner layer hang below the payload they came from.
"""

from __future__ import annotations

from collections.abc import Iterator

from .._json import Node, place, skip_space
from .._record import Field, Layer, leaf, tile
from .contents import label_of, meaning_of
from .frames import Signature
from .payloads import RULES, Payload
from .statements import Part, Statement
from .tables import (
    ACTIONS,
    CONDITIONS,
    DOMAINS,
    ERRORS,
    IDIOMS,
    MODIFIER_MEANINGS,
    MODIFIERS,
    PREFIXES,
    STATUSES,
    SUBTYPES,
    TIME_MEANINGS,
    UNITS,
)

_SYNTAX = frozenset("|;@ \t\r\n\ufeff")
_JSON_SYNTAX = frozenset('{}[],: \t\r\n"')
# Deeper members are shown as one leaf with their text.
_MAX_DEPTH = 16


def build_tree(
    layers: tuple[Layer, ...], statements: tuple[Statement, ...], signatures: tuple[Signature, ...]
) -> tuple[Field, ...]:
    """The fields of layer 0, with the inner layers below their payloads."""
    wire = layers[0].text
    fields = [_statement_field(statement, layers) for statement in statements if statement.end > statement.start]
    fields += [_signature_field(signature, wire) for signature in signatures]
    fields.sort(key=lambda field: field.span[1])
    return tile(fields, wire, syntax=_SYNTAX)


def _signature_field(signature: Signature, wire: str) -> Field:
    version, source = signature.version, signature.source
    mark = leaf("mark", "signature mark", wire, signature.start, version[0], meaning="closes the record")
    children = [mark]
    if version[1] > version[0]:
        children.append(_valued("version", "protocol version", wire, *version))
    if source[1] > source[0]:
        children.append(_valued("source", "the address of the protocol's description; never fetched", wire, *source))
    whole = leaf("signature", "protocol signature", wire, signature.start, signature.end)
    return whole.replace(children=tuple(children))


def _valued(name: str, label: str, text: str, start: int, end: int, meaning: str | None = None) -> Field:
    return leaf(name, label, text, start, end, value=text[start:end], meaning=meaning)


def _statement_field(statement: Statement, layers: tuple[Layer, ...]) -> Field:
    wire = layers[0].text
    whole = leaf(statement.kind, _LABELS[statement.kind], wire, statement.start, statement.end)
    children: list[Field] = []
    if statement.marker:
        children.append(leaf("marker", "message marker", wire, *statement.marker, meaning="opens a message"))
    if statement.text is not None:
        children.append(_valued("text", "human text", wire, *statement.text))
    children.extend(_code_fields(statement, wire))
    children.extend(_part_field(part, statement, layers) for part in statement.parts if part.end > part.start)
    return whole.replace(children=tuple(child for child in children if child.span[2] > child.span[1]))


_LABELS = {
    "statement": "statement",
    "response": "response",
    "error": "error",
    "text": "human text after 👽",
    "prose": "human text",
}


def _code_fields(statement: Statement, wire: str) -> Iterator[Field]:
    if statement.kind == "response":
        ((start, end),) = statement.codes
        status = STATUSES.get(statement.status)
        yield _valued("status", "response status", wire, start - 1, end, status.name if status else None).replace(
            value=statement.status
        )
    elif statement.kind == "error":
        (start, end), (first, last) = statement.codes
        yield _valued("error", "error type", wire, start - 2, end, ERRORS.get(statement.error)).replace(
            value=statement.error
        )
        meaning = SUBTYPES.get(statement.subtype) if statement.error == "2" else None
        yield _valued("subtype", "error subtype", wire, first, last, meaning)
    elif statement.kind == "statement":
        domain, action = DOMAINS.get(statement.domain), ACTIONS.get(statement.action)
        meaning = f"{domain.name}, {domain.meaning}" if domain else None
        yield _valued("domain", "domain", wire, *statement.codes[0], meaning).replace(value=statement.domain)
        yield _valued("action", "action", wire, *statement.codes[1], say_action(statement)).replace(
            value=action.code if action else statement.action
        )
        for digit, at in statement.modifiers:
            yield _valued("modifier", "modifier", wire, at, at + 1, MODIFIER_MEANINGS[MODIFIERS[digit]])


def say_action(statement: Statement) -> str | None:
    """The action's name and meaning, and how Moltbook reads it where that differs."""
    action = ACTIONS.get(statement.action)
    if action is None:
        return None
    is_read_otherwise = action.code == "9" or (action.code == "1" and "identifier" in statement.standing)
    if statement.domain == "7" and is_read_otherwise:
        return f"{action.name}, read on Moltbook as {IDIOMS[action.code]}"
    return f"{action.name}, {action.meaning}"


def _part_field(part: Part, statement: Statement, layers: tuple[Layer, ...]) -> Field:
    wire = layers[0].text
    if part.payload is not None:
        return _payload_field(part, part.payload, layers)
    if part.role == "identifier":
        payload = statement.payload
        is_session = bool(payload and payload.kind == "encrypted")
        label = "session" if is_session else "correlation id" if statement.is_answer else "identifier"
        return _valued("identifier", label, wire, part.start, part.end).replace(value=part.value)
    if part.aim is not None:
        return leaf(
            "target", "target", wire, part.start, part.end, value=part.aim.target.name, meaning=part.aim.meaning
        )
    if part.time is not None:
        return _time_field(part, wire)
    if part.condition is not None:
        return _condition_field(part, wire)
    label = {"detail": "details in words", "empty": "empty field"}.get(part.role, "field outside the grammar")
    return leaf(part.role, label, wire, part.start, part.end, value=part.value)


def _time_field(part: Part, wire: str) -> Field:
    time, start = part.time, part.start
    whole = leaf("time", "time", wire, start, part.end, value=part.value)
    if time is None or not time.symbol:
        return whole
    children = [leaf("symbol", "kind of time", wire, start, start + 2, meaning=TIME_MEANINGS[time.symbol])]
    for amount in time.amounts:
        unit, size = UNITS[amount.unit]
        meaning = f"{int(amount.digits)} {unit}{'' if int(amount.digits) == 1 else 's'}"
        first, last = start + 1 + amount.start, start + 1 + amount.end
        value = int(amount.digits) * size
        children.append(leaf("amount", "amount", wire, first, last, value=value, meaning=meaning))
    if not time.amounts and part.end > start + 2:
        children.append(_valued("instant", "exact time", wire, start + 2, part.end, time.moment.instant))
    return whole.replace(value=time.moment.to_dict(), children=tuple(children))


def _condition_field(part: Part, wire: str) -> Field:
    condition, start = part.condition, part.start
    whole = leaf("condition", "condition", wire, start, part.end, value=part.value)
    if condition is None or condition.subject is None:
        return whole
    subject, operator = start + 2, start + 1 + condition.operator_end
    children = [_valued("subject", "the compared value", wire, start, subject, CONDITIONS[wire[subject - 1]][1])]
    if condition.relation is not None:
        children.append(_valued("operator", "comparison", wire, subject, operator, condition.relation))
    children.append(_valued("operand", "compared with", wire, operator, part.end))
    return whole.replace(children=tuple(children))


def _payload_field(part: Part, payload: Payload, layers: tuple[Layer, ...]) -> Field:
    wire = layers[0].text
    kind = PREFIXES.get(wire[part.start + 1 : payload.body].rstrip(":"))
    meaning = f"{kind[2]}, security level {kind[1]}" if kind else None
    children = [_valued("prefix", "payload prefix", wire, part.start, payload.body, meaning)]
    if payload.parts:
        (first, middle), (second, last) = payload.parts
        nonce = f"{len(payload.nonce)} bytes" if payload.nonce is not None else None
        children.append(_valued("nonce", "nonce", wire, first, middle, nonce))
        children.append(leaf("syntax", "separator", wire, middle, second))
        size = f"{payload.size_bytes} bytes and a tag of 16" if payload.size_bytes is not None else None
        children.append(_valued("ciphertext", "ciphertext", wire, second, last, size))
    elif payload.end > payload.body:
        data = leaf("data", "payload data", wire, payload.body, payload.end, value=payload.hidden)
        children.append(data.replace(children=inner_fields(payload, layers)))
    whole = leaf("payload", "payload", wire, part.start, part.end, meaning=meaning)
    return whole.replace(children=tuple(child for child in children if child.span[2] > child.span[1]))


def inner_fields(payload: Payload, layers: tuple[Layer, ...]) -> tuple[Field, ...]:
    """The fields on the innermost layer of a payload: the members of its JSON, or its text."""
    if payload.text is None or payload.layer == 0 or not payload.text:
        if payload.is_json and payload.text:
            return _json_fields(payload.text, payload.layer, payload.body)
        return ()
    if payload.is_json:
        return _json_fields(payload.text, payload.layer, 0)
    return (leaf("text", "text", payload.text, 0, len(payload.text), layer=payload.layer, value=payload.text),)


def _json_fields(text: str, layer: int, base: int) -> tuple[Field, ...]:
    start = skip_space(text)
    if text[start] not in "{[":
        value = leaf("value", "value", text, start, len(text.rstrip()), layer=layer, value=text.strip())
        return tile([value], text, syntax=_JSON_SYNTAX, layer=layer)
    fields = [_member_field(member, text, layer, 0) for member in place(text, start, len(text)).members]
    tiled = tile(fields, text, syntax=_JSON_SYNTAX, layer=layer)
    return tuple(_moved(field, base) for field in tiled) if base else tiled


def _moved(field: Field, by: int) -> Field:
    layer, start, end = field.span
    children = tuple(_moved(child, by) for child in field.children)
    return field.replace(span=(layer, start + by, end + by), children=children)


def _member_field(member: Node, text: str, layer: int, depth: int) -> Field:
    key, value = member.key, member.read(text, RULES)
    label = label_of(key) if isinstance(key, str) else f"item {key + 1}"
    meaning = meaning_of(key, value) if isinstance(key, str) else None
    children: list[Field] = []
    if isinstance(key, str):
        at = (member.key_start, member.key_end)
        children.append(leaf("key", "key", text, *at, layer=layer, value=key, meaning=label))
    held = leaf("value", label, text, member.start, member.end, layer=layer, meaning=meaning)
    if member.kind in "{[" and depth < _MAX_DEPTH:
        value = None
        held = held.replace(children=tuple(_member_field(inner, text, layer, depth + 1) for inner in member.members))
    else:
        held = held.replace(value=value)
    whole = leaf(str(key), label, text, member.key_start, member.end, layer=layer, value=value, meaning=meaning)
    return whole.replace(children=(*children, held))
