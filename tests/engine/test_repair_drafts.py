"""What is staged for a repair, before it is applied, and repairs that one person proposes and another applies."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.operations import (
    ActionRequest,
    approve_repair,
    decline_repair,
    discard_draft,
    draft_of,
    look_again,
    propose_repair,
    repair,
    stage,
    targets_of,
    unstage,
)
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import OperatorAction, ProcessInstance, Repair
from tests.apps.process_managers.desk import place, tell
from tests.apps.process_managers.messages import ParcelPacked
from tests.apps.process_managers.processes import Shipping
from tests.conftest import OPERATOR_MAY, person
from tests.services.asking import asked
from tests.services.doing import refused
from tests.services.operated import operated

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

MOVE = {"edit": "move", "target": "OnTheWay"}
BACK = {"edit": "move", "target": "Missing"}
RETRY = {"edit": "retry"}
BAD = {"edit": "event", "target": "ParcelPacked", "value": {"weight": "3"}}


@pytest.fixture
def other() -> User:
    return person("other", *OPERATOR_MAY)


@pytest.fixture
def by_two() -> Iterator[None]:
    """Have repairs of parcels applied by a second person."""
    Shipping.repair_needs_approval = True
    yield
    Shipping.repair_needs_approval = False


def by(actor: User, reason: str = "why") -> ActionRequest:
    return asked(actor=actor, reason=reason)


def moved(parcel: ProcessInstance) -> tuple[str, int]:
    """Return where a parcel stands, and how many repairs are staged or proposed."""
    parcel.refresh_from_db()
    return parcel.step, Repair.objects.count()


def staged(parcel: ProcessInstance, user: User) -> list[Any]:
    draft = draft_of(parcel, user)
    return draft.edits if draft else []


def proposed(parcel: ProcessInstance, user: User, *edits: Any) -> str:
    """Propose a repair and return its id."""
    action = propose_repair(parcel.pk, list(edits), request=by(user))
    return str(action.after["proposed"])


# Staging


def test_s7_1_what_is_staged_changes_nothing_and_leaves_no_row(operator: User) -> None:
    parcel = place()
    stage(parcel, operator, BACK)

    assert stage(parcel, operator, MOVE) is None  # in the place of the first

    assert moved(parcel) == ("Packing", 1)
    assert parcel.revision == 1
    assert staged(parcel, operator) == [MOVE]
    assert not OperatorAction.objects.exists()
    operated(repair, parcel, [MOVE])
    assert moved(parcel) == ("OnTheWay", 0)


def test_s7_1_each_staged_edit_is_undone_by_itself(operator: User) -> None:
    parcel = place()
    stage(parcel, operator, MOVE)
    stage(parcel, operator, RETRY)

    for place_ in (0, 7):
        unstage(parcel, operator, place_)
        assert staged(parcel, operator) == [RETRY]
    unstage(parcel, operator, 0)
    assert not Repair.objects.exists()


def test_s7_1_two_people_stage_beside_each_other(operator: User, other: User) -> None:
    parcel = place()
    stage(parcel, operator, MOVE)
    stage(parcel, other, BACK)

    discard_draft(parcel, other)

    assert (staged(parcel, operator), staged(parcel, other)) == ([MOVE], [])


def test_s7_5_a_bad_edit_is_not_staged_and_says_where_it_is_bad(operator: User) -> None:
    parcel = place()
    stage(parcel, operator, MOVE)

    mistake = stage(parcel, operator, BAD)

    assert mistake is not None
    assert (mistake.path, mistake.why) == ("weight", "Input should be a valid integer")
    assert staged(parcel, operator) == [MOVE]


def test_s7_5_whoever_may_not_repair_stages_nothing(viewer: User) -> None:
    with pytest.raises(OperationRefused, match="Your account may not do this"):
        stage(place(), viewer, MOVE)
    assert not Repair.objects.exists()


def test_s7_3_a_draft_of_a_process_that_has_moved_waits_until_somebody_looks_again(
    operator: User,
) -> None:
    parcel = place()
    stage(parcel, operator, MOVE)
    tell(parcel, ParcelPacked(3))

    with pytest.raises(StaleRevision, match="ParcelPacked arrived"):
        stage(parcel, operator, RETRY)
    look_again(parcel, operator)
    assert stage(parcel, operator, BACK) is None


def test_s7_5_the_steps_to_which_it_cannot_be_moved_say_why() -> None:
    found = {one.name: one.why for one in targets_of(place()).steps}

    start = "processes start there: none waits in it"
    why = {"Ordered": start, "Packing": "it stands there now"}
    assert found == {**why, **dict.fromkeys(("OnTheWay", "Missing", "Delivered"), "")}


# Two people


def test_s7_4_one_proposes_and_another_applies_and_nobody_repairs_alone(
    by_two: None, operator: User, other: User
) -> None:
    parcel = place()
    refused("applied by a second person", repair, parcel, [MOVE])
    stage(parcel, operator, MOVE)
    proposal = proposed(parcel, operator, MOVE)
    assert moved(parcel) == ("Packing", 1)
    assert parcel.revision == 1

    action = approve_repair(parcel.pk, proposal, request=by(other, "so it is"))

    assert moved(parcel) == ("OnTheWay", 0)
    assert (action.actor, action.after["proposed_by"]) == (other, "operator")
    assert (action.reason, action.after["proposed_for"]) == ("so it is", "why")
    assert (action.before["step"], action.after["step"]) == ("Packing", "OnTheWay")


def test_s7_4_never_the_same_nor_one_who_may_not(by_two: None, operator: User) -> None:
    parcel, name = place(), operator.username
    proposal = proposed(parcel, operator, MOVE)

    def nor(actor: User, why: str, error: type[Exception] = OperationRefused) -> None:
        refused(why, approve_repair, parcel, proposal, actor=actor, error=error)

    may = [one for one in OPERATOR_MAY if one != "approve_repair_processinstance"]
    nor(person("third", *may), "", PermissionMissing)
    nor(operator, "the person who has proposed a repair")
    operator.delete()  # nor with a new account of the same name
    nor(person(name, *OPERATOR_MAY), "the person who has proposed a repair")

    assert moved(parcel) == ("Packing", 1)


def test_s7_4_but_two_people_who_are_called_the_same_are_two(
    by_two: None, operator: User, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(User, "__str__", lambda user: "Ann")
    parcel = place()
    proposal = proposed(parcel, operator, MOVE)

    approve_repair(parcel.pk, proposal, request=by(other))

    assert moved(parcel) == ("OnTheWay", 0)


def test_s7_4_a_proposal_stays_until_taken_back(by_two: None, operator: User) -> None:
    parcel = place()
    proposal = proposed(parcel, operator, MOVE)

    for meanwhile in (stage, proposed):
        with pytest.raises(OperationRefused, match="it is proposed"):
            meanwhile(parcel, operator, BACK)
    unstage(parcel, operator, 0)
    discard_draft(parcel, operator)
    assert staged(parcel, operator) == [MOVE]
    decline_repair(parcel.pk, proposal, request=by(operator))
    assert stage(parcel, operator, BACK) is None


def test_s7_4_a_declined_proposal_is_applied_by_nobody(
    by_two: None, operator: User, other: User
) -> None:
    parcel = place()
    proposal = proposed(parcel, operator, MOVE)

    decline_repair(parcel.pk, proposal, request=by(other))

    for bad in (proposal, "x", str(uuid4())):
        refused("is not there any more", approve_repair, parcel, bad, actor=other)


def test_s7_3_a_proposal_for_a_process_that_has_moved_is_not_applied(
    by_two: None, operator: User, other: User
) -> None:
    parcel = place()
    proposal = proposed(parcel, operator, BACK)
    tell(parcel, ParcelPacked(3))

    why, late = "ParcelPacked arrived", StaleRevision
    refused(why, approve_repair, parcel, proposal, actor=other, error=late)

    assert moved(parcel) == ("OnTheWay", 1)


def test_s7_4_a_proposal_that_cannot_be_made_is_not_stored(operator: User) -> None:
    parcel = place()

    with pytest.raises(OperationRefused, match="weight"):
        proposed(parcel, operator, BAD)

    assert not Repair.objects.exists()
