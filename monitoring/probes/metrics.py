"""Metrics for Prometheus, read from the database at each request, so that no process has to count."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence

from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import (
    CONTENT_TYPE_LATEST as OPENMETRICS,
)
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.registry import CollectorRegistry

import orchestrator
from monitoring.live.audience import open_pages
from monitoring.probes.figures import Figures, figures
from monitoring.probes.readiness import readiness
from monitoring.probes.timed_questions import TimedQuestion

log = logging.getLogger(__name__)

QUANTILES = (0.5, 0.95, 0.99)

_figures = TimedQuestion(figures)


def exposition(accept: str = "") -> tuple[bytes, str]:
    """Return all metrics and their content type; metrics of the database only when it answers in time.

    Args:
        accept: the header of the request; Prometheus' text format is the answer unless it names OpenMetrics.
    """
    registry = CollectorRegistry()
    registry.register(_Collector())
    if OPENMETRICS.partition(";")[0] in accept:
        return openmetrics(registry), OPENMETRICS  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collector:
    def collect(self) -> Iterator[Metric]:
        parts = readiness()
        yield _gauge("up", "Whether a part is there.", "part", parts)
        version = orchestrator.__version__
        yield _gauge("build_info", "Which version runs.", "version", {version: 1})
        yield _single("sockets", "Open pages of this web server.", open_pages())
        if not parts["database"]:
            return
        try:
            found = _figures.ask().answer()
        except Exception as error:  # noqa: BLE001  # `up` tells which part is down
            log.warning("no figures: %r", error)
            return
        yield from _metric_families(found)


def _metric_families(found: Figures) -> Iterator[Metric]:
    for kind, number in found.numbered.items():
        text = f"{kind.capitalize()} that there have ever been."
        counter = CounterMetricFamily(f"procession_{kind}", text)
        counter.add_metric([], number)
        yield counter
    yield _live_processes(found)
    open_, untaken = found.open_incidents, found.untaken_notices
    yield _single("open_incidents", "What needs a person, to 10,000.", open_)
    yield _single("untaken_notices", "Notices that no recipient has taken.", untaken)
    yield _quantiles(
        "step_seconds", "How long steps took recently.", found.step_seconds
    )
    yield _quantiles(
        "event_seconds",
        "How long events took to a verdict recently.",
        found.event_seconds,
    )
    yield from _queue_gauges(found)
    if found.swept_at is not None:
        age = max(0.0, (timezone.now() - found.swept_at).total_seconds())
        yield _single("sweep_age_seconds", "Since the last sweep.", age)


def _live_processes(found: Figures) -> Metric:
    text, labels = "Live processes, counted to a limit.", ["definition", "status"]
    live = GaugeMetricFamily("procession_live_processes", text, labels=labels)
    for values, number in found.live.items():
        live.add_metric(values, number)
    return live


def _queue_gauges(found: Figures) -> Iterator[Metric]:
    def by_queue(name: str, text: str, values: Mapping[str, float]) -> Metric:
        return _gauge(name, text, "queue", values)

    due = {name: row["due"] for name, row in found.queues.items()}
    age = {name: row["oldest_seconds"] for name, row in found.queues.items()}
    bells = {name: row["bells"] for name, row in found.queues.items()}
    heard = {name: number for name, number in bells.items() if number is not None}
    yield by_queue("due_work", "Work that waits for a worker.", due)
    yield by_queue("due_age_seconds", "How long the oldest of it has waited.", age)
    yield by_queue("bells", "Bells that no worker has answered yet.", heard)
    yield by_queue("leases", "Work that workers hold.", found.leases)
    yield by_queue("workers", "Living workers.", found.workers)


def _single(name: str, text: str, value: float) -> GaugeMetricFamily:
    """Return a gauge with one value."""
    return GaugeMetricFamily(f"procession_{name}", text, value=value)


def _gauge(
    name: str, text: str, label: str, values: Mapping[str, float]
) -> GaugeMetricFamily:
    """Return a gauge with a value for each value of one label."""
    gauge = GaugeMetricFamily(f"procession_{name}", text, labels=[label])
    for key, value in values.items():
        gauge.add_metric([key], value)
    return gauge


def _quantiles(name: str, text: str, values: Sequence[float]) -> GaugeMetricFamily:
    found = {
        str(q): values[math.ceil(q * len(values)) - 1] for q in QUANTILES if values
    }
    return _gauge(name, text, "quantile", found)
