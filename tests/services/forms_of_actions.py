"""For each operators' action something that it can be done to, and where the console has its form.

A test that goes through `OPERATIONS` finds here what to press; an action that is missing here fails it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.utils import timezone

from examples.order_listing.messages import Destination, ExternalOrderCreated
from examples.order_listing.orders import place_order
from orchestrator import send_event, start_process
from orchestrator.engine import operations as engine
from orchestrator.engine.operations import ActionRequest, Pace
from orchestrator.models import (
    AccessToken,
    BulkOperation,
    InboxEvent,
    Incident,
    ProcessInstance,
    SavedView,
    StepRun,
)
from orchestrator.testing import run
from orchestrator.testing.clock import move_times_back
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry, Lattice
from tests.services.bulk import a_moment, begun, frozen, worked_on
from tests.services.words import words

__all__ = ["inquiry"]

REASON = 'it\'s "due" `now` $(touch /tmp/x) \\ ! 理由'
"""A reason that a shell would make much of."""


REASONED = {"[name=reason]": REASON}


@dataclass(frozen=True)
class Place:
    """Where an action's form is, and what it is told.

    Args:
        page: the address of the page.
        form: finds the form; a dialog's, which its button opens, where it is "".
        opens: what else is opened before.
        filled: texts by what finds their fields.
        audit: the action that its audit row names, where that is another one.
        call: which of several calls of one form it is.
    """

    page: str
    form: str = ""
    opens: tuple[str, ...] = ()
    filled: dict[str, str] = field(default_factory=dict)
    audit: str = ""
    call: int = 0


PLACES: dict[str, Callable[[User], Place]] = {}
"""By action what makes a place for it, for this operator."""


def of(*names: str) -> Callable[[Callable[..., Place]], Callable[..., Place]]:
    def known(make: Callable[..., Place]) -> Callable[..., Place]:
        for name in names:
            PLACES[name] = make
        return make

    return known


def asked(actor: Any, reason: str = "before") -> ActionRequest:
    return ActionRequest(actor, uuid4(), reason)


def failed_order() -> ProcessInstance:
    """An order whose command has failed."""
    order = place_order(Destination.BOTH, "50 MWh")
    run()
    a_moment()
    return ProcessInstance.objects.get(pk=order.process_id)


Before = Callable[..., object]


def on_order(*before: Before) -> Callable[[User], Place]:
    """The page of an order that has failed, to which that is done before."""

    def place(operator: User) -> Place:
        order = failed_order()
        for one in before:
            one(order.pk, request=asked(operator))
        return Place(f"/processes/{order.pk}/")

    return place


def paused(pk: UUID, request: ActionRequest) -> None:
    engine.pause(pk, True, request=request)


of(*words("retry escalate cancel pause assign extend skip_command"))(on_order())
of("acknowledge")(on_order(engine.escalate))
of("unpause")(on_order(paused))


@of("restart")
def on_cancelled(operator: User) -> Place:
    process = inquiry()
    engine.cancel(process.pk, request=asked(operator))
    run()
    return Place(f"/processes/{process.pk}/")


def on_inquiry(query: str = "", **more: Any) -> Callable[[User], Place]:
    """The page of an inquiry that waits for its verdict."""
    return lambda operator: Place(f"/processes/{inquiry().pk}/{query}", **more)


def behind_more(name: str) -> tuple[str, ...]:
    """What is opened before the button of an action that stands behind others."""
    return (f"details.others:has([data-opens={name}-dialog]) > summary",)


of("decide")(on_inquiry())
of("resume")(on_inquiry(opens=behind_more("resume")))
of("skip")(on_inquiry(filled={"textarea.json": '"accept"'}))
of("redo")(on_inquiry("?step=classify", opens=behind_more("redo")))


@of("nudge")
def on_stalled(operator: User) -> Place:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    InboxEvent.objects.update(wake_at=None)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    ProcessInstance.objects.filter(pk=receipt.process_id).update(
        status="running", changed_at=timezone.now() - timedelta(minutes=5)
    )
    return Place("/stalled/")


@of("redeliver", "discard", "deliver")
def on_event(operator: User) -> Place:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    run()
    told = ExternalOrderCreated("A-1", "X-1", "50 MWh")
    send_event(told, id="lost", source="exchange", correlation_key="A 1")
    run()
    move_times_back(timedelta(minutes=5))
    run()
    return Place("/events/")


@of("send")
def on_type(operator: User) -> Place:
    filled = {"[name=field-order_id]": "A-1'; echo", "[name=event_id]": "test-1"}
    return Place(
        "/events/send/?type=ListedOnInternal", "#send", filled=filled | REASONED
    )


def on_failed(
    action: str, filled: dict[str, str] | None = None, audit: str = ""
) -> Place:
    """The page that begins something with all that has failed."""
    page = f"/operations/begin/?status=failed&action={action}"
    return Place(page, "#begin", filled={**(filled or {}), **REASONED}, audit=audit)


@of("start_bulk")
def on_list(operator: User) -> Place:
    failed_order()
    return on_failed("retry")


@of("migrate")
def on_version(operator: User) -> Place:
    failed_order()
    filled = {"[name=version]": "1", "[name=steps]": "{}"}
    return on_failed("migrate", filled, "start_bulk")


@of("skip_failed")
def on_step(operator: User) -> Place:
    process = inquiry(trouble="reply")
    question = process.step_runs.get(node="verdict")
    engine.decide(process.pk, question.pk, "accept", request=asked(operator))
    run()
    a_moment()
    return on_failed("skip_failed", {"[name=json]": '"by hand"'}, "start_bulk")


def bulk(operator: User) -> BulkOperation:
    """An operation that has not begun with its items."""
    pace = Pace(samples=(), stop_above=None)
    return begun(operator, {"cause": cause()}, 1, selection="failures", pace=pace)


@of("pause_bulk", "cancel_bulk")
def on_bulk(operator: User) -> Place:
    return Place(f"/operations/{frozen(bulk(operator)).pk}/")


@of("resume_bulk")
def on_paused_bulk(operator: User) -> Place:
    operation = frozen(bulk(operator))
    engine.pause_bulk(operation.pk, request=asked(operator))
    return Place(f"/operations/{operation.pk}/")


@of("repeat_bulk")
def on_ended_bulk(operator: User) -> Place:
    operation = worked_on(bulk(operator))
    assert operation.failed
    return Place(f"/operations/{operation.pk}/")


def cause() -> str:
    failed_order()
    return str(Incident.objects.open().latest("pk").fingerprint)


@of("mark_handled", "assign_failures")
def on_cause(operator: User) -> Place:
    return Place(f"/failures/{cause()}/")


@of("unmark_handled")
def on_handled_cause(operator: User) -> Place:
    group = cause()
    newest = Incident.objects.open().latest("pk").pk
    engine.mark_handled(group, newest, None, request=asked(operator))
    return Place(f"/failures/{group}/")


@of("save_view")
def on_list_to_save(operator: User) -> Place:
    return Place(
        "/processes/?status=failed",
        "#save-view",
        opens=("details:has(#save-view) > summary", "#save-view [name=team]"),
        filled={"[name=name]": 'Team\'s "failed"'},
    )


def view(operator: User) -> SavedView:
    return engine.save_view("Ours", {"status": "live"}, True, request=asked(operator))


@of("rename_view")
def on_view(operator: User) -> Place:
    form = "form[action$=rename_view\\/]"
    view(operator)
    return Place("/views/", form, filled={"[name=name]": 'It\'s "theirs"'})


@of("delete_view")
def on_view_to_delete(operator: User) -> Place:
    view(operator)
    return Place("/views/", "form[action$=delete_view\\/]")


MOVE = {"edit": "move", "target": "AwaitingExternalListing"}


@of("repair")
def on_staged(operator: User) -> Place:
    order = failed_order()
    assert engine.stage(order, operator, MOVE) is None
    return Place(f"/processes/{order.pk}/repair/", "#apply", filled=REASONED)


@of("propose_repair")
def on_staged_for_another(operator: User) -> Place:
    receipt = start_process(Lattice, Lattice.Input(1, 1))
    process = ProcessInstance.objects.get(pk=receipt.process_id)
    edit = {"edit": "skip", "target": str(process.step_runs.get().pk), "value": 7}
    assert engine.stage(process, operator, edit) is None
    return Place(f"/processes/{process.pk}/repair/", "#apply", filled=REASONED)


@of("approve_repair", "decline_repair")
def on_proposal(operator: User) -> Place:
    order = failed_order()
    other = User.objects.create_superuser("second")
    engine.propose_repair(order.pk, [MOVE], request=asked(other))
    form = "form:has([name=repair])"
    return Place(f"/processes/{order.pk}/repair/", form, filled=REASONED)


@of("revoke_token")
def on_token(operator: User) -> Place:
    token, _value = engine.make_token("old", 3, request=asked(operator))
    assert token is not None
    return Place("/tokens/")


def place_for(name: str, operator: User) -> Place:
    """Make something that the action can be done to; where its form is.

    Raises:
        LookupError: nobody has said how that is made.
    """
    if name not in PLACES:
        raise LookupError(f"say in {__name__} where the console has {name}")
    return PLACES[name](operator)


def value_for(operator: User) -> tuple[AccessToken, str]:
    """A token for an operator, and its value."""
    token, value = engine.make_token("bot's “own”", 30, request=asked(operator))
    assert token is not None
    return token, value
