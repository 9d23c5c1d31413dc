"""The console's pages about workflows: where an instance stands, what it did, what an operator can do with it."""

import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.http import QueryDict

from monitoring.definition.step_counts import step_counts
from monitoring.diagrams import NodeState
from monitoring.lists.processes.filters import Filters
from monitoring.lists.waits.decisions import open_questions
from monitoring.process.diagram import diagram_of
from monitoring.process.revision.moment import process_moment
from monitoring.process.steps.elements import VisitFilters
from monitoring.process.steps.step_states import step_states_of
from monitoring.process.steps.visits import run_page
from monitoring.process.steps.workflow import workflow_view
from orchestrator import start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Definition, OperatorAction, ProcessInstance, StepRun
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry, Lattice
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.doing import fresh
from tests.services.patience import SHARED

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]

FRAGMENTS = {"HX-Request": "true"}
SOON = 0.3
"""Seconds in which a page must be answered on a quiet machine."""


def stands(instance: ProcessInstance) -> dict[str, NodeState]:
    return dict(diagram_of(process_moment(instance)).nodes)


def edges(instance: ProcessInstance) -> dict[tuple[str, str], str]:
    """The class of each drawn edge, by its ends."""
    drawn = diagram_of(process_moment(instance)).edges
    known = [edge for edge in Inquiry.graph().edges if edge.id in drawn]
    return {(edge.source, edge.target): drawn[edge.id][0] for edge in known}


def press(
    client: Client,
    instance: ProcessInstance,
    name: str,
    step: str = "",
    about: dict[str, str] = FRAGMENTS,
    **given: Any,
) -> Any:
    """Press a button of a process, or of one of its open steps, and run what follows."""
    instance.refresh_from_db()
    place = f"/processes/{instance.pk}/"
    if step:
        run = StepRun.objects.get(instance=instance, node=step, finished_at=None)
        place += f"steps/{run.pk}/"
    form = {"key": uuid4().hex, "revision": instance.revision, "reason": "because"}
    answer = client.post(f"{place}{name}/", {**form, **given}, headers=about)
    drain()
    instance.refresh_from_db()
    return answer


def accepted(client: Client, **more: Any) -> ProcessInstance:
    """An inquiry that somebody has accepted."""
    instance = inquiry(**more)
    press(client, instance, "decide", "verdict", choice="accept")
    return instance


# Where it stands


ASKING = {
    "verdict": "is-waiting is-current",
    "merge": "is-done",
    "payment": "is-possible",
}


@cases(
    "given, found",
    ({}, ASKING),
    ({"trouble": "text"}, {"read_text": "is-handled", "apologise": "is-done"}),
    ({"pages": 5, "trouble": "page"}, {"read_page": "is-done"}),
)
def test_steps_show_their_state(given: dict[str, Any], found: dict[str, str]) -> None:
    nodes = stands(inquiry(**given))

    assert {name: " ".join(nodes[name].classes) for name in found} == found


def test_s3_1_a_loop_counts_its_visits() -> None:
    instance = inquiry()

    assert stands(instance)["draft"].count == "2\N{MULTIPLICATION SIGN}"
    assert edges(instance)[("draft", "draft")] == "is-done"


def test_s3_5_a_map_shows_what_is_done_and_what_failed() -> None:
    found = stands(inquiry(pages=5, trouble="page"))["read_page"]

    assert found.failed == "\N{MULTIPLICATION SIGN}1"
    assert (found.part, found.lost) == pytest.approx((0.8, 0.2))


@cases("trouble, apologised", ("", "is-off"), ("text", "is-done"))
def test_s3_1_edges_that_were_not_taken_are_told_from_those_that_were(
    trouble: str, apologised: str
) -> None:
    found = edges(inquiry(trouble=trouble))

    assert found[("classify", "read_text")] == "is-done"
    assert found[("read_text", "apologise")] == apologised
    assert found[("verdict", "reply")] == "is-possible"


def test_s3_6_several_steps_are_current_at_once() -> None:
    receipt = start_process(Lattice, Lattice.Input(layers=2, width=3))
    nodes = stands(ProcessInstance.objects.get(pk=receipt.process_id)).items()

    current = [name for name, node in nodes if "is-current" in node.classes]

    assert current == ["work_0_0", "work_0_1", "work_0_2"]


# The page


def test_the_page_shows_what_is_open_and_offers_the_choices(page_of: Read) -> None:
    text = page_of(inquiry())

    assert text.count('data-opens="decide-dialog"') == 2
    for choice in ("accept", "refuse"):
        assert f'data-given="{choice}"' in text


