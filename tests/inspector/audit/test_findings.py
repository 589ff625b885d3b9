"""The life of a finding: found once, judged by people, closed and never deleted; rules set, and findings suppressed."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied, ValidationError

from inspector.audit.findings import examining
from inspector.audit.findings.life import judge, lift, list_acts, set_rule, suppress
from inspector.audit.findings.listing import count_by_rule, count_open_by_severity, list_findings
from inspector.audit.models import Examination, Finding, RuleChange, Suppression
from inspector.audit.rules.logs import clowl, say
from inspector.intake.models import Job
from inspector.pipeline import sweep
from inspector.threads.models import Conversation, Message, Wording
from inspector.threads.telling import contexts

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

ASKED = clowl("m1", "REQ", "oscar", "radar").encode()
ANSWER = clowl("m2", "DONE", "radar", "oscar", minute=5, pid="m1").encode()
TWICE = ASKED.replace(b'"p": "REQ"', b'"p": "REQ", "p": "REQ"')


def codes(cast: Cast, **given: object) -> list[str]:
    return [finding.rule for finding in list_findings(workspace=cast.workspace, **given)]  # type: ignore[arg-type]


def test_what_no_longer_holds_is_closed_and_is_the_same_one_should_it_return(cast: Cast) -> None:
    deliver(cast, ANSWER)
    settle_all()
    (finding,) = Finding.objects.filter(rule="missing-message")
    judge(membership=cast.auditor, findings=[finding.pk], state="accepted", reason="known gap")
    delivery = deliver(cast, ASKED, name="late.log")
    settle_all()
    finding.refresh_from_db()
    assert (finding.holds, finding.state) == (False, "accepted")
    assert finding.ended_at is not None
    assert codes(cast) == []
    from inspector.intake.services import withdraw_delivery

    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="not ours")
    settle_all()
    (again,) = Finding.objects.filter(rule="missing-message", holds=True)
    assert (again.pk, again.state, again.ended_at) == (finding.pk, "accepted", None)
    assert [(act.state, act.by, act.reason) for act in list_acts(finding=again)] == [
        ("accepted", cast.auditor.user, "known gap")
    ]


def test_time_decides_only_where_it_is_asked(cast: Cast) -> None:
    """A request is unanswered once its channel went on for an hour, whatever the clock says."""
    deliver(cast, ASKED)
    settle_all()
    assert codes(cast) == []
    deliver(cast, clowl("x1", "INF", "eve", "oscar", minute=30).replace('"c"', '"d"').encode(), name="b.log")
    settle_all()
    assert codes(cast) == []
    deliver(cast, clowl("x2", "INF", "eve", "oscar", minute=61).replace('"c"', '"d"').encode(), name="c.log")
    settle_all()
    assert codes(cast) == ["unanswered"]


def test_who_judges_and_how(cast: Cast) -> None:
    deliver(cast, TWICE)
    settle_all()
    (finding,) = Finding.objects.filter(rule="said-twice")
    with pytest.raises(PermissionDenied):
        judge(membership=cast.viewer, findings=[finding.pk], state="fixed", reason="")
    with pytest.raises(ValidationError, match="say why"):
        judge(membership=cast.auditor, findings=[finding.pk], state="false-alarm", reason=" ")
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
    settle_all()
    with pytest.raises(PermissionDenied):
        set_rule(membership=cast.auditor, rule="said-twice", is_on=False, severity=None, reason="noise")
    with pytest.raises(ValidationError, match="no rule"):
        set_rule(membership=cast.owner, rule="said-thrice", is_on=False, severity=None, reason="noise")
    set_rule(membership=cast.owner, rule="said-twice", is_on=True, severity=4, reason="we parse strictly")
    assert Finding.objects.get(rule="said-twice").severity == Message.Severity.ERROR
    settle_all()
    assert Finding.objects.get(rule="said-twice").severity == Message.Severity.ERROR
    set_rule(membership=cast.owner, rule="said-twice", is_on=False, severity=None, reason="noise")
    settle_all()
    assert codes(cast) == []
    set_rule(membership=cast.owner, rule="said-twice", is_on=True, severity=None, reason="not noise")
    settle_all()
    assert Finding.objects.get(rule="said-twice", holds=True).severity == Message.Severity.WARNING
    assert RuleChange.objects.count() == 3


def test_suppressing_hides_and_lifting_shows_again(cast: Cast) -> None:
    deliver(cast, TWICE)
    settle_all()
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
    settle_all()
    monkeypatch.setattr(examining, "EXAMINED_BY", "next")
    sweep()
    assert Job.objects.filter(kind=Job.Kind.EXAMINE, state=Job.State.QUEUED).count() == 1
    settle_all()
    assert set(Examination.objects.values_list("version", flat=True)) == {"next"}


def test_a_conversation_costs_the_same_statements_whatever_it_holds(cast: Cast) -> None:
    """Examining asks a constant number of times, for one conversation as for many."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from inspector.audit.findings.seeing import load_scenes

    def count() -> int:
        with CaptureQueriesContext(connection) as caught:
            load_scenes(list(Conversation.objects.all()))
        return len(caught)

    deliver(cast, TWICE)
    settle_all()
    few = count()
    for number in range(20):
        log = say(("ada", "👽"), ("ada", '{def:ok="failed"}'), ("bob", "?Uk/co")).replace('"c"', f'"c{number}"')
        deliver(cast, log.encode(), name=f"{number}.log")
    settle_all()
    assert count() == few


def test_what_another_decoder_told_is_told_anew_in_the_background(cast: Cast) -> None:
    """A store that was filled before tokens were looked for has them in its rows, until the sweep comes by."""
    token = "ghp_" + "a1B2" * 9
    deliver(cast, clowl("m1", "REQ", "oscar", "radar", q=f"use {token}").encode())
    settle_all()
    assert not Message.objects.filter(body__contains=token).exists()
    message = Message.objects.get()
    told_in = message.told_in.replace(contexts.DECODER_VERSION, "1.1", 1)
    Message.objects.update(told_in=told_in, english=f"use {token}", body=message.body.replace("use ", f"use {token} "))
    Conversation.objects.update(native_id=token)
    Examination.objects.update(version="1.1/2")
    sweep()
    settle_all()
    assert not Message.objects.filter(body__contains=token).exists()
    assert not Message.objects.filter(english__contains=token).exists()
    assert not Wording.objects.filter(english__contains=token).exists()
    assert not Conversation.objects.filter(native_id__contains=token).exists()
    assert Examination.objects.get().version == examining.EXAMINED_BY
    assert codes(cast).count("token-in-clear") == 1
