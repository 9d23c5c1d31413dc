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

from monitoring.diagrams import NodeState
from monitoring.queries.decisions import asked
from monitoring.queries.definition.standing import standing
from monitoring.queries.instance.visits import RunFilters
from monitoring.queries.instance.workflow import workflow_view
from monitoring.queries.instances.filters import Filters
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.models import Definition, OperatorAction, ProcessInstance, StepRun
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry, Lattice
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.patience import SHARED

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]

FRAGMENTS = {"HX-Request": "true"}
SOON = 0.3
"""Seconds in which a page must be answered on a quiet machine."""


def stands(instance: ProcessInstance) -> dict[str, NodeState]:
    return dict(workflow_view(instance, RunFilters()).state.nodes)


def edges(instance: ProcessInstance) -> dict[tuple[str, str], str]:
    """The class of each drawn edge, by its ends."""
    view = workflow_view(instance, RunFilters())
    ends = {edge.id: (edge.source, edge.target) for edge in Inquiry.graph().edges}
    return {
        ends[name]: classes[0]
        for name, classes in view.state.edges.items()
        if name in ends
    }


def form(instance: ProcessInstance, **more: Any) -> dict[str, Any]:
    return {
        "key": uuid4().hex,
        "revision": instance.revision,
        "reason": "because",
        **more,
    }


# Where it stands


def test_an_inquiry_that_waits_for_a_verdict_stands_there() -> None:
    found = stands(inquiry())

    assert found["verdict"].classes == ("is-waiting", "is-current")
    assert found["merge"].classes == ("is-done",)
    assert found["payment"].classes == ("is-possible",)


def test_s3_1_a_loop_counts_its_visits() -> None:
    found = stands(inquiry())

    assert found["draft"].count == "2\N{MULTIPLICATION SIGN}"
    assert edges(inquiry("T-2"))[("draft", "draft")] == "is-done"


def test_s3_5_a_map_shows_what_is_done_and_what_failed() -> None:
    found = stands(inquiry(pages=5, trouble="page"))

    assert found["read_page"].classes == ("is-done",)
    assert found["read_page"].failed == "\N{MULTIPLICATION SIGN}1"
    assert found["read_page"].part == pytest.approx(0.8)
    assert found["read_page"].lost == pytest.approx(0.2)


def test_a_failure_that_was_caught_shows_as_handled() -> None:
    found = stands(inquiry(trouble="text"))

    assert found["read_text"].classes == ("is-handled",)
    assert found["apologise"].classes == ("is-done",)


def test_s3_1_edges_that_were_not_taken_are_told_from_those_that_were() -> None:
    found = edges(inquiry())

    assert found[("classify", "read_text")] == "is-done"
    assert found[("read_text", "apologise")] == "is-off"
    assert found[("verdict", "reply")] == "is-possible"


def test_an_error_route_that_was_taken_is_drawn_so() -> None:
    assert edges(inquiry(trouble="text"))[("read_text", "apologise")] == "is-done"


def test_s3_6_several_steps_are_current_at_once() -> None:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    instance = ProcessInstance.objects.get(pk=receipt.process_id)
    StepRun.objects.filter(instance=instance).update(queue="elsewhere")
    drain()

    shown = [
        name for name, node in stands(instance).items() if "is-current" in node.classes
    ]

    StepRun.objects.filter(instance=instance).update(queue="default")
    assert shown == ["classify"]


# The page


def test_the_page_shows_what_is_open_and_offers_the_choices(page_of: Read) -> None:
    text = page_of(inquiry())

    assert text.count('data-opens="decide-dialog"') == 2
    for choice in ("accept", "refuse"):
        assert f'data-given="{choice}"' in text


def test_the_table_of_steps_is_narrowed_by_step_status_and_text(page_of: Read) -> None:
    instance = inquiry(pages=5, trouble="page")

    def rows(query: str) -> int:
        return len(re.findall(r'id="run-\d+"', page_of(instance, query)))

    assert rows("?step=read_page") == 6
    assert rows("?state=failed") == 1
    assert rows("?search=torn") == 1
    assert rows("?search=%234") == 1
    assert rows("?search=nothing-like-it") == 0
    assert rows("?state=open") == 1


def test_the_history_tells_of_elements_together(page_of: Read) -> None:
    text = page_of(inquiry(pages=20))

    assert re.search(r"Read page</b>\s*<span class=\"soft\">\s*\d+ elements", text)


