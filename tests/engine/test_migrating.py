"""Migrating processes to another version. The invariants are asked after each test."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from monitoring.masking import names_of
from orchestrator import send_event
from orchestrator.definition.secrets import Secrets
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import (
    cancel,
    migrate,
    pause,
    plan_migration,
    resume,
    switches_of,
    unpause,
)
from orchestrator.exceptions import (
    NotCarried,
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import (
    Checkpoint,
    Definition,
    IssuedCommand,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time, run
from tests.apps.versions import claims
from tests.apps.versions.claims import (
    ClaimAssessed,
    ClaimPaid,
    SecondOpinionGiven,
)
from tests.apps.versions.desk import filed, now, only, tell, written
from tests.apps.versions.fixtures import versions
from tests.apps.versions.letters import Approved
from tests.services.asking import asked

__all__ = ["versions"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("versions")]


@pytest.fixture(autouse=True)
def nothing_paid() -> Iterator[None]:
    yield
    claims.paid.clear()


def steps(process: ProcessInstance) -> list[tuple[str, str]]:
    rows = StepRun.objects.filter(instance=process).order_by("pk")
    return [(row.node, row.status) for row in rows]


# Process managers


def test_a_process_goes_on_with_the_steps_and_the_data_of_the_other_version() -> None:
    claim = filed()
    assert claim.definition.version == 1

    migrate(claim.pk, 2, {}, request=asked())

    claim = now(claim)
    assert claim.definition.version == 2
    assert (claim.step, claim.status) == ("BeingAssessed", "waiting")
    assert claim.data == {"claim": "C-1", "cents": 700, "currency": "EUR"}
    assert steps(claim) == [
        ("Filed", "done"),
        ("WithAssessor", "done"),
        ("BeingAssessed", "waiting"),
    ]
    tell(ClaimAssessed("C-1", 7))
    assert now(claim).step == "SeenTwice"
    tell(SecondOpinionGiven("C-1"))
    tell(ClaimPaid("C-1"))
    assert now(claim).status == "completed"
    assert claims.paid == ["C-1"]


def test_the_switch_is_a_checkpoint_and_an_audit_row() -> None:
    claim = filed()
    request = asked(reason="cents")

    migrate(claim.pk, 2, {}, request=request)

    last = Checkpoint.objects.filter(instance=claim).latest("revision")
    assert (last.cause, last.steps, last.edge) == (
        f"operator:{request.key}",
        ["BeingAssessed"],
        "",
    )
    row = OperatorAction.objects.get(action="migrate")
    assert (row.before["version"], row.after["version"]) == (1, 2)
    assert row.before["data"] == {"claim": "C-1", "amount": 7}
    assert row.after["data"] == {"claim": "C-1", "cents": 700, "currency": "EUR"}
    assert row.after["steps"] == {"WithAssessor": "BeingAssessed"}
    (switch,) = switches_of(claim)
    assert (switch.revision, switch.version) == (last.revision, 1)
    assert switch.was("BeingAssessed") == "WithAssessor"


def test_what_a_person_says_of_a_step_counts_beyond_what_the_code_says() -> None:
    claim = filed()

    migrate(claim.pk, 2, {"WithAssessor": "SeenTwice"}, request=asked())

    assert now(claim).step == "SeenTwice"


def test_deadlines_count_from_when_the_step_was_reached() -> None:
    claim = filed()
    pass_time(timedelta(minutes=50))

    migrate(claim.pk, 2, {}, request=asked())
    pass_time(timedelta(minutes=11))
    run()

    assert now(claim).escalation_level == 1
    pass_time(timedelta(hours=1, minutes=50))
    run()
    assert now(claim).escalation_level == 1
    pass_time(timedelta(minutes=10))
    run()
    assert now(claim).escalation_level == 2


def test_a_paused_process_stays_paused_and_keeps_what_was_left() -> None:
    claim = filed()
    pass_time(timedelta(minutes=30))
    pause(claim.pk, request=asked())
    pass_time(timedelta(minutes=45))

    migrate(claim.pk, 2, {}, request=asked())
    assert now(claim).status == "paused"
    unpause(claim.pk, request=asked())
    pass_time(timedelta(minutes=29))
    run()
    assert now(claim).escalation_level == 0
    pass_time(timedelta(minutes=2))
    run()
    assert now(claim).escalation_level == 1


def test_an_event_that_was_parked_is_offered_to_the_new_step() -> None:
    claim = filed()
    with only("claim", 2):
        send_event(
            SecondOpinionGiven("C-1"), id="early", source="test", process_id=claim.pk
        )
    drain()

    migrate(claim.pk, 2, {"WithAssessor": "SeenTwice"}, request=asked())
    drain()

    assert now(claim).step == "AtTheBank"


def test_outside_ids_are_those_that_the_other_version_declares() -> None:
    claim = filed()
    ids = OutsideId.objects.filter(instance=claim).values_list("field", "value")
    assert set(ids) == {("claim", "C-1")}

    migrate(claim.pk, 2, {}, request=asked())

    assert set(ids.all()) == {("claim", "C-1"), ("currency", "EUR")}


def test_what_cannot_be_is_refused_with_the_reason(viewer: User) -> None:
    claim = filed()
    unmapped = "version 2 has no step that WithAssessor is mapped to"
    wanted: list[tuple[Any, Any, str]] = [
        (1, {}, "it is on version 1 already"),
        (9, {}, "no definition claim version 9 in the running code"),
        (2, {"WithAssessor": ""}, unmapped),
        (2, {"WithAssessor": "Nowhere"}, unmapped),
        (2, {"WithAssessor": "Closed"}, "nothing waits in Closed of version 2"),
        (2, {"WithAssessor": "Filed"}, "nothing waits in Filed of version 2"),
        (2, ["WithAssessor"], "name steps as"),
        (2, {"WithAssessor": 1}, "name steps as"),
        (0, {}, "name the version by its number"),
        (True, {}, "name the version by its number"),
    ]
    for version, mapping, why in wanted:
        with pytest.raises(OperationRefused, match=why):
            migrate(claim.pk, version, mapping, request=asked())
    with pytest.raises(StaleRevision):
        migrate(claim.pk, 2, {}, request=asked(expected_revision=claim.revision - 1))
    with pytest.raises(PermissionMissing):
        migrate(claim.pk, 2, {}, request=asked(actor=viewer))
    assert migrate.codename == "migrate_processinstance"
    assert now(claim).definition.version == 1
    assert set(OperatorAction.objects.values_list("result", flat=True)) == {"refused"}

    cancel(claim.pk, request=asked())
    with pytest.raises(OperationRefused, match="ended"):
        migrate(claim.pk, 2, {}, request=asked())


def test_data_that_the_other_version_cannot_read_is_refused() -> None:
    claim = filed(version=2)

    with pytest.raises(OperationRefused, match="its data is not of the form"):
        migrate(claim.pk, 1, {"BeingAssessed": "WithAssessor"}, request=asked())


def test_a_command_under_way_is_waited_for() -> None:
    claim = filed()
    send_event(ClaimAssessed("C-1", 7), id="a", source="test", process_id=claim.pk)
    drain()
    IssuedCommand.objects.filter(instance=claim).update(
        status="running", finished_at=None
    )

    with pytest.raises(OperationRefused, match="the command PayClaim is under way"):
        migrate(claim.pk, 2, {}, request=asked())
    IssuedCommand.objects.filter(instance=claim).update(
        status="done", finished_at=claim.started_at
    )


def test_pressed_twice_it_is_done_once() -> None:
    claim, request = filed(), asked()

    first = migrate(claim.pk, 2, {}, request=request)
    second = migrate(claim.pk, 2, {}, request=request)

    assert first.pk == second.pk
    assert OperatorAction.objects.count() == 1


def test_a_process_whose_code_is_gone_is_carried_to_one_that_is_there() -> None:
    claim = filed()
    with only("claim", 2):
        migrate(claim.pk, 2, {}, request=asked())
        tell(ClaimAssessed("C-1", 7))
        assert now(claim).step == "SeenTwice"


def test_planning_changes_nothing() -> None:
    claim = filed()

    assert plan_migration(claim, 2, {}) == [("WithAssessor", "BeingAssessed")]

    assert now(claim).revision == claim.revision
    assert not OperatorAction.objects.exists()


# Workflows


def test_open_steps_of_a_workflow_go_on_in_the_other_version() -> None:
    letter = written()

    migrate(letter.pk, 2, {}, request=asked())

    letter = now(letter)
    assert letter.definition.version == 2
    assert steps(letter) == [("written", "done"), ("approval", "waiting")]
    tell(Approved("L-1"), letter.pk)
    letter = now(letter)
    assert letter.status == "completed"
    assert steps(letter)[2:] == [("typeset", "done"), ("post", "done")]
    done = StepRun.objects.get(instance=letter, node="typeset")
    assert done.result == "<Dear L-1>"


def test_a_workflow_can_be_resumed_from_before_its_migration() -> None:
    letter = written()
    first = letter.revision
    migrate(letter.pk, 2, {}, request=asked())

    resume(letter.pk, first, request=asked())
    drain()
    tell(Approved("L-1"), letter.pk)

    assert now(letter).status == "completed"


def test_what_a_workflow_cannot_carry_is_refused_with_the_reason() -> None:
    letter = written()
    for version, why in (
        (3, "proofread would have begun after draft, and never ran"),
        (4, "illustrate would have begun at the start, and never ran"),
        (5, "approval is open, and version 5 has no step that it is mapped to"),
        (6, "the result of draft is not of the form that draft gives"),
        (7, "approval is of another kind than approval there"),
    ):
        with pytest.raises(OperationRefused, match=why):
            migrate(letter.pk, version, {}, request=asked())
        with pytest.raises(NotCarried, match=why):
            plan_migration(letter, version, {})
    swapped = {"draft": "approval", "approval": "written"}
    with pytest.raises(OperationRefused, match="is of another kind"):
        migrate(letter.pk, 2, swapped, request=asked())

    assert now(letter).definition.version == 1


def test_what_was_done_in_a_step_that_is_gone_counts_no_more() -> None:
    letter = written()

    migrate(letter.pk, 8, {}, request=asked())
    tell(Approved("L-1"), letter.pk)

    letter = now(letter)
    assert letter.status == "completed"
    assert steps(letter)[0] == ("draft", "superseded")


def test_a_worker_at_a_step_is_left_alone() -> None:
    letter = written()
    StepRun.objects.filter(instance=letter, node="approval").update(
        owner="w", attempt=1
    )

    with pytest.raises(OperationRefused, match="a worker is at approval now"):
        migrate(letter.pk, 2, {}, request=asked())

    StepRun.objects.filter(instance=letter).update(owner="", attempt=0)


def test_input_becomes_that_of_the_other_version() -> None:
    letter = written()
    migrate(letter.pk, 2, {}, request=asked())
    letter = now(letter)
    assert letter.data["language"] == "en"
    with pytest.raises(OperationRefused, match="its data is not of the form"):
        migrate(letter.pk, 1, {"written": "draft"}, request=asked())


def test_what_was_secret_in_the_old_version_stays_so_in_what_it_has_left() -> None:
    claim = filed()
    rows = Definition.objects.filter(pk=claim.definition_id)
    rows.update(secrets=Secrets(frozenset({"amount"})).to_json())

    migrate(claim.pk, 2, {}, request=asked())

    assert "amount" in names_of(now(claim).definition)
