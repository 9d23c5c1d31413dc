from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import WithText


class OperatorAction(WithText):
    """The audit of one operator's action, done or refused, written in its transaction; append-only.

    `key` comes from the page. A second press of the same button gets the first answer.
    """

    english = "detail"

    class Result(models.TextChoices):
        DONE = "done", _("done")
        REFUSED = "refused", _("refused")

    key = models.UUIDField(_("idempotency key"), unique=True)
    action = models.CharField(_("action"), max_length=30)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, verbose_name=_("actor")
    )
    actor_name = models.CharField(_("actor name"), max_length=150)
    address = models.GenericIPAddressField(_("from"), null=True, blank=True)
    instance = models.ForeignKey(
        "orchestrator.ProcessInstance",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="operator_actions",
    )
    event = models.ForeignKey(
        "orchestrator.InboxEvent",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="operator_actions",
    )
    bulk = models.ForeignKey(
        "orchestrator.BulkOperation",
        models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="actions",
        verbose_name=_("bulk operation"),
    )
    reason = models.TextField(_("reason"))
    expected_revision = models.PositiveIntegerField(
        _("revision seen"), null=True, blank=True
    )
    before = models.JSONField(_("before"), default=dict)
    after = models.JSONField(_("after"), default=dict)
    result = models.CharField(_("result"), max_length=10, choices=Result)
    detail = models.TextField(_("detail"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("operator action")
        verbose_name_plural = _("operator actions")
        indexes = [
            # The audit, newest first: all actions, those of a person, those of a name, and refused ones.
            models.Index(fields=["-at", "-id"], name="latest_actions"),
            models.Index(fields=["actor_name", "-at", "-id"], name="actions_of_person"),
            models.Index(fields=["action", "-at", "-id"], name="actions_by_name"),
            models.Index(
                fields=["-at", "-id"],
                condition=Q(result="refused"),
                name="refused_actions",
            ),
            # The actions of one bulk operation, among many others.
            models.Index(
                fields=["bulk"], condition=Q(bulk__isnull=False), name="actions_in_bulk"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name}"
