"""Exports of OpenTelemetry as Protobuf: cut on the wire into resources, scopes and items before anything is parsed.

A message of Protobuf without any field takes two bytes of the body, and some hundred as an object. So what stands in
lists is counted first, and each item is parsed by itself.

The encoding is that of protobuf.dev/programming-guides/encoding. Groups, which OTLP never had, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

# A resource, a scope or an item has no more fields, with those of what it holds.
MAX_FIELDS: Final = 200_000
_VARINT, _LENGTH = 0, 2
# How long a value is by its wire type, where that is fixed.
_SIZES: Final = {1: 8, 5: 4}
# The number of the list of resources in an export; in each of these, and in each of their scopes, that of what follows.
_RESOURCES, _INNER = 1, 2
_MAX_VARINT_BYTES: Final = 10


class WireError(Exception):
    """The bytes are no message."""


class TooManyError(Exception):
    """There are more fields, or more of what stands in lists, than are taken at once."""


class Scope(NamedTuple):
    """A scope on the wire: its resource and itself, without the lists in them, and its items."""

    resource: bytes
    scope: bytes
    items: list[memoryview]


class Walk:
    """A walk over the fields of messages on the wire, of at most so many fields."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def split(self, data: memoryview) -> Iterator[tuple[int, memoryview | None, memoryview]]:
        """Of each field its number, its value where that has a length, and all of it.

        Raises:
            WireError: for bytes that are no message.
            TooManyError: where the fields are more than the walk has.
        """
        at = 0
        while at < len(data):
            self._left -= 1
            if self._left < 0:
                raise TooManyError(f"there are more than {self._most:,}")
            tag, begin = _read_varint(data, at)
            kind, end = tag & 7, begin
            if kind == _VARINT:
                end = _read_varint(data, begin)[1]
            elif kind == _LENGTH:
                size, begin = _read_varint(data, begin)
                end = begin + size
            elif kind in _SIZES:
                end = begin + _SIZES[kind]
            else:
                raise WireError(f"a field of the wire type {kind}")
            if end > len(data):
                raise WireError("a field that is cut")
            yield tag >> 3, data[begin:end] if kind == _LENGTH else None, data[at:end]
            at = end

    def cut(self, data: memoryview, number: int) -> tuple[bytes, list[memoryview]]:
        """A message without one of its lists, and what stands in that list.

        Raises:
            WireError, TooManyError: as `split`.
        """
        rest, inner = bytearray(), []
        for found, value, whole in self.split(data):
            if found == number and value is not None:
                inner.append(value)
            else:
                rest += whole
        return bytes(rest), inner


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    for end, byte in enumerate(data[at : at + _MAX_VARINT_BYTES], at + 1):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, end
        shift += 7
    raise WireError("a number that is cut")


def cut_scopes(body: bytes, *, most: int) -> list[Scope]:
    """The scopes of an export.

    Raises:
        WireError: for bytes that are no export.
        TooManyError: where resources, scopes and items, with the fields beside them, are more than `most`.
    """
    walk, scopes = Walk(most), []
    for each in walk.cut(memoryview(body), _RESOURCES)[1]:
        resource, inner = walk.cut(each, _INNER)
        scopes += [Scope(resource, *walk.cut(scope, _INNER)) for scope in inner]
    return scopes


def parse(kind: Any, data: bytes | memoryview) -> Any:
    """The message of this class that the bytes are.

    Raises:
        DecodeError, WireError: for bytes that are none.
        TooManyError: for more fields than `MAX_FIELDS`.
    """
    # A field has two bytes at least.
    if len(data) > 2 * MAX_FIELDS:
        _count_fields(memoryview(data), kind.DESCRIPTOR)
    return kind.FromString(bytes(data))


def _count_fields(data: memoryview, kind: Any) -> None:
    walk, waiting = Walk(MAX_FIELDS), [(data, kind)]
    while waiting:
        held, kind = waiting.pop()
        for number, value, _ in walk.split(held):
            field = kind.fields_by_number.get(number)
            if value is not None and field is not None and field.message_type is not None:
                waiting.append((value, field.message_type))
