"""What auditors say: of findings, the list, one with its history, and acts on it; of characters of messages, comments,
one with its history, and acts on it. The acts are a person's, which a key does in their name.

The shapes of comments say what the pages say of each, without what a program may not see.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rest_framework import serializers
from rest_framework.request import Request

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.selectors import find_member
from inspector.audit import comments
from inspector.audit.findings import selectors as findings
from inspector.audit.findings.services import MAX_REASON_LENGTH, assign, judge, list_acts, snooze
from inspector.audit.models import Finding, FindingAct
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.audit.rules import RULES
from inspector.audit.rules.rule import SEVERITIES
from inspector.database import on_replica
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH, mask_layers
from inspector.intake.selectors import find_delivery, has_bytes, measure_source
from inspector.threads.models import Message
from inspector.threads.selectors import find_conversation, find_message, has_record, load_records, unfold

from .authentication import act_for, may_see_secrets
from .endpoints import Endpoint, operation
from .parameters import (
    Document,
    find_named,
    take_choice,
    take_id,
    take_moment,
    take_number,
    take_text,
)
from .problems import ProblemError
from .shapes import (
    DigestField,
    choose,
    cut_page,
    find_page,
    listing,
    read_place,
    read_row_key,
    show,
)

logger = logging.getLogger(__name__)

_STATES: Final = [*Finding.State.values, findings.SNOOZED, findings.SUPPRESSED, findings.CLOSED]
_FINDING_ACT: Final = Document(
    '{"state": "accepted", "reason": "…"}',
    (
        take_choice("state", default=None, choices=Finding.State.values, about="a decision; open ends a snooze too"),
        take_moment("snoozed_until", about="leave the open finding out of lists until then"),
        take_text("assignee", default=None, about="user name of an auditor or owner; empty for nobody"),
        take_text(
            "reason",
            default="",
            max_characters=MAX_REASON_LENGTH,
            about="needed for decisions but open, and for a snooze",
        ),
        take_text(
            "seen",
            default=None,
            about="id of the last of its `acts` as it was read, empty for none: refused if somebody acted on it since",
        ),
    ),
)


class FindingSerializer(serializers.Serializer[Any]):
    """A finding; docs/findings.md lists the rules."""

    id = serializers.UUIDField()
    rule = serializers.CharField()
    title = serializers.CharField(help_text="what the rule finds, in a few words")
    severity = serializers.ChoiceField(choices=SEVERITIES[1:])
    state = serializers.ChoiceField(choices=Finding.State.values, help_text="the decision of an auditor")
    holds = serializers.BooleanField(help_text="false: the finding no longer applies")
    is_suppressed = serializers.BooleanField()
    assignee = serializers.CharField(
        source="assignee.username", allow_null=True, help_text="user name of the person it is assigned to"
    )
    snoozed_until = serializers.DateTimeField(allow_null=True, help_text="lists of open findings leave it out until")
    text = serializers.CharField(
        allow_null=True, help_text="the problem in words; null while the delivery of its message is withdrawn"
    )
    cites = serializers.CharField(help_text="the section it rests on, or its rule")
    conversation = serializers.UUIDField(source="conversation_id")
    message = serializers.UUIDField(allow_null=True)
    span = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="the characters it is about: layer, start, end"
    )
    sender = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField(help_text="the time of its message")
    due_at = serializers.DateTimeField(allow_null=True, help_text="from when on it counts, where time decides")
    due_since = serializers.DateTimeField(
        allow_null=True, help_text="when it was noted that this moment had come for its channel; lists begin then"
    )
    found_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="when it ceased to hold")


class ActSerializer(serializers.Serializer[Any]):
    """What a person made of a finding, and why."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=FindingAct.Kind.values)
    state = serializers.ChoiceField(choices=Finding.State.values, help_text="as it stood after the act")
    assignee = serializers.CharField(
        source="assignee.username", allow_null=True, help_text="of an act that assigns; null for nobody"
    )
    until = serializers.DateTimeField(allow_null=True, help_text="of an act that snoozes")
    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    reason = serializers.CharField(allow_blank=True)


