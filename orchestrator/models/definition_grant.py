from django.db import models
from django.utils.translation import gettext_lazy as _


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
