"""The page of a repair, as a browser without scripts uses it."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.operations import draft_of, propose_repair, stage
from orchestrator.models import Definition, OperatorAction, ProcessInstance, Repair
from tests.apps.compensation import processes
from tests.apps.compensation.journal import faults
from tests.apps.patterns.desk import finished, visits
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import known
from tests.apps.process_managers.messages import (
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.conftest import OPERATOR_MAY, person
from tests.engine.test_repair_drafts import MOVE, RETRY
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.doing import fresh
from tests.services.pressing import hidden

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module", autouse=True)
def trips() -> Iterator[None]:
    """Let the running code have a workflow too."""
    yield from known(processes.Trip, processes.Block)


def address(process: ProcessInstance, more: str = "") -> str:
    return f"/processes/{process.pk}/repair/{more}"


def text(client: Client, process: ProcessInstance, query: str = "") -> str:
    return client.read(address(process) + query)


def put(client: Client, process: ProcessInstance, **given: str) -> Any:
    """Stage an edit with the form."""
    return client.post(address(process, "stage/"), given)


def form_of(page: str, name: str) -> dict[str, str]:
    """Return what the hidden fields of the form with this id, or address, say."""
    (form,) = re.findall(rf"<form[^>]*{name}.*?</form>", page, re.DOTALL)
    return {name: unescape(value) for name, value in hidden(form).items()}


def edits(process: ProcessInstance, user: User) -> list[Any]:
    """What somebody has staged."""
    draft = draft_of(process, user)
    return [] if draft is None else draft.edits


def press(
    client: Client, process: ProcessInstance, action: str, form: str, reason: str = "x"
) -> Any:
    """Press a button of the page that has this form."""
    given = form_of(text(client, process), form)
    place = f"/processes/{process.pk}/{action}/"
    return client.post(place, {**given, "reason": reason})


MOVED = "The process has moved since you began"


def test_s7_1_opening_it_writes_nothing_and_says_its_mode(operating: Client) -> None:
    """The page of the process leads there."""
    parcel = place()
    page = operating.read(f"/processes/{parcel.pk}/")
    assert address(parcel) in page
    assert "repair-dialog" not in page

    shown = text(operating, parcel)

    assert "Repair mode" in shown
    assert "Nothing is staged." in shown
    assert not OperatorAction.objects.exists()
    assert not Repair.objects.exists()


def test_s7_1_what_is_staged_survives_a_reload_as_a_ghost(operating: Client) -> None:
    parcel = place()

    answer = put(operating, parcel, edit="move", target="Missing")
    shown = text(operating, parcel)

    assert answer.status_code == 302
    for node, ghost in (("Missing", "has-ghost"), ("Packing", "has-left")):
        [tag] = re.findall(rf'<[^>]*data-node="{node}"[^>]*>', shown)
        assert ghost in tag
    assert (fresh(parcel).step, OperatorAction.objects.count()) == ("Packing", 0)


def test_s7_1_each_is_undone_by_its_button_and_all_are_discarded(
    operating: Client, operator: User
) -> None:
    parcel = place()
    stage(parcel, operator, MOVE)
    stage(parcel, operator, RETRY)

    operating.post(address(parcel, "undo/"), {"place": "0"})
    assert edits(parcel, operator) == [RETRY]
    operating.post(address(parcel, "discard/"))
    assert draft_of(parcel, operator) is None


@cases(
    "staged",
    [{"edit": "move", "target": "OnTheWay"}, {"edit": "retry"}],
    [{"edit": "event", "target": "ParcelPacked", "value": '{"weight": 1}'}] * 2,
)
def test_s7_1_a_button_that_is_pressed_twice_takes_one_edit_out(
    staged: list[dict[str, str]], operating: Client, operator: User
) -> None:
    parcel = place()
    for edit in staged:
        assert put(operating, parcel, **edit).status_code == 302
    form = undo_of(operating, parcel)

    for _ in range(2):
        operating.post(address(parcel, "undo/"), form)
    assert len(edits(parcel, operator)) == 1
    operating.post(address(parcel, "undo/"), undo_of(operating, parcel))
    assert draft_of(parcel, operator) is None


def undo_of(client: Client, parcel: ProcessInstance) -> dict[str, str]:
    """Return what the form sends that takes the first edit out."""
    forms = r'action="[^"]*/undo/">(.*?)</form>'
    first = re.findall(forms, text(client, parcel), re.DOTALL)[0]
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', first))


def test_s7_2_the_summary_has_the_difference_and_warns_of_what_runs_again(
    operating: Client,
) -> None:
    parcel = underway()
    tell(parcel, ParcelScanned("P-1", "Osaka"))
    data = {**parcel.data, "note": "by hand"}
    put(operating, parcel, edit="data", value=json.dumps(data))
    scan = '{"parcel_id": "P-1", "place": "Kobe"}'
    put(operating, parcel, edit="event", target="ParcelScanned", value=scan)

    shown = text(operating, parcel)

    assert "<ins>by hand</ins>" in shown
    assert re.search(r'class="wrong".*CountScan.*not idempotent', shown, re.DOTALL)


def test_s7_3_the_form_applies_all_of_it_with_one_row(operating: Client) -> None:
    parcel = place()
    put(operating, parcel, edit="data", value=json.dumps({**parcel.data, "note": "x"}))
    put(operating, parcel, edit="move", target="OnTheWay")

    answer = press(operating, parcel, "repair", 'id="apply"', "the event was lost")

    assert answer.status_code == 302
    assert (fresh(parcel).step, parcel.data["note"]) == ("OnTheWay", "x")
    action = OperatorAction.objects.get()
    assert (action.action, action.reason) == ("repair", "the event was lost")
    assert not Repair.objects.exists()
    ledger = operating.read(f"/processes/{parcel.pk}/")
    assert ledger.count("Repair by operator") == 1


def test_s7_3_what_has_moved_is_not_repaired(operating: Client, operator: User) -> None:
    parcel = place()
    stage(parcel, operator, {"edit": "move", "target": "Missing"})
    form = form_of(text(operating, parcel), 'id="apply"')
    tell(parcel, ParcelPacked(3))

    answer = operating.post(address(parcel), {**form, "reason": "x"})
    assert answer.status_code == 409
    assert "ParcelPacked" in answer.content.decode()
    assert MOVED in text(operating, parcel)
    answer = press(operating, parcel, "repair/look-again", "look-again")
    assert answer.status_code == 302
    assert MOVED not in text(operating, parcel)


def test_s7_3_who_has_looked_at_a_page_that_is_over_is_asked_to_look_again(
    operating: Client, operator: User
) -> None:
    parcel = place()
    stage(parcel, operator, {"edit": "move", "target": "Missing"})
    tell(parcel, ParcelPacked(3))
    seen = form_of(text(operating, parcel), "look-again")
    tell(parcel, ParcelDelivered(parcel.correlation_key))

    assert operating.post(address(parcel, "look-again/"), seen).status_code == 302

    assert MOVED in text(operating, parcel)


def test_s7_3_a_viewer_sees_the_buttons_with_a_reason_why_not(viewing: Client) -> None:
    parcel = place()

    shown = text(viewing, parcel)

    assert "Your account may not do this." in shown
    assert shown.count('disabled aria-describedby="no-staging"') == 4
    assert put(viewing, parcel, edit="retry").status_code == 403
    assert not Repair.objects.exists()


def test_s7_5_a_mistake_is_at_its_field_with_what_was_said(operating: Client) -> None:
    parcel = place()
    data = json.dumps({**parcel.data, "courier": "nobody"})

    answer = put(operating, parcel, edit="data", value=data)

    shown = answer.content.decode()
    assert answer.status_code == 400
    assert re.search(r'id="data-value-wrong"[^>]*>\s*<code>courier</code>', shown)
    assert 'aria-invalid="true" aria-describedby="data-value-wrong"' in shown
    assert "nobody&quot;" in shown


@cases("value", "", "{", "NaN", '{"a": 1, "a": 2}', "[" * 100, '"\\u0000"', HOSTILE, "\ud800")  # fmt: skip
def test_s7_5_what_is_no_json_is_told_as_text(value: str, operating: Client) -> None:
    form = f"edit=data&value={value}".encode("utf-8", "surrogatepass")
    kind = "application/x-www-form-urlencoded"

    answer = operating.post(address(place(), "stage/"), form, content_type=kind)

    assert answer.status_code == 400
    assert HOSTILE not in answer.content.decode()


@cases(
    "name, given, status",
    ("stage", {}, 409),
    ("stage", {"edit": HOSTILE}, 409),
    ("stage", {"edit": "move", "target": "x" * 500}, 409),
    ("stage", {"edit": "move", "target": HOSTILE}, 400),
    ("undo", {"place": "x"}, 302),
    ("undo", {"place": "²"}, 302),
    ("undo", {}, 302),
    ("nothing", {}, 404),
)
def test_s7_5_hostile_forms_are_answered(
    name: str, given: dict[str, str], status: int, operating: Client
) -> None:
    answer = operating.post(address(place(), f"{name}/"), given)

    assert answer.status_code == status
    assert HOSTILE not in answer.content.decode()


def test_s7_5_steps_that_cannot_be_chosen_say_why(operating: Client) -> None:
    shown = text(operating, place())

    (ordered,) = re.findall(r'<option value="Ordered"[^>]*>[^<]*', shown)
    assert "disabled" in ordered
    assert "processes start there" in ordered


def test_s7_1_a_workflows_step_is_skipped(operating: Client, operator: User) -> None:
    faults["flight"] = Exception("no line")
    process = finished(processes.Trip)
    faults.clear()
    (run,) = visits(process, "flight")

    shown = text(operating, process, "?step=flight")
    assert "Stage a skip with this result" in shown
    skip = {"edit": "skip", "target": str(run.pk), "value": '"on foot"'}
    put(operating, process, step="flight", **skip)

    assert "<ins>on foot</ins>" in text(operating, process)
    assert edits(process, operator)[0]["value"] == "on foot"


def test_s7_1_of_many_elements_a_few_are_shown_and_any_is_found_by_its_number(
    operating: Client, django_assert_max_num_queries: Any
) -> None:
    process = finished(processes.Block, "Ito", 60)
    one = process.step_runs.get(node="reserve", item=7)

    with django_assert_max_num_queries(200):
        shown = text(operating, process, "?step=reserve")
    assert shown.count('class="visit"') == 20
    assert f'id="value-{one.pk}"' not in shown
    found = text(operating, process, "?step=reserve&item=7")
    assert found.count('class="visit"') == 1
    assert f'id="value-{one.pk}"' in found


def test_s7_3_a_process_whose_code_is_gone_says_so(operating: Client) -> None:
    parcel = place()
    Definition.objects.update(version=99)
    shown = text(operating, parcel)
    Definition.objects.update(version=1)
    assert "This process cannot be repaired:" in shown


def test_s7_4_another_person_applies_what_was_proposed(operating: Client) -> None:
    parcel, other = place(), person("other", *OPERATOR_MAY)
    propose_repair(parcel.pk, [MOVE], request=asked(actor=other, reason="it was lost"))
    assert "Proposed by other" in text(operating, parcel)

    form = f'action="/processes/{parcel.pk}/approve_repair/"'
    answer = press(operating, parcel, "approve_repair", form)

    assert (answer.status_code, fresh(parcel).step) == (302, "OnTheWay")


def test_s7_4_where_two_are_wanted_the_button_proposes(
    operating: Client, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shipping, "repair_needs_approval", True)
    parcel = place()
    stage(parcel, operator, MOVE)

    press(operating, parcel, "propose_repair", 'id="apply"')

    assert "Whoever has proposed it does not apply it." in text(operating, parcel)
    assert fresh(parcel).step == "Packing"
