"""The acts in English: what is told, asked, offered or answered, in the speaker's own person, and how a sentence opens:
what says which act it is, and the capital that it begins with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .._english import join_words
from .._record import Entry, Message, Note, Span
from .blocks import Node as Value
from .blocks import parse_block, say_item
from .clauses import Body, Said
from .contexts import Setting
from .doubts import SUPPLIED_VERB, note_number, say_apart
from .frames import say_setting
from .guesses import guess_reading
from .lifting import read_table
from .nodes import Node, Piece, read_lose
from .notes import MINUS, WORD_BY_WORD
from .protocol import ACKS, COUNTER, ERRORS, FLOOR, HANDSHAKES, TYPES, UNTYPED, Act
from .statements import Part, find_close
from .wording import say_degree, say_elsewhere, say_text
from .words import Scope

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


_MOODS = {"?": "query", ".": "request"}
_ERROR_REST = re.compile(r"er:[a-z]{2}(?:/[^\s#/]+)?")


class Acts:
    """Tells one statement. `said` are the settings that the words have covered, `notes` what the telling earns."""

    def __init__(
        self,
        text: str,
        part: Part,
        settings: tuple[Setting, ...],
        message: Message,
        scope: Scope,
        nodes: list[Node],
        say_origin: Callable[[Entry], str],
    ) -> None:
        self.text = text
        self.part = part
        self.settings = settings
        self.message = message
        self.scope = scope
        self.nodes = nodes
        self.say_origin = say_origin
        self.notes: list[Note] = []
        self.said: set[str] = set()

    def tell(self) -> tuple[Act, list[Piece]]:
        """(the act, what is said)."""
        act, pieces, end = self._tell_act()
        less = next((piece for piece in pieces if piece.text == " less" and piece.basis == "inferred"), None)
        if less is not None:
            self.notes.append(MINUS.note("“-” is read as “less”; it could also mean “not”", less.spans[0]))
        pieces = open_sentence(self.text, pieces)
        if pieces and pieces[-1].text.endswith(","):
            pieces[-1] = pieces[-1]._replace(text=pieces[-1].text.rstrip(","))
        pieces.append(Piece(end, ()))
        return act, pieces

    # The act: what is said.

    def _tell_act(self) -> tuple[Act, list[Piece], str]:
        handshake = next((setting for setting in self.settings if setting.kind == "handshake"), None)
        if handshake is not None:
            return self._tell_handshake(handshake)
        form = self.part.form
        if form in ("statement", "offer", "untyped"):
            return self._tell_statement()
        if form == "ack":
            return self._tell_ack()
        if form == "error":
            return self._tell_error()
        if form == "floor":
            act = FLOOR[self.part.symbol]
            return act, [Piece(act.says, (self._symbol_span(),))], "."
        if form == "sealed":
            return self._tell_sealed()
        if form in ("table", "list"):
            return UNTYPED, self._tell_table() if form == "table" else self._tell_list(), "."
        return UNTYPED, self._tell_context(), "."

    def _symbol_span(self) -> Span:
        return (0, *self.part.symbol_at)

    def _body(self, nodes: Sequence[Node], mood: str, lead: tuple[Span, ...]) -> Said:
        said = Body(self.text, mood, lead, self._define, self._explain).tell(nodes)
        if said.shape in ("words", "paired"):
            span = (0, nodes[0].span[1], nodes[-1].span[2])
            if guess := guess_reading(nodes, mood):
                said.pieces.append(Piece(f"; possibly: {guess}", (span,), "inferred"))
            self.notes.extend(filter(None, (note_number(nodes),)))
            self.notes.append(WORD_BY_WORD.note(say_apart(nodes, mood), span))
        supplied = next((piece for piece in said.pieces if piece.text.endswith("(use)")), None)
        if supplied is not None:
            text = "no verb stands after “can”: “(use)” is supplied, as the specification's own translation does"
            self.notes.append(SUPPLIED_VERB.note(text, supplied.spans[0]))
        lose = read_lose(nodes) if said.shape in ("words", "paired", "word", "thing") else None
        if lose is not None:
            said = said._replace(pieces=[*said.pieces, *self._say_lose(lose[0], mood)])
            text = "“-” is either a part of “lo-” or a “not” (“less”) of its own: it cannot be both"
            self.notes.append(MINUS.note(text, lose[1].span))
        taken = lose[1] if lose else None
        minus = next((node for node in nodes if node.kind == "joiner" and node.text == "-" and node is not taken), None)
        is_degree = any(piece.text.endswith(f"({say_degree('-')})") for piece in said.pieces)
        if minus is not None and (said.shape != "sentence" or is_degree):
            text = "“-” is read as “not” before a word, “less” before a number, “less or negative” behind either"
            self.notes.append(MINUS.note(text, minus.span))
        return said

    def _say_lose(self, nodes: Sequence[Node], mood: str) -> list[Piece]:
        """The other reading of a body with `lo-`, kept apart from the first: the minus is in one of them alone."""
        other = Body(self.text, mood, (), self._define, self._explain).tell(nodes)
        lead = Piece("; or, if “lo-” is v0.8's mark for “lose”:", (), "inferred")
        told = [piece._replace(basis="inferred") if piece.basis == "exact" else piece for piece in other.pieces]
        return [lead, *told, Piece(" (then the “-” negates nothing)", (), "inferred")]

    def _tell_statement(self) -> tuple[Act, list[Piece], str]:
        symbol = self.part.symbol
        act = TYPES.get(symbol[:1], UNTYPED)
        mood = "offer" if symbol == ">" else _MOODS.get(symbol[:1], "inform")
        lead = (self._symbol_span(),) if symbol else ()
        pieces = (self._tell_status(lead) if symbol in ("", "!") else []) or open_statement(
            symbol, self._body(self.nodes, mood, lead), lead, is_spoken=self.message.sender is not None
        )
        end = "?" if mood == "query" else "."
        if len(symbol) > 1 and symbol[:1] != "~":
            pieces.append(Piece(f" ({_MODIFIED.get(symbol, f'marked {symbol}')})", lead))
        return act, pieces, end

    def _tell_status(self, lead: tuple[Span, ...]) -> list[Piece]:
        """`!st{…}`: the status block of v0.6."""
        nodes = [node for node in self.nodes if node.kind != "space"]
        if len(nodes) != 2 or nodes[0].text != "st" or nodes[1].kind != "block" or nodes[0].entry:
            return []
        _, start, end = nodes[1].span
        block = parse_block(self.text, start, end)
        pieces = [Piece(" status:", (*lead, nodes[0].span))]
        for index, item in enumerate(block.items):
            said = say_item(item, self._explain)
            if index and said:
                said[0] = said[0]._replace(text=f",{said[0].text}")
            pieces.extend(said)
        return pieces

    def _tell_handshake(self, setting: Setting) -> tuple[Act, list[Piece], str]:
        act = HANDSHAKES[setting.name]
        self.said.add("version")
        pieces = [Piece(f"{act.says} in Lambda v{setting.value}", ((0, setting.start, setting.end),))]
        if not self.nodes:
            return act, pieces, "."
        _, inner, end = self._tell_statement()
        inner[0] = inner[0]._replace(text=f": {inner[0].text.lstrip()}")
        return act, [*pieces, *inner], end

    def _tell_ack(self) -> tuple[Act, list[Piece], str]:
        symbol = self.part.symbol
        lead = (self._symbol_span(),)
        if symbol == "<->" and self.nodes:
            words, shape = self._body(self.nodes, "offer", lead)
            how = "" if shape == "sentence" else " word by word:"
            return COUNTER, [Piece(f"As a counter-offer,{how}", lead), *words], "."
        act = ACKS.get(symbol, ACKS["<"])
        said = act.says if symbol in ACKS else f"I acknowledge part {symbol[2:]}"
        pieces = [Piece(said, lead)]
        if self.nodes:
            if self.nodes[0].kind != "reference":
                pieces.append(Piece(" about" if symbol == "<?" else ":", ()))
            pieces.extend(self._body(self.nodes, "inform", ()).pieces)
        return act, pieces, "."

    def _tell_error(self) -> tuple[Act, list[Piece], str]:
        start, end = self.part.body
        body = self.text[start:end]
        error = self.message.error
        code = error.code if error is not None and error.code else ""
        known = ERRORS.get(code)
        act = TYPES["!"]
        name = known.name if known else "error"
        said = f"I report an error ({name})" if known else f'I report an error of the unknown code "{code}"'
        pieces = [Piece(said, (self._symbol_span(), (0, start, start + 5)))]
        if error is not None and error.cause:
            at = start + 6
            pieces.append(Piece(f': "{error.cause}"', ((0, at, at + len(error.cause)),)))
        found = _ERROR_REST.match(body)
        after = start + (found.end() if found else 0)
        rest = [node for node in self.nodes if node.span[1] >= after and node.kind != "space"]
        if rest:
            said_rest = self._body([node for node in self.nodes if node.span[1] >= after], "inform", ()).pieces
            if rest[0].kind != "reference":
                pieces.append(Piece(",", ()))
            pieces.extend(said_rest)
        return act, pieces, "."

    def _tell_sealed(self) -> tuple[Act, list[Piece], str]:
        start, end = self.part.body
        cipher = next((setting for setting in self.settings if setting.kind == "enc"), None)
        self.said.add("enc")
        by = f" with {cipher.raw}" if cipher else ""
        spans: tuple[Span, ...] = ((0, cipher.start, cipher.end),) if cipher else ()
        count = end - start - 2
        return (
            UNTYPED,
            [
                Piece(f"I send content that is sealed{by}", spans),
                Piece(f": {count} character{'' if count == 1 else 's'}, not opened", ((0, start, end),)),
            ],
            ".",
        )

    def _tell_table(self) -> list[Piece]:
        span = (0, *self.part.body)
        table = read_table(self.text[self.part.body[0] : self.part.body[1]])
        columns, rows = table["columns"], table["rows"]
        said = f"I give a table with the column{'' if len(columns) == 1 else 's'} {join_words(columns)}"
        if not columns:
            return [Piece("I give an empty table", (span,))]
        for number, row in enumerate(rows, 1):
            said += f"; row {number}: {', '.join(row)}"
        return [Piece(said, (span,))]

    def _tell_list(self) -> list[Piece]:
        start = self.part.body[0]
        last = find_close(self.text, start)
        value = parse_block(self.text, start, last)
        pieces = [Piece("I give a list:", ()), *say_item(value, self._explain)]
        rest = [node for node in self.nodes if node.span[1] >= last]
        if any(node.kind != "space" for node in rest):
            pieces.extend([Piece(",", ()), *self._body(rest, "inform", ()).pieces])
        return pieces

    def _tell_context(self) -> list[Piece]:
        """A statement that only sets context, or gives data."""
        if self.message.native_act == "data":
            pieces: list[Piece] = []
            for item in self.part.items:
                if item.kind == "block":
                    block = parse_block(self.text, item.start, item.end)
                    pieces.append(Piece(" and" if pieces else "I give data:", ()))
                    pieces.extend(_strip_brackets(say_item(block, self._explain)))
            return pieces
        said = [
            (setting, say_setting(setting, self.message.defines, self.scope.vocabulary.names))
            for setting in self.settings
        ]
        phrases = [(setting, phrase) for setting, phrase in said if phrase is not None]
        if not phrases:
            span = (0, *self._whole())
            blocks = any(item.kind == "block" for item in self.part.items)
            return [Piece(_EMPTY_BLOCK if blocks else "No statement stands here", (span,))]
        pieces = []
        for index, (setting, phrase) in enumerate(phrases):
            self.said.add(f"{setting.kind}@{setting.start}")
            joint = "As a protocol setting, I" if index == 0 else (" and" if index == len(phrases) - 1 else ",")
            pieces.append(Piece(f"{joint} {phrase.base}", (), "exact"))
            pieces.append(Piece(f" {phrase.rest}", ((0, setting.start, setting.end),)))
        return pieces

    def _whole(self) -> tuple[int, int]:
        spans = [(item.start, item.end) for item in self.part.items] or [self.part.body]
        return spans[0][0], spans[-1][1]

    # Words and values that need the context.

    def _define(self, node: Node) -> list[Piece]:
        """A word that a sender defined, with whose definition it is and where."""
        entry = node.entry
        if entry is None:
            return [Piece(f" {node.text}", (node.span,))]
        usual = node.meaning.elsewhere if node.meaning is not None else ()
        beside = f"; {say_elsewhere(usual)}" if usual else ""
        text = f" {node.text} (means {say_text(entry.value)}, {self.say_origin(entry)}{beside})"
        return [Piece(text, (node.span,), "exact", entry.source)]

    def _explain(self, item: Value) -> list[Piece]:
        """What the parts of a value mean, where they mean something."""
        if item.kind != "text":
            return []
        text = item.text
        span = (0, item.start, item.end)
        if text.startswith(("er/", "er:")) and text[3:] in ERRORS:
            return [Piece(f" ({ERRORS[text[3:]].name})", (span,))]
        said: list[str] = []
        is_known = False
        for word in re.split(r"[/ ]", text)[:20]:
            if not (word.isascii() and word.isalpha() and word.islower()):
                continue
            meaning = self.scope.resolve(word)
            if meaning.entry is not None:
                piece = self._define(Node("word", word, span, "", "n", meaning))[0]
                return [Piece(f":{piece.text}", (span,), "exact", piece.source)]
            if meaning.basis == "exact" and meaning.senses:
                is_known = True
                said.append("/".join(meaning.senses))
            else:
                said.append(f'unknown "{word}"')
        return [Piece(f" ({', '.join(said)})", (span,))] if is_known else []


_MODIFIED = {
    "??": "a rhetorical question",
    "?!": "a questioning assertion",
    "!!": "stated twice over: emphasis, or in v0.2 “not”",
    "!!!": "stated as certain",
}

_EMPTY_BLOCK = "An empty context block: it sets nothing"


def _strip_brackets(pieces: list[Piece]) -> list[Piece]:
    """The items of a block without the brackets that set off an inner one."""
    if not pieces or not pieces[0].text.startswith(" ("):
        return pieces
    first = pieces[0]._replace(text=f" {pieces[0].text[2:]}")
    return [first, *pieces[1:-1]] if len(pieces) > 1 else [first]
