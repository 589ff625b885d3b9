#!/usr/bin/env python3
"""Verify a proof bundle of the conversation inspector: without the inspector, without a network.

    python verify_bundle.py BUNDLE.zip [--key KEY] [--checkpoint OLDER.txt] [--witness KEY]...

One file, for Python 3.9 or newer with `cryptography`. It shares no code with the server: the tree is RFC 6962 (proofs
as RFC 9162, section 2.1.3, has them), the checkpoint a C2SP tlog-checkpoint in a signed note, and a witness signs as
C2SP tlog-cosignature says. A line tells what HOLDS, what is BROKEN, or what stays UNKNOWN because no bundle shows it.

Exit status: 0 all that can be checked holds; 1 something is broken; 2 the files cannot be read as what they should be.
A bundle is hostile until shown otherwise: nothing is unpacked to disk, and what is read at once is bounded.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import itertools
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = "inspector-bundle/1"
FILES = ("manifest.json", "checkpoint.txt", "entries.jsonl", "records.bin", "english.jsonl", "leaves.bin")
MIB = 2**20
# So many stretches of entries that are left out are named.
MOST_GAPS = 10
MAX_SIZE = 2**53
MAX_TOLD = 20
ED25519, COSIGNATURE = 0x01, 0x04
HOLDS, BROKEN, UNKNOWN = "HOLDS", "BROKEN", "UNKNOWN"


class BundleError(Exception):
    """What was given is no bundle, key or checkpoint; the sentence says why."""


def show(text: object) -> str:
    """One line of plain characters, whatever a bundle puts into it."""
    return "".join(each if each.isprintable() else "?" for each in str(text))[:500].encode("ascii", "replace").decode()


class Report:
    """What was found, told as it is found: the first of what is broken, and how much there is."""

    def __init__(self) -> None:
        self.broken = 0

    def say(self, mark: str, text: str) -> None:
        self.broken += mark == BROKEN
        if mark != BROKEN or self.broken <= MAX_TOLD:
            print(f"{mark:<8} {show(text)}")

    def judge(self, is_good: bool, good: str, bad: str) -> None:
        self.say(HOLDS if is_good else BROKEN, good if is_good else bad)

    def count(self, mark: str, number: int, text: str) -> None:
        if number:
            self.say(mark, text.format(f"{number:,}", "s" * (number != 1)))


def _pair(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _number(text: str) -> int:
    if len(text) > 400:
        raise ValueError("a number has too many digits")
    return int(text)  # also of what is none, such as NaN: it raises


def parse(data: bytes, where: str) -> Any:
    """A JSON object in which no name stands twice and each number has a value; `where` names it in an error."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_pair, parse_int=_number, parse_constant=_number)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is not JSON that can be relied on: {error}.") from error
    if not isinstance(found, dict):
        raise BundleError(f"{where} is not a JSON object.")
    return found