def test_a_long_result_is_cut_and_can_be_had_whole(
    page_of: Read, operating: Client
) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="collect")
    rows = StepRun.objects.filter(pk=run.pk)
    rows.update(result="PAGE " * 2_000 + "500")
    text = page_of(instance, "?step=collect")

    whole = operating.get(f"/processes/{instance.pk}/steps/{run.pk}/result.json")

    rows.update(result=run.result)
    assert "PAGE 500" not in text
    assert "PAGE 500" in json.loads(whole.content)
    assert "attachment" in whole["Content-Disposition"]


def test_the_file_of_a_result_is_called_as_its_step_in_any_script(
    operating: Client,
) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="classify")
    StepRun.objects.filter(pk=run.pk).update(node="分類")

    answer = operating.get(f"/processes/{instance.pk}/steps/{run.pk}/result.json")

    name = quote("分類.json")
    assert answer["Content-Disposition"] == f"attachment; filename*=utf-8''{name}"
    StepRun.objects.filter(pk=run.pk).update(node="classify")


def test_a_sub_process_is_linked_both_ways(page_of: Read, operating: Client) -> None:
    instance = inquiry()
    decide(operating, instance, "accept")
    drain()
    skip(operating, instance, "payment", '{"ticket": "T-1"}')
    drain()
    child = ProcessInstance.objects.get(name="helpdesk-billing")

    assert f"/processes/{child.pk}/" in page_of(instance)
    assert f"/processes/{instance.pk}/" in page_of(child)
    instance.refresh_from_db()
    assert instance.status == "completed"
    assert "booked T-1" in page_of(instance)


def test_the_fragments_are_well_formed(operating: Client) -> None:
    instance = inquiry()

    text = operating.get(
        f"/processes/{instance.pk}/?since=1", headers=FRAGMENTS
    ).content

    assert text.count(b"<hx-partial") == text.count(b"</hx-partial>") == 14


def test_the_definition_counts_who_stands_where() -> None:
    inquiry("T-1")
    inquiry("T-2")

    definition = Definition.objects.get(name="helpdesk-inquiry")
    found = standing(definition, [node.id for node in Inquiry.graph().nodes])

    assert found.steps == {"verdict": {"active": 0, "waiting": 2, "failed": 0}}
    listed = Filters.from_query(QueryDict("definition=helpdesk-inquiry&step=verdict"))
    assert listed.applied().count() == 2


def test_the_definition_page_has_a_table_of_steps_with_policies(
    operating: Client,
) -> None:
    inquiry()

    text = operating.read("/definitions/helpdesk-inquiry/")

    assert "0 retries" in text
    assert "undone by retract" in text
    assert "until is clear, at most 3 times" in text


# Buttons


def decide(client: Client, instance: ProcessInstance, choice: str, **more: Any) -> Any:
    instance.refresh_from_db()
    run = StepRun.objects.get(instance=instance, node="verdict", finished_at=None)
    address = f"/processes/{instance.pk}/steps/{run.pk}/decide/"
    return client.post(
        address, form(instance, choice=choice, **more), headers=FRAGMENTS
    )


def act(client: Client, instance: ProcessInstance, name: str, **more: Any) -> Any:
    address = f"/processes/{instance.pk}/{name}/"
    return client.post(address, form(instance, **more), headers=FRAGMENTS)


def skip(client: Client, instance: ProcessInstance, step: str, given: str) -> Any:
    instance.refresh_from_db()
    run = StepRun.objects.get(instance=instance, node=step, finished_at=None)
    address = f"/processes/{instance.pk}/steps/{run.pk}/skip/"
    return client.post(address, form(instance, json=given), headers=FRAGMENTS)


def test_a_decision_moves_the_process_on(operating: Client) -> None:
    instance = inquiry()

    answer = decide(operating, instance, "refuse")
    drain()

    assert answer.status_code == 200
    instance.refresh_from_db()
    assert instance.status == "completed"
    assert OperatorAction.objects.get().action == "decide"


def test_a_choice_that_is_none_is_refused(operating: Client) -> None:
    instance = inquiry()

    assert decide(operating, instance, "perhaps").status_code == 409
    assert stands(instance)["verdict"].classes[0] == "is-waiting"


def test_a_stale_decision_is_refused(operating: Client) -> None:
    instance = inquiry()

    answer = decide(operating, instance, "accept", revision=instance.revision - 1)

    assert answer.status_code == 409
    assert "has changed since the page was loaded" in answer.content.decode()


