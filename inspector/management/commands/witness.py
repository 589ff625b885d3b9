"""`manage.py witness`: cosign the latest checkpoint of an inspector elsewhere, if it only grew since the last one seen.

It needs no database: it is run by somebody who trusts neither the inspector nor its operator, on a machine of theirs.
"""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.ledger.merkle import verify_consistency
from inspector.ledger.notes import COSIGNATURE, Note, NoteError, Verifier, cosign, read_note, read_verifier

_MAX_ANSWER_BYTES: Final = 1 << 20
_SECONDS: Final = 30


class Command(BaseCommand):
    """Witness a ledger once; run it from time to time."""

    help = "Fetch the latest checkpoint of a ledger, verify that it only grew, cosign it, and send the cosignature."
    requires_system_checks = []  # noqa: RUF012  # as Django declares it

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whose ledger, and as whom."""
        parser.add_argument("url", help="of the inspector, as https://inspector.example")
        parser.add_argument("--name", required=True, help="of this witness, as witness.example/us")
        parser.add_argument(
            "--home",
            type=Path,
            required=True,
            help="a private folder for the witness's key and the checkpoint last seen",
        )
        parser.add_argument(
            "--token-file", type=Path, required=True, help="holds an API key with the scopes read and witness"
        )
        parser.add_argument("--key", help="the ledger's key, as name+id+key; without it, the one that is seen first")

    def handle(self, *args: Any, **options: Any) -> None:
        """Witness it."""
        home: Path = options["home"]
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._url = options["url"].rstrip("/")
        try:
            self._token = options["token_file"].read_text().strip()
            fresh = base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()
            kept = base64.b64decode(_remember(home / "witness_key", fresh), validate=True)
            private = Ed25519PrivateKey.from_private_bytes(kept)
            told = self._ask("checkpoint")
            verifier = read_verifier(options["key"] or _remember(home / "ledger_key", told["key"]))
            note = read_note(told["note"])
            if verifier.find(note) is None:
                raise CommandError("The checkpoint is not signed by the key of the ledger. Nothing was cosigned.")
            self._compare(home / "checkpoint", note, verifier)
            line = cosign(note.text, options["name"], private, int(time.time()))
            own = Verifier(options["name"], private.public_key().public_bytes_raw(), COSIGNATURE)
            self._ask("cosignatures", {"note": str(Note(note.text, (line,))), "key": str(own)})
        except (OSError, NoteError, KeyError, ValueError) as error:
            raise CommandError(f"Nothing was cosigned: {error}") from error
        _write(home / "checkpoint", str(note))
        self.stdout.write(f"{note.checkpoint.size:,} entries cosigned as {own}")

    def _compare(self, path: Path, note: Note, verifier: Verifier) -> None:
        """Refuse a checkpoint that does not begin with the one seen last."""
        if not path.is_file():
            return
        last, now = read_note(path.read_text()).checkpoint, note.checkpoint
        if verifier.find(read_note(path.read_text())) is None:
            raise CommandError(f"The checkpoint in {path} is of another ledger.")
        if now.size < last.size:
            raise CommandError(
                f"The ledger had {last.size:,} entries and has {now.size:,}: it was rolled back. Keep {path} as proof."
            )
        proof = self._ask(f"proofs/consistency?{urlencode({'from': last.size, 'to': now.size})}")["path"]
        path_of_hashes = [base64.b64decode(each, validate=True) for each in proof]
        if not verify_consistency(last.size, last.root, now.size, now.root, path_of_hashes):
            raise CommandError(
                f"The first {last.size:,} entries are not those that were signed: they were rewritten. Keep {path}, "
                "the proof."
            )

    def _ask(self, what: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310  # whoever runs this names the address
            f"{self._url}/api/v1/ledger/{what}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                told: dict[str, Any] = json.loads(answer.read(_MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            raise CommandError(f"{what}: the inspector answers {error.code}: {error.read(2_000).decode()}") from None
        return told


def _remember(path: Path, key: str) -> str:
    if not path.is_file():
        _write(path, key)
    return path.read_text()


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.rename(path)
