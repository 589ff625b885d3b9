"""Zip archives of logs: their files one by one, and the refusal of an archive that could harm, before any is read.

The directory at the end decides. It is read within a limit of its own, since a directory of a million entries is
itself the attack. Sizes it declares are bounds: a file never unfolds beyond its own, and one that would is damaged.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from django.core.exceptions import SuspiciousFileOperation

from .containers import MOST_RATIO, READ_BYTES, ContainerError, is_beyond

MOST_MEMBERS: Final = 1000
_MOST_DIRECTORY_BYTES: Final = 4 * 1024 * 1024
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
        most_bytes: how much all its files may unfold to.

    Raises:
        RefusedArchiveError: for an archive that is not taken; its sentence says why.
        ContainerError: where it is cut or damaged so that no directory is there to be read.
    """

    def __init__(self, file: BinaryIO, *, most_bytes: int) -> None:
        self._file = file
        _refuse_large_directory(file)
        try:
            archive = zipfile.ZipFile(file)
            self._start_of_directory = archive.start_dir
            entries = archive.infolist()
            self.members = [entry for entry in entries if not entry.is_dir()]
        except _UNREADABLE as error:
            raise ContainerError(f"the zip has no readable directory: {error}") from error
        if len(entries) > MOST_MEMBERS:
            raise RefusedArchiveError(f"the zip has {len(entries):,} entries; at most {MOST_MEMBERS:,} are taken")
        for entry in entries:
            _refuse_entry(entry)
        if not self.members:
            raise RefusedArchiveError("the zip holds no file")
        self._starts = self._find_starts(file, entries)
        _refuse_bombs(self.members, most_bytes)

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
    if count > MOST_MEMBERS or directory_bytes > _MOST_DIRECTORY_BYTES:
        raise RefusedArchiveError(f"the zip has {count:,} entries; at most {MOST_MEMBERS:,} are taken")


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


def _refuse_bombs(members: list[zipfile.ZipInfo], most_bytes: int) -> None:
    total = sum(member.file_size for member in members)
    is_bomb = total > most_bytes or any(
        is_beyond(member.file_size, member.compress_size, most_bytes=most_bytes) for member in members
    )
    if is_bomb:
        raise RefusedArchiveError(
            f"the zip unfolds to {total:,} bytes, beyond the limits: at most {most_bytes:,}, "
            f"and no file to more than {MOST_RATIO} times its packed size"
        )
