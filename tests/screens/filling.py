"""What the pages are full of: the examples in every state, what strains a page, and what people have done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser

from bench.seed import recording, seeding
from orchestrator import start_process
from orchestrator.engine import operations
from orchestrator.engine.operations import ActionRequest, Pace, Wanted
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import ProcessInstance, Status, StepRun
from orchestrator.queue import suppress_all_wakes
from orchestrator.testing import clock, started
from tests.apps.pictured.processes import (
    CreditOpened,
    GateCall,
    LetterOfCreditWithConfirmationAndPresentation,
    NightInspection,
    Stocktaking,
    Turbine,
    TurbineAssembly,
    Warehouse,
)

Told = Callable[[str], None]
PATIENCE = 120
"""Seconds within which half of the shelves are counted, or it is photographed as it is."""

REASON = "the line to the exchange is back since 08:40, 回線復旧"
PEOPLE = ("aiko.tanaka", "b.okonkwo-lindqvist", "night-shift")


@dataclass(frozen=True)
class Sizes:
    """How much there is.

    Args:
        processes: copies of the examples' processes.
        elements: of the largest map.
        layers: of the largest graph, with ten steps each.
    """

    processes: int = 600
    elements: int = 10_000
    layers: int = 20


def fill(sizes: Sizes, told: Told) -> AbstractBaseUser:
    """Fills an empty database; returns the person who looks at it.

    Args:
        sizes: how much is wanted.
        told: is told what is being done.
    """
    people = [get_user_model().objects.create_superuser(name) for name in PEOPLE]
    told("Running what strains a page ...")
    _strained(sizes)
    told("Running the processes of the examples ...")
    recorded = recording.recordings()
    told(f"Making {sizes.processes:,} copies of them ...")
    seeding.seed(sizes.processes, recorded)
    told("Acting on some of them ...")
    with suppress_all_wakes():
        _acted_on(people)
    return people[0]


def set_going(sizes: Sizes) -> None:
    """Starts what goes on while it is looked at; workers must be there."""
    start_process(NightInspection.name)
    half = sizes.elements // 2
    far = Warehouse("倉庫 7", sizes.elements, sizes.elements, half)
    counted = start_process(Stocktaking.name, far).process_id
    shelves = StepRun.objects.filter(instance=counted, item__gte=half)
    until = time.monotonic() + PATIENCE
    while not shelves.exclude(owner="").exists() and time.monotonic() < until:
        time.sleep(0.2)


def _strained(sizes: Sizes) -> None:
    """Processes with long names, of many steps, with many elements, tried again, and overdue."""
    letters = LetterOfCreditWithConfirmationAndPresentation
    overdue = started(letters, CreditOpened("LC-0001", "Nordwind Turbinenbau GmbH"))
    clock.pass_time(timedelta(hours=40), only=overdue.id)
    started(letters, CreditOpened("LC-0002", "株式会社北風タービン製作所"))
    started(TurbineAssembly, Turbine(sizes.layers, 10))
    number = sizes.elements
    started(Stocktaking, Warehouse("Hall 3", number, number // 9, number))
    started(GateCall)


def _acted_on(people: Sequence[AbstractBaseUser]) -> None:
    """What operators have done: to one, to many, and what was refused."""
    failed, waiting = _of(Status.FAILED), _of(Status.WAITING)
    for who, process in zip(people, failed, strict=False):
        operations.assign(process, who.get_username(), request=_asked(who))
        operations.escalate(process, request=_asked(who))
    for who, process in zip(people, waiting, strict=False):
        operations.pause(process, request=_asked(who))
    for who, process in zip(people, waiting[3:], strict=False):
        operations.cancel(process, request=_asked(who))
    _begun(people[1], "retry")
    _begun(people[1], "assign", PEOPLE[2])


def _begun(who: Any, action: str, *given: str) -> None:
    """Has something done, slowly, to all that have failed."""
    slow = Pace(samples=(1, 10), rate=0.5, stop_above=5)
    number = ProcessInstance.objects.filter(status=Status.FAILED).count()
    about = ("processes", {"status": "failed"}, number, database_now())
    wanted = Wanted(action, *about, given=given, pace=slow)
    operations.start_bulk(wanted, request=_asked(who))


def _of(status: Status) -> list[UUID]:
    rows = ProcessInstance.objects.filter(status=status, name="order-listing")
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:6])


def _asked(who: Any) -> ActionRequest:
    return ActionRequest(who, key=uuid4(), reason=REASON)
