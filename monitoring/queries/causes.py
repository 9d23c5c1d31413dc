"""The open failures of one cause, as an index has them."""

from django.db.models import QuerySet

from orchestrator.models import Incident


def open_of_cause(fingerprint: object) -> QuerySet[Incident]:
    """The open incidents of one cause, along the index that has them, newest first."""
    # A range of one, or PostgreSQL might look for them among all the open ones, newest first.
    rows = Incident.objects.open().filter(fingerprint__range=(fingerprint, fingerprint))
    return rows.order_by("fingerprint", "-pk")
