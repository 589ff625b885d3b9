"""Writes the parts of the documents that come from the code: worked records, note codes, glossaries.

    make docs                            rewrites docs/record.md, docs/dialects.md, lifecycle.md, findings.md
    .venv/bin/python docs/generate.py --check     only says what is out of date, and ends with 1 if anything is

A part stands between `<!-- begin: … -->` and `<!-- end -->`; everything else in a document is written by hand and left
alone. tests/test_docs.py holds the documents against this file and, for the worked records, against the codecs.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent / "codecs"), str(DOCS.parent)]

import dialects  # noqa: E402  # the codecs' folder is a source root, not a package
from inspector.threads import states  # noqa: E402  # plain tables: they need neither settings nor a database

PART = re.compile(r"(<!-- begin: ([a-z]+) ([a-z0-9_]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# The wire of each worked record, and the envelope it came in.
WORKED: dict[str, tuple[str, dict[str, Any] | None]] = {
    "clowl": (
        '{"clowl":"0.2","mid":"c08","ts":1795119565,"tid":"t-7c41e09ab35d","pid":"c05","p":"ERR","from":"executor",'
        '"to":"coordinator","cid":"2611","body":{"t":"invoice-run","d":{"code":"E007","msg":"The tax service did not '
        'answer within 30 seconds","retry":true}}}',
        None,
    ),
    "mcp": (
        '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"send","arguments":{"to":"executor",'
        '"text":"@a3|f0|cg7|S0|d2|T7|k2|q1|t\\"batch 2 again\\"#"}}}',
        {"at": "2026-11-16T08:30:00Z", "from": "desk"},
    ),
    "otel": (
        '{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"eee19b7ec3c1b173",'
        '"name":"execute_tool ask","kind":1,"startTimeUnixNano":"1795118400000000000",'
        '"endTimeUnixNano":"1795118400250000000","attributes":['
        '{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},'
        '{"key":"gen_ai.agent.name","value":{"stringValue":"planner"}},'
        '{"key":"gen_ai.tool.name","value":{"stringValue":"ask"}},'
        '{"key":"gen_ai.tool.call.result","value":{"stringValue":"@a3|f0|cg7|S0|d2|T7|k2|q1|t\\"batch 2 again\\"#"}}]}',
        None,
    ),
    "a2a": (
        '{"jsonrpc":"2.0","id":"r-7","result":{"kind":"task","id":"t-41","contextId":"c-9","status":{"state":"completed",'
        '"timestamp":"2026-11-16T08:31:00Z"},"artifacts":[{"artifactId":"a1","name":"count","parts":[{"kind":"text",'
        '"text":"41 crates"}]}]}}',
        {"from": "counter"},
    ),
    "nslip": ('@a3|f0|cg7|S0|d2|T7|k2|q1|t"batch 2 again"#', None),
    "slip": ("SLIP v1 critic executor EvalReject thread2611 batch 2 has no tax", None),
    "lambda_lang": (
        ".Uf/re{pr:^,ti:$60s}",
        {"at": "2026-11-17T09:14:10+01:00", "from": "desk", "to": ["atlas"], "conversation": "order-5521"},
    ),
    "agent_lingua": (
        "👽42|@H|~+1d2h|$Q2FsbCB0aGUgbWlsbA==\n--👽lingua/0.4@agent-lingua",
        {"at": "2026-11-16T08:30:00Z", "from": "buyer", "conversation": "supply-2026-47"},
    ),
    "chat": (
        '{"parentUuid":"u2","isSidechain":false,"sessionId":"sess-1","uuid":"u3","timestamp":"2026-11-21T09:00:03.000Z",'
        '"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1",'
        '"name":"count","input":{"what":"bricks","limit":50}}]}}',
        None,
    ),
    "fipa": (
        "(REQUEST\n :sender (agent-identifier :name buyer@shop)\n :receiver (set (agent-identifier :name mill@farm))\n"
        ' :content "(deliver flour 40)"\n :reply-with b7 :reply-by 20261121T010000000Z\n :protocol fipa-request'
        " :conversation-id supply-48)",
        None,
    ),
}
# What the document shows as text beside the JSON.
TOLD = ("english", "also", "gloss")


def show_record(reading: dialects.Reading) -> dict[str, Any]:
    """A reading as the document shows it: without the tree and its layers, the told texts, and whatever is absent."""
    shown = reading.to_dict()
    for name in ("fields", "layers", "candidates"):
        del shown[name]
    for message in shown["messages"]:
        for name in TOLD:
            del message[name]
    kept = leave_out_absent(shown)
    assert isinstance(kept, dict)  # noqa: S101  # it is never empty: the dialect has a name
    return kept


def leave_out_absent(value: Any) -> Any:
    """The value without names that are null, false or empty, at any depth."""
    if isinstance(value, dict):
        kept = {name: leave_out_absent(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in (None, False, [], {})}
    if isinstance(value, list):
        return [leave_out_absent(inner) for inner in value]
    return value


def write_record(slug: str) -> str:
    """One worked record: wire, envelope, JSON, English, what stands beside it, gloss."""
    wire, envelope = WORKED[slug]
    reading = dialects.decode(wire, dialects.envelope_of(envelope) if envelope else None)
    lines = ["The raw text:", "", *fence("text", wire)]
    if envelope:
        lines += ["Its envelope:", "", *fence("json", json.dumps(envelope, ensure_ascii=False))]
    lines += ["The record:", "", *fence("json", json.dumps(show_record(reading), ensure_ascii=False, indent=2))]
    for message in reading.messages:
        inside = " of what is inside" if message.dialect else ""
        lines += [f"The English{inside}:", "", f"> {message.sentence}", ""]
        if message.also:
            lines += ["Beside it: " + "; ".join(segment.text for segment in message.also) + ".", ""]
        if message.gloss:
            lines += ["The gloss:", "", *fence("text", message.gloss_line)]
    return "\n".join(lines)


def fence(language: str, text: str) -> list[str]:
    """The text as a fenced block."""
    return [f"```{language}", text, "```", ""]


def write_notes(slug: str) -> str:
    """The table of a dialect's note codes."""
    rows = ["| code | severity | group | what it says | source |", "|---|---|---|---|---|"]
    for note in dialects.get_dialect(slug).notes:
        cells = (f"`{note.code}`", note.severity, note.group, note.about, note.cites or "")
        rows.append(write_row(cells))
    return "\n".join(rows) + "\n"


