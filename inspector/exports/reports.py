"""What a report of a conversation says around its messages: what it is, the verdicts, and how to check its hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dialects import SHAPE_VERSION
from inspector.audit.findings.selectors import GRADE, list_here
from inspector.audit.models.findings import Finding
from inspector.audit.models.reviews import Review
from inspector.audit.reviews.bindings import SignOff, Standing, find_sign_offs, find_standings, list_reviews
from inspector.audit.rules import RULES
from inspector.ledger.proofs import Place, draw_note, find_places
from inspector.ledger.selectors import find_changed, get_checkpoint, say_changed
from inspector.threads.models import Conversation, Message
from inspector.threads.tasks import get_state
from inspector.threads.timeline import number_messages

from .lines import SEVERITIES, write_second
from .manifests import CHANGED_RULE, EXACT_RULE, MASK_RULE, OPENED_RULE, PRINTED_RULE, say_secrets
from .models import Export
from .printing import END, begin, encode, list_facts, list_lines, show
from .selectors import count_secrets

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
    lines = (
        (_write_finding(row, numbers[row.record_id, row.part]),) for row in rows if (row.record_id, row.part) in numbers
    )
    more = found.count() - len(rows) if len(rows) == MAX_FINDINGS else 0
    return format_html(
        "<ul>{}</ul>{}",
        format_html_join("\n", "<li>{}</li>", lines),
        format_html('<p class="quiet">{} more stand with their messages.</p>', f"{more:,}") if more else "",
    )


def _write_finding(finding: Finding, number: int) -> SafeString:
    rule = RULES.get(finding.rule)
    return format_html(
        '<span class="grave">{}: {}</span>. {} <span class="quiet">Message {}, {}.</span>',
        SEVERITIES[finding.severity],
        rule.title if rule else finding.rule,
        show(finding.text, MAX_FINDING_LENGTH),
        f"{number:,}",
        finding.get_state_display().lower(),
    )


def write_verdicts(conversation: Conversation) -> SafeString:
    """The verdicts on a conversation that anybody may know, the newest first, each with what it is bound to."""
    reviews = list_reviews(conversation=conversation, reader_id=None, limit=MAX_VERDICTS)
    if not reviews:
        return SafeString('<p class="quiet">No public verdicts.</p>')
    standings = find_standings(reviews=reviews, conversation=conversation, is_compared=True)
    places = find_places("verdict", [review.pk for review in reviews])
    changed = find_changed("verdict", [review.pk for review in reviews])
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
        return f"stale: what differs is {_join(_CHANGES.get(kind, kind) for kind in standing.changes)}"
    if not standing.is_exact:
        return "stale: its English has changed since"
    return HOLDS if standing.is_known else "not compared since the conversation was processed again"


def _join(words: Iterable[str]) -> str:
    return ", ".join(words)


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
