"""The end of a stream that broke off: what was whole, what was cut in two, and what could not be had at all.

A record that was cut must not look like one that was whole, so what came of it is quarantined, in one piece. Where a
file could not be read on, one more quarantined record without any length stands for the rest: its exact bytes are
the file as it arrived, which is kept.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from dialects import Item, LogReader, LogRecord, Piece, Problem, Scaffold


def close_broken(reader: LogReader, *, position: int, reason: str, file_digest: bytes | None = None) -> list[Item]:
    """What a reader gives at the end of a stream that broke off.

    Args:
        reader: fed with all that came.
        position: how many bytes of the stream that is.
        reason: why it goes no further.
        file_digest: the SHA-256 of the file that could not be read to its end; None for a POST.
    """
    before = reader.state()
    items = reader.close()
    if not before["long"] and not any(isinstance(item, Piece) for item in items):
        items = _mark_cut(items, before, position, f"the record is cut: {reason}")
    if file_digest is not None:
        after = reader.state()
        index = before["index"] + sum(isinstance(item, LogRecord) for item in items)
        items.append(
            LogRecord(
                index=index,
                offset=position,
                length=0,
                line=after["line"],
                source=b"",
                chain=sha256(bytes.fromhex(after["chain"]) + file_digest).digest(),
                problem=Problem(code="cut", reason=reason, offset=position),
            )
        )
    return items


def _mark_cut(items: list[Item], before: dict[str, Any], position: int, reason: str) -> list[Item]:
    records = [item for item in items if isinstance(item, LogRecord)]
    if not records:
        return items
    last = records[-1]
    is_open = last.offset + last.length == position
    problem = Problem(code="cut", reason=reason, offset=position)
    if before["form"] is None:
        # The reader had not yet decided how to read; what ends with a line end is whole.
        cut = {name: getattr(last, name) for name in ("index", "offset", "length", "line", "source", "chain")}
        return [LogRecord(**cut, problem=problem) if is_open and item is last else item for item in items]
    if len(records) == 1 and not is_open:
        return items
    # Several records are one block of lines that was given back for want of its end: it is kept in one piece.
    gap = bytes.fromhex(before["gap"])
    stream = b"".join((item.source or b"") if isinstance(item, LogRecord) else item.data for item in items)
    offset = before["offset"]
    cut_record = LogRecord(
        index=before["index"],
        offset=offset,
        length=len(stream) - len(gap),
        line=before["line"],
        source=stream[len(gap) :],
        chain=sha256(bytes.fromhex(before["chain"]) + stream).digest(),
        problem=problem,
    )
    return [*([Scaffold(offset=offset - len(gap), data=gap)] if gap else []), cut_record]
