"""A start with settings that cannot be read, or that each machine would make up, is refused in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from inspector.accounts.models import Role
from inspector.starting import RefusedStartError, RoleName, check_secret, check_shared_settings, is_local
from tests.each import for_each

PROJECT = Path(__file__).parents[2]
REMOTE = "postgresql://ada:hunter2secret@db.example.org/inspector"
SECRET = "0123456789abcdef" * 4
KEYRING = "fedcba9876543210" * 4
BROKER = "redis://broker.example.org:6379/0"
# What is set, and what the one sentence names.
PROVIDER = {
    "OIDC_SERVER_URL": "https://id.example.com/realms/acme",
    "OIDC_CLIENT_ID": "inspector",
    "OIDC_CLIENT_SECRET": "hunter2secret",
}
REFUSED = {
    "a short secret": ({"SECRET_KEY": "abc"}, "SECRET_KEY"),
    "a monotonous secret": ({"SECRET_KEY": "a" * 60}, "SECRET_KEY"),
    "a number that is none": ({"JOB_LEASE_SECONDS": "soon"}, "JOB_LEASE_SECONDS"),
    "a yes that is none": ({"DEBUG": "perhaps"}, "DEBUG"),
    "a log level that is none": ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
    "an address that is none": ({"DATABASE_URL": "postgresql://ada:hunter2secret@[db/inspector"}, "DATABASE_URL"),
    "a replica's address that is none": ({"REPLICA_URL": "hunter2secret at db"}, "REPLICA_URL"),
    "words for an address": ({"DATABASE_URL": "hunter2secret at db"}, "DATABASE_URL"),
    "another machine's database alone": ({"DATABASE_URL": REMOTE}, "SECRET_KEY, INSPECTOR_KEYRING_KEY, CELERY_BROKER"),
    "no broker": (
        {"DATABASE_URL": REMOTE, "SECRET_KEY": SECRET, "INSPECTOR_KEYRING_KEY": KEYRING},
        "set CELERY_BROKER_URL too",
    ),
    "no keyring": (
        {"DATABASE_URL": REMOTE, "SECRET_KEY": SECRET, "CELERY_BROKER_URL": BROKER},
        "set INSPECTOR_KEYRING_KEY too",
    ),
    "a provider over plain HTTP": ({"OIDC_SERVER_URL": "http://id.example.com"}, "OIDC_SERVER_URL"),
    "a provider without its secret": (PROVIDER | {"OIDC_CLIENT_SECRET": ""}, "OIDC_CLIENT_SECRET"),
    "roles that are no JSON": (PROVIDER | {"OIDC_ROLES": "hunter2secret"}, "OIDC_ROLES"),
    "a role that does not exist": (PROVIDER | {"OIDC_ROLES": '{"default": {"admin": ["a"]}}'}, "OIDC_ROLES"),
    "a group that is no list": (PROVIDER | {"OIDC_ROLES": '{"default": {"owner": "hunter2secret"}}'}, "OIDC_ROLES"),
}


def read_settings(variables: dict[str, str], state: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What a process says that reads the settings with these variables."""
    names = ("DATABASE_URL", "SECRET_KEY", "INSPECTOR_KEYRING_KEY", "CELERY_BROKER_URL", "LOG_LEVEL", "DEBUG")
    # No container sets it: what is started says itself which settings it has.
    names += ("DJANGO_SETTINGS_MODULE",)
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [sys.executable, *command],
        env=inherited
        | {"INSPECTOR_STATE_DIR": str(state), "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}"}
        | variables,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("case", REFUSED)
def test_a_start_is_refused_in_one_sentence_that_names_the_variable_and_quotes_no_value(
    case: str, tmp_path: Path
) -> None:
    variables, named = REFUSED[case]
    done = read_settings(variables, tmp_path, "-c", "import inspector.settings")
    assert done.returncode == 1
    assert named in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "hunter2secret" not in done.stderr + done.stdout


def test_the_web_server_ends_with_the_sentence_instead_of_starting_workers_for_ever(tmp_path: Path) -> None:
    server = ("-m", "gunicorn", "inspector.wsgi:application", "--config=python:inspector.server", "--bind=127.0.0.1:0")
    done = read_settings({"SECRET_KEY": "abc"}, tmp_path, *server, "--no-control-socket")
    assert done.returncode == 1
    assert "SECRET_KEY can be guessed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_on_another_machine_with_all_that_is_shared_is_taken() -> None:
    given = {"SECRET_KEY": SECRET, "INSPECTOR_KEYRING_KEY": KEYRING, "CELERY_BROKER_URL": BROKER}
    check_shared_settings(database_host="db.example.org", given=given)
    with pytest.raises(RefusedStartError):
        check_shared_settings(database_host="db.example.org", given=given | {"CELERY_BROKER_URL": ""})


@for_each(
    [
        ("", True),
        ("/run/postgresql", True),
        ("@inspector", True),
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("10.0.0.7", False),
        ("db", False),
        ("localhost.example.org", False),
    ]
)
def test_which_database_is_on_this_machine(host: str, expected: bool) -> None:
    assert is_local(host) is expected


def test_a_random_secret_is_taken() -> None:
    check_secret("SECRET_KEY", SECRET)


@pytest.mark.parametrize(
    ("is_behind", "said"),
    [
        ("true", "__Host-sessionid __Host-csrftoken True True None None / /"),
        ("false", "sessionid csrftoken False False None None / /"),
    ],
)
def test_cookies_behind_https_are_of_this_host_alone(is_behind: str, said: str, tmp_path: Path) -> None:
    names = [f"{kind}_COOKIE_{about}" for about in ("NAME", "SECURE", "DOMAIN", "PATH") for kind in ("SESSION", "CSRF")]
    show = f"from django.conf import settings; print(*(getattr(settings, name) for name in {names}))"
    variables = {"DJANGO_SETTINGS_MODULE": "inspector.settings", "BEHIND_HTTPS": is_behind}
    assert read_settings(variables, tmp_path, "-c", show).stdout.strip() == said


def test_a_process_has_loaded_its_pages_before_it_is_asked_for_one(tmp_path: Path) -> None:
    looks = (
        "import inspector.wsgi, sys; print('inspector.pages.urls' in sys.modules, 'inspector.api.urls' in sys.modules)"
    )
    done = read_settings({"SECRET_KEY": SECRET}, tmp_path, "-c", looks)
    assert (done.stdout.strip(), done.returncode) == ("True True", 0), done.stderr


def test_a_provider_of_single_sign_on_is_set_by_the_environment_and_the_button_may_lead_there(tmp_path: Path) -> None:
    show = """
from django.conf import settings
print(settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["server_url"])
print(settings.SECURE_CSP["form-action"], settings.OIDC_ROLES["default"])
"""
    roles = {"OIDC_ROLES": '{"default": {"auditor": ["audit"]}}', "DJANGO_SETTINGS_MODULE": "inspector.settings"}
    said = read_settings(PROVIDER | roles, tmp_path, "-c", show).stdout.splitlines()
    assert said == [PROVIDER["OIDC_SERVER_URL"], "[\"'self'\", 'https://id.example.com'] {'auditor': ['audit']}"]
    assert get_args(RoleName) == tuple(Role.values)
