"""Containers around a log (gzip, zstd) and zip archives of logs: bytes in, bytes out, within limits, harm refused.

The first bytes decide what a container is, and never a name. A container within a container is not opened: that is
how a small file hides a large one. What a container gave before it failed stands.

The directory at the end decides. It is read within a limit of its own, since a directory of a million entries is
itself the attack. Sizes it declares are bounds: a file never unfolds beyond its own, and one that would is damaged.
"""

from __future__ import annotations

import hashlib
import itertools
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final

import zstandard
from django.core.exceptions import SuspiciousFileOperation

READ_BYTES: Final = 128 * 1024
HEAD_BYTES: Final = 4
MAX_RATIO: Final = 200
FREE_BYTES: Final = 16 * 1024 * 1024
ZIP: Final = "zip"

_MAGIC: Final = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    # A zstd file may begin with a frame that is to be skipped, of any of sixteen kinds.
    **{bytes([kind]) + b"\x2a\x4d\x18": "zstd" for kind in range(0x50, 0x60)},
    b"PK\x03\x04": ZIP,
    b"PK\x05\x06": ZIP,
}
# One call unfolds all it is given; this much gives at most some megabytes.
_ZSTD_BITE_BYTES: Final = 256
_ZSTD_WINDOW_BYTES: Final = 2**27


class ContainerError(Exception):
    """A container is damaged, cut short, nested, or unfolds beyond the limits."""


class BeyondLimitsError(ContainerError):
    """A container unfolds to more than the limits allow; it need not be damaged."""


class Arrival:
    """Pieces on their way in, counted and digested as they pass."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._digest.update(piece)
        self.size_bytes += len(piece)
        return piece

    @property
    def sha256(self) -> bytes:
        """The digest of what has passed."""
        return self._digest.digest()

    def drain(self) -> None:
        """Let the rest pass, for a digest of the whole."""
        for _ in self:
            continue


def name_container(head: bytes) -> str | None:
    """What begins with these bytes (at least `HEAD_BYTES` where there are so many): gzip, zstd, zip, or None."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def peek(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of a stream, and the stream with them."""
    rest = iter(pieces)
    head = b""
    for piece in rest:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES], itertools.chain([head] if head else [], rest)


def unfold(kind: str, pieces: Iterable[bytes], *, max_bytes: int) -> Iterator[bytes]:
    """What a gzip or zstd stream holds, in pieces of bounded size.

    Args:
        kind: `gzip` or `zstd`.
        pieces: the stream; several members or frames one after the other are one.
        max_bytes: how much it may unfold to at all.

    Raises:
        ContainerError: at the place where it cannot go on; what was yielded before stands.
    """
    plain = _bound(kind, _UNFOLD[kind](iter(pieces)), max_bytes)
    head, plain = peek(plain)
    inner = name_container(head)
    if inner:
        raise ContainerError(f"the {kind} holds a {inner}: a container within a container is not opened")
    yield from plain