def canonical(value: Any, where: str) -> bytes:
    """The bytes that a digest is over: names in order, no spaces, UTF-8."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} cannot be written as canonical JSON: {error}.") from error


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def unhex(value: Any, where: str) -> bytes:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        raise BundleError(f"{where} is not a SHA-256 in hexadecimal.")
    return bytes.fromhex(value)


def unbase64(text: Any, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise BundleError(f"{where} is not Base64.") from error


def count(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value < MAX_SIZE:
        raise BundleError(f"{where} is not a whole number from 0 on.")
    return value


class Key(NamedTuple):
    """A verifier key: `name+id+Base64(type and 32 bytes)`. Its id is of its name and bytes."""

    name: str
    id: bytes
    type: int
    public: bytes

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}"


def read_key(text: Any, where: str) -> Key:
    name, _, rest = str(text).strip().partition("+")
    key_id, _, packed = rest.partition("+")
    raw = unbase64(packed, where)
    key = Key(name, sha256(name.encode("utf-8", "replace") + b"\n" + raw)[:4], raw[0] if raw else 0, raw[1:])
    if not name or len(raw) != 33 or key.type not in (ED25519, COSIGNATURE) or key.id.hex() != key_id:
        raise BundleError(f"{where} is not a verifier key, name+id+key.")
    return key


class Checkpoint(NamedTuple):
    """A signed note: the signed text, what it says, and its signatures as (name, key id, bytes)."""

    text: bytes
    origin: str
    size: int
    root: bytes
    signatures: list[tuple[str, bytes, bytes]]

    def is_signed_by(self, key: Key) -> bool:
        """Whether it has a good signature of this key. A witness signs a time, which stands before its signature."""
        for name, key_id, signature in self.signatures:
            signed = self.text
            if key.type == COSIGNATURE:
                signed = f"cosignature/v1\ntime {int.from_bytes(signature[:8], 'big')}\n".encode() + signed
                signature = signature[8:]
            if (name, key_id) == (key.name, key.id):
                with suppress(InvalidSignature):
                    Ed25519PublicKey.from_public_bytes(key.public).verify(signature, signed)
                    return True
        return False


SIGNATURE = re.compile("\u2014 ([^ +]+) ([A-Za-z0-9+/=]+)")


def read_checkpoint(data: bytes, where: str) -> Checkpoint:
    text, _, rest = data.decode("utf-8", "replace").rpartition("\n\n")
    origin, size, root, *_ = [*text.split("\n"), "", "", ""]
    found = [SIGNATURE.fullmatch(line) for line in rest.split("\n")[:-1]]
    if not origin or not re.fullmatch("0|[1-9][0-9]{0,14}", size) or not found or not all(found):
        raise BundleError(f"{where} is not a signed checkpoint.")
    signed = [(each[1], unbase64(each[2], f"A signature in {where}")) for each in found if each]
    signatures = [(name, raw[:4], raw[4:]) for name, raw in signed]
    if len(top := unbase64(root, f"The root in {where}")) != 32:
        raise BundleError(f"The root in {where} has not 32 bytes.")
    return Checkpoint((text + "\n").encode(), origin, int(size), top, signatures)


class Tree:
    """The root of leaves that come one after the other; it keeps a hash for each bit of their number."""

    def __init__(self) -> None:
        self.size = 0
        self.peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        place = self.size
        while place & 1:
            leaf, place = sha256(b"\x01" + self.peaks.pop() + leaf), place >> 1
        self.peaks.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        found = self.peaks[-1] if self.peaks else sha256(b"")
        for peak in reversed(self.peaks[:-1]):
            found = sha256(b"\x01" + peak + found)
        return found


def is_included(leaf: bytes, index: int, proof: list[bytes], size: int, root: bytes) -> bool:
    """Whether a proof leads from the leaf at an index to the root: RFC 9162, section 2.1.3.2."""
    place, last = index, size - 1
    for each in proof:
        if last <= 0:
            return False
        if place & 1 or place == last:
            leaf = sha256(b"\x01" + each + leaf)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            leaf = sha256(b"\x01" + leaf + each)
        place, last = place >> 1, last >> 1
    return last == 0 and index < size and leaf == root


class Narrow(io.FileIO):
    """A file that gives at most a MiB at once: a longer directory of a zip is a broken one."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(MIB if size is None or size < 0 else min(size, MIB)) or b""


class Bundle:
    """The files of a bundle, as streams; each was read once before, so that none is damaged."""

    def __init__(self, path: str) -> None:
        self.zip = zipfile.ZipFile(Narrow(path))
        self.names = [each.filename for each in self.zip.infolist()]
        if strange := [name for name in self.names if name not in FILES or self.names.count(name) > 1]:
            raise BundleError(f"The zip holds {strange[0][:80]!r}, which no bundle has, or has twice.")
        if not {*FILES[:3]} <= {*self.names}:
            raise BundleError(f"The zip holds no {', no '.join(FILES[:3])}, or not all of them: it is no bundle.")
        if any(each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for each in self.zip.infolist()):
            raise BundleError("The zip is packed in a way that no bundle is.")
        self.digests = {name: self.hash(name) for name in self.names if name != FILES[0]}

    def open(self, name: str) -> io.BufferedReader:
        """A file from its beginning; an empty one where the bundle has none of that name."""
        return io.BufferedReader(self.zip.open(name) if name in self.names else io.BytesIO(), MIB)  # type: ignore[arg-type]

    def hash(self, name: str) -> str:
        stream, digest = self.open(name), hashlib.sha256()
        while data := stream.read(MIB):
            digest.update(data)
        return digest.hexdigest()

    def lines(self, name: str) -> Iterator[tuple[Any, str]]:
        """The objects of a file of JSON Lines, each with where it stands."""
        stream = self.open(name)
        for number, line in enumerate(iter(partial(stream.readline, MIB + 1), b""), 1):
            if len(line) > MIB:
                raise BundleError(f"Line {number:,} of {name} is longer than {MIB:,} bytes.")
            yield parse(line, f"Line {number:,} of {name}"), f"line {number:,} of {name}"


