"""The look of each status: a tone (a CSS class), an icon and a word."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Look:
    """Colour alone never tells a status: icon and word always come with it."""

    tone: str
    icon: str
    word: str | Promise


LOOKS = {
    "received": Look("idle", "ready", _("Received")),
    "ready": Look("idle", "ready", _("Ready")),
    "running": Look("running", "running", _("Running")),
    "held": Look("idle", "waiting", _("Held")),
    "waiting": Look("waiting", "waiting", _("Waiting")),
    "retrying": Look("retry", "retrying", _("Retrying")),
    "failed": Look("failed", "failed", _("Failed")),
    "paused": Look("retry", "paused", _("Paused")),
    "completed": Look("done", "done", _("Completed")),
    "done": Look("done", "done", _("Done")),
    "cancelled": Look("done", "cancelled", _("Cancelled")),
    "skipped": Look("done", "skipped", _("Skipped")),
    "superseded": Look("idle", "cancelled", _("Superseded")),
    "not_taken": Look("idle", "not_taken", _("Not taken")),
    "handled": Look("handled", "handled", _("Failed, handled")),
    "undone": Look("done", "undone", _("Undone")),
    "gathering": Look("idle", "waiting", _("Joining")),
    "started": Look("done", "done", _("Started a process")),
    "moved": Look("done", "done", _("Moved a process")),
    "reacted": Look("done", "done", _("Handled")),
    "parked": Look("waiting", "parked", _("Parked")),
    "ignored": Look("done", "skipped", _("Ignored")),
    "rejected": Look("failed", "failed", _("Rejected")),
    "unexpected": Look("failed", "failed", _("Unexpected")),
    "unrouted": Look("failed", "search", _("No such process")),
    "discarded": Look("done", "cancelled", _("Discarded")),
    "escalated": Look("failed", "escalated", _("Escalated")),
    "refused": Look("retry", "cancelled", _("Refused")),
}

UNKNOWN = Look("idle", "ready", _("Unknown"))


def look(status: str) -> Look:
    """Return the look of a status of an instance, a step run, a command, an event or an action."""
    return LOOKS.get(status, UNKNOWN)
