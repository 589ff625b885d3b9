"""Long JSON texts as the database keeps them: compressed by a dictionary of what all of them have in common.

A packed text begins with the number of its form. 0: UTF-8 as it is, stored before there were others. 1: a zstd frame by
the dictionary of that number, which is never changed: another one is a file and a number more (`bench.dictionary` makes
it). With it 2,600 characters of a told body become 400 bytes, by PostgreSQL's own compression 1,040.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zstandard
from django.db import models

_PLAIN: Final = b"\x00"
_FORM: Final = 1
_LEVEL: Final = 3

if TYPE_CHECKING:
    _TextField = models.Field[str, str]
else:
    _TextField = models.Field


class PackedTextField(_TextField):
    """A text in Python, "" where there is none, and a packed text (`pack_text`) in the database, where it cannot be
    searched. Rows that are written past Django's models (COPY, plain SQL) pack it themselves."""

    # For the type checker: what rows have is text.
    _pyi_private_set_type: str
    _pyi_private_get_type: str

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"default": "", "editable": False, **options})

    def get_internal_type(self) -> str:
        """The type of the column."""
        return "BinaryField"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """The packed text."""
        return pack_text(value) if isinstance(value, str) else value

    def from_db_value(self, value: Any, *_: object) -> str | None:
        """The text of what the database holds."""
        return None if value is None else unpack_text(value)


class _Packers(threading.local):
    """The compressor and the decompressor of a thread: neither may be shared."""

    def __init__(self) -> None:
        dictionary = _load_dictionary()
        self.pack = zstandard.ZstdCompressor(_LEVEL, dict_data=dictionary, write_dict_id=False).compress
        self.unpack = zstandard.ZstdDecompressor(dict_data=dictionary).decompress


@cache
def _load_dictionary() -> zstandard.ZstdCompressionDict:
    dictionary = zstandard.ZstdCompressionDict(Path(__file__).with_name(f"packed_text.{_FORM}.dict").read_bytes())
    dictionary.precompute_compress(_LEVEL)
    return dictionary


_packers = _Packers()


def pack_text(text: str) -> bytes:
    """A text as the database keeps it; nothing where it is empty."""
    data = text.encode("utf-8", "surrogatepass")
    return bytes([_FORM]) + _packers.pack(data) if data else b""


def unpack_text(packed: bytes | memoryview, *, max_bytes: int | None = None) -> str:
    """The text that was packed, or "" where it is longer than `max_bytes` of UTF-8; a ValueError for another form."""
    form, data = bytes(packed[:1]), bytes(packed[1:])
    if form == bytes([_FORM]):
        if max_bytes is not None and zstandard.frame_content_size(data) > max_bytes:
            return ""
        return _packers.unpack(data).decode("utf-8", "surrogatepass")
    if form not in (b"", _PLAIN):
        raise ValueError(f"a packed text of form {form[0]} is of a later version")
    return "" if max_bytes is not None and len(data) > max_bytes else data.decode("utf-8", "surrogatepass")
