"""The life of a finding: found once, judged by people, closed and never deleted; rules set, and findings suppressed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from inspector.audit.findings import examining
from inspector.audit.findings.selectors import (
    SNOOZED,
    count_by_rule,
    count_open_by_severity,
    count_snoozed,
    list_findings,
    of_assignee,
)
from inspector.audit.findings.services import (
    assign,
    judge,
    lift,
    list_acts,
    list_assignable,
    set_rule,
    snooze,
    suppress,
)
from inspector.audit.models import Examination, Finding, RuleChange, Suppression
from inspector.audit.overview import count_standing
from inspector.intake.models import HiddenRecord, Job
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.pages.shown.findings import tell_history
from inspector.pipeline import run_due
from inspector.threads import dependencies
from inspector.threads.models import Block, Conversation, Message, Wording
from inspector.threads.resolving.writing import list_wordings
from inspector.worker import sweep
from tests.inspector.audit.rule_logs.writing import clowl, say

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

ASKED = clowl("m1", "REQ", "oscar", "radar").encode()
ANSWER = clowl("m2", "DONE", "radar", "oscar", minute=5, pid="m1").encode()
TWICE = ASKED.replace(b'"p": "REQ"', b'"p": "REQ", "p": "REQ"')


def codes(cast: Cast, **given: object) -> list[str]:
    return [finding.rule for finding in list_findings(workspace=cast.workspace, **given)]  # type: ignore[arg-type]


def test_what_no_longer_holds_is_closed_and_is_the_same_one_should_it_return(cast: Cast) -> None:
    delivery = deliver(cast, ANSWER)
    resolve_all()
    (finding,) = Finding.objects.filter(rule="missing-message")
    judge(membership=cast.auditor, findings=[finding.pk], state="accepted", reason="known gap")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="not ours")
    resolve_all()
    finding.refresh_from_db()
    assert (finding.holds, finding.state) == (False, "accepted")
    assert finding.ended_at is not None
    assert codes(cast) == []
    take_back(membership=cast.auditor, delivery=delivery, reason="ours")
    resolve_all()
    (again,) = Finding.objects.filter(rule="missing-message", holds=True)
    assert (again.pk, again.state, again.ended_at) == (finding.pk, "accepted", None)
    assert [(act.state, act.by, act.reason) for act in list_acts(finding=again)] == [
        ("accepted", cast.auditor.user, "known gap")
    ]


def test_time_decides_only_where_it_is_asked(cast: Cast) -> None:
    """A request is unanswered once its channel went on for an hour, whatever the clock says."""
    deliver(cast, ASKED)
    resolve_all()
    assert codes(cast) == []
    deliver(cast, clowl("x1", "INF", "eve", "oscar", minute=30).replace('"c"', '"d"').encode(), name="b.log")
    resolve_all()
    assert codes(cast) == []
    deliver(cast, clowl("x2", "INF", "eve", "oscar", minute=61).replace('"c"', '"d"').encode(), name="c.log")
    resolve_all()
    assert codes(cast) == ["unanswered"]


def test_a_snoozed_finding_stays_open_and_lists_leave_it_out(cast: Cast) -> None:
    deliver(cast, TWICE)
    resolve_all()
    (finding,) = Finding.objects.filter(rule="said-twice")
    severity, now = Conversation.objects.get().open_severity, timezone.now()
    week = now + timedelta(days=7)
    given: dict[str, Any] = {"membership": cast.auditor, "findings": [finding.pk], "reason": "they mend it on Monday"}
    for until in (now, now + timedelta(days=400)):
        with pytest.raises(ValidationError, match="366 days"):
            snooze(**given, until=until)
    with pytest.raises(ValidationError):
        snooze(**given | {"reason": " "}, until=week)
    with pytest.raises(PermissionDenied):
        snooze(**given | {"membership": cast.viewer}, until=week)
    assert snooze(**given, until=week) == 1
    assert "said-twice" not in codes(cast, state="open")
    assert codes(cast, state=SNOOZED) == ["said-twice"]
    assert "said-twice" in codes(cast)
    assert count_snoozed(workspace=cast.workspace) == 1
    assert Message.Severity.NOTICE not in count_open_by_severity(workspace=cast.workspace)
    assert {count.rule.code: count.states for count in count_by_rule(workspace=cast.workspace)}["said-twice"] == {
        SNOOZED: 1
    }
    assert count_standing(workspace=cast.workspace).findings.get(Message.Severity.NOTICE) is None
    # It is no decision: the conversation is as grave as before.
    finding.refresh_from_db()
    assert (finding.state, Conversation.objects.get().open_severity) == ("open", severity)
    # Its time ends by itself, and opening it again ends it early.
    Finding.objects.update(snoozed_until=now)
    assert "said-twice" in codes(cast, state="open")
    assert snooze(**given, until=week) == 1
    assert judge(membership=cast.auditor, findings=[finding.pk], state="open", reason="") == 1
    assert judge(membership=cast.auditor, findings=[finding.pk], state="open", reason="") == 0
    assert "said-twice" in codes(cast, state="open")
    assert [(act.kind, act.state, act.until) for act in list_acts(finding=finding)] == [
        ("snoozed", "open", week),
        ("snoozed", "open", week),
        ("judged", "open", None),
    ]


def test_news_of_a_finding_end_its_snooze_and_its_history_says_so(cast: Cast) -> None:
    deliver(cast, ANSWER)
    resolve_all()
    (finding,) = Finding.objects.filter(rule="missing-message")
    week = timezone.now() + timedelta(days=7)
    snooze(membership=cast.auditor, findings=[finding.pk], until=week, reason="it may come")
    # As another release words it.
    Finding.objects.update(text="otherwise")
    Examination.objects.update(version="before")
    resolve_all()
    sweep()
    resolve_all()
    assert codes(cast, state="open") == ["missing-message"]
    finding.refresh_from_db()
    said = tell_history(finding, list_acts(finding=finding))
    assert [step["what"].partition(":")[0] for step in said] == [
        "found by its rule",
        "snoozed it until",
        "its snooze ended early",
    ]


def test_what_comes_back_as_it_was_is_still_snoozed(cast: Cast) -> None:
    delivery = deliver(cast, ANSWER)
    resolve_all()
    (finding,) = Finding.objects.filter(rule="missing-message")
    week = timezone.now() + timedelta(days=7)
    snooze(membership=cast.auditor, findings=[finding.pk], until=week, reason="it may come")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="not ours")
    resolve_all()
    finding.refresh_from_db()
    assert (finding.holds, codes(cast, state="closed"), count_snoozed(workspace=cast.workspace)) == (
        False,
        ["missing-message"],
        0,
    )
    take_back(membership=cast.auditor, delivery=delivery, reason="ours")
    resolve_all()
    assert (codes(cast, state="open"), codes(cast, state="snoozed")) == ([], ["missing-message"])
    assert count_snoozed(workspace=cast.workspace) == 1
    finding.refresh_from_db()
    said = tell_history(finding, list_acts(finding=finding))
    assert [step["what"] for step in said] == ["found by its rule", "snoozed it until"]


def test_findings_are_assigned_to_those_who_may_judge_them(cast: Cast) -> None:
    deliver(cast, TWICE)
    resolve_all()
    (finding,) = Finding.objects.filter(rule="said-twice")
    given: dict[str, Any] = {"membership": cast.auditor, "findings": [finding.pk]}
    with pytest.raises(PermissionDenied):
        assign(**given | {"membership": cast.viewer}, assignee=cast.auditor.user)
    for other in (cast.viewer, cast.stranger):
        with pytest.raises(ValidationError, match="auditor or an owner"):
            assign(**given, assignee=other.user)
    people = list_assignable(workspace=cast.workspace)
    assert set(people) == {cast.auditor.user, cast.owner.user}
    assert assign(**given, assignee=cast.owner.user) == 1
    assert assign(**given, assignee=cast.owner.user) == 0
    owner = cast.owner.user
    for named in (owner.pk, owner.get_username()):
        assert codes(cast, within=of_assignee(named)) == ["said-twice"]
    assert codes(cast, within=of_assignee(cast.auditor.user.pk)) == codes(cast, within=of_assignee("no\x00body")) == []
    assert assign(**given, assignee=None) == 1
    assert codes(cast, within=of_assignee(owner.pk)) == []
    assert "said-twice" in codes(cast, within=of_assignee(None))
    assert [(act.kind, act.assignee) for act in list_acts(finding=finding)] == [("assigned", owner), ("assigned", None)]


def test_who_judges_and_how(cast: Cast) -> None:
    deliver(cast, TWICE)
    resolve_all()
    (finding,) = Finding.objects.filter(rule="said-twice")
    with pytest.raises(PermissionDenied):
        judge(membership=cast.viewer, findings=[finding.pk], state="fixed", reason="")
    for state in ("accepted", "fixed", "false-alarm"):
        with pytest.raises(ValidationError, match="give a reason"):
            judge(membership=cast.auditor, findings=[finding.pk], state=state, reason=" ")
    with pytest.raises(ValidationError, match="one of open, accepted"):
        judge(membership=cast.auditor, findings=[finding.pk], state="nice", reason="x")
    assert judge(membership=cast.stranger, findings=[finding.pk], state="fixed", reason="x") == 0
    assert judge(membership=cast.auditor, findings=[finding.pk], state="false-alarm", reason="a test") == 1
    assert judge(membership=cast.owner, findings=[finding.pk], state="false-alarm", reason="again") == 0
    assert count_open_by_severity(workspace=cast.workspace) == {}
    (count,) = count_by_rule(workspace=cast.workspace)
    assert (count.rule.code, count.open, count.total) == ("said-twice", 0, 1)


def test_a_workspace_sets_its_rules(cast: Cast) -> None:
    deliver(cast, TWICE)
    resolve_all()
    with pytest.raises(PermissionDenied):
        set_rule(membership=cast.auditor, rule="said-twice", is_on=False, severity=None, reason="noise")
    with pytest.raises(ValidationError, match="no rule"):
        set_rule(membership=cast.owner, rule="said-thrice", is_on=False, severity=None, reason="noise")
    set_rule(membership=cast.owner, rule="said-twice", is_on=True, severity=4, reason="we parse strictly")
    assert Finding.objects.get(rule="said-twice").severity == Message.Severity.ERROR
    resolve_all()
    assert Finding.objects.get(rule="said-twice").severity == Message.Severity.ERROR
    set_rule(membership=cast.owner, rule="said-twice", is_on=False, severity=None, reason="noise")
    resolve_all()
    assert codes(cast) == []
    set_rule(membership=cast.owner, rule="said-twice", is_on=True, severity=None, reason="not noise")
    resolve_all()
    assert Finding.objects.get(rule="said-twice", holds=True).severity == Message.Severity.WARNING
    assert RuleChange.objects.count() == 3


def test_suppressing_hides_and_lifting_shows_again(cast: Cast) -> None:
    deliver(cast, TWICE)
    resolve_all()
    conversation = Conversation.objects.get()
    with pytest.raises(ValidationError, match="name a sender or a conversation"):
        suppress(membership=cast.auditor, rule="said-twice", conversation=None, sender="", reason="x")
    by_sender = suppress(membership=cast.auditor, rule="said-twice", conversation=None, sender="oscar", reason="old")
    suppress(membership=cast.auditor, rule="said-twice", conversation=conversation, sender="", reason="seen")
    assert codes(cast) == []
    assert codes(cast, state="suppressed") == ["said-twice"]
    lift(membership=cast.auditor, suppression=by_sender)
    assert codes(cast) == []
    lift(membership=cast.auditor, suppression=Suppression.objects.get(lifted_at=None))
    assert codes(cast) == ["said-twice"]


def test_other_decoders_or_rules_have_all_examined_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(cast, TWICE)
    resolve_all()
    monkeypatch.setattr(examining, "EXAMINED_BY", "next")
    sweep()
    assert Job.objects.filter(kind=Job.Kind.EXAMINE, state=Job.State.QUEUED).count() == 1
    resolve_all()
    assert set(Examination.objects.values_list("version", flat=True)) == {"next"}


def test_a_conversation_costs_the_same_statements_whatever_it_holds(cast: Cast) -> None:
    """Examining asks a constant number of times, for one conversation as for many."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from inspector.audit.findings.loading import load_scenes

    def count() -> int:
        with CaptureQueriesContext(connection) as caught:
            load_scenes(list(Conversation.objects.all()))
        return len(caught)

    deliver(cast, TWICE)
    deliver(cast, say(("ada", "👽")).replace('"c"', '"d"').encode(), name="d.log")
    resolve_all()
    few = count()
    for number in range(20):
        log = say(("ada", "👽"), ("ada", '{def:ok="failed"}'), ("bob", "?Uk/co")).replace('"c"', f'"c{number}"')
        deliver(cast, log.encode(), name=f"{number}.log")
    resolve_all()
    assert count() == few


