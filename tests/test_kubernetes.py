"""deploy/kubernetes as `kubectl kustomize` renders it: by Kubernetes' own schemas, and by what the containers are."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.each import for_each
from tests.test_compose import PROJECT, SERVICES, read_setting_names

BASE = PROJECT / "deploy" / "kubernetes"
KUBECTL = shutil.which("kubectl")
PROCESSES = ("web", "posting", "events", "worker", "beat", "migrate")
# What an operator gives by secrets.
SECRETS = {"DATABASE_URL", "SECRET_KEY", "INSPECTOR_KEYRING_KEY"}


@pytest.fixture(scope="module")
def rendered() -> list[dict[str, Any]]:
    """Every object, as it would be applied."""
    if KUBECTL is None:
        pytest.skip("kubectl, which renders deploy/kubernetes, is not installed")
    known = subprocess.run([KUBECTL, "kustomize", "--help"], capture_output=True, text=True, check=True).stdout
    if "load-restrictor" not in known:
        pytest.skip("this kubectl is older than 1.21 and cannot render deploy/kubernetes")
    done = subprocess.run([KUBECTL, "kustomize", BASE], capture_output=True, text=True, check=True)
    assert not done.stderr
    return list(yaml.safe_load_all(done.stdout))


def find(rendered: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    [found] = [each for each in rendered if each["kind"] == kind and each["metadata"]["name"].startswith(name)]
    return found


def list_pods(rendered: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in rendered
        if each["kind"] in ("Deployment", "Job")
    }


def test_each_object_is_one_that_kubernetes_takes(rendered: list[dict[str, Any]]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="`make kube-check` brings the schemas")
    for each in rendered:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)
    assert {each["metadata"]["namespace"] for each in rendered} == {"inspector"}


def test_the_processes_and_their_commands_are_those_of_the_containers(rendered: list[dict[str, Any]]) -> None:
    pods = list_pods(rendered)
    assert set(pods) == {*PROCESSES, "proxy", "valkey"}
    for name in PROCESSES:
        assert pods[name]["containers"][0].get("args") == SERVICES[name].get("command")
    assert pods["valkey"]["containers"][0]["command"] == SERVICES["valkey"]["command"]
    images = {name: pod["containers"][0]["image"] for name, pod in pods.items()}
    assert images == {name: re.sub(r"\$\{\w+:-(.+)}", r"\1", SERVICES[name]["image"]) for name in pods}
    # Whoever serves or works waits for the tables; the job makes them, and alone knows the role that owns them.
    waits = {name: [each["command"][2] for each in pod.get("initContainers", ())] for name, pod in pods.items()}
    assert {name for name, commands in waits.items() if "migrate --check" in " ".join(commands)} == {*PROCESSES} - {
        "migrate"
    }
    owner = {name for name, pod in pods.items() if "DATABASE_OWNER_URL" in str(pod)}
    assert owner == {"migrate"}


def test_settings_are_the_products_and_no_secret_is_written_down(rendered: list[dict[str, Any]]) -> None:
    settings = find(rendered, "ConfigMap", "settings-")["data"]
    assert set(settings) <= read_setting_names() - SECRETS
    sources = {str(pod["containers"][0]["envFrom"]) for name, pod in list_pods(rendered).items() if name in PROCESSES}
    assert len(sources) == 1
    assert not [each for each in rendered if each["kind"] == "Secret"]
    guide = (PROJECT / "docs" / "operations.md").read_text()
    assert all(f"--from-literal={name}=" in guide for name in {*SECRETS, "DATABASE_OWNER_URL"})


@for_each([*PROCESSES, "proxy", "valkey"], of=["name"])
def test_no_pod_is_root_writes_its_own_code_or_takes_all_memory(name: str, rendered: list[dict[str, Any]]) -> None:
    pod = list_pods(rendered)[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    if name != "migrate":
        assert "livenessProbe" in pod["containers"][0]


def test_only_the_proxy_is_reached_from_outside(rendered: list[dict[str, Any]]) -> None:
    rules = {each["metadata"]["name"]: each["spec"] for each in rendered if each["kind"] == "NetworkPolicy"}
    assert rules.pop("nobody") == {"podSelector": {}, "policyTypes": ["Ingress"]}
    from_anywhere = [name for name, rule in rules.items() if any("from" not in way for way in rule["ingress"])]
    assert from_anywhere == ["proxy"]
    assert {each["spec"].get("type", "ClusterIP") for each in rendered if each["kind"] == "Service"} == {"ClusterIP"}


def test_what_grows_does_so_by_a_measure_that_is_there(rendered: list[dict[str, Any]]) -> None:
    pods = list_pods(rendered)
    for each in (each for each in rendered if each["kind"] == "HorizontalPodAutoscaler"):
        assert each["spec"]["scaleTargetRef"]["name"] in pods
        # Its replicas are the autoscaler's: applying the files again does not set them back.
        assert "replicas" not in find(rendered, "Deployment", each["metadata"]["name"])["spec"]
    [metric] = find(rendered, "HorizontalPodAutoscaler", "worker")["spec"]["metrics"]
    assert metric["external"]["metric"]["name"] in (PROJECT / "deploy" / "alerts.yml").read_text()


def test_a_proxys_start_writes_the_clusters_names(rendered: list[dict[str, Any]], tmp_path: Path) -> None:
    [script] = list_pods(rendered)["proxy"]["containers"][0]["args"]
    configuration = find(rendered, "ConfigMap", "proxy-")["data"]["nginx.conf"]
    (tmp_path / "nginx.conf").write_text(configuration)
    (tmp_path / "resolv.conf").write_text("search here.svc.cluster.local svc.cluster.local\nnameserver 10.0.0.10\n")
    for named, written in (
        ("/tmp/", f"{tmp_path}/made-"),
        ("/etc/resolv.conf", tmp_path / "resolv.conf"),
        ("/etc/inspector/nginx.conf", tmp_path / "nginx.conf"),
        ("exec nginx", "exec echo nginx"),
    ):
        script = script.replace(named, str(written))
    subprocess.run(["sh", "-euc", script], capture_output=True, check=True)
    assert (tmp_path / "made-resolver.conf").read_text() == "resolver 10.0.0.10 valid=10s;\n"
    made = (tmp_path / "made-nginx.conf").read_text()
    servers = re.findall(r"^\s*server (\S+):8000 resolve", made, re.MULTILINE)
    assert servers == [f"{name}.here.svc.cluster.local" for name in ("web", "posting", "events")]
    # Each name is a service without an address of its own: the proxy hears of every pod.
    assert all(find(rendered, "Service", name)["spec"]["clusterIP"] == "None" for name in ("web", "posting", "events"))
