"""Warnings of repeated work in dialogs, and references to errors that the page shows above."""

from typing import Any

from django import template

from monitoring.process.repeated_steps import RepeatedSteps
from monitoring.process.steps.trouble import BEGINNING, Trouble, is_cut, last_line
from orchestrator.text import shortened

register = template.Library()

LONGEST = 300
"""The characters of an error that are shown at once."""


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
    if not trouble or not said:
        return False
    told = trouble.message.strip()
    cut = said.removesuffix("…") if is_cut(said) else ""
    return told.endswith(said) or (len(cut) > BEGINNING and cut in told)


@register.filter
def in_short(error: str) -> str:
    """Return the beginning of a long error, up to the end of a word, or the whole of a short one."""
    return shortened(error, LONGEST)


@register.filter
def said_at(error: Any, page: Any) -> str:
    """Return the id of the part of the page that shows this error already; "" for none."""
    said = last_line(error or "")
    if as_above(said, getattr(page, "trouble", None)):
        return "header"
    workflow = getattr(page, "workflow", None)
    told = {step.error for step in workflow.open} if workflow else set()
    return "now" if said and said in told else ""
