"""The lists of operators: off by default, for superusers with a second factor, and without a word of any log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import django.contrib.admin
import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.test import Client, override_settings
from django.urls import NoReverseMatch, URLPattern, URLResolver, path, reverse

import inspector.urls
from inspector.pages.operators import LISTS, site
from tests.inspector.conftest import take_in

from ..conftest import Cast

pytestmark = pytest.mark.django_db
SECRET = "Secret plan.", "Secret agent", "opensesame-7731", "secret-talk"


class Urls:
    urlpatterns = (path("operators/", site.urls), *inspector.urls.urlpatterns)


@pytest.fixture
def switched_on() -> Iterator[None]:
    """The addresses, and what the app of the admin brings: apps are loaded once in a process."""
    (templates,) = settings.TEMPLATES
    folder = Path(django.contrib.admin.__file__).parent
    tags = {path.stem: f"django.contrib.admin.templatetags.{path.stem}" for path in folder.glob("templatetags/*_*.py")}
    tags.pop("__init__")
    told = {**templates, "DIRS": [*templates["DIRS"], folder / "templates"]}
    told["OPTIONS"] = {**templates["OPTIONS"], "libraries": tags}
    with override_settings(TEMPLATES=[told], ROOT_URLCONF=Urls):
        yield


@pytest.fixture
def operator(cast: Cast) -> Client:
    """A superuser with a second factor, who is a member of no workspace."""
    user = type(cast.owner.user).objects.create_superuser("operator")
    Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={"secret": "s"})
    client = Client()
    client.force_login(user)
    return client


def list_addresses() -> list[str]:
    return [reverse(f"operators:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in LISTS]


def test_it_is_not_there_by_default(operator: Client) -> None:
    assert operator.get("/operators/").status_code == 404
    with pytest.raises(NoReverseMatch):
        reverse("operators:index")


def test_who_is_no_superuser_or_has_no_second_factor_finds_nothing(
    cast: Cast, operator: Client, switched_on: None
) -> None:
    for address in ("/operators/", *list_addresses()):
        answer = Client().get(address, follow=True)
        assert answer.redirect_chain[-1] == (f"{reverse('pages:sign-in')}?next={address}", 302)
        for member in (cast.owner, cast.auditor, cast.stranger):
            client = Client()
            client.force_login(member.user)
            assert client.get(address).status_code == 404, address
    Authenticator.objects.all().delete()
    assert operator.get(list_addresses()[0]).status_code == 404


def test_it_lists_rows_and_no_word_of_what_they_hold(cast: Cast, operator: Client, switched_on: None) -> None:
    line = b'{"raw": "Secret plan. password=opensesame-7731", "id": "m1", "conversation": "secret-talk", '
    take_in(cast, line + b'"from": "Secret agent"}\n')
    assert str(cast.workspace.deliveries.get().pk) in operator.get(list_addresses()[2]).content.decode()
    for address in list_addresses():
        for extra in ("", "?o=1.-2", "?q=Secret", "?p=9"):
            answer = operator.get(address + extra, follow=True)
            text = answer.content.decode()
            assert answer.status_code == 200, address
            assert not any(secret in text for secret in SECRET), address
            assert answer["Content-Security-Policy"]
            assert "style=" not in text
            assert not [part for part in text.split("<script")[1:] if "src=" not in part.split(">")[0]]


def test_no_address_asks_by_a_column_that_is_not_shown(cast: Cast, operator: Client, switched_on: None) -> None:
    """A count of rows would say what such a column holds."""
    for query in ("english__contains=Secret", "body__startswith=x", "user__password__startswith=a", "wire__gt=a"):
        for address in list_addresses():
            answer = operator.get(f"{address}?{query}")
            assert answer.status_code == 400 or answer["Location"].endswith("?e=1"), address


def test_nothing_is_added_changed_or_deleted(cast: Cast, operator: Client, switched_on: None) -> None:
    routes = list(find_routes(site.get_urls()))
    assert [name for name in routes if name and name.endswith(("_add", "_delete", "_history"))] == []
    for address in list_addresses():
        told = operator.post(address, {"action": "delete_selected", "_selected_action": ["1"]})
        assert told.status_code in (200, 302, 403), address
        for below in ("add/", f"{cast.workspace.pk}/", f"{cast.workspace.pk}/change/", f"{cast.workspace.pk}/delete/"):
            assert operator.get(address + below).status_code == 404, address + below
    assert operator.get("/operators/password_change/").status_code == 404
    assert type(cast.workspace).objects.filter(pk=cast.workspace.pk).exists()


def find_routes(patterns: list[URLPattern | URLResolver]) -> Iterator[str | None]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from find_routes(each.url_patterns)
        else:
            yield each.name
