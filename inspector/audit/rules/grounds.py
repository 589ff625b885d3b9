"""Rules over what a message rests on: its context, the hash of that, and the parts that it is one of."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from inspector.tokens import MARKS

from ..findings.scene import Scene, Seen
from .rule import FOOT, Hit, Rule, clowl, say

# The code by which CLowl says that a context could not be had.
_NO_CONTEXT: Final = "E003"
_PART: Final = re.compile(r"P?([0-9]{1,9})/([0-9]{1,9})")
_INLINE: Final = "the plan of monday"
_HASH: Final = hashlib.sha256(_INLINE.encode()).hexdigest()


def _find_missing_contexts(scene: Scene) -> Iterator[Hit]:
    for message, error in scene.failures:
        if error.get("code") == _NO_CONTEXT:
            yield Hit(message=message.id, text="It reports that the context it was given is unavailable.")


def _find_other_contexts(scene: Scene) -> Iterator[Hit]:
    """Text that has not the hash it is given with, and a context that is cited with another hash than before."""
    cited: dict[str, tuple[str, Seen]] = {}
    for message, said in scene.leaning:
        for number, reference in enumerate(said.get("references") or ()):
            ref, digest, inline = (reference.get(name) for name in ("ref", "hash", "inline"))
            if not digest:
                continue
            if inline and MARKS not in inline and _digest(inline) != digest.lower():
                text = f"The text that it gives as context has the SHA-256 {_digest(inline)[:12]}…, not {digest[:12]}…."
                yield Hit(message=message.id, text=text, detail=f"inline {number}")
            if not ref:
                continue
            before, first = cited.setdefault(ref, (digest.lower(), message))
            if before != digest.lower():
                yield Hit(
                    message=message.id,
                    text=f"It cites {ref!r} with the hash {digest[:12]}…, which was cited with {before[:12]}… before.",
                    detail=f"ref {ref}",
                    related=(first.id,),
                )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _find_odd_parts(scene: Scene) -> Iterator[Hit]:
    """A part beyond the last, another total within one series, and parts that are not there."""
    series: dict[tuple[str, ...], list[tuple[int, int, Seen]]] = defaultdict(list)
    for message, said in scene.leaning:
        part = _read_part(said.get("condition") or {})
        if part is None:
            continue
        number, total = part
        if not 1 <= number <= total:
            yield Hit(message=message.id, text=f"It says that it is part {number} of {total}.", detail="beyond")
            continue
        key = (message.sender, *message.receivers)
        if series[key] and number <= series[key][-1][0]:
            yield from _end_series(series.pop(key))
        if series[key] and series[key][-1][1] != total:
            text = f"It says that there are {total} parts, where the one before said {series[key][-1][1]}."
            yield Hit(message=message.id, text=text, detail="total", related=(series.pop(key)[-1][2].id,))
        series[key].append((number, total, message))
    for parts in series.values():
        yield from _end_series(parts)


def _end_series(parts: list[tuple[int, int, Seen]]) -> Iterator[Hit]:
    total, last = parts[-1][1], parts[-1][2]
    here = {number for number, *_ in parts}
    if len(here) < total:
        first = next(number for number in range(1, total + 1) if number not in here)
        more = total - len(here)
        text = f"Of {total:,} parts {len(here):,} are here; the first that is missing is part {first:,}."
        related = tuple(message.id for *_, message in parts[:-1][:20])
        yield Hit(message=last.id, text=text, detail=f"missing {more}", related=related)


def _read_part(condition: Mapping[str, Any]) -> tuple[int, int] | None:
    found = _PART.fullmatch(condition.get("raw") or "") if condition.get("kind") == "partition" else None
    return (int(found[1]), int(found[2])) if found else None


def _cite(ref: str, digest: str) -> str:
    line = clowl(ref + digest[:1], "INF", "oscar", "radar")
    return line.replace('"body"', f'"ctx": {{"ref": "{ref}", "hash": "{digest}"}}, "body"')


def _give(inline: str) -> str:
    line = clowl("m1", "INF", "oscar", "radar")
    return line.replace('"body"', f'"ctx": {{"inline": "{inline}", "hash": "{_HASH}"}}, "body"')


def _part(number: int, total: int) -> tuple[str, str]:
    return ("ada", f"👽13|%P{number}/{total}|@bob|$aGk=" + FOOT)


RULES: Final = (
    Rule(
        code="context-unavailable",
        title="Context unavailable",
        why="One of the two worked without information that the other relied on: the work may differ from the request.",
        severity="warning",
        group="sequence",
        look=_find_missing_contexts,
        triggers=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E003", msg="no such context"),
        ),
        passes=(
            clowl("m1", "REQ", "oscar", "radar")
            + clowl("m2", "ERR", "radar", "oscar", minute=1, pid="m1", code="E004", msg="busy"),
        ),
    ),
    Rule(
        code="hash-mismatch",
        title="Context hash mismatch",
        why="It was altered after it was agreed on, or the two speak of different things under one name.",
        severity="error",
        group="security",
        look=_find_other_contexts,
        triggers=(_give("the plan of friday"), _cite("plan", "a" * 64) + _cite("plan", "b" * 64)),
        passes=(
            _give(_INLINE),
            _cite("plan", "a" * 64) + _cite("other", "b" * 64),
            _cite("plan", "a" * 64) + _cite("plan", "a" * 64).replace("plana", "planc"),
        ),
    ),
    Rule(
        code="partition-mismatch",
        title="Incomplete or contradictory parts",
        why="Some parts are missing or contradict each other, so nobody read the whole message.",
        severity="warning",
        group="sequence",
        look=_find_odd_parts,
        triggers=(
            say(_part(4, 3)),
            say(_part(1, 3), _part(3, 3)),
            say(_part(1, 3), _part(2, 2)),
        ),
        passes=(
            say(_part(1, 2), _part(2, 2)),
            say(_part(1, 1), _part(1, 1)),
            say(_part(1, 2), _part(2, 2), _part(1, 3), _part(2, 3), _part(3, 3)),
        ),
    ),
)
