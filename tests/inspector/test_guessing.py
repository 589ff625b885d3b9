"""Masked text is not guessed (R26): whoever may not see a secret learns no character of it by any query.

A secret is planted, and every address of the URLconf that takes a query is asked for its beginning with the right next
character, and with a wrong one, in each way in which a query can say it. What comes back, whole, is the same but for
the query itself: rows, counts, cursors, messages, status, and the statements that were asked of the database. Asked by
those who may see it, the same addresses give it away whole.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client

from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.audit.models import Finding, ReviewItem
from inspector.audit.reviews.queues import create_queue, fill_from_source
from inspector.intake import readings
from inspector.intake.models import Delivery, Record
from inspector.intake.readings import find_outer_secrets, mask
from inspector.intake.withdrawals import withdraw_delivery
from inspector.search.news import begin, write_since
from inspector.search.selectors import narrow
from inspector.threads import dependencies
from inspector.threads.models import Conversation, MaskedWire, Message, Trace
from inspector.threads.selectors import unfold
from tests.lanes import begin_with

from .conftest import Cast, deliver, resolve_all, take_in
from .exports.conftest import ask, make
from .test_access import ROUTES, fill
from .test_canaries import make_log

SECRET: Final = "hR7kq2Zw9"
# What stands in clear before it; with this every guess begins.
BEFORE: Final = "db_password="
NOWHERE: Final = "xy_password="
LETTERS: Final = "xQ"
FORMS: Final = (
    'raw:"{}"',
    '-raw:"{}" dialect:nslip',
    'raw:"{}" OR from:nobody',
    '(-raw:"{}" OR from:nobody) severity:>=info',
    'en:"{}"',
    "{}*",
)
# In which parameter each stands: what lists, pages of trees and the list of agents look for.
WAYS: Final = (*(("q", form) for form in FORMS), ("q", "{}"), ("find", "{}"), ("name", "{}"))
# By these what can be looked for in some way can be looked for, and found where it stands in clear.
PROBES: Final = tuple(way for way in WAYS if way[1] in (FORMS[0], "{}"))
PARAMETERS: Final = frozenset(parameter for parameter, _ in WAYS)
# Of these, what tells those who may see the secret that a guess is right.
TELLING: Final = FORMS[:4]
# Who may see the secret gets it from each of these by one form or another: else this test proves nothing of them.
GIVES_AWAY: Final = {
    *("api:messages", "api:conversations", "api:traces", "api:findings", "api:live"),
    *("pages:search", "pages:facets", "pages:message", "pages:live"),
}
Way = tuple[str, str]
Taking = tuple[str, str, list[Way]]
# What a process takes out of a key's requests once a second: when, no query decides.
BY_THE_CLOCK: Final = "UPDATE accounts_apikey AS held"
_CURSOR: Final = re.compile(r"[\w.-]{6,}:\w{6}:[\w-]{43}")
_CHANGING: Final = re.compile(
    r'(csrf\w*"? ?(?:name|value)?=?"?|nonce-|nonce="|csrfmiddlewaretoken" value=")[\w+/=-]{16,}'
)


@dataclass(frozen=True)
class Asked:
    """What came back for a query, without the query itself, and how many statements it took."""

    status: int
    content: str
    statements: int


def make_line(number: int, secret: str = "", **more: Any) -> bytes:
    said = f"{BEFORE}{secret}" if secret else f"nothing {number}"
    line = {"raw": f'@a3|f0|c1|S0|d1|T{number}|k1|t"{said}"#', "from": "a", "to": "b", "conversation": f"c{number}"}
    return json.dumps(line | {"trace": f"t{number}", "at": f"2026-11-20T09:0{number}:00Z"} | more).encode() + b"\n"


@pytest.fixture
def given(cast: Cast) -> Mapping[str, Mapping[str, str]]:
    """A log with the secret in a message between two others, and in one that is withdrawn; by name what an address
    needs beside its query."""
    since = write_since(begin(), cast.workspace.pk)
    deliver(cast, make_line(1), make_line(2, SECRET), make_line(3))
    withdrawn = take_in(cast, make_line(4, SECRET))
    withdraw_delivery(membership=cast.auditor, delivery=withdrawn, reason="It should not be here.")
    resolve_all()
    assert Finding.objects.filter(rule="token-in-clear", holds=True).exists()
    assert Trace.objects.count() >= 3
    return {"pages:live": {"of": "search", "after": since}, "api:live": {"after": since}}


def list_addresses(cast: Cast) -> Iterator[tuple[str, str]]:
    """Every address that can be asked, of the message before the one with the secret where it names one."""
    message = Message.objects.get(record__order_time__minute=1)
    things: dict[str, str] = {
        "message_id": str(message.pk),
        "conversation_id": str(message.conversation_id),
        "record_id": str(message.record_id),
        "trace_id": str(Trace.objects.filter(native_id="t2").earliest("pk").pk),
        "delivery_id": str(Delivery.objects.earliest("received_at").pk),
        "finding_id": str(Finding.objects.earliest("at").pk),
        "export_id": str(make(ask(cast, membership=cast.viewer)).pk),
        "channel_id": str(cast.channel.pk),
        "membership_id": str(cast.viewer.pk),
        "dialect": "nslip",
        **dict.fromkeys(("slug", "workspace", "workspace_slug"), cast.workspace.slug),
    }
    for name, route in ROUTES:
        names = {found.rpartition(":")[2] for found in re.findall(r"<([^>]+)>", route)}
        if names <= things.keys() and not name.endswith(("stream", "events")) and "sign-" not in name:
            yield name, fill(route, things)


def ask_for(client: Client, address: str, guess: str, way: Way, more: Mapping[str, str], headers: Any) -> Asked:
    parameter, form = way
    statements = 0

    def count(execute: Callable[..., Any], statement: str, *given: Any) -> Any:
        nonlocal statements
        statements += not statement.strip().startswith(BY_THE_CLOCK)
        return execute(statement, *given)

    with connection.execute_wrapper(count):
        answer = client.get(address, {**more, parameter: form.format(guess)}, headers=headers)
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    # `=` stands in an address, in HTML and in JSON in so many ways; and what is in clear stands in the page itself.
    pattern = "|".join(map(re.escape, (guess, BEFORE, NOWHERE)))
    pattern = pattern.replace("=", "(?:=|%3D|&#x3D;|%253D|\\\\u003D)")
    text = re.sub(pattern, "GUESS", content.decode(errors="replace"), flags=re.IGNORECASE)
    return Asked(answer.status_code, _CHANGING.sub("", _CURSOR.sub("CURSOR", text)), statements)


def differ(
    client: Client, address: str, guesses: Sequence[str], way: Way, more: Mapping[str, str], headers: Any
) -> bool:
    """Whether these guesses are told from each other; asked twice, as what a process keeps at hand saves statements."""
    return all(len({ask_for(client, address, each, way, more, headers) for each in guesses}) > 1 for _ in range(2))


def find_differences(
    client: Client, taking: list[Taking], places: Sequence[int], given: Mapping[str, Mapping[str, str]], headers: Any
) -> dict[str, dict[int, list[str]]]:
    """By the name of an address, at which characters the right guess is told from a wrong one, and by which forms."""
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, address, ways in taking:
        for place in places:
            character = SECRET[place]
            wrong = LETTERS[character == LETTERS[0]]
            guesses = [BEFORE + SECRET[:place] + each for each in (character, wrong)]
            for way in ways:
                if differ(client, address, guesses, way, given.get(name, {}), headers):
                    found[name][place].append(way[1])
    return found


def find_read(client: Client, address: str, more: Mapping[str, str], headers: Any) -> set[str]:
    """Those of our parameters whose value is looked at there: no other can tell anything from anything else."""
    read: set[str] = set()
    value_of, all_of = QueryDict.__getitem__, QueryDict.lists

    def note(given: QueryDict, name: str) -> object:
        read.add(name)
        return value_of(given, name)

    def note_list(given: QueryDict, name: str, default: Any = None, **_: Any) -> object:
        read.add(name)
        return [*dict.get(given, name, default or ())]

    def note_all(given: QueryDict) -> object:
        read.update(given)
        return all_of(given)

    with pytest.MonkeyPatch.context() as patch:
        for name, noting in (("__getitem__", note), ("_getlist", note_list), ("lists", note_all)):
            patch.setattr(QueryDict, name, noting)
        for parameter in PARAMETERS:
            client.get(address, {**more, parameter: BEFORE}, headers=headers)
    return read & PARAMETERS


def list_ways(client: Client, address: str, more: Mapping[str, str], headers: Any, *, is_thorough: bool) -> list[Way]:
    """The ways in which something can be looked for at an address: those by whose parameter what stands in clear is
    told from what stands nowhere. Thoroughly nothing is left out: neither what is read nowhere, nor any form."""
    read = find_read(client, address, more, headers)

    def find_taken(ways: Iterable[Way]) -> set[str]:
        return {way[0] for way in ways if differ(client, address, (BEFORE, NOWHERE), way, more, headers)}

    taken = find_taken(WAYS if is_thorough else (way for way in PROBES if way[0] in read))
    return [way for way in WAYS if way[0] in taken]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("space", ["api", "pages"])
@pytest.mark.parametrize("places", begin_with(1, ([4], range(len(SECRET))), seconds=120), ids=len)
def test_no_character_of_a_secret_is_told_by_any_query(
    cast: Cast,
    given: Mapping[str, Mapping[str, str]],
    sign_in: Callable[[Membership], Client],
    unhurried: None,
    space: str,
    places: Sequence[int],
) -> None:
    tokens = {
        scopes: create_api_key(workspace=cast.workspace, name=",".join(scopes), scopes=list(scopes))[1]
        for scopes in (("read",), ("read", "secrets"))
    }
    if space == "api":
        clients = [(Client(), {"Authorization": f"Bearer {token}"}) for token in tokens.values()]
    else:
        clients = [(sign_in(membership), {}) for membership in (cast.viewer, cast.owner)]
    (blind, blind_headers), (seeing, seeing_headers) = clients
    addresses = [each for each in list_addresses(cast) if each[0].startswith("api:") == (space == "api")]
    assert len(addresses) > 20
    taking = [
        (name, address, ways)
        for name, address in addresses
        if (ways := list_ways(blind, address, given.get(name, {}), blind_headers, is_thorough=len(places) > 1))
    ]
    wanted = {name for name in GIVES_AWAY if name.startswith(space)}
    assert wanted <= {name for name, _, _ in taking}
    assert len(taking) < 20, [name for name, _, _ in taking]
    told = find_differences(blind, taking, places, given, blind_headers)
    assert not told, {name: dict(found) for name, found in told.items()}
    # The same test, by those who may see the secret.
    seen = find_differences(seeing, [each for each in taking if each[0] in wanted], places, given, seeing_headers)
    assert {name for name, found in seen.items() if set(found) == set(places)} == wanted
    assert {form for found in seen.values() for forms in found.values() for form in forms} == set(TELLING)


@pytest.mark.django_db
def test_the_database_does_the_same_work_whatever_the_secret_is(
    cast: Cast, given: Mapping[str, Mapping[str, str]]
) -> None:
    """The unmasked text of a message that has something masked is not so much as read."""
    message = Message.objects.get(record__order_time__minute=2)

    def explain(guess: str, *, may_see_secrets: bool) -> tuple[str, list[int]]:
        rows = narrow(
            workspace=cast.workspace, query=f'raw:"{guess}"', zone=None, may_see_secrets=may_see_secrets
        ).filter(pk=message.pk)
        (plan,) = json.loads(rows.explain(format="json", analyze=True, timing=False, summary=False, buffers=False))
        text = json.dumps(plan["Plan"]).replace(guess.encode().hex(), "GUESS")
        nodes = list(walk(plan["Plan"]))
        return text, [each["Actual Loops"] for each in nodes if each.get("Relation Name") == "intake_record"]

    def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for each in node.get("Plans", ()):
            yield from walk(each)

    right, loops = explain(BEFORE + SECRET, may_see_secrets=False)
    wrong, _ = explain(BEFORE + "x" * len(SECRET), may_see_secrets=False)
    assert loops == [0]
    assert right == wrong
    assert explain(BEFORE + SECRET, may_see_secrets=True)[1] == [1]


@pytest.mark.django_db
def test_what_others_see_of_a_search_comes_from_masked_text(cast: Cast, given: Mapping[str, Mapping[str, str]]) -> None:
    """A queue that an owner fills by a search is seen by everybody; so is how much a masked export holds."""
    for query, found in ((f'raw:"{BEFORE}{SECRET[:3]}"', 0), (f'raw:"{BEFORE}"', 1)):
        queue = create_queue(membership=cast.owner, name=query, source="search", query=query)
        fill_from_source(membership=cast.owner, queue=queue)
        assert ReviewItem.objects.filter(queue=queue).count() == found
        assert make(ask(cast, query=query, is_masked=True)).listed == found
    assert make(ask(cast, query=f'raw:"{BEFORE}{SECRET}"')).listed == 1


@pytest.mark.django_db
def test_what_is_searched_is_what_a_message_shows(cast: Cast) -> None:
    """Of secrets in all dialects and places: the kept masked text is the one that the message's own page shows."""
    take_in(cast, *(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in make_log()))
    kept = {(each.record_id, each.dialect): bytes(each.text).decode() for each in MaskedWire.objects.all()}
    expected: dict[tuple[UUID, str], str] = {}
    for message in Message.objects.select_related("record"):
        reading = unfold(message=message)
        if spans := find_outer_secrets(reading):
            expected[message.record_id, message.dialect] = mask(reading.wire, spans)
    assert kept == expected
    assert len(kept) > 15
    assert len(kept) < Record.objects.count()


