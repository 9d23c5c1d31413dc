"""A row of the audit, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from monitoring.audit.words import action_word
from monitoring.base.differences import FieldChange, differences
from monitoring.base.graphs import labels_of
from monitoring.base.masking import TELLING, masked_action, names_in, tells_data
from monitoring.base.row_addresses import NO_CAUSE
from monitoring.base.statuses import look
from monitoring.base.translation import translate
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Definition, InboxEvent, OperatorAction

FIELDS = {
    "status": gettext_lazy("status"),
    "step": gettext_lazy("step"),
    "escalation_level": gettext_lazy("escalation level"),
    "verdict": gettext_lazy("verdict"),
    "restarted_as": gettext_lazy("restarted as"),
    "paused_with_it": gettext_lazy("paused with it"),
    "owner": gettext_lazy("owner"),
    "steps_to_undo": gettext_lazy("steps to undo"),
    "commands_still_to_do": gettext_lazy("commands still to do"),
    "decided": gettext_lazy("decided"),
    "resumed_with_it": gettext_lazy("resumed with it"),
    "redone": gettext_lazy("redone"),
    "resumed_from": gettext_lazy("resumed from"),
    "superseded": gettext_lazy("superseded"),
    "skipped": gettext_lazy("skipped"),
    "processes": gettext_lazy("processes"),
    "extended": gettext_lazy("deadline extended"),
    "woken": gettext_lazy("woken"),
    "handled": gettext_lazy("handled"),
    "until": gettext_lazy("until"),
    "token": gettext_lazy("token"),
    "version": gettext_lazy("version"),
    "steps": gettext_lazy("renamed steps"),
}
"""The labels of the fields before and after an action."""

SHOWN_ELSEWHERE = (
    "way",
    "given",
    "refused",
    "revision",
    "cause",
    "fingerprint",
    "token_id",
    "view_id",
)
"""The fields that are no changes: the row shows them elsewhere, or hides them."""


@dataclass(frozen=True)
class AuditEntry:
    """One row of the audit, in words."""

    row: OperatorAction

    @property
    def action(self) -> str:
        return action_word(self.row.action)

    @property
    def way(self) -> str:
        """The way of the request; "" for the console."""
        return str((self.row.after or {}).get("way", ""))

    @property
    def cause(self) -> str:
        """The group of failures of the action, for an address; "" for none."""
        after = self.row.after or {}
        return str(after["cause"] or NO_CAUSE) if "cause" in after else ""

    @property
    def detail(self) -> str:
        """The answer."""
        return translate(self.row.said, self._definition)

    @property
    def changes(self) -> list[FieldChange]:
        """The changed fields with labels, without the revision."""
        before, after = (
            {name: value for name, value in told.items() if name not in SHOWN_ELSEWHERE}
            for told in (self.row.before or {}, self.row.after or {})
        )
        hidden = names_in(before, self._definition) | names_in(after, self._definition)
        found = differences(before, after, frozenset())
        discreet = (one.masked(hidden) if one.name in TELLING else one for one in found)
        return [
            FieldChange(
                str(FIELDS.get(change.name, change.name)),
                self._said(change.name, change.before),
                self._said(change.name, change.after),
            )
            for change in discreet
        ]

    @property
    def tells_data(self) -> bool:
        """Whether it contains values of data."""
        return tells_data(self.row.before) or tells_data(self.row.after)

    @property
    def tells_events(self) -> bool:
        """Whether it contains the filters of an operation on events."""
        after = self.row.after or {}
        action = OPERATIONS.get(after.get("action", "")) if "about" in after else None
        return action is not None and action.model is InboxEvent

    @property
    def before(self) -> Any:
        """The fields before the action, without secrets."""
        return masked_action(self.row.before, self._definition)

    @property
    def after(self) -> Any:
        """The fields after the action, without secrets."""
        return masked_action(self.row.after, self._definition)

    @property
    def _definition(self) -> Definition | None:
        return self.row.instance.definition if self.row.instance else None

    def _said(self, name: str, value: Any) -> Any:
        if name in ("status", "verdict") and isinstance(value, str):
            return str(look(value).word)
        if name == "step" and isinstance(value, str) and self._definition:
            return labels_of(self._definition).get(value, value)
        return value
