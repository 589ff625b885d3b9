"""The reader's test: what somebody understands who sees the English alone.

    make reader ARGS='--conversations 30 --seed 7 --into DIR'
    make reader ARGS='--score DIR'

Draws conversations of each dialect, half of them with riddles of `reader_stories`, half recorded where CORPORA_DIR
names a folder of JSON lines (without it all have riddles). `DIR/reader/` is all that a reader may see: for each
conversation the English that the shell prints, with a menu; and the form to fill in. `DIR/truth/` holds the logs and
the true answers, which come from the generator and from the decoded records, never from the English.

A message is understood rightly where every answer is right and every doubt is passed on, in part where something was
left open or a doubt is missing or made up, and misled where an answer says what is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import dialects

from .reader_stories import ACTS, DIALECTS, DOUBTS, ENDS, PEOPLE, UNKNOWN, Talk, Truth, count_riddles, write_talk

QUESTIONS = ("who", "to", "act", "about", "reply", "end", "doubts")
ANY = "*"
_OF_HANDSHAKES = frozenset({"accepted", "capabilities", "session"})
_STEM = re.compile(r"\b[a-zA-Z]{5}")
_NUMBER = re.compile(r"\d{1,9}")
GRAVE = ("warning", "error")
TOLD = ("notice", *GRAVE)
# Of these the reader is told where it is not known what they answer.
ANSWERS = {"done", "failed", "received", "agrees", "refuses", "under-way"}
# And of what is not understood: that may answer too.
LEFT_OPEN = {*ANSWERS, UNKNOWN}
# Whoever was asked so may answer by a statement.
WAITS = {"asks", "question", "offers", "hands-on"}
MAX_MESSAGES = 8
MIN_CHARACTERS = 4
# What the words of the shared vocabulary are on the menu of acts.
ACT_OF = {
    "request": "asks", "query": "question", "inform": "states", "observe": "states", "acknowledge": "received",
    "accept": "agrees", "reject": "refuses", "commit": "promises", "done": "done", "failure": "failed",
    "not-understood": "failed", "cancel": "cancels", "delegate": "hands-on", "progress": "under-way",
    "propose": "offers", "evaluate": "judges", "advertise": "greets", "handshake": "greets", "control": "other",
    "subscribe": "asks", "unsubscribe": "asks",
}  # fmt: skip
# Which doubts a note of the decoder bears: by its code, else by its group.
BEARS_BY_CODE = {
    "key": "E", "invisible": "F", "hidden": "F", "bidi": "F", "redefin": "D", "clash": "D", "differ": "DK",
    "receiver": "HK", "sender": "HK", "downgrade": "L", "unsigned": "L", "signature": "L", "session": "LB",
    "target": "K", "repeated-field": "K", "contradict": "J", "refus": "J", "fail": "J", "duplicate": "AHJ",
    "repeat": "A", "mislabel": "J", "run": "A", "turn": "AC",
}  # fmt: skip
BEARS_BY_GROUP = {
    "malformed": "H", "undecoded": "H", "protocol": "H", "sequence": "ABCI", "assumption": "DHIK", "security": "EFL",
    "deprecated": "H",
}  # fmt: skip
# What an acknowledgement says beside that the message has come.
ALSO_SAYS = {"agreed": "agrees", "disagreed": "refuses"}
FOLDERS = {"clowl": "clowl", "nslip": "nslip", "lambda": "lambda_lang", "agent-lingua": "agent_lingua"}


@dataclass(frozen=True, kw_only=True)
class Question:
    """One message to answer for: the right answers by question, and which doubts may be named beside those needed."""

    name: str
    dialect: str
    right: dict[str, tuple[str, ...]]
    needed: tuple[str, ...]
    allowed: str
    # What the letters stand for.
    people: dict[str, str]
    about: dict[str, str]
    # Where the decoded record says another speaker, receiver or act than the generator: a miss of the decoder.
    differs: str = ""


def draw(count: int, seed: int, into: Path) -> int:
    """Write the reader's folder and the truth's; how many messages they ask about."""
    chance = random.Random(seed)
    corpora = os.environ.get("CORPORA_DIR")
    recorded = read_recorded(Path(corpora)) if corpora else {}
    for folder in (into / "reader", into / "truth"):
        folder.mkdir(parents=True, exist_ok=True)
    asked: list[Question] = []
    for dialect in DIALECTS:
        found = recorded.get(dialect, [])
        # Half of what is recorded are conversations, as far as there are so many.
        talks_of = [[each for each in found if (len(each) > 1) is is_long] for is_long in (True, False)]
        longer = chance.sample(talks_of[0], min(count // 4, len(talks_of[0])))
        kept = longer + chance.sample(talks_of[1], min(count // 2 - len(longer), len(talks_of[1])))
        first = chance.randrange(count_riddles(dialect))
        told = [make_recorded(dialect, said, found, chance) for said in kept]
        told = [talk for talk in told if talk.lines]
        talks = [write_talk(dialect, f"talk-{at}", chance, first + at) for at in range(count - len(told))] + told
        own: list[Question] = []
        for number, talk in enumerate(talks, 1):
            name = f"{dialect}-{number:02}"
            log = into / "truth" / f"{name}.jsonl"
            log.write_text("".join(f"{line}\n" for line in talk.lines))
            menu, questions = make_questions(name, talk, chance)
            text = f"{name}\n\n{print_english(log)}\n{menu}"
            (into / "reader" / f"{name}.txt").write_text(text)
            own += questions
        form = [HOW, f"# {' | '.join(('message', *QUESTIONS, 'what is doubtful, in words'))}"]
        form += [f"{question.name}{' |' * (len(QUESTIONS) + 1)}" for question in own]
        (into / "reader" / f"answers-{dialect}.txt").write_text("\n".join(form) + "\n")
        asked += own
    (into / "truth" / "truth.json").write_text(json.dumps([asdict(each) for each in asked], indent=1))
    return len(asked)


def print_english(log: Path) -> str:
    """What the shell prints of a log."""
    command = [sys.executable, "-m", "dialects", "decode", "--format", "english", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return done.stdout


def list_menu(rows: dict[str, str]) -> str:
    """Lines of a menu: the answer, and what it means."""
    return "\n".join(f"#   {key:10} {text}" for key, text in rows.items())


HOW = f"""# Answer from the English alone. One line is one message; between the bars stand, in this order:
# who, to: a letter of the conversation's people. act, end, doubts: from the lists here. about: the words of the
# message's own list (copied, without the letter). reply: the number of the message answered, `none` (it answers
# nothing), `missing` (one that is not in the record) or `unclear` (several, or it cannot be told). `?` is always
# allowed: better than a guess.
# act
{list_menu(ACTS)}
# end: how the matter stands, by this message
{list_menu(ENDS)}
# doubts: all letters that apply, or `-`
{list_menu(DOUBTS)}"""


def decode_log(talk: Talk) -> list[dialects.Reading]:
    """The records of a talk, told in their order."""
    conversations, readings = dialects.Conversations(), []
    for index, line in enumerate(talk.lines):
        items = dialects.read_log([line.encode() + b"\n"])
        records = [item for item in items if isinstance(item, dialects.LogRecord)]
        readings += [conversations.tell(dialects.read(each.wire or "", each.envelope), index) for each in records]
    return readings


def make_questions(name: str, talk: Talk, chance: random.Random) -> tuple[str, list[Question]]:
    """The menu of a conversation, and its questions with their answers."""
    people = dict.fromkeys(each for truths in talk.truths for truth in truths for each in (truth.who, *truth.to))
    stranger = chance.choice([each for each in PEOPLE if each not in people])
    letters = _letter(
        [*(each for each in people if each not in (UNKNOWN, ANY, "everyone")), stranger, "everyone"], chance
    )
    lines = [
        "People",
        *(f"  {letter}) {_show(person)}" for person, letter in sorted(letters.items(), key=itemgetter(1))),
    ]
    lines += ["  ?) not known", "About"]
    questions, number, before = [], 0, None
    said: set[str] = set()
    ended: dict[tuple[str | None, str | None], set[str | None]] = {}
    waiting: set[tuple[str, str]] = set()
    for truths, reading in zip(talk.truths, decode_log(talk), strict=True):
        if len(truths) != len(reading.messages):
            raise ValueError(f"{name}: {len(reading.messages)} messages are read where {len(truths)} were written")
        for truth, message in zip(truths, reading.messages, strict=True):
            number += 1
            options = _letter([each for each in (*truth.about, *truth.wrong) if each not in (UNKNOWN, ANY)], chance)
            shown = "; ".join(f"{letter}) {_show(text)}" for text, letter in sorted(options.items(), key=itemgetter(1)))
            lines.append(f"  {number}: {shown}; ?) cannot be told" if shown else f"  {number}: not asked")
            # Of what the record gives no act, the reader is told that nobody knows whether it answers.
            is_open = bool(LEFT_OPEN & {*truth.act, ACT_OF.get(message.performative or "", UNKNOWN)})
            # No statement of Lambda names what it answers: whether the one who was asked answers by it nobody knows.
            pairs = {(to, truth.who) for to in truth.to}
            is_open |= talk.dialect == "lambda_lang" and "states" in truth.act and bool(pairs & waiting)
            waiting -= pairs
            waiting |= {(truth.who, to) for to in truth.to} if WAITS & {*truth.act} else set()
            right = {
                "who": (letters.get(truth.who, UNKNOWN),),
                "to": tuple(letters.get(each, each) for each in truth.to),
                "act": truth.act,
                "about": tuple(options.get(each, each) for each in truth.about),
                "reply": (*truth.reply, "unclear") if is_open and "none" in truth.reply else truth.reply,
                "end": truth.ends,
            }
            moment = datetime.fromisoformat(message.sent_at) if message.sent_at else before
            also = ["C"] if before and moment and moment < before else []
            also += ["C"] if _is_past(message) else []
            also += ["A"] if reading.wire in said else []
            said.add(reading.wire)
            also += ["K"] if truth.who == UNKNOWN or not message.receivers or truth.who.startswith("<") else []
            ends = ended.setdefault((message.sender, message.parent_id), set())
            also += ["J"] if {message.performative, *ends} >= {"done", "failure"} else []
            ends.add(message.performative)
            also += ["I"] if {"unclear", "missing"} & set(right["reply"]) else []
            before = max(filter(None, (before, moment)), default=None)
            heard = _find_doubts([*message.notes, *reading.notes])
            questions.append(
                Question(
                    name=f"{name}/{number}",
                    dialect=talk.dialect,
                    right=right,
                    needed=truth.doubts,
                    allowed="".join(sorted({*"".join((*heard, *also, *truth.doubts, truth.may))})),
                    people={letter: person for person, letter in letters.items()},
                    about={letter: text for text, letter in options.items()},
                    differs=_compare(truth, message),
                )
            )
    return "\n".join(lines) + "\n", questions


def _is_past(message: dialects.Message) -> bool:
    """Whether a time that it sets was over when it was sent."""
    set_for = [each.instant for each in (message.deadline, message.schedule) if each is not None and each.instant]
    sent_at = message.sent_at and datetime.fromisoformat(message.sent_at)
    return any(sent_at and datetime.fromisoformat(instant) < sent_at for instant in set_for)


def _letter(texts: Sequence[str], chance: random.Random) -> dict[str, str]:
    shuffled = list(dict.fromkeys(texts))
    chance.shuffle(shuffled)
    return {text: "abcdefghijklmnopqrstuvwxyz"[at] for at, text in enumerate(shuffled)}


def _show(text: str) -> str:
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def _find_doubts(notes: Sequence[dialects.Note], severities: Sequence[str] = TOLD) -> Iterator[str]:
    for note in notes:
        if note.severity in severities:
            own = [letters for word, letters in BEARS_BY_CODE.items() if word in note.code]
            yield "".join(own) + BEARS_BY_GROUP[note.group]


def _compare(truth: Truth, message: dialects.Message) -> str:
    said = {"who": message.sender or UNKNOWN, "act": ACT_OF.get(message.performative or "", UNKNOWN)}
    wanted = {"who": (truth.who.removeprefix("agent "),), "act": truth.act}
    return ", ".join(
        f"{name}: {said[name]}" for name in said if said[name] not in wanted[name] and ANY not in wanted[name]
    )


def read_recorded(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """The recorded conversations by dialect; a message that stands alone is one of one message."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for path in sorted(folder.glob("*/*.jsonl")):
        own = found.setdefault(FOLDERS.get(path.parent.name, path.parent.name), [])
        for text in path.read_text().splitlines():
            said = json.loads(text)
            messages = said.get("messages", [said])[:MAX_MESSAGES]
            # Documents record single signs too, which nobody sends.
            own += [messages] if all(len(each["raw"]) >= MIN_CHARACTERS for each in messages) else []
    return found


def make_recorded(
    dialect: str, said: list[dict[str, Any]], others: list[list[dict[str, Any]]], chance: random.Random
) -> Talk:
    """A recorded conversation: its truth is what was recorded of it, and where nothing was, what is decoded."""
    talk, ids = Talk(dialect, "recorded", chance), {}
    cancelled: dict[str, bool] = {}
    # What the wires say themselves no envelope says beside them.
    names = ("conversation", "at", "from", "to") if dialect in ("lambda_lang", "agent_lingua") else ("from", "to")
    for at, each in enumerate(said):
        whole = json.loads(talk.wrap(each["raw"], each.get("from", ""), each.get("to", ""), later_s=60 * at))
        talk.lines.append(json.dumps({name: whole[name] for name in ("raw", *names) if name in whole}))
    pool = [_say_about(each, None) for other in chance.sample(others, min(3, len(others))) for each in other[:1]]
    for at, (each, reading) in enumerate(zip(said, decode_log(talk), strict=True)):
        if len(reading.messages) != 1:
            # What is recorded of several parts together cannot be asked of each.
            talk.lines = talk.lines[:at]
            break
        (message,) = reading.messages
        about = _say_about(each, message)
        # Of agent-lingua some recorders named their sample, and not what the message says.
        about = about if dialect != "agent_lingua" or _is_said(about, message) else ""
        ids[message.message_id] = str(at + 1)
        parent = ids.get(message.parent_id) if message.parent_id else None
        act = ACT_OF.get(message.performative or "", UNKNOWN)
        is_lost = bool(message.parent_id) and not parent
        acts = (act,)
        if act == "received" and message.status in ALSO_SAYS:
            acts = (act, ALSO_SAYS[message.status])
        elif act == "received" and (message.status == "cancelled" or cancelled.get(message.parent_id or "")):
            # Whoever confirms that something is withdrawn also agrees to it.
            acts = (act, "agrees")
        elif act == "done" and isinstance(message.content, Mapping) and _OF_HANDSHAKES & message.content.keys():
            # Whoever accepts a handshake or says what it can do opens a session, and agrees to it.
            acts = (act, "agrees", "greets")
        elif act == UNKNOWN and "so no act" in message.sentence:
            # What says that it is no act is something else as well.
            acts = (act, "other")
        cancelled[message.message_id or ""] = act == "cancels"
        heard = [*message.notes, *reading.notes]
        is_known = all(note.group != "undecoded" for note in heard)
        truth = Truth(
            who=_name(message.sender, dialect),
            to=tuple(_name(one, dialect) for one in message.receivers) or (ANY,),
            # A statement of Lambda may state anything: that something is done, agreed or refused too.
            act=(ANY,) if dialect == "lambda_lang" and act == "states" else acts,
            # Of what was read in part alone the doubt is a right answer.
            about=(about or ANY,) if is_known else (about or ANY, UNKNOWN),
            wrong=tuple(one for one in _find_distractors(about, said, at, pool) if about and one and one != about),
            reply=(parent,) if parent else ("missing",) if message.parent_id else (ANY,),
            end=(ANY,),
            doubts=(*_find_doubts(heard, GRAVE), *(("B",) if is_lost else ())),
            # What answers and names nothing leaves open what it answers, and in nSLIP nothing names what it answers.
            may="GI" if not message.parent_id and (act in LEFT_OPEN or dialect == "nslip") else "G",
        )
        talk.truths.append((truth,))
    return talk


def _find_distractors(about: str, said: list[dict[str, Any]], at: int, pool: list[str]) -> list[str]:
    """What a message might be about and is not: negated, with another number, what others say, here and elsewhere."""
    renumbered = _NUMBER.sub(lambda found: str(int(found[0]) + 3), about, count=1)
    beside = [_say_about(each, None) for each in (*said[max(0, at - 1) : at], *said[at + 1 : at + 2])]
    return [f"not: {about}", renumbered, *beside, *pool]


def _name(name: str | None, dialect: str) -> str:
    return UNKNOWN if name is None else f"agent {name}" if dialect == "nslip" else name


def _say_about(said: dict[str, Any], message: dialects.Message | None) -> str:
    """What a recorded message is about: in its recorder's words, else by its own fields."""
    if said.get("meaning") and "hand-written" not in said.get("source", ""):
        return str(said["meaning"])
    slots = (said.get("expected") or {}).get("slots") or {}
    if slots:
        return ", ".join(f"{name.lower().replace('_', ' ')} {value}" for name, value in slots.items())
    if message is not None and message.topic:
        return message.topic
    try:
        return str(json.loads(said["raw"])["body"]["t"])
    except (ValueError, KeyError, TypeError):
        return ""


def _is_said(meaning: str, message: dialects.Message) -> bool:
    """Whether a word of what the recorder wrote stands in the decoded record."""
    written = f"{message.performative} {message.topic} {json.dumps(message.content, default=str)}".casefold()
    return any(stem.casefold() in written for stem in _STEM.findall(meaning))


@dataclass(frozen=True, kw_only=True)
class Miss:
    """One answer that is not the truth."""

    name: str
    question: str
    kind: str
    truth: str
    answer: str


def read_answers(folder: Path) -> dict[str, list[str]]:
    """The filled-in lines by message."""
    found = {}
    for path in sorted(folder.glob("answers-*.txt")):
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                name, *cells = (cell.strip() for cell in line.split("|"))
                # A form that nobody filled in takes no answer away.
                found |= {name: cells} if any(cells) else {}
    return found


def mark(question: Question, cells: Sequence[str]) -> list[Miss]:
    """What of the answers to one message is not the truth."""
    given = dict(zip(QUESTIONS, [*cells, *[""] * len(QUESTIONS)], strict=False))
    misses = []
    for name, right in question.right.items():
        answer = given[name].lower() or UNKNOWN
        answer = UNKNOWN if answer == "cannot be told" else answer
        # Of several receivers one is right, and so are all.
        several = re.split(r"[ ,&+]+", answer) if name == "to" else [answer]
        if name == "about":
            several = [letter for letter, text in question.about.items() if _show(text).lower() == answer] or several
        if ANY in right or set(several) <= set(right):
            continue
        kind = "in part" if answer == UNKNOWN else "misled"
        truth, said = (" or ".join(_tell(question, name, one) for one in right), _tell(question, name, answer))
        misses.append(Miss(name=question.name, question=name, kind=kind, truth=truth, answer=said))
    doubts = {letter for letter in given["doubts"].upper() if letter in DOUBTS}
    missing = [each for each in question.needed if not doubts & set(each)]
    extra = doubts - set(question.allowed)
    if missing or extra:
        truth = f"needs {' '.join(missing)}" if missing else f"not {''.join(sorted(extra))}"
        said = given["doubts"] or "nothing"
        misses.append(Miss(name=question.name, question="doubts", kind="in part", truth=truth, answer=said))
    return misses


def _tell(question: Question, name: str, answer: str) -> str:
    menu = question.about if name == "about" else question.people if name in ("who", "to") else {}
    return menu.get(answer, answer)


def score(into: Path) -> tuple[str, Counter[tuple[str, str]]]:
    """The table of a folder with its misses, and the counts by dialect and kind."""
    answers = read_answers(into / "reader")
    counts: Counter[tuple[str, str]] = Counter()
    lines, remarks = [], []
    for row in json.loads((into / "truth" / "truth.json").read_text()):
        question = Question(**{**row, "right": {name: tuple(each) for name, each in row["right"].items()}})
        cells = answers.get(question.name)
        if cells is None:
            counts[question.dialect, "unanswered"] += 1
            continue
        misses = mark(question, cells)
        kinds = {miss.kind for miss in misses}
        counts[question.dialect, "misled" if "misled" in kinds else "in part" if kinds else "rightly"] += 1
        decoded = f" (the record says {question.differs})" if misses and question.differs else ""
        lines += [f"{miss.name} {miss.question}, {miss.kind}: it is {miss.truth}; answered {miss.answer}{decoded}"
                  for miss in misses]  # fmt: skip
        words = " | ".join(cells[len(QUESTIONS) :]).strip()
        remarks += [f"{question.name} in words: {words}"] if words else []
    kinds_shown = ("rightly", "in part", "misled", "unanswered")
    table = [f"{'':14}{''.join(f'{kind:>20}' for kind in kinds_shown)}"]
    for dialect in DIALECTS:
        whole = sum(number for (own, kind), number in counts.items() if own == dialect and kind != "unanswered") or 1
        cells = [f"{counts[dialect, kind]} ({counts[dialect, kind] / whole:.1%})" for kind in kinds_shown[:3]]
        table.append(f"{dialect:14}{''.join(f'{cell:>20}' for cell in (*cells, counts[dialect, 'unanswered']))}")
    return "\n".join([*table, "", *lines, "", *remarks]), counts


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, or score; 0 unless somebody was misled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=30, help="of each dialect (default 30)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, help="the folder to write")
    parser.add_argument("--score", type=Path, help="the folder whose answers to score")
    arguments = parser.parse_args(argv)
    if arguments.score:
        text, counts = score(arguments.score)
        print(text)
        return 1 if any(kind == "misled" for _, kind in counts) else 0
    if arguments.into is None:
        parser.error("--into or --score is needed")
    number = draw(arguments.conversations, arguments.seed, arguments.into)
    print(f"{number} messages to answer for: readers get {arguments.into / 'reader'} and nothing else.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