def check_checkpoint(report: Report, note: Checkpoint, manifest: Any, key: Key | None, witnesses: list[Key]) -> None:
    """Who signed the checkpoint, and whether the manifest speaks of the same."""
    own = key or read_key(manifest.get("verifier_key"), "The verifier key in manifest.json")
    told = f"the checkpoint of {note.size:,} entries, root {base64.b64encode(note.root).decode()}, of {note.origin}"
    report.judge(note.is_signed_by(own), f"Signature: {told}, is by {own}.", f"Signature: {told}, is NOT by {own}.")
    if note.origin != own.name:
        # One key may sign several logs, each under its name; the name is no part of what is signed.
        report.say(BROKEN, f"Log: the checkpoint is of {note.origin}, and the key is of another log, {own.name}.")
    if key is None:
        report.say(UNKNOWN, "Key: it comes from the bundle itself. Get the log's key another way and give it as --key.")
    if (note.origin, note.size) != (manifest.get("origin"), manifest.get("size")):
        report.say(BROKEN, "Manifest: it names another log or another size than the checkpoint.")
    for each in witnesses:
        report.judge(note.is_signed_by(each), f"Witness: {each} signed it too.", f"Witness: {each} did not sign it.")
    others = {(name, key_id) for name, key_id, _ in note.signatures} - {each[:2] for each in (own, *witnesses)}
    report.count(UNKNOWN, len(others), "Witnesses: {} more that signed it; give their keys as --witness.")
    if not others and not witnesses:
        report.say(UNKNOWN, "Witnesses: none signed it, so somebody else could be shown another log.")


def check_tree(report: Report, bundle: Bundle, note: Checkpoint, older: Checkpoint | None) -> bool:
    """Whether all leaves, where the bundle has them, give the root; and, on their way, that of an older checkpoint."""
    stream, tree, leaf = bundle.open("leaves.bin"), Tree(), b"first"
    before = note.root if older and older.size == note.size else None
    while leaf and tree.size <= note.size and "leaves.bin" in bundle.names:
        before = tree.root() if older and older.size == tree.size else before
        if leaf := stream.read(32):
            tree.add(leaf)
    is_good = (tree.size, tree.root()) == (note.size, note.root)
    if "leaves.bin" in bundle.names:
        bad = f"Tree: leaves.bin does not hold the {note.size:,} leaves of the signed root."
        if older and before == older.root:
            bad += f" The first that differs is entry {older.size:,} or a later one."
        report.judge(is_good, f"Tree: its {note.size:,} leaves give the signed root.", bad)
    if older is not None:
        check_history(report, note, older, before)
    return is_good or "leaves.bin" not in bundle.names


def check_history(report: Report, note: Checkpoint, older: Checkpoint, before: bytes | None) -> None:
    """Whether the log continues a checkpoint that was kept; `before` is its root at that size, if it is known."""
    told = f"the kept checkpoint of {older.size:,} entries"
    if older.origin != note.origin:
        report.say(BROKEN, f"History: {told} is of another log, {older.origin}.")
    elif older.size > note.size:
        report.say(BROKEN, f"History: the bundle is older, with {note.size:,} entries, than {told}: rolled back.")
    elif before is None:
        report.say(UNKNOWN, f"History: whether it continues {told}; only a bundle with leaves.bin shows that.")
    else:
        bad = f"History: it does not continue {told}: an entry was changed, removed, inserted or moved."
        report.judge(before == older.root, f"History: it continues {told}.", bad)


