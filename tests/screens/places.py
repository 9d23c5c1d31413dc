"""Which pages there are, each in the states in which it looks different."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
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
    if incident := Incident.objects.filter(resolved_at=None).order_by("pk").last():
        yield Place("failure-group", f"/failures/{incident.fingerprint}/")
    yield Place("waits", "/waits/")
    yield Place("stalled", "/stalled/")
    yield Place("decisions", "/decisions/")
    yield Place("find", "/find/?q=SEED-0000001")
    yield Place("events", "/events/")
    yield Place("events-found", "/events/?type=OrderCreated")
    yield Place("send-event", "/events/send/?type=OrderCreated")
    yield Place("audit", "/audit/")
    yield Place("tokens", "/tokens/")
    yield Place("audit-none", "/audit/?q=nothing")


def _definitions() -> Iterator[Place]:
    for name in (
        "order-listing",
        "support-inquiry",
        LetterOfCreditWithConfirmationAndPresentation.name,
        TurbineAssembly.name,
    ):
        yield Place(f"definition-{name}", f"/definitions/{name}/")
    for overlay in ("median", "failures"):
        address = f"/definitions/support-inquiry/?overlay={overlay}&window=week"
        yield Place(f"definition-{overlay}", address)
    yield Place(
        "definition-filtered",
        "/definitions/order-listing/?step=AwaitingExternalCreation",
    )


def _processes() -> Iterator[Place]:
    orders = ProcessInstance.objects.filter(name="order-listing")
    inquiries = ProcessInstance.objects.filter(name="support-inquiry")
    yield from _process("order-completed", orders.filter(status=Status.COMPLETED))
    yield from _process("order-past", orders.filter(status=Status.COMPLETED), "?at=1")
    failed = orders.filter(status=Status.FAILED)
    yield from _process("order-failed", failed)
    yield from _process("order-dialog", failed, click="#retry-button")
    yield from _process("order-step", failed, "?step=AwaitingExternalCreation")
    yield from _process("inquiry-completed", inquiries.filter(status=Status.COMPLETED))
    yield from _process("inquiry-waiting", inquiries.filter(status=Status.WAITING))
    yield from _process("inquiry-failed", inquiries.filter(status=Status.FAILED))
    stocktaking = ProcessInstance.objects.filter(name=Stocktaking.name)
    yield from _process("elements", stocktaking, "?step=count_shelf")
    for name, definition in (
        ("long-names", LetterOfCreditWithConfirmationAndPresentation),
        ("200-steps", TurbineAssembly),
        ("10000-elements", Stocktaking),
        ("running", NightInspection),
        ("retrying", GateCall),
    ):
        yield from _process(
            f"process-{name}", ProcessInstance.objects.filter(name=definition.name)
        )


def _process(
    name: str,
    among: QuerySet[ProcessInstance],
    parameters: str = "",
    click: str = "",
) -> Iterator[Place]:
    if process := among.order_by("pk").last():
        yield Place(name, f"/processes/{process.pk}/{parameters}", click)


def _operations() -> Iterator[Place]:
    yield Place("operations", "/operations/")
    yield Place("operation-begin", "/operations/begin/?action=retry&status=failed")
    for operation in BulkOperation.objects.order_by("pk"):
        yield Place(f"operation-{operation.status}", f"/operations/{operation.pk}/")


def _admin() -> Iterator[Place]:
    yield Place("admin", reverse("admin:index"))
    for model in (ProcessInstance, InboxEvent):
        meta = model._meta
        yield Place(
            f"admin-{meta.model_name}",
            reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"),
        )
    user = get_user_model()._meta
    yield Place(
        "admin-users", reverse(f"admin:{user.app_label}_{user.model_name}_changelist")
    )
