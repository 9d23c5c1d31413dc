from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from orchestrator.text import pack_text, storable_text, unpack_text


def person(name: Any, on_delete: Any = models.SET_NULL, **options: Any) -> Any:
    """Returns a column that names an account, without an index: those of its table begin with it where they need it.

    Args:
        name: what people call the column.
        on_delete: what becomes of the row when the account is removed.
        options: further ones of the field.
    """
    usual = {"db_index": False, "related_name": "+", "verbose_name": name}
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete, **{**usual, **options}
    )


class WithText(models.Model):
    """A row that tells people something: in English in a column of its own, and here as template and values.

    Where the text is the application's, or was written by a release without this column, there is the English alone.
    Code of before writes null: no default is needed.
    """

    english: ClassVar[str] = "message"
    """The column that has it in English."""

    text = models.JSONField(
        _("text as template and values"), null=True, blank=True, editable=False
    )

    class Meta:
        abstract = True

    @property
    def said(self) -> str:
        """What it tells people: a `Text` where it can be translated."""
        return unpack_text(getattr(self, self.english), self.text)

    def say(self, text: str) -> None:
        """Sets what it tells people, as far as the column has room for it."""
        field: Any = self._meta.get_field(self.english)
        setattr(self, self.english, storable_text(text)[: field.max_length])
        self.text = pack_text(text)


class Work(WithText):
    """What workers claim: an event, a command or a deadline.

    `wake_at` is the next moment the row wants a worker: now, after a backoff, at a deadline, or when the lease of the
    worker that holds it ends; null when nothing is left to do. The attempt is counted when the row is claimed.
    """

    english = "error"

    queue = models.CharField(_("queue"), max_length=50, default="default")
    wake_at = models.DateTimeField(_("wakes at"), null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    owner = models.CharField(_("worker"), max_length=40, blank=True)

    class Meta:
        abstract = True

    @property
    def fence(self) -> dict[str, Any]:
        """The condition that this attempt still holds it: every write that settles work carries it."""
        return {"id": self.pk, "owner": self.owner, "attempt": self.attempt}


def claimed(due: str, held: str) -> list[models.Index]:
    """The indexes of what is claimed, under their names: due rows of a queue, oldest first, and what each worker holds.

    The lease of what is held is renewed, whatever else waits.
    """
    return [
        models.Index(
            fields=["queue", "wake_at", "id"],
            condition=Q(wake_at__isnull=False),
            name=due,
        ),
        models.Index(fields=["owner"], condition=~Q(owner=""), name=held),
    ]