class Entries:
    """The entries one by one, and what later checks need of those that hold.

    `records` are the digests of the bytes by the ids of records, `verdicts` by what they are bound to. `gaps` are the
    first stretches of the tree that the bundle has no entries of.
    """

    def __init__(self, report: Report, bundle: Bundle, note: Checkpoint, has_tree: bool) -> None:
        self.report, self.note, self.has_tree = report, note, has_tree
        self.leaves = bundle.open("leaves.bin") if "leaves.bin" in bundle.names else None
        self.sources = bundle.open("records.bin")
        self.total = self.proven = self.exact = self.unsent = self.shut = self.place = self.seen = 0
        self.records: dict[str, bytes] = {}
        self.erased: dict[tuple[str, ...], int] = {}
        self.erasures: dict[str, Any] = {}
        self.verdicts: dict[bytes, list[str]] = {}
        self.gaps: list[str] = []
        for entry, where in bundle.lines("entries.jsonl"):
            self.total += 1
            self.proven += self.check(entry, where) and has_tree
        if self.sources.read(1):
            report.say(BROKEN, "Records: records.bin holds more than its entries say.")

    def check(self, entry: Any, where: str) -> bool:
        index, content = count(entry.get("index"), f"The index in {where}"), entry.get("content")
        leaf = entry if entry.get("leaf", entry) is None else entry.get("leaf")
        if not isinstance(leaf, dict) or not {"kind", "id"} <= set(leaf):
            raise BundleError(f"The leaf in {where} is of a form that this version does not know.")
        name = f"Entry {index:,} ({leaf['kind']} {leaf['id']})"
        self.skip(index)
        if leaf is entry:
            self.report.say(BROKEN, f"{name}: it was deleted; the log has it and the database has not.")
            return False
        is_good = self.is_proven(index, sha256(b"\x00" + canonical(leaf, where)), entry.get("proof"), where)
        if not is_good:
            self.report.say(BROKEN, f"{name}: the log has something else there: changed, removed, inserted or moved.")
        told = entry.get("erased")
        if told is not None and not isinstance(told, dict):
            raise BundleError(f"What {where} says of an erasure is of a form that this version does not know.")
        if told is not None and is_good:
            group = tuple(str(told.get(each)) for each in ("erasure", "on", "reason", "by_id"))
            self.erased[group] = self.erased.get(group, 0) + 1
        if content is None:
            self.shut += told is None
        elif not isinstance(content, dict) or sha256(canonical(content, where)).hex() != leaf.get("sha256"):
            self.report.say(BROKEN, f"{name}: its content was changed; its digest is not the one in the ledger.")
            is_good, content = False, None
        if leaf["kind"] == "record":
            is_good = (
                told is not None or self.check_source(name, content or {}, entry.get("bytes"), where)
            ) and is_good
        if is_good and content and leaf["kind"] == "erasure":
            self.erasures[str(leaf["id"])] = content
        if is_good and content and leaf["kind"] == "record":
            self.records[str(leaf["id"])] = unhex(content.get("source"), f"The digest of the bytes in {where}")
        elif is_good and content and leaf["kind"] == "verdict" and content.get("binding"):
            bound = unhex(content["binding"], f"The binding in {where}")
            told = f"Verdict {leaf['id']} ({content.get('verdict')}), entry {index:,}"
            self.verdicts.setdefault(bound, []).append(told)
        return is_good

    def is_proven(self, index: int, leaf: bytes, proof: Any, where: str) -> bool:
        """By its own proof, or as one of all leaves. Entries come in their order, so that none stands twice."""
        if index < self.place or index >= self.note.size:
            return False
        skipped, self.place = index - self.place, index + 1
        if self.leaves:
            while skipped and (passed := self.leaves.read(min(skipped * 32, MIB))):
                skipped -= len(passed) // 32
            return self.leaves.read(32) == leaf
        if not isinstance(proof, list) or len(proof) > 64:
            raise BundleError(f"The proof in {where} is not a list of at most 64 hashes.")
        hashes = [unbase64(each, f"The proof in {where}") for each in proof]
        return is_included(leaf, index, hashes, self.note.size, self.note.root)

    def skip(self, index: int) -> None:
        """Note the entries that are left out before this index."""
        if self.seen < index and len(self.gaps) <= MOST_GAPS:
            self.gaps.append(f"{self.seen:,}" if index - self.seen == 1 else f"{self.seen:,} to {index - 1:,}")
        self.seen = max(self.seen, index + 1)

    def check_source(self, name: str, content: Any, size: Any, where: str) -> bool:
        """The exact bytes of a record: the next of records.bin, as many as its entry says."""
        if size is None:
            self.unsent += 1
            return True
        left, digest = count(size, f"The number of bytes in {where}"), hashlib.sha256()
        while left and (data := self.sources.read(min(left, MIB))):
            digest.update(data)
            left -= len(data)
        is_good = not left and digest.hexdigest() == content.get("source")
        self.exact += is_good
        if not is_good:
            self.report.say(BROKEN, f"{name}: its exact bytes were changed; their SHA-256 is not the ledger's.")
        return is_good

    def tell(self, is_whole: bool) -> None:
        good = f"Entries: {self.total:,} are in the signed tree, unchanged, each at its place."
        bad = f"Entries: {self.total - self.proven:,} of {self.total:,} are not shown to be in the signed tree."
        self.report.judge(self.proven == self.total, good, bad)
        self.report.count(HOLDS, self.exact, "Records: the bytes of {} are those that were received.")
        self.report.count(UNKNOWN, self.unsent, "Records: the bytes of {} are not in the bundle.")
        self.report.count(UNKNOWN, self.shut, "Contents: of {} entries the bundle holds the digest alone.")
        self.tell_erased()
        left = max(self.note.size - self.total, 0)
        self.skip(self.note.size)
        which = ", ".join(self.gaps[:MOST_GAPS]) + (" and others" if len(self.gaps) > MOST_GAPS else "")
        told = "Left out: {} entries of the tree are not in the bundle, " + which + ". "
        told += "Ask its maker why." if is_whole else "A bundle of one conversation leaves out all others on purpose."
        self.report.count(UNKNOWN, left, told)

    def tell_erased(self) -> None:
        """What was erased, when and why; the ledger has the erasure itself as an entry, which must say the same."""
        for (erasure, on, reason, by), number in self.erased.items():
            who = "by age" if by == "None" else f"by account {by}"
            told = f"Erased: {number:,} entries, on {on} {who}, because {reason}"
            entry = self.erasures.get(erasure)
            if entry is None:
                self.report.say(UNKNOWN, f"{told}; the bundle holds no entry of erasure {erasure}.")
            else:
                is_same = (str(entry.get("reason")), str(entry.get("by_id"))) == (reason, by)
                self.report.judge(
                    is_same,
                    f"{told}; their digests are in the signed tree.",
                    f"{told}: erasure {erasure} was entered with another reason or person.",
                )


