"""Stored definitions, and the permissions for the processes of one definition."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Definition(models.Model):
    """A definition as it was when processes started on it. The console draws old processes from its graph."""

    class Kind(models.TextChoices):
        PROCESS_MANAGER = "process_manager", _("process manager")
        WORKFLOW = "workflow", _("workflow")

    name = models.SlugField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    graph = models.JSONField(_("graph"))
    secrets = models.JSONField(_("secret fields"), default=dict, blank=True, null=True)
    """All secret fields that the class has ever had, also removed ones. Null in rows of earlier releases."""
    code_revision = models.CharField(
        _("code revision, when first seen"), max_length=100, blank=True, default=""
    )
    created_at = models.DateTimeField(_("first seen"), auto_now_add=True)

    class Meta:
        verbose_name = _("definition")
        verbose_name_plural = _("definitions")
        constraints = [
            models.UniqueConstraint(
                fields=["name", "version", "fingerprint"], name="one_row_per_definition"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"

    @property
    def is_workflow(self) -> bool:
        return self.kind == Definition.Kind.WORKFLOW


class DefinitionGrant(models.Model):
    """A permission that the members of a group have for the processes of one definition.

    The same permission, given to a group or a person by Django, holds for all definitions.
    """

    group = models.ForeignKey(
        "auth.Group",
        models.CASCADE,
        db_index=False,  # one_grant begins with it
        related_name="+",
        verbose_name=_("group"),
    )
    definition = models.CharField(_("definition name"), max_length=100)
    permission = models.ForeignKey(
        "auth.Permission",
        models.CASCADE,
        related_name="+",
        verbose_name=_("permission"),
    )

    class Meta:
        verbose_name = _("permission by definition")
        verbose_name_plural = _("permissions by definition")
        constraints = [
            models.UniqueConstraint(
                fields=["group", "definition", "permission"], name="one_grant"
            )
        ]

    def __str__(self) -> str:
        return f"{self.group}: {self.permission.codename}, {self.definition}"
