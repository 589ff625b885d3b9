"""What JSON looks like from its first characters on, for whoever must not take it for anything else."""

from __future__ import annotations

import re

# An object, or a list of them, whole or cut: its first key with a colon behind it.
_HEAD = re.compile(r'\ufeff?\s*+(?:\[\s*+)?\{\s*+"[^"\\]{0,200}+"\s*+:')


def is_json(text: str) -> bool:
    """Whether a text begins as an object of JSON does, or a list of objects: what it quotes is not its sender's."""
    return _HEAD.match(text) is not None
