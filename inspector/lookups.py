"""Conditions that Django's query language has no words for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, F, Func, Value
from django.db.models.expressions import BaseExpression


class IsAny(Func):
    """Whether a column is one of the elements of an array: one parameter, where `in` takes one for each value.

    Args:
        column: its name; of a foreign key that of the id.
        values: all of one type; or an expression that is an array.
    """

    template = "(%(expressions)s))"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, column: str, values: Iterable[Any] | BaseExpression | F) -> None:
        array = values if isinstance(values, BaseExpression | F) else Value(list(values))
        super().__init__(F(column), array)


class HasAnyBit(Func):
    """Whether a column of whole numbers has any of these bits set.

    Args:
        column: its name.
        bits: as a number.
    """

    template = "((%(expressions)s) <> 0)"
    arg_joiner = " & "
    output_field = BooleanField()

    def __init__(self, column: str, bits: int) -> None:
        super().__init__(F(column), Value(bits))
