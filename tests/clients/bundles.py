"""Proof bundles made from their documented form, by the definitions of RFC 6962 and C2SP word for word.

They share no code with the server that makes bundles nor with the verifier: the third who has read the same documents.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ORIGIN = NAME = "inspector.example/ledger/0192f000-0000-7000-8000-000000000001"
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
WITNESS = Ed25519PrivateKey.from_private_bytes(b"w" * 32)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def write(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def find_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"")
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + find_root(leaves[:k]) + find_root(leaves[k:]))


def find_path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1."""
    if len(leaves) < 2:
        return []
    k = 1 << (len(leaves) - 1).bit_length() - 1
    if m < k:
        return [*find_path(m, leaves[:k]), find_root(leaves[k:])]
    return [*find_path(m - k, leaves[k:]), find_root(leaves[:k])]


def name_key(key: Ed25519PrivateKey, name: str = NAME, kind: int = 1) -> str:
    """A verifier key of the signed-note format."""
    raw = bytes([kind]) + key.public_key().public_bytes_raw()
    key_id = sha256(name.encode() + b"\n" + raw)[:4]
    return f"{name}+{key_id.hex()}+{base64.b64encode(raw).decode()}"


def sign(key: Ed25519PrivateKey, text: str, name: str = NAME) -> str:
    key_id = bytes.fromhex(name_key(key, name).split("+")[1])
    return f"\u2014 {name} {base64.b64encode(key_id + key.sign(text.encode())).decode()}\n"


def cosign(key: Ed25519PrivateKey, text: str, name: str, time: int = 1795251600) -> str:
    key_id = bytes.fromhex(name_key(key, name, 4).split("+")[1])
    signature = key.sign(f"cosignature/v1\ntime {time}\n{text}".encode())
    return f"\u2014 {name} {base64.b64encode(key_id + time.to_bytes(8, 'big') + signature).decode()}\n"


def write_checkpoint(leaves: list[bytes], *, origin: str = ORIGIN, key: Ed25519PrivateKey = KEY) -> str:
    text = f"{origin}\n{len(leaves)}\n{base64.b64encode(find_root(leaves)).decode()}\n"
    return f"{text}\n{sign(key, text)}"


@dataclass
class Made:
    """A bundle to be packed: each file as its lines or bytes, so that a test can change one of them."""

    manifest: dict[str, Any]
    checkpoint: str
    entries: list[dict[str, Any]]
    records: bytes
    english: list[dict[str, Any]]
    leaves: bytes | None
    extra: dict[str, bytes] = field(default_factory=dict)
    is_listed_anew: bool = True

    @property
    def hashes(self) -> list[bytes]:
        """The leaf hashes of the entries."""
        return [sha256(b"\x00" + write(each["leaf"])) for each in self.entries]

    def pack(self) -> bytes:
        """The zip; its manifest lists the files as they are, unless a test wants it to keep what it said."""
        files = {
            "checkpoint.txt": self.checkpoint.encode("utf-8", "surrogateescape"),
            "entries.jsonl": b"".join(write(each) + b"\n" for each in self.entries),
            "records.bin": self.records,
            "english.jsonl": b"".join(write(each) + b"\n" for each in self.english),
            **({} if self.leaves is None else {"leaves.bin": self.leaves}),
            **self.extra,
        }
        if self.is_listed_anew or "files" not in self.manifest:
            self.manifest["files"] = {name: sha256(data).hex() for name, data in files.items()}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
            for name, data in {"manifest.json": write(self.manifest), **files}.items():
                target.writestr(name, data)
        return packed.getvalue()


def make_bundle(*, records: int = 6, with_leaves: bool = False, of: str = "conversation", later: int = 0) -> Made:
    """A conversation that was signed off: its records, a comment, and the verdict, among other entries of the log.

    `later` records came after the verdict.
    """
    entries: list[dict[str, Any]] = []
    english: list[dict[str, Any]] = []
    sources = [f'{{"mid":"m{number}","say":"é {number}"}}\n'.encode() for number in range(records)]

    def add(kind: str, content: dict[str, Any], **more: Any) -> None:
        number = len(entries)
        leaf = {
            "v": 1,
            "kind": kind,
            "id": f"0192f000-0000-7000-8000-{number:012}",
            "at": "2026-11-21T09:30:00.000000Z",
        }
        entries.append({"leaf": {**leaf, "sha256": sha256(write(content)).hex()}, "content": content, **more})

    add("action", {"code": "workspace.made", "told": "Olivia created the workspace"})
    bound = hashlib.sha256()
    for number, source in enumerate(sources):
        add("record", {"source": sha256(source).hex(), "wire": None, "size": len(source)}, bytes=len(source))
        told, beside = f"Oscar says {number}.", sha256(b"beside")
        bound.update(sha256(source) + b"clowl 0.2\n" + sha256(told.encode()) + beside)
        english.append({
            "record": entries[-1]["leaf"]["id"], "part": 1, "sha256": sha256(source).hex(), "decoder": "clowl 0.2",
            "english": told, "english_sha256": sha256(told.encode()).hex(), "beside": beside.hex(),
        })  # fmt: skip
    add("comment", {"words": "Wozu zweimal? „é“", "author": "amir"})
    add("verdict", {"verdict": "fine", "reviewer": "olivia", "binding": bound.hexdigest()})
    for number in range(later):
        sources.append(f"later {number}".encode())
        add(
            "record",
            {"source": sha256(sources[-1]).hex(), "wire": None, "size": len(sources[-1])},
            bytes=len(sources[-1]),
        )
    for number in range(5):
        add("action", {"code": "account.signed-in", "told": f"Olivia signed in {number}"})
    for line in english:
        line["binding"] = bound.hexdigest()
    leaves = [sha256(b"\x00" + write(each["leaf"])) for each in entries]
    for index, each in enumerate(entries):
        each["index"] = index
        if not with_leaves:
            each["proof"] = [base64.b64encode(one).decode() for one in find_path(index, leaves)]
    checkpoint = write_checkpoint(leaves)
    return Made(
        manifest={
            "format": "inspector-bundle/1", "workspace": "lab", "subject": of, "made_at": "2026-11-21T10:00:00Z",
            "origin": ORIGIN, "size": len(entries), "verifier_key": name_key(KEY),
        },
        checkpoint=checkpoint,
        entries=entries if of == "workspace" else [each for each in entries if each["leaf"]["kind"] != "action"],
        records=b"".join(sources),
        english=english,
        leaves=b"".join(leaves) if with_leaves else None,
    )  # fmt: skip