def write_glossary(slug: str) -> str:
    """A dialect's glossary, one table a kind of term."""
    lines: list[str] = []
    terms = sorted(enumerate(dialects.get_dialect(slug).glossary), key=lambda pair: pair[1].kind)
    for kind, group in groupby(terms, key=lambda pair: pair[1].kind):
        lines += [f"**{kind}**", "", "| code | name | meaning | source |", "|---|---|---|---|"]
        for _, term in sorted(group, key=lambda pair: pair[0]):
            lines.append(write_row((show_code(term.code), term.name, term.meaning, term.cites or "")))
        lines.append("")
    return "\n".join(lines)


def show_code(code: str) -> str:
    """A code as Markdown shows it verbatim, backticks included."""
    return f"`` {code} ``" if "`" in code else f"`{code}`"


def write_row(cells: tuple[str, ...]) -> str:
    """A row of a Markdown table; a bar inside a cell is escaped, a line end becomes a space."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def write_acts(_: str) -> str:
    """The acts that all dialects share."""
    rows = ["| performative | meaning |", "|---|---|"]
    rows += [write_row((f"`{name}`", meaning)) for name, meaning in dialects.PERFORMATIVES.items()]
    return "\n".join(rows) + "\n"


def write_lifecycle(table: str) -> str:
    """One of the tables of a task's lifecycle."""
    return "\n".join(LIFECYCLE[table]()) + "\n"


