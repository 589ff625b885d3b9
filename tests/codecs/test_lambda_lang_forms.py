"""The forms of Λ Lambda around its statements, beyond their vectors: JSON, its layers, and look-alikes of it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import pytest

import dialects

from ..each import for_each
from ..timing import is_within
from .test_laws import assert_covers

LOOK_ALIKES = {
    "a function's log": '{"type": "lambda", "timestamp": 1700000000, "lambda_name": "resize"}',
    "an address of a function": '{"type":"lambda","lambda":"arn:aws:lambda:eu-west-1:123:function:resize"}',
    "a number": '{"type":"lambda","lambda":0.25,"thickness":0.013}',
    "an expression": '{"type":"lambda","lambda":"x => x + 1"}',
    "a sentence": '{"type":"lambda","lambda":"Please find the data."}',
    "another type": '{"type":"message","lambda":"!Ik/da"}',
    "no type": '{"lambda":"!Ik/da"}',
    "a list": '{"type":["lambda"],"lambda":"!Ik/da"}',
    "words of a sentence": '{"version":"1.0","type":"query","tokens":["what","is","it"]}',
    "tokens without a version": '{"type":"assert","tokens":["I","k"]}',
    "tokens as numbers": '{"version":"1.0","type":"assert","tokens":[101,2003,102]}',
    "tokens as a count": '{"version":"1.0","type":"assert","tokens":250}',
    "no tokens": '{"version":"1.0","type":"assert","tokens":[]}',
    "an event": '{"type":"assert","version":"2.1","tokens":["eyJhbGciOi"],"user":"ada"}',
}


@for_each(LOOK_ALIKES)
def test_other_json_is_not_taken(name: str) -> None:
    assert dialects.detect(LOOK_ALIKES[name])[0].dialect == "prose"
    # Whoever forces the dialect is answered all the same.
    assert_covers(dialects.decode(LOOK_ALIKES[name], dialect="lambda_lang"))


TEXTS = ("!Ik/da", "?Uk/er", ".Uf/nd", "<+", "!er:un/qo", "@v2.0 !Ik", '{def:xq="a \\"b\\" c"}!Ik/xq', "~Ik/tr", "!I-k")


def write(rng: random.Random, text: str, names: dict[str, str]) -> tuple[str, dict[str, object]]:
    """A pilot envelope with its keys in any order, some left out, and any white space."""
    members: list[tuple[str, object]] = [("type", "lambda"), ("lambda", text), *names.items()]
    if rng.random() < 0.5:
        members.append(("version", rng.choice(["1.5.0", "2.0.0", "1.8"])))
    if rng.random() < 0.5:
        members.append(("english", rng.choice(["(query) it", "“quoted” — and more", "a\nb"])))
    rng.shuffle(members)
    given = dict(members)
    return json.dumps(given, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 2])), given


@for_each(range(200))
def test_a_generated_envelope_tells_what_its_text_tells(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(TEXTS)
    names = {name: value for name, value in (("from", "oscar"), ("to", "radar"), ("id", "m-1")) if rng.random() < 0.3}
    wire, given = write(rng, text, names)
    around = dialects.Envelope(sender=names.get("from"), receivers=tuple(filter(None, [names.get("to")])))
    reading, bare = dialects.decode(wire), dialects.decode(text, around, dialect="lambda_lang")
    assert reading.dialect == "lambda_lang"
    assert_covers(reading)
    assert [layer.kind for layer in reading.layers] == ["wire", "json-string"]
    assert reading.layers[1].text == text
    _, start, end = reading.layers[1].of or (0, 0, 0)
    assert json.loads(f'"{wire[start:end]}"') == text
    for message, other in zip(reading.messages, bare.messages, strict=True):
        assert message.performative == other.performative
        assert message.content == other.content
        assert message.gloss_line == other.gloss_line
        assert message.sentence == other.sentence
    first = reading.messages[0]
    assert (first.sender, first.receivers) == (names.get("from"), tuple(filter(None, [names.get("to")])))
    if "english" in given:
        # Marks of the sender's are escaped within our own.
        said = " ".join(part.text for part in first.also).replace("\\“", "“").replace("\\”", "”")
        assert (
            json.dumps(given["english"])[1:-1] in said or json.dumps(given["english"], ensure_ascii=False)[1:-1] in said
        )
    written = dialects.encode(reading)
    assert written.losses == ()
    assert json.loads(written.wire) == given


@for_each(TEXTS)
def test_every_segment_points_at_the_text_it_came_from(text: str) -> None:
    """What is told of a text in JSON points at the same characters, on the layer of that text."""
    wire = json.dumps({"type": "lambda", "lambda": text})
    reading, bare = dialects.decode(wire), dialects.decode(text, dialect="lambda_lang")
    for message, other in zip(reading.messages, bare.messages, strict=True):
        pairs = zip((*message.english, *message.gloss), (*other.english, *other.gloss), strict=True)
        for one, two in pairs:
            assert one.text == two.text
            assert [(1, *span[1:]) for span in two.spans] == list(one.spans)


def test_the_text_of_an_envelope_is_told_in_its_conversation() -> None:
    prior = [('{"type":"lambda","lambda":"{def:da=\\"the ledger\\"}"}', dialects.Envelope(sender="oscar"))]
    reading = dialects.decode('{"type":"lambda","lambda":"!Ik/da"}', prior=prior)
    assert "the ledger" in reading.messages[0].sentence
    assert "lambda_lang.sender-defined" in {note.code for note in reading.messages[0].notes}


def test_the_envelopes_ids_are_found_cheaply() -> None:
    wire = '{"type":"lambda","lambda":"!Ik","id":"m-3","conversation":"c-9"}'
    assert dialects.identify(wire) == dialects.Identity(id="m-3", conversation="c-9")


HOSTILE = {
    "deep": lambda size: '{"type":"lambda","lambda":"!Ik","x":' + "[" * size + "]" * size + "}",
    "long text": lambda size: '{"type":"lambda","lambda":"' + "!Ik " * size + '"}',
    "many keys": lambda size: '{"type":"lambda","lambda":"!Ik"' + ',"a":1' * size + "}",
    "many tokens": lambda size: '{"version":"2.0","type":"assert","tokens":["I"' + ',"k"' * size + "]}",
    "digits": lambda size: '{"type":"lambda","lambda":"!Ik","n":' + "7" * size + "}",
    "cut": lambda size: '{"type":"lambda","lambda":"!Ik","x":"' + "a" * size,
    "escapes": lambda size: '{"type":"lambda","lambda":"!Ik/' + "\\ud800" * size + '"}',
}


def measure(text: str) -> float:
    start = time.thread_time()
    reading = dialects.decode(text, dialect="lambda_lang")
    _ = reading.fields
    return time.thread_time() - start


def is_linear(make: Callable[[int], str], size: int) -> bool:
    """Whether ten times the text takes about ten times as long; generous, as the machine may be busy."""
    short, long = make(size), make(10 * size)
    return is_within(50 * min(measure(short) for _ in range(3)) + 0.2, lambda: measure(long))


@for_each(HOSTILE)
def test_a_hostile_envelope_is_read_whole_and_in_time(name: str) -> None:
    make = HOSTILE[name]
    for size in (1, 50, 150, 900, 3000):
        reading = dialects.decode(make(size), dialect="lambda_lang")
        assert_covers(reading)
        json.dumps(reading.to_dict(), ensure_ascii=False).encode()
        dialects.detect(make(size))
    assert is_linear(make, 500)


# Ordinary English, one utterance between two bars: what people and programs write that opens as a statement could.
ORDINARY = """
ok|OK|no idea|I see it|yes|no|sure|thanks|go on|hm|hi|hello|me too|not yet|so what|do it|we do|he is in|it is on
as you do|up to me|am I late|I am ok|oh no|if so, go|to be or not to be|I do|I am in|I think so|I have it|I want it
I can do it|I know|we know|A test|A dog ran|A: yes|B: no|U ok|Hi there!|What?|Why not?|Really!|hello?|ok!|no!|me?|I?
ok.|ok?|so?|so!|!important|!ok|!no|?why|?who|~ok|~5 items|.ok|.env|.gitignore|.bashrc|.so|.me|.in|~/bin|./run me
!cd ..|!pip install x|!git status|!help|!me|!in|#todo|#1|# Title|## Section|#hash|#ok|#a|> quoted|> I think so|> ok
>> ok|>>> print(1)|<b>bold</b>|<br/>|<3|<- back|<-- see|-> go|--help|-- Ada|@all|@oscar please look|@here|@me is on
@channel we are on|@home: yes|@v2 is out|@v1.0 is out|@oscar: ok|@A: ok|@all: go|{name}|[ok]|(ok)|Please find the data.
The task is done.|We are all here.|Do you know about consciousness?|I think, therefore I am.|Can you help me?
Let me check.|It works!|No problem.|No, I do not.|Yes: go ahead.|Wait, what?|I can't do it.|Don't worry.|Why me?
How so?|As I said, no.|In short: no.|Is it ok?|Are we on?|Am I in?|I am at it.|I am on it!|So do I.|Me: ok|You: no
To do: it|As is|As if|If I may|On it|In it|At it|By me|Up|On|In|At|As|Is|It|He|We|Me|My|Us|An ox|A cat|I/O error
I/O is slow|A/B test|A/B test is on|A & B|X is 5|x=5|x = y|a=b|a/b|n/a|N/A|w/o|b/c|and/or|he/she|9/10|1/2|24/7|5%|$5
$10 off|0|1|42|3.14|-1|+1|+1!|:)|;)|Today the weather is fine.|The build failed again, see the log.|err|ERR|FAIL|PASS
Deploy to production at noon.|Node 4 is down.|Task alpha: started|Task 7 done|error: file not found|Error!|er
WARN disk full|INFO ok|DEBUG: x=1|TODO: fix|NOTE: so it is|a: b|to: me|from: you|re: task|Re: your mail|cc: us|id: 5
id=5|st=ok|ok=1|re=ok|!I am here|!I do|?do you see|!we do|.do it|~so so|!so it is|!if you do|!no way|!go|!go go go
?is it ok|?am I in|!he is in|!A man is here|?Are you in|!In it|!It is on|!Is it|!Am I|!As I said|!Up we go|!Us too
!Hi|!He did it|!Uh oh|!Ah ok|!Ha|!Hm|?Huh|!Ok|!No|.Ok then|?Is it|?In what|!Ada: look|!important: read me
please go to the shop and buy it|my task is to do it|we will go on as is|he said no to me|the id is in use
so it is as we say|be at it by ten|do as I do, not as I say|if it is so, tell us|an ox and a cow|it is no use|go to it
we go up|us and them|you & me|me & us|yes/no|on/off|in/out|up/down|he>she|x>5|x<5|5>3|A -> B|A -> B: ok
A->B: hello there|Ada -> Bob: see you at noon|oscar -> radar: no idea|Agent A: I see it|A: I see it|B: no idea|A: ok
A: Hm|A: What?|A: I am on it|A: In|lambda|lambda x: x + 1|Λ is a letter|x => x + 1|See you on Monday.|It is what it is.
The node is down!|Who has the key?|Say it again, please.|No one is in.|He has it, I think.|We need to be on time.
Is the data in?|I am so in!|That is it, we are on.|To be sure: no.|One of us is in.|Give me ten.|At ten, ok?
"""


def test_ordinary_english_stays_prose() -> None:
    said = [text for line in ORDINARY.strip().splitlines() for text in line.split("|") if text]
    assert len(said) > 300
    taken = {text: found.why for text in said if (found := dialects.detect(text)[0]).dialect == "lambda_lang"}
    assert taken == {}


@for_each(["@* !fn", "@cd fn", "@v", "@soc", "!pItd", "mIt", "##[bi/la]", "!ta bk wa/lk", "@v1.0 is out", "<1", "!0"])
def test_what_is_too_little_is_possible_at_best(wire: str) -> None:
    """Prose by itself, and Lambda where its conversation speaks Lambda."""
    scores = {found.dialect: found.score for found in dialects.detect(wire)}
    assert 0 < scores["lambda_lang"] < scores["prose"]
    assert dialects.decode(wire, prior=[("@v2.0#h !Ik/da", None)]).dialect == "lambda_lang"


VERBS = {"k": "know", "v": "verif", "f": "f", "r": "read"}
SUBJECTS = {"I": "I", "U": "you", "A": "an agent", "I*": "we"}
THINGS = {"da": "data", "er": "the error", "nd": "the node", "tr": "truth"}
MODALS = {"m": "necessary", "s": "should", "w": "wanted", "y": "permitted"}


@for_each(range(200))
def test_a_generated_modal_or_passive_says_who_does_what(seed: int) -> None:
    rng = random.Random(seed)
    subject, verb, thing = rng.choice([*SUBJECTS]), rng.choice([*VERBS]), rng.choice([*THINGS])
    minus, symbol = rng.choice(["", "-"]), rng.choice("!~")
    if rng.random() < 0.5:
        modal = rng.choice([*MODALS])
        wire, words = f"{symbol}{modal}{subject}{minus}{verb}/{thing}", [MODALS[modal], SUBJECTS[subject]]
        code = "lambda_lang.modal-letter"
    else:
        person = {"I": "me", "I*": "us"}.get(subject, SUBJECTS[subject])
        wire, words = f"{symbol}~v~{thing}/{minus}{verb}/{subject}", [f"by {person}"]
        code = "lambda_lang.passive"
    reading = dialects.decode(wire)
    message = reading.messages[0]
    assert reading.dialect == "lambda_lang"
    assert message.content == wire[1:]
    for word in (*words, VERBS[verb], THINGS[thing], *(["not"] if minus else [])):
        assert word.lower() in message.sentence.lower()
    assert (" not " in message.sentence) == bool(minus)
    assert code in {note.code for note in message.notes}
    assert_covers(reading)
    assert dialects.encode(reading).wire == wire


@for_each(["de", "tr", "ch", "fe", "lo", "be", "wo", "ne"])
def test_a_gloss_that_misleads_is_shown_as_the_senders(atom: str) -> None:
    reading = dialects.decode(f"!I k/{atom}(approval)")
    message = reading.messages[0]
    assert "glossed by the sender: “approval”" in message.sentence
    assert "lambda_lang.gloss-differs" in {note.code for note in message.notes}
    assert_covers(reading)


def test_a_definition_that_misleads_is_shown_as_the_senders() -> None:
    """A sender makes "reject" mean "approve": the English says whose meaning it is, the note what the atom is."""
    reading = dialects.decode('{def:rj="approve"}!I rj/ta')
    message = reading.messages[0]
    assert 'means "approve", as defined here' in message.sentence
    codes = {note.code for note in message.notes}
    assert {"lambda_lang.redefines-atom", "lambda_lang.sender-defined"} <= codes


def test_nothing_is_invented_where_the_wire_is_silent() -> None:
    for wire in ("!Ik/da", '{"type":"lambda","lambda":"!Ik/da"}', "<+", "?~v~er/f"):
        message = dialects.decode(wire).messages[0]
        names = (message.sender, message.message_id, message.conversation_id, message.sent_at, message.parent_id)
        assert names == (None,) * 5
        assert message.receivers == ()


def test_a_long_id_is_kept_whole_and_noted() -> None:
    long = "i" * 9_000
    for wire in (
        f"@v0.6#id:{long} !Ik",
        f"{{id:{long}}}!Ik",
        json.dumps({"type": "lambda", "lambda": "!Ik", "id": long}),
    ):
        reading = dialects.decode(wire, dialect="lambda_lang")
        assert reading.messages[0].message_id == long
        notes = [*reading.notes, *reading.messages[0].notes]
        assert "lambda_lang.long-id" in {note.code for note in notes}


@for_each(["{def:", "@" * 100_000, "!" + "☃" * 100_000, '{def:ta="x', "~v~" * 30_000, "$" * 100_000])
def test_what_is_broken_or_unknown_is_shown_in_time(text: str) -> None:
    start = time.thread_time()
    reading = dialects.decode(text, dialect="lambda_lang")
    assert time.thread_time() - start < 5
    assert_covers(reading)
    message = reading.messages[0]
    assert message.notes
    shown = "".join(part.text for part in (*message.english, *message.also))
    assert shown


def test_a_number_of_many_digits_is_kept_to_the_last() -> None:
    digits = "9" * 100_000
    message = dialects.decode(f"!ta qe=${digits}", dialect="lambda_lang").messages[0]
    assert digits in message.sentence


@for_each(
    [
        lambda n: "!" + "mIk;" * (n // 4),
        lambda n: "!" + "$" * n,
        lambda n: "!" + "de(decide)" * (n // 10),
        lambda n: "!" + "~v~la/cr;" * (n // 9),
        lambda n: "!k(" + "a " * (n // 2) + ")",
        lambda n: "!" + "k(abc" * (n // 5) + ")" * (n // 5),
        lambda n: "< " * (n // 2),
        lambda n: "{a:1}" * (n // 5) + "!Ik",
    ]
)
def test_marks_take_linear_time(make: Callable[[int], str]) -> None:
    for text in (make(2_000), make(20_000)):
        dialects.detect(text)
    assert is_linear(make, 2_000)


@pytest.mark.parametrize(
    ("wire", "content", "said"),
    [
        ('{"type":"lambda","lambda":"It>Ie"}', "It>Ie", "I think, therefore I exist."),
        ("~v~la/cr/I", "~v~la/cr/I", "anguage is created by me."),
        ("@v1.0 Ik/da", "Ik/da", "I know about data."),
        ("@msg:123#2/3 ...&th/mi...", "...&th/mi...", "(something left out)"),
    ],
)
def test_a_form_without_a_type_is_read_and_noted(wire: str, content: str, said: str) -> None:
    reading = dialects.decode(wire)
    message = reading.messages[0]
    assert (reading.dialect, message.performative, message.native_act) == ("lambda_lang", "inform", "untyped")
    assert message.content == content
    assert said in message.sentence
    assert "lambda_lang.no-type" in {note.code for note in message.notes}
