"""The dictionary by which told bodies are packed, made anew from what this project has: `python -m bench.dictionary`.

It prints what bodies of a generated log weigh with it and with the one in use. A better one gets the next number in
`inspector/threads/models/packed_text.py`; the old ones stay, because what was packed by them needs them.
"""

from __future__ import annotations

import json
import random
import statistics
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import zstandard

from .installation import Installation
from .logs import Log
from .product import Product, enter_product

PROJECT = Path(__file__).parents[1]
SIZE_BYTES = 32_768


def main() -> None:
    """Learn from the bodies of samples and examples, and weigh those of a generated log."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the file to write the dictionary to")
    out = parser.parse_args().out
    with Installation() as installation, enter_product(installation) as product:
        for name, pieces in list_logs():
            product.take(pieces, name=name)
        product.work()
        learned = read_bodies(product)
        product.clear()
        product.take(Log(seed=77, records=1000).pieces())
        product.work()
        others = read_bodies(product)
    random.Random(1).shuffle(learned)
    dictionary = zstandard.train_dictionary(SIZE_BYTES, learned, level=3)
    out.write_bytes(dictionary.as_bytes())
    compress = zstandard.ZstdCompressor(3, dict_data=dictionary, write_dict_id=False).compress
    sizes = [len(compress(body)) for body in others]
    print(
        f"{len(learned)} bodies learned; of {len(others)} others, {statistics.mean(map(len, others)):,.0f} bytes each,"
    )
    print(f"{statistics.mean(sizes):,.0f} are left ({statistics.median(sizes):,.0f} in the middle)")


def list_logs() -> Iterator[tuple[str, list[bytes]]]:
    """The logs that are learned from, by name: the samples, and the examples of the dialects."""
    for path in sorted((PROJECT / "samples").iterdir()):
        if path.suffix in {".jsonl", ".log", ".txt"}:
            yield path.name, [path.read_bytes()]
    for path in sorted((PROJECT / "tests" / "codecs" / "vectors").glob("*.json")):
        cases = json.loads(path.read_text())
        wires = [case["wire"] for case in (*cases["valid"], *cases["malformed"])]
        lines = (json.dumps({"raw": wire, "conversation": path.stem}).encode() for wire in wires if len(wire) < 10_000)
        yield f"{path.stem}.jsonl", [b"\n".join(lines)]


def read_bodies(product: Product) -> list[bytes]:
    """The told bodies that are stored."""
    from inspector.threads.models import Message

    return [body.encode() for body in Message.objects.exclude(english="").values_list("body", flat=True)]


if __name__ == "__main__":
    main()
