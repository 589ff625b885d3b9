"""A report as HTML, and what it says around its messages: what it is of, the verdicts, how a sample was drawn and what
came of its conversations, and how to check its hashes.

It is one file with its style in it, no script and no address, every text from outside escaped. The style is named by
its digest in the policy that the file carries and is served with, so that nothing else in it can set a style, run or
load anything.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dialects import SHAPE_VERSION
from inspector.audit.findings.selectors import GRADE, list_here
from inspector.audit.findings.services import list_decisions
from inspector.audit.models.findings import Finding, FindingAct
from inspector.audit.models.reviews import AuditSample, Review, SampledConversation
from inspector.audit.reviews.bindings import SignOff, Standing, find_sign_offs, find_standings, list_reviews
from inspector.audit.reviews.queues import MAX_AT_ONCE
from inspector.audit.rules import name_rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.audit.samples import list_drawn, say_stratum
from inspector.characters import HIDDEN_BLOCK, code_of, is_hidden, spell_hidden
from inspector.ledger.proofs import Place, draw_note, find_entries, get_checkpoint, say_changed
from inspector.threads.models import Conversation, Message
from inspector.threads.tasks import get_state
from inspector.threads.timeline import number_messages

from .forms import write_instant, write_second
from .models import Export
from .selectors import CHANGED_RULE, EXACT_RULE, MASK_RULE, OPENED_RULE, PRINTED_RULE, count_secrets, say_secrets

STYLE: Final = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
STYLE_DIGEST: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; base-uri 'none'; form-action 'none'; sandbox"
# A policy in the file itself cannot ask for a sandbox.
_OWN_POLICY: Final = POLICY.removesuffix("; sandbox")
# So many equal or other hidden characters in a row are named one by one.
_MAX_NAMED: Final = 8


def show(text: str, most: int | None = None) -> SafeString:
    """A text from outside: escaped, each hidden character by its code point, and what is left out said."""
    shown = text if most is None else text[:most]
    body = format_html_join("", "{}", ((piece,) for piece in _split(shown)))
    if len(shown) == len(text):
        return body
    return format_html('{} <span class="quiet">[{} more characters]</span>', body, f"{len(text) - len(shown):,}")


def _split(text: str) -> Iterator[str]:
    at = 0
    for block in HIDDEN_BLOCK.finditer(text):
        yield text[at : block.start()]
        places = [place for place in range(block.start(), block.end()) if is_hidden(text, place)]
        for place in places[:_MAX_NAMED]:
            yield format_html('<span class="hidden">{}</span>', code_of(text[place]))
        if len(places) > _MAX_NAMED:
            yield format_html('<span class="hidden">{} more</span>', f"{len(places) - _MAX_NAMED:,}")
        # A joiner within an emoji is seen by what it does.
        yield "".join(text[place] for place in range(block.start(), block.end()) if place not in set(places))
        at = block.end()
    yield text[at:]


def list_facts(facts: Iterable[tuple[str, Any]]) -> SafeString:
    """Facts as a list of names and values; one without a value is left out."""
    rows = [(name, value) for name, value in facts if value not in (None, "")]
    return format_html("<dl>{}</dl>", format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows)) if rows else SafeString("")


def list_lines(title: str, lines: Iterable[SafeString]) -> SafeString:
    """A titled list; nothing where it has no lines."""
    rows = [(line,) for line in lines]
    if not rows:
        return SafeString("")
    return format_html("<h4>{}</h4><ul>{}</ul>", title, format_html_join("", "<li>{}</li>", rows))


def begin(title: str) -> SafeString:
    """The beginning of a file, up to the first thing that it says."""
    return format_html(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="{}">'
        '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">'
        "<title>{}</title><style>{}</style></head>\n<body>\n",
        _OWN_POLICY,
        spell_hidden(title),
        SafeString(STYLE),
    )


END: Final = "</body></html>\n"


def encode(markup: str) -> bytes:
    """The markup as it is written; half a character was named before, and never comes here."""
    return markup.encode("utf-8")


MAX_VERDICTS: Final = 200
MAX_FINDINGS: Final = 200
MAX_FINDING_LENGTH: Final = 500
MAX_TITLE_LENGTH: Final = 300
HOLDS: Final = "holds"
_CHANGES: Final = {
    "bytes": "its bytes",
    "decoder": "the decoder that reads it",
    "english": "its English",
    "beside": "its fields and notes",
    "came": "messages that came since",
    "gone": "messages that are gone",
    "order": "the order of its messages",
}


def write_beginning(export: Export, conversation: Conversation) -> bytes:
    """The head of a report, once its set is fixed: what it is, by whom and of what, and the verdicts as they stand."""
    title = name_conversation(conversation)
    facts = list_facts((
        ("Conversation", format_html('<span class="hash">{}</span>', conversation.pk)),
        ("Id in the messages", show(conversation.native_id, MAX_TITLE_LENGTH)),
        ("Channel", show(conversation.channel.name)),
        ("Workspace", show(export.workspace.name)),
        ("State", get_state(conversation)),
        ("Messages", f"{export.listed or 0:,}"),
        ("Processed", write_second(conversation.settled_at) if conversation.settled_at else "not processed yet"),
        ("Digest", write_hash(conversation.settled_digest)),
        *list_making(export),
        ("Secrets", say_secrets(count_secrets(export))),
    ))  # fmt: skip
    markup = format_html(
        '{}<h1>{}</h1>\n<p class="quiet">A report of one conversation, by the Inspector. {} {}</p>\n{}\n'
        "<h2>Verdicts</h2>\n{}{}\n<h2>Findings</h2>\n{}\n{}<h2>Messages</h2>\n",
        begin(f"Report: {title[:MAX_TITLE_LENGTH]}"),
        show(title, MAX_TITLE_LENGTH),
        PRINTED_RULE,
        OPENED_RULE,
        facts,
        _tell_sign_off(find_sign_offs(conversations=[conversation], is_compared=True).get(conversation.pk)),
        write_verdicts(conversation),
        write_findings(conversation),
        write_checkpoint(export),
    )
    return encode(markup)


def write_checkpoint(export: Export) -> SafeString:
    """The latest checkpoint of the ledger, to be kept with the report: its text, and the same as a code."""
    checkpoint = get_checkpoint(export.workspace_id)
    if checkpoint is None:
        return SafeString("")
    return format_html(
        "<h2>Checkpoint</h2>\n<p>When this report was made, the ledger had signed {} entries. The checkpoint as text, "
        'and the same as a QR code:</p><pre>{}</pre><div class="code">{}</div>\n',
        f"{checkpoint.size:,}",
        checkpoint.note,
        draw_note(checkpoint.note),
    )


def name_conversation(conversation: Conversation) -> str:
    """What a conversation is called in a report."""
    return conversation.title or conversation.subject or conversation.native_id or "A conversation without a name"


def list_making(export: Export) -> list[tuple[str, Any]]:
    """The facts of a report itself: who asked for it and when, and by what it was made."""
    return [
        ("Requested by", show(export.asked_by)),
        ("Requested", write_second(export.asked_at)),
        ("Snapshot", write_second(export.fixed_at) if export.fixed_at else ""),
        ("Report", format_html('<span class="hash">{}</span>', export.pk)),
        ("Decoders", export.decoder),
        ("Record version", SHAPE_VERSION),
        ("Masking", MASK_RULE if export.is_masked else EXACT_RULE),
    ]


def write_hash(digest: bytes | memoryview | None) -> SafeString | str:
    """A digest in hexadecimal; nothing where there is none."""
    return format_html('<span class="hash">{}</span>', bytes(digest).hex()) if digest else ""


def _tell_sign_off(sign_off: SignOff | None) -> SafeString:
    """What the conversation came to, before all that was said of it."""
    if sign_off is None:
        return SafeString('<p class="quiet">Not signed off, or its verdicts are not public yet.</p>')
    return format_html(
        '<p>Signed off: <span class="grave">{}</span>, by {}, {}. The sign-off {}.</p>',
        Review.Verdict(sign_off.verdict).label.lower(),
        show(" and ".join(sign_off.reviewers)),
        write_second(sign_off.at),
        words if (words := tell_standing(sign_off.standing)) == HOLDS else f"is {words}",
    )


def write_findings(conversation: Conversation) -> SafeString:
    """What the rules find in a conversation, the gravest first, each with its message, as far as there is room."""
    found = list_here(conversations=[conversation.pk])
    rows = list(found.order_by(GRADE.desc(), "at", "rule", "key")[:MAX_FINDINGS])
    if not rows:
        return SafeString('<p class="quiet">No current findings.</p>')
    messages = Message.objects.shown().filter(conversation=conversation, record__in={row.record_id for row in rows})
    shown = list(messages.only("conversation_id", "record_id", "part", "place"))
    number_messages(shown)
    numbers = {(message.record_id, message.part): message.number for message in shown}
    decisions = list_decisions(findings=[row for row in rows if row.state != Finding.State.OPEN])
    lines = (
        (_write_finding(row, numbers[row.record_id, row.part], decisions.get(row.pk)),)
        for row in rows
        if (row.record_id, row.part) in numbers
    )
    more = found.count() - len(rows) if len(rows) == MAX_FINDINGS else 0
    return format_html(
        "<ul>{}</ul>{}",
        format_html_join("\n", "<li>{}</li>", lines),
        format_html('<p class="quiet">{} more stand with their messages.</p>', f"{more:,}") if more else "",
    )


def _write_finding(finding: Finding, number: int, decision: FindingAct | None) -> SafeString:
    reason = f": “{decision.reason}”" if decision and decision.reason else ""
    return format_html(
        '<span class="grave">{}: {}</span>. {} <span class="quiet">Message {}, {}{}.</span>',
        SEVERITIES[finding.severity],
        name_rule(finding.rule),
        show(finding.text, MAX_FINDING_LENGTH),
        f"{number:,}",
        finding.get_state_display().lower(),
        show(f" by {decision.by}, {write_second(decision.at)}{reason}") if decision else "",
    )


def write_verdicts(conversation: Conversation) -> SafeString:
    """The verdicts on a conversation that anybody may know, the newest first, each with what it is bound to."""
    reviews = list_reviews(conversation=conversation, reader_id=None, limit=MAX_VERDICTS)
    if not reviews:
        return SafeString('<p class="quiet">No public verdicts.</p>')
    standings = find_standings(reviews=reviews, conversation=conversation, is_compared=True)
    places, changed = find_entries("verdict", [review.pk for review in reviews])
    rows = (
        (_write_verdict(review, standings[review.pk], places.get(review.pk), changed.get(review.pk)),)
        for review in reviews
    )
    return format_html_join("\n", "{}", rows)


def _write_verdict(review: Review, standing: Standing, place: Place | None, changed: int | None) -> SafeString:
    answers = list_lines("Criteria", _list_answers(review))
    facts = list_facts((
        ("Queue", show(review.item.queue.name)),
        ("Bound to", f"{review.seen_messages:,} messages"),
        ("Digest at sign-off", write_hash(review.binding.digest if review.binding else review.seen_digest)),
        ("Status", tell_standing(standing)),
        ("Not the verdict that was given", say_changed("verdict", changed) if changed is not None else ""),
        ("Ledger", f"entry {place.index:,}" if place else "not entered yet"),
        ("In the checkpoint of", f"{place.size:,} entries, root {place.root}" if place and place.size else ""),
    ))  # fmt: skip
    return format_html(
        '<div class="verdict"><p><span class="grave">{}</span> by {}, {}{}</p>{}{}{}</div>',
        review.get_verdict_display(),
        show(review.reviewer.get_username()),
        write_second(review.created_at),
        ", to decide between two" if review.is_adjudication else "",
        format_html("<p>{}</p>", show(review.comment)) if review.comment else "",
        facts,
        answers,
    )


def _list_answers(review: Review) -> Iterator[SafeString]:
    criteria = review.rubric.criteria if review.rubric else []
    for criterion, answer in zip(criteria, review.answers, strict=False):
        yield format_html("{}: {}", show(criterion), Review.Answer(answer).label)


def tell_standing(standing: Standing) -> str:
    """Whether a verdict still is on what is there, in words."""
    if standing.changes:
        return f"stale: what differs is {', '.join(_CHANGES.get(kind, kind) for kind in standing.changes)}"
    if not standing.is_exact:
        return "stale: its English has changed since"
    return HOLDS if standing.is_known else "not compared since the conversation was processed again"


def write_end(export: Export, pieces: Iterable[bytes]) -> bytes:
    """The end of a report: its counts, and the digest of everything before.

    Args:
        export: with its counts complete.
        pieces: the file as far as it is written.
    """
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    counts = list_facts((
        ("Messages listed", f"{export.listed or 0:,}"),
        ("In this report", f"{export.messages:,}"),
        ("Withdrawn meanwhile", f"{export.withdrawn:,}"),
        ("Gone meanwhile", f"{export.gone:,}"),
        ("With something masked", f"{export.masked:,}"),
        ("With a changed record", f"{export.changed:,}"),
    ))  # fmt: skip
    markup = format_html(
        "\n<h2>How to check this</h2>\n{}\n<p>This report: the SHA-256 of its first {} bytes, which end with the last "
        'message, is <span class="hash">{}</span>. To check it:</p><pre>head -c {} {} | sha256sum</pre>\n'
        "<p>A record: the SHA-256 beside it is of its bytes as they were received. “Download the exact bytes” on the "
        "page of its message gives these, and <code>sha256sum</code> of that file the same digest. Who may not see "
        "what is masked asks an auditor for it: the digest is the same for both. {}</p>\n"
        "<p>The file as a whole: its SHA-256 stands on the page of this report, and in the manifest there.</p>\n{}",
        counts,
        f"{size:,}",
        digest.hexdigest(),
        size,
        export.file_name,
        CHANGED_RULE,
        SafeString(END),
    )
    return encode(markup)


MAX_STRATA: Final = 200
_DRAWING: Final = (
    "The identity of a conversation is SHA-256 over the name of its channel, a NUL byte and its key, which comes from "
    "what the log says. Of each stratum those are drawn whose SHA-256 over “{method}”, the seed and the identity, "
    "joined by NUL bytes, is smallest. The digest is SHA-256 over the drawn identities in ascending order."
)


def write_sample(export: Export, sample: AuditSample) -> bytes:
    """The head of a report, once its set is fixed: how the sample was drawn, and a list of its conversations."""
    drawn = list_drawn(sample=sample, limit=MAX_AT_ONCE)
    sign_offs = find_sign_offs(conversations=[each.conversation for each in drawn])
    title = sample.queue.name
    facts = list_facts((
        ("Sample", format_html('<span class="hash">{}</span>', sample.pk)),
        ("Workspace", show(export.workspace.name)),
        ("Seed", show(sample.seed)),
        ("Method", show(sample.method)),
        ("Divided by", sample.get_stratum_display()),
        ("Active from", write_instant(sample.since) if sample.since else ""),
        ("Active before", write_instant(sample.until) if sample.until else ""),
        ("Asked for", f"{sample.wanted:,} conversations"),
        ("Drawn", f"{sample.drawn:,} of {sample.population:,} conversations"),
        ("Not processed when drawn", f"{sample.unsettled:,}" if sample.unsettled else ""),
        ("Digest of the sample", write_hash(sample.digest)),
        ("Drawn by", show(sample.made_by.get_username())),
        ("Drawn at", write_second(sample.made_at)),
        ("Signed off", f"{len(sign_offs):,} of {len(drawn):,}"),
        ("Messages", f"{export.listed or 0:,}"),
    ))  # fmt: skip
    markup = format_html(
        '{}<h1>{}</h1>\n<p class="quiet">A report of an audit sample, by the Inspector. {} {}</p>\n{}\n'
        '<p class="quiet">{}</p>\n<h2>This report</h2>\n{}\n<h2>Strata</h2>\n{}\n<h2>Conversations</h2>\n{}\n{}',
        begin(f"Report: {title[:MAX_TITLE_LENGTH]}"),
        show(title, MAX_TITLE_LENGTH),
        PRINTED_RULE,
        OPENED_RULE,
        facts,
        _DRAWING.format(method=sample.method),
        list_facts(list_making(export)),
        _write_strata(sample),
        _write_list(sample, drawn, sign_offs),
        write_checkpoint(export),
    )
    return encode(markup)


def _write_strata(sample: AuditSample) -> SafeString:
    rows = [
        (show(say_stratum(sample, name)), f"{population:,}", f"{drawn:,}")
        for name, population, drawn in sample.strata[:MAX_STRATA]
    ]
    more = len(sample.strata) - MAX_STRATA
    return format_html(
        "<table><thead><tr><th>Stratum</th><th>Population</th><th>Drawn</th></tr></thead><tbody>{}</tbody></table>{}",
        format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td></tr>", rows),
        format_html('<p class="quiet">{} more strata stand on the page of the sample.</p>', f"{more:,}")
        if more > 0
        else "",
    )


def _write_list(
    sample: AuditSample, drawn: list[SampledConversation], sign_offs: Mapping[uuid.UUID, SignOff]
) -> SafeString:
    rows = (
        (
            f"{each.place:,}",
            show(name_conversation(each.conversation), MAX_TITLE_LENGTH),
            show(say_stratum(sample, each.stratum), MAX_TITLE_LENGTH),
            _tell(sign_offs.get(each.conversation_id)),
            bytes(each.identity).hex(),
        )
        for each in drawn
    )
    return format_html(
        "<table><thead><tr><th>Place</th><th>Conversation</th><th>Stratum</th><th>Signed off</th><th>Identity</th></tr>"
        "</thead><tbody>{}</tbody></table>",
        format_html_join("", '<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class="hash">{}</td></tr>', rows),
    )


def _tell(sign_off: SignOff | None) -> SafeString | str:
    """What a conversation came to, as far as it may be told."""
    if sign_off is None:
        return "not yet"
    return format_html(
        "{}, by {}, {}; {}",
        Review.Verdict(sign_off.verdict).label,
        show(" and ".join(sign_off.reviewers)),
        write_second(sign_off.at),
        tell_standing(sign_off.standing),
    )


def write_drawn(sample: AuditSample, place: int) -> bytes:
    """The head of a conversation of the sample, before its messages: what it stands for, and the verdicts on it."""
    found = list_drawn(sample=sample, after=place - 1, limit=1)
    if not found or found[0].place != place:
        return b""
    each, conversation = found[0], found[0].conversation
    facts = list_facts((
        ("Conversation", format_html('<span class="hash">{}</span>', conversation.pk)),
        ("Id in the messages", show(conversation.native_id, MAX_TITLE_LENGTH)),
        ("Identity", write_hash(each.identity)),
        ("Stratum", show(say_stratum(sample, each.stratum), MAX_TITLE_LENGTH)),
        ("State", get_state(conversation)),
        ("Processed", write_second(conversation.settled_at) if conversation.settled_at else "not processed yet"),
        ("Digest", write_hash(conversation.settled_digest)),
    ))  # fmt: skip
    title = format_html("{}: {}", f"{place:,}", show(name_conversation(conversation), MAX_TITLE_LENGTH))
    return encode(format_html("\n<h2>{}</h2>\n{}\n<h4>Verdicts</h4>\n{}\n", title, facts, write_verdicts(conversation)))
