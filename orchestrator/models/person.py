"""The rows of people: their actions, staged repairs, saved views and access tokens."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid6 import uuid7

from orchestrator.models.work import WithText, person_column


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


class AccessToken(models.Model):
    """A token with which a program calls the API. The table has only the digest of its value.

    It gives the present permissions of its owner, until it expires or is revoked.
    """

    name = models.CharField(_("name"), max_length=100)
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    owner = person_column(_("owner"), models.CASCADE)
    created_at = models.DateTimeField(_("created at"))
    expires_at = models.DateTimeField(_("expires at"))
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True)
    revoked_by = models.CharField(_("revoked by"), max_length=150, blank=True)

    class Meta:
        verbose_name = _("access token")
        verbose_name_plural = _("access tokens")
        indexes = [models.Index(fields=["owner", "-id"], name="tokens_of_person")]
        constraints = [
            # The audit names a token by its name.
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=Q(revoked_at__isnull=True),
                name="names_of_tokens",
            )
        ]

    def __str__(self) -> str:
        return self.name
