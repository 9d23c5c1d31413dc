"""Values that JSON would change are refused where they are given; conditions change nothing but their own copies."""

import pytest
from django.core.checks import run_checks

from orchestrator.definition import Workflow
from orchestrator.exceptions import InvalidMessage
from orchestrator.testing import started
from tests.apps.written_strictly.exact import (
    WORKFLOWS,
    AwaitedParcel,
    Depot,
    DueParcel,
    GivenParcel,
    KeptParcel,
    LiftedParcel,
    Marked,
    MarkedParcel,
    Parcel,
    PlannedParcel,
    RoutedParcel,
    Sent,
    Shelf,
    Weighed,
)
from tests.services.cases import cases
from tests.services.operated import knowing

pytestmark = pytest.mark.django_db

known = knowing(*WORKFLOWS, Depot, Shelf)


# At the call


@cases(
    "workflow, said",
    (KeptParcel, "sizes: tuple would be read back as list: declare tuple here"),
    (MarkedParcel, "the result of mark: Marked would be read back as Parcel"),
    (DueParcel, "the result of due: date would be read back as str"),
)
def test_the_step_fails_that_gives_what_json_would_change(
    workflow: type[Workflow], said: str
) -> None:
    process = started(workflow)

    assert (process.status, len(process.path)) == ("failed", 1)
    assert process.incidents[0].startswith(f"InvalidMessage: {said}")


def test_a_step_of_a_graph_that_is_made_from_the_input_is_checked_at_the_call() -> None:
    process = started(PlannedParcel, Parcel([4]))

    assert (process.status, len(process.path)) == ("failed", 1)
    said = "InvalidMessage: the result of due: date would be read back as str"
    assert process.incidents[0].startswith(said)


def test_a_process_is_not_started_with_a_subclass_of_its_input() -> None:
    with pytest.raises(InvalidMessage, match="starts with Parcel, not with Marked"):
        started(GivenParcel, Marked([4], "fragile"))


# Conditions


def test_a_case_does_not_change_what_the_next_one_sees() -> None:
    assert started(RoutedParcel).path == ["weigh", "bind"]


def test_a_case_does_not_change_the_elements_of_a_map() -> None:
    assert started(LiftedParcel).result_of("load") == [4, 7]


def test_a_condition_of_a_wait_does_not_change_the_event() -> None:
    process = started(AwaitedParcel)
    process.send(Weighed([4, 7]))

    assert process.result_of("scales") == Weighed([4, 7])


def test_guards_and_functions_of_a_row_do_not_change_data_and_event() -> None:
    process = started(Depot, Weighed([4, 7]))
    assert process.data == Depot.Data([4, 7], count=3)

    process.send(Sent())
    assert (process.status, process.data) == ("completed", Depot.Data([4, 7], count=3))


# The system check


def test_the_check_names_fields_that_never_come_back_as_they_were() -> None:
    found = [one.msg for one in run_checks() if one.id == "orchestrator.E016"]

    own = (
        "Measured",
        "MeasuredParcel",
        "DueParcel",
        "PlannedParcel",
        "Parcel",
        "Weighed",
        "Depot",
        "Shelf",
    )
    assert sorted(one for one in found if one.startswith(own)) == [
        "DueParcel, the result of due: date would be read back as str: declare date here, or give str.",
        "Measured.by_day: keys of this dict would be read back as others: declare their type, or give text as keys.",
        "Measured.length: Feet would be read back as Metres: declare Feet here, or give Metres.",
        "MeasuredParcel, the result of due: date would be read back as str: declare date here, or give str.",
        "Shelf.Data.parcel, copied from Put: Marked would be read back as Parcel: declare Marked here, or give Parcel.",
    ]
