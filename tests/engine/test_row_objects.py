"""Objects of rows that are made in one move are those that Django makes."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db.models import Model
from django.db.models.signals import post_init

from orchestrator import start_process
from orchestrator.definition import Workflow, step
from orchestrator.engine.sql.row_objects import copies, new_row, read_row
from orchestrator.models import ProcessInstance, StepRun
from tests.services.crews import knowing


def pack() -> None:
    """Do nothing."""


class Packing(Workflow):
    name = "packing-by-row"
    flow = (step(pack),)


known = knowing(Packing)


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """The objects of which a receiver of the project was told."""
    found = list[Any]()

    def note(instance: Model, **about: Any) -> None:
        found.append(instance)

    post_init.connect(note, sender=StepRun)
    yield found
    post_init.disconnect(note, sender=StepRun)


def attributes(row: Model) -> dict[str, Any]:
    plain = {name: value for name, value in vars(row).items() if name != "_state"}
    # A default that differs from object to object is compared by its type.
    return {k: UUID if isinstance(v, UUID) else v for k, v in plain.items()}


def test_a_new_row_has_the_defaults_of_its_class() -> None:
    models = apps.get_app_config("orchestrator").get_models()
    different = [
        model.__name__
        for model in models
        if attributes(new_row(model)) != attributes(model())
        or not new_row(model)._state.adding
    ]
    assert different == []


def test_new_rows_share_no_default() -> None:
    one, other = new_row(ProcessInstance), new_row(ProcessInstance)
    one.data["of"] = "one"
    assert other.data == {}
    assert one.pk != other.pk


def test_an_unknown_attribute_is_an_error() -> None:
    with pytest.raises(TypeError, match="nod"):
        new_row(StepRun, nod="pack")


def test_copies_have_the_values_of_their_row() -> None:
    row = new_row(StepRun, node="pack", visit=3)
    made = copies(row, 2)
    assert [attributes(one) for one in made] == 2 * [attributes(row)]
    made[0].node = "send"
    assert (row.node, made[1].node) == ("pack", "pack")


@pytest.mark.django_db
def test_a_read_row_is_that_of_the_orm_and_reads_the_rest_when_asked() -> None:
    stored = ProcessInstance.objects.get(pk=start_process(Packing).process_id)
    row = read_row(ProcessInstance, ["id", "name"], [stored.pk, stored.name])
    assert row == stored
    assert row.get_deferred_fields() == attributes(stored).keys() - {"id", "name"}
    assert row.status == stored.status
    row.save(update_fields=["name"])  # an update, as of a row that exists


def test_a_receiver_of_the_project_is_told_of_each_object(told: list[Any]) -> None:
    new = new_row(StepRun, node="pack")
    read = read_row(StepRun, ["id", "node"], [7, "pack"])
    assert [id(row) for row in told] == [id(new), id(read)]
    assert (read.pk, read._state.adding) == (7, False)
