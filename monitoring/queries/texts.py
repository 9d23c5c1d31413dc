"""The engine's own texts in the reader's language, with steps and statuses by their names."""

from __future__ import annotations

from django.utils.translation import gettext

from monitoring.queries.graphs import labels_of
from monitoring.statuses import LOOKS, look
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Definition
from orchestrator.text import Text


def translated(text: str, definition: Definition | None = None) -> str:
    """A text of the engine for whoever reads it; one of the application as it is.

    Args:
        text: as it was raised, or as a row has it (`said`).
        definition: of the process that it is about, whose steps have names.
    """
    if not isinstance(text, Text):
        return text
    labels = labels_of(definition) if definition else {}

    def shown(name: str, value: str) -> str:
        if name.endswith("step"):
            return labels.get(value, value)
        if name == "status" and value in LOOKS:
            return str(look(value).word)
        if name == "action" and value in OPERATIONS:
            return str(OPERATIONS[value].label)
        return gettext(value) if name == "cause" and value else value

    return text.translated(gettext, shown)
