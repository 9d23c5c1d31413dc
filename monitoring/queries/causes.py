"""What moved a process, in words for operators."""

from django.utils.translation import gettext as _


def _failed(noun: str) -> str:
    words = {
        "issuedcommand": _("A command failed"),
        "inboxevent": _("An event could not be handled"),
        "steprun": _("A deadline could not be handled"),
    }
    return words.get(noun, noun)


def spoken(cause: str) -> str:
    """A checkpoint's cause as people read it."""
    kind, _rest, more = cause.partition(":")
    words = {
        "failure": _failed(more.partition(":")[0]),
        "deadline": _("Deadline passed"),
        "operator": _("An operator's action"),
        "command": _("A command's outcome"),
        "settled": _("Nothing fails any more"),
        "event": _("An event"),
        "start": _("Start"),
        "step": _("A step"),
        "redo": _("Redo"),
        "undo": _("Compensation"),
        "cancel": _("Cancelled"),
        "child": _("A sub-process"),
    }
    return words.get(kind, cause)
