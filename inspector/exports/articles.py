"""The records of a report, one article each: English, raw, fields, notes, findings and comments, a window at a time."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from django.db.models import Prefetch
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dialects import Context, Field, Reading, TranscriptLine, choose_dialect, say_name, tell, title_of
from inspector.audit.comments import make_thread
from inspector.audit.findings.selectors import GRADE, list_here
from inspector.audit.models.findings import Finding, FindingAct
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.audit.rules import name_rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.browsing.transcripts import tell_lines
from inspector.intake.readings import mask_layers, read_with_facts
from inspector.ledger.proofs import find_changed, say_changed
from inspector.threads.models import Message
from inspector.threads.selectors import mark_noted, split_mark
from inspector.threads.timeline import number_messages

from .entries import Part, Row
from .forms import write_instant
from .models import Export
from .reports import encode, list_facts, list_lines, show

MAX_FIELDS: Final = 500
MAX_RAW_LENGTH: Final = 50_000
MAX_FIELD_LENGTH: Final = 1000
MAX_SAID_LENGTH: Final = 20_000
MAX_NAME_LENGTH: Final = 200
# By what a message has its place in the order of time.
TIMES: Final = {
    "wire": "message time",
    "envelope": "envelope time",
    "start": "declared start",
    "receipt": "time of receipt",
}
MAX_NOTE_LENGTH: Final = 2000
# What is told of a longer message is not taken apart, and its fields are not either.
MAX_TOLD_LENGTH: Final = 1024 * 1024
MAX_DEPTH: Final = 12
_NO_ROW: Final = ("syntax", "key")
FOR_AUDITORS: Final = "What it says is for owners and auditors: it is about what is masked or sealed."


@dataclass(frozen=True, slots=True)
class Said:
    """What rules and people said of the records of a window: findings by record and part, comments by record.

    `changed` says it, by their ids, of comments, their turns and decisions that are not what was entered in the ledger.
    """

    findings: Mapping[tuple[str, int], Sequence[Finding]] = field(default_factory=dict)
    comments: Mapping[str, Sequence[Comment]] = field(default_factory=dict)
    changed: Mapping[uuid.UUID, str] = field(default_factory=dict)


def load_said(export: Export, rows: Sequence[Row]) -> Said:
    """What was said of these records; seven statements, whatever their number."""
    records = [uuid.UUID(row.id) for row in rows]
    conversations = {uuid.UUID(part.conversation) for row in rows for part in row.parts}
    acts = Prefetch("acts", queryset=FindingAct.objects.select_related("by", "assignee"))
    found = list_here(conversations=conversations).filter(record__in=records).prefetch_related(acts)
    findings: dict[tuple[str, int], list[Finding]] = defaultdict(list)
    for finding in found.order_by(GRADE.desc(), "rule", "key"):
        findings[str(finding.record_id), finding.part].append(finding)
    turns = Prefetch("turns", queryset=CommentTurn.objects.select_related("by"))
    written = Comment.objects.filter(workspace=export.workspace_id, record__in=records).select_related("author")
    comments: dict[str, list[Comment]] = defaultdict(list)
    for comment in written.prefetch_related(turns).order_by("start", "end", "created_at", "pk"):
        comments[str(comment.record_id)].append(comment)
    acts_of = [act.pk for some in findings.values() for each in some for act in each.acts.all()]
    written_of = [each for some in comments.values() for each in some]
    changed = {
        subject: f"{say_changed(kind, index)}."
        for kind, subjects in {
            "finding-act": acts_of,
            "comment": [each.pk for each in written_of],
            "comment-turn": [each.pk for comment in written_of for each in comment.turns.all()],
        }.items()
        for subject, index in find_changed(kind, subjects).items()
    }
    return Said(findings, comments, changed)


def write_article(
    row: Row, said: Said, channels: Mapping[str, str], *, is_masked: bool, lines: Mapping[str, TranscriptLine]
) -> bytes:
    """The article of a record with those of its messages that are in the set.

    Args:
        row: the record; masked before, where the report is.
        said: of the window that it is in.
        channels: the names of the workspace's channels by their ids.
        is_masked: whether the report is one that hides secrets.
        lines: of the transcript, by the ids of messages.
    """
    readings = {dialect: _read(row, dialect) for dialect in dict.fromkeys(part.read_in for part in row.parts)}
    markup = format_html(
        '<article>\n{}\n<h4>Raw</h4>{}\n{}{}{}</article>\n',
        format_html_join("\n", "{}", (
            (_write_part(part, said.findings.get((row.id, part.part), ()), lines.get(part.id), said.changed),)
            for part in row.parts
        )),
        _write_raw(row),
        list_facts((
            ("SHA-256", format_html('<span class="hash">{}</span>', row.sha256) if row.changed is None
                        else _warn(f"not given: {say_changed('record', row.changed)}")),
            ("Bytes", f"{len(row.source):,}"),
            ("Record", format_html('<span class="hash">{}</span>', row.id)),
            ("Channel", show(channels[row.channel])),
        )),
        format_html_join("", "{}", ((_write_fields(reading, is_masked=is_masked),) for reading in readings.values())),
        list_lines("Comments", (_write_comment(each, row, said.changed, is_masked=is_masked) for each in
                                said.comments.get(row.id, ()))),
    )  # fmt: skip
    return encode(markup)


def load_lines(export: Export, rows: Sequence[Row]) -> Mapping[str, TranscriptLine]:
    """What the transcript says of the messages of these rows, by their ids: conversation by conversation."""
    ids = [uuid.UUID(part.id) for row in rows for part in row.parts]
    found = Message.objects.filter(workspace=export.workspace_id).in_bulk(ids)
    number_messages(found.values())
    apart: dict[uuid.UUID, list[Message]] = defaultdict(list)
    for message in sorted(found.values(), key=lambda message: message.number):
        apart[message.conversation_id].append(message)
    told = (tell_lines(workspace=export.workspace, messages=messages) for messages in apart.values())
    return {str(pk): line for lines in told for pk, line in lines.items()}


def _warn(said: str | None) -> SafeString:
    """That something is not what was entered; nothing where nothing is to be said."""
    return format_html(' <span class="grave">{}</span>', said) if said else SafeString("")


def _write_part(
    part: Part, findings: Iterable[Finding], line: TranscriptLine | None, changed: Mapping[uuid.UUID, str]
) -> SafeString:
    told, notes = _read_body(part)
    # The notes of what is not taken apart are not listed below.
    unlisted = "" if told else split_mark(mark_noted(part.english, part.severity))[1]
    sender = told.get("sender")
    said = f"{say_name(str(sender)) if sender else 'someone'} → {_name_receivers(told)}"
    lines = (
        format_html('{} <span class="quiet">{}{}</span>', show(str(note.get("text", "")), MAX_NOTE_LENGTH),
                    note.get("severity", ""), show(f", {note['cites']}") if note.get("cites") else "")
        for note in notes
    )  # fmt: skip
    return format_html(
        '<h3>Message {}: {}</h3><p class="quiet">{} ({}) · {} · {}{}{}</p><p class="said">{}</p>{}{}{}',
        f"{part.position + 1:,}",
        show(said, 2 * MAX_NAME_LENGTH),
        write_instant(part.at),
        TIMES.get(part.at_basis, part.at_basis),
        told.get("performative") or "not readable",
        title_of(part.dialect),
        f" · part {part.part}" if part.part > 1 else "",
        format_html(" · id {}", show(str(told["message_id"]), MAX_NAME_LENGTH)) if told.get("message_id") else "",
        format_html("{}{}", show(part.english, MAX_SAID_LENGTH), unlisted) if part.english else "Not processed yet.",
        format_html("<p>{}</p>", show(" ".join((*line.replies, *line.places)), MAX_SAID_LENGTH))
        if line and (line.replies or line.places)
        else "",
        list_lines("Notes", lines),
        list_lines("Findings", (_write_finding(finding, changed) for finding in findings)),
    )


def _read_body(part: Part) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    if not 0 < len(part.body) <= MAX_TOLD_LENGTH:
        return {}, ()
    body = json.loads(part.body)
    shared = (body["record"].get("notes") or ()) if part.part == 1 else ()
    return body["message"], (*(body["message"].get("notes") or ()), *shared)


def _name_receivers(told: Mapping[str, Any]) -> str:
    names = [say_name(str(name)) for name in told.get("receivers") or ()]
    if not names:
        return "everybody" if told.get("broadcast") else "someone"
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")


def _name_act(act: FindingAct) -> str:
    if act.kind == FindingAct.Kind.ASSIGNED:
        return f"Assigned to {act.assignee.get_username() if act.assignee else 'nobody'}"
    return f"Snoozed until {write_instant(act.until)}" if act.until else Finding.State(act.state).label


def _write_finding(finding: Finding, changed: Mapping[uuid.UUID, str]) -> SafeString:
    acts = format_html_join(
        "",
        '<br><span class="quiet">{}: {} by {}{}{}</span>',
        (
            (
                write_instant(act.at),
                show(_name_act(act)),
                show(act.by.get_username()),
                format_html(": “{}”", show(act.reason)) if act.reason else "",
                _warn(changed.get(act.pk)),
            )
            for act in finding.acts.all()
        ),
    )
    return format_html(
        '<span class="grave">{}: {}</span>. {} <span class="quiet">{}{}</span>{}',
        SEVERITIES[finding.severity],
        name_rule(finding.rule),
        show(finding.text, MAX_NOTE_LENGTH),
        show(f"{finding.cites}, ", MAX_NOTE_LENGTH) if finding.cites else "",
        finding.get_state_display().lower(),
        acts,
    )


def _write_raw(row: Row) -> SafeString:
    if row.shown is None:
        return SafeString('<p class="quiet">Too long to be looked through for secrets: it is not printed.</p>')
    remark = SafeString("") if row.masked is None else SafeString(' <p class="quiet">Secrets are masked.</p>')
    return format_html("<pre>{}</pre>{}", show(row.shown, MAX_RAW_LENGTH), remark)


def _read(row: Row, dialect: str) -> Reading | None:
    """The record read anew, as its message's page does; None of one that is too long for a table."""
    if row.is_withheld or len(row.source) > MAX_TOLD_LENGTH:
        return None
    reading = read_with_facts(row.text, row.envelope, row.facts, dialect=dialect)
    told = tell(choose_dialect(reading, Context()), Context(), None)
    return reading.replace(
        layers=(*reading.layers, *told.layers), tree=lambda: (*reading.fields, *told.fields), messages=told.messages
    )


