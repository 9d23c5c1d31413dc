from django.db import models
from django.utils.translation import gettext_lazy as _


class OutsideId(models.Model):
    """An outside id in the present data of a process; `field` is the field of the data."""

    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        db_index=False,  # outside_ids_of_process begins with it
        related_name="outside_ids",
    )
    field = models.CharField(_("field"), max_length=100)
    value = models.CharField(_("value"), max_length=200)

    class Meta:
        verbose_name = _("outside id")
        verbose_name_plural = _("outside ids")
        indexes = [
            # The processes with an outside id, newest first.
            models.Index(fields=["value", "-instance"], name="processes_by_outside_id"),
            models.Index(
                fields=["instance", "field", "value"], name="outside_ids_of_process"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.field} {self.value}"
