"""The preview of an event that a person is about to send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitoring.base.differences import FieldChange, differences
from monitoring.base.graphs import labels_of
from monitoring.base.masking import may_reveal
from monitoring.lists.events.possible_processes import preview_text
from monitoring.queries.processes import process_rows
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
class EventEffect:
    """The effect of the event on one definition.

    Args:
        name: the name of the definition.
        process: the process that would take the event; None if there is none yet.
        preview: the effect on the process.
    """

    name: str
    process: ProcessInstance | None
    preview: Preview

    @property
    def said(self) -> str:
        """The effect in words."""
        return preview_text(self.preview, self._labels)

    @property
    def changes(self) -> list[FieldChange]:
        """The changes of the data."""
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
class EventPreview:
    """The preview of an event: all its effects.

    Args:
        effects: one for each definition.
        handlers: the event handlers that would run as well.
    """

    effects: list[EventEffect]
    handlers: list[str]
    hidden: bool = False
    """Whether the effects are withheld, since they would tell whether an entered value is a stored secret."""

    @property
    def process(self) -> ProcessInstance | None:
        """The process that would take it, if there is exactly one effect."""
        return self.effects[0].process if len(self.effects) == 1 else None


def preview_sending(wanted: EventToSend, reader: Any) -> EventPreview:
    """Return the effects of an event if it were sent now; nothing is written.

    The effects of an event with secret fields are hidden from readers who may not reveal secrets: they could guess.
    """
    handlers = [one.name for one in registry.reactions.get(wanted.type, ())]
    if secret_names.message_secrets(wanted.type) and not may_reveal(reader):
        return EventPreview([], handlers, hidden=True)
    return EventPreview(_effects(wanted), handlers)


def _effects(wanted: EventToSend) -> list[EventEffect]:
    if wanted.process_id is None:
        found = preview_targets(wanted.type, wanted.body, wanted.definition, wanted.key)
        return [EventEffect(*one) for one in found]
    process = process_rows().filter(pk=wanted.process_id).first()
    if process is None:
        return [EventEffect("", None, Preview("unrouted"))]
    return [
        EventEffect(
            process.name, process, preview_event(wanted.type, wanted.body, process)
        )
    ]
