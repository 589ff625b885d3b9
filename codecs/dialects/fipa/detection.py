"""How a text gives itself away as FIPA-ACL or KQML, and where a message that a log spreads over lines ends."""

from __future__ import annotations

from typing import Literal

from .._record import Candidate
from .expressions import INSIDE, SPACES, TOKEN
from .parsing import OPENER, SEPARATORS, Call, parse_record
from .tables import ACTS, FIPA, TELLING

_WHOLE = Candidate(dialect="fipa", score=0.99, why="the text is a list of an act and its parameters, from end to end")
_PARTIAL = Candidate(dialect="fipa", score=0.9, why="the text is a list of an act and one known parameter")
_OPEN = Candidate(
    dialect="fipa", score=0.9, why="the text starts as a list of an act and parameters that is not closed"
)
_AMONG_PROSE = Candidate(dialect="fipa", score=0.8, why="a list of an act and its parameters stands among other text")
_OPEN_AMONG_PROSE = Candidate(
    dialect="fipa", score=0.6, why="a list of an act and its parameters among other text is not closed"
)
# Below prose: only a conversation that is known to speak it settles that this is meant.
_SHAPE = Candidate(dialect="fipa", score=0.2, why="a list begins with the name of an act and has no known parameter")

# A text is judged by its beginning.
_JUDGED = 65_536


def sniff(wire: str) -> Candidate | None:
    """The candidate with its score and reason, or None where no message opens."""
    opener = OPENER.search(wire, 0, _JUDGED)
    if opener is None:
        return None
    record = parse_record(wire[:_JUDGED])
    calls = record.calls
    if not calls:
        return None
    first = next((part for part in record.parts if not SEPARATORS.issuperset(wire[part.start : part.end])), None)
    is_first = isinstance(first, Call)
    known = min(map(_count_known, calls))
    if not known:
        return _SHAPE
    is_cut = len(wire) > _JUDGED
    if record.error and not is_cut:
        return _OPEN if is_first else _OPEN_AMONG_PROSE if known > 1 else _SHAPE
    if is_first and (is_cut or len(record.parts) == len(calls)):
        return _WHOLE if known > 1 else _PARTIAL
    return _AMONG_PROSE if known > 1 else _SHAPE


def _count_known(call: Call) -> int:
    """How many parameters it has by which a message of an agent is told; none where no table holds its act."""
    return sum(each.name.lower() in TELLING for each in call.parameters) if call.act else 0


# A message that is still open after so many lines, or characters, was cut: nothing more is taken into it.
_MAX_LINES = 2_000
_MAX_CHARACTERS = 1 << 20


class OpenMessage:
    """The block of a message whose first line leaves it open.

    Cut before it is complete, it is its first line, and the lines below it that look like its parameters.
    """

    def __init__(self, line: str, start: int, vocabulary: str) -> None:
        self.is_complete = False
        self.lines_if_cut: int | None = 1
        self._inside = INSIDE[vocabulary]
        self._lines = self._length = self._depth = self._bytes_left = 0
        self._in_text = self._after_key = False
        self._scan(line, start)

    def _scan(self, line: str, at: int = 0) -> None:
        """Go through a line; the message is complete where its bracket closes and nothing but space follows."""
        self._lines += 1
        self._length += len(line) + 1
        while at < len(line):
            if self._bytes_left:
                held = line[at : at + self._bytes_left].encode("utf-8", "surrogatepass")[: self._bytes_left]
                self._bytes_left -= len(held)
                at += len(held.decode("utf-8", "ignore")) or 1
            elif self._in_text:
                inside = self._inside.match(line, at)
                at = inside.end() + 1 if inside else len(line)
                self._in_text = at > len(line)
            elif token := TOKEN.match(line, at):
                at = token.end()
                self._depth += bool(token[1]) - bool(token[2])
                self._in_text = bool(token[3])
                self._bytes_left = int(token[4] or 0)
                self._after_key = bool(token[5])
                if not self._depth:
                    self.is_complete = True
                    return
            else:
                break
        self._bytes_left = max(0, self._bytes_left - 1)  # the end of the line is one of them

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line continues the message. One that opens another where a parameter is due does not."""
        head = line.lstrip(SPACES)[:1]
        is_plain = not self._in_text and not self._bytes_left
        is_due = is_plain and self._depth == 1 and not self._after_key
        if self._lines >= _MAX_LINES or self._length + len(line) > _MAX_CHARACTERS:
            return "not"
        if is_due and (
            OPENER.match(line, len(line) - len(line.lstrip(SPACES))) or (self._lines == 1 and head not in ":)")
        ):
            return "not"
        if self.lines_if_cut == self._lines and is_plain and (line[:1] in SPACES or head in ":)"):
            self.lines_if_cut += 1
        self._scan(line)
        return "last" if self.is_complete else "more"


def opens(line: str) -> OpenMessage | None:
    """The block that a line opens with an act, or None where it opens none or closes it."""
    opener = OPENER.match(line, len(line) - len(line.lstrip(SPACES)))
    if opener is None:
        return None
    act = ACTS.get((opener[1] or "").lower())
    block = OpenMessage(line, opener.start(), act.vocabulary if act else FIPA)
    return None if block.is_complete else block
