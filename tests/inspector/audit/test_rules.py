"""Each rule finds what its logs show, and nothing in those that only look alike."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from django.utils import timezone

import dialects
from inspector.accounts.models import Channel
from inspector.accounts.services import create_api_key
from inspector.audit.models import Finding
from inspector.audit.rules import BY_NOTE, RULES
from inspector.audit.rules.rule import SEVERITIES
from inspector.intake.framing import take_stream
from inspector.intake.models import Door
from inspector.intake.services import open_delivery
from inspector.threads.models import Message
from inspector.threads.terms import MARK_CHARACTERS

from ..conftest import Cast, deliver, resolve_all
from .rule_logs import LOGS

pytestmark = pytest.mark.django_db

FEW_NOTES = 6


def test_each_rule_finds_what_its_logs_show(cast: Cast) -> None:
    """All logs in one workspace, each in a channel of its own; what holds today, and what is due by now."""
    wanted, unwanted = {}, {}
    for code, (triggers, passes) in LOGS.items():
        for kind, logs, where in (("on", triggers, wanted), ("off", passes, unwanted)):
            for number, log in enumerate(logs):
                name = f"{kind}-{code}-{number}"
                channel = Channel.objects.create(workspace=cast.workspace, name=name[:64])
                deliver(cast, log.encode(), channel=channel, name=f"{name}.log")
                where[channel.pk] = code
    resolve_all()
    # Of notes that are few, each stands in a log of its rule.
    noted = defaultdict(set)
    for channel, atoms in Message.objects.filter(channel__in=list(wanted)).values_list("channel", "atoms"):
        noted[wanted[channel]] |= {atom[9:] for atom in atoms if atom.startswith("note=", MARK_CHARACTERS)}
    few = [rule for rule in RULES.values() if LOGS[rule.code].triggers and len(rule.notes) <= FEW_NOTES]
    assert {rule.code: rule.notes - noted[rule.code] for rule in few if rule.notes - noted[rule.code]} == {}
    found = defaultdict(set)
    for finding in Finding.objects.filter(holds=True):
        if finding.due_at is None or finding.due_at < timezone.now():
            found[finding.channel_id].add(finding.rule)
    assert {code: found[channel] for channel, code in wanted.items() if code not in found[channel]} == {}
    assert {code: found[channel] for channel, code in unwanted.items() if code in found[channel]} == {}


def test_rules_are_declared_soundly() -> None:
    """Every note that a rule gathers exists and belongs to one rule; every rule shows logs that it lets pass."""
    known = {note.code for dialect in dialects.all_dialects() for note in dialect.notes} | {"text.hidden"}
    # The last is a note of every dialect.
    assert set(BY_NOTE) <= known
    assert sum(len(rule.notes) for rule in RULES.values()) == len(BY_NOTE)
    assert RULES.keys() == LOGS.keys()
    for rule in RULES.values():
        assert rule.severity in SEVERITIES[1:]
        assert rule.notes or rule.look
        assert LOGS[rule.code].passes, rule.code
        # What takes a key of the keyring or of the API to find has a test of its own.
        assert LOGS[rule.code].triggers or rule.code in ("not-authentic", "sender-not-of-key"), rule.code


def test_a_sender_that_is_not_one_of_its_keys_agents(cast: Cast) -> None:
    lines = [json.dumps({"raw": "hello", "from": name, "conversation": name}).encode() for name in ("ada", "eve")]
    for number, agents in enumerate((["ada", "bob"], [])):
        key, _ = create_api_key(workspace=cast.workspace, name=f"k{number}", scopes=["ingest"], agents=agents)
        delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.API, key=key)
        take_stream(delivery=delivery, chunks=[b"\n".join(lines)])
    resolve_all()
    found = Finding.objects.filter(rule="sender-not-of-key")
    assert [(each.sender, each.text) for each in found] == [
        ("eve", "It came by the key 'k0', whose agents are not called 'eve'.")
    ], "what came by a key that names no agents is nobody's in particular"
