"""Rules over what words mean: a sender's own meanings against the vocabulary, and contexts that are not there."""

from __future__ import annotations

from typing import Final

from .rule import Rule, say

RULES: Final = (
    Rule(
        code="word-redefined",
        title="Term redefined",
        why="From here on the English follows the sender's meaning. Others may understand the opposite.",
        severity="warning",
        group="assumption",
        notes=frozenset({"lambda_lang.redefines-atom"}),
        triggers=(say(("ada", '{def:ok="failed"}'), ("ada", "!st/ok")),),
        passes=(say(("ada", '{def:zq="the tea order"}'), ("ada", "!st/ok")),),
    ),
    Rule(
        code="defined-otherwise",
        title="Term defined in two ways",
        why="Two meanings of one word stand in the conversation. Who reads it may follow the other one.",
        severity="warning",
        group="assumption",
        notes=frozenset({"lambda_lang.defined-otherwise"}),
        triggers=(
            say(("ada", '{def:zq="burn"}!ta'), ("bob", '{def:zq="keep"}!ta')),
            say(("ada", '{def:zq="burn"}!ta'), ("ada", '{def:zq="keep"}!ta')),
        ),
        passes=(say(("ada", '{def:zq="burn"}!ta'), ("bob", '{def:zq="burn"}!ta'), ("bob", "!Iav/zq")),),
    ),
    Rule(
        code="gloss-differs",
        title="Sender's gloss contradicts the vocabulary",
        why="The sender's meaning and the vocabulary's differ; one of the two misleads.",
        severity="notice",
        group="assumption",
        notes=frozenset({"lambda_lang.gloss-differs"}),
        triggers=(say(("ada", "!Ide(death)")),),
        passes=(say(("ada", "!Ide(decide)")),),
    ),
)
