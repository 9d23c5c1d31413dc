"""For each operators' action something that it can be done to, and where the console has its form.

A test that goes through `OPERATIONS` finds here what to press; an action that is missing here fails it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

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
from orchestrator.testing.clock import age
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry, Lattice
from tests.services.bulk import a_moment, begun, frozen, worked_on

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


@of("retry", "escalate", "cancel", "pause", "assign", "extend", "skip_command")
def on_order(operator: User) -> Place:
    return Place(f"/processes/{failed_order().pk}/")


@of("acknowledge")
def on_escalated(operator: User) -> Place:
    order = failed_order()
    engine.escalate(order.pk, request=asked(operator))
    return Place(f"/processes/{order.pk}/")


@of("unpause")
def on_paused(operator: User) -> Place:
    order = failed_order()
    engine.pause(order.pk, True, request=asked(operator))
    return Place(f"/processes/{order.pk}/")


@of("restart")
def on_cancelled(operator: User) -> Place:
    process = inquiry()
    engine.cancel(process.pk, request=asked(operator))
    run()
    return Place(f"/processes/{process.pk}/")


@of("decide")
def on_inquiry(operator: User) -> Place:
    return Place(f"/processes/{inquiry().pk}/")


def behind_more(name: str) -> tuple[str, ...]:
    """What is opened before the button of an action that stands behind others."""
    return (f"details.others:has([data-opens={name}-dialog]) > summary",)


@of("resume")
def on_entry(operator: User) -> Place:
    return Place(f"/processes/{inquiry().pk}/", opens=behind_more("resume"))


@of("skip")
def on_open_step(operator: User) -> Place:
    filled = {"textarea.json": '"accept"'}
    return Place(f"/processes/{inquiry().pk}/", filled=filled)


@of("redo")
def on_visit(operator: User) -> Place:
    page = f"/processes/{inquiry().pk}/?step=classify"
    return Place(page, opens=behind_more("redo"))


@of("nudge")
def on_stalled(operator: User) -> Place:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    InboxEvent.objects.update(wake_at=None)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    still = {"status": "running", "changed_at": timezone.now() - timedelta(minutes=5)}
    ProcessInstance.objects.filter(pk=receipt.process_id).update(**still)
    return Place("/stalled/")


@of("redeliver", "discard", "deliver")
def on_event(operator: User) -> Place:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    run()
    told = ExternalOrderCreated("A-1", "X-1", "50 MWh")
    send_event(told, id="lost", source="exchange", correlation_key="A 1")
    run()
    age(timedelta(minutes=5))
    run()
    return Place("/events/")


@of("send")
def on_type(operator: User) -> Place:
    filled = {
        "[name=field-order_id]": "A-1'; echo",
        "[name=event_id]": "test-1",
        "[name=reason]": REASON,
    }
    return Place("/events/send/?type=ListedOnInternal", "#send", filled=filled)


@of("start_bulk")
def on_list(operator: User) -> Place:
    failed_order()
    return Place(
        "/operations/begin/?status=failed&action=retry", "#begin", filled=REASONED
    )


@of("migrate")
def on_version(operator: User) -> Place:
    failed_order()
    filled = {"[name=version]": "1", "[name=steps]": "{}", "[name=reason]": REASON}
    page = "/operations/begin/?status=failed&action=migrate"
    return Place(page, "#begin", filled=filled, audit="start_bulk")


@of("skip_failed")
def on_failed(operator: User) -> Place:
    process = inquiry(trouble="reply")
    question = process.step_runs.get(node="verdict")
    engine.decide(process.pk, question.pk, "accept", request=asked(operator))
    run()
    a_moment()
    page = "/operations/begin/?status=failed&action=skip_failed"
    filled = {"[name=json]": '"by hand"', "[name=reason]": REASON}
    return Place(page, "#begin", filled=filled, audit="start_bulk")


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
