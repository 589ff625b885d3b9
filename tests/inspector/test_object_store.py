"""The object store: files of exports and uploads are in a real S3 server, and all holds that holds in rows."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from io import StringIO
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings as current
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from inspector import pipeline
from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.erasing import Target, ask_to_erase
from inspector.exports.making import drop_expired, read_file
from inspector.exports.models import Export, Piece
from inspector.exports.services import stop_export
from inspector.intake import object_store, staging
from inspector.intake.models import Chunk, Delivery, Door, Job
from inspector.intake.object_store import StoreError, refuse_unusable, sweep
from inspector.intake.selectors import read_arrival
from inspector.intake.services import open_delivery, take_file
from inspector.intake.staging import Choices, look_at, stage_file
from inspector.keyring.encryption import SealError
from inspector.keyring.periods import set_sealing
from inspector.management.commands.doctor import check_store
from inspector.starting import RefusedStartError, spell_object_store
from inspector.threads.models import Message
from inspector.worker import sweep as sweep_all
from inspector.worker import tidy
from tests.each import for_each
from tests.s3 import Server, s3_server

from .api.test_server import find_port
from .conftest import Cast, resolve_all, take_in
from .exports.conftest import ask, make, read
from .intake.processes import make_environment, process, worker
from .intake.test_recovery import is_done, wait_for

LOG = b"".join(b'{"raw": "line %d", "conversation": "talk"}\n' % number for number in range(30))
PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    return uuid.uuid4().hex


def use(settings: Any, variables: dict[str, str]) -> None:
    """Let this process keep its files there; nowhere for none."""
    rest = {name: spelt for name, spelt in settings.STORAGES.items() if name != "objects"}
    spelt, takes_new, inherited = spell_object_store(*(variables.values() or ("", "", "")))
    settings.STORAGES = rest | spelt
    settings.OBJECT_STORE_TAKES_NEW, settings.OBJECT_STORE_INHERITED = takes_new, inherited


@pytest.fixture
def store(s3: Server, prefix: str, settings: Any) -> dict[str, str]:
    """The variables of this product, which keeps its files in the server."""
    variables = s3.spell(prefix)
    use(settings, variables)
    return variables


def list_keys(folder: str = "") -> list[str]:
    """What is in the store."""
    folders, files = storages["objects"].listdir(folder)
    within = (key for name in folders for key in list_keys(f"{folder}/{name}".lstrip("/")))
    return [*(f"{folder}/{name}".lstrip("/") for name in files), *within]


def list_objects() -> dict[str, bytes]:
    """The same with what each holds."""
    found: dict[str, bytes] = {}
    for key in list_keys():
        with storages["objects"].open(key) as file:
            found[key] = file.read()
    return found


def change_objects(data: bytes) -> None:
    for path in list_keys():
        storages["objects"].save(path, ContentFile(data))


def stage(cast: Cast, data: bytes = LOG) -> Delivery:
    given = {"membership": cast.auditor, "channel": cast.channel, "chunks": [data], "choices": Choices()}
    return stage_file(**given, file_name="a.log")[0]


def make_form() -> dict[str, object]:
    return {"logs": SimpleUploadedFile("a.log", LOG), "channel": "main", "has_prefixes": "on"}


def fill(cast: Cast) -> None:
    take_in(cast, LOG, is_examined=False)


@pytest.mark.django_db
@pytest.mark.parametrize("fold", [bytes, gzip.compress], ids=["", "gz"])
def test_a_staged_upload_is_in_the_store_until_it_is_framed(cast: Cast, store: object, fold: Any) -> None:
    file = fold(LOG)
    staged, other = stage(cast, file), stage(cast, b"hello\n")
    chunk = staged.chunks.get()
    with connection.cursor() as cursor:
        cursor.execute("SELECT data FROM intake_chunk WHERE id = %s", [chunk.pk])
        assert bytes(cursor.fetchone()[0]) == b""
    kept = list_objects()[chunk.object_key]
    assert kept == file == chunk.data
    assert (chunk.object_bytes, bytes(chunk.object_sha256)) == (len(kept), hashlib.sha256(kept).digest())
    assert look_at(delivery=staged).forecast.received == 30
    staging.load(delivery=staged)
    resolve_all(is_examined=False)
    staged.refresh_from_db()
    assert (staged.state, staged.stored) == ("framed", 30)
    assert not staged.chunks.exists()
    tidy()
    assert set(list_keys()) == {other.chunks.get().object_key}
    staging.discard(delivery=other)
    assert sweep() > 0
    assert list_keys() == []


@pytest.mark.django_db
def test_small_pieces_become_few_objects(cast: Cast, store: object) -> None:
    delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD)
    take_file(delivery=delivery, chunks=(b"x" * 65_536 for _ in range(40)))
    assert list(delivery.chunks.order_by("offset").values_list("offset", flat=True)) == [0, 2**20, 2 * 2**20]
    assert b"".join(read_arrival(delivery=delivery)) == b"x" * 65_536 * 40


@pytest.mark.django_db
def test_what_is_sealed_in_rows_is_sealed_in_the_store(
    cast: Cast, store: object, settings: Any, tmp_path: Path
) -> None:
    settings.KEYRING_KEY = "k" * 20 + "0123456789" * 2
    set_sealing(cast.workspace, cast.owner, is_sealed=True)
    cast.auditor.workspace.refresh_from_db()
    staged = stage(cast)
    (kept,) = list_objects().values()
    assert b"line 1" not in kept
    assert kept.startswith(hashlib.sha256(LOG).digest())
    assert b"".join(read_arrival(delivery=staged)) == LOG
    change_objects(kept[:-1] + bytes([kept[-1] ^ 1]))
    with pytest.raises(SealError, match="changed in the object store"):
        list(read_arrival(delivery=staged))


@pytest.mark.django_db
def test_the_file_of_a_broken_upload_stays_and_is_compared_when_it_is_shown(
    cast: Cast, auditor: Client, store: object
) -> None:
    cut = gzip.compress(LOG * 5)[:-9]
    delivery = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD, file_name="a.gz")
    take_file(delivery=delivery, chunks=[cut])
    resolve_all(is_examined=False)
    delivery.refresh_from_db()
    assert delivery.state == Delivery.State.BROKEN
    sweep()
    record = delivery.sightings.filter(outcome="quarantined", length=0).get().record_id
    address = reverse("pages:raw", args=["acme", record])
    assert b"".join(auditor.get(address)) == cut
    change_objects(b"another file")
    answer = auditor.get(address)
    assert (answer.status_code, b"changed in the object store" in answer.content) == (409, True)


@pytest.mark.django_db
def test_an_export_is_in_the_store_and_goes_with_its_end(cast: Cast, store: object) -> None:
    fill(cast)
    first, second = make(ask(cast)), make(ask(cast, form="csv"))
    lines = read(first).splitlines()
    assert [json.loads(line)["raw"] for line in lines] == [f"line {number}" for number in range(30)]
    assert hashlib.sha256(b"".join(read_file(second))).digest() == bytes(second.sha256)
    assert set(list_keys()) == set(Piece.objects.values_list("object_key", flat=True))
    assert not any(bytes(piece.data) for piece in Piece.objects.all())
    stop_export(export=first, membership=cast.owner)
    Export.objects.filter(pk=second.pk).update(expires_at=timezone.now())
    assert drop_expired() == 1
    assert sweep() > 0
    assert list_keys() == []


@pytest.mark.django_db
def test_an_erasure_leaves_no_object(cast: Cast, store: object) -> None:
    fill(cast)
    make(ask(cast))
    broken = open_delivery(workspace=cast.workspace, channel=cast.channel, door=Door.UPLOAD, file_name="a.gz")
    take_file(delivery=broken, chunks=[gzip.compress(LOG)[:-9]])
    resolve_all(is_examined=False)
    assert len(list_keys()) == 2
    for delivery in Delivery.objects.all():
        ask_to_erase(membership=cast.owner, target=Target(kind="delivery", subject=delivery.pk), reason="by law")
    resolve_all()
    tidy()
    assert list_keys() == []


@pytest.mark.django_db
def test_bytes_that_were_changed_are_given_to_nobody(cast: Cast, auditor: Client, store: object) -> None:
    fill(cast)
    export = make(ask(cast))
    change_objects(b"x" * export.size_bytes)
    answer = auditor.get(reverse("pages:export-file", args=["acme", export.pk]))
    assert (answer.status_code, b"changed in the object store" in answer.content) == (409, True)
    key = create_api_key(workspace=cast.workspace, name="e", scopes=[ApiKey.Scope.EXPORT, ApiKey.Scope.SECRETS])[1]
    told = Client().get(f"/api/v1/exports/{export.pk}/file", headers={"Authorization": f"Bearer {key}"})
    assert (told.status_code, "changed in the object store" in told.json()["detail"]) == (409, True)
    export.refresh_from_db()
    assert export.downloads == 0


@pytest.mark.django_db
def test_a_file_that_is_removed_while_somebody_asks_for_it_is_no_server_error(cast: Cast, auditor: Client) -> None:
    fill(cast)
    export = make(ask(cast))
    Piece.objects.all().delete()
    assert auditor.get(reverse("pages:export-file", args=["acme", export.pk])).status_code == 410
    key = create_api_key(workspace=cast.workspace, name="e", scopes=[ApiKey.Scope.EXPORT, ApiKey.Scope.SECRETS])[1]
    told = Client().get(f"/api/v1/exports/{export.pk}/file", headers={"Authorization": f"Bearer {key}"})
    assert (told.status_code, told.json()["detail"]) == (410, "the file was removed while it was being read")
    export.refresh_from_db()
    assert export.downloads == 0


@pytest.mark.django_db
def test_a_store_that_is_away_or_refuses_is_said_in_a_sentence_and_nothing_is_lost(
    cast: Cast, auditor: Client, s3: Server, prefix: str, settings: Any
) -> None:
    fill(cast)
    use(settings, s3.spell(prefix))
    export, staged = make(ask(cast)), stage(cast)
    staging.load(delivery=staged)
    before = Delivery.objects.count()
    refused = s3.spell(prefix) | {"OBJECT_STORE_SECRET": "wrong"}
    away = {**refused, "OBJECT_STORE": s3.spell(prefix)["OBJECT_STORE"].replace(s3.url, "http://127.0.0.1:1")}
    auditor.raise_request_exception = False
    for variables in (refused, away):
        use(settings, variables)
        answer = auditor.post(reverse("pages:upload", args=["acme"]), make_form())
        assert (answer.status_code, b"The object store cannot be used" in answer.content) == (503, True)
        # The script of the page shows the sentence beside the file.
        answer = auditor.post(reverse("pages:upload", args=["acme"]), make_form(), headers={"HX-Request": "true"})
        said = answer.content.decode()
        assert (answer.status_code, said.endswith("): try again later."), "<" in said) == (503, True, False)
        answer = auditor.get(reverse("pages:export-file", args=["acme", export.pk]))
        assert (answer.status_code, b"The object store cannot be used" in answer.content) == (503, True)
        pipeline.run_due(seconds=5, only=(Job.Kind.FRAME,))
        job = Job.objects.get(kind=Job.Kind.FRAME, subject=staged.pk)
        assert (job.state, job.attempts, "object store" in job.failure) == (Job.State.QUEUED, 0, True)
        Job.objects.update(due_at=timezone.now())
        assert sweep() == 0
        (said,) = check_store()
        assert said.startswith("The object store cannot be used just now (")
        assert said.endswith("Start it, or correct OBJECT_STORE and its key.")
        assert variables["OBJECT_STORE_KEY_ID"] not in said
    assert Delivery.objects.count() == before
    use(settings, s3.spell(prefix))
    Job.objects.update(due_at=timezone.now())
    resolve_all(is_examined=False)
    staged.refresh_from_db()
    assert (staged.state, staged.received) == ("framed", 30)
    assert len(read(export).splitlines()) == 30


@pytest.mark.django_db
def test_an_object_that_is_missing_is_a_dead_letter_that_can_be_tried_again(cast: Cast, store: object) -> None:
    staged = stage(cast)
    staging.load(delivery=staged)
    ((path, data),) = list_objects().items()
    storages["objects"].delete(path)
    for _ in range(3):
        pipeline.run_due(seconds=5, only=(Job.Kind.FRAME,))
        Job.objects.update(due_at=timezone.now())
    job = Job.objects.get(subject=staged.pk)
    assert (job.state, "has not what the database names" in job.failure) == (Job.State.DEAD, True)
    storages["objects"].save(path, ContentFile(data))
    Job.objects.update(state=Job.State.QUEUED, attempts=0)
    resolve_all(is_examined=False)
    staged.refresh_from_db()
    assert staged.stored == 30


@pytest.mark.django_db
def test_turning_it_on_and_off_leaves_what_is_there_readable(
    cast: Cast, s3: Server, prefix: str, settings: Any
) -> None:
    fill(cast)
    in_rows = make(ask(cast))
    use(settings, s3.spell(prefix))
    in_store = make(ask(cast))
    assert read(in_rows).splitlines()[0] == read(in_store).splitlines()[0]
    # What is in the store is read from there, and nothing new goes there.
    use(settings, s3.spell(prefix, only_read="true"))
    again, count = make(ask(cast)), len(list_keys())
    assert not Piece.objects.filter(export=again).exclude(object_key="").exists()
    assert len(read(again).splitlines()) == len(read(in_store).splitlines()) == 30
    assert list(check_store()) == []
    assert len(list_keys()) == count
    use(settings, {})
    assert len(read(in_rows).splitlines()) == 30
    with pytest.raises(StoreError, match="OBJECT_STORE names none"):
        read_file(in_store)
    (said,) = check_store()
    assert re.fullmatch(
        r"1 pieces of files \([\d,]+ bytes\) are in .* folder \S+: set OBJECT_STORE again as it was.", said
    )


@pytest.mark.django_db(transaction=True)
def test_a_backup_says_what_it_does_not_hold(cast: Cast, store: object, tmp_path: Path) -> None:
    fill(cast)
    export = make(ask(cast))
    call_command("backup", str(tmp_path / "backup"), stdout=(said := StringIO()))
    clause = (
        f"1 pieces of files ({export.size_bytes:,} bytes) are in the object store's folder {object_store.name_folder()}"
    )
    assert f"{clause}, and not in the backup: keep a copy of it too.\n" in said.getvalue()
    assert json.loads((tmp_path / "backup/manifest.json").read_text())["outside"] == clause


# A process that ends without a word once it has written its first object, before its transaction is committed.
DIE = """
import os, django
django.setup()
from inspector.intake import object_store
ask = object_store._ask
def ask_and_die(what):
    said = ask(what)
    os.kill(os.getpid(), 9)
