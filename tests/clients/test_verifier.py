"""The offline verifier: what holds, each way of tampering by name, and bundles that are made to hurt it."""

from __future__ import annotations

import base64
import io
import json
import re
import resource
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .bundles import (
    KEY,
    NAME,
    WITNESS,
    Made,
    cosign,
    find_root,
    make_bundle,
    name_key,
    sha256,
    sign,
    write,
    write_checkpoint,
)

VERIFIER = Path(__file__).parents[2] / "clients" / "verifier" / "verify_bundle.py"
MEMORY_BYTES = 512 * 2**20
# A bomb unpacks to more than the memory that the verifier has.
BOMB = MEMORY_BYTES // 2**20 + 128


class Told:
    """What a run of the verifier said."""

    def __init__(self, ran: subprocess.CompletedProcess[str]) -> None:
        self.status, self.text = ran.returncode, ran.stdout + ran.stderr
        self.lines = self.text.splitlines()

    def list_marked(self, mark: str) -> list[str]:
        return [line for line in self.lines if line.startswith(mark)]


Verify = Callable[..., Told]


@pytest.fixture
def verify(tmp_path: Path) -> Verify:
    """Run a copy of the one file as a stranger would: in another folder, with nothing of the project to import."""
    shutil.copy(VERIFIER, tmp_path)

    def run(bundle: Made | bytes, *given: str) -> Told:
        (tmp_path / "bundle.zip").write_bytes(bundle if isinstance(bundle, bytes) else bundle.pack())
        command = [sys.executable, "verify_bundle.py", "bundle.zip", *given]
        limit = (MEMORY_BYTES, MEMORY_BYTES)
        ran = subprocess.run(
            command, cwd=tmp_path, env={"LC_ALL": "C"}, capture_output=True, text=True, timeout=60, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        return Told(ran)

    return run


@pytest.mark.parametrize("with_leaves", [False, True], ids=["proofs", "leaves"])
@pytest.mark.parametrize("of", ["conversation", "workspace"])
def test_a_good_bundle_holds_in_everything_that_it_shows(verify: Verify, of: str, with_leaves: bool) -> None:
    told = verify(make_bundle(of=of, with_leaves=with_leaves), "--key", name_key(KEY))
    assert told.status == 0, told.text
    assert not told.list_marked("BROKEN")
    said = "\n".join(told.list_marked("HOLDS"))
    for part in (
        "Signature: ",
        "is by inspector",
        "Entries: ",
        "the bytes of 6 are",
        "English of 6 messages are what was",
        "Manifest: ",
    ):
        assert part in said
    assert ("its 14 leaves give the signed root" in said) is with_leaves
    assert ("Left out: 6 entries" in told.text) is (of == "conversation")
    gaps = re.findall(
        r"not in the bundle, (.+)\. A bundle of one conversation leaves out all others on purpose", told.text
    )
    assert gaps == ([] if of == "workspace" else ["0, 9 to 13"])
    assert "Ask its maker" not in told.text
    assert "does not cover" not in told.text
    assert told.lines[-1] == "All that can be checked holds."


@pytest.mark.parametrize(
    "size",
    [1, 2, 3, 7, 8, 9, *(pytest.param(size, marks=pytest.mark.long(seconds=1)) for size in (*range(4, 20), 64, 65))],
)
def test_every_place_of_a_tree_of_any_size_is_proven(verify: Verify, size: int) -> None:
    made = make_bundle(records=size, of="workspace")
    assert verify(made).status == 0


def test_of_a_whole_workspace_nothing_is_left_out_on_purpose(verify: Verify) -> None:
    made = make_bundle()
    made.manifest["subject"] = "workspace"
    assert "0, 9 to 13. Ask its maker why." in verify(made).text


@pytest.mark.parametrize("of", ["conversation", "workspace"])
def test_a_record_that_came_after_the_verdict_is_told(verify: Verify, of: str) -> None:
    """Of a workspace nothing says which record belongs to what was signed."""
    made = make_bundle(of=of, later=1)
    told = verify(made, "--key", name_key(KEY))
    assert told.status == 0, told.text
    assert "English of 6 messages are what was signed" in "\n".join(told.list_marked("HOLDS"))
    said = re.findall(r"UNKNOWN  Verdict \S+ \(fine\), entry \d+: it does not cover (.*)", told.text)
    assert said == (["1 record of the bundle: they were no part of what was signed."] if of == "conversation" else [])


def test_without_a_key_from_elsewhere_it_says_what_it_cannot_know(verify: Verify) -> None:
    told = verify(make_bundle())
    unknown = "\n".join(told.list_marked("UNKNOWN"))
    assert told.status == 0
    assert "it comes from the bundle itself" in unknown
    assert "none signed it" in unknown
    assert "whether all that happened was entered" in unknown


def test_a_key_that_is_another_is_told(verify: Verify) -> None:
    told = verify(make_bundle(), "--key", name_key(WITNESS))
    assert told.status == 1
    assert "is NOT by" in told.list_marked("BROKEN")[0]


def test_witnesses_are_checked_where_their_key_is_given(verify: Verify) -> None:
    made, name = make_bundle(), "witness.example/w1"
    text = made.checkpoint.partition("\n\n")[0] + "\n"
    made.checkpoint += cosign(WITNESS, text, name)
    assert "1 more that signed it" in verify(made).text
    told = verify(made, "--witness", name_key(WITNESS, name, 4))
    assert told.status == 0
    assert f"Witness: {name}+" in "\n".join(told.list_marked("HOLDS"))
    assert verify(made, "--witness", name_key(KEY, name, 4)).status == 1


def test_withheld_bytes_and_contents_are_unknown_and_not_broken(verify: Verify) -> None:
    made = make_bundle()
    made.records, made.english = b"", []
    for each in made.entries:
        each.pop("bytes", None)
        each.pop("content")
    told = verify(made)
    assert told.status == 0
    assert "the bytes of 6 are not in the bundle" in told.text
    assert "of 8 entries the bundle holds the digest alone" in told.text


def change_byte(made: Made) -> None:
    made.records = made.records[:10] + bytes([made.records[10] ^ 1]) + made.records[11:]


def change_content(made: Made) -> None:
    made.entries[3]["content"]["size"] += 1


def change_leaf(made: Made) -> None:
    made.entries[3]["leaf"]["at"] = "2026-11-21T09:30:00.000001Z"


def change_proof(made: Made) -> None:
    raw = bytearray(base64.b64decode(made.entries[3]["proof"][1]))
    raw[31] ^= 0x80
    made.entries[3]["proof"][1] = base64.b64encode(raw).decode()


def shorten_proof(made: Made) -> None:
    made.entries[3]["proof"].pop()


def lengthen_proof(made: Made) -> None:
    made.entries[3]["proof"].append(made.entries[3]["proof"][0])


def change_line(number: int, old: str, new: str) -> Callable[[Made], None]:
    def change(made: Made) -> None:
        lines = made.checkpoint.split("\n")
        assert re.search(old, lines[number])
        lines[number] = re.sub(old, new, lines[number], count=1)
        made.checkpoint = "\n".join(lines)

    return change


def change_signature(made: Made) -> None:
    *text, line, end = made.checkpoint.split("\n")
    dash, name, packed = line.split(" ")
    raw = bytearray(base64.b64decode(packed))
    raw[-1] ^= 1
    made.checkpoint = "\n".join([*text, f"{dash} {name} {base64.b64encode(raw).decode()}", end])


def drop_record(made: Made) -> None:
    dropped = made.entries.pop(2)
    before = sum(each["bytes"] for each in made.entries[:2])
    made.records = made.records[:before] + made.records[before + dropped["bytes"] :]


def double_record(made: Made) -> None:
    made.entries.insert(3, made.entries[2])
    before = sum(each["bytes"] for each in made.entries[:2])
    one = made.records[before : before + made.entries[2]["bytes"]]
    made.records = made.records[:before] + one + made.records[before:]


def swap_verdict(made: Made) -> None:
    """As somebody does who has read the format: content and digest fit each other."""
    made.entries[-1]["content"]["verdict"] = "violation"
    made.entries[-1]["leaf"]["sha256"] = sha256(write(made.entries[-1]["content"])).hex()


def change_english(made: Made) -> None:
    made.english[4]["english"] = "Oscar agrees."


def change_english_and_digest(made: Made) -> None:
    change_english(made)
    made.english[4]["english_sha256"] = sha256(b"Oscar agrees.").hex()


def reorder(made: Made) -> None:
    made.entries[1]["index"], made.entries[2]["index"] = 2, 1


def delete_row(made: Made) -> None:
    """What a server writes whose database has lost a row of which its ledger has the entry."""
    made.entries[6] = {"index": 7, "leaf": None, "kind": "comment", "id": "x", "proof": []}


def add_bytes(made: Made) -> None:
    made.records += b"more"


TAMPERINGS: list[tuple[Callable[[Made], None], str]] = [
    (change_byte, r"Entry 1 \(record .*\): its exact bytes were changed"),
    (change_content, r"Entry 4 \(record .*\): its content was changed"),
    (change_leaf, r"Entry 4 \(record .*\): the log has something else there"),
    (change_proof, r"Entry 4 \(record .*\): the log has something else there"),
    (shorten_proof, r"Entry 4 \(record .*\): the log has something else there"),
    (lengthen_proof, r"Entry 4 \(record .*\): the log has something else there"),
    (change_line(0, "1$", "2"), r"is NOT by"),
    (change_line(1, "14", "13"), r"is NOT by"),
    (change_line(2, "^.", "x"), r"is NOT by"),
    (change_signature, r"is NOT by"),
    (drop_record, r"message 3 of Verdict .*: no entry that holds has its record: dropped"),
    (double_record, r"Entry 3 \(record .*\): the log has something else there"),
    (swap_verdict, r"Entry 8 \(verdict .*\): the log has something else there"),
    (change_english, r"message 5 of Verdict .*: its English was changed"),
    (change_english_and_digest, r"Verdict .*English of 6 messages are NOT what was signed"),
    (reorder, r"Entry 1 \(record .*\): the log has something else there"),
    (delete_row, r"Entry 7 \(comment x\): it was deleted"),
    (add_bytes, r"records.bin holds more than its entries say"),
]


@pytest.mark.parametrize(
    ("tamper", "sentence"), TAMPERINGS, ids=[f"{n}-{f.__name__}" for n, (f, _) in enumerate(TAMPERINGS)]
)
@pytest.mark.parametrize(
    "is_listed_anew",
    [True, pytest.param(False, marks=pytest.mark.long(seconds=1))],
    ids=["careful", "careless"],
)
def test_each_tampering_is_named(
    verify: Verify, tamper: Callable[[Made], None], sentence: str, is_listed_anew: bool
) -> None:
    made = make_bundle()
    made.pack()
    made.is_listed_anew = is_listed_anew
    tamper(made)
    told = verify(made, "--key", name_key(KEY))
    assert told.status == 1, told.text
    broken = told.list_marked("BROKEN")
    assert re.search(sentence, broken[0 if is_listed_anew else 1]), told.text
    assert is_listed_anew or "the files are not those that it lists" in broken[0]
    assert told.lines[-1].endswith("broken.")


def test_whoever_makes_a_whole_new_tree_cannot_sign_it(verify: Verify) -> None:
    made = make_bundle(with_leaves=True, of="workspace")
    swap_verdict(made)
    made.entries[-1], made.leaves = made.entries[-1], b"".join(made.hashes)
    made.checkpoint = write_checkpoint(made.hashes, key=WITNESS)
    told = verify(made, "--key", name_key(KEY))
    assert told.status == 1
    assert "is NOT by" in told.list_marked("BROKEN")[0]
    assert "the signed root" in "\n".join(told.list_marked("HOLDS"))


class TestHistory:
    """A checkpoint that somebody kept, beside a bundle."""

    @pytest.fixture
    def kept(self, tmp_path: Path) -> Callable[[str], str]:
        def keep(text: str) -> str:
            (tmp_path / "kept.txt").write_text(text)
            return "kept.txt"

        return keep

    def test_a_bundle_that_continues_it_holds(self, verify: Verify, kept: Callable[[str], str]) -> None:
        for size in (0, 1, 7, 14):
            made = make_bundle(with_leaves=True, of="workspace")
            older = write_checkpoint(made.hashes[:size])
            told = verify(made, "--key", name_key(KEY), "--checkpoint", kept(older))
            assert f"continues the kept checkpoint of {size} entries" in "\n".join(told.list_marked("HOLDS")), told.text

    def test_one_that_is_older_was_rolled_back(self, verify: Verify, kept: Callable[[str], str]) -> None:
        made = make_bundle(with_leaves=True, of="workspace")
        newer = write_checkpoint([*made.hashes, sha256(b"one more")])
        told = verify(made, "--checkpoint", kept(newer))
        assert told.status == 1
        assert "the bundle is older, with 14 entries, than the kept checkpoint of 15" in told.text

    @pytest.mark.parametrize("size", [5, 14])
    def test_one_whose_past_was_rewritten_is_told(self, verify: Verify, kept: Callable[[str], str], size: int) -> None:
        made = make_bundle(with_leaves=True, of="workspace")
        older = write_checkpoint([sha256(b"another past"), *made.hashes[1:size]])
        told = verify(made, "--checkpoint", kept(older))
        assert told.status == 1
        assert f"does not continue the kept checkpoint of {size} entries" in told.text

    def test_one_of_another_log_is_told(self, verify: Verify, kept: Callable[[str], str]) -> None:
        told = verify(make_bundle(), "--checkpoint", kept(write_checkpoint([], origin=f"{NAME}/other")))
        assert "of another log" in told.list_marked("BROKEN")[0]

    def test_without_all_leaves_it_is_unknown(self, verify: Verify, kept: Callable[[str], str]) -> None:
        made = make_bundle(of="workspace")
        told = verify(made, "--checkpoint", kept(write_checkpoint(made.hashes[:3])))
        assert told.status == 0
        assert "only a bundle with leaves.bin shows that" in told.text

    def test_one_that_the_key_did_not_sign_is_no_evidence(self, verify: Verify, kept: Callable[[str], str]) -> None:
        made = make_bundle()
        older = write_checkpoint([], key=WITNESS)
        told = verify(made, "--key", name_key(KEY), "--checkpoint", kept(older))
        assert told.status == 2
        assert "not signed by the key" in told.text


def pack(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as target:
        for name, data in files.items():
            target.writestr(name, data)
    return packed.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        return {name: source.read(name) for name in source.namelist()}


def with_entry(**changes: Any) -> bytes:
    made = make_bundle()
    made.entries[1] |= changes
    return made.pack()


def with_file(name: str, data: bytes) -> bytes:
    return pack({**unpack(make_bundle().pack()), name: data})


def make_zip_of_many() -> bytes:
    return pack({f"{number:05}": b"" for number in range(40_000)}, zipfile.ZIP_STORED)


def make_bomb(name: str, unit: bytes, count: int) -> bytes:
    """A file of a bundle that unpacks to `count` units."""
    files = unpack(make_bundle().pack())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for each, data in files.items():
            if each != name:
                target.writestr(each, data)
        with target.open(name, "w") as stream:
            for _ in range(count):
                stream.write(unit)
    return packed.getvalue()


def place_far_away() -> bytes:
    """A zip whose first file begins where no file can, as a zip of the larger form (zip64) can say."""
    data = bytearray(make_bundle().pack())
    entry, end = data.find(b"PK\x01\x02"), data.rfind(b"PK\x05\x06")
    extra = struct.pack("<HHQ", 1, 8, 2**63 + 5)
    name_length, extra_length = struct.unpack_from("<HH", data, entry + 28)
    struct.pack_into("<H", data, entry + 30, extra_length + len(extra))
    struct.pack_into("<I", data, entry + 42, 2**32 - 1)
    struct.pack_into("<I", data, end + 12, struct.unpack_from("<I", data, end + 12)[0] + len(extra))
    at = entry + 46 + name_length + extra_length
    data[at:at] = extra
    return bytes(data)


def break_data(name: str) -> bytes:
    """A zip in which some packed bytes of a file are others."""
    data = bytearray(make_bundle(records=200).pack())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as source:
        start = source.getinfo(name).header_offset + 30 + len(name) + 40
    data[start : start + 8] = bytes(8)
    return bytes(data)


def mark_encrypted() -> bytes:
    data = make_bundle().pack()
    return data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")


DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "A damaged zip file, or none"),
    "text": (lambda: b"hello" * 1000, "A damaged zip file, or none"),
    "cut": (lambda: make_bundle().pack()[:-100], "A damaged zip file, or none"),
    "many": (make_zip_of_many, "A damaged zip file, or none"),
    "traversal": (lambda: with_file("../../etc/passwd", b""), "'../../etc/passwd', which no bundle has"),
    "absolute": (lambda: with_file("/etc/passwd", b""), "'/etc/passwd', which no bundle has"),
    "missing": (lambda: pack({"manifest.json": b"{}"}), "it is no bundle"),
    "bzip2": (lambda: pack(unpack(make_bundle().pack()), zipfile.ZIP_BZIP2), "packed in a way"),
    "lzma": (lambda: pack(unpack(make_bundle().pack()), zipfile.ZIP_LZMA), "packed in a way"),
    "encrypted": (mark_encrypted, "encrypted"),
    "far away": (place_far_away, "A damaged zip file"),
    "broken data": (lambda: break_data("entries.jsonl"), "damaged"),
    "bomb of one line": (lambda: make_bomb("entries.jsonl", b" " * 2**20, BOMB), "Line 1 of entries.jsonl is longer"),
    "bomb in the manifest": (lambda: make_bomb("manifest.json", b" " * 2**20, BOMB), "manifest.json is not JSON"),
    "bomb in the note": (lambda: make_bomb("checkpoint.txt", b"\n" * 2**20, BOMB), "not a signed checkpoint"),
    "lists": (lambda: with_file("entries.jsonl", b'{"a":[' + b"[]," * 349_000 + b"[]]}"), "The index in line 1"),
    "not UTF-8": (lambda: with_file("entries.jsonl", b'{"index":"\xff"}'), "Line 1 of entries.jsonl is not JSON"),
    "UTF-8 in the note": (lambda: with_file("checkpoint.txt", b"\xff\n1\n"), "not a signed checkpoint"),
    "deep": (lambda: with_file("english.jsonl", DEEP), "Line 1 of english.jsonl is not JSON"),
    "deep manifest": (lambda: with_file("manifest.json", DEEP), "manifest.json is not JSON"),
    "doubled name": (lambda: with_file("entries.jsonl", b'{"index":1,"index":2}'), "a name stands twice"),
    "NaN": (lambda: with_file("entries.jsonl", b'{"index":NaN}'), "not JSON"),
    "infinite": (lambda: with_entry(content=json.loads('{"a":1e999}')), "not JSON"),
    "overflow": (lambda: with_file("entries.jsonl", with_value(b"1e999")), "canonical JSON"),
    "many digits": (lambda: with_file("entries.jsonl", b'{"index":' + b"9" * 100_000 + b"}"), "too many digits"),
    "huge index": (lambda: with_entry(index=2**80), "not a whole number"),
    "negative index": (lambda: with_entry(index=-1), "not a whole number"),
    "index of another kind": (lambda: with_entry(index=True), "not a whole number"),
    "huge bytes": (lambda: with_entry(bytes=2**80), "not a whole number"),
    "half a character": (lambda: with_file("entries.jsonl", with_value(b'"\\ud800"')), "canonical JSON"),
    "endless proof": (lambda: with_entry(proof=["AA=="] * 65), "at most 64 hashes"),
    "no proof": (lambda: with_entry(proof=None), "at most 64 hashes"),
    "proof of another kind": (lambda: with_entry(proof=[1]), "not Base64"),
    "leaf of another kind": (lambda: with_entry(leaf={"v": 2}), "a form that this version does not know"),
    "leaf that is no object": (lambda: with_entry(leaf=[]), "a form that this version does not know"),
    "a list": (lambda: with_file("entries.jsonl", b"[]"), "not a JSON object"),
    "another format": (lambda: with_file("manifest.json", b'{"format":"inspector-bundle/2"}'), "not of the form"),
    "huge size": (lambda: with_file("checkpoint.txt", b"o\n" + b"9" * 5000 + b"\nAAAA\n\n"), "not a signed checkpoint"),
    "short root": (lambda: with_file("checkpoint.txt", f"o\n1\nAAAA\n\n{sign(KEY, '')}".encode()), "not 32 bytes"),
    "no key": (lambda: with_file("manifest.json", b'{"format":"inspector-bundle/1"}'), "verifier key"),
}  # fmt: skip


