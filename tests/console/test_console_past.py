"""The state as of each checkpoint, told from rows, is what the live page showed when that checkpoint was the last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring.diagrams import DiagramState
from monitoring.queries.graphs import graph_of
from monitoring.queries.instance.diagram import instance_state
from monitoring.queries.instance.past import PastMoment, moment_of, runs_then
from monitoring.queries.instance.taken import taken_edges
from monitoring.queries.instance.visits import RunFilters
from monitoring.queries.instance.workflow import workflow_then, workflow_view
from orchestrator import start_process
from orchestrator.definition import Workflow, ask, start
from orchestrator.models import Definition, ProcessInstance
from orchestrator.signals import Change, committed
from orchestrator.testing import registered, run
from tests.apps.patterns.desk import insist, launch
from tests.apps.random_graphs.processes import RandomGraph
from tests.browser.samples import orders
from tests.services.client import Client
from tests.services.sizes import size

pytestmark = pytest.mark.django_db(transaction=True)

SEEDS = range(size(4, full=40))
AT_WORK = {"is-ready": "is-running", "is-retrying": "is-running"}
"""No row keeps whether a worker had taken a step that was ready, or one that is tried again."""

Seen = dict[str, tuple[str, ...]]


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(RandomGraph):
        yield


def told(state: DiagramState) -> tuple[Seen, Seen]:
    """Return the classes of all nodes and edges, as far as rows tell them."""
    nodes = {
        name: tuple(AT_WORK.get(one, one) for one in node.classes)
        for name, node in state.nodes.items()
    }
    return nodes, dict(state.edges)


def now(process: ProcessInstance) -> DiagramState:
    """Return what the live page paints."""
    if process.definition.kind == Definition.Kind.WORKFLOW:
        return workflow_view(process, RunFilters()).state
    graph = graph_of(process.definition)
    runs = list(process.step_runs.order_by("pk"))
    return instance_state(graph, process, runs, taken_edges(process))


def then(process: ProcessInstance, revision: int) -> DiagramState:
    """Return what the page paints of a moment."""
    moment = moment_of(process, revision)
    assert moment is not None
    return of_moment(moment)


def of_moment(moment: PastMoment) -> DiagramState:
    if moment.present.definition.kind == Definition.Kind.WORKFLOW:
        return workflow_then(moment).state
    graph = graph_of(moment.present.definition)
    taken = taken_edges(moment.present, moment.revision)
    return instance_state(graph, moment.then, runs_then(moment), taken)


@contextmanager
def recorded() -> Iterator[dict[UUID, dict[int, Any]]]:
    """Record what the live page shows after each commit, before anything else is written."""
    seen: dict[UUID, dict[int, Any]] = {}

    def look(change: Change, **given: Any) -> None:
        process = ProcessInstance.objects.filter(pk=str(change.process_id)).first()
        if process is not None and process.revision == change.revision:
            shown = (process.status, told(now(process)))
            seen.setdefault(process.pk, {}).setdefault(process.revision, shown)

    committed.connect(look)
    try:
        yield seen
    finally:
        committed.disconnect(look)


def differences(process: ProcessInstance, seen: Mapping[int, Any]) -> list[str]:
    """Return where what is told of the past is not what was seen then."""
    found = []
    for revision, (status, (nodes, edges)) in sorted(seen.items()):
        moment = moment_of(process, revision)
        assert moment is not None
        told_nodes, told_edges = told(of_moment(moment))
        if moment.then.status != status:
            found.append(f"{revision}: {moment.then.status}, was {status}")
        for name in nodes:
            if told_nodes[name] != nodes[name]:
                said = f"{told_nodes[name]}, was {nodes[name]}"
                found.append(f"{revision} {moment.checkpoint.cause} {name}: {said}")
        found += [
            f"{revision} {name}: {told_edges[name]}, was {edges[name]}"
            for name in edges
            if told_edges[name] != edges[name]
        ]
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_s4_3_each_checkpoint_of_a_random_graph_is_told_as_it_was_seen(
    seed: int,
) -> None:
    with recorded() as seen:
        process = insist(launch(RandomGraph, seed, 25), 4)

    assert process.status == "completed"
    assert len(seen[process.pk]) > process.revision / 2
    assert differences(process, seen[process.pk]) == []
    assert told(then(process, process.revision)) == told(now(process))


def test_s4_3_each_checkpoint_of_an_order_is_told_as_it_was_seen() -> None:
    with recorded() as seen:
        placed = orders()
    for order in placed.values():
        process = ProcessInstance.objects.get(pk=order.process_id)
        assert seen[process.pk].keys() == set(range(1, process.revision + 1))
        assert differences(process, seen[process.pk]) == []
        assert told(then(process, process.revision)) == told(now(process))


@pytest.mark.parametrize("kind", ["order", "graph"])
def test_s4_3_the_page_shows_each_moment_and_says_that_it_is_past(
    kind: str, admin: Client
) -> None:
    if kind == "order":
        process = ProcessInstance.objects.get(pk=orders()["completed"].process_id)
    else:
        process = insist(launch(RandomGraph, 1, 12), 4)

    for revision in range(1, process.revision + 1):
        text = admin.read(f"/processes/{process.pk}/?at={revision}")
        assert "You are looking at the past." in text
        assert f'data-revision="{revision}"' in text
        assert f'id="revision-{revision}"' in text
        assert f'id="revision-{revision + 1}"' not in text
    text = admin.read(f"/processes/{process.pk}/")
    assert "You are looking at the past." not in text


@pytest.mark.parametrize(
    "asked", ["0", "-1", "99999999999", "x", "1.5", "\u0661", "%00"]
)
def test_s4_3_a_moment_that_never_was_is_answered_with_now_and_a_word(
    asked: str, admin: Client
) -> None:
    process = ProcessInstance.objects.get(pk=orders()["completed"].process_id)

    page = admin.read(f"/processes/{process.pk}/?at={asked}")
    assert "There is no transition" in page


def test_s4_3_what_one_looks_at_in_the_past_is_not_moved_by_what_comes_later(
    admin: Client,
) -> None:
    process = ProcessInstance.objects.get(pk=orders()["early"].process_id)
    fragments = {"HX-Request": "true"}
    place = f"/processes/{process.pk}/?at=1&since=1"

    still = admin.read(f"{place}&shown=1", headers=fragments)
    moved = admin.read(f"{place}&shown=", headers=fragments)

    looked_at = {"state", "header", "ledger", "now", "data", "steps"}
    assert not parts(still) & looked_at
    assert {"past", "timeline", "gantt"} <= parts(still)
    assert looked_at <= parts(moved)


def test_s4_3_in_the_past_no_button_can_be_pressed_and_each_says_why(
    admin: Client,
) -> None:
    process = ProcessInstance.objects.get(pk=orders()["failed"].process_id)

    text = admin.read(f"/processes/{process.pk}/?at=1")

    buttons = re.findall(r"<button[^>]*data-opens=[^>]*>", text)
    assert buttons
    assert all('aria-disabled="true"' in button for button in buttons)
    assert "You look at the past" in text


def test_s4_3_the_picture_of_a_moment_is_a_file_that_says_which(admin: Client) -> None:
    process = ProcessInstance.objects.get(pk=orders()["completed"].process_id)
    address = f"/processes/{process.pk}/picture.svg"

    first = admin.get(f"{address}?at=1")
    now = admin.get(address)

    text = first.content.decode()
    assert "-at-1.svg" in first["Content-Disposition"]
    assert f"<title>{process} · Transition 1 of {process.revision}, " in text
    assert current(text) != current(now.content.decode())
    assert "Transition" not in now.content.decode()
    for never in ("0", "99", "x"):
        assert admin.get(f"{address}?at={never}").status_code == 404


def test_s4_3_beside_now_is_sent_what_has_its_place_in_the_page(admin: Client) -> None:
    process = ProcessInstance.objects.get(pk=orders()["early"].process_id)
    for place in ("?at=1&beside=now", "?beside=now"):
        address = f"/processes/{process.pk}/{place}"
        whole = admin.read(address)
        sent = admin.read(f"{address}&since=1&shown=", headers={"HX-Request": "true"})

        assert "state-now" in parts(sent)
        assert "drawing-now" not in parts(sent)
        for name in parts(sent):
            assert whole.count(f'id="{name}"') == 1


def current(svg: str) -> set[str]:
    """Return the nodes that a picture shows as the current ones."""
    return {
        found["node"]
        for found in re.finditer(
            r'<g (?=[^>]*class="[^"]*is-current)[^>]*data-node="(?P<node>[^"]+)"', svg
        )
    }


def parts(answer: str) -> set[str]:
    """Return the ids of the parts that an open page is sent."""
    return set(re.findall(r'hx-target="#([\w-]+)"', answer))


class Answer(StrEnum):
    YES = "yes"


class Few(Workflow):
    """Two questions at once."""

    flow = (start(*(ask(f"q{number}", Answer) for number in range(2))),)


class Many(Workflow):
    """Forty of them."""

    flow = (start(*(ask(f"q{number}", Answer) for number in range(40))),)


def queries_of(definition: type[Workflow]) -> int:
    """Return how many queries it takes to tell how a process stood where all its questions were open."""
    with registered(definition):
        receipt = start_process(definition, None)
        run()
        process = ProcessInstance.objects.get(pk=receipt.process_id)
        moment = moment_of(process, process.revision)
        assert moment is not None
        workflow_then(moment)  # the picture is kept
        with CaptureQueriesContext(connection) as asked:
            then = workflow_then(moment)
        process.delete()  # of a definition that is known no longer
    assert then.number_open == len(definition.graph().nodes)
    return len(asked)


def test_s4_many_open_steps_of_a_moment_cost_no_more_queries() -> None:
    assert queries_of(Many) <= queries_of(Few)