def test_the_table_of_steps_is_narrowed_by_step_status_and_text(page_of: Read) -> None:
    instance = inquiry(pages=5, trouble="page")

    for query, rows in (
        ("step=read_page", 6),
        ("state=failed", 1),
        ("search=torn", 1),
        ("search=%234", 1),
        ("search=nothing-like-it", 0),
        ("state=open", 1),
    ):
        found = re.findall(r'id="run-\d+"', page_of(instance, f"?{query}"))
        assert len(found) == rows, query


def test_the_history_tells_of_elements_together(page_of: Read) -> None:
    text = page_of(inquiry(pages=20))

    assert re.search(r"Read page</b>\s*<span class=\"soft\">\s*\d+ elements", text)


@cases("name", "collect", "分類")
def test_a_long_result_is_cut_and_can_be_had_whole_in_a_file_of_its_steps_name(
    name: str, page_of: Read, operating: Client
) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="collect")
    rows, result = StepRun.objects.filter(pk=run.pk), run.result
    rows.update(result="PAGE " * 2_000 + "500")
    text = page_of(instance, "?step=collect")

    rows.update(node=name)
    whole = operating.get(f"/processes/{instance.pk}/steps/{run.pk}/result.json")

    rows.update(result=result, node="collect")
    assert "PAGE 500" not in text
    assert "PAGE 500" in json.loads(whole.content)
    plain, coded = 'filename="collect', f"filename*=utf-8''{quote(name)}"
    called = plain if name == "collect" else coded
    assert f"attachment; {called}.json" in whole["Content-Disposition"]


def test_a_sub_process_is_linked_both_ways(page_of: Read, operating: Client) -> None:
    instance = accepted(operating)
    press(operating, instance, "skip", "payment", json='{"ticket": "T-1"}')
    child = ProcessInstance.objects.get(name="helpdesk-billing")

    assert f"/processes/{instance.pk}/" in page_of(child)
    shown = page_of(instance)
    assert f"/processes/{child.pk}/" in shown
    assert "booked T-1" in shown
    assert instance.status == "completed"


def test_the_fragments_are_well_formed(operating: Client) -> None:
    text = operating.read(f"/processes/{inquiry().pk}/?since=1", headers=FRAGMENTS)

    assert text.count("<hx-partial") == text.count("</hx-partial>") == 14


def test_the_definition_counts_who_stands_where() -> None:
    inquiry("T-1")
    inquiry("T-2")

    definition = Definition.objects.get(name="helpdesk-inquiry")
    found = step_counts(definition, [node.id for node in Inquiry.graph().nodes])

    assert found.steps == {"verdict": {"active": 0, "waiting": 2, "failed": 0}}
    listed = Filters.from_query(QueryDict("definition=helpdesk-inquiry&step=verdict"))
    assert listed.applied().count() == 2


def test_the_page_of_a_definition_tells_policies_of_steps(operating: Client) -> None:
    inquiry()

    text = operating.read("/definitions/helpdesk-inquiry/")

    for said in ("0 retries", "undone by retract", "until is clear, at most 3 times"):
        assert said in text


# Buttons


def test_a_decision_moves_it_on_and_pressed_twice_is_one(operating: Client) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="verdict")
    place = f"/processes/{instance.pk}/steps/{run.pk}/decide/"
    form = {"key": uuid4().hex, "revision": instance.revision, "reason": "x"}
    form["choice"] = "refuse"

    answers = [operating.post(place, form, headers=FRAGMENTS) for _ in range(2)]
    drain()

    assert [answer.status_code for answer in answers] == [200, 200]
    assert fresh(instance).status == "completed"
    assert OperatorAction.objects.get().action == "decide"


@cases(
    "name, step, given, status, said",
    ("decide", "verdict", {"choice": "perhaps"}, 409, "perhaps"),
    ("decide", "verdict", {"choice": "accept", "revision": 1}, 409, "has changed"),
    ("restart", "", {"json": '{"ticket": "T-1", "pages": "many"}'}, 409, "pages"),
    ("skip", "payment", {"json": "{"}, 400, "This is not JSON"),
    ("skip", "payment", {"json": '{"a": 1, "a": 2}'}, 400, "This is not JSON"),
    ("skip", "payment", {"json": "17"}, 409, "no result of Payment"),
    ("skip", "payment", {"json": '{"tocket": "T-1"}'}, 409, "no result of Payment"),
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    name: str,
    step: str,
    given: dict[str, Any],
    status: int,
    said: str,
    operating: Client,
) -> None:
    instance = accepted(operating) if step == "payment" else inquiry()
    before = instance.revision

    answer = press(operating, instance, name, step, **given)

    assert answer.status_code == status
    assert said in answer.content.decode()
    assert instance.revision == before


