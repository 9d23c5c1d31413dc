"""The preview of an event that a person is about to send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitoring.masking import may_reveal
from monitoring.queries.graphs import labels_of
from monitoring.queries.instance.entries import FieldChange, differences
from monitoring.queries.nearest import preview_text
from monitoring.queries.processes import processes
from orchestrator import registry, secret_names
from orchestrator.engine.operations import (
    EventToSend,
    Preview,
    preview_event,
    preview_targets,
)
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import ProcessInstance


@dataclass(frozen=True)
class ForeseenEffect:
    """The effect of the event on one definition.

    Args:
        name: of the definition.
        process: the process that would take it; None if there is none yet.
        preview: what it would lead to.
    """

    name: str
    process: ProcessInstance | None
    preview: Preview

    @property
    def said(self) -> str:
        """The same in words."""
        return preview_text(self.preview, self._labels)

    @property
    def changes(self) -> list[FieldChange]:
        """What it would change in the data."""
        hidden = secret_names.code_secrets(self.name).names
        return differences(self.preview.before, self.preview.after, hidden)

    @property
    def _labels(self) -> Mapping[str, str]:
        if self.process is not None:
            return labels_of(self.process.definition)
        try:
            graph = registry.find_definition(self.name).graph()
        except UnknownDefinition:
            return {}
        return {node.id: node.label for node in graph.nodes}


@dataclass(frozen=True)
class Foreseen:
    """All effects of the event.

    Args:
        effects: one for each definition.
        handlers: the event handlers that would run too.
    """

    effects: list[ForeseenEffect]
    handlers: list[str]
    hidden: bool = False
    """Whether the effects are withheld, since they would show whether an entered value is a stored secret."""

    @property
    def process(self) -> ProcessInstance | None:
        """The process that would take it, if there is exactly one effect."""
        return self.effects[0].process if len(self.effects) == 1 else None


def foreseen(wanted: EventToSend, reader: Any) -> Foreseen:
    """Return the effects of an event if it were sent now; nothing is written.

    For an event with secret fields only readers who may reveal secrets see them: others could guess values.
    """
    handlers = [one.name for one in registry.reactions.get(wanted.type, ())]
    if secret_names.message_secrets(wanted.type) and not may_reveal(reader):
        return Foreseen([], handlers, hidden=True)
    return Foreseen(_effects(wanted), handlers)


def _effects(wanted: EventToSend) -> list[ForeseenEffect]:
    if wanted.process_id is None:
        found = preview_targets(wanted.type, wanted.body, wanted.definition, wanted.key)
        return [ForeseenEffect(*one) for one in found]
    process = processes().filter(pk=wanted.process_id).first()
    if process is None:
        return [ForeseenEffect("", None, Preview("unrouted"))]
    return [
        ForeseenEffect(
            process.name, process, preview_event(wanted.type, wanted.body, process)
        )
    ]
