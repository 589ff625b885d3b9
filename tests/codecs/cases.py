"""The vector files, read as cases: one table feeds every test of the codecs.

A case has an `id`, `why` it is there, the `wire`, the `messages` and the `english` that come out, the codes of its
`notes` (none: `[]`), and where there are any what is told `also` and the `gloss`. Given with it: an `envelope`, `prior`
records of its conversation, `keys`; `as` names the dialect where detection does not; `in_context` where detection alone
would not give it. Written again it gives its wire, or `encodes_to`; `loss` names what is lost, and `loss_reason` says
why. A malformed one has the code of its `note`, and the note's `offset`.
"""

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
def files_of(dialect: str) -> list[Path]:
    """The vector files of a dialect: the one with its name, and those that name it as their `dialect`."""
    return [path for path in sorted(HOME.glob("*.json")) if read_file(path).get("dialect", path.stem) == dialect]


@cache
def read_file(path: Path) -> dict[str, Any]:
    """A vector file."""
    return json.loads(path.read_text("utf-8"))


@cache
def load(dialect: str) -> dict[str, Any]:
    """A dialect's vectors, of all its files, and the specification that the first of them names."""
    files = [read_file(path) for path in files_of(dialect)]
    cases_of = {kind: [case for file in files for case in file.get(kind, ())] for kind in ("valid", "malformed")}
    return {"spec": files[0]["spec"], **cases_of}


@cache
def cases(kind: str) -> list[Case]:
    """Every case of a kind, `valid` or `malformed`, of every dialect that has vectors."""
    return [
        Case(file.get("dialect", path.stem), kind, data)
        for path in sorted(HOME.glob("*.json"))
        for file in [read_file(path)]
        for data in file.get(kind, ())
    ]


def plain(message: dialects.Message) -> dict[str, Any]:
    """A message as a vector writes it: only the names that differ from absent, without the telling."""
    full, empty = message.to_dict(), dialects.Message().to_dict()
    telling = {name for name in full if name in TELLING or full[name] == empty[name]}
    return {name: value for name, value in full.items() if name not in telling or name == "performative"}
