"""What stands before the text on a log line: a time, bracketed labels, a speaker.

The rule for speakers, `name: ` and `name -> name: `, is kept simple:
the name is a word or two, it is no word that a dialect or a program sets before a colon, a space follows the colon,
and the rest reads better without it. That is so
where the rest alone is in a dialect, and surer than the whole line is (a dialect may have speakers of its own);
where an arrow names both speakers, and the rest is in a dialect as surely as the whole line is; but what is for
everybody (`*`) is left to a dialect that says so itself;
where the whole line is in no dialect, and an arrow names both speakers or a time or a label stood before.
`Note: bring the logs` without a time stays one text.
"""

from __future__ import annotations

import re
from typing import Any

from .._detect import detect
from .._record import Envelope
from .._time import instant_of_log

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\s?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?"
# Seconds, milliseconds, microseconds or nanoseconds.
_UNIX = r"\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19}"
_TIME = re.compile(
    rf"\s*(?:\[({_ISO}|{_UNIX})\]|({_ISO}|{_UNIX})(?=[ \t]))[ \t]*",
    re.ASCII,
)
_LABEL = re.compile(r"\s*\[([^\[\]{}\"]{1,64})\][ \t]+(?=\S)")
_NAME = r"[^\W_][\w.\-]{0,63}(?: [^\W_][\w.\-]{0,63})?"
_SPEAKER = re.compile(rf"\s*({_NAME})(?:\s*(?:->|→|=>)\s*((?:{_NAME}|\*)(?:,\s*{_NAME}){{0,31}}))?:[ \t]+(?=\S)")

# Words before a colon that name no speaker: Lambda's key material, inline markers and errors; what models write
# before a wire; what people write before a remark; the levels of log programs; the schemes of addresses.
_RESERVED = frozenset(
    (
        *("pub", "prv", "sig", "v", "c", "s", "e", "o", "a", "m", "er", "Λ", "λ", "lambda"),
        *("thought", "quantize", "slip", "json", "text", "note", "data"),
        *("trace", "debug", "info", "notice", "warn", "warning", "error", "fatal", "critical"),
        *("http", "https", "ftp", "mailto", "file", "urn"),
    )
)
_SURE = 0.5
# A text this sure is a wire from end to end: more around it can only make it less so.
_CERTAIN = 0.98
_MOST_LABELS = 8
_TIME_STARTS = frozenset("0123456789[ \t")


def has_time(line: str) -> bool:
    """Whether a line begins with a time of its own, and so opens a record."""
    return line[:1] in _TIME_STARTS and _time_of(line) is not None


def _time_of(line: str) -> tuple[int, str, str] | None:
    found = _TIME.match(line)
    if not found:
        return None
    raw = found[1] or found[2]
    instant = instant_of_log(raw)
    return (found.end(), raw, instant) if instant else None


def read_prefix(line: str) -> tuple[int, Envelope | None]:
    """How many characters of the line are its prefix, and the envelope they make; (0, None) for none."""
    start = 0
    given: dict[str, Any] = {}
    if line[:1] in _TIME_STARTS:
        if time := _time_of(line):
            start, given["at_raw"], given["at"] = time
        labels: list[str] = []
        while len(labels) < _MOST_LABELS and (label := _LABEL.match(line, start)):
            labels.append(label[1])
            start = label.end()
        if labels:
            given["label"] = " ".join(labels)
    speaker = _SPEAKER.match(line, start)
    if speaker and _is_speaker(speaker, line, start):
        given["sender"] = speaker[1]
        if speaker[2]:
            names = tuple(name.strip() for name in speaker[2].split(","))
            given["receivers"] = tuple(name for name in names if name != "*")
            if "*" in names:
                given["extra"] = {"to": "*"}
        start = speaker.end()
    # A line that holds nothing but a time is its own text.
    return (start, Envelope(**given)) if given and line[start:].strip() else (0, None)


def _is_speaker(found: re.Match[str], line: str, start: int) -> bool:
    if found[1] in _RESERVED or (len(found[1]) > 1 and found[1].lower() in _RESERVED):
        return False
    rest = detect(line[found.end() :])[0]
    if rest.score >= _CERTAIN:
        return True
    whole = detect(line[start:])[0]
    if whole.dialect == "prose" and (found[2] is not None or start > 0):
        return True
    if found[2] is not None and "*" not in found[2] and rest.dialect != "prose" and rest.score >= whole.score:
        return True
    return rest.dialect != "prose" and rest.score >= _SURE and (whole.dialect == "prose" or rest.score > whole.score)
