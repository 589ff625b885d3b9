"""The vector files, read as cases: one table feeds every test of the codecs."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dialects

HOME = Path(__file__).parent / "vectors"
TELLING = {"english", "also", "gloss", "notes", "reference_line", "parent"}


@dataclass(frozen=True)
class Case:
    """One vector, and what it is decoded with."""

    dialect: str
    kind: str
    data: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.dialect}-{self.kind}-{self.data['id']}"

    @property
    def wire(self) -> str:
        return self.data["wire"]

    def decode(self) -> dialects.Reading:
        """The wire decoded as the case says: with its envelope, prior messages and keys."""
        envelope = self.data.get("envelope")
        prior = [read_prior(item) for item in self.data.get("prior", ())]
        keys = dialects.KeyList(read_key(item) for item in self.data.get("keys", ()))
        return dialects.decode(
            self.wire,
            dialects.envelope_of(envelope) if envelope else None,
            dialect=self.data.get("as"),
            prior=prior,
            keys=keys,
        )


def read_prior(item: str | dict[str, Any]) -> tuple[str, dialects.Envelope | None]:
    return (item, None) if isinstance(item, str) else (item["raw"], dialects.envelope_of(item))


def read_key(item: dict[str, str]) -> dialects.Key:
    given = {name: base64.b64decode(item[name]) for name in ("private", "peer", "psk") if name in item}
    return dialects.Key(session=item.get("session"), **given)


@cache
def load(dialect: str) -> dict[str, Any]:
    """A dialect's vector file."""
    return json.loads((HOME / f"{dialect}.json").read_text("utf-8"))


@cache
def cases(kind: str) -> list[Case]:
    """Every case of a kind, `valid` or `malformed`, of every dialect that has vectors."""
    return [
        Case(path.stem, kind, data) for path in sorted(HOME.glob("*.json")) for data in load(path.stem).get(kind, ())
    ]


def plain(message: dialects.Message) -> dict[str, Any]:
    """A message as a vector writes it: only the names that differ from absent, without the telling."""
    full, empty = message.to_dict(), dialects.Message().to_dict()
    telling = {name for name in full if name in TELLING or full[name] == empty[name]}
    return {name: value for name, value in full.items() if name not in telling or name == "performative"}
