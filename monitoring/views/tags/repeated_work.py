"""Warnings of repeated work in dialogs, and references to errors that the page shows above."""

from typing import Any

from django import template

from monitoring.process.repeated_steps import RepeatedSteps
from monitoring.process.steps.trouble import Trouble, last_line

register = template.Library()


@register.filter
def redone_by(again: RepeatedSteps | None, step: str) -> str:
    """Return the warning before a redo of this step; "" in a process manager."""
    return again.of_step(step) if again else ""


@register.filter
def resumed_by(again: RepeatedSteps | None, revision: int | None) -> str:
    """Return the warning before a resume from this transition."""
    return again.since(revision or 0) if again else ""


@register.filter
def as_above(error: Any, trouble: Trouble | None) -> bool:
    """Whether the head of the page shows this error already."""
    said = last_line(error or "")
    return bool(trouble and said and trouble.message.strip().endswith(said))


@register.filter
def said_at(error: Any, page: Any) -> str:
    """Return the id of the part of the page that shows this error already; "" for none."""
    said = last_line(error or "")
    if as_above(said, getattr(page, "trouble", None)):
        return "header"
    workflow = getattr(page, "workflow", None)
    told = {step.error for step in workflow.open} if workflow else set()
    return "now" if said and said in told else ""