def test_what_another_decoder_told_is_told_anew_in_the_background(cast: Cast) -> None:
    """A store that was filled before tokens were looked for has them in its rows, until the sweep comes by."""
    token = "ghp_" + "a1B2" * 9
    deliver(cast, clowl("m1", "REQ", "oscar", "radar", q=f"use {token}").encode())
    resolve_all()
    assert not any(token in message.body for message in Message.objects.all())
    message = Message.objects.get()
    told_in = message.told_in.replace(dependencies.DECODER_VERSION, "1.1", 1)
    Message.objects.update(told_in=told_in, english=f"use {token}", body=message.body.replace("use ", f"use {token} "))
    Conversation.objects.update(native_id=token)
    Examination.objects.update(version="1.1/2")
    sweep()
    resolve_all()
    assert not any(token in message.body for message in Message.objects.all())
    assert not Message.objects.filter(english__contains=token).exists()
    assert not Wording.objects.filter(english__contains=token).exists()
    assert not Conversation.objects.filter(native_id__contains=token).exists()
    assert Examination.objects.get().version == examining.EXAMINED_BY
    assert codes(cast).count("token-in-clear") == 1


def test_what_waits_to_be_examined_at_an_upgrade_is_read_anew_all_the_same(cast: Cast) -> None:
    """Its job is older than the decoder that examines it, and so is what it was told by."""
    deliver(cast, ASKED)
    resolve_all()
    message = Message.objects.get()
    told_in = message.told_in.replace(dependencies.DECODER_VERSION, "1.1", 1)
    Message.objects.update(told_in=told_in, english="as it was told before")
    Block.objects.update(form=Block.objects.get().form.replace(dependencies.DECODER_VERSION, "1.1"))
    Examination.objects.update(version="1.1/2")
    Job.objects.filter(kind=Job.Kind.EXAMINE).update(state=Job.State.QUEUED, due_at=timezone.now())
    run_due(only=(Job.Kind.EXAMINE,))
    assert Job.objects.get(kind=Job.Kind.EXAMINE).state == Job.State.DONE
    assert Examination.objects.get().version != examining.EXAMINED_BY
    sweep()
    resolve_all()
    assert Message.objects.values_list("told_in", "english").get() == (message.told_in, message.english)
    assert Examination.objects.get().version == examining.EXAMINED_BY


