"""A secret kept in a file of its own, made on first use and readable by its owner alone."""

import os
import secrets
from pathlib import Path


def read_or_make_secret(path: Path) -> str:
    """The secret in the file; 64 random URL-safe characters are written there when the file does not exist.

    Two processes that start together agree: the file is created exclusively, and the loser reads the winner's.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # Another process was first; its secret is the one that holds.
        finally:
            fresh.unlink()
    return path.read_text().strip()
