from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import person_column


class FailureMarkQuerySet(models.QuerySet):  # type: ignore[type-arg]  # its model comes after it
    """Queries of failure marks."""

    def handled(self) -> Self:
        """Return the marks of handled causes whose time is not over."""
        for_ever = Q(until__isnull=True)
        return self.filter(for_ever | Q(until__gt=Now()), handled_at__isnull=False)


class FailureMark(models.Model):
    """The mark of all failures of one cause: handled or not, and the owner.

    The list of failures leaves out a handled cause until the time is over, or until an incident is newer than `last`.
    """

    fingerprint = models.CharField(
        _("cause fingerprint"), primary_key=True, max_length=64
    )
    handled_at = models.DateTimeField(_("handled at"), null=True, blank=True)
    handled_by = models.CharField(_("handled by"), max_length=150, blank=True)
    note = models.TextField(_("note"), blank=True)
    until = models.DateTimeField(_("handled until"), null=True, blank=True)
    last = models.BigIntegerField(_("newest incident seen"), null=True, blank=True)
    owner = person_column(_("owner"), null=True, blank=True)
    revision = models.PositiveIntegerField(_("revision"), default=0)
    changed_at = models.DateTimeField(_("changed at"))

    objects = FailureMarkQuerySet.as_manager()

    class Meta:
        verbose_name = _("mark of a group of failures")
        verbose_name_plural = _("marks of groups of failures")
        indexes = [
            models.Index(
                fields=["fingerprint"],
                condition=Q(handled_at__isnull=False),
                name="handled_failures",
            )
        ]

    def __str__(self) -> str:
        return self.fingerprint
