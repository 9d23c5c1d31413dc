"""What people and programs do, in whichever release: they send, and look at pages."""

from __future__ import annotations

import json
import sys

from django.contrib.auth.models import User
from django.test import Client

from orchestrator import send_event, start_process
from orchestrator.models import ProcessInstance
from tests.apps.two_releases.messages import Arrived, Closed, Paid, Placed
from tests.apps.two_releases.processes import Delivery, Inspection, Purchase

PAGES = [
    *("/", "/processes/", "/failures/", "/events/", "/waits/", "/audit/", "/stalled/"),
    *("/decisions/", "/livez", "/metrics"),
]
CALLS = ["/api/processes/", "/api/events/"]


def place(orders: list[str]) -> None:
    """Begin the purchase, the delivery and the inspection of each order, and pay it."""
    for order in orders:
        start_process(Purchase, Placed(order))
        start_process(Delivery, Delivery.Input(order))
        start_process(Inspection, Inspection.Input(order))
        send_event(Paid(order, 100), id=f"{order} paid")


def end(orders: list[str]) -> None:
    """Let each order arrive, and close it."""
    for order in orders:
        send_event(Arrived(order), id=f"{order} arrived")
        send_event(Closed(order), id=f"{order} closed")


def statuses(token: str) -> dict[str, int]:
    """Return with which status the pages answer the administrator, and the API's calls a token."""
    client = Client(SERVER_NAME="localhost")
    bearer = {"Authorization": f"Bearer {token}"}
    pages, calls = [*PAGES], [*CALLS]
    for definition in (Purchase, Delivery, Inspection):
        process = ProcessInstance.objects.filter(name=definition.name).latest("id")
        pages.append(f"/definitions/{definition.name}/")
        pages += [f"/processes/{process.pk}/", f"/processes/{process.pk}/messages/"]
        calls.append(f"/api/processes/{process.pk}/")
    found = {call: client.get(call, headers=bearer).status_code for call in calls}
    client.force_login(User.objects.get(username="administrator"))
    return found | {page: client.get(page).status_code for page in pages}


def tell(token: str) -> None:
    """Print the statuses, for the program that has started this one."""
    sys.stdout.write(json.dumps(statuses(token)))
