"""The atoms of the seven domains, with their histories, written as in `core_atoms`.

A domain is named by one letter, by two or by its long name; which domain a letter names depends on the release.
"""

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
