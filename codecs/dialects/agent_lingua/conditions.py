"""The condition field: what is compared, how, and with what.

Specification: 0.4.0 Condition Encoding. A partition, `P1/3`, needs no operator.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .._english import quote
from .._record import Moment, Note
from .notes import CONDITION_UNREAD, OPERATOR_BORROWED
from .tables import BORROWED_OPERATORS, CONDITIONS, OPERATORS

_PARTITION = re.compile(r"P([0-9]{1,9})/([0-9]{1,9})\Z")


class Condition(NamedTuple):
    """A condition as read: its moment, the table's words for type and operator, the value, and its notes.

    `operator_end` and `value_start` are offsets in the value of the field.
    """

    moment: Moment
    subject: str | None
    relation: str | None
    operand: str
    operator_end: int
    notes: tuple[Note, ...] = ()


def read_condition(value: str, start: int) -> Condition:
    """Read the characters after `%`; `start` is where they begin on the wire. The kind is the table's."""
    span = (0, start, start + len(value))
    row = CONDITIONS.get(value[:1])
    if row is None:
        return _unread(value, span)
    kind, subject = row
    if _PARTITION.match(value):
        return Condition(Moment(raw=value, kind=kind), subject, None, value[1:], 1)
    operator = value[1:3] if value[1:3] in BORROWED_OPERATORS else value[1:2]
    operand = value[1 + len(operator) :]
    relation = BORROWED_OPERATORS.get(operator) or OPERATORS.get(operator)
    if relation is None or not operand:
        return _unread(value, span)
    notes: tuple[Note, ...] = ()
    if len(operator) == 2:
        text = f"the operator {operator} is not in the table: read as “{relation}”"
        notes = (OPERATOR_BORROWED.note(text, (0, start + 1, start + 3)),)
    return Condition(Moment(raw=value, kind=kind), subject, relation, operand, 1 + len(operator), notes)


def _unread(value: str, span: tuple[int, int, int]) -> Condition:
    note = CONDITION_UNREAD.note(f"the condition {quote(value)} is not of the form type, operator, value", span)
    return Condition(Moment(raw=value, kind="unread"), None, None, value, 0, (note,))
