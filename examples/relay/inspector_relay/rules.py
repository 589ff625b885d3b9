"""A rule over relay messages. What cannot be read of them the inspector's own rules find by the group of its note."""

from __future__ import annotations

from inspector.audit.rules import Rule

RULES = (
    Rule(
        code="relay-own-errand",
        title="Errand asked of oneself",
        why="Nobody else may have seen what was asked for, and the agent that runs it also judges it.",
        severity="notice",
        group="sequence",
        cites="examples/relay",
        notes=frozenset({"relay.own-errand"}),
    ),
)