class FindingDetailSerializer(FindingSerializer):
    """A finding with what it is about besides, and all that was made of it."""

    why = serializers.CharField(allow_blank=True, help_text="why it matters")
    related = serializers.ListField(child=serializers.UUIDField(), help_text="the other messages it is about")
    related_spans = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), allow_null=True),
        help_text="of each of these the characters it is about, as in `span`; null where it is about the whole",
    )
    version = serializers.CharField(help_text="by which decoders and rules it was last written")
    acts = ActSerializer(many=True, help_text="the first first")


class Findings(Endpoint):
    """What the rules found, and what people make of it."""

    @listing(
        "Finding",
        FindingSerializer,
        "Findings, newest first",
        take_choice("rule", about="filter by rule", choices=sorted(RULES), default=""),
        take_choice(
            "state",
            about="filter by state; by default all current ones that are not suppressed",
            choices=_STATES,
            default="",
        ),
        take_choice("least", about="filter by minimum severity", choices=SEVERITIES[1:], default="info"),
        take_id("conversation", about="filter by conversation"),
        take_id("delivery", about="filter by delivery: findings about records that it brought, duplicates included"),
        take_text("assignee", about="filter by the user name of the person it is assigned to", default=""),
        query=take_text("q", about="only those of messages that this means, in the search language", default=""),
        what="A finding",
    )
    @on_replica
    def list_findings(self, request: Request) -> dict[str, Any]:
        """A page of findings."""
        given, workspace = self.given, self.workspace
        delivery = find_named("delivery", find_delivery, workspace, given["delivery"])
        meant = findings.mean_findings(workspace=workspace, query=given["q"], may_see_secrets=may_see_secrets(self.key))
        within = findings.of_delivery(delivery.pk) if delivery else findings.EVERYWHERE
        if given["assignee"]:
            within &= findings.of_assignee(given["assignee"])
        rows = findings.list_findings(
            workspace=workspace,
            rule=given["rule"],
            state=given["state"],
            least=SEVERITIES.index(given["least"]),
            conversation=find_named("conversation", find_conversation, workspace, given["conversation"]),
            within=within,
        )
        page, on = find_page(self, rows, meant, at="at", before=read_place(self))
        messages = findings.find_messages(page)
        shown = [choose(show_finding(each, messages.get(each.pk)), given) for each in page]
        return {"results": shown, **on}

    @operation(FindingDetailSerializer)
    def get_finding(self, request: Request, finding_id: uuid.UUID) -> dict[str, Any]:
        """The finding with its history, also where it holds no more."""
        return _show_finding(self.find(findings.find_finding, finding_id=finding_id))

    @operation({201: FindingDetailSerializer}, body=_FINDING_ACT, scope="review")
    def judge_finding(self, request: Request, finding_id: uuid.UUID) -> dict[str, Any]:
        """Decide on it, snooze it or assign it, one at a time, in the name of the member who made the key."""
        finding = self.find(findings.find_finding, finding_id=finding_id)
        said = _FINDING_ACT.read(request)
        acts = [name for name in ("state", "snoozed_until", "assignee") if said[name] is not None]
        if len(acts) != 1:
            raise ProblemError(422, f"send one of state, snoozed_until and assignee: {_FINDING_ACT.example}")
        with act_for(request) as person:
            _judge(person, finding, acts[0], said)
        logger.info("key %s: finding %s, %s", self.key.prefix, finding.pk, acts[0])
        return _show_finding(self.find(findings.find_finding, finding_id=finding_id))


def _judge(person: Membership, finding: Finding, act: str, said: Mapping[str, Any]) -> None:
    given: dict[str, Any] = {"membership": person, "findings": [finding.pk], "seen": said["seen"]}
    if act == "state":
        judge(**given, state=said["state"], reason=said["reason"])
    elif act == "snoozed_until":
        snooze(**given, until=said["snoozed_until"], reason=said["reason"])
    else:
        named = find_member(workspace=person.workspace, name=said["assignee"]) if said["assignee"] else None
        if said["assignee"] and named is None:
            raise ProblemError(422, f"no member of this workspace is called {said['assignee']!r}", member="assignee")
        assign(**given, assignee=named.user if named else None)


