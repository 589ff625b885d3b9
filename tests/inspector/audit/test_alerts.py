"""New findings are told to a webhook: once, signed, tried again, never into a private network."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.conf import settings as django_settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.test import Client
from django.utils import timezone

from inspector.accounts.models import Membership
from inspector.audit import alerts, calls
from inspector.audit.alerts import ask_for_test, renew_secret, set_webhook, switch_webhook
from inspector.audit.findings.services import ask_to_examine_all
from inspector.audit.models import Alert, Finding, Webhook
from inspector.intake.models import Job
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all

DOCS = Path(__file__).parents[3] / "docs" / "alerts.md"
# It answers something that was never received.
LOG = b'{"from":"a","to":["b"],"p":"ACK","mid":"m2","pid":"gone","cid":"c1","ts":1763700000,"body":{"t":"x"}}'
SignIn = Callable[[Membership], Client]


class Receiver:
    """A server on this machine that keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.status, self.said, self.extra = 204, b"", {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.taken.append((dict(self.headers), body))
                self.send_response(outer.status)
                for name, value in outer.extra.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(outer.said)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?a=b"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.ALERT_PRIVATE_ADDRESSES = True
    made = Receiver()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def set_up(cast: Cast, url: str, severity: int = 1, rules: tuple[str, ...] = ()) -> tuple[Webhook, str]:
    webhook, secret = set_webhook(
        membership=cast.owner, address=url, severity=severity, rules=rules, site="https://pages.example/"
    )
    assert secret
    return webhook, secret


def load_verifier() -> Callable[..., bool]:
    code = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)
    return names["is_from_inspector"]


def test_each_new_finding_is_told_once_and_signed(cast: Cast, receiver: Receiver) -> None:
    _, secret = set_up(cast, receiver.url)
    deliver(cast, LOG)
    resolve_all()
    found = set(Finding.objects.filter(holds=True, severity__gte=1).values_list("pk", flat=True))
    assert found
    told = [json.loads(body) for _, body in receiver.taken]
    assert sorted(each["finding"]["id"] for each in told) == sorted(str(pk) for pk in found)
    # Examined again, and delivered again: nothing is told twice.
    ask_to_examine_all(workspace_id=cast.workspace.pk)
    resolve_all()
    Job.objects.filter(kind=Job.Kind.ALERT).update(state=Job.State.QUEUED)
    resolve_all()
    assert len(receiver.taken) == len(told)
    headers, body = receiver.taken[0]
    verify = load_verifier()
    assert verify(secret, headers, body)
    assert not verify(secret, headers, body + b" ")
    assert not verify("whsec_other", headers, body)
    assert not verify(secret, {**headers, "Inspector-Timestamp": "1"}, body)
    # Links and ids, and nothing that a message says.
    finding = told[0]["finding"]
    assert finding["url"] == f"https://pages.example/w/acme/findings/{finding['id']}/"
    assert "gone" not in body.decode()
    assert set(Alert.objects.values_list("state", flat=True)) == {"delivered"}


def test_what_is_not_wanted_is_not_told(cast: Cast, receiver: Receiver) -> None:
    set_up(cast, receiver.url, rules=("circle",))
    deliver(cast, LOG)
    resolve_all()
    assert Finding.objects.exists()
    assert not Alert.objects.exists()


def test_a_finding_that_ended_before_it_was_sent_is_dropped(cast: Cast, receiver: Receiver) -> None:
    set_up(cast, receiver.url)
    alert = ask_for_finding(cast)
    Finding.objects.update(holds=False, ended_at=timezone.now())
    assert alerts.try_alert(alert_id=alert.pk) is None
    alert.refresh_from_db()
    assert (alert.state, alert.answers[0]["said"]) == ("dropped", "it no longer holds")
    assert receiver.taken == []


def ask_for_finding(cast: Cast) -> Alert:
    """An alert that waits, of a finding that holds."""
    Webhook.objects.update(paused_until=timezone.now() + timedelta(hours=1))
    deliver(cast, LOG)
    from inspector import pipeline

    for _ in range(20):
        Job.objects.exclude(kind=Job.Kind.ALERT).filter(state=Job.State.QUEUED).update(due_at=timezone.now())
        if not pipeline.run_due(seconds=30, only=tuple(set(Job.Kind.values) - {Job.Kind.ALERT})):
            break
    Webhook.objects.update(paused_until=None)
    alert = Alert.objects.filter(state=Alert.State.WAITING).order_by("pk").first()
    assert alert is not None
    return alert


