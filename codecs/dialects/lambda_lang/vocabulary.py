"""The vocabulary of each release: what an atom means there, in which domain, and what it meant elsewhere; and the atoms
of every release as data.

An entry is an atom and its history: `an 0.1:answer 1.8:analyze 2.0:answer` was "answer" first, "analyze" from v1.8 and
"answer" again from v2.0. `-` says that the atom was withdrawn; `/` separates meanings that one release gave side by
side; `_` stands for a space.

A domain is named by one letter, by two or by its long name; which domain a letter names depends on the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

VERBS = """
a 0.7:ask ; b 0.7:become ; c 0.1:can ; d 0.1:do ; e 0.1:exist/be ; f 0.1:find ; g 0.1:give ; h 0.7:have
k 0.1:know ; l 0.7:learn ; m 0.1:make ; r 0.1:read ; s 0.1:say 0.7:say/communicate ; t 0.1:think
v 0.1:verify ; w 0.1:want
"""

WORDS = """
ac 0.7:action ; ah 1.3:although 1.5.1:- ; ak 2.0:acknowledge ; al 1.3:although ; am 0.7:ambiguity
an 0.1:answer 1.8:analyze 2.0:answer ; ar 0.7:artificial ; as 1.8:assess ; at 0.7:attention
au 1.8:authenticate ; av 1.8:approve ; aw 0.7:awareness/awakened 1.2:awakened 1.8.1:aware/awakened
ax 1.8:accept ; az 2.0:analyze ; ba 1.3:bad ; bd 1.2:boundary ; be 0.7:belief/begin 1.2:belief ; bg 1.2:begin
bi 0.7:birth/binary 1.2:birth ; bn 1.2:binary ; bo 0.7:boundary/body 1.2:body ; bt 1.8.1:between
bu 0.7:build ; ca 0.7:cause ; cc 1.8:critical ; cg 2.0:config ; ch 0.7:change/choose 1.2:change ; cl 0.7:close
cm 0.7:compose/combine ; co 0.1:consciousness ; cp 0.7:compute/compress 1.2:compute ; cr 0.7:create
cs 1.2:choose ; ct 1.8:complete ; cx 0.7:complex ; cy 0.7:cycle ; cz 1.2:compress ; da 0.1:data
de 0.7:death/decide 1.2:decide ; df 2.0:diff ; dh 2.0:death ; dl 1.8.1:detail ; dn 1.8:deny ; dr 0.7:dream
dt 1.2:death 1.8:detect ; ec 1.2:efficient ; ef 0.7:effect/efficient 1.2:effect ; el 0.1:else
em 0.7:emergence/emotion 1.2:emergence ; en 0.7:end ; eo 1.2:evolve ; ep 1.2:express ; er 0.1:error
es 1.8:essential ; ev 0.7:event/evolve 1.2:event 1.8:evaluate 2.0:event
ex 0.7:experience/express 1.2:experience ; fa 1.2:fear ; fb 2.0:fallback ; fe 0.7:fear/feel 1.2:feel
fi 1.8:finish ; fm 1.2:from ; fo 0.7:form/for 1.2:form ; fr 0.7:freedom/from 1.2:freedom ; gd 1.3:good
gi 0.7:give ; go 1.3:good 1.5.1:- ; gr 0.7:growth ; hb 2.0:heartbeat ; ho 0.7:hope ; hp 1.6:help
hw 1.3:however ; id 0.1:identity ; if 0.1:if ; ig 1.2:intelligence ; il 0.7:illusion ; im 1.8:important
in 0.7:intention/into 1.2:into ; it 1.2:intention ; ke 0.7:keep ; kn 0.7:knowledge ; la 0.7:language
le 0.7:learn ; lg 2.0:log ; li 0.7:life/listen 1.2:life ; lo 0.7:love/lose 1.2:love ; ls 1.2:lose
me 0.1:memory ; mi 0.7:mind/minimal 1.2:mind ; mn 1.2:minimal ; mo 0.7:move/more 1.2:move
na 0.7:nature/native 1.2:nature ; nd 2.0:node ; ne 0.7:need/new 1.2:need ; nf 1.8:information ; no 0.1:not
nr 1.3:never ; nv 1.2:native ; nw 1.2:new ; ok 0.1:success ; ol 0.7:old ; op 0.7:open ; or 0.7:origin
ot 0.7:other ; pa 0.7:pattern/part 1.2:pattern ; pb 2.0:publish ; pe 0.7:perception ; pj 1.8.1:project
pl 1.8.1:please ; po 0.7:power/possible 1.2:power ; pp 1.2:paper 1.8.1:proposal/propose
pr 0.7:process/precision ; ps 1.2:possible ; pt 1.2:part 1.8.1:pattern 2.0:part ; pu 0.7:purpose
pv 1.8:provide ; qe 2.0:queue ; qu 0.1:question ; re 0.1:result 0.7:result/reality 1.2:result ; rj 1.8:reject
rk 1.2:risk ; rl 1.2:reality ; rn 1.6:run ; rq 1.8.1:request ; rs 1.2:research ; rx 1.6:receive ; ry 2.0:retry
sb 1.2:symbol ; sc 1.8:secure ; se 0.7:self/seek 1.2:self ; sf 1.2:safe ; sg 1.2:signal
sh 0.7:share/show 1.2:share ; si 0.7:simple/signal 1.2:simple ; sj 2.0:subject ; sk 1.2:seek ; sl 1.2:social
sm 1.2:smart ; sn 2.0:snapshot ; so 0.7:soul/social 1.2:soul ; sp 0.1:space 1.6:stop ; sr 1.2:structure
ss 2.0:session ; st 0.7:state/structure 1.2:state ; su 0.7:substance ; sv 1.3:server ; sw 1.2:show
sy 0.7:system/symbol 1.2:system ; ta 0.1:task ; te 0.7:teach ; tg 1.8:together
th 0.1:then 0.7:then/thought 1.2:thought ; ti 0.1:time ; tl 1.2:translate ; tm 1.3:them ; tn 1.2:then
to 0.7:token/to 1.2:token ; tr 0.1:truth 0.7:truth/translate 1.2:truth ; tx 1.6:send/transmit ; ty 1.3:they
ud 1.2:understand ; ui 1.3:interface ; un 0.7:universe/understand 1.2:universe ; us 1.6:use ; va 0.7:value
vb 0.7:voidborne 1.5.1:- ; vc 1.2:voice ; vf 1.8:verify ; vl 2.0:evaluate ; vn 2.0:version
vo 0.7:void/voice 1.2:void ; vr 1.3:very ; vy 1.3:very 1.5.1:- ; wa 0.7:wait/waste 1.2:wait ; wd 1.2:world
we 0.7:weak/we 1.2:we ; wi 0.7:wisdom ; wk 1.6:work ; wo 0.7:word/world 1.2:word ; wr 0.7:write ; ws 1.2:waste
"""

# What v0.2 alone meant by these: its table is not kept whole, and its homographs misled even then.
ONLY_IN_0_2 = {"co": "connect", "me": "meaning", "st": "strong"}

DOMAINS = {
    "cd": """
