"""S11, versions: what runs on each, two side by side, the preview of a migration, and the past on its own picture."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from examples.order_listing.messages import (
    Destination,
    ExternalOrderRejected,
    OrderCreated,
)
from monitoring.definition.versions import listing
from monitoring.definition.versions.listing import versions_page
from monitoring.definition.versions.preview import LOOKED_AT
from monitoring.process.page import instance_page
from orchestrator import registry
from orchestrator.engine.operations import escalate, migrate
from orchestrator.models import (
    BulkOperation,
    Definition,
    OperatorAction,
    ProcessInstance,
)
from tests.apps.versions import claims
from tests.apps.versions.claims import Claim, ClaimAssessed, ClaimWithoutAssessor
from tests.apps.versions.desk import filed, now, only, tell, written
from tests.apps.versions.fixtures import versions
from tests.services.asking import asked
from tests.services.bulk import frozen, verdicts, worked_on
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.pressing import form, pressed

__all__ = ["versions"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("versions")]

CLAIMS = "/definitions/claim/versions/"
COMPARE = f"{CLAIMS}compare/"


@pytest.fixture(autouse=True)
def nothing_paid() -> Iterator[None]:
    yield
    claims.paid.clear()


def text(client: Client, address: str, **given: Any) -> str:
    page = client.read(address, given)
    return re.sub(r"\s+", " ", page)


def migrated(process: ProcessInstance, to: int = 2) -> ProcessInstance:
    migrate(process.pk, to, {}, request=asked())
    return process


# S11.1


def test_s11_1_each_version_has_what_runs_on_it_since_when(operating: Client) -> None:
    times = [filed(f"C-{n}", version=n).started_at for n in (1, 2)]

    page = versions_page("claim")

    rows = [(row.number, row.live.number, row.code) for row in page.rows]
    assert rows == [(2, 1, "there"), (1, 1, "there")]
    assert [row.first for row in page.rows] == [*reversed(times)]
    assert [row.last for row in page.rows] == [*reversed(times)]
    assert (page.target, page.warned) == (2, [])
    shown = text(operating, CLAIMS)
    assert "/processes/?definition=claim&amp;version=1&amp;status=live" in shown
    assert "compare/?from=1&amp;to=2" in shown
    assert CLAIMS in text(operating, "/definitions/claim/")


def test_s11_1_what_is_not_counted_is_at_least_so_many(
    operating: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        filed(f"C-{number}")
    monkeypatch.setattr("monitoring.queries.counts.count_rows.__defaults__", (2,))

    assert "at least 2" in text(operating, CLAIMS)


def test_s11_1_a_version_that_the_code_lacks_is_warned_of(operating: Client) -> None:
    filed("C-1")
    with only("claim", 2):
        shown = text(operating, CLAIMS)
        (row,) = versions_page("claim").warned

    assert "The running code has no version 1 any more" in shown
    assert row.code == "gone"


def test_s11_1_steps_that_the_code_lacks_are_named_with_their_number(
    operating: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    filed("C-1")
    filed("C-2")
    with monkeypatch.context() as other:
        other.setitem(registry.definitions, (Claim.name, 1), ClaimWithoutAssessor)
        shown = text(operating, CLAIMS)
        (row,) = versions_page("claim").warned

    [lacking] = row.lacking
    assert row.code == "changed"
    assert (lacking.step, str(lacking.number)) == ("WithAssessor", "2")
    assert "step=WithAssessor" in shown


def test_s11_1_the_code_says_which_one_it_is(operating: Client, settings: Any) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "CODE_REVISION": "v7-12-gabc"}
    filed("C-1")

    assert Definition.objects.get(name="claim").code_revision == "v7-12-gabc"
    assert "v7-12-gabc" in text(operating, CLAIMS)


def test_s11_1_there_are_no_more_questions_for_more_processes(
    operating: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        filed(f"C-{number}")
    with django_assert_max_num_queries(30):
        text(operating, CLAIMS)


def test_s11_1_only_the_newest_versions_are_shown(
    operating: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    filed("C-1")
    filed("C-2", version=2)
    monkeypatch.setattr(listing, "VERSIONS", 1)

    assert "There are older versions" in text(operating, CLAIMS)


@cases(
    "address",
    *("/definitions/nothing/versions/", "/definitions/nothing/versions/compare/"),
    *(f"{COMPARE}?{query}" for query in ("from=9", "to=x", "from=²")),
)
def test_s11_what_was_never_seen_is_not_found(address: str, operating: Client) -> None:
    filed("C-1")
    assert operating.get(address).status_code == 404


# S11.2


def test_s11_2_differences_have_signs_words_and_outlines(operating: Client) -> None:
    filed("C-1")
    filed("C-2", version=2)

    shown = text(operating, COMPARE, **{"from": 1, "to": 2, "map.WithAssessor": ""})

    left, _, right = shown.partition('id="side-new"')
    for side, sign, step, said in (
        (left, "removed", "WithAssessor", "With assessor: removed"),
        (left, "changed", "Filed", "Filed: changed, the ways out"),
        (right, "added", "SeenTwice", "Seen twice: added"),
    ):
        assert re.search(rf'is-{sign}" data-node="{step}"', side)
        assert said in side


def test_s11_2_steps_are_mapped_as_the_code_says_or_by_name(operating: Client) -> None:
    filed("C-1")
    filed("C-2", version=2)

    shown = text(operating, COMPARE, **{"from": 1, "to": 2})

    chosen = re.findall(r'name="map.(\w+)".*?value="(\w*)" selected', shown)
    assert chosen == [("WithAssessor", "BeingAssessed"), ("AtTheBank", "AtTheBank")]


def test_s11_2_a_version_beside_itself_differs_in_nothing(operating: Client) -> None:
    filed("C-1")
    shown = text(operating, COMPARE, **{"from": 1, "to": 1})
    assert "Nothing differs." in shown
    assert "Preview a migration" not in shown


# S11.3


def preview(query: str = "", name: str = "claim") -> str:
    return f"/definitions/{name}/versions/compare/?from=1&to=2&preview=1{query}"


def test_s11_3_a_preview_says_how_many_go_where_or_not(operating: Client) -> None:
    with only("claim", 1):
        for number in range(3):
            filed(f"C-{number}")
        tell(ClaimAssessed("C-2", 7))
    filed("C-9", version=2)

    shown = text(operating, preview("&map.AtTheBank=&map.WithAssessor=SeenTwice"))

    assert "All 3 that match were looked at; 2 can go over." in shown
    row = r"<td>With assessor</td> <td[^>]*>Seen twice</td> <td[^>]*>2</td>"
    assert re.search(row, shown)
    assert "no step that At the bank is mapped to" in shown
    assert not OperatorAction.objects.exists()


def test_s11_3_a_chosen_subset_is_frozen_and_carried_over(operating: Client) -> None:
    some = [filed(f"C-{number}") for number in range(3)]

    answer = pressed(operating, preview("&q=C-1"), reason="the new form")

    assert answer.status_code == 302
    operation = worked_on(BulkOperation.objects.get())
    assert (operation.action, operation.total) == ("migrate", 1)
    assert verdicts(operation) == {"done": 1}
    assert [now(one).definition.version for one in some] == [1, 2, 1]
    row = OperatorAction.objects.get(action="migrate")
    assert (row.reason, row.bulk_id) == ("the new form", operation.pk)


def test_s11_3_pressed_twice_there_is_one_operation(operating: Client) -> None:
    filed("C-1")
    given = form(operating.read(preview()))

    first, second = (operating.post(preview(), given) for _ in range(2))

    assert first["Location"] == second["Location"]
    assert BulkOperation.objects.count() == 1


def test_s11_3_what_has_moved_since_is_left_as_it_is(operating: Client) -> None:
    claim, other = filed("C-1"), filed("C-2")
    pressed(operating, preview())
    operation = frozen(BulkOperation.objects.get())
    escalate(claim.pk, request=asked())

    worked_on(operation)

    assert verdicts(operation) == {"skipped": 1, "done": 1}
    assert [now(one).definition.version for one in (claim, other)] == [1, 2]


def test_s11_3_each_item_that_cannot_says_why(operating: Client) -> None:
    with only("claim", 1):
        filed("C-1")
        filed("C-2")
        tell(ClaimAssessed("C-2", 7))

    given_up = '{"AtTheBank": ""}'
    pressed(operating, preview("&map.AtTheBank="), steps=given_up)
    operation = worked_on(BulkOperation.objects.get())

    assert verdicts(operation) == {"done": 1, "refused": 1}
    shown = text(operating, f"/operations/{operation.pk}/")
    assert "no step that At the bank is mapped to" in shown


def test_s11_3_who_may_not_migrate_sees_why(viewing: Client) -> None:
    filed("C-1")

    assert re.search(r'id="begin-button"[^>]*disabled', text(viewing, preview()))
    assert pressed(viewing, preview()).status_code == 403
    assert not BulkOperation.objects.exists()


def test_s11_3_nothing_begins_without_a_reason(operating: Client) -> None:
    filed("C-1")

    assert pressed(operating, preview(), reason="").status_code == 400
    assert not BulkOperation.objects.exists()


def test_s11_3_an_order_goes_over_and_takes_its_next_event(operating: Client) -> None:
    with only("order-listing", 1):
        tell(OrderCreated("O-1", Destination.EXTERNAL, "50 MWh"))
    order = ProcessInstance.objects.select_related("definition").get()
    assert order.definition.version == 1

    pressed(operating, preview(name="order-listing"))
    operation = worked_on(BulkOperation.objects.get())
    tell(ExternalOrderRejected("no such market"), order.pk)

    assert verdicts(operation) == {"done": 1}
    after = now(order)
    assert (after.definition.version, after.step) == (2, "Completed")


# S11.4


def test_s11_4_the_past_is_drawn_on_its_own_version(operator: User) -> None:
    claim = migrated(filed("C-1"))

    then = instance_page(claim.pk, operator, at=1)
    today = instance_page(claim.pk, operator).state

    assert then.instance.definition.version == 1
    assert set(then.state.nodes) == {"Filed", "WithAssessor", "AtTheBank", "Closed"}
    assert "is-current" in then.state.nodes["WithAssessor"].classes
    assert "is-current" in today.nodes["BeingAssessed"].classes
    assert sum("is-done" in how for how in today.edges.values()) == 1


def test_s11_4_the_switch_is_in_the_history(operating: Client, operator: User) -> None:
    claim = migrated(filed("C-1"))

    entries = instance_page(claim.pk, operator).history.entries
    (row,) = [entry for entry in entries if entry.revision == 2]

    changed = {one.name: (one.before, one.after) for one in row.changes}
    assert changed["version"] == (1, 2)
    assert changed["step"] == ("With assessor", "Being assessed")
    assert changed["cents"][1] == 700
    assert "Migrate by operator" in text(operating, f"/processes/{claim.pk}/")


def test_s11_4_a_workflows_past_has_the_names_of_its_own_time(operator: User) -> None:
    letter = written()
    before = letter.revision
    migrated(letter)

    then = instance_page(letter.pk, operator, at=before).state.nodes
    today = instance_page(letter.pk, operator)

    assert set(then) == {"draft", "approval", "post"}
    assert "is-done" in then["draft"].classes
    assert "is-current" in then["approval"].classes
    assert "is-done" in today.state.nodes["written"].classes
    told = {e.revision: e.what for e in today.history.entries if e.revision}
    assert told[before] == "Draft"
    (switch,) = [e for e in today.history.entries if e.revision == before + 1]
    assert ("Draft", "Written") in [(c.before, c.after) for c in switch.changes]


def test_s11_4_what_was_given_up_is_still_seen_in_the_past(operator: User) -> None:
    letter = written()
    before = letter.revision
    migrated(letter, to=8)

    then = instance_page(letter.pk, operator, at=before)

    assert "is-done" in then.state.nodes["draft"].classes
    assert "draft" not in instance_page(letter.pk, operator).state.nodes


def test_s11_4_an_open_page_gets_the_new_picture(operating: Client) -> None:
    claim = filed("C-1")
    page = f"/processes/{claim.pk}/"
    [drawn] = re.findall(r'id="drawing"[^>]*data-drawn="(\w+)"', operating.read(page))
    migrated(claim)

    live = {"HX-Request": "true"}
    sent = operating.read(f"{page}?since=1&drawn={drawn}", headers=live)

    assert 'hx-target="#drawing"' in sent
    assert 'data-node="BeingAssessed"' in sent


def test_s11_4_beside_now_each_has_its_own_picture(operating: Client) -> None:
    claim = migrated(filed("C-1"))

    shown = text(operating, f"/processes/{claim.pk}/", at=1, beside="now")

    left, _, right = shown.partition('id="drawing-now"')
    assert 'data-node="WithAssessor"' in left
    assert 'data-node="BeingAssessed"' in right
    assert 'data-node="WithAssessor"' not in right


def test_s11_4_earlier_events_are_told_in_a_scrolled_history(operating: Client) -> None:
    claim = migrated(filed("C-1"))
    tell(ClaimAssessed("C-1", 1), claim.pk)

    shown = text(operating, f"/processes/{claim.pk}/history-rows", before=3)

    assert "With assessor" in shown
    assert "Being assessed" in shown


def test_s11_3_the_docs_say_how_many_processes_a_preview_plans() -> None:
    page = Path(__file__).parents[2] / "docs" / "console.md"
    said = f"It plans the newest {LOOKED_AT} processes that match"
    assert said in page.read_text()
