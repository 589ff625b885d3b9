"""A conversation's window as the rows of its transcript: messages, ghosts, and where a run begins.

A ghost is what is cited and stands for no message here. Of sealed messages owners and auditors see the opened text,
others that there is some.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.urls import reverse

import dialects
from dialects import say_name
from inspector.accounts.models import Membership, Workspace
from inspector.audit.models import Finding
from inspector.bounds import check_effort
from inspector.browsing.transcripts import find_rekeyed, tell_lines
from inspector.browsing.withdrawn import Withdrawn, find_cited, find_withdrawn
from inspector.opening import Opening, disclose, find_opened_ids, find_openings_of
from inspector.threads.keys import name_cited
from inspector.threads.models import Conversation, Message
from inspector.threads.nodes import SEVERAL, are_here, count_bearers, write_bearers
from inspector.threads.selectors import TreeRow, find_messages_by_ids, load_records
from inspector.threads.trees import find_carrying

from ..shown.agents import Cast
from ..shown.fields import MAX_DEPTH, MAX_RECORD_BYTES, MAX_SHOWN_RECORD_BYTES, cut_wire, fit_wire, weigh_wire
from ..shown.findings import describe_findings
from ..shown.markup import SENTENCE_CHARACTERS, fit, join_texts, share_out, shorten_name, weigh
from ..shown.told import (
    NoteLine,
    Segments,
    is_said,
    link_rekeyed,
    link_search,
    list_notes,
    make_line,
    name_dialect_of,
    read_segments,
    say_fate,
    shorten,
    write_elapsed,
    write_term,
)


@dataclass(frozen=True, slots=True)
class Disclosed:
    """What was opened of the messages of a page, and which of them are open to others than this reader."""

    openings: Mapping[uuid.UUID, Opening] = field(default_factory=dict)
    withheld: frozenset[uuid.UUID] = frozenset()

    def name_keys(self, message: Message) -> str:
        """The labels of the keys that opened a message; empty where none is shown to have."""
        opening = self.openings.get(message.pk)
        return ", ".join(opening.labels) if opening else ""

    def lay_over(self, row: TreeRow) -> TreeRow:
        """A row with what was opened in the place of what was sealed."""
        opening = self.openings.get(row.message.pk) if row.message else None
        return row._replace(body=opening.lay_over(row.body)) if opening else row


NOTHING_DISCLOSED = Disclosed()


def open_for(membership: Membership, messages: Sequence[Message], *, door: str) -> Disclosed:
    """What this reader may see of these messages; that an owner or auditor is shown something is noted first.

    Args:
        door: of `KeyEvent.Door`.
    """
    if not membership.is_auditor:
        return Disclosed(withheld=frozenset(find_opened_ids(messages=messages)))
    openings = find_openings_of(messages=messages)
    disclose(openings, door=door, by=membership.user)
    return Disclosed(openings=openings)


def find_ghost(message: Message) -> str:
    """The digest of the id that a message cites and that stands for no message here; empty where there is none."""
    return bytes(message.parent_key).hex() if message.parent_key is not None and message.parent is None else ""


# What nobody says to a message of their own: whoever says it most likely sends it to the sender of the one it cites.
# Anything else may follow up on what its own sender said before.
_TO_ANOTHER: Final = frozenset({"accept", "acknowledge", "not-understood", "reject"})


def make_ghost_row(
    ghost: str, citing: TreeRow | None, depth: int, *, cast: Cast, slug: str, withdrawn: Withdrawn | None = None
) -> dict[str, Any]:
    """The row of what was cited and stands for no message here, above the one that cites it, if that is in the window.

    `fate` says whether it was never received, is withdrawn or could be any of several; `search_url` leads to what bears
    its id. `likely` wrote it most likely, where what the message that answers it says is told to another than its
    sender; `before` is when that was said. Of one that is `withdrawn` nothing is guessed.
    """
    message = citing.message if citing else None
    name = name_cited(citing.body["message"]) if citing and message else ""
    bearers = count_bearers(message.parent_why) if message else None
    term = write_term("id", name) if name and not withdrawn else ""
    is_missing = bearers == 0 and withdrawn is None
    line = make_line(message, cast) if message and is_missing else None
    is_one = line is not None and len(line.receivers) == 1 and not line.more_receivers
    is_likely = is_one and line is not None and line.performative in _TO_ANOTHER
    return {
        "kind": "ghost",
        "anchor": make_ghost_anchor(ghost),
        "name": shorten_name(name or "A message"),
        "fate": say_fate(bearers, is_withdrawn=withdrawn is not None),
        "withdrawn": withdrawn,
        "cited_by": f"{(message and shorten_name(message.native_id)) or 'The message below'} cites it.",
        "search_url": link_search(slug, term) if term else "",
        "is_missing": is_missing,
        "depth": depth,
        "likely": line.receivers[0] if line and is_likely else None,
        "before": line.at if line else None,
        "before_basis": line.basis if line else "",
    }


def make_ghost_anchor(ghost: str) -> str:
    """The name of the place of a ghost, by the digest of the id that is cited, wherever it is drawn."""
    return f"ghost-{ghost[:16]}"


# Findings and notes of one message; of the findings at most so many.
MAX_REMARKS = 4
MAX_ASIDE_LENGTH = 160
MAX_PLACE_LENGTH = 400
MAX_FINDINGS = 3
FINDING_BYTES = 200
# What every message of its dialect carries, and the row or the page says beside the sentence.
_USUAL: Final = re.compile(r"CLowl version [\d.]+|turn \d+")
_SENT: Final = re.compile(r"sent \d{1,2} \w+ \d{4}, [\d:.]+ UTC")
# Another message, in the program's words: what stands in quotation marks is an agent's.
_QUOTED: Final = re.compile("“[^”]*”")
_NUMBERED: Final = re.compile(r"\b[Mm]essage (\d{1,9})\b")
MAX_OTHERS: Final = 5
_CAUTION: Final = "Caution: "
_NOT_TOLD: Final[Segments] = (("Not shown yet: the conversation is being processed.", (), "exact"),)
# Of a whole conversation, at the first message of a window; each message has them on its own page.
TOLD_ONCE = {"envelope.times-differ", "envelope.times-disagree"}
# So is a remark that would stand beside nearly every message of its dialect.
REMARKED_ONCE = "the specification does not define which end of the priorities is highest"
GRAVE = ("error", "warning")


# A message, a ghost or the beginning of a run, as its `kind` says.
Row = dict[str, Any]


def make_rows(
    rows: Sequence[TreeRow],
    *,
    workspace: Workspace,
    conversation: Conversation,
    cast: Cast,
    is_tree: bool,
    disclosed: Disclosed = NOTHING_DISCLOSED,
    findings: Mapping[uuid.UUID, Sequence[Finding]] | None = None,
    comments: Mapping[tuple[uuid.UUID, int], int] | None = None,
    trace: str = "",
) -> list[Row]:
    """The rows of a window in their order.

    Args:
        rows: as `read_tree` or `read_timeline` gives them.
        workspace, conversation: whose they are.
        cast: the agents of the page, coloured.
        is_tree: whether they are in the order of a tree. In the order of time the runs are named, and a ghost stands
            before the first message of the window that cites it.
        disclosed: what the reader may see of what is sealed.
        findings: the open findings about each message that has some, the gravest first.
        comments: how many comments stand open, by the record and the part they are on.
        trace: the id of the one trace that the page names above; empty where it names none or several.
    """
    rows = [disclosed.lay_over(row) for row in rows]
    builder = _Builder(rows, workspace, conversation, cast, is_tree, disclosed, findings or {}, comments or {}, trace)
    made: list[Row] = []
    run = rows[0].message.run if rows and rows[0].message else 1
    known_ghosts: set[str] = set()
    for index, row in enumerate(rows):
        if row.message is None:
            made.append(builder.make_ghost(index))
            continue
        if not is_tree and row.message.run != run:
            made.append({"kind": "run", "number": row.message.run})
        missing = find_ghost(row.message)
        if not is_tree and missing and missing not in known_ghosts:
            known_ghosts.add(missing)
            made.append(builder.make_ghost_of(missing, row, 0))
        run = row.message.run
        made.append(builder.make_message(row, row.message))
    return _fit_rows(made)


def _fit_rows(rows: Sequence[Row]) -> list[Row]:
    """Give each message its share of what the page may weigh: how many characters of sentence and wire it shows."""
    texts = {
        at: (join_texts((*row["segments"], *row["also"])), row)
        for at, row in enumerate(rows)
        if row["kind"] == "message"
    }
    said = {at: weigh(text, SENTENCE_CHARACTERS) for at, (text, _) in texts.items()}
    wires = {at: weigh_wire(row["wire"], row["stretches"]) for at, (_, row) in texts.items()}
    most = share_out([*said.values(), *wires.values()])
    fitted = list(rows)
    for at, (text, row) in texts.items():
        fitted[at] = {
            **row,
            "english_characters": fit(text, most, SENTENCE_CHARACTERS),
            "wire_characters": fit_wire(row["wire"], row["stretches"], most),
        }
    return fitted


@dataclass
class _Builder:
    _rows: Sequence[TreeRow]
    _workspace: Workspace
    _conversation: Conversation
    _cast: Cast
    _is_tree: bool
    _disclosed: Disclosed
    _findings: Mapping[uuid.UUID, Sequence[Finding]]
    _comments: Mapping[tuple[uuid.UUID, int], int]
    _trace: str

    def __post_init__(self) -> None:
        self._here = {row.message.pk: row.message for row in self._rows if row.message}
        here = list(self._here.values())
        self._carrying = find_carrying(here)
        parents = {message.parent for message in here if message.parent} | {*self._carrying.values()}
        beside = find_messages_by_ids(workspace=self._workspace, message_ids=list(parents - self._here.keys()))
        self._parents = {**self._here, **beside}
        self._left_out = load_records(messages=here, max_bytes=MAX_SHOWN_RECORD_BYTES, max_in_all=MAX_RECORD_BYTES)
        ordered = sorted(here, key=lambda message: message.number)
        # What was opened for this reader is in no transcript.
        opened = self._disclosed.openings
        bodies = {row.message.pk: row.body for row in self._rows if row.message and row.message.pk not in opened}
        self._rekeyed = find_rekeyed(ordered)
        cited = map(find_cited, here)
        self._withdrawn = find_withdrawn(workspace_id=self._workspace.pk, cited=cited)
        self._lines = tell_lines(
            workspace=self._workspace, messages=ordered, known=self._parents, bodies=bodies, rekeyed=self._rekeyed
        )
        self._numbers = {message.number: message for message in ordered}
        self._previous: Message | None = None
        self._told_once: set[str] = set()

    def make_ghost(self, index: int) -> dict[str, Any]:
        """The ghost's name is what the message below it, which cites it, calls it."""
        row = self._rows[index]
        citing = self._rows[index + 1] if index + 1 < len(self._rows) else None
        depth = min(row.depth, MAX_DEPTH)
        return self.make_ghost_of(row.ghost, citing, depth)

    def make_ghost_of(self, ghost: str, citing: TreeRow | None, depth: int) -> dict[str, Any]:
        """The row of a ghost, by the digest of its id and the row of the message that cites it."""
        withdrawn = self._find_withdrawn(citing.message) if citing and citing.message else None
        slug = self._workspace.slug
        return make_ghost_row(ghost, citing, depth, cast=self._cast, slug=slug, withdrawn=withdrawn)

    def _find_withdrawn(self, message: Message) -> Withdrawn | None:
        cited = find_cited(message)
        return self._withdrawn.get(cited) if cited else None

    def make_message(self, row: TreeRow, message: Message) -> dict[str, Any]:
        """The row of a message, with its reply line, its notes and its wire cut at the fields."""
        check_effort()
        findings = self._findings.get(message.pk, ())
        told = {_fold(finding.text) for finding in findings[:MAX_FINDINGS]}
        notes = [
            note
            for note in list_notes(message, row.body)
            if _fold(note.text) not in told and note.code not in self._told_once
        ]
        self._told_once |= {note.code for note in notes} & TOLD_ONCE
        max_notes = max(1, MAX_REMARKS - len(findings))
        first = notes[:max_notes]
        reply = self.make_reply(message, row.body)
        english = row.body["message"].get("english")
        if reply and not reply["why"]:
            # The arrow of the reply says it.
            answer = f", in reply to message {say_name(name_cited(row.body['message']))}"
            english = [piece for piece in english or () if piece["text"] != answer]
        also = [piece for piece in row.body["message"].get("also") or () if not self._is_usual(message, piece["text"])]
        previous, self._previous = self._previous, message
        told_line = self._lines[message.pk]
        unclear = told_line.replies if told_line.is_unclear else ()
        if reply and unclear and reply["basis"] == "inferred":
            reply["verb"] = "may answer"
        places = [_make_place(text) for text in (*unclear, *told_line.places)]
        meant = told_line.replies if are_here(message.parent_why) else ()
        wire, stretches = cut_wire(message)
        return {
            "kind": "message",
            "number": message.number,
            "anchor": make_anchor(message.pk),
            "url": reverse("pages:message", args=[self._workspace.slug, message.pk]),
            "depth": min(row.depth, MAX_DEPTH),
            "deeper": max(0, row.depth - MAX_DEPTH),
            "line": make_line(message, self._cast),
            "since": _write_since(self._find_earlier(message, previous), message),
            "since_words": "after the message that it refers to" if self._is_tree else "after the message before",
            "is_new_day": previous is None or previous.order_time.date() != message.order_time.date(),
            "dialect": name_dialect_of(message, row.body["record"]) if len(self._conversation.dialects) > 1 else "",
            "native_id": shorten_name(message.native_id),
            "is_sealed": message.is_sealed and message.pk not in self._disclosed.openings,
            "is_withheld": message.pk in self._disclosed.withheld,
            "opened_with": self._disclosed.name_keys(message),
            "reply": reply,
            "within": self._find_within(message),
            "segments": read_segments(english) or _NOT_TOLD,
            "also": read_segments(also, are_apart=True),
            "also_count": len(also),
            # Its open findings, the gravest first.
            "findings": describe_findings(findings[:MAX_FINDINGS], FINDING_BYTES),
            "more_findings": max(0, len(findings) - MAX_FINDINGS),
            # Its notes without what a finding tells already: of warning or more, and the others, which are folded.
            "notes": [note for note in first if note.severity in GRAVE],
            "aside": _fold_notes([note for note in first if note.severity not in GRAVE]),
            "more_notes": max(0, len(notes) - max_notes),
            # What contradicts or repeats earlier messages, and the messages that all of this speaks of.
            "places": places,
            "others": self._list_others(
                message, row.body, [*meant, *(place["text"] for place in places), *(note.text for note in notes), *told]
            ),
            "comments": self._comments.get((message.record_id, message.part), 0),
            "wire": wire,
            "left_out_bytes": self._left_out.get(message.record_id, 0),
            "stretches": stretches,
        }

    def _list_others(self, message: Message, body: Mapping[str, Any], texts: Iterable[str]) -> list[dict[str, Any]]:
        """The messages that these texts, the sentence's sources and the findings are about, each one click apart."""
        sources = (piece.get("source") for piece in body["message"].get("english") or ())
        cited = {(str(source[0]), source[1]) for source in sources if source}
        for finding in self._findings.get(message.pk, ()):
            cited |= {(str(record), part) for record, part in finding.list_related()}
        numbers = {each.number for each in self._here.values() if (str(each.record_id), each.part) in cited}
        numbers |= {int(found) for text in texts for found in _NUMBERED.findall(_QUOTED.sub("", text))}
        numbers = {each for each in numbers - {message.number} if 0 < each <= self._conversation.message_count}
        here = [{"number": number, "url": self._find_url(number)} for number in sorted(numbers)[:MAX_OTHERS]]
        return here + link_rekeyed(self._rekeyed.get(message.pk, ()), self._workspace.slug)

    def _find_url(self, number: int) -> str:
        if number in self._numbers:
            return f"#{make_anchor(self._numbers[number].pk)}"
        return f"{reverse('pages:conversation', args=[self._workspace.slug, self._conversation.pk])}?at={number}"

    def _is_usual(self, message: Message, text: str) -> bool:
        """Whether the row or the page says it: id, conversation, its only trace, version, turn, a time of the wire."""
        named = [f"message {say_name(message.native_id)}", f"in conversation {say_name(self._conversation.native_id)}"]
        named += [f"in trace {say_name(self._trace)}"] if self._trace else []
        if text == REMARKED_ONCE:
            is_told, self._told_once = text in self._told_once, self._told_once | {text}
            return is_told
        is_time = message.order_basis == "wire" and _SENT.fullmatch(text)
        return text in named or bool(is_time or _USUAL.fullmatch(text))

    def _find_earlier(self, message: Message, previous: Message | None) -> Message | None:
        """From when the time is counted: in a tree from the message answered, else from the one before."""
        if not self._is_tree:
            return previous
        is_answer = message.parent is not None and message.parent_basis != "adjacency"
        return self._parents.get(message.parent) if is_answer and message.parent else None

    def make_reply(self, message: Message, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The line under a message's head; one that merely follows another answers nothing."""
        if not message.parent_basis or message.parent_basis == "adjacency":
            return None
        is_inferred = message.parent_basis == "turn"
        if missing := find_ghost(message):
            cited = name_cited(body["message"]) or "a message"
            bearers = count_bearers(message.parent_why)
            is_withdrawn = self._find_withdrawn(message) is not None
            why = f"{write_bearers(bearers)} {SEVERAL}" if bearers else "withdrawn" if is_withdrawn else ""
            anchor, name = f"#{make_ghost_anchor(missing)}", shorten_name(cited)
            return describe_reply("answers", anchor, name, why, is_missing=not bearers and not is_withdrawn)
        parent = self._parents.get(message.parent) if message.parent else None
        if parent is None:
            return None
        anchor, name, why = self._find_anchor(parent), name_message(parent), _write_why(message, parent)
        return describe_reply(find_verb(message, parent), anchor, name, why, is_inferred=is_inferred)

    def _find_within(self, message: Message) -> dict[str, Any] | None:
        carrying = self._carrying.get(message.pk)
        return describe_carrying(self._parents.get(carrying) if carrying else None, self._workspace.slug)

    def _find_anchor(self, parent: Message) -> str:
        if parent.pk in self._here:
            return f"#{make_anchor(parent.pk)}"
        return reverse("pages:message", args=[self._workspace.slug, parent.pk])


def find_verb(message: Message, parent: Message | None, *, is_unclear: bool = False) -> str:
    """What a message does to its parent: it stands within the one that carries it, follows one of its sender's own, or
    answers; `is_unclear` where nobody can tell whether it does."""
    if parent and message.carrier and not parent.carrier and message.record_id == parent.record_id:
        return "within"
    if parent and message.sender and message.sender == parent.sender:
        return "follows"
    by_turn = "may answer" if is_unclear else "probably answers"
    return {"turn": by_turn, "adjacency": "only follows"}.get(message.parent_basis, "answers")


def describe_carrying(carrying: Message | None, slug: str) -> dict[str, Any] | None:
    """The message of another conversation within which one stands, as a reply is described."""
    if carrying is None:
        return None
    url = reverse("pages:message", args=[slug, carrying.pk])
    return describe_reply("within", url, name_message(carrying), "it is in another conversation")


def describe_reply(
    verb: str, anchor: str, name: str, why: str, *, is_inferred: bool = False, is_missing: bool = False
) -> dict[str, Any]:
    """How a message hangs on another: where that is, what it is called, and how the link is known."""
    basis = "inferred" if is_inferred else "explicit"
    return {"basis": basis, "verb": verb, "anchor": anchor, "name": name, "why": why, "is_missing": is_missing}


def _fold_notes(notes: Sequence[NoteLine]) -> dict[str, Any] | None:
    """Notes of less than a warning in one line: the first in short, and all of them when it is opened."""
    if not notes:
        return None
    return {"words": shorten_name(shorten(notes[0].text, MAX_ASIDE_LENGTH), MAX_ASIDE_LENGTH), "notes": notes}


def _make_place(text: str) -> dict[str, Any]:
    said = text.removeprefix(_CAUTION)
    return {
        "severity": "info" if said == text else "warning",
        "text": shorten(said[:1].upper() + said[1:], MAX_PLACE_LENGTH),
    }


def _fold(text: str) -> str:
    """A sentence without what a finding and the note behind it write differently."""
    return text.casefold().rstrip(".")


def make_anchor(message_id: uuid.UUID) -> str:
    """The name of a message's place in the transcript's page."""
    return f"m-{message_id.hex}"


def name_message(message: Message) -> str:
    """What another message is called by in a line: `message 1 (kim's request “burn”)`."""
    return shorten_name(dialects.name_message(message.number, message, dialect=message.dialect))


def _write_why(message: Message, parent: Message) -> str:
    """How the link is known, where it does not go without saying."""
    if message.parent_basis != "explicit":
        return message.parent_why
    return "it is in another conversation" if parent.conversation_id != message.conversation_id else ""


def _are_comparable(previous: Message, message: Message) -> bool:
    """Whether the time between two messages means anything: both say when they were sent, or they were received one
    after the other."""
    if is_said(previous.order_basis) and is_said(message.order_basis):
        return True
    is_received = previous.order_basis == message.order_basis == "receipt"
    return is_received and previous.order_time != message.order_time


def _write_since(previous: Message | None, message: Message) -> str:
    if previous is None or not _are_comparable(previous, message):
        return ""
    elapsed = message.order_time - previous.order_time
    return f"−{write_elapsed(-elapsed)}" if elapsed.total_seconds() < 0 else f"+{write_elapsed(elapsed)}"
