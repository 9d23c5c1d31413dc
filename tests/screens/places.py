"""Which pages there are, each in the states in which it looks different."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.urls import reverse

from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    ProcessInstance,
    Status,
)
from tests.apps.pictured.processes import (
    GateCall,
    LetterOfCreditWithConfirmationAndPresentation,
    NightInspection,
    Stocktaking,
    TurbineAssembly,
)


@dataclass(frozen=True)
class Place:
    """One page.

    Args:
        name: of its picture.
        address: its path and parameters.
        click: what is pressed before it is photographed, as a selector.
        signed_in: whether somebody looks who has signed in.
        status: of the answer.
    """

    name: str
    address: str
    click: str = ""
    signed_in: bool = True
    status: int = 200


def places() -> Iterator[Place]:
    """All of them, in the order in which an operator meets them."""
    yield Place("home", "/")
    yield from _lists()
    yield from _definitions()
    yield from _processes()
    yield from _operations()
    yield Place("sign-in", "/sign-in/", signed_in=False)
    yield Place("not-found", "/nothing-here/", status=404)
    yield from _admin()


def _lists() -> Iterator[Place]:
    yield Place("processes", "/processes/")
    yield Place("processes-none", "/processes/?status=paused&q=nothing")
    yield Place("failures", "/failures/")
    if incident := Incident.objects.open().order_by("pk").last():
        yield Place("failure-group", f"/failures/{incident.fingerprint}/")
    for name in ("waits", "stalled", "decisions"):
        yield Place(name, f"/{name}/")
    yield Place("find", "/find/?q=SEED-0000001")
    yield Place("events", "/events/")
    yield Place("events-found", "/events/?type=OrderCreated")
    yield Place("send-event", "/events/send/?type=OrderCreated")
    yield Place("audit", "/audit/")
    yield Place("tokens", "/tokens/")
    yield Place("audit-none", "/audit/?q=nothing")


def _definitions() -> Iterator[Place]:
    large = (LetterOfCreditWithConfirmationAndPresentation.name, TurbineAssembly.name)
    for name in ("order-listing", "support-inquiry", *large):
        yield Place(f"definition-{name}", f"/definitions/{name}/")
    for overlay in ("median", "failures"):
        address = f"/definitions/support-inquiry/?overlay={overlay}&window=week"
        yield Place(f"definition-{overlay}", address)
    address = "/definitions/order-listing/?step=AwaitingExternalCreation"
    yield Place("definition-filtered", address)


def _processes() -> Iterator[Place]:
    failed = {"name": "order-listing", "status": Status.FAILED}
    completed = {**failed, "status": Status.COMPLETED}
    yield from _process("order-completed", completed)
    yield from _process("order-past", completed, "?at=1")
    yield from _process("order-failed", failed)
    yield from _process("order-dialog", failed, click="#retry-button")
    yield from _process("order-step", failed, "?step=AwaitingExternalCreation")
    for status in (Status.COMPLETED, Status.WAITING, Status.FAILED):
        which = {"name": "support-inquiry", "status": status}
        yield from _process(f"inquiry-{status}", which)
    yield from _process("elements", {"name": Stocktaking.name}, "?step=count_shelf")
    for name, definition in (
        ("long-names", LetterOfCreditWithConfirmationAndPresentation),
        ("200-steps", TurbineAssembly),
        ("10000-elements", Stocktaking),
        ("running", NightInspection),
        ("retrying", GateCall),
    ):
        yield from _process(f"process-{name}", {"name": definition.name})


def _process(
    name: str, which: dict[str, str], parameters: str = "", click: str = ""
) -> Iterator[Place]:
    if process := ProcessInstance.objects.filter(**which).order_by("pk").last():
        yield Place(name, f"/processes/{process.pk}/{parameters}", click)


def _operations() -> Iterator[Place]:
    yield Place("operations", "/operations/")
    yield Place("operation-begin", "/operations/begin/?action=retry&status=failed")
    for operation in BulkOperation.objects.order_by("pk"):
        yield Place(f"operation-{operation.status}", f"/operations/{operation.pk}/")


def _admin() -> Iterator[Place]:
    yield Place("admin", reverse("admin:index"))
    for model in (ProcessInstance, InboxEvent, get_user_model()):
        meta = model._meta
        name = "users" if model is get_user_model() else meta.model_name
        listed = f"admin:{meta.app_label}_{meta.model_name}_changelist"
        yield Place(f"admin-{name}", reverse(listed))