def test_deciding_twice_decides_once(operating: Client) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="verdict")
    pressed = form(instance, choice="accept")
    address = f"/processes/{instance.pk}/steps/{run.pk}/decide/"

    answers = [operating.post(address, pressed, headers=FRAGMENTS) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert OperatorAction.objects.count() == 1


def test_questions_are_listed_until_they_are_answered(operating: Client) -> None:
    instance = inquiry()
    assert asked().count() == 1
    assert "T-1" in operating.read("/decisions/")

    run = StepRun.objects.get(instance=instance, node="verdict")
    answer = operating.post(
        f"/processes/{instance.pk}/steps/{run.pk}/decide/",
        form(instance, choice="refuse"),
        headers={**FRAGMENTS, "HX-Current-URL": "http://testserver/decisions/"},
    )

    assert "Nothing is waiting for a decision." in answer.content.decode()
    assert not asked().exists()


def test_a_failed_step_is_skipped_with_a_result(operating: Client) -> None:
    instance = inquiry(trouble="reply")
    decide(operating, instance, "accept")
    drain()
    assert stands(instance)["reply"].classes == ("is-failed", "is-current")

    answer = skip(operating, instance, "reply", '"sent by hand"')
    drain()

    assert answer.status_code == 200
    assert stands(instance)["reply"].classes == ("is-skipped",)
    assert stands(instance)["payment"].classes[0] == "is-waiting"


@cases(
    "given, status, said",
    ("{", 400, "This is not JSON"),
    ('{"a": 1, "a": 2}', 400, "This is not JSON"),
    ("17", 409, "no result of Payment"),
    ('{"tocket": "T-1"}', 409, "no result of Payment"),
)
def test_a_result_that_is_none_is_refused_with_the_place(
    given: str, status: int, said: str, operating: Client
) -> None:
    instance = inquiry()
    decide(operating, instance, "accept")
    drain()

    answer = skip(operating, instance, "payment", given)

    assert answer.status_code == status
    assert said in answer.content.decode()


def test_a_step_is_redone(operating: Client) -> None:
    instance = inquiry()

    answer = act(operating, instance, "redo", node="find_pages")
    drain()

    assert answer.status_code == 200
    assert StepRun.objects.filter(instance=instance, node="find_pages").count() == 2


def test_a_process_resumes_from_a_checkpoint(operating: Client) -> None:
    instance = inquiry()

    answer = act(operating, instance, "resume", to=2)
    drain()

    assert answer.status_code == 200
    assert stands(instance)["verdict"].classes == ("is-waiting", "is-current")


def test_what_was_given_up_by_resuming_is_not_drawn(operating: Client) -> None:
    instance = inquiry()
    decide(operating, instance, "accept")
    drain()
    before = StepRun.objects.get(instance=instance, node="verdict").entered
    assert stands(instance)["reply"].classes == ("is-done",)
    instance.refresh_from_db()

    act(operating, instance, "resume", to=before)

    assert stands(instance)["verdict"].classes == ("is-waiting", "is-current")
    assert stands(instance)["reply"].classes == ("is-possible",)
    assert edges(instance)[("verdict", "reply")] == "is-possible"


def test_a_process_is_cancelled(operating: Client) -> None:
    instance = inquiry()

    answer = act(operating, instance, "cancel")
    drain()

    assert answer.status_code == 200
    instance.refresh_from_db()
    assert instance.status == "cancelled"


def test_restarting_leads_to_the_new_process(operating: Client) -> None:
    instance = inquiry()
    act(operating, instance, "cancel")
    instance.refresh_from_db()
    given = json.dumps({**instance.data, "pages": 7})

    answer = act(operating, instance, "restart", json=given)
    drain()

    new = ProcessInstance.objects.exclude(pk=instance.pk).get()
    assert new.data["pages"] == 7
    assert f'href="/processes/{new.pk}/"' in answer.content.decode()


def test_bad_input_of_a_restart_is_refused_with_its_place(operating: Client) -> None:
    instance = inquiry()
    given = json.dumps({**instance.data, "pages": "many"})

    answer = act(operating, instance, "restart", json=given)

    assert answer.status_code == 409
    assert "pages" in answer.content.decode()


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


def test_the_steps_of_a_large_definition_are_paged_and_searched(
    operating: Client,
) -> None:
    start_process(Lattice, Lattice.Input(30, 10))
    address = "/definitions/helpdesk-lattice/"

    first = operating.read(address)
    third = operating.read(f"{address}?page=3")
    found = operating.read(f"{address}?search=work+29+9")

    assert "1\N{EN DASH}100" in first
    assert "201\N{EN DASH}300" in third
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

    view = workflow_view(instance, RunFilters(state="open"))
    text = page_of(instance)

    assert f"{view.number_open}</b>" in text.partition("Open steps")[2][:40]
    assert len(view.runs.rows) == view.number_open
    assert text.count('id="open-') + view.more_open == view.number_open
