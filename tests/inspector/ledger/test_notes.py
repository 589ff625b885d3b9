"""Checkpoints are signed notes as C2SP has them: they are read as they were written, and hold for nobody else."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from inspector.ledger.notes import (
    COSIGNATURE,
    Checkpoint,
    Note,
    NoteError,
    Verifier,
    cosign,
    read_note,
    read_time,
    read_verifier,
    sign,
)

KEY, WITNESS = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
ORIGIN = "log.example/ledger/1"
LOG = Verifier(ORIGIN, KEY.public_key().public_bytes_raw())
WITNESSED = Verifier("witness.example", WITNESS.public_key().public_bytes_raw(), COSIGNATURE)
POINT = Checkpoint(ORIGIN, 42, bytes(range(32)))
NOTE = Note(POINT.text, (sign(POINT.text, ORIGIN, KEY), cosign(POINT.text, "witness.example", WITNESS, 1_795_118_400)))


def test_a_note_is_read_as_it_was_written() -> None:
    read = read_note(str(NOTE))
    assert read == NOTE
    assert read.checkpoint == POINT
    assert LOG.find(read) == NOTE.signatures[0]
    found = WITNESSED.find(read)
    assert found == NOTE.signatures[1]
    assert found
    assert read_time(found) == 1_795_118_400
    for verifier in (LOG, WITNESSED):
        assert read_verifier(str(verifier)) == verifier


def test_the_key_of_the_signed_note_specification_verifies_its_example() -> None:
    """The example of the package that defined the form."""
    key = read_verifier("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    text = (
        "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
        "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    )
    assert key.find(read_note(text))
    assert key.find(read_note(text.replace("answer", "ansver"))) is None


def test_a_note_holds_for_nobody_else() -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes([3]) * 32)
    forged = Note(POINT.text, (sign(POINT.text, ORIGIN, other),))
    assert LOG.find(forged) is None
    # A signature of the log is no cosignature, and the other way round.
    assert WITNESSED.find(Note(POINT.text, NOTE.signatures[:1])) is None
    assert LOG.find(Note(POINT.text, NOTE.signatures[1:])) is None


def test_no_note_holds_with_a_bit_turned() -> None:
    chance, whole = random.Random(7), str(NOTE).encode()
    for _ in range(3_000):
        bit = chance.randrange(len(whole) * 8)
        turned = bytearray(whole)
        turned[bit // 8] ^= 1 << bit % 8
        try:
            note = read_note(turned.decode())
        except (NoteError, UnicodeDecodeError):
            continue
        held = [verifier for verifier in (LOG, WITNESSED) if verifier.find(note)]
        # What stands in one signature's line says nothing of the other; the text is both's. Base64 has bits that count
        # for nothing at its end: these are refused by length and padding, or leave the bytes as they were.
        if note.text != NOTE.text:
            assert held == []
        elif note != NOTE:
            assert len(held) <= 1


def test_no_checkpoint_is_signed_with_any_bit_turned(record_property: Callable[[str, object], None]) -> None:
    """Each bit of its text, and each of its two signatures."""
    turned = held = 0
    for size in (0, 2000):
        text = Checkpoint(ORIGIN, size, bytes(range(32))).text
        signatures = (sign(text, ORIGIN, KEY), cosign(text, "witness.example", WITNESS, 1_795_118_400))
        assert LOG.find(Note(text, signatures))
        assert WITNESSED.find(Note(text, signatures))
        for other in turn_each(text.encode()):
            try:
                note = Note(other.decode(), signatures)
            except UnicodeDecodeError:
                note = None  # Nothing that is no text is read as a note.
            turned += 1
            held += bool(note and (LOG.find(note) or WITNESSED.find(note)))
        for verifier, signature in zip((LOG, WITNESSED), signatures, strict=True):
            for data in turn_each(signature.data):
                turned += 1
                held += bool(verifier.find(Note(text, (replace(signature, data=data),))))
    record_property("single bits of checkpoints", turned)
    record_property("failures", held)
    assert held == 0


def turn_each(data: bytes) -> Iterator[bytes]:
    for bit in range(len(data) * 8):
        turned = bytearray(data)
        turned[bit // 8] ^= 1 << bit % 8
        yield bytes(turned)


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "a\n", "a\n\n", "a\n\nb\n", "a\n\n— name !!!!\n", "a\n\n— name AAAA\n", "a\n\n— na me AAAAAAAAAAAA\n",
        "a\r\n\n— name AAAAAAAAAAAA\n", "a\n\n" + "— n AAAAAAAAAAAA\n" * 65, "a" * 70_000 + "\n\n— n AAAAAAAAAAAA\n",
        "a\ud800\n\n— name AAAAAAAAAAAA\n",
    ],
)  # fmt: skip
def test_what_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        read_note(text)


@pytest.mark.parametrize(
    "body", ["a\n", "a\n-1\nAAAA\n", "a\n007\nAAAA\n", "a\n1\nAAAA\n", "a\n1\n!\n", "a\n" + "9" * 30 + "\nAAAA\n"]
)
def test_what_is_no_checkpoint_is_refused(body: str) -> None:
    with pytest.raises(NoteError):
        Note(body, ()).checkpoint  # noqa: B018


@pytest.mark.parametrize("text", ["", "a", "a+b+c", "a+00000000+" + base64.b64encode(b"\x01" * 33).decode()])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        read_verifier(text)


def test_a_name_that_could_be_read_otherwise_signs_nothing() -> None:
    for name in ("a b", "a+b", "", "a\nb"):
        with pytest.raises(NoteError):
            sign("text\n", name, KEY)
