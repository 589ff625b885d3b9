"""The core atoms of Λ Lambda: what each meant, and from which release on.

An entry is an atom and its history: `an 0.1:answer 1.8:analyze 2.0:answer` was "answer" first, "analyze" from
v1.8 and "answer" again from v2.0. `-` says that the atom was withdrawn; `/` separates meanings that one release
gave side by side; `_` stands for a space.
"""

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
