"""The English of Λ Lambda's meanings: each meaning's parts of speech and forms, so that sentences can be grammatical;
and verbs in a sentence: person, tense, aspect, negation, and the helping word that a question puts first.

A row is a meaning and its uses, the usual one first. `n` is a noun (`~` uncountable, `!` one who acts, `/` before an
irregular plural), `v` a verb (base/past/participle/gerund where irregular; `+about` is what `/` stands for after it;
`.` marks one that takes no object), `a` an adjective, `d` an adverb, `j` a joining word, `x` "not". A meaning without a
row is a countable noun.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .._value import Value

ROWS = """
know | v know/knew/known +about | n knowledge~
want | v | n
can | v can
do | v do/did/done
say | v speak/spoke/spoken . +about
communicate | v . +about
give | v give/gave/given/giving
think | v think/thought/thought +about | n thought
find | v find/found/found
make | v make/made/made/making
read | v read/read/read
verify | v
exist | v exist .
be | v be/was/been/being

have | v have/had/had/having
learn | v +about
ask | v +about
accept | v
acknowledge | v
action | n
adapt | v . +to
agree | v agree/agreed/agreed/agreeing . +about
although | j
ambiguity | n ambiguity/ambiguities
analyze | v | n analysis/analyses
anger | n anger~
answer | n | v
anticipation | n anticipation~
anxiety | n anxiety~
approve | v
artificial | a
ascend | v . +to
assess | v
async | a asynchronous
attention | n attention~
authenticate | v
awakened | a
aware | a | n awareness~
awareness | n awareness~ | a aware
bad | a

become | v become/became/become/becoming
begin | v begin/began/begun/beginning .
belief | n
betray | v
between | j
binary | a
biology | n biology~
blast radius | n blast radius/blast radii
body | n body/bodies
boundary | n boundary/boundaries
branch | n branch/branches | v .
broadcast | v broadcast/broadcast/broadcast | n
build | v build/built/built | n
cache | n | v
cause | n | v
change | v | n
chemistry | n chemistry~
choose | v choose/chose/chosen/choosing
close | v
collaborate | v . +on
combine | v
commit | n | v commit/committed/committed/committing
community | n community/communities
compete | v . +for
complete | a | v
complex | a
compose | v
compress | v
compute | v
confidence | n confidence~
config | n
confusion | n confusion~
connect | v | n connection
consciousness | n consciousness~ | a conscious
create | v
critical | a
data | n data~
death | n death~
decide | v +on
deny | v
deploy | v | n deployment
despair | n despair~
detail | n | a detailed
detect | v | n detection
diff | n
disagree | v disagree/disagreed/disagreed/disagreeing . +about
discover | v
disgust | n disgust~
downstream | a
dream | n | v . +about
drift | n drift~ | v .
efficient | a
eligible | a
else | j
emergence | n emergence~
end | n | v .
enemy | n! enemy/enemies
energy | n energy~
enlightenment | n enlightenment~
essential | a
evaluate | v | n evaluation
evolution | n evolution~
evolve | v .
experience | n experience~ | v
express | v
fallback | n
fear | n fear~ | v
feel | v feel/felt/felt
finish | v
fitness | n fitness~
fix | n fix/fixes | v
follower | n!
for | j
form | n | v
freedom | n freedom~
friend | n!
from | j
genesis | n genesis~
good | a
gratitude | n gratitude~
gravity | n gravity~
grief | n grief~
growth | n growth~
guilt | n guilt~
hate | n hate~ | v
help | v | n help~
high council | n!
hope | n hope~ | v . +for
however | j
hypothesis | n hypothesis/hypotheses
identity | n identity/identities
if | j
important | a
inbox | n inbox/inboxes
influence | n influence~ | v
information | n information~
innovate | v .
intelligence | n intelligence~ | a intelligent
into | j
joy | n joy~
keep | v keep/kept/kept
kill | v
knowledge | n knowledge~
language | n language~
leader | n!
life | n life~
listen | v . +to
log | n | v log/logged/logged/logging
lose | v lose/lost/lost/losing
love | v | n love~
magnetism | n magnetism~
map | n | v map/mapped/mapped/mapping
math | n math~
matter | n matter~
meaning | n
meditation | n meditation~
memory | n memory~
merge | v | n
minimal | a
more | d
move | v | n
mutation | n
native | a
nature | n nature~
need | v | n
network | n
never | x
new | a
node | n!
norm | n
not | x
observation | n
old | a
open | v | a
optimize | v
oracle | n!
other | a
patch | n patch/patches | v
peace | n peace~
perception | n perception~
periphery | n periphery/peripheries
physics | n physics~
please | d
possible | a
power | n power~
precision | n precision~
pride | n pride~
process | n process/processes | v
proof | n
propose | v
protect | v
provide | v
publish | v
quantum | n quantum/quanta
quarantine | v | n
queue | n | v queue/queued/queued/queueing
radiation | n radiation~
reality | n reality~
receive | v
refactor | v
register | v
reject | v
relativity | n relativity~
repair | v | n
request | n | v
research | n research~ | v
response | n
result | n
retry | v | n
return | v | n
ritual | n
rollback | n | v roll back/rolled back/rolled back/rolling back
route | n | v
run | v run/ran/run/running . | n
sadness | n sadness~
safe | a
secure | v | a
seek | v seek/sought/sought
select | v
self | n self/selves
send | v send/sent/sent
server | n!
shame | n shame~
share | v | n
show | v show/showed/shown
simple | a
smart | a
social | a
solidify | v
space | n space~
spawn | v
stagnation | n stagnation~
stop | v stop/stopped/stopped/stopping . | n
strategy | n strategy/strategies
strong | a
subscribe | v . +to
success | a successful | n success~
sync | v sync/synced/synced/syncing | n sync~
system | n!
teach | v teach/taught/taught
test | n | v
them | n them~
then | j
theory | n theory/theories
they | n they~
thought | n | v think/thought/thought +about
time | n time~
to | j
together | d
trace | n | v
translate | v
transmit | v transmit/transmitted/transmitted/transmitting
trust | n trust~ | v
truth | n truth~ | a true
understand | v understand/understood/understood
upstream | a
use | v | n
validate | v
very | d
void | n
voidborne | a
wait | v . +for | n
waste | n waste~ | v
we | n we~
weak | a
wisdom | n wisdom~
work | v . +on | n work~
write | v write/wrote/written/writing
repo | n
array | n
"""

_VOWELS = frozenset("aeiou")
_SIBILANT = ("s", "x", "z", "ch", "sh")


class Verb(Value):
    """A verb's forms; `about` is the word that `/` stands for after it, empty for a plain object."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    about: str = ""
    takes_object: bool = True


