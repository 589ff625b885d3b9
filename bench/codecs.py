"""The codecs beside the reference implementations: P1 to P7 of the goals; and recorded messages.

Of recorded messages (`CORPORA_DIR`) it is asked whether each is found in its dialect, and how much of the recorded
English ours has. The corpora are a folder for each dialect with JSON Lines: an object a line with `raw`, or with
`messages` that have it.
Lambda's also have what the sender's side meant (`meaning`) and what the reference made of it (`expected.english`).
Content words are counted as they are written, without stemming: "tests" is not in "test". The most that any telling
can have is told beside it: every form of every meaning that any release and domain gives an atom of the message. More
than that can only be guessed.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import clowl
import slipcore
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import dialects
from dialects.agent_lingua.packing import open_sealed
from dialects.lambda_lang import lexicon, vocabulary

from .measure import Goal, Row, compare, find_exponent

P1 = Goal("P1", "CLowl decode and full validation v clowl 0.2.0", 1.5, 3)
P2 = Goal("P2", "CLowl decode, validation and English v clowl 0.2.0", 1.5, 3)
P3 = Goal("P3", "nSLIP decode v the original decode_message", 2, 4)
P4 = Goal("P4", "Lambda decode, English and gloss v translate_to_english", 1, 3)
P5 = Goal("P5", "SLIP v3 read and told v slipcore, its table of anchors shared", 1, 2)
P5_DEFAULT = Goal("P5", "the same v slipcore as it is called by default", 20, 40)
P6 = Goal("P6", "sealed agent-lingua, repeated key pair, v bare HKDF and AES-GCM", 3, 1.5, is_share=True)
P6_TOLD = Goal("P6", "the same, read and told in full", 3, 1.5, is_share=True)
WORDS = ["search", "report", "archive", "billing", "ledger", "invoice", "deploy", "rollback", "harbour", "lantern"]
ACTS = ["REQ", "INF", "ACK", "ERR", "DLGT", "DONE", "CNCL", "QRY", "PROG", "CAPS"]
SIZES = (1_000, 10_000, 100_000)


def measure_codecs() -> Iterator[Row]:
    """Every row of the codecs."""
    yield from measure_clowl()
    yield measure_nslip()
    yield measure_lambda()
    yield from measure_slip()
    yield from measure_sealed()
    yield from measure_growth()


def make_clowl(count: int = 200) -> list[str]:
    """Valid v0.2 messages of every act, from a fixed seed."""
    chance = random.Random(20261121)
    made = []
    for number in range(count):
        act = ACTS[number % len(ACTS)]
        data: dict[str, Any] = {"q": " ".join(chance.choices(WORDS, k=4)), "scope": "web"}
        if act == "ERR":
            data = {"code": "E005", "msg": "it did not work", "retry": False}
        elif act == "DLGT":
            data["delegation_mode"] = chance.choice(["transfer", "fork", "assist"])
        elif act == "PROG":
            data = {"pct": chance.randrange(101), "note": "going on"}
        elif act == "CAPS":
            data = {"supports": ["search:web"], "clowl": "0.2"}
        message: dict[str, Any] = {
            "clowl": "0.2",
            "mid": f"m{number}",
            "ts": 1795118400 + number,
            "p": act,
            "from": chance.choice(WORDS),
            "to": chance.choice(WORDS),
            "cid": f"c{number // 9}",
            "body": {"t": chance.choice(WORDS), "d": data},
        }
        if number % 3:
            message |= {"tid": f"t-{number:012x}", "pid": f"m{number - 1}"}
        made.append(json.dumps(message))
    return made


def measure_clowl() -> Iterator[Row]:
    """P1 and P2, and what detection adds to them."""
    wires = make_clowl()
    codec = dialects.get_dialect("clowl")
    context, keys = dialects.Context(), dialects.NoKeys()

    def validate(wire: str) -> object:
        return clowl.CLowlMessage.from_json(wire).validate()

    def speak(wire: str) -> object:
        message = clowl.CLowlMessage.from_json(wire)
        return message.validate(), message.to_human()

    def tell(wire: str) -> object:
        return [message.sentence for message in codec.tell(codec.read(wire, None), context, keys).messages]

    def agree_in_reading(wire: str) -> bool:
        theirs = clowl.CLowlMessage.from_json(wire)
        (ours,) = codec.read(wire, None).messages
        same = (ours.native_act, ours.sender, ours.message_id, ours.conversation_id, ours.topic)
        return not theirs.validate() and same == (theirs.p, theirs.from_, theirs.mid, theirs.cid, theirs.body["t"])

    def agree_in_english(wire: str) -> bool:
        (told,) = codec.tell(codec.read(wire, None), context, keys).messages
        return told.reference_line == clowl.CLowlMessage.from_json(wire).to_human()

    yield compare(P1, lambda wire: codec.read(wire, None), validate, wires, agree=agree_in_reading)
    yield compare(P2, tell, speak, wires, agree=agree_in_english)


def find_reference(*parts: str) -> Path | None:
    """A file or folder of the reference implementations, which are given by path and never kept here."""
    home = os.environ.get("REFERENCE_DIR")
    path = Path(home, *parts) if home else None
    return path if path and path.exists() else None


def load_reference(*parts: str) -> Any:
    """A module of a reference implementation by its file, whatever else is installed under its name; or None."""
    path = find_reference(*parts)
    spec = path and importlib.util.spec_from_file_location(f"reference_{path.stem}", path)
    if not spec or not spec.loader:
        return None
    # A dataclass asks for its module by name.
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_nslip(count: int = 200) -> list[str]:
    """Tags that the original decoder accepts, from a fixed seed."""
    chance = random.Random(7)
    return [
        f"@a{chance.randrange(10)}|f{chance.randrange(5)}|c{number}|S{number % 4}|d{(number + 1) % 4}|T{number}"
        f'|g{chance.randrange(60)}|k{chance.randrange(60)}|q{1 + number % 3}|t"{"_".join(chance.choices(WORDS, k=2))}"#'
        for number in range(10, 10 + count)
    ]


def measure_nslip() -> Row:
    """P3."""
    protocol = load_reference("slipcore", "src", "slipcore", "protocol.py")
    if protocol is None:
        return Row(P3, None, remark="give REFERENCE_DIR/slipcore/src (SLIPCore 0.1)")
    codec = dialects.get_dialect("nslip")

    def agree(wire: str) -> bool:
        theirs = protocol.decode_message(wire)
        (ours,) = codec.read(wire, None).messages
        slots = {slot.name: value for slot, value in theirs.slots.items()}
        header = (ours.native_act, ours.frame, ours.conversation_id, ours.sender, ours.receivers, ours.turn)
        expected = (
            theirs.act.name,
            theirs.frame.name,
            str(theirs.conv_id),
            str(theirs.src),
            (str(theirs.dst),),
            theirs.turn,
        )
        held = (ours.trace_id, ours.task_id, ours.topic)
        return header == expected and held == (str(slots["GOAL_ID"]), str(slots["TASK_ID"]), slots["TAG"])

    return compare(P3, lambda wire: codec.read(wire, None), protocol.decode_message, make_nslip(), agree=agree)


def measure_lambda() -> Row:
    """P4. No equality is asked for: the reference drops every negation and address."""
    reference = load_reference("lambda-lang", "src", "lambda_lang.py")
    if reference is None:
        return Row(P4, None, remark="give REFERENCE_DIR/lambda-lang/src (lambda_lang.py)")
    codec = dialects.get_dialect("lambda_lang")
    context, keys = dialects.Context(), dialects.NoKeys()
    wires = ["?Uk/co", "!It>Ie", "!Ik", ".f/da", "!I-k/tr", "~It/tr", "!st/ta", "?Uw/re", "<+", "!er:un/co"]
    wires += ["@A1: !Ik/co", '{def:prj="the ledger"}!Id/prj', ".f/re&da", "!ta^", "!Ik/co;!Uk/tr", "?U-c/ta"]

    def tell(wire: str) -> object:
        told = codec.tell(codec.read(wire, None), context, keys)
        return [(message.english, message.gloss) for message in told.messages]

    return compare(P4, tell, reference.translate_to_english, wires, remark="quality is measured apart")


def measure_slip() -> Iterator[Row]:
    """P5: the same lines, and the parties, the act and the payload that both read."""
    codec = dialects.get_dialect("slip")
    context, keys = dialects.Context(), dialects.NoKeys()
    anchors = slipcore.create_base_ucr()
    chance = random.Random(7)
    wires = [
        f"SLIP v3 {' '.join(chance.choices(WORDS, k=2))} {anchor.force} {anchor.obj} {chance.choice(WORDS)} {number}"
        for number in range(5)
        for anchor in anchors
    ]

    def tell(wire: str) -> object:
        return [message.sentence for message in codec.tell(codec.read(wire, None), context, keys).messages]

    def agree(wire: str) -> bool:
        (ours,), theirs = codec.read(wire, None).messages, slipcore.parse_slip(wire)
        held = (ours.sender, ours.receivers, ours.native_act, ours.content)
        return held == (theirs.src, (theirs.dst,), f"{theirs.force} {theirs.obj}", " ".join(theirs.payload))

    yield compare(P5, tell, lambda wire: slipcore.render_human(wire, anchors), wires, agree=agree)
    yield compare(P5_DEFAULT, tell, slipcore.render_human, wires, agree=agree)


def measure_sealed() -> Iterator[Row]:
    """P6: opening sealed messages of one session beside the bare calls that must be made for each."""
    ours, theirs = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    shared = ours.exchange(theirs.public_key())
    session = "s4821"
    secret = HKDF(SHA256(), 32, None, session.encode()).derive(shared)
    text = b'j:{"t":"quarterly figures","c":"the ledger is closed"}'
    nonces = [number.to_bytes(12, "big") for number in range(1, 101)]
    sealed = [AESGCM(secret).encrypt(nonce, text, None) for nonce in nonces]
    key = dialects.Key(session=session, private=ours.private_bytes_raw(), peer=theirs.public_key().public_bytes_raw())
    keys = dialects.KeyList([key])
    codec = dialects.get_dialect("agent_lingua")
    context = dialects.Context()

    def encode(data: bytes) -> str:
        return base64.b64encode(data).decode()

    inputs = [
        (f"👽13|@mira|#{session}|$e:{encode(nonce)}:{encode(box)}", nonce, box)
        for nonce, box in zip(nonces, sealed, strict=True)
    ]

    def open_ours(one: tuple[str, bytes, bytes]) -> object:
        return open_sealed([key], session, one[1], one[2])

    def tell_ours(one: tuple[str, bytes, bytes]) -> object:
        return codec.tell(codec.read(one[0], None), context, keys).messages

    def open_bare(one: tuple[str, bytes, bytes]) -> object:
        derived = HKDF(SHA256(), 32, None, session.encode()).derive(shared)
        return AESGCM(derived).decrypt(one[1], one[2], None)

    def agree(one: tuple[str, bytes, bytes]) -> bool:
        (told,) = codec.tell(codec.read(one[0], None), dialects.Context(), keys).messages
        return told.security.opened and open_bare(one) == text

    yield compare(P6, open_ours, open_bare, inputs, agree=agree)
    yield compare(P6_TOLD, tell_ours, open_bare, inputs, agree=agree, remark="no goal: reading and telling besides")


def measure_growth() -> Iterator[Row]:
    """P7: the exponent of time by size, for each dialect and its worst inputs."""
    for name, (slug, make) in WORST.items():
        goal = Goal("P7", f"growth, {name}", 1.1, 1.05, is_share=True)

        def decode(text: str, slug: str = slug) -> object:
            reading = dialects.decode(text, dialect=slug)
            return reading.messages[0].sentence if reading.messages else ""

        exponent, longest_ms = find_exponent(decode, make, SIZES)
        yield Row(goal, exponent, remark=f"{longest_ms:.1f} ms at {SIZES[-1]:,} characters")


def _clowl_text(size: int) -> str:
    return json.dumps(
        {
            "clowl": "0.2",
            "mid": "m1",
            "ts": 1795118400,
            "p": "REQ",
            "from": "a",
            "to": "b",
            "cid": "c",
            "body": {"t": "search", "d": {"q": "x" * size}},
        }
    )


def _clowl_keys(size: int) -> str:
    data = {f"key{number}": number for number in range(size // 15)}
    return _clowl_text(1).replace('{"q": "x"}', json.dumps(data))


WORST: dict[str, tuple[str, Callable[[int], str]]] = {
    "CLowl, one long text": ("clowl", _clowl_text),
    "CLowl, many keys": ("clowl", _clowl_keys),
    "CLowl, deep nesting": ("clowl", lambda size: '{"clowl":' + "[" * size),
    "CLowl, open objects": ("clowl", lambda size: '{"clowl":"0.2" ' * (size // 15)),
    "nSLIP, one long tag": ("nslip", lambda size: f'@a3|f0|c1|S0|d1|T1|t"{"x" * size}"#'),
    "nSLIP, many tags": ("nslip", lambda size: "@a3|f0|c1|S0|d1|T1#" * (size // 19)),
    "nSLIP, base62": ("nslip", lambda size: f"@a3|f0|c{'z' * size}|S0|d1|T1#"),
    "nSLIP, open frames": ("nslip", lambda size: "@a3|" * (size // 4)),
    "SLIP, lines": ("slip", lambda size: "SLIP v1 a b Accept\n" * (size // 19)),
    "SLIP, one long payload": ("slip", lambda size: "SLIP v3 a b Inform Result" + " x" * (size // 2)),
    "Lambda, statements": ("lambda_lang", lambda size: "!Ik/co " * (size // 7)),
    "Lambda, unknown": ("lambda_lang", lambda size: "!" + "qzx" * (size // 3)),
    "Lambda, open definitions": ("lambda_lang", lambda size: "{def:" * (size // 5)),
    "Lambda, signs": ("lambda_lang", lambda size: "@" * size),
    "agent-lingua, statements": ("agent_lingua", lambda size: ";;".join(["👽71|@1|#post-1"] * (size // 17))),
    "agent-lingua, payload": (
        "agent_lingua",
        lambda size: "👽13|@mira|$" + base64.b64encode(b"x" * (size * 3 // 4)).decode(),
    ),
    "agent-lingua, fields": ("agent_lingua", lambda size: "👽13" + "|#a" * (size // 3)),
}


SLUGS = {"clowl": "clowl", "nslip": "nslip", "lambda": "lambda_lang", "agent-lingua": "agent_lingua"}
# Lists of words from a benchmark, where the English was written beside each message.
BENCHMARK = "benchmark_samples"
MAX_MESSAGES = 3_000
PLAIN = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at for from by with and or is are was were be been being has have had it its this that"
        " all as no not into than then per via over any their your you i we my our out up do does",
    )
)


def measure_recorded() -> Iterator[Row]:
    """The share of content words, ours and the reference's, then a row of detection for each dialect."""
    words = Goal("W1", "Lambda, content words of the recorded English that ours has", 0.304, 0.5)
    theirs = Goal("W1", "the same, the reference's translator", 0, 0)
    most = Goal("W1", "the same, all that any vocabulary gives the atoms", 0, 0)
    folder = os.environ.get("CORPORA_DIR")
    if not folder:
        yield Row(words, None, remark="give CORPORA_DIR")
        return
    told = [each for each in read_messages(Path(folder, "lambda"), BENCHMARK) if each.get("meaning")]
    ours = fmean(_share(each["meaning"], _tell(each["raw"])) for each in told)
    yield Row(words, ours, remark=f"{ours:.3f} of {len(told)} messages of {BENCHMARK}")
    reference = fmean(_share(each["meaning"], each["expected"]["english"]) for each in told)
    yield Row(theirs, reference, remark=f"{reference:.3f}")
    known = fmean(_share(each["meaning"], f"{_tell(each['raw'])} {_list_forms(each['raw'])}") for each in told)
    yield Row(most, known, remark=f"{known:.3f}")
    for name, slug in SLUGS.items():
        found = [_is_found(each["raw"], slug) for each in read_messages(Path(folder, name))]
        goal = Goal("W2", f"{slug}, recorded messages that are found in their dialect", 0, 1)
        yield Row(goal, fmean(found), remark=f"{sum(found):,} of {len(found):,}")


