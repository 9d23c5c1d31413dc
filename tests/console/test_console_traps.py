"""What other consoles fell into: a status that the code does not know, and steps in time of what is under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.contrib.auth.models import User
from django.db.models import Model

from orchestrator import start_process
from orchestrator.engine import operations
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry
from tests.browser.samples import orders
from tests.services.asking import asked as request_of
from tests.services.bulk import begun, worked_on
from tests.services.cases import cases
from tests.services.cases import words as addresses
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]

NEWER = "unheard"
"""A word that a newer version of the code may have written while this one still serves pages."""


@contextmanager
def written(rows: type[Model], field: str, value: str) -> Iterator[None]:
    """Have all rows of a table say this, until the end of the block."""
    table = rows._default_manager
    before = dict(table.values_list("pk", field))
    table.update(**{field: value})
    yield
    for key, was in before.items():
        table.filter(pk=key).update(**{field: was})


@cases(
    "words",
    {ProcessInstance: "status"},
    {
        Checkpoint: "status",
        StepRun: "status",
        InboxEvent: "verdict",
        BulkItem: "verdict",
    },
    {
        IssuedCommand: "status",
        Incident: "kind",
        OperatorAction: "result",
        BulkOperation: "status",
    },
)
def test_a_word_that_a_newer_version_has_written_leaves_every_page_standing(
    words: dict[type[Model], str], admin: Client, administrator: User
) -> None:
    order = orders()["failed"].process_id
    asked = inquiry().pk
    cause = Incident.objects.filter(instance=order).latest("pk").fingerprint
    about = {"cause": cause}
    operation = worked_on(begun(administrator, about, 1, selection="failures"))
    of_processes = ["", "?at=1", "?beside=now&at=1", "messages/", "repair/"]
    pages = [
        *addresses(
            """/ /processes/ /definitions/order-listing/ /definitions/order-listing/versions/
        /definitions/helpdesk-inquiry/ /waits/ /decisions/ /stalled/ /events/
        /failures/ /failures/?show=resolved /operations/
        /operations/begin/?status=failed /audit/"""
        ),
        f"/processes/?status={NEWER}",
        *(f"/processes/{pk}/{more}" for pk in (order, asked) for more in of_processes),
        f"/processes/{order}/?step=AwaitingExternalCreation",
        f"/processes/{asked}/?step=verdict",
        f"/failures/{cause}/",
        f"/operations/{operation.pk}/",
    ]
    assert all(rows._default_manager.exists() for rows in words)

    with ExitStack() as stack:
        for rows, field in words.items():
            stack.enter_context(written(rows, field, NEWER))
        codes = {page: admin.get(page).status_code for page in pages}

    assert {page: code for page, code in codes.items() if code != 200} == {}


def test_steps_in_time_are_drawn_whatever_their_status_is(admin: Client) -> None:
    process = start_process(Inquiry, Inquiry.Input("T-1")).process_id

    def assert_drawn() -> None:
        assert 'class="visit' in admin.read(f"/processes/{process}/")

    assert_drawn()
    with written(StepRun, "status", "running"):
        assert_drawn()
    run()
    assert_drawn()
    operations.cancel(process, request=request_of())
    run()
    assert_drawn()
