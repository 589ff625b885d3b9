"""A crowd at the sign-in page is sent away, and takes no more than two threads of a process."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from inspector.accounts.limits import forget_full, reserve
from inspector.accounts.models import Pace
from inspector.accounts.sessions import BACKEND
from inspector.pages import sign_in
from inspector.pages.sign_in import SignInForm

from ..conftest import Cast


def try_once(number: int, address: str = "198.51.100.7") -> Any:
    data = {"username": f"somebody{number}", "password": "wrong"}
    return Client().post("/sign-in/", data, REMOTE_ADDR=address)


def test_an_address_tries_so_many_names_a_minute_and_others_go_on(cast: Cast, settings: Any) -> None:
    settings.LIMITS = settings.LIMITS | {"sign_ins_per_minute": 3}
    answers = [try_once(number) for number in range(5)]
    assert [answer.status_code for answer in answers] == [422, 422, 422, 429, 429]
    assert int(answers[-1]["Retry-After"]) > 0
    assert "wait" in answers[-1].content.decode()
    assert try_once(9, address="198.51.100.8").status_code == 422


def test_a_person_asks_for_so_many_pages_a_minute_of_all_processes_and_others_go_on(cast: Cast, settings: Any) -> None:
    settings.PAGES_PER_MINUTE = 3
    asked: list[int] = []
    for member, after_s in (*[(cast.viewer, 0)] * 4, (cast.owner, 0), (cast.viewer, 20), (cast.viewer, 0)):
        Pace.objects.update(at=F("at") - timedelta(seconds=after_s))
        client = Client()
        client.force_login(member.user, backend=BACKEND)
        answer = client.get("/w/acme/overview/")
        asked.append(answer.status_code)
    assert asked == [200, 200, 200, 429, 200, 200, 429]
    assert (answer["Retry-After"], "too many pages" in answer.content.decode()) == ("5", True)


def test_what_an_address_may_try_is_shared_by_all_processes(cast: Cast, settings: Any) -> None:
    settings.LIMITS = settings.LIMITS | {"sign_ins_per_minute": 3}
    address = "198.51.100.7"
    assert try_once(0).status_code == 422
    held = Pace.objects.get(name=address)
    assert held.left == 2
    # Other processes have answered the rest of it; so that time adds nothing meanwhile, they did so in an hour.
    Pace.objects.update(at=timezone.now() + timedelta(hours=1), left=0)
    assert try_once(1).status_code == 429
    # It fills evenly, and never beyond a minute's worth.
    Pace.objects.update(at=timezone.now() - timedelta(seconds=21), left=0)
    assert [reserve(address, most=3) for _ in range(2)] == [True, False]
    Pace.objects.update(at=timezone.now() - timedelta(hours=1), left=0)
    assert [reserve(address, most=3) for _ in range(4)] == [True, True, True, False]
    forget_full()
    assert Pace.objects.exists()
    Pace.objects.update(at=timezone.now() - timedelta(hours=1))
    forget_full()
    assert not Pace.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_no_more_than_two_passwords_are_hashed_at_a_time(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.LIMITS = settings.LIMITS | {"sign_ins_per_minute": 0}
    monkeypatch.setattr(sign_in, "PATIENCE_SECONDS", 0.2)
    busy, most, lock = 0, 0, threading.Lock()

    def hash_slowly(form: SignInForm) -> bool:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.6)
        with lock:
            busy -= 1
        form.full_clean = lambda: None  # type: ignore[method-assign]  # nothing is asked of the database here
        form._errors = {}  # type: ignore[assignment]
        return False

    monkeypatch.setattr(SignInForm, "is_valid", hash_slowly)
    statuses: list[int] = []
    crowd = [threading.Thread(target=lambda: statuses.append(try_once(0).status_code)) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert most == 2
    assert sorted(statuses) == [422, 422, *[429] * 6]


@pytest.mark.parametrize("address", ["/w/acme/account/", "/invitation/"])
def test_every_form_with_a_password_waits_for_its_turn(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(sign_in, "PATIENCE_SECONDS", 0.01)
    busy = threading.BoundedSemaphore(1)
    monkeypatch.setattr(sign_in, "_hashing", busy)
    client = Client()
    client.force_login(cast.auditor.user, BACKEND)
    with busy:
        answer = client.post(address, {"form": "password"})
        assert (answer.status_code, answer["Retry-After"]) == (429, "5")
        assert client.get(address).status_code == 200
    assert client.post(address, {"form": "password", "code": "x"}).status_code in (422, 410)
