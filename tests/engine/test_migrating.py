"""Migrating processes to another version. The invariants are asked after each test."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from monitoring.base.masking import names_of
from monitoring.queries.window import read_window
from orchestrator import send_event
from orchestrator.definition.secrets import Secrets
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import (
    cancel,
    migrate,
    pause,
    plan_migration,
    resume,
    switches_of,
    unpause,
)
from orchestrator.exceptions import NotMigrated, PermissionMissing, StaleRevision
from orchestrator.models import (
    Checkpoint,
    Definition,
    Incident,
    IssuedCommand,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time
from tests.apps.versions import claims
from tests.apps.versions.claims import ClaimAssessed, ClaimPaid, SecondOpinionGiven
from tests.apps.versions.desk import filed, now, only, tell, written
from tests.apps.versions.fixtures import versions
from tests.apps.versions.letters import Approved
from tests.services.doing import did, refused

__all__ = ["versions"]

MINUTE = timedelta(minutes=1)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("versions")]


@pytest.fixture(autouse=True)
def nothing_paid() -> Iterator[None]:
    yield
    claims.paid.clear()


def steps(process: ProcessInstance) -> list[tuple[str, str]]:
    rows = StepRun.objects.filter(instance=process).order_by("pk")
    return [(row.node, row.status) for row in rows]


def migrated(
    process: ProcessInstance, version: int = 2, **mapping: str
) -> ProcessInstance:
    """Have it migrated; return it as it stands then."""
    did(migrate, process, version, mapping)
    return now(process)


def level(process: ProcessInstance, *, after: timedelta) -> int:
    """Let time pass; return how often it was escalated until then."""
    pass_time(after)
    return now(process).escalation_level


# Process managers


def test_a_process_goes_on_with_the_steps_and_the_data_of_the_other_version() -> None:
    claim = filed()
    assert claim.definition.version == 1

    claim = migrated(claim)

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
    assert (now(claim).status, claims.paid) == ("completed", ["C-1"])


def test_its_visits_and_incidents_are_counted_with_the_other_version() -> None:
    claim = filed()
    Incident.objects.create(
        kind=Incident.Kind.STEP_FAILED,
        instance=claim,
        stored_definition=claim.definition,
        step="WithAssessor",
        message="it rained",
        opened_at=claim.started_at,
        resolved_at=claim.started_at,
    )
    before, claim = claim.definition, migrated(claim)

    for rows in (claim.step_runs, claim.incidents):
        kept = rows.values_list("stored_definition", flat=True)
        assert set(kept) == {claim.definition_id}
    assert read_window(before, "hour").steps == {}
    there = read_window(claim.definition, "hour").steps
    assert {step: len(one.finished) for step, one in there.items()} == {
        "Filed": 1,
        "WithAssessor": 1,
    }
    assert there["WithAssessor"].failure_rate == 1.0


def test_the_switch_is_a_checkpoint_and_an_audit_row() -> None:
    claim = filed()
    row = did(migrate, claim, 2, {})

    last = Checkpoint.objects.filter(instance=claim).latest("revision")
    assert (last.cause, last.edge) == (f"operator:{row.key}", "")
    assert last.steps == ["BeingAssessed"]
    assert row.action == "migrate"
    assert (row.before["version"], row.after["version"]) == (1, 2)
    assert row.before["data"] == {"claim": "C-1", "amount": 7}
    assert row.after["data"] == {"claim": "C-1", "cents": 700, "currency": "EUR"}
    assert row.after["steps"] == {"WithAssessor": "BeingAssessed"}
    (switch,) = switches_of(claim)
    assert (switch.revision, switch.version) == (last.revision, 1)
    assert switch.name_before("BeingAssessed") == "WithAssessor"


def test_a_person_may_name_the_step_that_is_offered_what_is_parked() -> None:
    claim = filed()
    with only("claim", 2):
        send_event(SecondOpinionGiven("C-1"), id="early", process_id=claim.pk)
    drain()

    assert migrated(claim, WithAssessor="SeenTwice").step == "SeenTwice"
    drain()

    assert now(claim).step == "AtTheBank"


def test_deadlines_count_from_when_the_step_was_reached() -> None:
    claim = filed()
    pass_time(50 * MINUTE)

    migrated(claim)

    assert level(claim, after=11 * MINUTE) == 1
    assert level(claim, after=110 * MINUTE) == 1
    assert level(claim, after=10 * MINUTE) == 2


def test_a_paused_process_stays_paused_and_keeps_what_was_left() -> None:
    claim = filed()
    pass_time(30 * MINUTE)
    did(pause, claim)
    pass_time(45 * MINUTE)

    assert migrated(claim).status == "paused"
    did(unpause, claim)
    assert level(claim, after=29 * MINUTE) == 0
    assert level(claim, after=2 * MINUTE) == 1


def test_outside_ids_are_those_that_the_other_version_declares() -> None:
    claim = filed()
    ids = OutsideId.objects.filter(instance=claim).values_list("field", "value")
    assert set(ids) == {("claim", "C-1")}

    migrated(claim)

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
        refused(why, migrate, claim, version, mapping)
    seen = claim.revision - 1
    refused("", migrate, claim, 2, {}, error=StaleRevision, expected_revision=seen)
    refused("", migrate, claim, 2, {}, error=PermissionMissing, actor=viewer)
    assert migrate.codename == "migrate_processinstance"
    assert now(claim).definition.version == 1
    assert set(OperatorAction.objects.values_list("result", flat=True)) == {"refused"}

    did(cancel, claim)
    refused("ended", migrate, claim, 2, {})


def test_data_that_the_other_version_cannot_read_is_refused() -> None:
    why = "its data is not of the form"
    refused(why, migrate, filed(version=2), 1, {"BeingAssessed": "WithAssessor"})
    refused(why, migrate, migrated(written()), 1, {"written": "draft"})


def test_a_command_or_a_worker_under_way_is_waited_for() -> None:
    claim, letter = filed(), written()
    tell(ClaimAssessed("C-1", 7), claim.pk)
    issued = IssuedCommand.objects.filter(instance=claim)
    asked_ = StepRun.objects.filter(instance=letter, node="approval")
    issued.update(status="running", finished_at=None)
    asked_.update(owner="w", attempt=1)

    refused("the command PayClaim is under way", migrate, claim, 2, {})
    refused("a worker is at approval now", migrate, letter, 2, {})

    issued.update(status="done", finished_at=claim.started_at)
    asked_.update(owner="", attempt=0)


def test_a_process_whose_code_is_gone_is_carried_to_one_that_is_there() -> None:
    claim = filed()
    with only("claim", 2):
        migrated(claim)
        tell(ClaimAssessed("C-1", 7))
        assert now(claim).step == "SeenTwice"


def test_planning_changes_nothing() -> None:
    claim = filed()

    assert plan_migration(claim, 2, {}) == [("WithAssessor", "BeingAssessed")]

    assert now(claim).revision == claim.revision
    assert not OperatorAction.objects.exists()


# Workflows


def test_open_steps_of_a_workflow_go_on_in_the_other_version() -> None:
    letter = migrated(written())

    assert (letter.definition.version, letter.data["language"]) == (2, "en")
    assert steps(letter) == [("written", "done"), ("approval", "waiting")]
    tell(Approved("L-1"), letter.pk)
    assert now(letter).status == "completed"
    assert steps(letter)[2:] == [("typeset", "done"), ("post", "done")]
    done = StepRun.objects.get(instance=letter, node="typeset")
    assert done.result == "<Dear L-1>"


def test_a_workflow_can_be_resumed_from_before_its_migration() -> None:
    letter = written()
    first = letter.revision
    migrated(letter)

    did(resume, letter, first)
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
        refused(why, migrate, letter, version, {})
        with pytest.raises(NotMigrated, match=why):
            plan_migration(letter, version, {})
    swapped = {"draft": "approval", "approval": "written"}
    refused("is of another kind", migrate, letter, 2, swapped)

    assert now(letter).definition.version == 1


def test_what_was_done_in_a_step_that_is_gone_counts_no_more() -> None:
    letter = migrated(written(), 8)
    tell(Approved("L-1"), letter.pk)

    assert now(letter).status == "completed"
    assert steps(letter)[0] == ("draft", "superseded")


def test_what_was_secret_in_the_old_version_stays_so_in_what_it_has_left() -> None:
    claim = filed()
    rows = Definition.objects.filter(pk=claim.definition_id)
    rows.update(secrets=Secrets(frozenset({"amount"})).to_json())

    assert "amount" in names_of(migrated(claim).definition)
