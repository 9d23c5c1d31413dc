from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from orchestrator.models.work import person_column


class Repair(models.Model):
    """The draft of a repair: edits that a person has staged for one process.

    A proposal waits for another person, who approves or declines it. An applied or discarded repair has no row: the
    audit has it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        db_index=False,  # one_repair_per_person begins with it
        related_name="repairs",
        verbose_name=_("process"),
    )
    author = person_column(_("author"), null=True)
    author_name = models.CharField(_("author's name"), max_length=150)
    edits = models.JSONField(_("edits"), default=list)
    revision = models.PositiveIntegerField(_("revision seen"))
    reason = models.TextField(_("reason"), blank=True)
    proposed_at = models.DateTimeField(_("proposed at"), null=True, blank=True)
    changed_at = models.DateTimeField(_("changed at"))

    class Meta:
        verbose_name = _("staged repair")
        verbose_name_plural = _("staged repairs")
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "author"], name="one_repair_per_person"
            )
        ]

    def __str__(self) -> str:
        return f"{self.author_name}: {self.instance_id}"