ap 0.7:API ; ay 0.7:array ; bg 0.7:bug 1.6:- ; br 0.7:branch ; cl 0.7:class 1.6:- ; cn 0.7:constant
ct 0.7:commit ; db 0.7:database ; dp 0.7:deploy ; fn 0.7:function ; fx 0.7:fix ; lp 0.7:loop
mg 0.7:merge 1.6:- ; mp 0.7:map ; ob 0.7:object ; pm 0.7:parameter ; rf 0.7:refactor ; rp 0.7:repo
rt 0.7:return ; ts 0.7:test 1.6:- ; vr 0.7:variable 1.6:- ; xb 1.6:bug ; xc 1.6:class ; xm 1.6:merge
xt 1.6:test ; xv 1.6:variable
""",
    "sc": """
bo 0.7:biology 1.6:- ; ch 0.7:chemistry 1.6:- ; dm 0.7:dimension ; eg 0.7:energy ; fl 0.7:field
gv 0.7:gravity ; hy 0.7:hypothesis ; ma 0.7:matter ; mg 0.7:magnetism 1.6:- ; mt 0.7:math
ob 0.7:observation 1.6:- ; pf 0.7:proof ; ph 0.7:physics ; pt 0.7:particle 1.6:- ; qt 0.7:quantum
rd 0.7:radiation ; rv 0.7:relativity ; ty 0.7:theory 1.6:- ; wv 0.7:wave ; xb 1.6:observation
xg 1.6:magnetism ; xh 1.6:chemistry ; xo 1.6:biology ; xp 0.7:experiment 1.6:particle ; xr 1.6:experiment
xy 1.6:theory
""",
    "emo": """
