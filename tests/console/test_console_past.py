"""The state as of each checkpoint, told from rows, is what the live page showed when that checkpoint was the last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring.diagrams import DiagramState
from monitoring.process.diagram import diagram_of
from monitoring.process.revision.moment import process_moment
from monitoring.process.steps.step_states import step_states_of
from monitoring.process.steps.workflow import WorkflowView, workflow_view
from orchestrator import start_process
from orchestrator.definition import Workflow, ask, start
from orchestrator.models import ProcessInstance
from orchestrator.signals import Change, committed
from orchestrator.testing import registered, run
from tests.apps.patterns.desk import insist, launch
from tests.apps.random_graphs.processes import RandomGraph
from tests.browser.samples import orders
from tests.services.client import Client
from tests.services.reading import BY_SCRIPT
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
    return diagram_of(process_moment(process))


def then(process: ProcessInstance, revision: int) -> tuple[str, DiagramState]:
    """Return the status, and what the page paints, of a moment."""
    moment = process_moment(process, revision)
    assert moment.is_past
    return moment.instance.status, diagram_of(moment)


def one_of(kind: str) -> ProcessInstance:
    """One of several orders."""
    return ProcessInstance.objects.get(pk=orders()[kind].process_id)


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
    """Return where what is told of the past is not what was seen then, and what is told of the last not what is now."""
    found = []
    for revision, (was, parts) in sorted(seen.items()):
        status, state = then(process, revision)
        if status != was:
            found.append(f"{revision}: {status}, was {was}")
        for now_told, seen_then in zip(told(state), parts, strict=True):
            found += [
                f"{revision} {name}: {now_told[name]}, was {seen_then[name]}"
                for name in seen_then
                if now_told[name] != seen_then[name]
            ]
    if told(then(process, process.revision)[1]) != told(now(process)):
        found.append("the last is not as it is now")
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_s4_3_each_checkpoint_of_a_random_graph_is_told_as_seen(seed: int) -> None:
    with recorded() as seen:
        process = insist(launch(RandomGraph, seed, 25), 4)

    assert process.status == "completed"
    assert len(seen[process.pk]) > process.revision / 2
    assert differences(process, seen[process.pk]) == []


def test_s4_3_each_checkpoint_of_an_order_is_told_as_it_was_seen() -> None:
    with recorded() as seen:
        placed = orders()
    for order in placed.values():
        process = ProcessInstance.objects.get(pk=order.process_id)
        assert seen[process.pk].keys() == set(range(1, process.revision + 1))
        assert differences(process, seen[process.pk]) == []


MADE: dict[str, Callable[[], ProcessInstance]] = {
    "order": lambda: one_of("completed"),
    "graph": lambda: insist(launch(RandomGraph, 1, 12), 4),
}


@pytest.mark.parametrize("kind", MADE)
def test_s4_3_the_page_shows_each_moment_as_past(kind: str, admin: Client) -> None:
    process = MADE[kind]()
    address, past = f"/processes/{process.pk}/", "You are looking at the past."

    for revision in range(1, process.revision + 1):
        text = admin.read(f"{address}?at={revision}")
        assert past in text
        assert f'data-revision="{revision}"' in text
        assert f'id="revision-{revision}"' in text
        assert f'id="revision-{revision + 1}"' not in text
    assert past not in admin.read(address)


def test_s4_3_a_moment_that_never_was_is_answered_with_now(admin: Client) -> None:
    address = f"/processes/{one_of('completed').pk}/"
    for asked in ("0", "-1", "99999999999", "x", "1.5", "\u0661", "%00"):
        assert "There is no transition" in admin.read(f"{address}?at={asked}"), asked


def test_s4_3_what_one_sees_in_the_past_is_not_moved_later(admin: Client) -> None:
    place = f"/processes/{one_of('early').pk}/?at=1&since=1"
    still, moved = (
        parts(admin.read(f"{place}&shown={shown}", headers=BY_SCRIPT))
        for shown in ("1", "")
    )

    looked_at = {"state", "header", "history", "now", "data", "steps"}
    assert not still & looked_at
    assert {"past", "timeline", "gantt"} <= still
    assert looked_at <= moved


def test_s4_3_in_the_past_no_button_works_and_each_says_why(admin: Client) -> None:
    place = f"/processes/{one_of('failed').pk}/"
    text = admin.read(f"{place}?at=1")

    buttons = re.findall(r"<button[^>]*data-opens=[^>]*>", text)
    assert buttons
    assert all('aria-disabled="true"' in button for button in buttons)
    assert "You look at the past" in text
    links = [f'href="{place}{page}/"' for page in ("repair", "secrets")]
    assert [link for link in links if link in text] == []


def test_s4_3_the_picture_of_a_moment_is_a_file_that_says_which(admin: Client) -> None:
    process = one_of("completed")
    address = f"/processes/{process.pk}/picture.svg"

    first, now = admin.get(f"{address}?at=1"), admin.read(address)

    text = first.content.decode()
    assert "-at-1.svg" in first["Content-Disposition"]
    assert f"<title>{process} · Transition 1 of {process.revision}, " in text
    assert current(text) != current(now)
    assert "Transition" not in now
    for never in ("0", "99", "x"):
        admin.read(f"{address}?at={never}", status=404)


def test_s4_3_beside_now_is_sent_what_has_its_place_in_the_page(admin: Client) -> None:
    process = one_of("early")
    for place in ("?at=1&beside=now", "?beside=now"):
        address = f"/processes/{process.pk}/{place}"
        whole = admin.read(address)
        sent = parts(admin.read(f"{address}&since=1&shown=", headers=BY_SCRIPT))

        assert "state-now" in sent
        assert "drawing-now" not in sent
        assert [whole.count(f'id="{name}"') for name in sent] == [1] * len(sent)


def current(svg: str) -> set[str]:
    """Return the nodes that a picture shows as the current ones."""
    shown = r'<g (?=[^>]*class="[^"]*is-current)[^>]*data-node="([^"]+)"'
    return set(re.findall(shown, svg))


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


def workflow_then(process: ProcessInstance) -> WorkflowView:
    """Read all that the page tells of how a workflow stood after its newest transition."""
    moment = process_moment(process, process.revision)
    states = step_states_of(moment)
    diagram_of(moment, states)
    return workflow_view(moment, states)


def queries_of(definition: type[Workflow]) -> int:
    """Return how many queries it takes to tell how a process stood where all its questions were open."""
    with registered(definition):
        receipt = start_process(definition, None)
        run()
        process = ProcessInstance.objects.get(pk=receipt.process_id)
        workflow_then(process)  # the picture is kept
        with CaptureQueriesContext(connection) as asked:
            then = workflow_then(process)
        process.delete()  # of a definition that is known no longer
    assert then.number_open == len(definition.graph().nodes)
    return len(asked)


def test_s4_many_open_steps_of_a_moment_cost_no_more_queries() -> None:
    assert queries_of(Many) <= queries_of(Few)
