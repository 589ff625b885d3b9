"""`python -m bench.examining`: what examining costs as a share of settling, in processor time.

A mixed log of 5,000 records, in conversations of 25, is taken in and read, then settled, then examined, all in this
process. Each is counted in seconds of its processor; what the database does meanwhile is not among them, for any. What
comes in order is told while it is read, so that the share of the whole way is printed too. The aim is at most 20 % of
settling. With `--loaded` the line says that other work shared the machine.

Then one message more comes to a conversation of 1,000 and to one of 10,000 in which nothing is remarkable, and each is
examined again: what that costs beside another is to depend on what came, and not on what was there.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median

from .installation import Installation
from .product import Product, enter_product

START = datetime(2026, 11, 1, 8, tzinfo=UTC)
EACH = 25
AIM = 0.20
SIZES, TIMES = (1_000, 10_000), 7


def make_lines(records: int) -> Iterator[bytes]:
    """Conversations in turn of CLowl, nSLIP, Lambda, agent-lingua and prose; one in ten of the records has a fault."""
    for number in range(records):
        conversation, at = divmod(number, EACH)
        moment = START + timedelta(seconds=60 * number)
        said = {"conversation": f"c{conversation}", "at": moment.isoformat(), "from": f"agent-{at % 3}"}
        yield json.dumps(said | {"raw": _write(conversation % 5, conversation, at, moment)}).encode() + b"\n"


def _write(kind: int, conversation: int, at: int, moment: datetime) -> str:
    is_faulty = at % 10 == 9
    if kind == 0:
        clowl = {
            "clowl": "0.2",
            "mid": f"m{conversation}-{at}",
            "ts": int(moment.timestamp()),
            "cid": f"c{conversation}",
        }
        clowl |= {"p": "DONE" if at % 2 else "REQ", "from": f"agent-{at % 2}", "to": f"agent-{(at + 1) % 2}"}
        clowl |= {"pid": f"m{conversation}-{at - 1}" if at % 2 and not is_faulty else None}
        return json.dumps(clowl | {"body": {"t": "search", "d": {"q": f"question {at}"}}})
    if kind == 1:
        turns = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        tail = "|z9" if is_faulty else ""
        return f'@a{"38"[at % 2]}|f0|c{conversation}|S{at % 2}|d{(at + 1) % 2}|T{turns[at]}|k1|t"step"{tail}#'
    if kind == 2:
        return '{def:ok="failed"}!st/ok' if is_faulty else ("?Uk/co", "!It>Ie", "!st/ok")[at % 3]
    if kind == 3:
        return "👽" if is_faulty else "👽73|@1|$aGk=\n--👽lingua/0.4@agent-lingua"
    return "pay bo\u202eb now" if is_faulty else f"Step {at} is taken."


def make_plain(count: int, *, name: str, first: int = 0) -> Iterator[bytes]:
    """A conversation of requests that are answered, each in its time: nothing in it is to be looked at."""
    for number in range(first, first + count):
        moment = START + timedelta(seconds=number)
        clowl = {"clowl": "0.2", "mid": f"{name}-{number}", "ts": int(moment.timestamp()), "cid": name}
        clowl |= {
            "p": "DONE" if number % 2 else "REQ",
            "from": f"agent-{number % 2}",
            "to": f"agent-{(number + 1) % 2}",
        }
        clowl |= {"pid": f"{name}-{number - 1}"} if number % 2 else {}
        yield json.dumps(clowl | {"body": {"t": "search", "d": {"q": f"question {number}"}}}).encode() + b"\n"


def time_one_more(product: Product, count: int) -> tuple[float, float]:
    """Milliseconds of the processor, and of the clock, that examining takes after one more; the medians of `TIMES`."""
    from inspector.intake.models import Job

    name = f"plain-{count}"
    product.take(make_plain(count, name=name), name=f"{name}.jsonl")
    spent = []
    for number in range(TIMES + 1):
        product.work(kinds=(Job.Kind.FRAME, Job.Kind.INGEST))
        for kind in (Job.Kind.RESOLVE, Job.Kind.EXAMINE):
            Job.objects.filter(kind=kind).update(due_at=START)
            start = time.process_time(), time.perf_counter()
            product.work(kinds=(kind,))
            took = time.process_time() - start[0], time.perf_counter() - start[1]
        spent.append(took)
        product.take(make_plain(1, name=name, first=count + number), name=f"{name}-{number}.jsonl")
    processor, clock = zip(*spent[1:], strict=True)
    return 1000 * median(processor), 1000 * median(clock)


def main() -> int:
    """Read, settle and examine; print the share. Ends with 1 where it is over the aim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5000, help="how many (default 5,000)")
    parser.add_argument("--loaded", action="store_true", help="say that other work shared the machine")
    options = parser.parse_args()
    with Installation() as installation, enter_product(installation) as product:
        from inspector.audit.models import Finding
        from inspector.intake.models import Job

        begun = time.process_time()
        product.take(make_lines(options.records), name="mixed.jsonl")
        product.work(kinds=(Job.Kind.FRAME, Job.Kind.INGEST))
        spent = [time.process_time() - begun]
        for kind in (Job.Kind.RESOLVE, Job.Kind.EXAMINE):
            Job.objects.filter(kind=kind).update(due_at=START)
            start = time.process_time()
            product.work(kinds=(kind,))
            spent.append(time.process_time() - start)
        found = Finding.objects.count()
        more = {count: time_one_more(product, count) for count in SIZES}
    read, settled, examined = spent
    share = examined / settled
    print(f"{options.records:,} records: reading {read:.2f} s, settling {settled:.2f} s, examining {examined:.2f} s")
    print(f"examining is {share:.1%} of settling (aim: at most {AIM:.0%})", end=", ")
    print(f"{examined / (read + settled):.1%} of reading and settling; {found:,} findings")
    for count, (processor, clock) in more.items():
        print(f"one more in {count:,} plain messages: examining {processor:.1f} ms ({clock:.1f} ms by the clock)")
    print(f"Python {platform.python_version()}{', on a machine under other load' if options.loaded else ''}")
    return 0 if share <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
