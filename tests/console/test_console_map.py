"""S2, the map of a definition: numbers that are those of the lists they open, figures, and what was never declared."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import pytest
from django.db.models import F
from django.http import QueryDict
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from examples.order_listing.processes import OrderListing
from monitoring.base.graphs import stored_graph
from monitoring.definition import seen_visits as visits
from monitoring.definition import step_counts as standings
from monitoring.definition.filters import MapFilters
from monitoring.definition.page import DefinitionPage, definition_page
from monitoring.definition.seen_visits import seen_visits
from monitoring.diagrams.drawing import Drawing, MapLayer
from monitoring.diagrams.layout import lay_out_small
from monitoring.diagrams.painting import DiagramState, NodeState
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page
from monitoring.queries import recent_rows
from monitoring.queries import window as windows
from monitoring.queries.window import StepFigures
from orchestrator.models import Definition, ProcessInstance, StepRun
from orchestrator.testing import run
from orchestrator.testing.clock import move_times_back
from tests.apps.every_construct.desk import inquiry
from tests.apps.made_from_input.processes import Housekeeping
from tests.apps.patterns.desk import go_on, launch
from tests.apps.process_managers.fixtures import known
from tests.browser.samples import HARMFUL, orders
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.drawn import stored
from tests.services.placing import placed
from tests.services.reading import BY_SCRIPT, all_rows, between, plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk", "made")]

ORDERS, INQUIRIES = "order-listing", "helpdesk-inquiry"
BADGE = re.compile(
    r'<a href="([^"]+)"><g class="badge (\w+)"[^>]*><title>([^<]*)</title><rect [^>]*/><text [^>]*>([^<]+)</text>'
)
CELL = re.compile(r'<a class="num subject" href="([^"]+)">([^<]+)</a>')


@pytest.fixture(scope="module")
def made() -> Iterator[None]:
    """Have a workflow known that is made from its input."""
    yield from known(Housekeeping)


@pytest.fixture
def read(viewing: Client) -> Read:
    """Reads the page of a definition as somebody who may only look."""

    def page(name: str, query: str = "", **headers: str) -> str:
        return viewing.read(f"/definitions/{name}/{query}", headers=headers)

    return page


@pytest.fixture
def later() -> Iterator[Callable[[timedelta], None]]:
    """Has all that happened so far have been so long ago; what is due since then is not by the end of the test."""
    passed: list[timedelta] = []

    def pass_by(time: timedelta) -> None:
        passed.append(time)
        move_times_back(time)

    yield pass_by
    move_times_back(-sum(passed, timedelta()))


def shown(name: str, **given: str) -> DefinitionPage:
    filters = MapFilters.from_query(QueryDict(urlencode(given)), definition=name)
    return definition_page(name, filters)


def numbers(name: str, **given: str) -> dict[str, dict[str, str]]:
    """The numbers on the map of the steps that have any."""
    nodes = shown(name, **given).state.nodes
    return {step: dict(node.numbers) for step, node in nodes.items() if node.numbers}


def listed(query: str, name: str) -> int:
    """How many processes the list below a map has, on all its pages."""
    asked = QueryDict(unescape(query).lstrip("?"))
    filters = Filters.from_query(asked, definition=name)
    rows = all_rows(lambda before: process_page(filters, before, size=2))
    number = len({row.pk for row in rows})
    assert number == filters.applied().count()
    return number


# S2.1


def test_s2_1_each_step_has_the_numbers_of_what_is_done_in_it() -> None:
    orders()
    inquiry("T-1")
    inquiry("T-2", trouble="text")
    inquiry("T-3", trouble="reply")

    done = {"NotStarted": "✓3", "AwaitingInternalListing": "✓1", "Completed": "✓1"}
    expected = {step: {"finished": number} for step, number in done.items()}
    expected["AwaitingExternalCreation"] = {"failed": "!2"}
    assert numbers(ORDERS) | expected == numbers(ORDERS)
    assert numbers(INQUIRIES)["verdict"]["waiting"] == "…3"
    title = shown(ORDERS).state.nodes["AwaitingExternalCreation"].title
    assert title == "Awaiting external creation: 2 failed"


def test_s2_1_a_window_has_what_ended_in_it(later: Callable[[timedelta], None]) -> None:
    orders()
    later(timedelta(hours=3))
    placed(Destination.INTERNAL)

    hour = numbers(ORDERS)
    assert hour["Completed"] == {"finished": "✓1"}
    assert numbers(ORDERS, window="day")["Completed"] == {"finished": "✓2"}
    assert numbers(ORDERS, window="week")["NotStarted"] == {"finished": "✓4"}
    assert numbers(ORDERS, window="century") == hour
    # Where processes are now has nothing to do with the time.
    assert hour["AwaitingExternalCreation"] == {"failed": "!2"}


def test_s2_1_a_version_has_the_numbers_of_its_own_processes_alone(read: Read) -> None:
    orders()
    now = Definition.objects.get(name=ORDERS)
    graph = replace(OrderListing.graph(), version=now.version + 1, edges=())
    newer = stored(graph)

    # As long as no process runs on it, it is drawn only when it is chosen.
    assert shown(ORDERS).definition == now
    assert f"version={newer.version}" in read(ORDERS)
    assert numbers(ORDERS, version=str(newer.version)) == {}
    moved = ProcessInstance.objects.filter(status="completed")
    moved.update(definition=newer)

    assert shown(ORDERS).definition == newer
    assert numbers(ORDERS) == {}
    assert numbers(ORDERS, version=str(now.version))["Completed"]
    text = read(ORDERS, f"?version={now.version}")
    assert f"version={now.version}" in BADGE.findall(text)[0][0]
    assert read(ORDERS).count('data-drawn="' + newer.fingerprint) == 2
    # An open page that shows the older graph is sent the newer one with the numbers on it.
    for drawn, sent in ((now, True), (newer, False)):
        parts = read(ORDERS, f"?since=0&drawn={drawn.fingerprint}", **BY_SCRIPT)
        assert ('hx-target="#drawing"' in parts) is sent
    moved.update(definition=now)
    newer.delete()


def test_s2_1_where_each_input_makes_a_graph_the_numbers_are_of_the_one_that_is_drawn(
    read: Read,
) -> None:
    first = go_on(launch(Housekeeping, "short", "copy", 0, 0)).definition
    second = go_on(launch(Housekeeping, "long", "copy", 0, 30)).definition
    name = Housekeeping.name
    assert first != second

    page = shown(name)

    assert page.definition == second
    assert page.state.nodes["ready"].numbers == {"waiting": "…1"}
    text = read(name)
    assert "This version has 2 graphs" in text
    found = {link: number for link, _, _, number in BADGE.findall(text)}
    assert set(found.values()) == {"…1"}
    assert {listed(link, name) for link in found} == {1}
    other = shown(name, graph=first.fingerprint[:12])
    assert other.definition == first
    assert sum(one.number for one in other.counts.statuses.values()) == 1


def test_s2_1_of_many_visits_the_numbers_are_estimates_with_their_error(
    monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    """`tests/both/test_numbers_of_windows.py` compares such estimates with the rows."""
    for number in range(8):
        place_order(Destination.INTERNAL, str(number))
    run()
    began = StepRun.objects.order_by("pk").values_list("pk", flat=True)
    for number, pk in enumerate(began):  # spread over the hour
        at = timezone.now() - timedelta(minutes=2 * number)
        ended = StepRun.objects.filter(pk=pk, finished_at__isnull=False)
        ended.update(started_at=at, finished_at=at)
    monkeypatch.setattr(windows, "LOOKED_AT", 12)
    monkeypatch.setattr(recent_rows, "LEAST", 1)

    found = {step: text for step, text in numbers(ORDERS).items() if text}

    assert {text["finished"][:2] for text in found.values()} == {"✓≈"}
    titles = [shown(ORDERS).state.nodes[step].title for step in found]
    assert all(re.search(r": ≈\d+ ± \d+ finished", title) for title in titles)
    assert re.search(r"≈ estimated from \d+ visits, one in \d", plain(read(ORDERS)))
    monkeypatch.setattr(recent_rows, "LEAST", 100)
    assert {text["finished"] for text in numbers(ORDERS).values()} == {"✓few"}


def test_s2_1_the_steps_of_a_large_graph_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders()
    each = numbers(ORDERS)
    with monkeypatch.context() as patch:
        patch.setattr(standings, "LOOKED_AT", 1)  # beyond it a number says at least
        assert numbers(ORDERS)["AwaitingExternalCreation"] == {"failed": "!1+"}
    monkeypatch.setattr(standings, "EACH", 2)

    assert numbers(ORDERS) == each
    monkeypatch.setattr(standings, "CAP", 1)
    assert numbers(ORDERS)["AwaitingExternalCreation"] == {"failed": "!1+"}


# S2.2


@pytest.mark.parametrize("window", ["hour", "week"])
def test_s2_2_each_number_is_that_of_the_list_it_opens(
    window: str, read: Read, later: Callable[[timedelta], None]
) -> None:
    orders()
    inquiry("T-1")
    inquiry("T-2", trouble="text")
    inquiry("T-3", pages=5, trouble="page")
    later(timedelta(minutes=50))
    for name, least in ((ORDERS, 4), (INQUIRIES, 5)):
        text = read(name, f"?window={window}")
        found = BADGE.findall(text)
        assert len(found) >= least
        for link, doing, title, number in found:
            assert listed(link, name) == int(number[1:]), (name, doing, title)
            assert number[1:] in title
        # The same numbers as a table, each with the same list.
        cells = CELL.findall(between(text, 'id="step-numbers"', "</details>"))
        assert len(cells) == len(found)
        assert [listed(link, name) for link, _ in cells] == [int(n) for _, n in cells]


def test_s2_2_a_step_opens_those_that_are_in_it_now(read: Read) -> None:
    orders()
    node = r'<a href="([^"]+)"><g id="n_\w+" class="[^"]*" data-node="(\w+)"'
    links = {step: link for link, step in re.findall(node, read(ORDERS))}

    expected = {"AwaitingExternalCreation": 2, "Completed": 1, "NotStarted": 0}
    assert {step: listed(links[step], ORDERS) for step in expected} == expected


def test_s2_2_what_a_list_is_narrowed_to_is_a_chip_to_remove(read: Read) -> None:
    orders()
    links = {doing: link for link, doing, *_ in BADGE.findall(read(ORDERS))}

    text = read(ORDERS, unescape(f"{links['failed']}&overlay=median"))

    chip = r'<a class="chip filter" href="([^"]+)">(.*?)</a>'
    found = re.findall(chip, text, re.DOTALL)
    chips = {plain(said).split()[0].rstrip(":"): where for where, said in found}
    assert chips.keys() == {"Version", "Step", "There"}
    assert "doing=" not in chips["Step"]
    assert "overlay=median" in chips["Step"]
    assert "step=AwaitingExternalCreation" in chips["There"]


def test_s2_2_a_word_that_is_unknown_narrows_and_breaks_nothing(read: Read) -> None:
    orders()
    query = "?step=Completed&doing=nonsense&overlay=nothing&window=%00"

    assert "Now" in read(ORDERS, query)
    assert listed(query, ORDERS) == 1


# S2.3


def test_s2_3_quantiles_are_of_what_passed_and_failure_rates_of_what_ended() -> None:
    passed = StepFigures([float(second) for second in range(20, 0, -1)])
    assert (passed.quantile(0.5), passed.quantile(0.95)) == (10, 19)
    assert (StepFigures([3.0]).quantile(0.95), StepFigures().quantile(0.5)) == (3, None)

    one, other, third = "01", "02", "03"
    assert (
        StepFigures(finished={one, other}, failed={other, third}).failure_rate == 2 / 3
    )
    rates = StepFigures(finished={one}).failure_rate, StepFigures().failure_rate
    assert rates == (0, None)


def test_s2_3_an_overlay_has_its_figure_on_each_step_and_a_scale(
    read: Read, later: Callable[[timedelta], None]
) -> None:
    orders()
    StepRun.objects.filter(node="AwaitingInternalListing").update(
        started_at=F("finished_at") - timedelta(seconds=40)
    )

    times = shown(ORDERS, overlay="p95")
    rates = shown(ORDERS, overlay="failures").state.nodes

    slow = times.state.nodes["AwaitingInternalListing"]
    assert slow.numbers == {"value": "40.0 s"}
    assert "is-heat-5" in slow.classes
    assert "is-heat-1" in times.state.nodes["Completed"].classes
    scale = [f"≤ {seconds}.0 s" for seconds in (8, 16, 24, 32, 40)]
    assert times.scale == scale
    torn = rates["AwaitingExternalCreation"]
    assert (torn.numbers, torn.classes) == ({"value": "100 %"}, ("is-heat-5",))
    assert rates["NotStarted"].numbers == {"value": "0 %"}
    assert "is-heat-1" in rates["NotStarted"].classes
    text = read(ORDERS, "?overlay=p95")
    assert text.count('class="heat ') == 5
    assert "95th percentile of the time in step" in text
    # Where no step has a figure, the page says what to do.
    later(timedelta(hours=2))
    assert "choose a longer one" in read(ORDERS, "?overlay=p95")


# S2.4


def unvisited() -> set[str]:
    nodes = shown(ORDERS).state.nodes
    return {step for step, node in nodes.items() if "is-unvisited" in node.classes}


def test_s2_4_steps_that_were_never_visited_are_marked_and_how_much_was_looked_at(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        placed(Destination.INTERNAL)

    assert unvisited() == {"AwaitingExternalCreation", "AwaitingExternalListing"}
    title = shown(ORDERS).state.nodes["AwaitingExternalListing"].title
    assert title.endswith(": not visited")
    assert "by any of the 3 processes of this version" in read(ORDERS)
    monkeypatch.setattr(visits, "PROCESSES", 2)
    assert "by the newest 2 processes of this version" in read(ORDERS)
    # Too many visits to have seen them all: nothing is claimed.
    monkeypatch.setattr(visits, "VISITS", 1)
    assert unvisited() == set()


def test_s2_4_nothing_is_claimed_where_no_process_was_looked_at(read: Read) -> None:
    orders()
    ProcessInstance.objects.filter(name=ORDERS).update(name="elsewhere")
    text = read(ORDERS)
    ProcessInstance.objects.filter(name="elsewhere").update(name=ORDERS)

    assert "no process of this version was found" in text
    assert 'class="step kind-step is-unvisited' not in text


def test_s2_4_ways_that_nobody_declared_are_marked(read: Read) -> None:
    orders()
    row = Definition.objects.get(name=ORDERS)
    rows = Definition.objects.filter(name=ORDERS)
    kept = [e for e in row.graph["edges"] if e["target"] != "AwaitingInternalListing"]
    rows.update(graph={**row.graph, "edges": kept}, fingerprint="0" * 64)
    try:
        page, text = shown(ORDERS), read(ORDERS)
        file = page.drawing.standalone(page.state, page.layer)
    finally:
        rows.update(graph=row.graph, fingerprint=row.fingerprint)

    assert page.ways == [("Not started", "Awaiting internal listing", 1)]
    for step in ("NotStarted", "AwaitingInternalListing"):
        assert "has-undeclared" in page.state.nodes[step].classes
    assert text.count('<g class="way">') == file.count('<g class="way">') == 1
    assert "Not started" in between(text, 'id="undeclared"', "</div>")
    assert 'id="undeclared"' not in read(ORDERS)


def test_s2_4_steps_and_transitions_that_are_not_declared_are_told() -> None:
    process = inquiry()
    graph = stored_graph(process.definition)
    nodes = tuple(node for node in graph.nodes if node.id != "classify")
    left = [edge for edge in graph.edges if edge.source == "classify"]
    edges = tuple(edge for edge in graph.edges if edge not in left)

    found = seen_visits(process.definition, replace(graph, nodes=nodes, edges=edges))

    assert found.steps == ("classify",)
    assert {edge for edge, _ in found.edges} == {edge.id for edge in left}
    assert not seen_visits(process.definition, graph).undeclared


# S2.5


def test_s2_5_the_files_are_the_view_of_the_address(viewing: Client) -> None:
    orders()

    def file(form: str, query: str = "") -> str:
        answer = viewing.get(f"/definitions/{ORDERS}/picture.{form}{query}")
        assert answer.status_code == 200
        assert "attachment" in answer["Content-Disposition"]
        return answer.content.decode()

    picture = ET.fromstring(file("svg"))  # noqa: S314  it is ours
    texts = {element.text for element in picture.iter() if element.text}
    assert {"!2", "✓3"} <= texts
    assert any("version 2 · Now · last hour" in text for text in texts)
    assert not [e for e in picture.iter() if e.tag.endswith("}a")]
    assert "!2" in file("dot")
    rates = "?version=2&overlay=failures&window=week"
    for form, also in (("svg", "Failure rate · last week"), ("dot", "penwidth=5")):
        full, plain = file(form, rates), file(form, f"{rates}&plain=1")
        assert ("100 %" in full, also in full) == (True, True)
        assert ("100 %" in plain, "Failure rate" in plain) == (False, False)
    assert "<svg" in lay_out_small(file("dot", rates))  # it is DOT


@cases("text", *HARMFUL)
def test_s2_5_no_text_of_a_map_leaves_its_place(text: str) -> None:
    drawing = Drawing(OrderListing.graph())
    node = NodeState(title=text, numbers={"failed": text}, said={"failed": text})
    state = DiagramState({"Completed": node})
    ways = [("NotStarted", "Completed")]
    layer = MapLayer({"failed": "doing=failed"}, ways, [text, text])

    page = ET.fromstring(drawing.svg(state, linked=True, layer=layer))  # noqa: S314
    file = ET.fromstring(drawing.standalone(state, layer))  # noqa: S314

    tags = {one.tag.rpartition("}")[2] for root in (page, file) for one in root.iter()}
    assert not tags & {"script", "img", "b", "hx-partial", "foreignObject"}
    assert "<svg" in lay_out_small(drawing.dot_with(state, layer))
    links = [element.get("href", "") for element in page.iter("a")]
    assert all(link.startswith("?step=") for link in links)


def test_s2_1_painting_numbers_moves_nothing() -> None:
    drawing, layer = Drawing(OrderListing.graph()), MapLayer()
    node = NodeState(("is-heat-3",), numbers={"value": "3.0 s"})

    plain = drawing.svg(layer=layer)
    painted = drawing.svg(DiagramState({"Completed": node}), layer=layer)

    places = r' (?:d|points|x|y|transform|viewBox)="[^"]*"'
    assert re.findall(places, plain) == re.findall(places, painted)
    assert plain != painted
