from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import person_column


class SavedView(models.Model):
    """A list of processes under a name: the parameters of its address. Without an owner it is the team's."""

    name = models.CharField(_("name"), max_length=100)
    about = models.JSONField(_("parameters"))
    owner = person_column(_("owner"), models.CASCADE, null=True, blank=True)
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
                fields=["name"], condition=Q(owner__isnull=True), name="views_of_team"
            ),
        ]

    def __str__(self) -> str:
        return self.name