def check_english(report: Report, bundle: Bundle, entries: Entries, is_whole: bool) -> None:
    """Whether the messages, with their English, are what the verdicts are bound to.

    Of a conversation (not `is_whole`) every record belongs to what a verdict is about: those that it was not given on
    are counted. Of a workspace nothing in a bundle says which record is whose.
    """
    waiting, unsigned, unsent = dict(entries.verdicts), 0, 0
    for binding, lines in itertools.groupby(bundle.lines("english.jsonl"), lambda each: each[0].get("binding")):
        names = waiting.pop(unhex(binding, "A binding in english.jsonl"), []) if binding else []
        digest, number, before, sent = hashlib.sha256(), 0, report.broken, unsent
        covered: set[str] = set()
        for line, where in lines:
            number += 1
            told = f"English: message {number:,} of {names[0] if names else 'no verdict'} (record {line.get('record')})"
            digests = [unhex(line.get(each), f"{each} in {where}") for each in ("sha256", "english_sha256", "beside")]
            if entries.records.get(str(line.get("record"))) != digests[0]:
                report.say(BROKEN, f"{told}: no entry that holds has its record: dropped, or changed.")
            text = line.get("english")
            unsent += text is None
            if text is not None and sha256(str(text).encode("utf-8", "replace")) != digests[1]:
                report.say(BROKEN, f"{told}: its English was changed.")
            if not re.fullmatch("[ -~]{1,200}", decoder := str(line.get("decoder"))):
                raise BundleError(f"The decoder in {where} has no name that one could have.")
            covered.add(str(line.get("record")))
            digest.update(digests[0] + f"{decoder}\n".encode() + digests[1] + digests[2])
        is_good = digest.hexdigest() == binding and report.broken == before
        for name in names:
            held = "the bytes" if unsent == sent else "by their digests the bytes"
            told = f"{name}: {held}, decoder and English of {number:,} message{'s' * (number != 1)} are"
            report.judge(is_good, f"{told} what was signed.", f"{told} NOT what was signed.")
            if left := 0 if is_whole else len(entries.records.keys() - covered):
                told = f"{left:,} record{'s' * (left != 1)} of the bundle"
                report.say(UNKNOWN, f"{name}: it does not cover {told}: they were no part of what was signed.")
        unsigned += 0 if names else number
    for name in itertools.chain(*waiting.values()):
        report.say(UNKNOWN, f"{name}: the bundle does not hold the messages that were signed.")
    report.count(UNKNOWN, unsigned, "English: no verdict in the bundle is bound to that of {} message{}.")
    report.count(UNKNOWN, unsent, "English: of {} message{} the bundle holds the digest alone.")


