"""The open failures of one cause, in the order of their index."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from monitoring.queries.lists import KeyedPage, page_by_key
from orchestrator.engine.operations import OPERATIONS, forbidden_in_bulk
from orchestrator.models import InboxEvent, Incident
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.models.incident import ABOUT_EVENTS

NOTHING_FAILED = (
    *(Incident.Kind.UNEXPECTED_EVENT, Incident.Kind.REJECTED_EVENT),
    Incident.Kind.UNROUTED_EVENT,
)
"""The kinds of incidents about events that were not taken."""


def why_no_retry(newest: Incident, user: Any, definition: str) -> str:
    """Return the reason why a reader cannot retry what has failed of one cause; "" if they can.

    Args:
        newest: the newest failure of the cause.
        user: the reader.
        definition: the name of the definition.
    """
    if newest.kind in NOTHING_FAILED:
        return _(
            "No step took these events, and nothing has failed: deliver or discard them on their pages"
        )
    return forbidden_in_bulk(OPERATIONS["retry"], user, definition)


def open_of_cause(fingerprint: object) -> QuerySet[Incident]:
    """Return the open incidents of one cause, newest first, in the order of their index."""
    # A range of one value: PostgreSQL might otherwise scan all open incidents, newest first.
    rows = Incident.objects.open().filter(fingerprint__range=(fingerprint, fingerprint))
    return rows.order_by("fingerprint", "-pk")


def causes_of_events(events: Iterable[InboxEvent]) -> dict[int, str]:
    """Return the causes of the open incidents about events that no process took, by the key of the event."""
    keys = [event.pk for event in events if event.verdict in PROBLEMS]
    rows = Incident.objects.open().filter(ABOUT_EVENTS, event__in=keys)
    return dict(rows.values_list("event", "fingerprint"))


def current_cause(fingerprint: str) -> str:
    """Return the cause under which the open failures of an address are stored.

    If none are open under the fingerprint of an earlier release, it is the cause that they have now.
    """
    if open_of_cause(fingerprint).exists():
        return fingerprint
    return cause_now(fingerprint) or fingerprint


def cause_now(fingerprint: str) -> str:
    """Return the cause that the newest failure of an earlier release's fingerprint has now; "" without one."""
    newest = Incident.objects.renamed(fingerprint)
    return newest.values_list("fingerprint", flat=True).first() or ""


def failures_page(fingerprint: str, before: str, size: int) -> KeyedPage[Incident]:
    """Return a page of the open incidents of one cause, newest first, without the data of their processes."""
    rows = open_of_cause(fingerprint).select_related("instance__definition")
    rows = rows.defer("instance__data", "instance__definition__graph")
    return page_by_key(rows, size, before)