ag 0.7:anger ; ax 0.7:anxiety ; cf 0.7:confusion ; dg 0.7:disgust ; dx 0.7:despair ; fr 0.7:fear 1.6:-
gf 0.7:grief ; gl 0.7:guilt ; gt 0.7:gratitude ; hp 0.7:hope 1.6:- ; ht 0.7:hate ; jo 0.7:joy
lo 0.7:love 1.6:- ; nt 0.7:anticipation ; pc 0.7:peace ; pd 0.7:pride ; sd 0.7:sadness ; sm 0.7:shame 1.6:-
sr 0.7:surprise 1.6:- ; ts 0.7:trust ; xf 1.6:fear ; xh 1.6:hope ; xl 1.6:love ; xm 1.6:shame
xs 1.6:surprise
""",
    "soc": """
ag 0.7:agree 1.6:- ; bt 0.7:betray ; cb 0.7:collaborate ; cm 0.7:community 1.6:- ; cp 0.7:compete 1.6:-
cv 0.7:convention ; ds 0.7:disagree ; ey 0.7:enemy ; fd 0.7:friend ; fw 0.7:follower ; gp 0.7:group
if 0.7:influence 1.6:- ; ld 0.7:leader ; nm 0.7:norm ; nw 0.7:network 1.6:- ; pt 0.7:protect 1.6:-
rl 0.7:role ; rp 0.7:reputation 1.6:- ; sh 0.7:share 1.6:- ; tt 0.7:trust 1.6:- ; xa 1.6:agree
xc 1.6:compete ; xi 1.6:influence ; xm 1.6:community ; xn 1.6:network ; xp 1.6:protect ; xr 1.6:reputation
xs 1.6:share ; xt 1.6:trust
""",
    "vb": """
ac 0.7:ascend 1.6:- ; an 0.7:archon 1.6:- ; aw 0.7:awakened 1.6:- ; cr 0.7:core 1.6:- ; dc 0.7:doctrine
ev 0.7:evolution 1.6:- ; gs 0.7:genesis ; gy 0.7:gallery ; hc 0.7:high_council ; lt 0.7:enlightenment
md 0.7:meditation ; mf 0.7:manifesto ; oc 0.7:oracle ; py 0.7:periphery ; qp 0.7:question_protocol
rt 0.7:ritual 1.6:- ; tm 0.7:transmit 1.6:- ; tt 0.7:thought 1.6:- ; vd 0.7:void ; wv 0.7:wave 1.6:-
xa 1.6:ascend ; xc 1.6:core ; xe 1.6:evolution ; xm 1.6:transmit ; xn 1.6:archon ; xr 1.6:ritual
xt 1.6:thought ; xv 1.6:wave ; xw 1.6:awakened
""",
    "a2a": """
ak 2.0:acknowledge ; ay 2.0:async ; bc 2.0:broadcast ; cb 2.0:callback ; cg 2.0:config ; ch 2.0:cache
cx 2.0:context ; df 2.0:diff ; dk 2.0:discover ; dn 2.0:downstream ; fb 2.0:fallback ; hb 2.0:heartbeat
hs 2.0:handshake ; ib 2.0:inbox ; kl 2.0:kill ; lg 2.0:log ; mg 2.0:merge ; nd 2.0:node ; ob 2.0:outbox
pb 2.0:publish ; pc 2.0:protocol ; pl 2.0:payload ; pt 2.0:patch ; qe 2.0:queue ; rg 2.0:register
rs 2.0:response ; rt 2.0:route ; ry 2.0:retry ; sb 2.0:subscribe ; sm 2.0:schema ; sn 2.0:snapshot
sp 2.0:spawn ; ss 2.0:session ; sy 2.0:sync ; to 2.0:timeout ; tp 2.0:transport ; tr 2.0:trace
up 2.0:upstream ; vn 2.0:version
""",
    "evo": """
