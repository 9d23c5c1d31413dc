"""Some rows of a process's ledger, for a page that is scrolled."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.queries.graphs import graph_of, labels_of, start_of
from monitoring.queries.instance.done_again import DoneAgain
from monitoring.queries.instance.entries import HistoryPage
from monitoring.queries.instance.history import history_of
from monitoring.queries.instance.past import PastMoment, moment_of
from monitoring.queries.instance.past_ledger import ledger_then
from monitoring.queries.instance.workflow_history import workflow_history_of
from monitoring.queries.processes import processes
from orchestrator.engine.operations import Circumstances, refusals_of
from orchestrator.models import ProcessInstance
from orchestrator.snapshot import snapshot


@dataclass(frozen=True)
class LedgerPart:
    """Some rows of a ledger, and what their buttons need."""

    instance: ProcessInstance
    ledger: HistoryPage
    refusals: dict[str, str]
    moment: PastMoment | None = None
    again: DoneAgain | None = None
    """Of a workflow: what its actions would do again."""

    @property
    def place(self) -> str:
        """The query that leads to the moment; empty for now."""
        return f"at={self.moment.revision}" if self.moment is not None else ""


def instance_ledger(
    pk: UUID,
    user: AbstractBaseUser | AnonymousUser,
    before: int | None,
    at: int | None,
) -> LedgerPart:
    """Reads some rows of a process's ledger and nothing else; 404 when there is no such process."""
    with snapshot():
        instance = get_object_or_404(processes(), pk=pk)
        moment = moment_of(instance, at) if at is not None else None
        pinned = moment.definition if moment is not None else instance.definition
        graph, labels = graph_of(pinned), labels_of(pinned)
        refusals = refusals_of(Circumstances(instance), user)
        if moment is not None:
            past = dict.fromkeys(refusals, _("You look at the past."))
            page = ledger_then(moment, start_of(graph), labels, before)
            return LedgerPart(moment.then, page, past, moment)
        if instance.definition.is_workflow:
            page = workflow_history_of(instance, labels, before)
            again = DoneAgain(instance, labels)
            return LedgerPart(instance, page, refusals, again=again)
        page = history_of(instance, start_of(graph), labels, before)
        return LedgerPart(instance, page, refusals)