def verify(report: Report, given: argparse.Namespace) -> None:
    """Check what was given and tell what was found."""
    if given.checkpoint == "":
        raise BundleError("What was given as --checkpoint is empty.")
    # An empty one, as a variable leaves it that was not set, is no key either.
    key = None if given.key is None else read_key(given.key, "What was given as --key")
    witnesses = [read_key(each, "What was given as --witness") for each in given.witness]
    kept = Path(given.checkpoint).read_bytes() if given.checkpoint else b""
    older = read_checkpoint(kept, "The checkpoint given as --checkpoint") if given.checkpoint else None
    if key and older and not older.is_signed_by(key):
        raise BundleError("The checkpoint given as --checkpoint is not signed by the key given as --key.")
    bundle = Bundle(given.bundle)
    manifest = parse(bundle.open("manifest.json").read(MIB), "manifest.json")
    if manifest.get("format") != FORMAT:
        raise BundleError(f"The bundle is not of the form {FORMAT}.")
    print(show(f"{manifest.get('subject')} of workspace {manifest.get('workspace')}, made {manifest.get('made_at')}"))
    bad = "Manifest: the files are not those that it lists."
    report.judge(manifest.get("files") == bundle.digests, "Manifest: each file is the one that it lists.", bad)
    note = read_checkpoint(bundle.open("checkpoint.txt").read(MIB), "checkpoint.txt")
    check_checkpoint(report, note, manifest, key, witnesses)
    entries = Entries(report, bundle, note, check_tree(report, bundle, note, older))
    is_whole = manifest.get("subject") != "conversation"
    entries.tell(is_whole)
    if entries.has_tree:
        check_english(report, bundle, entries, is_whole)
    report.say(UNKNOWN, "Completeness: whether all that happened was entered, and what came after the checkpoint.")


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify a proof bundle of the conversation inspector, offline.")
    parser.add_argument("bundle", help="the .zip file")
    parser.add_argument("--key", help="the log's verifier key, got from elsewhere than the bundle")
    parser.add_argument("--checkpoint", help="the file of a checkpoint that was kept from before")
    parser.add_argument("--witness", action="append", default=[], help="the verifier key of a witness; can be repeated")
    report = Report()
    try:
        verify(report, parser.parse_args())
    except (
        BundleError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OverflowError,
        RuntimeError,
        ValueError,
    ) as error:
        is_told = isinstance(error, (BundleError, OSError))
        print(f"CANNOT   {'' if is_told else 'A damaged zip file, or none: '}{show(error)}", file=sys.stderr)
        return 2
    print(f"{report.broken:,} broken." if report.broken else "All that can be checked holds.")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