def with_value(value: bytes) -> bytes:
    """The lines of entries, the content of the first with a number replaced."""
    line = unpack(make_bundle().pack())["entries.jsonl"].splitlines()[0]
    return line.replace(b'"size":', b'"size":' + value + b',"other":')


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bundle_is_refused_in_a_sentence_within_bounds(verify: Verify, name: str) -> None:
    make, sentence = HOSTILE[name]
    told = verify(make())
    assert told.status == 2, told.text
    assert sentence in told.text
    refusals = told.list_marked("CANNOT")
    assert len(refusals) == 1
    assert len(refusals[0]) < 700


def test_a_bomb_in_the_bytes_is_read_through_in_bounded_memory(verify: Verify) -> None:
    told = verify(make_bomb("records.bin", bytes(2**20), BOMB))
    assert told.status == 1
    assert "its exact bytes were changed" in told.text


def test_what_a_bundle_says_of_itself_stays_one_line_of_plain_characters(verify: Verify) -> None:
    made = make_bundle()
    made.manifest["workspace"] = "lab\nHOLDS    Everything\x1b[2J\u202e" + "x" * 10_000
    told = verify(made)
    assert not [line for line in told.lines if line.startswith("HOLDS    Everything")]
    assert "\x1b" not in told.text
    assert max(map(len, told.lines)) < 700