def show_finding(finding: Finding, message: Message | None) -> dict[str, Any]:
    """A finding as the list shows it; of a message that is hidden or gone nothing is told."""
    return show(
        FindingSerializer,
        finding,
        title=RULES[finding.rule].title if finding.rule in RULES else finding.rule,
        severity=SEVERITIES[finding.severity],
        text=finding.text if message else None,
        cites=finding.cites or f"rule {finding.rule}",
        message=message.pk if message else None,
        span=finding.place if message else None,
        sender=finding.sender or None if message else None,
    )


def _show_finding(finding: Finding) -> dict[str, Any]:
    message = findings.find_messages([finding]).get(finding.pk)
    related, spans = findings.find_related(finding=finding) if message else [], finding.list_related()
    return {
        **show_finding(finding, message),
        "why": RULES[finding.rule].why if finding.rule in RULES else "",
        "related": [each.pk for each in related],
        "related_spans": [spans.get((each.record_id, each.part)) for each in related],
        "version": finding.version,
        "acts": [show(ActSerializer, act) for act in list_acts(finding=finding)],
    }


# A list does not look through longer records.
MAX_LISTED_BYTES: Final = 128 * 1024
STEPS: Final = (CommentTurn.Kind.REPLY, CommentTurn.Kind.RESOLVED, CommentTurn.Kind.REOPENED)


class CommentSerializer(serializers.Serializer[Any]):
    """A comment on characters of a message; while its message is withdrawn, neither its place nor its words."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField(allow_null=True)
    message = serializers.UUIDField(allow_null=True)
    start = serializers.IntegerField(help_text="its first character in the text of the record, counted from 0")
    end = serializers.IntegerField(help_text="the one after its last")
    quoted = serializers.CharField(
        allow_null=True,
        help_text="the first 300 of these characters, secrets masked; null in a list for a record over 128 KiB",
    )
    quoted_more = serializers.IntegerField(help_text="how many characters follow those")
    author = serializers.CharField(source="author.username")
    at = serializers.DateTimeField(source="created_at")
    state = serializers.ChoiceField(choices=Comment.State.values)
    words = serializers.CharField(allow_null=True, help_text="null where they were taken back or are withheld")
    is_withheld = serializers.BooleanField(help_text="the words are about what this key may not see")
    replies = serializers.IntegerField(help_text="how many answers there are, those taken back too")


class TakenBackSerializer(serializers.Serializer[Any]):
    """That words were taken back."""

    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()


class CommentStepSerializer(serializers.Serializer[Any]):
    """What somebody did about a comment."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=STEPS)
    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    words = serializers.CharField(allow_null=True, help_text="of an answer; null where taken back or withheld")
    is_withheld = serializers.BooleanField()
    taken_back = TakenBackSerializer(allow_null=True)


class CommentDetailSerializer(CommentSerializer):
    """A comment with all that happened to it, and whether its message is still what it was written about."""

    part = serializers.IntegerField(help_text="the message of the record that it was written about")
    decoder = serializers.CharField(help_text="by which it was read then")
    source_sha256 = DigestField(help_text="of the exact bytes that it was written about")
    is_other_bytes = serializers.BooleanField(help_text="the record has other bytes now")
    is_told_otherwise = serializers.BooleanField(help_text="the message has another sentence now")
    taken_back = TakenBackSerializer(allow_null=True)
    steps = CommentStepSerializer(many=True, help_text="the first first")


def show_comments(found: Sequence[Comment], key: ApiKey) -> list[dict[str, Any]]:
    """Comments as a list shows them, in two statements: each was loaded with its author and its number of replies."""
    messages = comments.find_commented(found)
    load_records(messages=list(messages.values()), max_bytes=MAX_LISTED_BYTES)
    masked: dict[tuple[uuid.UUID, int], str] = {}
    rows = []
    for comment in found:
        message = messages.get(comment.pk)
        shown = _show_comment(comment, message, _quote(comment, message, masked, is_list=True), key)
        rows.append(show(CommentSerializer, comment, **shown, replies=vars(comment)["replies"]))
    return rows


def show_threads(threads: Sequence[comments.Thread], message: Message | None, key: ApiKey) -> list[dict[str, Any]]:
    """The comments on a message, which has its record, with all that happened to them; None where it is hidden."""
    masked: dict[tuple[uuid.UUID, int], str] = {}
    digest = measure_source(record=message.record)[1] if threads and message else ""
    return [_show_thread(thread, message, _quote(thread.comment, message, masked), digest, key) for thread in threads]