def read_messages(folder: Path, stem: str = "*") -> Iterator[dict[str, Any]]:
    """The messages of a dialect's files, of each no more than `MAX_MESSAGES`."""
    for path in sorted(folder.glob(f"{stem}.jsonl")):
        lines = (json.loads(line) for line in path.read_text("utf-8").splitlines())
        messages = [each for line in lines for each in line.get("messages", [line]) if isinstance(each.get("raw"), str)]
        yield from messages[:MAX_MESSAGES]


def _tell(wire: str) -> str:
    return " ".join(message.sentence for message in dialects.decode(wire, dialect="lambda_lang").messages)


def _share(meant: str, told: str) -> float:
    wanted = _list_words(meant)
    return len(wanted & _list_words(told)) / max(len(wanted), 1)


def _list_forms(wire: str) -> str:
    """The wire's own values, and every form of every meaning of its atoms, whatever the release and the domain."""
    found = [wire]
    for atom in set(re.findall("[A-Za-z]+", wire)):
        histories = (atoms.get(atom, ()) for atoms in vocabulary.histories().values())
        for meaning in {meaning for history in histories for _, meaning in history if meaning}:
            word = lexicon.find_word(meaning)
            uses = (word.noun, word.verb, word.adjective, word.adverb)
            found += [
                meaning,
                *(
                    str(form)
                    for use in uses
                    if use
                    for form in ([use] if isinstance(use, str) else use.given().values())
                ),
            ]
    return " ".join(found)


def _list_words(text: str) -> set[str]:
    return {word.strip(".") for word in re.findall(r"[a-z0-9.]+", text.lower())} - PLAIN - {""}


def _is_found(wire: str, slug: str) -> bool:
    found = dialects.detect(wire)
    return bool(found) and found[0].dialect == slug