def list_statuses() -> list[str]:
    """What status words mean to a task."""
    rows = [
        write_row((meaning, ", ".join(f"`{word}`" for word in words))) for meaning, words in states.STATUS_WORDS.items()
    ]
    return ["| it means | words |", "|---|---|", *rows]


def list_signs() -> list[str]:
    """What each act is to a task, in the order in which the rows are tried."""
    rows = [
        write_row((f"`{sign.event}`", ", ".join(sorted(sign.acts)), sign.by or "anyone", say_conditions(sign)))
        for sign in states.EVENT_RULES
    ]
    return ["| event | acts | by | and |", "|---|---|---|---|", *rows]


def say_conditions(sign: states.EventRule) -> str:
    """What else must hold, in words."""
    flags = {
        "is_retryable": "it may be tried again",
        "has_result": "it names a result",
        "has_progress": "it says how far it is",
        "is_again": "it is the act that was asked with",
        "is_waiting": "the task waits",
    }
    said = [f"the status means {sign.status}"] if sign.status else []
    said += [f"the task wants {' or '.join(sorted(sign.wish))}"] if sign.wish else []
    said += [f"it answers a {' or '.join(sorted(sign.answers))}"] if sign.answers else []
    said += [
        words if getattr(sign, name) else f"not: {words}"
        for name, words in flags.items()
        if getattr(sign, name) is not None
    ]
    return "; ".join(said)


def list_transitions() -> list[str]:
    """Where each event leads."""
    rows = [
        write_row(
            (
                f"`{row.event}`",
                states.EVENTS[row.event],
                ", ".join(str(source) or "nothing yet" for source in row.sources),
                f"**{row.to}**",
                row.why,
            )
        )
        for row in states.TRANSITIONS
    ]
    return ["| event | who acted … | from | to | because |", "|---|---|---|---|---|", *rows]


def write_rules(_: str) -> str:
    """The rules of audit, the gravest first."""
    rules = sorted(load_rules().values(), key=lambda rule: (-rule.rank, rule.code))
    rows = ["| rule | severity | group | what it finds | why that matters |", "|---|---|---|---|---|"]
    rows += [write_row((f"`{rule.code}`", rule.severity, rule.group, rule.title, rule.why)) for rule in rules]
    return "\n".join(rows) + "\n"


def load_rules() -> Mapping[str, Any]:
    """The rules; they name rows of the database, so that Django must know its models. No database is asked."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")
    django.setup()
    from inspector.audit.rules import RULES

    return RULES


LIFECYCLE: dict[str, Callable[[], list[str]]] = {
    "statuses": list_statuses,
    "signs": list_signs,
    "transitions": list_transitions,
}

WRITERS: dict[str, Callable[[str], str]] = {
    "record": write_record,
    "notes": write_notes,
    "glossary": write_glossary,
    "acts": write_acts,
    "lifecycle": write_lifecycle,
    "findings": write_rules,
}


def renew(text: str) -> str:
    """A document with each of its generated parts written anew."""

    def write(found: re.Match[str]) -> str:
        return f"{found[1]}\n{WRITERS[found[2]](found[3]).rstrip()}\n\n{found[4]}"

    return PART.sub(write, text)


def find_stale() -> Iterator[tuple[Path, str]]:
    """The documents that are out of date, with what should stand in them."""
    for path in sorted(DOCS.glob("*.md")):
        held = path.read_text(encoding="utf-8")
        wanted = renew(held)
        if wanted != held:
            yield path, wanted


def main(arguments: list[str]) -> int:
    """Write, or with `--check` only compare. Ends with 1 where a comparison failed, with 2 for wrong usage."""
    if arguments not in ([], ["--check"]):
        print("usage: docs/generate.py [--check]", file=sys.stderr)
        return 2
    stale = list(find_stale())
    for path, wanted in stale:
        print(f"{path.name} {'is out of date' if arguments else 'written'}")
        if not arguments:
            path.write_text(wanted, encoding="utf-8")
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