def _quote(
    comment: Comment, message: Message | None, masked: dict[tuple[uuid.UUID, int], str], *, is_list: bool = False
) -> comments.Quote | None:
    """What may be shown of the characters of a comment; None where its message is hidden.

    `masked` keeps what was worked out of a message, for the next comment on it.
    """
    if message is None:
        return None
    is_too_large = is_list and not has_record(message)
    if is_too_large or not has_bytes(message.record) or len(message.record.source) > MAX_BYTES_LOOKED_THROUGH:
        return comments.Quote(text="", more=0, is_masked=True, why_none=comments.TOO_LARGE)
    place = (message.record_id, message.part)
    if place not in masked:
        masked[place] = mask_layers(unfold(message=message))[0]
    return comments.quote_of(comment, message.record.wire_text, masked[place])


def _may_see(key: ApiKey, quote: comments.Quote | None, *, is_restricted: bool) -> bool:
    if quote is None:
        return False
    return may_see_secrets(key) or comments.is_open_to_all(quote, is_restricted=is_restricted)


def _show_comment(
    comment: Comment, message: Message | None, quote: comments.Quote | None, key: ApiKey
) -> dict[str, Any]:
    """The members of a comment that depend on who reads it."""
    is_seen = _may_see(key, quote, is_restricted=comment.is_restricted)
    told = quote if quote and not quote.why_none else None
    return {
        "conversation": message.conversation_id if message else None,
        "message": message.pk if message else None,
        "quoted": told.text if told else None,
        "quoted_more": told.more if told else 0,
        # What was taken back is read by people who may have to judge it, and by no program.
        "words": comment.words if is_seen and comment.state != Comment.State.WITHDRAWN else None,
        "is_withheld": not is_seen,
    }


def _show_thread(
    thread: comments.Thread, message: Message | None, quote: comments.Quote | None, digest: str, key: ApiKey
) -> dict[str, Any]:
    comment, steps = thread.comment, []
    taken_back = {said: show(TakenBackSerializer, turn) for said, turn in thread.withdrawals.items()}
    for turn in thread.turns:
        is_reply = turn.kind == CommentTurn.Kind.REPLY
        is_seen = not is_reply or _may_see(key, quote, is_restricted=turn.is_restricted)
        words = turn.words if is_reply and is_seen and turn.pk not in taken_back else None
        about = {"words": words, "is_withheld": not is_seen, "taken_back": taken_back.get(turn.pk)}
        if turn.kind in STEPS:
            steps.append(show(CommentStepSerializer, turn, **about))
    return show(
        CommentDetailSerializer,
        comment,
        **_show_comment(comment, message, quote, key),
        replies=sum(turn.kind == CommentTurn.Kind.REPLY for turn in thread.turns),
        is_other_bytes=message is not None and bytes(comment.source_sha256).hex() != digest,
        is_told_otherwise=bool(message and bytes(comment.english_sha256) != comments.digest_english(message)),
        taken_back=taken_back.get(None),
        steps=steps,
    )


# The text of each is looked through for secrets on the way.
_FEWER: Final = take_number("limit", about="rows per page", least=1, most=100, default=25)
_ON_MESSAGE: Final = "comments on a message"
_PLACE: Final[dict[str, Any]] = {"in_body": True, "most": 2**31 - 1, "is_required": True}
_WRITTEN: Final = Document(
    '{"start": 0, "end": 12, "words": "…"}',
    (
        take_number("start", about="the first character of the text of the record, counted from 0", **_PLACE),
        take_number("end", about="the one after the last", **_PLACE),
        take_text("words", is_required=True, max_characters=comments.MAX_WORDS_LENGTH),
    ),
)
_COMMENT_ACT: Final = Document(
    '{"act": "reply", "words": "…"} or {"act": "resolved"}',
    (
        take_choice(
            "act",
            CommentTurn.Kind.values,
            is_required=True,
            about="withdrawn takes the comment back, or a reply to it",
        ),
        take_text("words", default="", max_characters=comments.MAX_WORDS_LENGTH, about="of a reply"),
        take_text("reply", default="", max_characters=36, about="the id of the reply that is taken back"),
    ),
)