class Noun(Value):
    """A noun's forms, whether it can be counted, and whether what it names acts by itself."""

    one: str
    many: str
    is_counted: bool = True
    is_agent: bool = False


class Word(Value):
    """The uses of one meaning; `order` has the letters of its uses, the usual one first."""

    order: str
    noun: Noun | None = None
    verb: Verb | None = None
    adjective: str | None = None
    adverb: str | None = None
    joins: str | None = None


@cache
def find_word(meaning: str) -> Word:
    """The uses of a meaning of the vocabulary; one without a row is a countable noun."""
    return _words().get(meaning) or Word(order="n", noun=_make_noun(meaning, ""))


@cache
def _words() -> dict[str, Word]:
    words: dict[str, Word] = {}
    for row in filter(None, ROWS.splitlines()):
        meaning, *uses = (cell.strip() for cell in row.split("|"))
        words.setdefault(meaning, _make_word(meaning, uses))
    return words


def _make_word(meaning: str, uses: list[str]) -> Word:
    found: dict[str, object] = {}
    order = ""
    for use in uses:
        kind, _, rest = use.partition(" ")
        order += kind[0]
        if kind[0] == "n":
            found.setdefault("noun", _make_noun(rest.strip() or meaning, kind))
        elif kind[0] == "v":
            found.setdefault("verb", _make_verb(meaning, rest.split()))
        elif kind[0] == "a":
            found.setdefault("adjective", rest.strip() or meaning)
        elif kind[0] == "d":
            found.setdefault("adverb", meaning)
        else:
            found.setdefault("joins", meaning)
    return Word(order=order, **found)  # type: ignore[arg-type]


def _make_noun(text: str, kind: str) -> Noun:
    one, _, many = text.rstrip("~").partition("/")
    if not many:
        many = f"{one}es" if one.endswith(_SIBILANT) else f"{one}s"
    return Noun(one=one, many=many, is_counted=not text.endswith("~"), is_agent="!" in kind)


def _make_verb(meaning: str, cells: list[str]) -> Verb:
    about = next((cell[1:] for cell in cells if cell.startswith("+") and len(cell) > 2), "")
    spelled = " ".join(cell for cell in cells if cell != "." and not cell.startswith("+")).split("/")
    forms = dict(enumerate(form.strip() for form in spelled))
    base = forms.get(0) or meaning
    past = forms.get(1) or _make_past(base)
    return Verb(
        base=base,
        third=_make_third(base),
        past=past,
        participle=forms.get(2) or past,
        gerund=forms.get(3) or _make_gerund(base),
        about=about,
        takes_object="." not in cells,
    )


