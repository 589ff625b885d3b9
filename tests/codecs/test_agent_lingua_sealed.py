"""What seals, opens and refuses in agent-lingua, and what a conversation reveals about its sessions and keys."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import dialects
from dialects._record import leaves
from dialects.agent_lingua import packing
from tests.each import for_each

SIGNATURE = "\n--👽lingua/0.4@agent-lingua"
PSK = bytes(range(100, 132))
NONCE = bytes(range(12))
SESSION = "s-204"


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def json_of(value: Any) -> str:
    return "$j:" + base64_of(json.dumps(value, separators=(",", ":")).encode())


def seal(plaintext: bytes, *, session: str = SESSION, nonce: bytes = NONCE, as_salt: bool = False) -> str:
    name = session.encode()
    key = packing.derive_key(PSK, salt=name) if as_salt else packing.derive_key(PSK, info=name)
    return f"$e:{base64_of(nonce)}:{base64_of(AESGCM(key).encrypt(nonce, plaintext, None))}"


def sealed_wire(plaintext: bytes = b"hello", **how: Any) -> str:
    return f"👽137|@bob|#{SESSION}|{seal(plaintext, **how)}{SIGNATURE}"


KEYS = dialects.KeyList([dialects.Key(session=SESSION, psk=PSK)])
ADA, BOB = dialects.Envelope(sender="ada"), dialects.Envelope(sender="bob")
OFFER = ("👽09|" + json_of({"protocol": "agent-lingua", "security": ["P", "B", "E"]}) + SIGNATURE, ADA)
ACCEPT = ("^0|" + json_of({"accepted": True, "security": "E", "session": SESSION}) + SIGNATURE, BOB)
AGREED = [OFFER, ACCEPT]


def codes_of(reading: dialects.Reading) -> list[str]:
    notes = [*reading.notes, *(note for message in reading.messages for note in message.notes)]
    return [note.code.removeprefix("agent_lingua.") for note in notes]


def decode(wire: str, **how: Any) -> dialects.Reading:
    return dialects.decode(wire, ADA, prior=how.pop("prior", AGREED), keys=how.pop("keys", KEYS), **how)


# The primitives against published vectors, through this dialect's own functions.


def test_hkdf_gives_the_key_of_its_rfc() -> None:
    """RFC 5869, appendix A.1 and A.3: the first 32 bytes of the output."""
    secret = b"\x0b" * 22
    salted = packing.derive_key(
        secret, salt=bytes.fromhex("000102030405060708090a0b0c"), info=bytes.fromhex("f0f1f2f3f4f5f6f7f8f9")
    )
    assert salted.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
    assert packing.derive_key(secret).hex() == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"


@pytest.mark.parametrize(
    ("private", "public", "shared"),
    [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ],
)
def test_x25519_agrees_on_the_secret_of_its_rfc(private: str, public: str, shared: str) -> None:
    """RFC 7748, section 5.2."""
    secret = packing.agree(bytes.fromhex(private), bytes.fromhex(public))
    assert secret is not None
    assert secret.hex() == shared


def test_aes_gcm_opens_the_published_cases() -> None:
    """Test cases 13 and 14 of the GCM specification."""
    key, nonce = bytes(32), bytes(12)
    assert packing.decrypt(key, nonce, bytes.fromhex("530f8afbc74536b9a963b4f1c4cb738b")) == b""
    sealed = bytes.fromhex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919")
    assert packing.decrypt(key, nonce, sealed) == bytes(16)


# Points of low order in every spelling of 32 bytes, RFC 7748 section 6.1: the small ones, their twins past the
# prime, and the same with the highest bit set, which X25519 ignores.
_PRIME = 2**255 - 19
_SMALL = (
    0,
    1,
    _PRIME - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
LOW_ORDER = [
    (number | high).to_bytes(32, "little") for number in (*_SMALL, _PRIME, _PRIME + 1) for high in (0, 1 << 255)
]


@for_each(LOW_ORDER)
def test_a_public_key_of_low_order_is_refused(public: bytes) -> None:
    assert packing.is_weak(public)
    assert packing.agree(bytes(range(32)), public) is None
    keys = dialects.KeyList([dialects.Key(private=bytes(range(32)), peer=public)])
    reading = decode(sealed_wire(), keys=keys)
    assert codes_of(reading) == ["key-weak"]
    assert reading.messages[0].security.opened is False
    offered = decode("👽09|" + json_of({"pubkey": base64_of(public)}) + SIGNATURE, prior=[])
    assert "key-weak" in codes_of(offered)


def test_an_ordinary_key_is_not_called_weak() -> None:
    for seed in range(50):
        public = X25519PrivateKey.from_private_bytes(bytes([seed]) * 32).public_key()
        assert not packing.is_weak(public.public_bytes(Encoding.Raw, PublicFormat.Raw))


def test_a_key_pair_is_agreed_on_once() -> None:
    packing.agree.cache_clear()
    private, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    public = other.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    for _ in range(5):
        packing.agree(private.private_bytes_raw(), public)
    assert (packing.agree.cache_info().misses, packing.agree.cache_info().hits) == (1, 4)


# Opening.


@pytest.mark.parametrize("as_salt", [False, True])
def test_the_session_may_be_info_or_salt(as_salt: bool) -> None:
    reading = decode(sealed_wire(b"north", as_salt=as_salt))
    (message,) = reading.messages
    assert (message.content, message.security.opened, message.security.encrypted) == ("north", True, True)
    assert "“north”" in message.sentence
    assert codes_of(reading) == []


def test_both_sides_of_a_key_pair_open_the_same() -> None:
    one, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    raw = (Encoding.Raw, PublicFormat.Raw)
    key = packing.derive_key(one.exchange(other.public_key()), info=SESSION.encode())
    wire = f"👽137|@bob|#{SESSION}|$e:{base64_of(NONCE)}:{base64_of(AESGCM(key).encrypt(NONCE, b'tide', None))}"
    for private, peer in ((one, other), (other, one)):
        held = dialects.Key(private=private.private_bytes_raw(), peer=peer.public_key().public_bytes(*raw))
        assert decode(wire, keys=dialects.KeyList([held])).messages[0].content == "tide"


def test_the_opened_text_is_a_layer_and_has_fields() -> None:
    inner = "j:" + base64_of(b'{"t":"plan"}')
    reading = decode(sealed_wire(inner.encode()))
    kinds = [layer.kind for layer in reading.layers]
    assert kinds == ["wire", "plaintext", "base64"]
    plaintext = reading.layers[1]
    assert plaintext.text == inner
    assert plaintext.of is not None
    assert reading.wire[plaintext.of[1] : plaintext.of[2]] in reading.wire
    assert reading.layers[2].of == (1, 2, len(inner))
    assert reading.messages[0].content == {"t": "plan"}
    assert "title" in {field.label for field in leaves(reading.fields, layer=2)}


def test_nothing_of_the_plaintext_is_in_the_reading_itself() -> None:
    """Reading needs no key: what is opened lives only in what telling yields."""
    reading = dialects.read(sealed_wire(b"hush-hush"))
    assert "hush-hush" not in json.dumps(reading.to_dict())
    told = dialects.tell(reading, dialects.Context(), KEYS)
    assert "hush-hush" in told.layers[0].text
    assert "hush-hush" not in json.dumps([entry.to_dict() for entry in told.entries])


def test_no_key_is_kept_in_a_context() -> None:
    context = dialects.Context()
    for wire, envelope in (*AGREED, (sealed_wire(), ADA)):
        told = dialects.tell(dialects.read(wire, envelope), context, KEYS)
        written = json.dumps([entry.to_dict() for entry in told.entries])
        assert PSK.hex() not in written
        assert base64_of(PSK) not in written


@for_each(range(0, 21 * 8, 5))
def test_a_flipped_bit_yields_no_plaintext(bit: int) -> None:
    name = SESSION.encode()
    sealed = bytearray(AESGCM(packing.derive_key(PSK, info=name)).encrypt(NONCE, b"hello", None))
    sealed[bit // 8] ^= 1 << bit % 8
    reading = decode(f"👽137|@bob|#{SESSION}|$e:{base64_of(NONCE)}:{base64_of(bytes(sealed))}{SIGNATURE}")
    (message,) = reading.messages
    assert codes_of(reading) == ["not-authentic"]
    assert (message.content, message.security.opened) == (None, False)
    assert "not authentic" in message.sentence
    assert len(reading.layers) == 1
    assert reading.error is None
    assert not reading.is_malformed


def test_data_authenticated_beside_the_text_does_not_open() -> None:
    sealed = AESGCM(packing.derive_key(PSK, info=SESSION.encode())).encrypt(NONCE, b"hello", b"beside")
    reading = decode(f"👽137|@bob|#{SESSION}|$e:{base64_of(NONCE)}:{base64_of(sealed)}{SIGNATURE}")
    assert codes_of(reading) == ["not-authentic"]


@for_each([0, 1, 8, 11, 13, 16, 24])
def test_a_nonce_of_another_size_is_never_tried(size: int) -> None:
    wire = f"👽137|@bob|#{SESSION}|$e:{base64_of(bytes(size))}:{base64_of(bytes(30))}{SIGNATURE}"
    reading = decode(wire)
    expected = ["nonce-size"] if size else ["sealed-unread"]
    assert codes_of(reading) == expected
    assert reading.messages[0].security.opened is False


@pytest.mark.parametrize("size", [1, 8, 15])
def test_ciphertext_shorter_than_its_tag_is_never_tried(size: int) -> None:
    wire = f"👽137|@bob|#{SESSION}|$e:{base64_of(NONCE)}:{base64_of(bytes(size))}{SIGNATURE}"
    assert codes_of(decode(wire)) == ["sealed-short"]


def test_a_key_of_another_session_is_not_tried() -> None:
    keys = dialects.KeyList([dialects.Key(session="s-999", psk=PSK)])
    reading = decode(sealed_wire(), keys=keys)
    assert codes_of(reading) == []
    assert "cannot be read without the key" in reading.messages[0].sentence


@for_each(
    [
        dialects.Key(psk=b""),
        dialects.Key(private=b"short", peer=b"short"),
        dialects.Key(private=bytes(32)),
        dialects.Key(peer=bytes(range(32))),
        dialects.Key(),
    ]
)
def test_a_broken_key_opens_nothing_and_breaks_nothing(key: dialects.Key) -> None:
    reading = decode(sealed_wire(), keys=dialects.KeyList([key]))
    assert reading.messages[0].security.opened is False


def test_only_so_many_keys_are_tried() -> None:
    wrong = [dialects.Key(psk=bytes([number]) * 32) for number in range(packing.MAX_KEYS)]
    keys = dialects.KeyList([*wrong, dialects.Key(psk=PSK)])
    reading = decode(sealed_wire(), keys=keys)
    assert reading.messages[0].security.opened is False
    assert f"none of {packing.MAX_KEYS} keys" in reading.messages[0].sentence


def test_a_sealed_record_is_written_back_opened_or_not() -> None:
    wire = sealed_wire(b"hello")
    assert dialects.encode(decode(wire)).wire == wire
    assert dialects.encode(decode(wire, keys=dialects.NoKeys())).wire == wire


# What a conversation reveals.


def test_a_reused_nonce_names_the_message_that_used_it_first() -> None:
    prior = [*AGREED, (sealed_wire(b"one"), ADA), (sealed_wire(b"two", nonce=bytes(12)), ADA)]
    reading = decode(sealed_wire(b"three"), prior=prior)
    assert codes_of(reading) == ["nonce-reused"]
    (note,) = reading.messages[0].notes
    assert "in message 3" in note.text


def test_the_same_nonce_in_another_session_is_no_reuse() -> None:
    other = ("^0|" + json_of({"accepted": True, "session": "s-other"}) + SIGNATURE, BOB)
    prior = [*AGREED, other, (f"👽137|@bob|#s-other|{seal(b'x', session='s-other')}{SIGNATURE}", ADA)]
    assert codes_of(decode(sealed_wire(), prior=prior)) == []


def test_more_than_a_thousand_messages_on_one_key_are_noted_once() -> None:
    context, found = dialects.Context(), []
    for wire, envelope in AGREED:
        dialects.tell(dialects.read(wire, envelope), context)
    for number in range(1003):
        context.position = number + 3
        wire = sealed_wire(nonce=number.to_bytes(12, "big"))
        told = dialects.tell(dialects.read(wire, ADA), context)
        found.append([note.code for note in told.messages[0].notes])
    assert [number for number, codes in enumerate(found) if codes] == [1000]
    assert found[1000] == ["agent_lingua.session-overused"]


def test_a_session_agreed_anew_counts_anew() -> None:
    context = dialects.Context()
    codes: list[str] = []
    for turn in range(2):
        for wire, envelope in AGREED:
            context.position += 1
            dialects.tell(dialects.read(wire, envelope), context)
        for number in range(600):
            context.position += 1
            wire = sealed_wire(nonce=(turn * 1000 + number).to_bytes(12, "big"))
            codes += [note.code for note in dialects.tell(dialects.read(wire, ADA), context).messages[0].notes]
    assert codes == []


@pytest.mark.parametrize(("at", "is_old"), [("2026-11-22T08:59:59Z", False), ("2026-11-22T09:00:01Z", True)])
def test_a_session_key_older_than_a_day_is_noted(at: str, is_old: bool) -> None:
    accept = (ACCEPT[0], dialects.Envelope(sender="bob", at="2026-11-21T09:00:00Z"))
    reading = dialects.decode(sealed_wire(), dialects.Envelope(sender="ada", at=at), prior=[OFFER, accept])
    assert ("session-overused" in codes_of(reading)) == is_old


def test_an_old_session_key_is_noted_once() -> None:
    context, found = dialects.Context(), []
    dialects.tell(dialects.read(ACCEPT[0], dialects.Envelope(sender="bob", at="2026-11-21T09:00:00Z")), context)
    for day in range(22, 27):
        envelope = dialects.Envelope(sender="ada", at=f"2026-11-{day}T10:00:00Z")
        told = dialects.tell(dialects.read(sealed_wire(nonce=bytes([day]) * 12), envelope), context)
        found += [note.code for note in told.messages[0].notes]
    assert found == ["agent_lingua.session-overused"]


def test_a_session_that_ended_is_named_with_the_message_that_ended_it() -> None:
    prior = [*AGREED, (f"👽08|#{SESSION}{SIGNATURE}", BOB)]
    (note,) = decode(sealed_wire(), prior=prior).messages[0].notes
    assert note.code == "agent_lingua.session-ended"
    assert "in message 3" in note.text


def test_a_handshake_later_in_the_same_record_does_not_excuse_an_earlier_message() -> None:
    sealed = f"👽137|@bob|#{SESSION}|{seal(b'x')}"
    record = sealed + ";;" + ACCEPT[0].removesuffix(SIGNATURE)
    assert "session-unknown" in codes_of(decode(record + SIGNATURE, prior=[]))
    turned = ACCEPT[0].removesuffix(SIGNATURE) + ";;" + sealed
    assert "session-unknown" not in codes_of(decode(turned + SIGNATURE, prior=[]))


def test_trust_is_by_agent() -> None:
    """Two agents with two keys are no change; one agent with two keys is, and says when the first was shown."""
    first = "👽09|" + json_of({"pubkey": base64_of(bytes(range(32)))}) + SIGNATURE
    second = "👽09|" + json_of({"pubkey": base64_of(bytes(range(1, 33)))}) + SIGNATURE
    assert codes_of(decode(second, prior=[(first, BOB)])) == []
    reading = decode(second, prior=[(first, ADA)])
    assert codes_of(reading) == ["key-changed"]
    assert "in message 1" in reading.messages[0].notes[0].text


def test_a_key_without_a_known_speaker_changes_nobody() -> None:
    first = "👽09|" + json_of({"pubkey": base64_of(bytes(range(32)))}) + SIGNATURE
    second = "👽09|" + json_of({"pubkey": base64_of(bytes(range(1, 33)))}) + SIGNATURE
    assert "key-changed" not in codes_of(dialects.decode(second, prior=[(first, None)]))


@for_each(
    [
        ("PBE", "PBE", "E", None),
        ("PBE", "PBE", "B", "downgrade"),
        ("PBE", "PBE", "P", "downgrade"),
        ("PBE", "PB", "B", None),
        ("PBE", "PB", "P", "downgrade"),
        ("EBP", "BPE", "B", "downgrade"),
        ("P", "PBE", "P", None),
        ("PB", None, "P", "below-offer"),
        ("PB", None, "B", None),
    ]
)
def test_a_level_below_what_both_offered_is_a_downgrade(
    asked: str, able: str | None, agreed: str, code: str | None
) -> None:
    """The level is what both can do, whatever the order in which a side lists its own."""
    prior = [("👽09|" + json_of({"security": list(asked)}) + SIGNATURE, ADA)]
    if able is not None:
        prior.insert(0, ("^0|" + json_of({"security": list(able)}) + SIGNATURE, BOB))
    answer = "^0|" + json_of({"accepted": True, "security": agreed}) + SIGNATURE
    assert sorted(codes_of(dialects.decode(answer, BOB, prior=prior))) == sorted(
        [*([code] if code else []), "answer-inferred"]
    )
