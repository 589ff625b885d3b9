"""How a sentence opens: what says which act it is, and the capital that it begins with."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Span
from .clauses import Said
from .pieces import Piece

# type: (what opens a sentence, what opens a list of words). A plain statement and a question show what they are.
_OPENINGS = {
    "!": ("", "States"),
    "?": ("", "Asks"),
    ".": ("Orders:", "Orders"),
    ">": ("As an offer,", "Offers"),
    "~": ("Perhaps", "States with low confidence (~)"),
    "~~": ("Perhaps, very uncertainly,", "States with very low confidence (~~~)"),
    "#": ("About the exchange:", "States about the exchange"),
    "": ("With no type given, read as a statement:", "With no type given, read as a statement"),
}
# What a frame around the words ("oscar instructs radar: …") says already.
_FRAMED = {
    "Orders:": "",
    "As an offer,": "",
    "States": "",
    "Asks": "",
    "Orders": "",
    "Offers": "",
    "States about the exchange": "About the exchange",
    "States with low confidence (~)": "With low confidence (~)",
    "States with very low confidence (~~~)": "With very low confidence (~~~)",
}
_SHAPES = {
    "sentence": "",
    "words": "word by word",
    "paired": "",
    "word": "one word",
    "quote": "the literal text",
    "thing": "",
    "nothing": "",
}


def open_statement(symbol: str, said: Said, lead: tuple[Span, ...], *, is_spoken: bool) -> list[Piece]:
    """The words, behind what says which act they are where their own form does not say it."""
    pieces, shape = said
    if shape == "nothing":
        pieces = [Piece(" (an empty statement)", lead)]
    key = "~~" if symbol[:1] == "~" and len(symbol) > 2 else symbol[:1]
    opening = _OPENINGS.get(key, _OPENINGS["!"])[shape != "sentence"]
    if is_spoken:
        opening = _FRAMED.get(opening, opening)
    if opening == "Orders:":
        first = pieces[0].text.lstrip()
        pieces = [pieces[0]._replace(text=f" {first[:1].upper()}{first[1:]}"), *pieces[1:]]
    how = _SHAPES[shape]
    if shape != "sentence":
        joint = ", " if opening and (is_spoken or shape == "words" or not symbol) else " "
        opening = f"{opening}{joint}{how}".strip() if how else opening
        opening = f"{opening}:" if opening else ""
    return [Piece(opening, lead), *pieces] if opening else pieces


def open_sentence(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces as a sentence begins: no space before it, and a capital unless the wire's own characters open it."""
    held = [piece for piece in pieces if piece.text]
    if not held:
        return held
    first = held[0]
    said = first.text.lstrip(" ,")
    word = said.split(" ")[0]
    is_quoted = (len(word) > 2 or said[len(word) :].startswith(' (means "')) and any(
        text[start:end].startswith(word) for _, start, end in first.spans if end > start
    )
    if said[:1].islower() and not is_quoted:
        said = f"{said[0].upper()}{said[1:]}"
    held[0] = first._replace(text=said)
    return held