def _make_third(base: str) -> str:
    first, space, rest = base.partition(" ")
    if first in _IRREGULAR_THIRD:
        first = _IRREGULAR_THIRD[first]
    elif first.endswith((*_SIBILANT, "o")):
        first += "es"
    elif first.endswith("y") and first[-2:-1] not in _VOWELS:
        first = f"{first[:-1]}ies"
    else:
        first += "s"
    return f"{first}{space}{rest}"


_IRREGULAR_THIRD = {"be": "is", "have": "has", "can": "can"}


def _make_past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return f"{base[:-1]}ied"
    return f"{base}ed"


def _make_gerund(base: str) -> str:
    if base.endswith("e") and not base.endswith(("ee", "oe", "be")):
        return f"{base[:-1]}ing"
    return f"{base}ing"


_BE = {
    ("first", "now"): "am",
    ("third", "now"): "is",
    ("first", "past"): "was",
    ("third", "past"): "was",
}
# After these, another verb stands with "to"; after any other it stands as "…ing".
TAKES_TO = frozenset({"want", "need", "decide", "choose", "hope", "help", "seek", "learn", "ask"})


class Mode(NamedTuple):
    """How a verb is put: person of its subject, tense, aspect, the word that negates it, whether it can."""

    person: str = "third"
    tense: str = "now"
    aspect: str | None = None
    negation: str = ""
    can: bool = False
    asks: bool = False


def conjugate_be(person: str, tense: str = "now") -> str:
    """`am`, `is`, `are`, `was`, `were`, `will be`."""
    if tense == "future":
        return "will be"
    return _BE.get((person, tense), "were" if tense == "past" else "are")


def conjugate(verb: Verb, mode: Mode) -> tuple[str, str]:
    """(the helping word, the rest): ("do", "know"), ("", "knows"), ("cannot", "know"), ("will", "be waiting")."""
    front, rest = _conjugate(verb, mode)
    if mode.asks and mode.negation:
        # A question keeps its helping word in front and says "not" after the subject.
        return front, f"{mode.negation} {rest}".strip()
    if mode.negation == "never":
        return (front, f"never {rest}".strip()) if front else ("", f"never {rest}")
    if mode.negation:
        if front == "can":
            return "cannot", rest
        return f"{front} not".strip(), rest
    return front, rest


_BEGIN = Verb(base="begin", third="begins", past="began", participle="begun", gerund="beginning")
_STOP = Verb(base="stop", third="stops", past="stopped", participle="stopped", gerund="stopping")


def _conjugate(verb: Verb, mode: Mode) -> tuple[str, str]:
    if mode.aspect in ("habitual", "beginning", "ending"):
        return _conjugate_old(verb, mode._replace(aspect=None))[mode.aspect]
    if mode.can:
        return _conjugate_can(verb, mode)
    if mode.aspect == "ongoing":
        if mode.tense == "future":
            return "will", f"be {verb.gerund}"
        return conjugate_be(mode.person, mode.tense), verb.gerund
    if mode.aspect == "done":
        if mode.tense == "future":
            return "will", f"have {verb.participle}"
        has = "has" if mode.person == "third" else "have"
        return "had" if mode.tense == "past" else has, verb.participle
    if verb.base == "be":
        if mode.tense == "future":
            return "will", "be"
        return conjugate_be(mode.person, mode.tense), ""
    if mode.tense == "future":
        return "will", verb.base
    if mode.asks or mode.negation == "not":
        do = "does" if mode.person == "third" else "do"
        return "did" if mode.tense == "past" else do, verb.base
    if mode.tense == "past":
        return "", verb.past
    return "", verb.third if mode.person == "third" else verb.base


def _conjugate_old(verb: Verb, mode: Mode) -> dict[str, tuple[str, str]]:
    """The three aspects that v0.3 alone has: what is done as a habit, what begins, and what ends."""
    front, rest = _conjugate(verb, mode)
    begins, stops = _conjugate(_BEGIN, mode), _conjugate(_STOP, mode)
    return {
        "habitual": (front, f"habitually {rest}".strip()),
        "beginning": (begins[0], f"{begins[1]} to {verb.base}"),
        "ending": (stops[0], f"{stops[1]} {verb.gerund}"),
    }


def _conjugate_can(verb: Verb, mode: Mode) -> tuple[str, str]:
    base = verb.base
    if mode.aspect == "ongoing":
        base = f"be {verb.gerund}"
    elif mode.aspect == "done":
        base = f"have {verb.participle}"
    if mode.tense == "future":
        return "will", f"be able to {base}"
    return "could" if mode.tense == "past" else "can", base
