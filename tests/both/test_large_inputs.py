"""However large the input of a workflow is: a step does not read it, and is given only what it names."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.engine.sql.tables import instances
from orchestrator.engine.storage import definitions
from orchestrator.models import ProcessInstance, Status
from tests.apps.made_from_input.processes import File, Housekeeping, Relabelling
from tests.apps.patterns.desk import finished, go_on, launch, results
from tests.apps.process_managers.desk import place
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db(transaction=True)


known = knowing(Housekeeping, Relabelling)


BOXES = tuple(File(f"F-{number}") for number in range(20))


def test_an_input_is_read_once_for_all_steps() -> None:
    launched = launch(Relabelling, "shelf", ["a"], BOXES)
    definitions.forget_definitions()
    with CaptureQueriesContext(connection) as queries:
        process = go_on(launched)

    table = ProcessInstance._meta.db_table
    read = [q["sql"] for q in queries if f'"{table}"."data"' in (q["sql"] or "")]
    # The first for its plan and the functions; what tells the test how it stands reads whole rows.
    assert len([sql for sql in read if '"summary"' not in sql]) <= 2
    assert process.status == Status.COMPLETED


def test_what_a_step_does_to_its_argument_is_not_seen_by_another() -> None:
    process = finished(Relabelling, "shelf", ["a", "b"], BOXES)

    assert set(results(process).values()) == {4}
    assert process.data["labels"] == ["a", "b"]


def test_a_lock_reads_no_input_of_a_live_workflow() -> None:
    process = launch(Housekeeping, "a")
    locked, _ = instances.read(process.pk)

    assert locked is not None
    assert locked.get_deferred_fields() == {"data"}
    assert locked.data == process.data


@pytest.mark.usefixtures("parcels")
def test_a_lock_reads_the_data_of_a_process_manager() -> None:
    locked, _ = instances.read(place("P-1").pk)

    assert locked is not None
    assert not locked.get_deferred_fields()
