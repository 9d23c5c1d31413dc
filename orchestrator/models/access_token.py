from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.models.work import person_column


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