def _write_fields(reading: Reading | None, *, is_masked: bool) -> SafeString:
    if reading is None:
        return SafeString('<p class="quiet">Too long for a table of its fields; the API gives them.</p>')
    texts = mask_layers(reading) if is_masked else [layer.text for layer in reading.layers]
    layers = dict(zip((layer.id for layer in reading.layers), texts, strict=True))
    walk = _walk(reading.fields)
    rows = [_make_field(each, depth, layers, is_masked=is_masked) for each, depth in islice(walk, MAX_FIELDS)]
    more = sum(1 for _ in walk)
    return format_html(
        "<h4>Fields, read as {}</h4><table><thead><tr><th>Field</th><th>Raw</th><th>Meaning</th>"
        '<th class="span">Characters</th></tr></thead><tbody>{}</tbody></table>{}',
        title_of(reading.dialect),
        format_html_join("", '<tr><th>{}{}</th><td>{}</td><td>{}</td><td class="span">{}</td></tr>', rows),
        format_html('<p class="quiet">{} more fields are not printed; the API gives them all.</p>', f"{more:,}")
        if more
        else "",
    )


def _walk(fields: Sequence[Field]) -> Iterator[tuple[Field, int]]:
    """The fields, parents before children, without what only separates them or says that it is a message."""
    roots = fields[0].children if len(fields) == 1 and fields[0].children else fields
    stack = [(each, 0) for each in reversed(roots)]
    while stack:
        each, depth = stack.pop()
        if each.name == "syntax":
            continue
        yield each, depth
        value = _find_value(each)
        inner = each.children if value is None else value.children
        stack.extend((child, depth + 1) for child in reversed(inner) if child.name not in _NO_ROW)


