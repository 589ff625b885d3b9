"""The words of the screen: phrases that were replaced by the field's own terms must not come back."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TypeGuard

from dialects import all_dialects
from dialects.clowl.tables import FIELDS
from tests.each import for_each

PROJECT = Path(__file__).parents[1]
# What an auditor reads: pages, the words that Python gives them, and the documents.
READ = (
    "templates/**/*.html",
    "inspector/pages/**/*.py",
    "inspector/audit/rules/*.py",
    "inspector/api/*.py",
    "docs/*.md",
    "README.md",
)
# Modules whose texts reach a page, a file or the description of the API.
SPEAKING = (
    "inspector/pages/**/*.py",
    "inspector/api/*.py",
    "inspector/audit/**/*.py",
    "inspector/exports/*.py",
    "inspector/search/*.py",
    "inspector/threads/agents.py",
    "inspector/threads/states.py",
    "inspector/threads/tasks.py",
    "inspector/browsing/*.py",
    "inspector/opening.py",
    "inspector/search/registry.py",
    "inspector/trail/*.py",
    "inspector/intake/*.py",
    "inspector/keyring/*.py",
    "inspector/accounts/*.py",
)
# A phrase that must not come back, and what is said instead.
REPLACED = {
    "stands still": "is stalled",
    "stands open": "open findings",
    "gravest open finding": "most severe open finding",
    "among equals": "then",
    "all that hold": "all current",
    "no longer true": "no longer applies",
    "What you make of it": "Decision",
    "Judge the chosen": "Apply to selected",
    "whoever looks next": "the next reader",
    "the place lit": "at this spot",
    "What is the matter": "Details",
    "It rests on": "Evidence",
    "Nothing to object to": "No issues",
    "Of concern": "Concern",
    "Keep this verdict": "Sign off",
    "Nobody has spoken": "No verdicts yet",
    ">Take it<": "Claim",
    "Give back": "Release",
    "Hold longer": "Extend",
    "Who looked": "Reviewed",
    "errors of the wire": "decoding errors",
    "what never came": "missing messages",
    "nobody by name</": "no recipient",
    'that no dialect reads"': "Unreadable message",
    "An end that was taken back": "Outcome reversed",
    "A secret in clear": "Exposed secret",
    'could not be had"': "unavailable",
    "that nobody agreed on": "without handshake",
    "known word another meaning": "Term redefined",
    "first word back": "first reply",
    "no wire is believed": "States come only from the messages",
    "Says it can": "Capabilities",
    "It is one with another agent": "Same as another agent",
    "Give the name": "Save name",
    "As answers": "Threaded",
    "Wire beside": "Raw: side",
    "Also carries": "More fields",
    "Around it": "Context",
    "silent here": "sent nothing",
    "look at it otherwise": "Preview only",
    "stays to be seen": "a trace remains",
    "Nothing received answers it": "No reply received",
    "What can be asked": "Search reference",
    "To begin with</": "Defaults",
    "Load all as chosen": "Import all",
    "hrow away</": "Discard",
    "Said of it": "Overrides",
    "kept aside": "kept",
    "This is not yours to do": "You do not have permission",
    "To the conversations": "Back to the overview",
    "do not go together": "Wrong username or password",
    "The inspector made a mistake": "Something went wrong",
    "when the worker begins": "Snapshot taken when the export starts",
    "Keep it, sealed": "Save key",
    "Make the key": "Create key",
    "those that stand so": "filter by state",
    "No deed is like this": "No matching actions",
    "its trail": "history",
    "word back": "first reply",
    'nobody by name"': "no named recipient",
    "called so</": "alias",
    "Take back": "Undo withdrawal, Withdraw",
    "took this back": "withdrew this",
    "hrown away": "discarded",
    "after framing": "after importing",
    ">Framed<": "Imported",
    "Asked by {%": "A asked B",
    "thing,things": "more fields",
    "what looks like {": "looks like an exposed",
    "hoever made": "the member who made",
    "gravest note": "most severe note",
    "no time on the wire": "no time in the message",
    "What changed meanwhile": "Changed meanwhile",
    "What was said</": "Transcript",
    "With what was judged": "With closed findings",
    "What is lost": "Losses",
    ">What is drawn<": "Population",
    ">What it holds<": "Contents",
    'label="What it is"': "Type",
    "What a key opens": "decrypted text",
    "How it is reviewed": "Review",
    "How it was drawn</": "Method",
    "Draw it": "Draw sample",
    "Who reviews each": "Reviewers",
    "neither of whom learns": "Two, independently",
    "whatever there is": "Leave empty for all",
    "From this severity on": "Minimum severity",
    "Show times in it": "Save time zone",
    "How you know": "Reason",
    "said by</": "from",
    "to search by": "unknown field",
    "as the wire says": "in the message",
    "after what came before": "State of the conversation",
    "were meant by the query": "matched the query",
    "has these ways": "a list of the role's rights",
    "what it named is gone": "the page was removed",
    'title="What ': "a noun",
}
# A clause as the subject of a sentence, and the old word for processing a conversation; in the documents and on pages.
# What the code and the API are called is in backticks in a document, and in tags on a page.
CLAUSES = {
    r"\bwhoever\b": "name the person",
    r"\bthose (?:that|who|which|whose)\b": "name the thing",
    r"\bsettl(?:ed|ing)\b": "processed, on a page; resolved, of blocks",
    r"\b(?:telling|arriving|deeds?|whence)\b": "English, inserting, action, source",
    r"\btold (?:again|otherwise|anew|in about)\b|\bnot told\b": "re-read, reworded, processed, not processed yet",
    r"\btold to a webhook\b|\bmay be told\b": "sent to a webhook, may be seen",
    r"(?:^|[.:;] |\| )What (?:is|was|are|were|has|can|cannot|comes|came|stands|no|nothing)\b": "the subject first",
}
_CODE = re.compile(r"```.*?```|`[^`]*`|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<script.*?</script>", re.DOTALL)
_REMARK = re.compile(r"\{% comment %\}.*?\{% endcomment %\}", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SAID = re.compile(r'\b(?:title|aria-label|placeholder)="([^"]*)"')


@cache
def read_files() -> dict[Path, str]:
    texts = {path: path.read_text() for pattern in READ for path in PROJECT.glob(pattern)}
    assert len(texts) > 200
    return texts


@for_each(REPLACED)
def test_a_replaced_phrase_stays_away(phrase: str) -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{number}"
        for path, text in read_files().items()
        if phrase in text
        for number, line in enumerate(text.splitlines(), 1)
        if phrase in line
    ]
    assert not found, f"say “{REPLACED[phrase]}”"


def read_document(path: Path) -> str:
    """A document without its code."""
    return _CODE.sub("", path.read_text())


def read_page(path: Path) -> str:
    """The words of a template that reach the screen, a stretch a line: hints and names for screen readers as well."""
    text = _CODE.sub("", _REMARK.sub("", path.read_text()))
    return "\n".join((*_SAID.findall(text), _TAG.sub("\n", text)))


def read_strings(path: Path) -> str:
    """The texts of a module, a text a line; of the API's endpoints and shapes their descriptions too."""
    tree = ast.parse(path.read_text())
    bare = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    told = {
        ast.get_docstring(each) or "" for each in ast.walk(tree) if path.parent.name == "api" and is_described(each)
    }
    texts = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in bare
    ]
    # A word alone is a name of the code.
    return "\n".join(text for text in (*told, *texts) if " " in text and "SELECT" not in text)


