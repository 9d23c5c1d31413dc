from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from orchestrator.text import pack_text, storable_text, unpack_text


def person_column(name: Any, on_delete: Any = models.SET_NULL, **options: Any) -> Any:
    """Return a foreign key to a user, without an index of its own.

    Args:
        name: the verbose name.
        on_delete: what happens to the row when the user is deleted.
        options: further options of the field.
    """
    usual = {"db_index": False, "related_name": "+", "verbose_name": name}
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete, **{**usual, **options}
    )


def definition_column() -> Any:
    """Return a foreign key to the stored definition of a row's process; earlier releases leave it null."""
    return models.ForeignKey(
        "orchestrator.Definition",
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,  # an index of each table begins with it
        null=True,
        editable=False,
        related_name="+",
    )


def process_start_column() -> Any:
    """Return a column with the start of a row's process, by which lists of processes read the row in their order.

    Earlier releases leave it to the database, which sets the time of the row.
    """
    return models.DateTimeField(
        _("start of its process"),
        null=True,
        default=None,
        db_default=Now(),
        editable=False,
    )


class WithText(models.Model):
    """A row with a message for people: in English in a column of its own, and here as template and values.

    Texts of the application, and of releases without this column, exist in English only. Such releases write null, so
    the column needs no default.
    """

    english: ClassVar[str] = "message"
    """The column with the English text."""

    text = models.JSONField(
        _("text as template and values"), null=True, blank=True, editable=False
    )

    class Meta:
        abstract = True

    @property
    def said(self) -> str:
        """The message: a `Text` if it can be translated."""
        return unpack_text(getattr(self, self.english), self.text)

    def say(self, text: str) -> None:
        """Set the message, cut to the length of the column."""
        field: Any = self._meta.get_field(self.english)
        setattr(self, self.english, storable_text(text)[: field.max_length])
        self.text = pack_text(text)


class Work(WithText):
    """Work that workers claim: an event, a command, a step or a deadline.

    `wake_at` is the time at which the row is due: now, after a backoff, at a deadline, or when the lease of its worker
    ends; null for settled work. A claim counts the attempt.
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
        """The condition that this attempt still holds the work. Every write that settles work has it."""
        return {"id": self.pk, "owner": self.owner, "attempt": self.attempt}


def claim_indexes(due: str, held: str) -> list[models.Index]:
    """Return the indexes of a table of work.

    Args:
        due: the name of the index of due rows by queue, oldest first.
        held: the name of the index of claimed rows by worker, for the renewal of leases.
    """
    return [
        models.Index(
            fields=["queue", "wake_at", "id"],
            condition=Q(wake_at__isnull=False),
            name=due,
        ),
        models.Index(fields=["owner"], condition=~Q(owner=""), name=held),
    ]