def judge_by_the_near_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("dialects.clowl.parts._find_keys", lambda *_: set())


def judge_by_the_near_digits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("dialects.nslip.tags._find_end_of_trial", lambda _, start: start + 512)


@pytest.mark.parametrize(
    ("judge_as_before", "wire", "dialect", "note"),
    [
        (
            judge_by_the_near_keys,
            ASKED.replace(b'"clowl": "0.2", ', b"").replace(b'"m1"', b'"%s"' % (b"m" * 5000)),
            "clowl",
            "too-long",
        ),
        (judge_by_the_near_digits, b"@a3|f%s|c1|S0|d1|T1|k1#\n" % (b"Z" * 600), "nslip", "too-large"),
    ],
    ids=["clowl", "nslip"],
)
def test_what_the_decoder_before_kept_as_prose_becomes_its_dialect(
    cast: Cast, judge_as_before: Callable[[pytest.MonkeyPatch], None], wire: bytes, dialect: str, note: str
) -> None:
    """Such a store heals by itself: the sweep comes by, and nobody delivers anything again."""
    with pytest.MonkeyPatch.context() as before:
        judge_as_before(before)
        delivery = deliver(cast, wire)
        resolve_all()
    stored = Message.objects.get()
    assert stored.dialect == "prose"
    Message.objects.update(told_in=stored.told_in.replace(dependencies.DECODER_VERSION, "2.1", 1))
    Examination.objects.update(version="2.1/5")
    sweep()
    resolve_all()
    message = Message.objects.get()
    assert (message.pk, message.record_id, message.conversation_id) == (
        stored.pk,
        stored.record_id,
        stored.conversation_id,
    )
    assert (message.dialect, message.performative) == (dialect, "request")
    assert f"{dialect}.{note}" in message.body
    (earlier,) = list_wordings(message=message)
    assert (earlier.english, earlier.cause) == (stored.english, "decoder")
    assert Examination.objects.get().version == examining.EXAMINED_BY
    # What was read then and is read now are the same bytes, counted once.
    delivery.refresh_from_db()
    assert (delivery.received, delivery.stored) == (1, 1)
    assert bytes(message.record.source) == wire.rstrip(b"\n")
    if dialect == "clowl":
        # It is known by its id from now on: delivered again, it stands in the conversation that it names.
        withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="to be delivered again")
        deliver(cast, wire)
        resolve_all()
        (shown,) = Message.objects.exclude(record__in=HiddenRecord.objects.values("record"))
        assert shown.conversation.native_id == "c" != message.conversation.native_id
