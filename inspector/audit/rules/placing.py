"""Rules over how messages hang together (what is missing, what goes round, what contradicts the clock), and over what
one rests on: its context, the hash of that, and the parts that it is one of.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from inspector.threads.nodes import HERE, SEVERAL, are_here, count_bearers, find_reuse, write_bearers
from inspector.threads.tasks import read_steps
from inspector.tokens import MARKS

from ..findings.scene import Scene, Seen
from .rule import Hit, Rule

MAX_NAMED_LENGTH: Final = 80


def _find_conflicts(scene: Scene) -> Iterator[Hit]:
    for messages in scene.doubles:
        first, *others = messages
        count = len({message.record for message in messages})
        yield Hit(
            message=others[-1].id,
            text=f"{count} messages with different bytes claim the id {first.native_id!r}.",
            detail=first.native_id,
            related=tuple(message.id for message in messages[:-1])[:20],
        )


def _find_reused(scene: Scene) -> Iterator[Hit]:
    for *others, message in scene.reused:
        reuse = find_reuse(message.why)
        yield Hit(
            message=message.id,
            text=f"{reuse[:1].upper()}{reuse[1:]}: replies to it may mean either.",
            related=tuple(each.id for each in others)[:20],
        )


def _find_circles(scene: Scene) -> Iterator[Hit]:
    for message in scene.odd:
        if "circle" in message.why:
            yield Hit(message=message.id, text="Its parents lead back to itself. The circle is cut at this message.")
        elif message.why.startswith("it names itself"):
            yield Hit(message=message.id, text="It names itself as the message that it answers.")


def _find_missing(scene: Scene) -> Iterator[Hit]:
    """One for each id that is cited and was not received, at the first message that cites it; what people withdrew was
    received."""
    for message, more in _list_ghosts(scene):
        if not count_bearers(message.why) and message.cited not in scene.withdrawn:
            name = _name(scene.cited_ids.get(message.id, ""))
            yield _hit_ghost(message, f"It answers {name}, which was not received.{more}")


def _find_ambiguous(scene: Scene) -> Iterator[Hit]:
    """One for each id that is cited and that several messages bear, here or in other conversations."""
    for message, more in _list_ghosts(scene):
        if bearers := count_bearers(message.why):
            name = _name(scene.cited_ids.get(message.id, ""))
            where = HERE if are_here(message.why) else "in other conversations "
            several = f"{where}{write_bearers(bearers)} {SEVERAL}"
            yield _hit_ghost(message, f"It answers {name}, but which one is unknown: {several}.{more}")


def _list_ghosts(scene: Scene) -> Iterator[tuple[Seen, str]]:
    """The first message that cites each id which stands for none here, and how many more do, as a sentence."""
    citing: dict[bytes, list[Seen]] = {}
    for message in scene.odd:
        if message.cited is not None and message.parent is None and message.basis:
            citing.setdefault(message.cited, []).append(message)
    for first, *others in citing.values():
        more = "One more message cites" if len(others) == 1 else f"{len(others):,} more messages cite"
        yield first, f" {more} it." if others else ""


def _hit_ghost(message: Seen, text: str) -> Hit:
    return Hit(message=message.id, text=text, detail=(message.cited or b"").hex())


def _name(cited: str) -> str:
    if not cited:
        return "a message"
    return f"the message {cited if len(cited) <= MAX_NAMED_LENGTH else cited[:MAX_NAMED_LENGTH] + '…'!r}"


def _find_answers_to_nothing(scene: Scene) -> Iterator[Hit]:
    """Tasks that are known by their answers alone; a ghost tells of those whose wire cites what is missing."""
    cited = {message.id for message in scene.odd}
    for task in scene.tasks:
        if task.request is not None:
            continue
        steps = read_steps(task.steps)
        if steps and steps[0].message_id not in cited | scene.elsewhere:
            yield Hit(
                message=steps[0].message_id,
                text=f"It reports on {task.native_id or 'something'!r}, which no received message asked for.",
                detail=task.native_id,
            )


def _find_words_after_end(scene: Scene) -> Iterator[Hit]:
    for task, message in scene.after_end:
        yield Hit(
            message=message.id,
            text="It reports on work that had been cancelled before.",
            related=(task.request,) if task.request else (),
        )


def _find_early_answers(scene: Scene) -> Iterator[Hit]:
    for each in scene.skewed:
        if each.parent is not None:
            yield Hit(
                message=each.message.id,
                text=f"Its time is {_say(each.seconds)} before that of the message it answers.",
                related=(each.parent,),
                detail="answer",
            )
        else:
            yield Hit(
                message=each.message.id,
                text=f"Its time is {_say(each.seconds)} later than the moment at which it was received.",
                detail="future",
            )


def _say(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"


# The code by which CLowl says that a context could not be had.
_NO_CONTEXT: Final = "E003"
_PART: Final = re.compile(r"P?([0-9]{1,9})/([0-9]{1,9})")


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


RULES: Final = (
    Rule(
        code="conflicting-duplicate",
        title="One id used for several messages",
        why="An id should name one message. One of these was altered, sent by somebody else, or numbered wrongly.",
        severity="error",
        group="security",
        look=_find_conflicts,
    ),
    Rule(
        code="reused-number",
        title="Number or turn used again",
        why="A sender's number or turn should name one message. Replies to it may mean either.",
        severity="warning",
        group="sequence",
        look=_find_reused,
    ),
    Rule(
        code="circle",
        title="Circular replies",
        why="A message cannot reply to its own consequence: ids were reused or made up.",
        severity="warning",
        group="sequence",
        look=_find_circles,
    ),
    Rule(
        code="missing-message",
        title="Reply to a missing message",
        why="Part of the conversation is not here: the log is incomplete, or the message was withheld.",
        severity="notice",
        group="sequence",
        look=_find_missing,
    ),
    Rule(
        code="ambiguous-parent",
        title="Reply to an ambiguous id",
        why="The intended message is unknown: ids were reused in one channel or made up.",
        severity="notice",
        group="sequence",
        look=_find_ambiguous,
    ),
    Rule(
        code="answer-without-request",
        title="Report without a request",
        why="Either the request is missing here, or an agent worked without being asked.",
        severity="notice",
        group="sequence",
        look=_find_answers_to_nothing,
    ),
    Rule(
        code="act-after-cancel",
        title="Work reported after cancellation",
        why="The cancellation did not arrive or was ignored: the cancelled work may have been done.",
        severity="warning",
        group="sequence",
        look=_find_words_after_end,
    ),
    Rule(
        code="skewed-time",
        title="Time contradicts the order of events",
        why="A clock is wrong or a time was made up: these times do not prove what came first.",
        severity="warning",
        group="sequence",
        look=_find_early_answers,
    ),
    Rule(
        code="context-unavailable",
        title="Context unavailable",
        why="One of the two worked without information that the other relied on: the work may differ from the request.",
        severity="warning",
        group="sequence",
        look=_find_missing_contexts,
    ),
    Rule(
        code="hash-mismatch",
        title="Context hash mismatch",
        why="It was altered after it was agreed on, or the two speak of different things under one name.",
        severity="error",
        group="security",
        look=_find_other_contexts,
    ),
    Rule(
        code="partition-mismatch",
        title="Incomplete or contradictory parts",
        why="Some parts are missing or contradict each other, so nobody read the whole message.",
        severity="warning",
        group="sequence",
        look=_find_odd_parts,
    ),
)
