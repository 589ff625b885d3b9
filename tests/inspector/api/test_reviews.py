"""Reviews and audit samples over the API: who may do what, and what anybody may know."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from inspector.accounts.models import ApiKey, Membership, Role
from inspector.accounts.services import add_member, create_api_key
from inspector.audit.models import AuditSample, ReviewItem, ReviewQueue
from inspector.audit.reviews.queues import change_rubric, close_queue, create_queue, fill_queue
from inspector.audit.reviews.selectors import list_queues, read_queue_key, write_queue_key
from inspector.audit.reviews.verdicts import give_verdict
from inspector.threads.models import Conversation, Message
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, make_user, resolve_all
from . import clients
from .clients import costs_the_same, walk

pytestmark = pytest.mark.django_db
QUEUES = "/api/v1/reviews/queues"
ITEMS = "/api/v1/reviews/items"
ANSWERS = {"answers": ["fail"], "comment": "Hm."}


@pytest.fixture
def queue(cast: Cast) -> ReviewQueue:
    """Three conversations that two have to review, in the order of their ids."""
    for number in (1, 2, 3):
        deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c%d", "id": "m1"}' % number)
    resolve_all()
    return fill(cast, reviewers=2)


def fill(cast: Cast, *, reviewers: int, name: str = "Two") -> ReviewQueue:
    queue = create_queue(membership=cast.owner, name=name, reviewers=reviewers, criteria=["Is it so?"])
    for conversation in Conversation.objects.filter(workspace=cast.workspace).order_by("pk"):
        fill_queue(queue=queue, conversations=[conversation.pk], why="by hand", membership=cast.owner)
    return queue


def enter(cast: Cast, who: Any, *scopes: str) -> Client:
    return clients.enter(cast, who, *(scopes or ApiKey.Scope.values))


def items_of(client: Client, queue: ReviewQueue, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{QUEUES}/{queue.pk}/items", query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def take(client: Client, item: Mapping[str, Any]) -> Any:
    return client.post(f"{ITEMS}/{item['id']}/lease")


def give(client: Client, item: Mapping[str, Any], verdict: str, **said: Any) -> Any:
    seen = client.get(f"{ITEMS}/{item['id']}").json()["settled_digest"]
    body = json.dumps({"verdict": verdict, "seen": seen, **ANSWERS, **said})
    return client.post(f"{ITEMS}/{item['id']}/verdict", body, content_type="application/json")


def judge(client: Client, item: Mapping[str, Any], verdict: str) -> Any:
    assert take(client, item).status_code == 200
    given = give(client, item, verdict)
    assert given.status_code == 201, given.content
    return given.json()


def look_everywhere(client: Client, cast: Cast, queue: ReviewQueue) -> dict[str, tuple[int, bytes, dict[str, str]]]:
    """All that a key with every scope can read that could tell of a review: each answer with its headers."""
    conversation, message = Conversation.objects.order_by("pk")[1], Message.objects.order_by("pk")[1]
    addresses = [
        QUEUES,
        f"{QUEUES}/{queue.pk}",
        *(f"{QUEUES}/{queue.pk}/items?state={state}" for state in ("open", "disputed", "done")),
        f"{QUEUES}/{queue.pk}/items?limit=1",
        *(f"{ITEMS}/{item.pk}" for item in ReviewItem.objects.filter(queue=queue).order_by("pk")),
        *(f"/api/v1/messages?q={q}" for q in ("reviewed:yes", "reviewed:no", "review:concern", "assignee:amir", "")),
        f"/api/v1/messages/{message.pk}",
        f"/api/v1/messages/{message.pk}/comments",
        "/api/v1/conversations",
        f"/api/v1/conversations/{conversation.pk}",
        f"/api/v1/conversations/{conversation.pk}/tasks",
        "/api/v1/comments",
        "/api/v1/findings",
        "/api/v1/exports",
        "/api/v1/samples",
        "/api/v1/trail?limit=200",
    ]
    seen = {}
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.content)
        assert not {"ETag", "Last-Modified"} & set(answer.headers)
        # A cursor is dated and signed; what it says is its first part.
        told = re.sub(rb'"next":"([\w-]+):[^"]+"', rb'"next":"\1"', answer.content)
        # Each request has a number of its own, drawn by chance.
        headers = {name: value for name, value in answer.headers.items() if name != "X-Request-Id"}
        seen[address] = (answer.status_code, told, headers)
    return seen


def forget_that(told: tuple[int, bytes, dict[str, str]]) -> tuple[int, bytes, dict[str, str]]:
    """An answer without the one thing that is told: that one of two has spoken."""
    status, body, headers = told
    body = body.replace(b'"state":"second"', b'"state":"waiting"').replace(b'"second":1', b'"second":0')
    return status, body, {name: value for name, value in headers.items() if name != "Content-Length"}


def test_the_second_reviewer_learns_that_another_has_spoken_and_neither_who_nor_what(
    cast: Cast, queue: ReviewQueue
) -> None:
    first, second = enter(cast, cast.auditor.user), enter(cast, cast.owner.user)
    # Not even a key that the first reviewer made, which somebody else may hold, says what they said.
    own = enter(cast, cast.auditor.user, "review", "read", "export", "trail")
    _, item, other = items_of(first, queue)
    before = [look_everywhere(client, cast, queue) for client in (second, own)]

    def find_traces() -> tuple[set[str], set[str]]:
        """The addresses that answer otherwise than before anybody spoke, and those that tell more than that."""
        now = [look_everywhere(client, cast, queue) for client in (second, own)]
        pairs = [(address, was[address], now[turn][address]) for turn, was in enumerate(before) for address in was]
        return (
            {address for address, was, is_now in pairs if was != is_now},
            {address for address, was, is_now in pairs if forget_that(was) != forget_that(is_now)},
        )

    assert find_traces() == (set(), set())
    given = judge(first, item, "concern")
    assert (given["given"]["reviewer"], given["given"]["verdict"]) == ("amir", "concern")
    assert given["given"]["answers"] == [{"criterion": "Is it so?", "answer": "fail"}]
    assert (given["item"]["state"], given["item"]["verdicts"]) == ("second", [])
    told = {QUEUES, f"{QUEUES}/{queue.pk}", f"{QUEUES}/{queue.pk}/items?state=open", f"{ITEMS}/{item['id']}"}
    assert find_traces() == (told, set())
    # As on the pages, what needs a second reviewer can be found.
    assert [each["id"] for each in items_of(second, queue, state="second")] == [item["id"]]
    assert second.get(QUEUES).json()["results"][0]["second"] == 1
    # What is refused is refused alike where somebody has spoken and where nobody has.
    for act in ("put", "delete"):
        said = {getattr(second, act)(f"{ITEMS}/{each['id']}/lease").json()["detail"] for each in (item, other)}
        assert said == {"not claimed: claim it first"}
    said = {second.delete(f"{ITEMS}/{each['id']}/verdict").json()["detail"] for each in (item, other)}
    assert len(said) == 1
    # And what is taken looks alike.
    names = {"id", "conversation", "added_at", "held_until", "settled_digest", "state"}
    taken = [take(second, each).json() for each in (item, other)]
    assert len({json.dumps({name: each[name] for name in each.keys() - names}, sort_keys=True) for each in taken}) == 1
    # The first reviewer takes the verdict back, and gives another: still nothing more is to be seen.
    assert second.delete(f"{ITEMS}/{item['id']}/lease").status_code == 200
    assert second.delete(f"{ITEMS}/{other['id']}/lease").status_code == 200
    assert first.delete(f"{ITEMS}/{item['id']}/verdict").status_code == 200
    assert find_traces() == (set(), set())
    judge(first, item, "violation")
    assert find_traces() == (told, set())
    both = judge(second, item, "violation")
    assert (both["item"]["state"], both["item"]["verdict"]) == ("settled", "violation")
    assert [each["reviewer"] for each in both["item"]["verdicts"]] == ["amir", "olivia"]
    assert [each["id"] for each in items_of(second, queue, state="done")] == [item["id"]]
    # Afterwards the trail has all of it.
    deeds = second.get("/api/v1/trail", {"deed": "verdict.given"}).json()["results"]
    assert [each["actor"]["name"] for each in deeds] == ["olivia", "amir", "amir"]


def test_a_rubric_that_was_changed_since_is_answered_as_the_first_did(cast: Cast, queue: ReviewQueue) -> None:
    first, second = enter(cast, cast.auditor.user), enter(cast, cast.owner.user)
    item, other, given_back = items_of(first, queue)
    judge(first, item, "fine")
    # That somebody had an item in hand and gave it back is nobody's to know.
    assert take(first, given_back).status_code == 200
    assert first.delete(f"{ITEMS}/{given_back['id']}/lease").status_code == 200
    change_rubric(membership=cast.owner, queue=queue, criteria=["Is it?", "Was it?"], expected=1)
    shown = [second.get(f"{ITEMS}/{each['id']}").json() for each in (item, other, given_back)]
    assert [each["rubric"]["number"] for each in shown] == [1, 2, 2]
    assert take(second, item).json()["rubric"] == {"number": 1, "criteria": ["Is it so?"]}


def test_queues_come_in_pages(cast: Cast, queue: ReviewQueue) -> None:
    """In the order in which they were made, where none moves; pages of people have the open ones first, then closed
    ones, then the standing one. Each once, whatever the size of the page."""
    for name in ("A", "B", "C", "D"):
        made = create_queue(membership=cast.owner, name=name, reviewers=1, criteria=[])
        if name in "BD":
            close_queue(membership=cast.owner, queue=made, is_closed=True)
    deliver(cast, b'{"raw": "Nobody waits for this.", "conversation": "c4", "id": "m1"}')
    resolve_all()
    conversation = Conversation.objects.get(native_id="c4")
    seen = bytes(conversation.settled_digest or b"")
    give_verdict(membership=cast.auditor, conversation=conversation, verdict="fine", comment="", seen=seen)
    client = enter(cast, cast.owner.user, "review")
    for limit in (1, 2, 50):
        names = [each["name"] for each in walk(client, QUEUES, limit=limit)]
        assert names == ["Two", "A", "B", "C", "D", "Reviewed directly"]
        names, after = [], None
        while found := list_queues(workspace=cast.workspace, after=after, limit=limit):
            names += [each.queue.name for each in found]
            after = read_queue_key(write_queue_key(found[-1].queue))
        assert names == ["Two", "A", "C", "D", "B", "Reviewed directly"]
    assert client.get(QUEUES, {"cursor": "x"}).status_code == 400


def test_a_sign_off_that_went_stale_is_listed_as_such(cast: Cast) -> None:
    deliver(cast, b'{"raw": "Pay the invoice.", "conversation": "c1", "id": "m1"}')
    resolve_all()
    queue = fill(cast, reviewers=1)
    client = enter(cast, cast.auditor.user)
    (item,) = items_of(client, queue)
    judge(client, item, "fine")
    assert items_of(client, queue, state="stale") == []
    deliver(cast, b'{"raw": "Twice.", "conversation": "c1", "id": "m2"}', name="b.log")
    resolve_all()
    assert [each["id"] for each in items_of(client, queue, state="stale")] == [item["id"]]
    (shown,) = client.get(QUEUES).json()["results"]
    assert (shown["settled"], shown["stale"]) == (1, 1)
    found = client.get("/api/v1/messages", {"q": "review:stale"}).json()["results"]
    assert len(found) == 2
    assert client.get("/api/v1/messages", {"q": "-review:stale"}).json()["results"] == []
    # What is signed anew is stale no longer.
    again = fill(cast, reviewers=1, name="Again")
    judge(client, items_of(client, again)[0], "fine")
    assert items_of(client, queue, state="stale") == []
    assert client.get("/api/v1/messages", {"q": "review:stale"}).json()["results"] == []


def test_a_third_person_decides_where_two_differ(cast: Cast, queue: ReviewQueue) -> None:
    third = add_member(workspace=cast.workspace, user=make_user("tara"), role=Role.AUDITOR)
    amir, olivia, tara = (enter(cast, who.user, "review", "sign") for who in (cast.auditor, cast.owner, third))
    item = items_of(amir, queue)[0]
    judge(amir, item, "concern")
    assert judge(olivia, item, "fine")["item"]["state"] == "disputed"
    assert [each["id"] for each in items_of(amir, queue, state="disputed")] == [item["id"]]
    # Both are open now, and neither of the two decides.
    assert [each["verdict"] for each in amir.get(f"{ITEMS}/{item['id']}").json()["verdicts"]] == ["concern", "fine"]
    assert take(amir, item).status_code == 409
    decided = judge(tara, item, "fine")
    assert (decided["given"]["is_adjudication"], decided["item"]["verdict"]) == (True, "fine")
    shown = olivia.get(f"{QUEUES}/{queue.pk}").json()
    assert (shown["open"], shown["disputed"], shown["settled"]) == (2, 0, 1)
    assert shown["people"] == [
        {"reviewer": "amir", "verdicts": {"concern": 1}, "held": 0},
        {"reviewer": "olivia", "verdicts": {"fine": 1}, "held": 0},
        {"reviewer": "tara", "verdicts": {"fine": 1}, "held": 0},
    ]
    deeds = Deed.objects.filter(code="verdict.given").order_by("sequence").values_list("actor_name", flat=True)
    assert list(deeds) == ["amir", "olivia", "tara"]


def test_a_lease_is_held_by_one(cast: Cast, queue: ReviewQueue) -> None:
    amir, olivia = enter(cast, cast.auditor.user), enter(cast, cast.owner.user)
    item, second, _ = items_of(amir, queue)
    taken = take(amir, item).json()
    assert (taken["holder"], taken["id"]) == ("amir", item["id"])
    refused = take(olivia, item)
    assert (refused.status_code, refused["Content-Type"]) == (409, "application/problem+json")
    assert "amir holds it until" in refused.json()["detail"]
    assert give(olivia, item, "fine").status_code == 409
    assert olivia.put(f"{ITEMS}/{item['id']}/lease").status_code == 409
    later = amir.put(f"{ITEMS}/{item['id']}/lease").json()["held_until"]
    assert later >= taken["held_until"]
    # The next is passed by while it is held, and is the longest waiting one again when it is not.
    assert olivia.post(f"{QUEUES}/{queue.pk}/next").json()["id"] == second["id"]
    assert amir.delete(f"{ITEMS}/{item['id']}/lease").json()["holder"] is None
    assert amir.post(f"{QUEUES}/{queue.pk}/next").json()["id"] == item["id"]
    for each in items_of(olivia, queue):
        if each["id"] != item["id"]:
            judge(olivia, each, "fine")
    assert olivia.post(f"{QUEUES}/{queue.pk}/next").status_code == 409


def test_what_is_refused(cast: Cast, queue: ReviewQueue) -> None:
    reader, nobody = enter(cast, cast.auditor.user, "review", "read"), enter(cast, None)
    item = items_of(reader, queue)[0]
    lease, verdict = f"{ITEMS}/{item['id']}/lease", f"{ITEMS}/{item['id']}/verdict"
    for client in (reader, nobody, enter(cast, cast.viewer.user)):
        assert (
            client.post(lease).status_code == client.delete(lease).status_code == client.put(lease).status_code == 403
        )
        assert client.post(f"{QUEUES}/{queue.pk}/next").status_code == 403
        assert give(client, item, "fine").status_code == client.delete(verdict).status_code == 403
    assert enter(cast, cast.owner.user, "read", "sign").get(QUEUES).status_code == 403
    amir = enter(cast, cast.auditor.user)
    take(amir, item)
    for wrong, member in (
        ({"seen": "zz"}, "seen"),
        ({"seen": ""}, "seen"),
        ({"verdict": "nice"}, "verdict"),
        ({"answers": ["perhaps"]}, "answers"),
        ({"answers": []}, None),
        ({"answers": [["pass"]]}, "answers"),
        ({"more": 1}, "more"),
    ):
        refused = give(amir, item, **{"verdict": "fine", **wrong})
        assert (refused.status_code, refused.json().get("member")) == (422, member), refused.content
    # Nobody signs what they have not seen.
    assert give(amir, item, "fine", seen="00" * 32).status_code == 409
    assert not Deed.objects.filter(code="verdict.given").exists()


def test_a_role_that_was_taken_away_is_gone_for_the_key_too(cast: Cast, queue: ReviewQueue) -> None:
    amir = enter(cast, cast.auditor.user)
    item = items_of(amir, queue)[0]
    assert take(amir, item).status_code == 200
    Membership.objects.filter(pk=cast.auditor.pk).update(role=Role.VIEWER)
    assert give(amir, item, "fine").status_code == 403
    Membership.objects.filter(pk=cast.auditor.pk).delete()
    assert give(amir, item, "fine").status_code == 403


def test_pages_follow_each_other_and_cost_the_same(cast: Cast, queue: ReviewQueue, unhurried: None) -> None:
    client = enter(cast, cast.auditor.user)
    address = f"{QUEUES}/{queue.pk}/items"
    assert walk(client, address) == items_of(client, queue)
    assert costs_the_same(client, address, 1, 3)


SAMPLES = "/api/v1/samples"
WANTED = {"name": "November", "stratum": "channel", "wanted": 3, "seed": "s", "reviewers": 2, "criteria": ["Is it so?"]}


def enter_to_draw(cast: Cast, who: Any, *scopes: str) -> Client:
    return clients.enter(cast, who, *(scopes or ("review", "sign")))


def draw(client: Client, **said: Any) -> Any:
    return client.post(SAMPLES, json.dumps({**WANTED, **said}), content_type="application/json")


@pytest.fixture
def conversations(cast: Cast) -> None:
    for number in range(5):
        deliver(
            cast,
            b'{"raw": "Pay.", "conversation": "c%d", "id": "m", "at": "2026-11-0%dT09:00:00Z"}' % (number, number + 1),
        )
    resolve_all()


@pytest.mark.usefixtures("conversations")
def test_the_same_seed_draws_the_same_again(cast: Cast, stranger_token: str) -> None:
    client = enter_to_draw(cast, cast.auditor.user)
    made = draw(client)
    assert made.status_code == 201, made.content
    sample = made.json()
    assert (sample["population"], sample["drawn"], sample["made_by"]) == (5, 3, "amir")
    assert sample["strata"] == [{"name": "main", "population": 5, "drawn": 3}]
    assert client.get(f"{SAMPLES}/{sample['id']}").json() == sample
    assert client.get(f"{SAMPLES}/{sample['id']}", {"strata_from": 1}).json()["strata"] == []
    address = f"{SAMPLES}/{sample['id']}/conversations"
    drawn = walk(client, address)
    assert [each["place"] for each in drawn] == [1, 2, 3]
    digest = hashlib.sha256(b"".join(sorted(bytes.fromhex(each["identity"]) for each in drawn))).hexdigest()
    assert digest == sample["digest"] == draw(client, name="Again").json()["digest"]
    assert digest != draw(client, name="Other", seed="t").json()["digest"]
    items = ReviewItem.objects.filter(queue=sample["queue"], needed=2)
    assert {str(item.pk) for item in items} == {each["item"] for each in drawn}
    assert costs_the_same(client, address, 1, 3)
    first = client.get(SAMPLES, {"limit": 2}).json()
    rest = client.get(SAMPLES, {"limit": 2, "cursor": first["next"]}).json()
    assert [each["name"] for each in first["results"] + rest["results"]] == ["Other", "Again", "November"]
    # A cursor leads on in its own sample alone.
    assert client.get(address, {"cursor": first["next"]}).status_code == 400
    stranger = create_api_key(workspace=cast.stranger.workspace, name="s", scopes=["review"])[1]
    foreign = Client(headers={"Authorization": f"Bearer {stranger}"})
    assert foreign.get(SAMPLES).json()["results"] == []
    assert foreign.get(address).status_code == 404


@pytest.mark.usefixtures("conversations")
def test_what_is_refused_samples(cast: Cast) -> None:
    client = enter_to_draw(cast, cast.auditor.user)
    for wrong, member in (
        ({"wanted": 0}, "wanted"),
        ({"wanted": 2.5}, "wanted"),
        ({"stratum": "colour"}, "stratum"),
        ({"reviewers": 3}, "reviewers"),
        ({"since": "2026-11-01"}, "since"),
        ({"since": "2026-11-01T00:00:00"}, "since"),
        ({"criteria": "Is it?"}, "criteria"),
        ({"criteria": ["x", "X"]}, None),
        ({"seed": "é"}, None),
        ({"name": " "}, None),
        ({"since": "2026-11-02T00:00:00Z", "until": "2026-11-01T00:00:00Z"}, None),
        ({"seeds": "s"}, "seeds"),
    ):
        refused = draw(client, **wrong)
        assert (refused.status_code, refused.json().get("member")) == (422, member), (wrong, refused.content)
    assert draw(client, since="2027-01-01T00:00:00Z").status_code == 409
    for other in (
        enter_to_draw(cast, cast.auditor.user, "review"),
        enter_to_draw(cast, None),
        enter_to_draw(cast, cast.viewer.user),
    ):
        assert draw(other).status_code == 403
    assert not AuditSample.objects.exists()
    bounded = draw(client, since="2026-11-02T00:00:00+00:00", until="2026-11-04T00:00:00Z", name="Two days").json()
    assert (bounded["population"], bounded["since"]) == (2, "2026-11-02T00:00:00Z")
