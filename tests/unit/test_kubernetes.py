"""The manifests for Kubernetes: fields that its API knows, and names that fit each other and the project."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.core.management import get_commands
from django.urls import resolve

from orchestrator.configuration.variables import misspelling_lines, variable_texts
from tests.services import deployment
from tests.services.cases import cases
from tests.services.deployment import ROOT

FILES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
OBJECTS: list[dict[str, Any]] = [
    one for file in FILES for one in yaml.safe_load_all(file.read_text())
]
API: dict[str, dict[str, str]] = yaml.safe_load(
    (ROOT / "tests" / "data" / "kubernetes.yaml").read_text()
)
SIMPLE: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (int,),
    "flag": (bool,),
    "quantity": (str, int),
    "port": (str, int),
}


def mistakes(value: Any, kind: str, place: str) -> Iterator[str]:
    """Yield what the API would refuse in a value of a kind."""
    if kind == "any":
        return
    if kind in SIMPLE:
        if not isinstance(value, SIMPLE[kind]) or (kind != "flag" and value is True):
            yield f"{place}: {value!r} is no {kind}"
    elif kind[0] in "[{":
        if isinstance(value, list) and kind[0] == "[":
            value = dict(enumerate(value))
        elif not isinstance(value, dict) or kind[0] == "[":
            yield f"{place}: {value!r} is no {kind}"
            return
        for key, one in value.items():
            yield from mistakes(one, kind[1:-1], f"{place}.{key}")
    else:
        yield from field_mistakes(value, kind, place)


def field_mistakes(value: Any, kind: str, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: {value!r} is no {kind}"
        return
    fields = {name.rstrip("!"): of for name, of in API[kind].items()}
    for name in API[kind]:
        if name.endswith("!") and name[:-1] not in value:
            yield f"{place}: {name[:-1]} is missing"
    for name, one in value.items():
        if name not in fields:
            yield f"{place}: {name} is unknown"
        else:
            yield from mistakes(one, fields[name], f"{place}.{name}")


def one(kind: str, name: str = "") -> dict[str, Any]:
    [found] = (
        found
        for found in OBJECTS
        if found["kind"] == kind and name in ("", found["metadata"]["name"])
    )
    return found


def pods() -> dict[str, dict[str, Any]]:
    """Return the templates of all pods, by what makes them."""
    found = {}
    for made in OBJECTS:
        spec = made.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found[made["metadata"]["name"]] = spec["template"]
    return found


def containers() -> list[dict[str, Any]]:
    return [
        container
        for pod in pods().values()
        for kind in ("initContainers", "containers")
        for container in pod["spec"].get(kind, [])
    ]


def test_the_api_knows_every_field_and_misses_none() -> None:
    for made in OBJECTS:
        kind = API["kinds"].get(f"{made['apiVersion']} {made['kind']}")
        assert kind, f"{made['apiVersion']} has no {made['kind']}"
        assert list(mistakes(made, kind, made["metadata"]["name"])) == []


@cases(
    "change, refused",
    ({"replica": 2}, "web: replica is unknown"),
    ({"replicas": "2"}, "web.replicas: '2' is no number"),
    ({"template": {"spec": {"containers": []}}}, "web.template: metadata is missing"),
)
def test_a_mistake_in_a_manifest_would_be_seen(
    change: dict[str, Any], refused: str
) -> None:
    spec = {**one("Deployment", "procession-web")["spec"], **change}

    assert list(mistakes(spec, "DeploymentSpec", "web")) == [refused]


def test_what_selects_pods_selects_those_of_its_own_name() -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in pods().items()}
    for made in OBJECTS:
        if made["kind"] in ("Deployment", "PodDisruptionBudget"):
            selected = made["spec"]["selector"]["matchLabels"]
        elif made["kind"] == "Service":
            selected = made["spec"]["selector"]
        else:
            continue
        name = made["metadata"]["name"].replace("procession", "procession-web", 1)
        own = made["metadata"]["name"] if made["metadata"]["name"] in labels else name
        assert [name for name, of in labels.items() if of == selected] == [own]


def test_ports_are_known_by_their_names() -> None:
    [web] = one("Deployment", "procession-web")["spec"]["template"]["spec"][
        "containers"
    ]
    [port] = one("Service")["spec"]["ports"]
    [rule] = one("Ingress")["spec"]["rules"]
    [path] = rule["http"]["paths"]

    [known] = web["ports"]
    assert web["command"][-1].endswith(f":{known['containerPort']}")
    assert port["targetPort"] == known["name"]
    backend = path["backend"]["service"]
    assert backend["name"] == one("Service")["metadata"]["name"]
    assert backend["port"] == {"name": port["name"]}


@cases("name", "livenessProbe", "readinessProbe", "startupProbe")
def test_a_probe_asks_what_the_site_answers(name: str) -> None:
    [web] = one("Deployment", "procession-web")["spec"]["template"]["spec"][
        "containers"
    ]
    asked = web[name]["httpGet"]
    host = one("ConfigMap")["data"]["PROCESSION_ALLOWED_HOSTS"]

    wanted = "readyz" if name == "readinessProbe" else "livez"
    assert resolve(urlsplit(asked["path"]).path).url_name == wanted
    assert asked["port"] == web["ports"][0]["name"]
    assert asked["httpHeaders"] == [{"name": "Host", "value": host}]


def test_all_run_one_image_with_the_same_variables_and_no_more_rights_than_in_compose() -> (
    None
):
    assert len({container["image"] for container in containers()}) == 1
    for container in containers():
        assert container["envFrom"] == containers()[0]["envFrom"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["allowPrivilegeEscalation"] is False
    [user] = re.findall(r"^USER (\d+):", deployment.CONTAINERFILE, re.MULTILINE)
    for pod in pods().values():
        assert pod["spec"]["securityContext"]["runAsUser"] == int(user)
        named = {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in pod["spec"]["containers"]:
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == named


def test_the_settings_know_every_variable_and_can_be_read() -> None:
    data = one("ConfigMap")["data"]
    text = (ROOT / "deploy" / "kubernetes" / "procession.yaml").read_text()
    secret = dict.fromkeys(re.findall(r"--from-literal=(\w+)=", text), "a value")

    for name in {**data, **secret}:
        assert len(variable_texts({name: "a value"})) == 1, name
    assert list(misspelling_lines({**data, **secret})) == []
    source = one("ConfigMap")["metadata"]["name"]
    assert {"secretRef": {"name": source}} in containers()[0]["envFrom"]


def test_every_command_is_one_of_the_project() -> None:
    for container in containers():
        words = container["command"]
        served = words[1:3] == ["-m", "orchestrator.serving.web"]
        assert served or (words[1] == "manage.py" and words[2] in get_commands())


def test_whoever_is_asked_to_end_has_the_time_for_it() -> None:
    """Workers end within 5 s; open requests within 2 s, after the pause before the end."""
    work = pods()["procession-work-default"]["spec"]
    web = pods()["procession-web"]["spec"]
    [pause] = (
        one["lifecycle"]["preStop"]["exec"]["command"] for one in web["containers"]
    )

    assert work["terminationGracePeriodSeconds"] > 2 * 5
    assert web["terminationGracePeriodSeconds"] > int(pause[1]) + 2 * 2


def test_workers_are_scaled_by_the_work_that_waits_on_their_queue() -> None:
    scaler = one("HorizontalPodAutoscaler")["spec"]
    target = one("Deployment", scaler["scaleTargetRef"]["name"])["spec"]
    [work] = target["template"]["spec"]["containers"]
    [metric] = (one["external"]["metric"] for one in scaler["metrics"])

    assert "replicas" not in target  # each new version would take it back
    assert scaler["minReplicas"] <= scaler["maxReplicas"]
    assert metric["name"] == "procession_due_work"
    queue = metric["selector"]["matchLabels"]["queue"]
    assert work["command"][-2:] == ["--queue", queue]