object_store._ask = ask_and_die
{}
"""
STAGE = """
from inspector.accounts.models import Membership
from inspector.intake.staging import Choices, stage_file
member = Membership.objects.get(workspace__slug="acme", user__username="amir")
channel = member.workspace.channels.get()
stage_file(membership=member, channel=channel, chunks=[b"hello"], choices=Choices(), file_name="a")
"""
EXPORT = """
from inspector import pipeline
pipeline.run_due(seconds=60, only=("export",))
"""


@pytest.mark.django_db(transaction=True)
def test_a_kill_between_object_and_row_leaves_no_row_and_soon_no_object(
    cast: Cast, store: dict[str, str], tmp_path: Path
) -> None:
    fill(cast)
    export = ask(cast)
    for words in (STAGE, EXPORT):
        with process(tmp_path, "-c", DIE.format(words), **store) as child:
            assert child.wait(120) == -9, (tmp_path / "process.log").read_text()[-2000:]
    assert len(list_keys()) == 2
    assert not Chunk.objects.exists()
    assert not Piece.objects.exists()
    wait_for(lambda: sweep() > 0 and not list_keys(), 120, tmp_path / "process.log")
    # The export's next worker begins where the first began.
    wait_for(lambda: not Job.objects.filter(state=Job.State.RUNNING).exists() or sweep_all(), 120, tmp_path)
    Job.objects.update(due_at=timezone.now())
    assert len(read(make(export)).splitlines()) == 30


@pytest.mark.django_db(transaction=True)
def test_what_is_just_being_written_is_not_swept(cast: Cast, store: dict[str, str], tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    wait = f"import os, time\nwhile not os.path.exists({str(go_on)!r}): time.sleep(0.02)"
    words = DIE.format(STAGE).replace("os.kill(os.getpid(), 9)", f"exec({wait!r}); return said")
    with process(tmp_path, "-c", words, **store) as child:
        wait_for(lambda: len(list_keys()) == 1, 120, tmp_path / "process.log")
        assert sweep() == 0
        go_on.touch()
        assert child.wait(120) == 0, (tmp_path / "process.log").read_text()[-2000:]
    assert sweep() == 0
    assert b"".join(read_arrival(delivery=Delivery.objects.get())) == b"hello"


@pytest.mark.django_db
def test_a_restored_copy_reads_what_is_there_and_sweeps_only_its_own(
    cast: Cast, s3: Server, prefix: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(settings, s3.spell(prefix))
    staged, folder = stage(cast), object_store.name_folder()
    monkeypatch.setattr(object_store, "name_folder", lambda: "another")
    stage(cast, b"its own")
    assert b"".join(read_arrival(delivery=staged)) == LOG
    Chunk.objects.all().delete()
    sweep()
    assert list(list_objects().values()) == [LOG]
    # Until it is said that the other is no more.
    use(settings, s3.spell(prefix, inherits=folder))
    sweep()
    assert list_keys() == []


REFUSED = (
    ("s3://", "OBJECT_STORE is s3://bucket/prefix"),
    ("s3://key:secret@bucket", "OBJECT_STORE is s3://bucket/prefix"),
    ("https://bucket", "OBJECT_STORE is s3://bucket/prefix"),
    ("s3://bucket?endpoint_url", "OBJECT_STORE is s3://bucket/prefix"),
    ("nonsense", "OBJECT_STORE is s3://bucket/prefix"),
    ("s3://bucket?no_such_option=1", "Invalid setting 'no_such_option' for S3Storage"),
    ("no_such_package.Storage", "No module named 'no_such_package'"),
    ("django.core.files.storage.FileSystemStorage?no_such=1", "names no storage that can be used: TypeError"),
)


def start(address: str) -> None:
    spelt, takes_new, _ = spell_object_store(address, "", "")
    with override_settings(STORAGES={**current.STORAGES, **spelt}, OBJECT_STORE_TAKES_NEW=takes_new):
        refuse_unusable()


@for_each(REFUSED, name_of=itemgetter(0))
def test_what_names_no_storage_is_refused_in_one_sentence(case: tuple[str, str]) -> None:
    address, part = case
    with pytest.raises(RefusedStartError) as refused:
        start(address)
    assert part in str(refused.value)
    assert "secret@" not in str(refused.value)


def test_a_start_is_refused_with_that_sentence(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        cwd=PROJECT,
        env=make_environment(tmp_path, OBJECT_STORE="no_such_package.Storage"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr
    assert told.stderr.startswith("OBJECT_STORE names no storage that can be used: ")


@pytest.mark.django_db(transaction=True)
@pytest.mark.long(seconds=70, waits=True)
def test_hosts_that_share_a_database_and_a_store_give_each_others_files(
    cast: Cast, store: dict[str, str], tmp_path: Path
) -> None:
    """One host takes an upload, another imports it and makes an export, a third gives it; none sees another's disk."""
    browser = Client()
    browser.force_login(cast.auditor.user, backend="django.contrib.auth.backends.ModelBackend")
    session = requests.Session()
    session.trust_env = False
    session.cookies.set(current.SESSION_COOKIE_NAME, browser.cookies[current.SESSION_COOKIE_NAME].value)
    hosts = [tmp_path / name for name in ("first", "second", "third")]
    for host in hosts:
        host.mkdir(mode=0o700)
    shared = store | {"SECRET_KEY": current.SECRET_KEY}
    ports = [find_port(), find_port()]
    sites = [f"http://127.0.0.1:{port}" for port in ports]
    server = ["-m", "gunicorn", "inspector.wsgi:application", "--worker-class=gthread", "--workers=1", "--threads=2"]
    server += ["--config=python:inspector.server", "--no-control-socket"]

    def send(site: str, path: str, **given: Any) -> requests.Response:
        page = session.get(site + path, timeout=120)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        assert token, page.text[:2000]
        data = given.pop("data", {}) | {"csrfmiddlewaretoken": token[1]}
        return session.post(site + given.pop("to", path), data, timeout=120, **given)

    with (
        process(hosts[0], *server, f"--bind=127.0.0.1:{ports[0]}", **shared),
        process(hosts[1], *server, f"--bind=127.0.0.1:{ports[1]}", **shared),
        worker(hosts[2], **shared),
    ):
        for site, host in zip(sites, hosts, strict=False):
            wait_for(lambda site=site: is_ready(site), 120, host / "process.log")  # type: ignore[misc]
        staged = send(sites[0], "/w/acme/upload/", files={"logs": ("a.log", LOG)}, data={"channel": "main"})
        assert staged.status_code == 200, staged.text[:2000]
        delivery = Delivery.objects.get()
        assert {path.rpartition("/")[0] for path in list_keys()} == {Chunk.objects.get().object_key.rpartition("/")[0]}
        path = f"/w/acme/upload/{delivery.pk}/"
        loaded = send(sites[1], path, data={"action": "load", "channel": "main", "speakers": "log"})
        assert loaded.status_code == 200, loaded.text[:2000]
        wait_for(lambda: Message.objects.count() == 30 and is_done(), 120, hosts[2] / "process.log")
        asked = send(sites[0], "/w/acme/exports/new/", data={"q": "", "form": "jsonl"})
        assert asked.status_code == 200
        export = Export.objects.get()
        wait_for(lambda: Export.objects.get().state == Export.State.DONE, 120, hosts[2] / "process.log")
        export.refresh_from_db()
        given = session.get(f"{sites[1]}/w/acme/exports/{export.pk}/file", timeout=120)
        assert hashlib.sha256(given.content).digest() == bytes(export.sha256)
        assert len(given.content.splitlines()) == 30
        stopped = send(sites[1], f"/w/acme/exports/{export.pk}/", to=f"/w/acme/exports/{export.pk}/stop/")
        assert stopped.status_code == 200
        # The tidying of the worker, once a minute.
        wait_for(lambda: not list_keys(), 240, hosts[2] / "process.log")


def is_ready(site: str) -> bool:
    try:
        return requests.get(f"{site}/readyz", timeout=5).status_code == 200
    except requests.RequestException:
        return False