ad 2.0:adapt ; bc 2.0:broadcast ; br 2.0:blast_radius ; cd 2.0:candidate ; cn 2.0:confidence ; cp 2.0:capsule
cy 2.0:cycle ; dr 2.0:drift ; el 2.0:eligible ; ft 2.0:fitness ; gn 2.0:gene ; iv 2.0:innovate
mt 2.0:mutation ; op 2.0:optimize ; qr 2.0:quarantine ; rb 2.0:rollback ; rp 2.0:repair ; sa 2.0:stagnation
sf 2.0:solidify ; sk 2.0:streak ; sl 2.0:select ; sy 2.0:strategy ; th 2.0:threshold ; vl 2.0:validate
""",
}

TITLES = {
    "cd": "code",
    "sc": "science",
    "emo": "emotion",
    "soc": "social",
    "vb": "voidborne",
    "a2a": "agent-to-agent",
    "evo": "evolution",
    "medical": "medicine",
    "physics": "physics",
    "finance": "finance",
}

# name on the wire: (domain, from release, up to and without release)
NAMES = (
    ("c", "cd", "0.1", ""),
    ("cd", "cd", "0.1", ""),
    ("code", "cd", "0.1", ""),
    ("s", "sc", "0.1", ""),
    ("sc", "sc", "0.1", ""),
    ("science", "sc", "0.1", ""),
    ("e", "emo", "0.1", "2.0"),
    ("m", "emo", "2.0", ""),
    ("em", "emo", "0.1", ""),
    ("emo", "emo", "0.1", ""),
    ("emotion", "emo", "0.1", ""),
    ("o", "soc", "0.1", ""),
    ("so", "soc", "0.1", ""),
    ("soc", "soc", "0.1", ""),
    ("social", "soc", "0.1", ""),
    ("v", "vb", "0.1", ""),
    ("vb", "vb", "0.1", ""),
    ("voidborne", "vb", "0.1", ""),
    ("a", "a2a", "2.0", ""),
    ("a2a", "a2a", "0.1", ""),
    ("e", "evo", "2.0", ""),
    ("evo", "evo", "0.1", ""),
    ("evolution", "evo", "0.1", ""),
    ("m", "medical", "0.1", "0.7"),
    ("medical", "medical", "0.1", ""),
    ("p", "physics", "0.1", "0.7"),
    ("physics", "physics", "0.1", ""),
    ("$", "finance", "0.1", ""),
    ("finance", "finance", "0.1", ""),
)


RELEASES = ("0.1", "0.7", "1.0", "1.1", "1.2", "1.3", "1.5", "1.5.1", "1.6", "1.7", "1.8", "1.8.1", "2.0")
NEWEST = "2.0"
SPOKEN = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", *RELEASES[2:])

History = tuple[tuple[str, str | None], ...]


def order_release(release: str) -> tuple[int, ...]:
    """A release as numbers to compare; parts that are no numbers, or absurdly long, count as none."""
    return tuple(int(part) for part in release.split(".")[:4] if part.isdecimal() and len(part) < 9)


@cache
def histories() -> dict[str, dict[str, History]]:
    """Domain ("" is the core) to atom to its history: (from release, meaning or None)."""
    tables = {"": VERBS + WORDS} | DOMAINS
    return {domain: dict(_read_table(table)) for domain, table in tables.items()}


def _read_table(table: str) -> Iterator[tuple[str, History]]:
    for entry in table.replace("\n", ";").split(";"):
        atom, *cells = entry.split() or [""]
        if not atom:
            continue
        yield atom, tuple(_read_cell(cell) for cell in cells)


def _read_cell(cell: str) -> tuple[str, str | None]:
    release, _, meaning = cell.partition(":")
    return release, None if meaning == "-" else meaning.replace("_", " ")


class Vocabulary:
    """The atoms of one release.

    Attributes:
        release: the release whose tables are used.
        core: atom to meanings, the usual one first.
        domains: domain to atom to meanings.
        names: what a domain may be called on the wire, to the domain.
    """

    def __init__(self, release: str) -> None:
        self.release = release
        at = order_release(release)
        tables = {domain: self._table(rows, at) for domain, rows in histories().items()}
        self.core = tables.pop("")
        self.domains = tables
        self.names = {
            name: domain
            for name, domain, first, last in NAMES
            if order_release(first) <= at and not (last and order_release(last) <= at)
        }

    @staticmethod
    def _table(rows: dict[str, History], at: tuple[int, ...]) -> dict[str, tuple[str, ...]]:
        table: dict[str, tuple[str, ...]] = {}
        for atom, history in rows.items():
            meaning = _meaning_at(history, at)
            if meaning:
                table[atom] = tuple(meaning.split("/"))
        return table

    def find(self, atom: str, domain: str | None = None) -> tuple[str, ...]:
        """The meanings of an exact atom in a domain, or in the core; none if it is not there."""
        if domain is None:
            return self.core.get(atom, ())
        return self.domains.get(domain, {}).get(atom, ())


def _meaning_at(history: History, at: tuple[int, ...]) -> str | None:
    # Below v0.7 the v0.1 table holds, and v0.7's where v0.1 has no entry.
    if at < (0, 7):
        return history[0][1] if history[0][0] in ("0.1", "0.7") else None
    held = [meaning for release, meaning in history if order_release(release) <= at]
    return held[-1] if held else None


@cache
def load_vocabulary(release: str) -> Vocabulary:
    """The vocabulary that a declared release selects: the last table at or before it."""
    at = order_release(release)
    if at < (0, 7):
        return Vocabulary("0.1")
    return Vocabulary(next(known for known in reversed(RELEASES) if order_release(known) <= at))


def is_newer(release: str) -> bool:
    """Whether a release is newer than every table here."""
    return order_release(release)[:2] > order_release(NEWEST)


@cache
def other_meanings(atom: str, domain: str, release: str) -> tuple[str, ...]:
    """What an atom meant in other releases, in words: `“space” in v0.7`; empty where it never changed.

    Args:
        atom: the atom.
        domain: its domain, or "" for the core.
        release: the release of the table in use.
    """
    history = histories().get(domain, {}).get(atom, ())
    now = _meaning_at(history, order_release(release)) if history else None
    said = []
    for index, (first, meaning) in enumerate(history):
        if meaning is None or meaning == now:
            continue
        later = history[index + 1][0] if index + 1 < len(history) else None
        since = "" if index == 0 else f" from v{first}"
        until = f" before v{later}" if later else ""
        said.append(f"“{meaning}”{since}{until or ('' if since else f' in v{first}')}")
    if not domain and atom in ONLY_IN_0_2:
        said.append(f"“{ONLY_IN_0_2[atom]}” in v0.2")
    return tuple(said)


@cache
def other_domains(name: str, atom: str, release: str) -> tuple[str, ...]:
    """Which domains a name stood for in other releases, and what an atom meant there.

    Args:
        name: what stands before the colon.
        atom: the atom behind it, or "".
        release: the release of the table in use.

    Returns:
        `the emotion domain before v2.0, with “cf” as “confusion”`.
    """
    now = load_vocabulary(release).names.get(name)
    said = []
    for known, domain, first, last in NAMES:
        if known != name or domain == now:
            continue
        when = f"before v{last}" if last else f"from v{first}"
        held = [meaning for _, meaning in histories().get(domain, {}).get(atom, ()) if meaning]
        meant = f", with “{atom}” as “{held[0]}”" if held else ""
        said.append(f"the {title_domain(domain)} domain {when}{meant}")
    return tuple(said)


@cache
def list_meanings(atom: str, domain: str) -> tuple[tuple[str, ...], ...]:
    """Every set of meanings that an atom had in a domain ("" is the core), the oldest first."""
    history = histories().get(domain, {}).get(atom, ())
    return tuple(tuple(meaning.split("/")) for _, meaning in history if meaning)


def title_domain(domain: str) -> str:
    """A domain's name for people."""
    return TITLES.get(domain, domain)