class Comments(Endpoint):
    """What people say of characters of messages."""

    @listing(
        "Comment",
        CommentSerializer,
        "Comments, newest first",
        take_choice("state", Comment.State.values, about="filter by state", default=""),
        take_id("conversation", about="filter by conversation"),
        limit=_FEWER,
        scope="review",
    )
    def list_comments(self, request: Request) -> dict[str, Any]:
        """A page of the comments of the workspace."""
        found = comments.list_comments(
            workspace=self.workspace,
            state=self.given["state"],
            conversation=find_named("conversation", find_conversation, self.workspace, self.given["conversation"]),
            after=read_place(self),
            limit=self.given["limit"] + 1,
        )
        page, cursor = cut_page(self, found, lambda comment: (comment.created_at, comment.pk))
        return {"results": show_comments(page, self.key), "next": cursor}

    @listing(
        "Thread",
        CommentDetailSerializer,
        "The comments on a message in the order of its characters",
        limit=_FEWER,
        scope="review",
        refusals=(409, 410),
    )
    def list_message_comments(self, request: Request, message_id: uuid.UUID) -> dict[str, Any]:
        """A page of them, each with all that happened to it."""
        message = self.find(find_message, message_id=message_id)
        after = _read_key(read_row_key(self, _ON_MESSAGE))
        found = comments.list_threads(message=message, after=after, limit=self.given["limit"] + 1)
        page, cursor = cut_page(self, found, _write_key, _ON_MESSAGE)
        return {"results": show_threads(page, message, self.key), "next": cursor}

    @operation({201: CommentDetailSerializer}, body=_WRITTEN, scope="review")
    def write_comment(self, request: Request, message_id: uuid.UUID) -> dict[str, Any]:
        """Comment the characters from `start` up to `end`, in the name of the member who made the key."""
        message, said = self.find(find_message, message_id=message_id), _WRITTEN.read(request)
        with act_for(request) as person:
            comment = comments.write_comment(membership=person, message=message, **said)
        logger.info("key %s: wrote comment %s", self.key.prefix, comment.pk)
        return self._answer(comment.pk)

    @operation(CommentDetailSerializer, scope="review", refusals=(409, 410))
    def get_comment(self, request: Request, comment_id: uuid.UUID) -> dict[str, Any]:
        """The comment with all that happened to it, also when it was taken back."""
        return self._answer(comment_id)

    @operation({201: CommentDetailSerializer}, body=_COMMENT_ACT, scope="review")
    def act_on_comment(self, request: Request, comment_id: uuid.UUID) -> dict[str, Any]:
        """Answer it, resolve it, open it again, or withdraw words, in the name of the member who made the key."""
        comment = self.find(comments.find_thread, comment_id=comment_id).comment
        said = _COMMENT_ACT.read(request)
        with act_for(request) as person:
            if said["act"] == CommentTurn.Kind.REPLY:
                shown = comments.find_commented([comment]).get(comment.pk)
                message = find_message(workspace=person.workspace, message_id=shown.pk) if shown else None
                comments.reply(membership=person, comment=comment, message=message, words=said["words"])
            elif said["act"] == CommentTurn.Kind.WITHDRAWN:
                comments.withdraw(membership=person, comment=comment, reply_id=_read_reply(said["reply"]))
            else:
                comments.turn(membership=person, comment=comment, kind=said["act"])
        logger.info("key %s: comment %s: %s", self.key.prefix, comment.pk, said["act"])
        return self._answer(comment_id)

    def _answer(self, comment_id: uuid.UUID) -> dict[str, Any]:
        thread = self.find(comments.find_thread, comment_id=comment_id)
        message = comments.find_commented([thread.comment]).get(comment_id)
        return show_threads([thread], message, self.key)[0]


def _read_reply(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        raise ProblemError(422, "there is no such reply", member="reply", allowed="the id of a reply") from None


def _read_key(key: list[Any] | None) -> comments.PlaceOnWire | None:
    if key is None:
        return None
    start, end, at, pk = key
    return start, end, datetime.fromisoformat(at), uuid.UUID(pk)


def _write_key(thread: comments.Thread) -> list[str | int | bool]:
    said = thread.comment
    return [said.start, said.end, said.created_at.isoformat(), str(said.pk)]