def find(cast: Cast, text: str) -> int:
    return narrow(workspace=cast.workspace, query=f'raw:"{text}"', zone=None, may_see_secrets=False).count()


@pytest.mark.django_db
def test_what_no_decoder_of_today_has_masked_is_not_found_until_it_is_read_again(
    cast: Cast, given: Mapping[str, Mapping[str, str]]
) -> None:
    assert find(cast, "db_pass") == 1
    for earlier in ("3.1 nslip =", ""):
        # As an earlier version left it: nothing is known of what is masked.
        MaskedWire.objects.all().delete()
        Message.objects.update(told_in=earlier)
        assert find(cast, "db_pass") == find(cast, SECRET) == 0
        Conversation.objects.update(settled_generation=-1)
        from inspector.threads.inserting import mark_conversations

        mark_conversations(
            conversation_ids=set(Conversation.objects.values_list("pk", flat=True)), workspace_id=cast.workspace.pk
        )
        resolve_all()
        assert find(cast, "db_pass") == 1
        assert find(cast, SECRET) == 0


@pytest.mark.django_db
def test_what_is_not_settled_yet_is_not_told_from_what_is_not_there(cast: Cast) -> None:
    deliver(cast, make_line(1, SECRET))
    assert find(cast, "db_pass") == find(cast, SECRET) == 0
    resolve_all()
    assert find(cast, "db_pass") == 1


@pytest.mark.django_db
def test_a_record_too_long_to_be_looked_through_is_found_by_those_alone_who_may_see_secrets(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "MAX_BYTES_LOOKED_THROUGH", 30)
    take_in(cast, make_line(1, SECRET), make_line(2))
    assert find(cast, "db_pass") == find(cast, "nothing") == 0
    rows = narrow(workspace=cast.workspace, query="raw:nothing", zone=None, may_see_secrets=True)
    assert rows.count() == 1
    assert dependencies.DECODER_VERSION in rows.get().told_in
