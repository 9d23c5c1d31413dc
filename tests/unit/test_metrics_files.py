"""The metrics page in OpenMetrics, and what alert rules and the dashboard ask of it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.utils import timezone
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from monitoring.probes import metrics
from monitoring.probes.figures import NUMBERED, Figures
from orchestrator.models import Status
from tests.services.deployment import ROOT

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(
        (ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text()
    )["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads(
    (ROOT / "deploy" / "grafana" / "procession.json").read_text()
)
METRIC = re.compile(r"\bprocession_\w+")
MATCHERS = re.compile(r"\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
BY = re.compile(r"\bby \(([^)]*)\)")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?([a-z]\w*)\s*\}\}")
QUEUE = {"due": 2, "oldest_seconds": 3.0, "bells": 1}


class Known:
    """Figures that are there at once."""

    def ask(self) -> "Known":
        return self

    def answer(self) -> Figures:
        return Figures(
            numbered=dict.fromkeys(NUMBERED, 7),
            live={("order-listing", "failed"): 1},
            open_incidents=1,
            step_seconds=[0.1, 0.2],
            event_seconds=[0.1],
            queues={"default": QUEUE},
            leases={"default": 1},
            workers={"default": 2},
            swept_at=timezone.now(),
            untaken_notices=0,
        )


@pytest.fixture
def families(monkeypatch: pytest.MonkeyPatch) -> list[Metric]:
    """Read the page, with a value of each metric, as a strict parser of OpenMetrics does."""
    parts = dict.fromkeys(("database", "redis", "workers"), True)
    monkeypatch.setattr(metrics, "_figures", Known())
    monkeypatch.setattr(metrics, "readiness", lambda: parts)
    text, content_type = metrics.exposition("application/openmetrics-text")
    assert content_type.startswith("application/openmetrics-text; version=")
    return list(text_string_to_metric_families(text.decode()))  # type: ignore[no-untyped-call]


@pytest.fixture
def labels(families: list[Metric]) -> dict[str, set[str]]:
    """Return the labels of each metric, by the name that rules ask for."""
    return {
        sample.name: set(sample.labels) for one in families for sample in one.samples
    }


def asked() -> Iterator[tuple[str, str]]:
    """Yield each expression of rules and dashboard, with the text that its answer is shown by."""
    for rule in RULES:
        yield rule["expr"], str(rule["annotations"])
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    for note in DASHBOARD["annotations"]["list"]:
        yield note["expr"], note["titleFormat"]
    for variable in queries():
        name = variable["name"]
        yield f"by ({name}) ({variable['query']['query']})", f"{{{{{name}}}}}"


def queries() -> list[dict[str, Any]]:
    return [one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]


def test_the_page_is_openmetrics_in_which_no_two_names_clash(
    families: list[Metric],
) -> None:
    names = [one.name for one in families]

    assert len(set(names)) == len(names)
    assert all(one.samples and one.documentation for one in families)


def test_a_thing_has_one_label_wherever_it_is_named(
    labels: dict[str, set[str]],
) -> None:
    of_queues = {name for name, of in labels.items() if of == {"queue"}}

    assert of_queues == {
        f"procession_{name}"
        for name in ("due_work", "due_age_seconds", "bells", "leases", "workers")
    }
    assert labels["procession_live_processes"] == {"definition", "status"}
    assert set().union(*labels.values()) == {
        *("definition", "status", "queue", "quantile", "part", "version")
    }


def test_rules_and_dashboard_ask_for_metrics_and_labels_that_there_are(
    labels: dict[str, set[str]],
) -> None:
    for expression, text in asked():
        names = METRIC.findall(expression)
        assert names, expression
        assert set(names) <= set(labels), expression
        common = set.intersection(*(labels[name] for name in names))
        grouped = {
            one.strip() for by in BY.findall(expression) for one in by.split(",")
        }
        matched = MATCHER.findall(" ".join(MATCHERS.findall(expression)))
        assert grouped | {name for name, _ in matched} <= common, expression
        assert set(SHOWN.findall(text)) <= grouped, text
        for name, value in matched:
            known = set(Status.values) if name == "status" else {f"${name}"}
            assert value in known, expression


def test_every_metric_is_shown_or_has_an_alert(labels: dict[str, set[str]]) -> None:
    used = {name for expression, _ in asked() for name in METRIC.findall(expression)}

    assert used == set(labels)


def test_an_alert_says_what_is_wrong_and_what_to_do() -> None:
    names = [rule["alert"] for rule in RULES]

    assert len(set(names)) == len(names)
    for rule in RULES:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "remedy"}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert re.fullmatch(r"\d+m", rule["for"])


def test_the_dashboard_asks_the_chosen_source_and_no_panel_lies_on_another() -> None:
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    taken = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y)
            for x in range(place["w"])
            for y in range(place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
        for one in (panel, *panel["targets"]):
            assert one["datasource"]["uid"] == "${datasource}"
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    text = json.dumps(DASHBOARD).replace("$__", "")
    assert set(re.findall(r"\$\{?([a-z]\w*)", text)) == variables