def _find_value(each: Field) -> Field | None:
    """The value of a pair of key and value, which stands in one row with it."""
    if not any(child.name == "key" for child in each.children):
        return None
    values = [child for child in each.children if child.name not in _NO_ROW]
    return values[0] if len(values) == 1 and values[0].name == "value" else None


def _make_field(each: Field, depth: int, layers: Mapping[int, str], *, is_masked: bool) -> tuple[Any, ...]:
    value = _find_value(each)
    shown = value or each
    layer, start, end = shown.span
    raw: Any = show(layers[layer][start:end], MAX_FIELD_LENGTH)
    if value is None and any(child.name not in _NO_ROW for child in each.children):
        raw = format_html('<span class="quiet">{} characters</span>', f"{end - start:,}")
    elif is_masked and shown.is_masked:
        raw = SafeString('<span class="masked">masked</span>')
    layer, start, end = each.span
    place = f"{start:,}–{end:,}" + (f" in layer {layer}" if layer else "")
    indent = "\u00a0\u00a0" * min(depth, MAX_DEPTH)
    meaning = show(each.meaning or shown.meaning or "", MAX_NOTE_LENGTH)
    return indent, show(each.label, MAX_NAME_LENGTH), format_html("<code>{}</code>", raw), meaning, place


def _write_comment(comment: Comment, row: Row, changed: Mapping[uuid.UUID, str], *, is_masked: bool) -> SafeString:
    quoted, exact = (row.shown or "")[comment.start : comment.end], comment.quoted_text
    # Of a masked report nothing is told about what is masked in it.
    is_delicate = is_masked and quoted != exact
    thread = make_thread(comment)
    lines = [_say("wrote", comment.author.get_username(), comment.created_at, comment.words,
                  is_told=not (is_masked and (comment.is_restricted or is_delicate)))]  # fmt: skip
    if None in thread.withdrawals:
        lines = [_take_back("wrote", comment.author.get_username(), comment.created_at, thread.withdrawals[None])]
    lines += [_warn(changed[each.pk]) for each in (comment, *comment.turns.all()) if each.pk in changed]
    for turn in thread.turns:
        if turn.kind == CommentTurn.Kind.WITHDRAWN:
            continue
        who, verb = turn.by.get_username(), turn.get_kind_display().lower()
        if turn.kind != CommentTurn.Kind.REPLY:
            lines.append(format_html("{} {} it, {}", show(who), verb, write_instant(turn.at)))
        elif turn.pk in thread.withdrawals:
            lines.append(_take_back(verb, who, turn.at, thread.withdrawals[turn.pk]))
        else:
            is_told = not (is_masked and (turn.is_restricted or is_delicate))
            lines.append(_say(verb, who, turn.at, turn.words, is_told=is_told))
    return format_html(
        '<code>{}</code> <span class="quiet">characters {}–{}, {}</span>{}',
        show(quoted if is_masked else exact, MAX_FIELD_LENGTH),
        f"{comment.start:,}",
        f"{comment.end:,}",
        comment.get_state_display().lower(),
        format_html_join("", "<br>{}", ((line,) for line in lines)),
    )


def _say(verb: str, who: str, at: Any, words: str, *, is_told: bool) -> SafeString:
    said = format_html("“{}”", show(words)) if is_told else format_html('<span class="quiet">{}</span>', FOR_AUDITORS)
    return format_html("{} {}, {}: {}", show(who), verb, write_instant(at), said)


def _take_back(verb: str, who: str, at: Any, turn: CommentTurn) -> SafeString:
    return format_html(
        '{} {}, {}; <span class="quiet">{} took it back, {}</span>',
        show(who),
        verb,
        write_instant(at),
        show(turn.by.get_username()),
        write_instant(turn.at),
    )
