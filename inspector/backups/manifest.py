"""What a backup says of itself: a folder with `database.dump`, and `manifest.json`, which is written last.

The manifest counts the rows of each table in the snapshot that was dumped, names the newest migration of each app, and
holds the dump's SHA-256. A folder without a manifest is a backup that was not finished.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FORMAT: Final = "inspector-backup/1"
MANIFEST, DUMP = "manifest.json", "database.dump"
_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in a backup.

    Attributes:
        made_at: when the snapshot was taken, ISO 8601 in UTC.
        server: the version of PostgreSQL, as in "18.1".
        migrations: all applied migrations, as in "trail.0001_initial".
        rows: how many rows each table had.
        dump_bytes, dump_sha256: of `database.dump`.
        ledgers: the size and the root, in Base64, of each ledger by the name that its checkpoints bear.
        outside: what is not in the backup but in the object store, as a clause; "" where there is nothing.
        key_encryption_key: names the one that the keyring is sealed with, and tells nothing of it; "" where none is.
    """

    made_at: str
    server: str
    migrations: list[str]
    rows: dict[str, int]
    dump_bytes: int
    dump_sha256: str
    ledgers: dict[str, list[Any]]
    key_encryption_key: str
    outside: str = ""

    def write(self, folder: Path) -> None:
        """Write it into the folder of its backup."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup, whose dump was compared with it.

    Raises:
        BackupError: where it is no backup, is unfinished, or is not what was written.
    """
    try:
        told: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if told.pop("format") != FORMAT:
            raise BackupError(f"{folder} was written in another format: use the version of the inspector that made it.")
        manifest = Manifest(**told)
    except FileNotFoundError:
        raise BackupError(f"{folder} has no {MANIFEST}: it is no backup, or one that was not finished.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{folder / MANIFEST} cannot be read ({error}).") from None
    try:
        found_bytes, found_sha256 = measure(folder / DUMP)
    except OSError as error:
        raise BackupError(f"{folder / DUMP} cannot be read ({error.strerror}).") from None
    if (found_bytes, found_sha256) != (manifest.dump_bytes, manifest.dump_sha256):
        raise BackupError(
            f"{folder / DUMP} is not the file that was written: it has {found_bytes:,} of {manifest.dump_bytes:,} bytes"
            f" and the SHA-256 {found_sha256}, not {manifest.dump_sha256}. Nothing was restored."
        )
    return manifest


def measure(path: Path) -> tuple[int, str]:
    """The size of a file in bytes, and its SHA-256 in hex."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()


class BackupError(Exception):
    """It cannot be done, or was not; the sentence says why and what to do."""
