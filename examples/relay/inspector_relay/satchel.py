"""Satchel: an object of JSON that carries letters, each a text in any dialect. Specification: this file.

{"satchel": 1, "by": "ada", "for": "bob", "letters": ["~ASK ada>bob 7 depart~"]}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dialects import Carrier, Draft, NoteKind, Term, make_dialect, no_reply, say_name

EMPTY = NoteKind(
    code="satchel.empty", severity="warning", group="protocol", about="A satchel without a letter that is a text."
)


def _recognise(data: Any) -> tuple[float, str] | None:
    is_own = isinstance(data, dict) and data.get("satchel") == 1 and isinstance(data.get("letters"), list)
    return (0.97, "it has the members of a satchel") if is_own else None


def _make(data: Any) -> Sequence[Draft]:
    sender, receiver = (data[name] if isinstance(data.get(name), str) else None for name in ("by", "for"))
    draft = Draft("inform", "satchel", sender=sender, receivers=(receiver,) if receiver else ())
    draft.say_sender("Someone", ("by",)).say(" brings ")
    draft.say(say_name(receiver) if receiver else "somebody", ("for",)).say(" letters")
    letters = [number for number, letter in enumerate(data["letters"]) if isinstance(letter, str)]
    for number in letters:
        draft.say(": " if number == letters[0] else ", ").carry(("letters", number))
    if not letters:
        draft.note(EMPTY, "no letter of it is a text", ("letters",))
    return [draft.say(".")]


DIALECT = make_dialect(
    Carrier(
        slug="satchel",
        title="Satchel",
        summary="Letters that one agent brings another.",
        specification="examples/relay",
        hint=re.compile(r'"satchel"'),
        recognise=_recognise,
        make=_make,
        replies=no_reply,
        labels={"by": ("sender", None), "for": ("receiver", None), "letters": ("letter", None)},
        notes=(EMPTY,),
        glossary=(Term(kind="act", code="satchel", name="inform", meaning="brings letters"),),
    )
)
