from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import person


class SavedView(models.Model):
    """A list of processes as somebody wants to see it again: the parameters of its address, under a name.

    It is of the person whose it is, or of all where it is nobody's.
    """

    name = models.CharField(_("name"), max_length=100)
    about = models.JSONField(_("parameters"))
    owner = person(_("owner"), models.CASCADE, null=True, blank=True)
    saved_by = models.CharField(_("saved by"), max_length=150, blank=True)
    revision = models.PositiveIntegerField(_("revision"), default=0)
    changed_at = models.DateTimeField(_("changed at"))

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=Q(owner__isnull=False),
                name="views_of_person",
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(owner__isnull=True),
                name="views_of_team",
            ),
        ]

    def __str__(self) -> str:
        return self.name
