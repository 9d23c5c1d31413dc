"""The open failures of one cause, in the order of their index."""

from django.db.models import QuerySet

from orchestrator.models import Incident


def open_of_cause(fingerprint: object) -> QuerySet[Incident]:
    """Return the open incidents of one cause, newest first, in the order of their index."""
    # A range of one value: PostgreSQL might otherwise scan all open incidents, newest first.
    rows = Incident.objects.open().filter(fingerprint__range=(fingerprint, fingerprint))
    return rows.order_by("fingerprint", "-pk")