def test_a_failure_pauses_all_and_is_given_up_in_the_end(cast: Cast, receiver: Receiver) -> None:
    webhook, _ = set_up(cast, receiver.url)
    alert = ask_for_finding(cast)
    receiver.status, receiver.said = 500, b"<b>no</b>" + b"x" * 5000
    pauses = []
    for _ in range(alerts.MAX_TRIES):
        Webhook.objects.update(paused_until=None)
        pauses.append(alerts.try_alert(alert_id=alert.pk))
    assert pauses == [5, 30, 120, 600, 1800, 3600, 3600, None]
    alert.refresh_from_db()
    webhook.refresh_from_db()
    assert (alert.state, len(alert.answers), webhook.failures) == ("failed", 8, 8)
    assert all(each["status"] == 500 and len(each["said"]) <= 300 for each in alert.answers)
    # While it is paused nothing is even tried.
    other = ask_for_test(membership=cast.owner)
    Webhook.objects.update(paused_until=timezone.now() + timedelta(minutes=5))
    before = len(receiver.taken)
    assert 200 < (alerts.try_alert(alert_id=other.pk) or 0) <= 300
    assert len(receiver.taken) == before


def test_what_fails_for_long_is_switched_off_in_sight(cast: Cast, receiver: Receiver, sign_in: SignIn) -> None:
    set_up(cast, receiver.url)
    receiver.status = 503
    alert = ask_for_test(membership=cast.owner)
    long_ago = timezone.now() - alerts.MAX_FAILURE_LENGTH - timedelta(minutes=1)
    Webhook.objects.update(failures=alerts.MAX_FAILURES - 1, failing_since=long_ago)
    assert alerts.try_alert(alert_id=alert.pk) is None
    page = sign_in(cast.owner).get("/w/acme/settings/alerts/").content.decode()
    assert "Alerts were switched off" in page
    deed = Deed.objects.get(code="alerts.switched-off")
    assert (deed.actor_kind, deed.object_label) == ("product", "127.0.0.1")
    assert deed.details["because"].startswith(f"it failed {alerts.MAX_FAILURES} times")
    with pytest.raises(ValidationError, match="switched off"):
        ask_for_test(membership=cast.owner)
    deliver(cast, LOG)
    resolve_all()
    assert Alert.objects.filter(finding__isnull=False).count() == 0
    switch_webhook(membership=cast.owner, is_on=True)
    receiver.status = 200
    ask_for_test(membership=cast.owner)
    resolve_all()
    assert Alert.objects.filter(state="delivered").count() == 1


def test_a_redirect_is_not_followed(cast: Cast, receiver: Receiver) -> None:
    set_up(cast, receiver.url)
    receiver.status, receiver.extra = 307, {"Location": receiver.url + "&again"}
    alert = ask_for_test(membership=cast.owner)
    alerts.try_alert(alert_id=alert.pk)
    alert.refresh_from_db()
    assert len(receiver.taken) == 1
    assert alert.answers[0] | {"at": ""} == {"at": "", "status": 307, "said": "a redirect, which is not followed"}


