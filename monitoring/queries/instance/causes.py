"""What moved a process, in words for operators."""

from django.utils.translation import gettext as _

from orchestrator.models import CauseKind, Checkpoint


def spoken(checkpoint: Checkpoint) -> str:
    """A checkpoint's cause as people read it; as it is written if it is of no known kind."""
    try:
        kind = checkpoint.moved_by.kind
    except ValueError:
        return checkpoint.cause
    return _words()[kind]


def _words() -> dict[CauseKind, str]:
    return {
        CauseKind.START: _("Start"),
        CauseKind.EVENT: _("An event"),
        CauseKind.DEADLINE: _("Deadline passed"),
        CauseKind.STEP: _("A step"),
        CauseKind.COMMAND: _("A command's outcome"),
        CauseKind.OPERATOR: _("An operator's action"),
        CauseKind.PARENT: _("Its parent process waits for it no more"),
        CauseKind.SETTLED: _("Nothing fails any more"),
        CauseKind.EVENT_FAILED: _("An event could not be handled"),
        CauseKind.COMMAND_FAILED: _("A command failed"),
        CauseKind.STEP_FAILED: _("A deadline could not be handled"),
    }


def step_run_of(checkpoint: Checkpoint) -> int | None:
    """The key of the step run that moved the process, if one did."""
    try:
        return checkpoint.moved_by.step_run
    except ValueError:
        return None
