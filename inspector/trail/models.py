"""What people and programs did: each kind of deed with its code and its sentence, declared once; and one row for each
deed, in a table that is only added to.

A new kind is a row of `DEEDS` and a call of `record_deed` in the service that does it. A code never changes its
meaning: rows that were written under it stay. `docs/trail.md` lists the table.

The triggers of the table of deeds stand in the first migration. They number the deeds of a workspace without a gap, set
the time by the database's clock, and refuse to change, delete or empty what is written. `ask_guard` tells whom they
hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models.functions import Now


@dataclass(frozen=True, slots=True)
class DeedKind:
    """A kind of deed: `did` completes "Olivia …", with `{on}` where what it was done to is named:
    `conversation “c1”`."""

    code: str
    group: str
    did: str

    @property
    def title(self) -> str:
        """What is done, where no one thing is named: `Gave a verdict in a review`."""
        noun = _NOUNS.get(self.code) or _NOUNS[self.code.partition(".")[0]]
        words = self.did.replace("the {on}", noun).replace("{on}", noun.split(" ", 1)[-1])
        return words[:1].upper() + words[1:]


# What a kind of deed is done to, by the first word of its code, or by all of it.
_NOUNS: Final[Mapping[str, str]] = {
    "opened": "a message",
    "raw": "a record",
    "export": "an export",
    "trail": "the audit log",
    "bundle": "a proof bundle",
    "delivery": "a delivery",
    "delivery.discarded": "a file",
    "verdict": "a review",
    "review": "a review",
    "queue": "a queue",
    "finding": "a finding",
    "finding.suppressed": "a rule",
    "finding.suppression-lifted": "a rule",
    "sample": "a sample",
    "comment": "a comment",
    "rubric": "a queue",
    "rule": "a rule",
    "alerts": "alerts",
    "alerts.switched-off": "a webhook",
    "alerts.tested": "a webhook",
    "search": "a search",
    "key": "a key",
    "member": "a member",
    "workspace": "the workspace",
    "channel": "a channel",
    "api-key": "an API key",
    "account": "an account",
    "erasure": "an erasure",
    "retention": "retention",
    "hold": "a legal hold",
}


READING: Final = "Sensitive reading"
FILES: Final = "Files"
JUDGEMENT: Final = "Judgement"
SETTINGS: Final = "Settings"
KEYS: Final = "Keys"
ACCESS: Final = "Access"

DEEDS: Final[Mapping[str, DeedKind]] = {
    kind.code: kind
    for kind in (
        DeedKind("opened.shown", READING, "viewed the decrypted {on}"),
        DeedKind("raw.downloaded", READING, "downloaded the exact bytes of the {on}"),
        DeedKind("api-key.read", READING, "read through the API"),
        DeedKind("export.asked", FILES, "requested the {on}"),
        DeedKind("export.downloaded", FILES, "downloaded the {on}"),
        DeedKind("export.discarded", FILES, "discarded the {on}"),
        DeedKind("trail.exported", FILES, "exported the {on}"),
        DeedKind("bundle.made", FILES, "made the {on}"),
        DeedKind("delivery.imported", FILES, "imported the {on}"),
        DeedKind("delivery.discarded", FILES, "discarded the uploaded {on}"),
        DeedKind("delivery.withdrawn", FILES, "withdrew the {on}"),
        DeedKind("erasure.asked", FILES, "asked for the {on}"),
        DeedKind("erasure.finished", FILES, "finished the {on}"),
        DeedKind("retention.set", SETTINGS, "set the {on}"),
        DeedKind("hold.placed", SETTINGS, "placed the {on}"),
        DeedKind("hold.lifted", SETTINGS, "lifted the {on}"),
        DeedKind("delivery.taken-back", FILES, "undid the withdrawal of the {on}"),
        DeedKind("verdict.given", JUDGEMENT, "gave a verdict in the {on}"),
        DeedKind("verdict.withdrawn", JUDGEMENT, "withdrew a verdict in the {on}"),
        DeedKind("review.taken", JUDGEMENT, "claimed the {on}"),
        DeedKind("review.released", JUDGEMENT, "released the {on}"),
        DeedKind("review.asked-again", JUDGEMENT, "asked for another verdict in the {on}"),
        DeedKind("review.removed", JUDGEMENT, "removed the {on} from its queue"),
        DeedKind("queue.filled", JUDGEMENT, "added conversations to the {on}"),
        DeedKind("finding.judged", JUDGEMENT, "decided on the {on}"),
        DeedKind("finding.assigned", JUDGEMENT, "assigned the {on}"),
        DeedKind("finding.snoozed", JUDGEMENT, "snoozed the {on}"),
        DeedKind("sample.drawn", JUDGEMENT, "drew the {on}"),
        DeedKind("comment.written", JUDGEMENT, "wrote the {on}"),
        DeedKind("comment.answered", JUDGEMENT, "answered the {on}"),
        DeedKind("comment.resolved", JUDGEMENT, "resolved the {on}"),
        DeedKind("comment.reopened", JUDGEMENT, "reopened the {on}"),
        DeedKind("comment.withdrawn", JUDGEMENT, "withdrew text of the {on}"),
        DeedKind("queue.made", SETTINGS, "created the {on}"),
        DeedKind("queue.closed", SETTINGS, "closed the {on}"),
        DeedKind("queue.opened", SETTINGS, "reopened the {on}"),
        DeedKind("rubric.changed", SETTINGS, "changed the rubric of the {on}"),
        DeedKind("rule.set", SETTINGS, "set the {on}"),
        DeedKind("finding.suppressed", SETTINGS, "suppressed findings of the {on}"),
        DeedKind("finding.suppression-lifted", SETTINGS, "lifted the suppression of the {on}"),
        DeedKind("alerts.set", SETTINGS, "set the {on}"),
        DeedKind("alerts.secret-made", SETTINGS, "created a new secret for the {on}"),
        DeedKind("alerts.switched", SETTINGS, "switched the {on}"),
        DeedKind("alerts.switched-off", SETTINGS, "switched off the {on}, which failed for long"),
        DeedKind("alerts.tested", SETTINGS, "sent a test to the {on}"),
        DeedKind("search.shared", SETTINGS, "saved the {on} for everybody here"),
        DeedKind("search.unshared", SETTINGS, "no longer shares the {on}"),
        DeedKind("search.forgotten", SETTINGS, "removed the shared {on}"),
        DeedKind("key.added", KEYS, "added the {on} to the keyring"),
        DeedKind("key.released", KEYS, "released the {on} of the keyring"),
        DeedKind("key.removed", KEYS, "removed the {on} from the keyring"),
        DeedKind("key.expired", KEYS, "removed the {on} from the keyring, whose time was over"),
        DeedKind("member.added", ACCESS, "added the {on}"),
        DeedKind("member.role-changed", ACCESS, "changed the role of the {on}"),
        DeedKind("member.invited", ACCESS, "invited the {on}"),
        DeedKind("member.invited-again", ACCESS, "created a new invitation for the {on}"),
        DeedKind("member.invitation-withdrawn", ACCESS, "withdrew the invitation of the {on}"),
        DeedKind("member.deactivated", ACCESS, "deactivated the {on}"),
        DeedKind("member.reactivated", ACCESS, "reactivated the {on}"),
        DeedKind("member.removed", ACCESS, "removed the {on} from the workspace"),
        DeedKind("workspace.made", ACCESS, "created the {on}"),
        DeedKind("workspace.renamed", ACCESS, "renamed the {on}"),
        DeedKind("workspace.archived", ACCESS, "archived the {on}"),
        DeedKind("workspace.restored", ACCESS, "restored the {on} from the archive"),
        DeedKind("workspace.second-factor-required", ACCESS, "requires a second factor in the {on}"),
        DeedKind("workspace.second-factor-waived", ACCESS, "no longer requires a second factor in the {on}"),
        DeedKind("workspace.two-for-keys", SETTINGS, "requires a second owner for keys of the {on}"),
        DeedKind("workspace.one-for-keys", SETTINGS, "no longer requires a second owner for keys of the {on}"),
        DeedKind("workspace.sealing-begun", SETTINGS, "began to seal the records of the {on}"),
        DeedKind("workspace.sealing-ended", SETTINGS, "stopped sealing the records of the {on}"),
        DeedKind("workspace.sealed-indexed", SETTINGS, "had words of sealed records indexed in the {on}"),
        DeedKind("workspace.sealed-not-indexed", SETTINGS, "had no words of sealed records indexed in the {on}"),
        DeedKind("channel.made", ACCESS, "created the {on}"),
        DeedKind("api-key.made", ACCESS, "created the {on}"),
        DeedKind("api-key.taken-over", ACCESS, "took over the {on}"),
        DeedKind("api-key.revoked", ACCESS, "revoked the {on}"),
        DeedKind("account.signed-in", ACCESS, "signed in"),
        DeedKind("account.refused", ACCESS, "refused to sign in the {on}"),
        DeedKind("account.signed-out", ACCESS, "signed out"),
        DeedKind("account.sessions-ended", ACCESS, "ended other sessions of their own"),
        DeedKind("account.password-set", ACCESS, "changed the password"),
        DeedKind("account.link-made", ACCESS, "created a sign-in link for the {on}"),
        DeedKind("account.break-glass-made", ACCESS, "created a link without second factor for the {on}"),
        DeedKind("account.factor-added", ACCESS, "added a second factor"),
        DeedKind("account.factor-removed", ACCESS, "removed a second factor"),
        DeedKind("account.recovery-codes-made", ACCESS, "created recovery codes"),
    )
}


# What the words of a search are looked for in. The names stand for themselves too: in the sentence they are quoted, and
# PostgreSQL takes a quotation mark for a part of the word.
SEARCHED: Final = ("actor_name", "object_label", "told", "details")


class Deed(models.Model):
    """That somebody did something. Nothing here points at a row that may go: names are kept as text beside the ids."""

    class Actor(models.TextChoices):
        """What kind of somebody."""

        MEMBER = "member", "a member"
        API_KEY = "api-key", "an API key"
        OPERATOR = "operator", "the operator"
        PRODUCT = "product", "the product"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, db_index=False, related_name="+")
    # 1 for the first deed of its workspace; by the database, one after the other as they are committed.
    sequence = models.BigIntegerField(db_default=0)
    at = models.DateTimeField(db_default=Now())
    actor_kind = models.CharField(max_length=16, choices=Actor.choices)
    actor_id = models.CharField(max_length=64, blank=True)
    actor_name = models.TextField()
    address = models.CharField(max_length=64, blank=True)
    code = models.CharField(max_length=48)
    # On what: its kind in a word, its id, and what it was called then.
    object_kind = models.CharField(max_length=32, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_label = models.TextField(blank=True)
    # All that it concerns, by id, so that each can show its own trail: the messages, their conversation, the findings.
    about = ArrayField(models.UUIDField(), default=list)
    # The deed in a sentence, as it was told when it was recorded.
    told = models.TextField()
    details = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            # Serves the trail of a workspace, newest first by keyset.
            models.UniqueConstraint(fields=["workspace", "sequence"], name="deed_number_once"),
        ]
        indexes: ClassVar = [
            # Serve the filters by who and by what was done, newest first.
            models.Index(fields=["workspace", "actor_kind", "actor_id", "-sequence"], name="deed_by_actor"),
            models.Index(fields=["workspace", "code", "-sequence"], name="deed_by_code"),
            # Serves the ledger, which asks what was done since a moment in any workspace.
            BrinIndex(fields=["at"], name="deed_since", autosummarize=True),
            # Serves a stretch of time.
            models.Index(fields=["workspace", "at"], name="deed_by_time"),
            # Serves the trail of one object. Ids of two workspaces never meet.
            GinIndex(fields=["about"], name="deed_about"),
            # Serves the words.
            GinIndex(SearchVector(*SEARCHED, config="simple"), name="deed_words"),
        ]

    def __str__(self) -> str:
        return self.told

    @property
    def kind(self) -> DeedKind | None:
        """What kind of deed it is; None where a later version of the product wrote it."""
        return DEEDS.get(self.code)