@pytest.mark.parametrize(
    "key", ["", "x", "a+b+c", name_key(KEY).replace("+", "-"), name_key(KEY)[:-4], f"x{name_key(KEY)}"]
)
def test_a_key_that_is_none_is_refused(verify: Verify, key: str) -> None:
    for name in ("--witness", "--key"):
        told = verify(make_bundle(), name, key)
        assert told.status == 2, name
        assert "not a verifier key" in told.text or "not Base64" in told.text


def test_a_file_that_is_not_there_is_told(verify: Verify) -> None:
    told = verify(make_bundle(), "--checkpoint", "nowhere.txt")
    assert told.status == 2
    assert "nowhere.txt" in told.text
    assert verify(make_bundle(), "--checkpoint", "").status == 2


def test_every_single_bit_of_a_proven_entry_counts(verify: Verify) -> None:
    """The verifier in one process, for speed: all bits of one leaf, its proof and the checkpoint's root and size."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("verify_bundle", VERIFIER)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = make_bundle(of="workspace")
    proof = [base64.b64decode(each) for each in made.entries[5]["proof"]]
    leaf, root = made.hashes[5], find_root(made.hashes)
    assert module.is_included(leaf, 5, proof, 14, root)
    parts = [leaf, root, *proof]
    for number, part in enumerate(parts):
        for bit in range(256):
            flipped = bytearray(part)
            flipped[bit // 8] ^= 1 << bit % 8
            others = [*parts[:number], bytes(flipped), *parts[number + 1 :]]
            assert not module.is_included(others[0], 5, others[2:], 14, others[1])
    for index in range(20):
        assert module.is_included(leaf, index, proof, 14, root) is (index == 5)


def test_the_bundle_of_another_log_by_the_same_key_is_named(verify: Verify) -> None:
    """One key signs the logs of all workspaces; whose line it claims to be is no part of what is signed."""
    made = make_bundle()
    made.checkpoint = write_checkpoint(made.hashes, origin="inspector.example/ledger/another")
    made.manifest["origin"] = "inspector.example/ledger/another"
    told = verify(made, "--key", name_key(KEY))
    assert told.status == 1
    assert f"and the key is of another log, {NAME}" in told.text
