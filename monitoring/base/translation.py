"""The translation of the engine's texts, with the labels of steps, statuses and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from monitoring.base.graphs import labels_of
from monitoring.base.statuses import LOOKS, look
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Definition
from orchestrator.text import Text, unpack_text


def translate(text: str, definition: Definition | None = None) -> str:
    """Translate a text of the engine for the reader; return a text of the application unchanged.

    Args:
        text: as raised, or as stored in a row (`said`).
        definition: of the process, for the labels of its steps.
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


def progress_message(progress: Mapping[str, Any]) -> str:
    """Return the message in the progress of a step; the engine's own for a step that polls is translated."""
    said = str(progress.get("message") or "")
    return translate(unpack_text(said, progress.get("text")))
