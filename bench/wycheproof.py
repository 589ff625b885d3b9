"""`WYCHEPROOF_DIR=... python -m bench.wycheproof`: the vectors of Wycheproof through the functions of the product.

WYCHEPROOF_DIR is the folder with the JSON files of that project (`testvectors_v1`); it is no part of this one. Every
vector goes through each function that does its algorithm here, and what that function cannot be asked is counted apart:
the codec's AES-GCM takes no associated data, the keyring's no nonce but of 12 bytes, HKDF always gives 32 bytes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import django

from .measure import align

Vector = dict[str, Any]
# Whether a function did what a vector says; None where it cannot be asked that.
Ask = Callable[[Vector], bool | None]
VARIABLE: Final = "WYCHEPROOF_DIR"
VERIFIER: Final = Path(__file__).resolve().parents[1] / "clients" / "verifier" / "verify_bundle.py"
HEADINGS: Final = ("algorithm", "function", "vectors", "as they say", "of these refused", "not to be asked", "FAILED")


@dataclass
class Count:
    """What one function did with the vectors of one file. `failed` has their numbers."""

    algorithm: str
    function: str
    vectors: int = 0
    held: int = 0
    refused: int = 0
    unasked: int = 0
    failed: list[int] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        numbers = (self.vectors, self.held, self.refused, self.unasked, len(self.failed))
        return (self.algorithm, self.function, *(f"{number:,}" for number in numbers))


def is_refusal(vector: Vector) -> bool:
    """Whether nothing may come of it: it is invalid, or what is agreed on would be zero."""
    return vector["result"] == "invalid" or "ZeroSharedSecret" in vector["flags"] or vector.get("ivSize", 96) != 96


def read_vectors(folder: Path, name: str) -> Iterator[Vector]:
    """The vectors of a file, each with what its group says of it."""
    for group in json.loads((folder / name).read_text())["testGroups"]:
        around = {name: value for name, value in group.items() if name != "tests"}
        yield from ({**around, **vector} for vector in group["tests"])


def take(vector: Vector, *names: str) -> tuple[bytes, ...]:
    """Members of a vector that are bytes."""
    return tuple(bytes.fromhex(vector[name]) for name in names)


def agree(vector: Vector) -> bool:
    """The secret that the codec agrees on; none with a point of low order."""
    from dialects.agent_lingua import packing

    private, peer, shared = take(vector, "private", "public", "shared")
    return packing.agree(private, peer) == (None if is_refusal(vector) else shared)


def is_noted(vector: Vector) -> bool:
    """Whether the codec notes a handshake's key as weak: just those of low order."""
    from dialects.agent_lingua import packing

    return packing.is_weak(*take(vector, "public")) == is_refusal(vector)


def read_peer(vector: Vector) -> bool:
    """The peer's public key as the keyring takes it; none of low order."""
    from inspector.keyring.spellings import SpellingError, read_public

    try:
        return read_public(vector["public"]) == take(vector, "public")[0] and not is_refusal(vector)
    except SpellingError:
        return is_refusal(vector)


def decrypt(vector: Vector) -> bool | None:
    """What the codec opens; nothing with a nonce of another length."""
    from dialects.agent_lingua import packing

    key, nonce, message, sealed, tag = take(vector, "key", "iv", "msg", "ct", "tag")
    if vector["aad"]:
        return None
    return packing.decrypt(key, nonce, sealed + tag) == (None if is_refusal(vector) else message)


def open_sealed(vector: Vector) -> bool | None:
    """What the keyring opens."""
    from inspector.keyring.encryption import NONCE_BYTES, KeyringError, open_sealed

    key, nonce, bound_to, message, sealed, tag = take(vector, "key", "iv", "aad", "msg", "ct", "tag")
    if len(nonce) != NONCE_BYTES:
        return None
    try:
        return open_sealed(key, nonce + sealed + tag, bound_to) == message and not is_refusal(vector)
    except KeyringError:
        return is_refusal(vector)


def derive(vector: Vector) -> bool | None:
    """The key that the codec derives: the first 32 bytes, of which a shorter output is the beginning."""
    from dialects.agent_lingua import packing

    if is_refusal(vector):
        return None
    secret, salt, info, output = take(vector, "ikm", "salt", "info", "okm")
    derived = packing.derive_key(secret, salt=salt, info=info)
    shared = min(len(derived), len(output))
    return len(derived) == packing.KEY_BYTES and derived[:shared] == output[:shared]


def holds(vector: Vector) -> bool:
    """Whether the ledger takes a signature."""
    from inspector.ledger.notes import Verifier

    public, message, signature = take(vector["publicKey"] | vector, "pk", "msg", "sig")
    return Verifier("vector", public).holds(message, signature) != is_refusal(vector)


def is_signed(offline: ModuleType, vector: Vector) -> bool:
    """Whether the offline verifier takes a signature."""
    public, message, signature = take(vector["publicKey"] | vector, "pk", "msg", "sig")
    key = offline.Key("vector", b"\0\0\0\0", offline.ED25519, public)
    note = offline.Checkpoint(message, "", 0, b"", [(key.name, key.id, signature)])
    return bool(note.is_signed_by(key)) != is_refusal(vector)


def list_checks() -> list[tuple[str, str, str, Ask]]:
    """Algorithm, file, function and how it is asked."""
    spec = importlib.util.spec_from_file_location("verify_bundle", VERIFIER)
    if spec is None or spec.loader is None:
        raise ImportError(f"{VERIFIER} cannot be loaded")
    offline = sys.modules["verify_bundle"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(offline)
    return [
        ("X25519", "x25519_test.json", "agent_lingua.packing.agree", agree),
        ("X25519", "x25519_test.json", "agent_lingua.packing.is_weak", is_noted),
        ("X25519", "x25519_test.json", "keyring.spellings.read_public", read_peer),
        ("AES-GCM", "aes_gcm_test.json", "agent_lingua.packing.decrypt", decrypt),
        ("AES-GCM", "aes_gcm_test.json", "keyring.encryption.open_sealed", open_sealed),
        ("HKDF-SHA-256", "hkdf_sha256_test.json", "agent_lingua.packing.derive_key", derive),
        ("Ed25519", "ed25519_test.json", "ledger.notes.Verifier.holds", holds),
        ("Ed25519", "ed25519_test.json", "verify_bundle.Checkpoint.is_signed_by", partial(is_signed, offline)),
    ]


def count(folder: Path) -> list[Count]:
    """Every vector of the files through every function."""
    counts = []
    for algorithm, name, function, ask in list_checks():
        counted = Count(algorithm, function)
        for vector in read_vectors(folder, name):
            counted.vectors += 1
            did = ask(vector)
            if did is None:
                counted.unasked += 1
            elif did:
                counted.held += 1
                counted.refused += is_refusal(vector)
            else:
                counted.failed.append(vector["tcId"])
        counts.append(counted)
    return counts


def main() -> int:
    """Print the table; 1 where a function failed a vector, 2 where the vectors are not there."""
    given = os.environ.get(VARIABLE, "")
    if not given or not Path(given).is_dir():
        print(f"give {VARIABLE}, the folder testvectors_v1 of Wycheproof", file=sys.stderr)
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")
    django.setup()
    counts = count(Path(given))
    print(align([HEADINGS, *(each.cells for each in counts)]))
    for each in counts:
        if each.failed:
            print(f"{each.algorithm}, {each.function}: tcId {', '.join(map(str, each.failed))}")
    return 1 if any(each.failed for each in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
