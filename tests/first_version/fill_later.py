"""Takes the first version's rows up with the code of commit d584bb8, which adds what only it knows; prints the rows.

Runs with that commit's code, not with today's; README.md beside it says how.
"""

import json
import random
import sys
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from orchestrator import Permanent, registry
from orchestrator.engine import operations
from orchestrator.engine.bulk import running
from orchestrator.engine.failures import backoff
from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import Pace, Wanted, start_bulk
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.tables import bulk_operations
from orchestrator.models import Incident, ProcessInstance
from orchestrator.testing import failing, run
from tests.apps.compensation.rallies import RALLIES
from tests.apps.patterns import patterns
from tests.apps.patterns.desk import finished
from tests.apps.process_managers import desk
from tests.apps.process_managers import messages as m
from tests.first_version.loading import load

APPS = ("auth", "orchestrator", "order_listing", "support_inquiry")
"""Whose rows are kept."""


class Longest(random.Random):
    """Takes chance out of the pauses between attempts."""

    def uniform(self, low: float, high: float) -> float:
        return high


MOVE = {"edit": "move", "target": "OnTheWay"}


def asked(name: str = "operator") -> operations.ActionRequest:
    return operations.ActionRequest(
        User.objects.get(username=name), uuid4(), "it is wanted"
    )


def new_ones() -> None:
    """Processes that this commit has begun itself: waiting, parked, failed in each way."""
    desk.place("L-packing")
    parked = desk.place("L-parked")
    desk.tell(parked, m.ParcelDelivered("L-parked"))
    torn = desk.place("L-torn")
    desk.tell(torn, m.LabelTorn())
    desk.early("L-unrouted", m.ParcelScanned("L-unrouted", "Osaka"))
    for number in (-1, 1):
        finished(patterns.CatchOne, number)
    for number in (-1, -1, -2):
        finished(patterns.FailFast, number)
    finished(patterns.FanOut, [1, -2, 3])
    finished(patterns.Waiting)
    with failing(m.CountScan, Permanent("cannot count")):
        one = desk.underway("L-event-failed")
        desk.tell(one, m.ParcelScanned("L-event-failed", "Kobe"))


def seen_to() -> None:
    """What people have done: paused, assigned, marked, proposed, begun."""
    paused = [desk.place("L-paused"), finished(patterns.Waiting)]
    failed = finished(patterns.FailFast, -1)
    for process in (*paused, failed):
        operations.pause(process.pk, request=asked())
    run()
    operations.assign(desk.place("L-assigned").pk, "operator", request=asked())
    lifted = desk.place("L-escalated")
    operations.escalate(lifted.pk, request=asked())
    operations.acknowledge(lifted.pk, request=asked())
    operations.propose_repair(desk.place("L-proposed").pk, [MOVE], request=asked())
    operations.stage(
        desk.place("L-staged"), User.objects.get(username="operator"), MOVE
    )
    causes = (
        Incident.objects.open()
        .order_by("fingerprint")
        .values_list("fingerprint", flat=True)
    )
    for number, cause in enumerate(causes.distinct()):
        newest = Incident.objects.filter(fingerprint=cause).latest("pk")
        if number % 2:
            operations.mark_handled(cause, newest.pk, None, request=asked())
        else:
            operations.assign_failures(cause, "operator", request=asked())
    about = {"status": "failed", "name": "fail-fast"}
    wanted = Wanted(
        "retry",
        "processes",
        {"status": "failed", "definition": "fail-fast"},
        ProcessInstance.objects.filter(**about).count(),
        shown_at=database_now(),
        pace=Pace(samples=(1,), batch=1, stop_above=None),
    )
    start_bulk(wanted, request=asked())
    for item in bulk_operations.claim("default", "gatherer", 1, 10):
        running.run(item.work, 0)


def rows() -> None:
    """Print the migrations that were applied and every row, each with the values of its columns."""
    applied = MigrationRecorder(connections["default"]).applied_migrations()
    say({"moment": timezone.now(), "migrations": sorted(applied)})
    for model in apps.get_models():
        label = model._meta.label
        if model._meta.app_label in APPS and label != "auth.Permission":
            for row in model.objects.order_by("pk").values():
                say({"model": label, "row": row})


def say(line: dict[str, Any]) -> None:
    text = json.dumps(line, default=plain, ensure_ascii=False, sort_keys=True)
    sys.stdout.write(text.replace(f"{Path.cwd()}/", "") + "\n")


def plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def main() -> None:
    for workflow in RALLIES:
        registry.register_definition(workflow)
    load()
    call_command("migrate", verbosity=0)
    desk.numbers = count(10_000)  # the first version has used those before
    backoff.spread = Longest()
    new_ones()
    seen_to()
    assert not violations(), violations()
    rows()


main()