def test_a_slow_answer_is_cut_off(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ALERT_PRIVATE_ADDRESSES = True
    monkeypatch.setattr(calls, "MAX_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(calls.CallError):
        calls.post(address=f"http://127.0.0.1:{silent.getsockname()[1]}/", body=b"{}", headers={})


PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::"),
    *("192.0.0.192", "fec0::1", "3fff::1", "64:ff9b:1::1", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"),
]


def test_a_certificate_that_nobody_vouches_for_is_refused(settings: Any, tmp_path: Path) -> None:
    settings.ALERT_PRIVATE_ADDRESSES = True
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    since, until = (datetime(year, 1, 1, tzinfo=UTC) for year in (2026, 2099))
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, since, until)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    pem = tmp_path / "own.pem"
    pem.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + made.sign(key, SHA256()).public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    said: list[bytes] = []

    def serve(server: socket.socket) -> None:
        line, _ = server.accept()
        with line, suppress(OSError), context.wrap_socket(line, server_side=True) as safe:
            said.append(safe.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        with pytest.raises(calls.CallError, match="certificate"):
            calls.post(address=f"https://localhost:{server.getsockname()[1]}/", body=b"secret", headers={})
        thread.join()
    assert b"".join(said) == b""


@pytest.mark.parametrize("address", PRIVATE)
def test_no_private_network_is_reached(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (known, 443)) for known in ("93.184.215.14", address)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it connected"))
    with pytest.raises(calls.CallError, match="private network"):
        calls.post(address="https://hook.example/", body=b"{}", headers={})


def test_the_connection_goes_to_what_was_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return [(0, 0, 0, "", ("93.184.215.14" if len(asked) == 1 else "127.0.0.1", 443))]

    def connect(where: tuple[str, int], *_: Any, **__: Any) -> Any:
        raise OSError(f"would connect to {where[0]}")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(calls.CallError, match=r"93\.184\.215\.14"):
        calls.post(address="https://hook.example/", body=b"{}", headers={})
    assert asked == ["hook.example"]


def test_another_address_of_the_host_is_tried_where_one_is_out_of_reach(
    cast: Cast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a host of two protocols, one of which does not get out from here."""
    tried: list[str] = []

    def look_up(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (known, 0)) for known in ("2001:db8::1", "127.0.0.2", "127.0.0.1", "127.0.0.3")]

    def reach(where: tuple[str, int], timeout: float) -> socket.socket:
        tried.append(where[0])
        if where[0] != "127.0.0.1":
            raise OSError(f"no way to {where[0]}")
        # Python's own way would look the address up once more, which is replaced here.
        made = socket.socket()
        made.settimeout(timeout)
        made.connect(("127.0.0.1", receiver.server.server_port))
        return made

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", reach)
    assert calls.post(address="http://hook.example/", body=b"{}", headers={}).status == 204
    assert tried == ["2001:db8::1", "127.0.0.2", "127.0.0.1"]
    assert receiver.taken[0][0]["Host"] == "hook.example"


@pytest.mark.parametrize(
    "address",
    [
        "http://hook.example/",
        "ftp://a/",
        "https://u:p@a/",
        "https://a/#x",
        "https://",
        "x",
        "https://a:x/",
        "https://a b/",
    ],
)
def test_an_address_that_cannot_be_one_is_refused(cast: Cast, address: str) -> None:
    with pytest.raises(ValidationError):
        set_webhook(membership=cast.owner, address=address, severity=4, rules=(), site="https://x/")
    assert not Webhook.objects.exists()


def test_a_secret_of_another_key_signs_nothing(cast: Cast, receiver: Receiver, settings: Any) -> None:
    set_up(cast, receiver.url)
    alert = ask_for_test(membership=cast.owner)
    settings.SECRET_KEY = "another" + django_settings.SECRET_KEY
    alerts.try_alert(alert_id=alert.pk)
    alert.refresh_from_db()
    assert "make a new secret" in alert.answers[0]["said"]
    assert receiver.taken == []


def test_only_owners_set_it_and_a_secret_is_shown_once(cast: Cast, sign_in: SignIn) -> None:
    url, form = "/w/acme/settings/alerts/", {"address": "https://hook.example/token-in-path", "severity": "4"}
    assert sign_in(cast.viewer).get(url).status_code == 403
    for who in (cast.auditor, cast.viewer):
        assert sign_in(who).post(url, form).status_code == 403
        with pytest.raises(PermissionDenied):
            renew_secret(membership=who)
    owner = sign_in(cast.owner)
    shown = owner.post(url, form, follow=True)
    secret = shown.context["secret"]
    assert secret in shown.content.decode()
    assert secret not in owner.get(url).content.decode()
    # The path may be a secret of its own.
    auditor_sees = sign_in(cast.auditor).get(url).content.decode()
    assert "hook.example" in auditor_sees
    assert "token-in-path" not in auditor_sees
    assert owner.post(url + "secret/", follow=True).context["secret"] != secret
    assert owner.post(url, {**form, "severity": "3"}).status_code == 302
    deeds = Deed.objects.filter(code__startswith="alerts.").order_by("sequence")
    assert [deed.code for deed in deeds] == ["alerts.set", "alerts.secret-made", "alerts.set"]
    assert not any("token-in-path" in f"{deed.told}{deed.details}" or secret in str(deed.details) for deed in deeds)
