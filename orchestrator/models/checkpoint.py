from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from orchestrator.models.cause import Cause


class Checkpoint(models.Model):
    """The state after one transition; append-only. `cause` is what moved the process, and is unique in each process.

    `edge` has the ids of the taken edges, separated by commas.
    """

    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        db_index=False,  # one_checkpoint_per_revision begins with it
        related_name="checkpoints",
    )
    revision = models.PositiveIntegerField(_("revision"))
    cause = models.CharField(_("cause"), max_length=100)
    edge = models.TextField(_("transition taken"), blank=True)
    steps = models.JSONField(_("current steps"))
    status = models.CharField(_("status"), max_length=10)
    data = models.JSONField(_("data"))
    checksum = models.CharField(_("checksum"), max_length=64)
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("checkpoint")
        verbose_name_plural = _("checkpoints")
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "revision"], name="one_checkpoint_per_revision"
            ),
            models.UniqueConstraint(
                fields=["instance", "cause"], name="one_checkpoint_per_cause"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} at revision {self.revision}"

    @property
    def moved_by(self) -> Cause | None:
        """The cause of the change; None for a kind that the running code does not know."""
        try:
            return Cause.parse(self.cause)
        except ValueError:
            return None

    @property
    def said(self) -> str:
        """The cause of the change, in words for people."""
        cause = self.moved_by
        return str(cause.kind.label) if cause is not None else gettext("A change")

    @property
    def step_run(self) -> int | None:
        """The key of the step run that moved the process; None for other causes."""
        return self.moved_by.step_run if self.moved_by is not None else None
