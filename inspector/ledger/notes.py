"""Checkpoints as signed notes: what a ledger vouches for, its signature, and those of its witnesses.

The forms are those of the C2SP specifications `signed-note`, `tlog-checkpoint`, and `tlog-cosignature` (cosignature/v1,
for witnesses). All signatures are Ed25519.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .merkle import HASH_BYTES

# What a signature is of, as its key's id says: the note itself, or a cosignature of it with a time.
SIGNATURE, COSIGNATURE = 0x01, 0x04
MAX_NOTE_BYTES: Final = 65_536
MAX_SIGNATURES: Final = 64
_NAME: Final = re.compile(r"[^\s+\u2014]{1,256}\Z")
_LINE: Final = re.compile(r"— ([^\s+]{1,256}) ([A-Za-z0-9+/]{12,1024}={0,2})\Z")
_ID_BYTES, _TIME_BYTES, _SIGNATURE_BYTES = 4, 8, 64


class NoteError(ValueError):
    """A text is no note, no checkpoint or no key; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How many entries a ledger has, and the root of its tree. `origin` names the ledger."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


@dataclass(frozen=True, slots=True)
class Signature:
    """A line under a note: whose it claims to be, the id of the key, and the bytes after that id."""

    name: str
    key_id: bytes
    data: bytes

    @property
    def line(self) -> str:
        """As it stands in a note, with its end of line."""
        return f"— {self.name} {base64.b64encode(self.key_id + self.data).decode()}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A signed text. `text` ends with a line feed."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(each.line for each in self.signatures)}"

    @property
    def checkpoint(self) -> Checkpoint:
        """What the text says of a ledger.

        Raises:
            NoteError: where it is no checkpoint.
        """
        lines = self.text.split("\n")
        if len(lines) < 4 or not lines[0] or not re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1]):
            raise NoteError("the note is no checkpoint: it has no origin, or no size")
        root = _decode(lines[2], "root")
        if len(root) != HASH_BYTES:
            raise NoteError(f"the root of the checkpoint has {len(root)} bytes and not {HASH_BYTES}")
        return Checkpoint(lines[0], int(lines[1]), root)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A public key with the name that it signs under; `kind` says what it signs."""

    name: str
    public: bytes
    kind: int = SIGNATURE

    @property
    def key_id(self) -> bytes:
        """What signatures name the key by."""
        return hashlib.sha256(f"{self.name}\n".encode() + bytes([self.kind]) + self.public).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        encoded = base64.b64encode(bytes([self.kind]) + self.public).decode()
        return f"{self.name}+{self.key_id.hex()}+{encoded}"

    def find(self, note: Note) -> Signature | None:
        """The signature of this key under a note, if one is there and holds."""
        for each in note.signatures:
            if (each.name, each.key_id) == (self.name, self.key_id) and self.holds(*_open(note.text, each, self.kind)):
                return each
        return None

    def holds(self, signed: bytes, signature: bytes) -> bool:
        """Whether this key made the signature of these bytes (Ed25519, RFC 8032)."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, signed)
        except InvalidSignature:
            return False
        return True


def read_verifier(text: str) -> Verifier:
    """A key as it is written: `name+id+key`.

    Raises:
        NoteError: where it is none, or its id is not that of its key.
    """
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    data = _decode(encoded, "key")
    if not _NAME.match(name) or len(data) != 1 + 32 or data[0] not in (SIGNATURE, COSIGNATURE):
        raise NoteError("the text is no key of a ledger or a witness: it has the form name+id+key")
    verifier = Verifier(name, data[1:], data[0])
    if verifier.key_id.hex() != key_id:
        raise NoteError("the id of the key is not that of its name and bytes")
    return verifier


def sign(text: str, name: str, key: Ed25519PrivateKey) -> Signature:
    """The signature of a ledger under the text of a note.

    Raises:
        NoteError: where the text has no end of line, or the name could be read otherwise.
    """
    _check(text, name)
    return Signature(name, Verifier(name, _public(key)).key_id, key.sign(text.encode()))


def cosign(text: str, name: str, key: Ed25519PrivateKey, time: int) -> Signature:
    """The signature of a witness: that it saw this checkpoint at a time (Unix seconds), and none that contradicts it.

    Raises:
        NoteError: as `sign`.
    """
    _check(text, name)
    signature = key.sign(_spell_cosigned(text, time))
    return Signature(name, Verifier(name, _public(key), COSIGNATURE).key_id, time.to_bytes(_TIME_BYTES) + signature)


def read_note(text: str) -> Note:
    """A note in its parts; nothing is verified.

    Raises:
        NoteError: where it is none.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_NOTE_BYTES:
        raise NoteError("the note is too long")
    body, blank, lines = text.rpartition("\n\n")
    if not blank or not body or not lines.endswith("\n"):
        raise NoteError("the text is no signed note: an empty line stands before its signatures")
    if any((ord(each) < 32 and each != "\n") or "\ud800" <= each <= "\udfff" for each in text):
        raise NoteError("the note holds characters that no note may hold")
    return Note(f"{body}\n", tuple(_read_signatures(lines)))


def _read_signatures(text: str) -> Iterator[Signature]:
    lines = text[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteError(f"the note has more than {MAX_SIGNATURES} signatures")
    for line in lines:
        found = _LINE.match(line)
        data = _decode(found[2], "signature") if found else b""
        if found is None or len(data) <= _ID_BYTES:
            raise NoteError("a line under the note is no signature")
        yield Signature(found[1], data[:_ID_BYTES], data[_ID_BYTES:])


def read_time(signature: Signature) -> int:
    """When a witness cosigned, in Unix seconds."""
    return int.from_bytes(signature.data[:_TIME_BYTES])


def _open(text: str, signature: Signature, kind: int) -> tuple[bytes, bytes]:
    """What was signed, and the signature itself."""
    if kind == SIGNATURE or len(signature.data) != _TIME_BYTES + _SIGNATURE_BYTES:
        return text.encode("utf-8", "surrogatepass"), signature.data
    return _spell_cosigned(text, read_time(signature)), signature.data[_TIME_BYTES:]


def _spell_cosigned(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _check(text: str, name: str) -> None:
    if not text.endswith("\n") or not _NAME.match(name):
        raise NoteError("a note ends with an end of line, and the name of its key has neither space nor plus")


def _decode(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoteError(f"the {what} is no Base64") from None