def test_questions_are_listed_until_they_are_answered(operating: Client) -> None:
    instance = inquiry()
    assert open_questions().count() == 1
    assert "T-1" in operating.read("/decisions/")

    here = {**FRAGMENTS, "HX-Current-URL": "http://testserver/decisions/"}
    answer = press(operating, instance, "decide", "verdict", here, choice="refuse")

    assert "Nothing is waiting for a decision." in answer.content.decode()
    assert not open_questions().exists()


def test_a_failed_step_is_skipped_with_a_result(operating: Client) -> None:
    instance = accepted(operating, trouble="reply")
    assert stands(instance)["reply"].classes == ("is-failed", "is-current")

    answer = press(operating, instance, "skip", "reply", json='"sent by hand"')

    assert answer.status_code == 200
    assert stands(instance)["reply"].classes == ("is-skipped",)
    assert stands(instance)["payment"].classes[0] == "is-waiting"


def test_a_step_is_redone(operating: Client) -> None:
    instance = inquiry()

    assert press(operating, instance, "redo", node="find_pages").status_code == 200
    assert StepRun.objects.filter(instance=instance, node="find_pages").count() == 2


def test_what_a_resume_has_given_up_is_not_drawn(operating: Client) -> None:
    instance = accepted(operating)
    before = StepRun.objects.get(instance=instance, node="verdict").entered
    assert stands(instance)["reply"].classes == ("is-done",)

    answer = press(operating, instance, "resume", to=before)

    assert answer.status_code == 200
    assert stands(instance)["verdict"].classes == ("is-waiting", "is-current")
    assert stands(instance)["reply"].classes == ("is-possible",)
    assert edges(instance)[("verdict", "reply")] == "is-possible"


def test_restarting_a_cancelled_process_leads_to_the_new_one(operating: Client) -> None:
    instance = inquiry()
    assert press(operating, instance, "cancel").status_code == 200
    assert instance.status == "cancelled"

    given = json.dumps({**instance.data, "pages": 7})
    answer = press(operating, instance, "restart", json=given)

    new = ProcessInstance.objects.exclude(pk=instance.pk).get()
    assert new.data["pages"] == 7
    assert f'href="/processes/{new.pk}/"' in answer.content.decode()


# Size


def test_the_page_of_two_thousand_steps_is_answered_at_once(operating: Client) -> None:
    receipt = start_process(Lattice, Lattice.Input(100, 20))
    address = f"/processes/{receipt.process_id}/"
    operating.get("/failures/")  # what only the first page of a process costs
    began = time.thread_time()

    text = operating.read(address)

    assert time.thread_time() - began < SOON * SHARED
    assert "2000 steps" in text or "2,000 steps" in text
    ProcessInstance.objects.get(pk=receipt.process_id)


def test_steps_of_a_large_definition_are_paged_and_searched(operating: Client) -> None:
    start_process(Lattice, Lattice.Input(30, 10))
    address = "/definitions/helpdesk-lattice/"

    for first in ("", "?page=0", "?page=-1", "?page=x"):
        assert "1\N{EN DASH}100" in operating.read(f"{address}{first}"), first
    for last in ("3", "4", "9" * 20):
        assert "201\N{EN DASH}300" in operating.read(f"{address}?page={last}"), last
    found = operating.read(f"{address}?search=work+29+9")
    assert found.count("<code>work_") == 1


def lattice() -> ProcessInstance:
    """A workflow that has twenty steps to do at once, and others that wait for them."""
    receipt = start_process(Lattice, Lattice.Input(3, 20))
    return ProcessInstance.objects.get(pk=receipt.process_id)


@cases("begun", lattice, inquiry)
def test_the_head_counts_the_open_steps_that_are_shown_and_listed(
    begun: Callable[[], ProcessInstance], page_of: Read
) -> None:
    instance = begun()

    moment = process_moment(instance)
    states = step_states_of(moment)
    view = workflow_view(moment, states)
    runs = run_page(moment, states, VisitFilters(state="open"))
    text = page_of(instance)

    assert f"{view.number_open}</b>" in text.partition("Open steps")[2][:40]
    assert len(runs.rows) == view.number_open
    assert text.count('id="open-') + view.more_open == view.number_open
