"""`python -m bench.entered`: which modules of the project two messages enter on their way from a POST to a page.

A module is entered when one of its functions runs. Everything goes once before it is looked at, so that what runs on
first use alone is not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

from .installation import Installation
from .product import Product, enter_product

PROJECT: Final = Path(__file__).resolve().parent.parent
ROOTS: Final = (PROJECT / "codecs" / "dialects", PROJECT / "inspector")


class Trip:
    """Posts a request and its answer, works off what is due, and gets the page of their conversation."""

    def __init__(self, product: Product) -> None:
        from django.test import Client

        from inspector.accounts.models import Membership

        self._product = product
        self._client = Client(HTTP_HOST="localhost")
        member = Membership.objects.select_related("user").filter(workspace=product.workspace)[0]
        self._client.force_login(member.user, backend="django.contrib.auth.backends.ModelBackend")
        self._key = product.make_key()

    def go(self, name: str) -> None:
        """One trip, in a conversation of its own."""
        from django.urls import reverse

        from inspector.threads.models import Conversation

        lines = [
            {"clowl": "0.2", "mid": f"{name}-1", "cid": name, "p": "REQ", "from": "a", "to": "b", "ts": 1763715600},
            {"clowl": "0.2", "mid": f"{name}-2", "cid": name, "p": "DONE", "from": "b", "to": "a", "pid": f"{name}-1"},
        ]
        body = "".join(json.dumps(line | {"body": {"t": "work", "d": {}}}) + "\n" for line in lines)
        answer = self._client.post(
            "/api/v1/messages",
            body,
            content_type="application/x-ndjson",
            headers={"authorization": f"Bearer {self._key}"},
        )
        if answer.status_code >= 300:
            raise RuntimeError(f"the POST was answered by {answer.status_code}: {answer.content!r}")
        self._product.work()
        conversation = Conversation.objects.get(native_id=name, message_count=2)
        page = self._client.get(reverse("pages:conversation", args=[self._product.workspace.slug, conversation.pk]))
        if page.status_code != 200:
            raise RuntimeError(f"the page was answered by {page.status_code}")


def list_entered(trip: Trip, name: str) -> list[Path]:
    """The modules that a trip enters, by their paths in the project."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        # What a module does on import is no function of it.
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        trip.go(name)
    finally:
        sys.setprofile(None)
    paths = (Path(file) for file in files)
    return sorted(path.relative_to(PROJECT) for path in paths if any(path.is_relative_to(root) for root in ROOTS))


def main() -> int:
    """Print how many there are, by folder, and which with `--names`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="print every module")
    options = parser.parse_args()
    with Installation() as installation, enter_product(installation) as product:
        trip = Trip(product)
        trip.go("first")
        trip.go("second")
        entered = list_entered(trip, "third")
    for folder, count in Counter(str(path.parent) for path in entered).items():
        print(f"{count:5} {folder}")
    if options.names:
        print(*entered, sep="\n")
    print(f"{len(entered):5} modules entered by two messages from one POST to a page")
    return 0


if __name__ == "__main__":
    sys.exit(main())