def skip_bytes(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """The stream behind its first `count` bytes."""
    for piece in pieces:
        if count < len(piece):
            yield piece[count:] if count else piece
        count = max(0, count - len(piece))


def is_beyond(unfolded_bytes: int, packed_bytes: int, *, max_bytes: int) -> bool:
    """Whether so much out of so little is a bomb: past 16 MiB, more than 200 bytes of one; or too much at all."""
    if unfolded_bytes > max_bytes:
        return True
    return unfolded_bytes > FREE_BYTES and unfolded_bytes > packed_bytes * MAX_RATIO


def _bound(kind: str, pieces: Iterator[tuple[bytes, int]], max_bytes: int) -> Iterator[bytes]:
    total = 0
    for piece, taken in pieces:
        total += len(piece)
        if is_beyond(total, taken, max_bytes=max_bytes):
            raise BeyondLimitsError(
                f"the {kind} unfolds beyond the limits: at most {max_bytes:,} bytes, "
                f"and past {FREE_BYTES:,} at most {MAX_RATIO} of one"
            )
        if piece:
            yield piece


def _inflate(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    member, taken, is_later = None, 0, False
    for piece in pieces:
        taken += len(piece)
        data = piece
        while data:
            if member is None:
                # Zeros may pad the end of a gzip file.
                data = data.lstrip(b"\0") if is_later else data
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            try:
                plain = member.decompress(data, READ_BYTES)
            except zlib.error as error:
                where = "is damaged, or followed by bytes that are no gzip" if is_later else "is damaged"
                raise ContainerError(f"the gzip {where}: {error}") from error
            yield plain, taken
            data = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member, is_later = None, True
    if member is not None:
        # What zlib still holds comes out without more input.
        while plain := member.decompress(b"", READ_BYTES):
            yield plain, taken
        raise ContainerError("the gzip is cut short")


def _unfold_zstd(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    frame, taken = None, 0
    for piece in pieces:
        for start in range(0, len(piece), _ZSTD_BITE_BYTES):
            data = piece[start : start + _ZSTD_BITE_BYTES]
            taken += len(data)
            while data:
                if frame is None:
                    frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()
                try:
                    plain = frame.decompress(data)
                except zstandard.ZstdError as error:
                    raise ContainerError(f"the zstd is damaged: {error}") from error
                yield plain, taken
                data = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    if frame is not None:
        raise ContainerError("the zstd is cut short")


_UNFOLD: Final[dict[str, Callable[[Iterator[bytes]], Iterator[tuple[bytes, int]]]]] = {
    "gzip": _inflate,
    "zstd": _unfold_zstd,
}


MAX_MEMBERS: Final = 1000
_MAX_DIRECTORY_BYTES: Final = 4 * 1024 * 1024
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED: Final = 0x1
# Name, signature and layout of the two ends of a zip (APPNOTE 4.3.14 to 4.3.16).
_END, _END_BYTES = b"PK\x05\x06", 22
_LOCATOR, _LOCATOR_BYTES = b"PK\x06\x07", 20
_END_64, _END_64_BYTES = b"PK\x06\x06", 56
_LOCAL, _LOCAL_BYTES = b"PK\x03\x04", 30
_UNREADABLE: Final = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
)


class RefusedArchiveError(SuspiciousFileOperation):
    """An archive that is not taken, not even in part; to a browser it is 400."""


class Archive:
    """A zip whose directory was read and found harmless.

    Args:
        file: the archive, seekable; it is not closed here.
        max_bytes: how much all its files may unfold to.

    Raises:
        RefusedArchiveError: for an archive that is not taken; its sentence says why.
        ContainerError: where it is cut or damaged so that no directory is there to be read.
    """

    def __init__(self, file: BinaryIO, *, max_bytes: int) -> None:
        self._file = file
        _refuse_large_directory(file)
        try:
            archive = zipfile.ZipFile(file)
            self._start_of_directory = archive.start_dir
            entries = archive.infolist()
            self.members = [entry for entry in entries if not entry.is_dir()]
        except _UNREADABLE as error:
            raise ContainerError(f"the zip has no readable directory: {error}") from error
        if len(entries) > MAX_MEMBERS:
            raise RefusedArchiveError(f"the zip has {len(entries):,} entries; at most {MAX_MEMBERS:,} are taken")
        for entry in entries:
            _refuse_entry(entry)
        if not self.members:
            raise RefusedArchiveError("the zip holds no file")
        self._starts = self._find_starts(file, entries)
        _refuse_bombs(self.members, max_bytes)

    def _find_starts(self, file: BinaryIO, entries: list[zipfile.ZipInfo]) -> dict[int, int]:
        """Where the bytes of each entry begin, by the offset of its header.

        Files that share bytes unfold to far more than the archive shows; an honest archive has none.
        """
        starts: dict[int, int] = {}
        end = 0
        for entry in sorted(entries, key=lambda entry: entry.header_offset):
            file.seek(max(0, entry.header_offset))
            local = file.read(_LOCAL_BYTES)
            if len(local) < _LOCAL_BYTES or not local.startswith(_LOCAL):
                raise ContainerError(f"the zip is damaged: {entry.filename!r} is not where its directory says")
            name_bytes, extra_bytes = struct.unpack("<HH", local[26:30])
            if entry.header_offset < end:
                raise RefusedArchiveError(f"the zip's files overlap at {entry.filename!r}; nothing of it was taken")
            starts[entry.header_offset] = entry.header_offset + _LOCAL_BYTES + name_bytes + extra_bytes
            end = starts[entry.header_offset] + entry.compress_size
        if end > self._start_of_directory:
            raise RefusedArchiveError("the zip's files overlap its directory; nothing of it was taken")
        return starts

    def read(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """A file's bytes, in pieces.

        Raises:
            ContainerError: where it is damaged; what was yielded before stands.
        """
        size = checksum = 0
        packed = self._read_packed(member)
        for plain in self._inflate(packed) if member.compress_type == zipfile.ZIP_DEFLATED else packed:
            size += len(plain)
            if size > member.file_size:
                raise ContainerError("the file is damaged: it is larger than the zip's directory says")
            checksum = zlib.crc32(plain, checksum)
            if plain:
                yield plain
        if size != member.file_size or checksum != member.CRC:
            raise ContainerError("the file is damaged: its size and checksum are not those of the zip's directory")

    def _read_packed(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        at, left = self._starts[member.header_offset], member.compress_size
        while left:
            self._file.seek(at)
            piece = self._file.read(min(READ_BYTES, left))
            if not piece:
                raise ContainerError("the zip is cut short")
            at, left = at + len(piece), left - len(piece)
            yield piece

    @staticmethod
    def _inflate(pieces: Iterator[bytes]) -> Iterator[bytes]:
        stream = zlib.decompressobj(wbits=-15)
        try:
            for piece in pieces:
                data = piece
                while data and not stream.eof:
                    yield stream.decompress(data, READ_BYTES)
                    data = stream.unconsumed_tail
            while not stream.eof and (plain := stream.decompress(b"", READ_BYTES)):
                yield plain
        except zlib.error as error:
            raise ContainerError(f"the file is damaged: {error}") from error
        if not stream.eof:
            raise ContainerError("the file is damaged: its packed bytes end too early")


def _refuse_large_directory(file: BinaryIO) -> None:
    """Count by the end of the archive alone, before anything builds a list of a million entries."""
    size = file.seek(0, 2)
    start = max(0, size - _END_BYTES - 0xFFFF)
    file.seek(start)
    tail = file.read()
    # As readers do: an end without a comment first, else the last one that is there.
    plain = tail[-_END_BYTES:]
    at = len(tail) - _END_BYTES if plain.startswith(_END) and plain.endswith(b"\0\0") else tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise ContainerError("the zip has no readable directory: it is cut short, or no zip")
    count, directory_bytes = struct.unpack("<HI", tail[at + 10 : at + 16])
    locator = start + at - _LOCATOR_BYTES
    if locator >= 0:
        file.seek(locator)
        said = file.read(_LOCATOR_BYTES)
        if said.startswith(_LOCATOR):
            file.seek(max(0, locator - _END_64_BYTES))
            end = file.read(_END_64_BYTES)
            if end.startswith(_END_64):
                count, directory_bytes = struct.unpack("<QQ", end[32:48])
    if count > MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise RefusedArchiveError(f"the zip has {count:,} entries; at most {MAX_MEMBERS:,} are taken")


def _refuse_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename
    parts = name.replace("\\", "/").split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    refusals = (
        ("\0" in name, "has a name with a NUL in it"),
        (parts[0] == "" or parts[0].endswith(":"), "has an absolute path"),
        (".." in parts, "has a path that leads out of the archive"),
        (kind == stat.S_IFLNK, "is a symbolic link"),
        (kind not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), "is no ordinary file"),
        (bool(entry.flag_bits & _ENCRYPTED), "is encrypted"),
        (entry.compress_type not in _METHODS, "is packed by a method other than deflate"),
    )
    for is_so, words in refusals:
        if is_so:
            raise RefusedArchiveError(f"the zip's entry {name!r} {words}; nothing of the archive was taken")


def _refuse_bombs(members: list[zipfile.ZipInfo], max_bytes: int) -> None:
    total = sum(member.file_size for member in members)
    is_bomb = total > max_bytes or any(
        is_beyond(member.file_size, member.compress_size, max_bytes=max_bytes) for member in members
    )
    if is_bomb:
        raise RefusedArchiveError(
            f"the zip unfolds to {total:,} bytes, beyond the limits: at most {max_bytes:,}, "
            f"and no file to more than {MAX_RATIO} times its packed size"
        )
