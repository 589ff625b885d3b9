"""What a report of an audit sample says around its conversations: how they were drawn, and what came of each."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from inspector.audit.models.reviews import AuditSample, Review, SampledConversation
from inspector.audit.reviews.bindings import SignOff, find_sign_offs
from inspector.audit.reviews.queues import MAX_AT_ONCE
from inspector.audit.samples import list_drawn, say_stratum
from inspector.threads.tasks import get_state

from .lines import write_instant, write_second
from .manifests import OPENED_RULE, PRINTED_RULE
from .models import Export
from .printing import begin, encode, list_facts, show
from .reports import (
    MAX_TITLE_LENGTH,
    list_making,
    name_conversation,
    tell_standing,
    write_checkpoint,
    write_hash,
    write_verdicts,
)

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
