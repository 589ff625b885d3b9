"""Deliberately broken variants of the product, which the harness must catch: else its silence would mean nothing.

They exist only in processes that run with the settings beside this file; nothing of the product knows of them.
"""

from __future__ import annotations

import copy
import hashlib
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import psutil
from django.apps import AppConfig

CHOICE = "CRASH_VARIANT"
PRODUCT = ""
# Many small transactions: most kills then fall between two of the same request or job.
SMALL_BATCH = 20
SMALL_PIECE_BYTES = 2048
# What the text of a poisonous record begins with; the rest of it says which poison it is.
POISON = "poison "
ROOM_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Variant:
    """One way of being wrong, what has to be killed to show it, and the words in which it must show."""

    name: str
    about: str
    kinds: tuple[str, ...]
    shows: str
    is_busy: bool = False


VARIANTS = (
    Variant("ack-early", "POST is answered before anything is committed", ("posting",), "lost", is_busy=True),
    Variant(
        "checkpoint-first",
        "a batch's checkpoint is committed before its messages",
        ("worker", "postgres"),
        "not one message",
    ),
    # The last, because the key is gone from then on.
    Variant(
        "no-unique-key",
        "records have no unique identity, so that ON CONFLICT finds none",
        ("posting",),
        "doubled",
        is_busy=True,
    ),
)


class VariantConfig(AppConfig):
    """Changes the product's modules in this process, once they are loaded."""

    name = "bench.crash"
    label = "crash_harness"

    def ready(self) -> None:
        """Make batches small, cut short conversations into blocks, and apply the variant that is asked for."""
        from inspector import reading, steps
        from inspector.intake import framing
        from inspector.threads.resolving import resolver, writing

        for module in (framing, reading, steps):
            replace(module, "BATCH_RECORDS", SMALL_BATCH)
        replace(writing, "WINDOW", SMALL_BATCH)
        replace(resolver, "SPACING", SMALL_BATCH)
        replace(resolver, "MAX_MESSAGES", SMALL_BATCH)
        replace(framing, "PIECE_BYTES", SMALL_PIECE_BYTES)
        apply = BREAKS.get(os.environ.get(CHOICE, PRODUCT))
        if apply:
            apply()


def replace(module: Any, name: str, value: Any) -> Any:
    """Give a name of the product another meaning here, and answer the one it had.

    Raises:
        AttributeError: where the product has no such name any more: the harness would change nothing, and say nothing.
    """
    before = getattr(module, name)
    setattr(module, name, value)
    return before


def answer_early() -> None:
    """Answer a POST when its body is in memory, and store it a moment later."""
    from dialects import LogRecord, read_log
    from inspector.api import ingest
    from inspector.intake.framing import options_of
    from inspector.intake.models import Delivery

    def store_later(delivery: Delivery, body: bytes) -> None:
        time.sleep(random.uniform(0, 0.5))
        take_in_time(delivery=delivery, chunks=[body])

    def take_stream(*, delivery: Delivery, chunks: Iterable[bytes], **_: Any) -> Delivery:
        body = b"".join(chunks)
        threading.Thread(target=store_later, args=(copy.deepcopy(delivery), body)).start()
        count = sum(isinstance(item, LogRecord) for item in read_log([body], options_of(delivery)))
        delivery.received = delivery.stored = count
        delivery.size_bytes, delivery.sha256 = len(body), hashlib.sha256(body).digest()
        delivery.state = Delivery.State.FRAMED
        return delivery

    take_in_time = replace(ingest, "take_stream", take_stream)


def checkpoint_first() -> None:
    """Commit how far reading is, and insert the messages after that."""
    from django.db import transaction

    from inspector import reading

    def insert_arrivals(**given: Any) -> None:
        def insert_late() -> None:
            time.sleep(random.uniform(0, 0.2))
            with transaction.atomic():
                insert_in_time(**given)

        transaction.on_commit(insert_late)

    insert_in_time = replace(reading, "insert_arrivals", insert_arrivals)


def raise_at_it(room: list[bytearray]) -> None:
    """A bug of the decoder."""
    raise ValueError("a bug of the decoder")


def die_of_it(room: list[bytearray]) -> None:
    """As when the system ends what has taken too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def dawdle_over_it(room: list[bytearray]) -> None:
    """No end in sight."""
    while True:
        time.sleep(0.05)


def swell_from_it(room: list[bytearray]) -> None:
    """More memory than this process may have, really asked for."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM_BYTES, before[1]))
    try:
        while True:
            room.append(bytearray(ROOM_BYTES // 8))
    finally:
        room.clear()
        resource.setrlimit(resource.RLIMIT_AS, before)


POISONS: dict[str, Callable[[list[bytearray]], None]] = {
    "raises": raise_at_it,
    "kills its worker": die_of_it,
    "takes no end": dawdle_over_it,
    "takes all memory": swell_from_it,
}


def poison_reading() -> None:
    """Not a broken product, but a decoder that certain records break."""
    from inspector import reading
    from inspector.intake import readings

    def read_poison(wire: str, *words: Any, **names: Any) -> Any:
        kind = wire.removeprefix(POISON) if wire.startswith(POISON) else ""
        if kind in POISONS:
            POISONS[kind]([])
        return read_in_time(wire, *words, **names)

    read_in_time = replace(readings, "read", read_poison)
    replace(reading, "READING_SECONDS", 2.0)


BREAKS: dict[str, Callable[[], None]] = {
    "poison": poison_reading,
    "ack-early": answer_early,
    "checkpoint-first": checkpoint_first,
}
# `no-unique-key` is a change of the schema: `drop_key` in checks.