def is_described(node: ast.AST) -> TypeGuard[ast.ClassDef | ast.FunctionDef]:
    """Whether the API's description has the docstring of this class or method."""
    if isinstance(node, ast.ClassDef):
        return node.name.endswith("Serializer")
    return isinstance(node, ast.FunctionDef) and node.name in ("get", "post", "put", "patch", "delete")


@cache
def read_texts() -> dict[Path, str]:
    """What is read and said, without code and markup."""
    texts = {
        **{path: read_document(path) for path in (*PROJECT.glob("docs/*.md"), PROJECT / "README.md")},
        **{path: read_page(path) for path in PROJECT.glob("templates/**/*.html")},
        **{path: read_strings(path) for place in SPEAKING for path in PROJECT.glob(place)},
    }
    assert len(texts) > 300
    return texts


@for_each(CLAUSES)
def test_the_subject_comes_first(clause: str) -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {line.strip()[:120]}"
        for path, text in read_texts().items()
        for line in text.splitlines()
        if re.search(clause, line.strip(), re.IGNORECASE if clause.startswith(r"\b") else 0)
    ]
    assert not found, f"say it otherwise: {CLAUSES[clause]}\n" + "\n".join(found)


def test_every_head_of_a_column_says_what_stands_below_it() -> None:
    heads = [
        (str(path.relative_to(PROJECT)), head)
        for path in PROJECT.glob("templates/**/*.html")
        for head in re.findall(r"<th\b(?![^>]*scope=\"row\")[^>]*>", path.read_text())
    ]
    assert len(heads) > 100
    assert [
        each
        for each in heads
        if ' scope="col"' not in each[1]
        or not re.search(r' title="[^"]{5,}"', each[1])
        or re.search(r' title="(?:How|Since|That|What|When|Where|Whether|Which|Who|Why)\b', each[1])
    ] == []


def test_a_meaning_is_no_clause() -> None:
    """Of a word of a dialect's glossary, and of the fields of CLowl."""
    meanings = [entry.meaning for dialect in all_dialects() for entry in dialect.glossary]
    meanings += [meaning for _, meaning in FIELDS.values()]
    assert len(meanings) > 800
    clause = re.compile(r"(?:to )?(?:how|what|when|where|whether|which|who|whom|whose|why)\b", re.IGNORECASE)
    assert [meaning for meaning in meanings if clause.match(meaning)] == []
