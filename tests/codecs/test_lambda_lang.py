"""Λ Lambda beyond its vectors: generated statements, worst cases, look-alikes, and what a conversation holds."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import dialects
from dialects.lambda_lang import DIALECT, sayings
from dialects.lambda_lang.lexicon import find_word
from dialects.lambda_lang.protocol import ERRORS
from dialects.lambda_lang.vocabulary import WORDS, histories, load_vocabulary, other_meanings

from ..each import for_each
from ..timing import is_within
from .cases import Case, cases
from .test_laws import assert_covers

# A tiny vocabulary of this test's own: atom, and the word its English must use.
VERBS = {"k": "know", "f": "find", "v": "verif", "h": "ha", "w": "want", "l": "learn"}
THINGS = {
    "co": "consciousness",
    "da": "data",
    "ta": "task",
    "er": "error",
    "tr": "truth",
    "nd": "node",
    "ss": "session",
}
ACTS = {"?": "query", "!": "inform", ".": "request", "~": "inform"}
NAMES = ["kiln", "loom", "be", "fe", "alpha", "task-7", "n42", "v1.2", "x_9"]
AGENTS = ["oscar", "radar", "A1", "B", "hub-3"]


@dataclass
class Wanted:
    """A statement built before its wire: what the record must hold, and what its English must mention."""

    act: str
    body: str
    mentions: list[str]
    sender: str | None = None
    receivers: tuple[str, ...] = ()
    message_id: str | None = None
    version: str | None = None
    defines: list[tuple[str, str]] = field(default_factory=list)
    chunk: tuple[str, int, int] | None = None

    def write(self) -> str:
        wire = ""
        if self.sender and len(self.receivers) == 1:
            wire += f"{self.sender} -> {self.receivers[0]}: "
        elif self.sender:
            wire += f"{self.sender}: "
        if self.version:
            wire += f"@v{self.version}" + (f"#id:{self.message_id}" if self.message_id else "") + " "
        if self.chunk:
            wire += "@msg:{}#{}/{} ".format(*self.chunk)
        if self.receivers and not (self.sender and len(self.receivers) == 1):
            wire += f"@{','.join(self.receivers)}: "
        for name, value in self.defines:
            wire += f'{{def:{name}="{value}"}}'
        return f"{wire}{self.act}{self.body}"


def build(rng: random.Random) -> Wanted:
    """One statement at random, its record first."""
    act = rng.choice(list(ACTS))
    mentions: list[str] = []
    verb, thing = rng.choice(list(VERBS)), rng.choice(list(THINGS))
    shape = rng.randrange(5)
    if shape == 0:
        body = f"{rng.choice('IUAH')}{verb}/{thing}"
        mentions += [VERBS[verb], THINGS[thing]]
    elif shape == 1:
        name = rng.choice(NAMES)
        body = f"{thing} id={name}"
        mentions += [THINGS[thing], name]
    elif shape == 2:
        key, number = rng.choice(["me", "us", "ti"]), str(rng.choice([0, 7, 42, 4.25, 99999, "75%", "2.1.0"]))
        body = f"{thing} id={rng.choice(NAMES)} {key}={number}"
        mentions += [THINGS[thing], number]
    elif shape == 3:
        said = "".join(rng.choice("abc XYZ 019 .,;!?{}[]<>") for _ in range(rng.randrange(1, 20)))
        body = f'{rng.choice("IU")}s/"{said}"'
        mentions += [f'"{said}"']
    else:
        unknown = "".join(rng.choice("qxjyg") for _ in range(rng.randrange(3, 9)))
        body = f"nd {unknown}"
        mentions += ["node", f'unknown "{unknown}"']
    wanted = Wanted(act, body, mentions)
    if rng.random() < 0.4:
        wanted.sender = rng.choice(AGENTS)
        mentions.append(wanted.sender)
    if rng.random() < 0.4:
        wanted.receivers = tuple(rng.sample([name for name in AGENTS if name != wanted.sender], rng.randrange(1, 3)))
        mentions += wanted.receivers
    if rng.random() < 0.3:
        wanted.version = "2.0"
        wanted.message_id = rng.choice([None, "m1", "9f.2", "abc-7"])
    if rng.random() < 0.2:
        wanted.chunk = (rng.choice(["m7", "x"]), rng.randrange(1, 4), 3)
    if rng.random() < 0.3:
        wanted.defines = [(name, f"the {name} of {rng.randrange(99)}") for name in rng.sample(["zq", "qz", "xq"], 2)]
    return wanted


@for_each(range(300))
def test_a_generated_statement_holds_what_was_built(seed: int) -> None:
    wanted = build(random.Random(seed))
    wire = wanted.write()
    reading = dialects.decode(wire, dialect="lambda_lang")
    (message,) = reading.messages
    assert (message.performative, message.native_act, message.content) == (ACTS[wanted.act], wanted.act, wanted.body)
    assert (message.sender, message.receivers) == (wanted.sender, wanted.receivers)
    assert (message.message_id, message.attributes.get("version")) == (wanted.message_id, wanted.version)
    assert [(one.name, one.value) for one in message.defines] == wanted.defines
    if wanted.chunk:
        of, number, count = wanted.chunk
        assert message.attributes["chunk"] == {"of": of, "number": number, "count": count}
    for word in wanted.mentions:
        assert word.lower() in message.sentence.lower(), f"{word!r} is missing from {message.sentence!r}"
    told = message.sentence + " ".join(part.text for part in message.also)
    for name, value in wanted.defines:
        assert f'{name} as "{value}"' in told
    assert_covers(reading)
    written = dialects.encode(reading)
    assert (written.wire, written.losses) == (re.sub(r"\}(?=[?!.~])", "}", wire), ())


@for_each(range(60))
def test_several_statements_are_several_messages(seed: int) -> None:
    rng = random.Random(seed)
    built = [build(rng) for _ in range(rng.randrange(2, 6))]
    wire = " ".join(f"{one.act}{one.body}" for one in built)
    reading = dialects.decode(wire, dialect="lambda_lang")
    assert [(one.part, one.native_act, one.content) for one in reading.messages] == [
        (number, one.act, one.body) for number, one in enumerate(built, 1)
    ]


@for_each(["alpha", "before", "deploy", "which", "about", "cannot", "rollback"])
def test_an_english_word_is_never_divided(word: str) -> None:
    (message,) = dialects.decode(f"!nd {word} ok", dialect="lambda_lang").messages
    assert f'unknown "{word}"' in message.sentence
    assert any(part.basis == "unknown" and word in part.text for part in message.english)


def test_a_divided_word_is_marked_inferred() -> None:
    (message,) = dialects.decode("!fd/X", dialect="lambda_lang").messages
    assert message.sentence == 'Found X (perhaps: "fd" is read as find + done).'
    assert message.english[0].basis == "inferred"


def test_two_readings_are_both_named() -> None:
    (message,) = dialects.decode("!nd prd ok", dialect="lambda_lang").messages
    (note,) = (note for note in message.notes if note.code == "lambda_lang.ambiguous-word")
    assert "process" in note.text
    assert "read" in note.text


@for_each(
    [
        ("!I-av", "not"),
        ("!I nr av", "never"),
        ("!I no av", "not"),
        ("!I-c/la", "cannot"),
        ("!cg- er", "less or negative"),
        ("!I-k/co&U-k/tr", "you do not know"),
        (".U-rn/ta&-sp/nd", "do not stop"),
        ("!Hw-k", "less"),
        (".-sp nd", "not"),
        ("?U-k", "not"),
        ("!vn-=2 ok", "not"),
        ("!nd rn<ss-op", "not"),
        ("!ta-ok", "not"),
    ]
)
def test_no_negation_is_lost(wire: str, said: str) -> None:
    (message,) = dialects.decode(wire, dialect="lambda_lang").messages
    assert re.search(rf"\b{said}\b", message.sentence), message.sentence


def test_bytes_that_mean_nothing_are_hardly_ever_taken() -> None:
    """Single letters among signs, as in `>v>^I`: one of a hundred random texts may be taken, no more."""
    rng = random.Random(24)
    noise = ["".join(chr(rng.randrange(33, 127)) for _ in range(rng.randrange(2, 14))) for _ in range(2_000)]
    taken = [text for text in [">v>^I", "~b]", "!6s,}", *noise] if dialects.detect(text)[0].dialect == "lambda_lang"]
    assert not {">v>^I", "~b]", "!6s,}"} & set(taken)
    assert len(taken) <= 20


def told_in_order(*said: tuple[str, str]) -> list[dialects.Message]:
    """The messages of a conversation, each (speaker, wire), told one after the other in one context."""
    context = dialects.Context()
    found = []
    for position, (speaker, wire) in enumerate(said, 1):
        context.record, context.position = f"r{position}", position
        reading = dialects.read(wire, dialects.Envelope(sender=speaker), dialect="lambda_lang")
        found.extend(dialects.tell(reading, context).messages)
    return found


def test_a_definition_is_shown_with_its_author_and_place() -> None:
    *_, last = told_in_order(("A", "!Ik"), ("B", '{def:ok="it failed"}'), ("A", "!nd ok"))
    assert 'ok (means "it failed", as defined by B in message 2; "success" in the vocabulary)' in last.sentence
    (piece,) = (part for part in last.english if "it failed" in part.text)
    assert piece.source == ("r2", 1)
    assert piece.spans == ((0, 4, 6),)


def test_the_latest_definition_holds() -> None:
    *_, last = told_in_order(("A", '{def:zz="one"}'), ("B", '{def:zz="two"}'), ("A", "!Iv/zz"))
    assert 'means "two", as defined by B in message 2; A defined it as "one" in message 1' in last.sentence


def test_a_definition_holds_within_its_own_record_from_its_part_on() -> None:
    first, second = told_in_order(("A", '!Iv/zz {def:zz="late"}!Iv/zz'))
    assert 'unknown "zz"' in first.sentence
    assert 'zz (means "late", as defined here)' in second.sentence


def test_domains_last_until_they_are_reset() -> None:
    messages = told_in_order(("A", "@a !nd ok"), ("B", "!ch ok"), ("A", "@* !ch ok"), ("B", "!ch ok"))
    assert ["cache" in message.sentence for message in messages] == [False, True, False, False]


def test_a_declared_version_lasts() -> None:
    messages = told_in_order(("A", "!If/sp"), ("A", "@v1.0 !If/sp"), ("B", "!If/sp"))
    assert [message.sentence.partition(": ")[2] for message in messages] == [
        "I find the stop.",
        "I find space. The message also speaks Lambda v1.0.",
        "I find space.",
    ]


def test_context_is_told_as_entries() -> None:
    context = dialects.Context()
    context.record, context.position = "r", 4
    wire = 'A: @v2.0#h {def:zz="x"}{ns:cd}{topic:t}{grp:g,mbr:[A1]}!Ik'
    told = dialects.tell(dialects.read(wire, dialect="lambda_lang"), context)
    kinds = {entry.kind: (entry.name, entry.value) for entry in told.entries}
    assert kinds["def"] == ("zz", "x")
    assert kinds["ns"] == ("active", "cd")
    assert kinds["topic"] == ("active", "t")
    assert kinds["vocabulary"] == ("active", "2.0")
    assert kinds["group"] == ("g", ["A1"])
    assert kinds["session"][1] == "2.0"
    assert {(entry.speaker, entry.source, entry.position) for entry in told.entries} == {("A", ("r", 1), 4)}


def test_telling_twice_says_the_same() -> None:
    said = (("A", '@v1.8 {def:zz="x"}!Ian/zz'), ("B", "<+"), ("A", "@a !ch zz"))
    assert [one.to_dict() for one in told_in_order(*said)] == [one.to_dict() for one in told_in_order(*said)]


@for_each(
    [
        "The deploy window opens at nine.",
        "# A title",
        "## Part two",
        "> quoted from a mail",
        ">I think so too",
        "- item",
        "**bold** words",
        "!important",
        "!ls -la",
        "!!",
        "./run.sh --fast",
        "~/bin/tool",
        ".gitignore",
        ". script.sh",
        "? what is it",
        "?is it me or no",
        "...and so we go",
        '?fnd @fs {path:"*.log"}',
        "!del @fs",
        "Note: !important",
        "From: ops@example.org",
        '{"p":"REQ","body":{}}',
        "{ color: red; }",
        "@bob: see this",
        "#!/bin/sh",
        "#urgent #ops",
        "!Hello world",
        "?How are you",
        "~100 users",
        "!= x",
        ">= 5",
        "<= 3",
        "<div>text</div>",
        "<script>alert(1)</script>",
        "--help",
        "|| or ||",
        "![picture](a.png)",
        "!Am I ok",
        "?Is it so?",
        ">> out.txt",
        "A: hello there",
        "@a3|f0|c1|S0|d1|T1|k1#",
        "👽06|@agent-b",
    ]
)
def test_a_look_alike_is_not_taken(text: str) -> None:
    candidate = DIALECT.sniff(text)
    assert candidate is None or candidate.score < 0.3, candidate


@for_each(
    [
        ("@v0.6#h", 0.9),
        ("?Uk/co", 0.9),
        ("<ctx", 0.9),
        ("!er:un", 0.9),
        ("@A1: !Ik", 0.9),
        ("A: ?Uk/co", 0.9),
        ("<", 0.31),
    ]
)
def test_what_is_certain_scores_high(wire: str, least: float) -> None:
    candidate = DIALECT.sniff(wire)
    assert candidate is not None
    assert candidate.score >= least


# Each makes a text of about n characters.
HOSTILE: dict[str, Callable[[int], str]] = {
    "unknown symbols": lambda n: "!" + "☃" * n,
    "at signs": lambda n: "@" * n,
    "open braces": lambda n: "!Ik " + "{" * n,
    "nested lists": lambda n: "!" + "[" * (n // 2) + "]" * (n // 2),
    "nested blocks": lambda n: "{a:" * (n // 4) + "1" + "}" * (n // 4),
    "open definitions": lambda n: "{def:" * (n // 5),
    "open quotes": lambda n: '!"' + '\\"' * (n // 2),
    "statements": lambda n: "!Ik " * (n // 4),
    "one word": lambda n: "!" + "a" * n,
    "minus signs": lambda n: "!I" + "-" * n,
    "bars": lambda n: "||" + "|" * n + "x",
    "spaces": lambda n: "!Ik" + " " * n + "x",
    "numbers": lambda n: "!$" + "9" * n,
    "ids": lambda n: "!ta " + "id=a&" * (n // 5),
    "addresses": lambda n: "@A1" + ",A1" * (n // 3) + ": !Ik",
    "relays": lambda n: "A1" + ">A1" * (n // 3) + ": !Ik",
    "keys": lambda n: "{" + "a:1," * (n // 4) + "}",
    "definitions": lambda n: "{def:" + 'a="1",' * (n // 6) + "}!Iv/a",
    "chains": lambda n: "!It" + ">Ie" * (n // 3),
    "domains": lambda n: "!" + "a:" * (n // 2),
    "escapes": lambda n: "!" + "\\" * (n + 1),
    "lone surrogates": lambda n: "!Ik/\ud800" * (n // 5),
    "nul": lambda n: "!Ik\x00" * (n // 4),
    "bidi": lambda n: "!Ik/\u202eco" * (n // 7),
    "label": lambda n: "A" * n + ": !Ik",
}


@for_each(HOSTILE)
def test_a_hostile_text_is_read_whole(name: str) -> None:
    text = HOSTILE[name](20_000)
    for dialect in ("lambda_lang", None):
        reading = dialects.decode(text, dialect=dialect)
        assert reading.messages
        assert_covers(reading)


def seconds(text: str) -> float:
    """The processor time to sniff, read and tell a text; the least of some is what other work cannot make shorter."""
    start = time.thread_time()
    DIALECT.sniff(text)
    DIALECT.tell(DIALECT.read(text, None), dialects.Context(), dialects.NoKeys())
    return time.thread_time() - start


# What a quote or an escape holds is no bracket: cutting, blocks, lists and tokens see the same ones.
OUT_OF_STEP = [
    '{\n\u200b"type":"lambda",a=\\"sort "t:fed{":"adbmalth[[[[[e mail\\"}"}',
    '!a=http://a\\""{"',
    '[a] "{]"',
    '[a] "x]"',
    "{a=\\,b,c=\\}}",
    "!'a\\'\"{\"",
]


@for_each(OUT_OF_STEP)
def test_a_bracket_that_is_quoted_or_escaped_opens_nothing(wire: str) -> None:
    reading = dialects.decode(wire, dialect="lambda_lang")
    assert not reading.is_malformed
    assert_covers(reading)


def test_what_is_quoted_says_nothing_in_the_keys_of_the_protocol() -> None:
    quoted = dialects.decode('!say "ta id=7 st=ok #id:m1 {pr=50%, " {ti=1s}', dialect="lambda_lang").messages[0]
    assert (quoted.task_id, quoted.status, quoted.parent_id, quoted.progress) == (None, None, None, None)
    assert quoted.deadline is not None
    assert dialects.decode('>a "(<" < b', dialect="lambda_lang").messages[0].attributes == {
        "offer": 'a "(<" ',
        "want": " b",
    }


def test_a_text_that_cannot_be_cut_is_refused_as_tokens() -> None:
    (message,) = dialects.decode('{"version":"1.0","type":"assert","tokens":["I","k"]}').messages
    with pytest.raises(dialects.EncodeError, match="never closes"):
        dialects.encode([message.replace(content="a {b")], "lambda_lang")


@pytest.mark.long(seconds=5)
@for_each(HOSTILE)
def test_time_grows_with_the_text_alone(name: str) -> None:
    short, long = HOSTILE[name](2_000), HOSTILE[name](20_000)
    small = min(seconds(short) for _ in range(3))
    assert is_within(50 * small + 0.1, lambda: seconds(long)), f"{small * 1000:.1f} ms for a tenth, too many for all"


def test_the_limits_are_named() -> None:
    reading = dialects.decode("!Ik " * 5_000, dialect="lambda_lang")
    assert "lambda_lang.too-long" in {note.code for note in reading.notes}


@for_each(
    [
        ("<+", ["latest-of-other"]),
        ("!er:un/co", ["latest-of-other"]),
        ("<->Ig/U[da]", ["latest-of-other"]),
        ("@v2.0#h< !Ik", ["latest-of-other"]),
        ("<#2", ["correlation-id", "latest-of-other"]),
        ("<+#id:m4", ["message-id", "latest-of-other"]),
        ("!Ik", []),
        ("@v2.0#h !Ik", []),
        ("?Uk", []),
    ]
)
def test_the_parent_is_looked_for_as_ruled(wire: str, whom: list[str]) -> None:
    message = dialects.decode(wire, dialect="lambda_lang").messages[0]
    assert [reply.whom for reply in DIALECT.replies(message)] == whom


def test_a_chunk_is_found_by_its_acknowledgement() -> None:
    (chunk,) = dialects.decode("@msg:m7#2/3 !Ik").messages
    (answer,) = dialects.decode("<#2").messages
    assert chunk.object_id == answer.correlation_id == DIALECT.replies(answer)[0].value


def feed(lines: list[str]) -> tuple[int, bool]:
    """How many lines of a log become one record, and whether it is complete."""
    block = DIALECT.opens(lines[0])
    if block is None:
        return 1, True
    taken = 1
    for line in lines[1:]:
        answer = block.feed(line)
        if answer == "not":
            break
        taken += 1
        if answer == "last":
            break
    return taken, block.is_complete


@for_each(
    [
        (["!st{", "  ta:kiln,", "  pr:75%", "}", "!Ik"], 4),
        (["{def:", '  zz="a}"', "}!Ik", "?Uk"], 3),
        (["{ta:[", "  {n:1},", "  {n:2}", "]}", "<+"], 4),
        (["||a|b||", "||1|2||", "!Ik"], 2),
        (["!Ik", "?Uk"], 1),
        (["{", '  "p": "REQ"', "}"], 1),
        (["if (x) {", "  y();", "}"], 1),
        (['{"p": "REQ",', '"a": 1}'], 1),
    ]
)
def test_a_block_over_lines_is_one_record(lines: list[str], taken: int) -> None:
    assert feed(lines)[0] == taken


def test_a_block_that_never_closes_is_its_first_line() -> None:
    block = DIALECT.opens("!st{")
    assert block is not None
    for _ in range(5):
        assert block.feed("more") == "more"
    assert (block.is_complete, block.lines_if_cut) == (False, 1)


def test_identity_comes_from_the_header_alone() -> None:
    assert dialects.identify("@v0.6#id:abc123 !Ik").id == "abc123"
    assert dialects.identify("{ctx:v0.1,id:m9,t:1767225600}!Ik").time == "2026-01-01T00:00:00Z"
    assert dialects.identify("!ta id=alpha ok").id is None


@for_each(
    [
        ({"performative": "inform", "content": "the kiln is hot"}, '!"the kiln is hot"', set()),
        ({"performative": "query", "content": "why?", "sender": "oscar"}, 'oscar: ?"why?"', set()),
        ({"performative": "accept", "receivers": ("radar",)}, "@radar: <+", {"performative"}),
        ({"performative": "acknowledge", "status": "agreed"}, "<+", set()),
        (
            {"performative": "request", "content": "do it", "priority": dialects.Priority(raw="1")},
            '."do it"',
            {"priority"},
        ),
        ({"performative": "inform", "topic": "load", "turn": 4}, '!"load"', {"topic", "turn"}),
    ]
)
def test_another_dialects_record_is_written_with_its_losses(given: dict[str, Any], wire: str, lost: set[str]) -> None:
    written = dialects.encode([dialects.Message(**given)], "lambda_lang")
    assert written.wire == wire
    assert {loss.name for loss in written.losses} - {"native_act"} == lost


@pytest.mark.parametrize("performative", ["subscribe", "cancel", "unknown", None])
def test_an_act_without_a_form_is_refused(performative: str | None) -> None:
    with pytest.raises(dialects.EncodeError):
        dialects.encode([dialects.Message(performative=performative, content="x")], "lambda_lang")


def test_every_atom_has_a_meaning_in_each_release_that_holds_it() -> None:
    for release in ("0.6", "0.9", "1.3", "1.8", "2.0"):
        vocabulary = load_vocabulary(release)
        assert len(vocabulary.core) > 90
        for table in (vocabulary.core, *vocabulary.domains.values()):
            for senses in table.values():
                assert senses
                assert all(find_word(sense).order for sense in senses)


def test_the_histories_answer_what_changed() -> None:
    assert load_vocabulary("1.8").find("an") == ("analyze",)
    assert load_vocabulary("2.0").find("an") == ("answer",)
    assert load_vocabulary("0.6").find("th") == ("then",)
    assert other_meanings("sp", "", "2.0") == ("“space” before v1.6",)
    assert other_meanings("ta", "", "2.0") == ()


def test_the_glossary_holds_every_row() -> None:
    codes = {(term.kind, term.code) for term in DIALECT.glossary}
    assert {("error", f"!er:{code}") for code in ERRORS} <= codes
    assert sum(len(table) for table in histories().values()) == sum("atom" in kind for kind, _ in codes)
    assert WORDS.count(";") > 100
    assert all(term.meaning and term.name for term in DIALECT.glossary)


def test_every_note_of_the_table_can_be_made() -> None:
    """The codes that vectors and this file never see would be dead rows."""
    seen: set[str] = set()
    for kind in ("valid", "malformed"):
        for case in cases(kind):
            if case.dialect == "lambda_lang":
                reading = case.decode()
                seen |= {note.code for note in reading.notes}
                seen |= {note.code for message in reading.messages for note in message.notes}
    seen |= {note.code for note in dialects.decode("!Ik " * 5_000, dialect="lambda_lang").notes}
    assert {note.code for note in DIALECT.notes} <= seen


_GIVEN = '{def:vf="count the files",inv="the invoices",eta="day of arrival"}'
_VF = 'vf (means "count the files", as defined in message 1; "verify" in the vocabulary)'
_INV = 'inv (means "the invoices", as defined in message 1)'


@for_each(
    [
        (".vf/inv", f"Orders: {_VF} about {_INV}."),
        (".-vf/inv", f"Orders: not {_VF} about {_INV}."),
        ("?Uvf/inv", f"Asks, word by word: you {_VF} about {_INV}?"),
        ("!Ivf", f"States, word by word: I {_VF}."),
        (".f/vf", f"Orders: Find {_VF}."),
        (
            "~eta=2026-11-20",
            'States with low confidence (~): eta (means "day of arrival", as defined in message 1) = 2026-11-20.',
        ),
        ("!vf/inv=412", f"States: {_VF} about {_INV} = 412."),
        ("?inv/ok", f"Asks: {_INV} about success?"),
        ("!Ipvf", 'States, word by word: I, unknown "pvf".'),
    ]
)
def test_a_defined_word_is_told_where_its_vocabulary_would_have_a_verb(wire: str, said: str) -> None:
    (message,) = dialects.decode(wire, dialect="lambda_lang", prior=[(_GIVEN, None)]).messages
    assert message.sentence == said


@for_each(
    [
        ("!re/da=412", "States: result of data = 412."),
        ("?re/ok", "Asks: result about success?"),
        ("!Ipc/ke/da", "I could keep data."),
        ("?Uuc/ke/da", "Will you be able to keep data?"),
        ("!Iuc/la", "I will be able to (use) language."),
    ]
)
def test_a_statement_has_one_verb_in_its_own_tense(wire: str, said: str) -> None:
    (message,) = dialects.decode(wire, dialect="lambda_lang").messages
    assert message.sentence == said


@for_each([case for case in cases("valid") if case.dialect == "lambda_lang"])
def test_what_was_told_before_is_told_alike(case: Case) -> None:
    """A short statement is kept for the next time: that must not show, wherever it stands."""
    case.decode()
    warm = case.decode()
    sayings._say_again.cache_clear()
    sayings._say_behind.cache_clear()
    assert case.decode() == warm


@pytest.mark.parametrize("by", [0, 7, 90])
@pytest.mark.parametrize("statement", ["!I-k/co qqq ta=$5", "?Uc/ke/da", "!er:un/qo", "<+#id:m1", "!Ik sp"])
def test_a_kept_statement_points_to_its_own_characters(statement: str, by: int) -> None:
    plain = dialects.decode(statement, dialect="lambda_lang").messages[0]
    before = f"{'x' * (by - 2)}: " if by else ""
    # A name of more than 64 characters is no speaker: a header takes its place.
    before = before if by < 64 else f"@v2.0#id:{'x' * (by - 10)} "
    (message,) = dialects.decode(f"{before}{statement}", dialect="lambda_lang").messages
    places = [segment.spans for segment in message.gloss if segment.spans and segment.spans[0][1] >= len(before)]
    wanted = [segment.spans for segment in plain.gloss if segment.spans]
    shifted = [tuple((layer, start + len(before), end + len(before)) for layer, start, end in one) for one in wanted]
    assert places == shifted
    noted = [(note.code, note.span[1] - len(before)) for note in message.notes if note.span and note.span[1] >= by]
    assert noted == [(note.code, note.span[1]) for note in plain.notes if note.span]


def test_in_another_dialect_the_losses_name_what_the_english_resolves() -> None:
    prior = [('{def:av="reject"}!Ik/co', dialects.envelope_of({"from": "kim"}))]
    reading = dialects.decode("!Iav", dialects.envelope_of({"from": "kim"}), prior=prior, dialect="lambda_lang")
    lost = [loss.reason for loss in dialects.encode(reading, "fipa").losses if loss.name == "english"]
    assert any('av (means "reject", as defined by kim in message 1' in reason for reason in lost), lost
    reading = dialects.decode(".sp nd if nd er", dialect="lambda_lang")
    lost = [loss.reason for loss in dialects.encode(reading, "fipa").losses if loss.name == "english"]
    assert any("Stop the node, on the condition: node, error." in reason for reason in lost), lost
    # In its own dialect the words mean what they meant.
    assert not [loss for loss in dialects.encode(reading).losses if loss.name == "english"]
    given = dialects.encode(reading.messages, "fipa", spoken="lambda_lang")
    assert given == dialects.encode(reading, "fipa")
