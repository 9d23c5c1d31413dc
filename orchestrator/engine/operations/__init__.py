"""The actions of operators on processes and events: one class for each action.

`base`, `process` and `event` have the base classes, and `process` the facts that decide which actions are possible.
`registry` lists all actions, `audit` records each action.
"""

from orchestrator.engine.events.preview import Preview, preview_event, preview_targets
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Given, Operation, Press, Tried
from orchestrator.engine.operations.bulk.bulk_request import Pace, Wanted, pace_of
from orchestrator.engine.operations.bulk.controls import (
    cancel_bulk,
    pause_bulk,
    resume_bulk,
)
from orchestrator.engine.operations.bulk.selection import (
    SELECTIONS,
    Chunk,
    Found,
    Selection,
    register_selection,
)
from orchestrator.engine.operations.bulk.starting import (
    definitions_in_bulk,
    forbidden_in_bulk,
    in_bulk,
    limits,
    moment_shown,
    repeat_bulk,
    start_bulk,
)
from orchestrator.engine.operations.bulk.target_definitions import definitions_of_each
from orchestrator.engine.operations.desk.access_tokens import make_token, revoke_token
from orchestrator.engine.operations.desk.acknowledge import acknowledge
from orchestrator.engine.operations.desk.assign import assign
from orchestrator.engine.operations.desk.failures import (
    assign_failures,
    mark_handled,
    unmark_handled,
)
from orchestrator.engine.operations.desk.saved_views import (
    delete_view,
    rename_view,
    save_view,
)
from orchestrator.engine.operations.event import EventOperation
from orchestrator.engine.operations.events.deliver import deliver
from orchestrator.engine.operations.events.discard import discard
from orchestrator.engine.operations.events.redeliver import redeliver
from orchestrator.engine.operations.events.send_event import EventToSend, send
from orchestrator.engine.operations.migrating.migration import migrate, plan_migration
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.processes.cancel import cancel
from orchestrator.engine.operations.processes.escalate import escalate
from orchestrator.engine.operations.processes.nudge import (
    SleepingWork,
    nudge,
    sleeping_work,
)
from orchestrator.engine.operations.processes.pause import pause, unpause
from orchestrator.engine.operations.processes.redo import redo
from orchestrator.engine.operations.processes.restart import restart
from orchestrator.engine.operations.processes.resume import resume
from orchestrator.engine.operations.processes.retry import retry
from orchestrator.engine.operations.processes.reveal_secrets import reveal
from orchestrator.engine.operations.processes.skip import skip_command, skip_failed
from orchestrator.engine.operations.processes.transfer import export, import_
from orchestrator.engine.operations.registry import (
    OPERATIONS,
    on_events,
    on_processes,
    refusals,
    refusals_of,
    register,
)
from orchestrator.engine.operations.repairing.drafts import (
    discard_draft,
    draft_of,
    look_again,
    proposals_of,
    unstage,
)
from orchestrator.engine.operations.repairing.edits import Edit, EditKind
from orchestrator.engine.operations.repairing.plan import (
    Edited,
    Effect,
    Mistake,
    RepairPlan,
)
from orchestrator.engine.operations.repairing.repair import (
    approve_repair,
    decline_repair,
    plan_repair,
    propose_repair,
    repair,
    stage,
)
from orchestrator.engine.operations.repairing.targets import Targets, targets_of
from orchestrator.engine.operations.visits.decide import decide
from orchestrator.engine.operations.visits.extend import extend
from orchestrator.engine.operations.visits.skip import skip
from orchestrator.engine.storage.switches import (
    Switch,
    step_name_at,
    stored_definition_at,
    switches_of,
)

__all__ = [
    "OPERATIONS",
    "SELECTIONS",
    "ActionRequest",
    "Chunk",
    "Circumstances",
    "Edit",
    "EditKind",
    "Edited",
    "Effect",
    "EventOperation",
    "EventToSend",
    "Found",
    "Given",
    "Mistake",
    "Operation",
    "Pace",
    "Press",
    "Preview",
    "ProcessOperation",
    "RepairPlan",
    "Selection",
    "SleepingWork",
    "Switch",
    "Targets",
    "Tried",
    "Wanted",
    "acknowledge",
    "approve_repair",
    "assign",
    "assign_failures",
    "cancel",
    "cancel_bulk",
    "decide",
    "decline_repair",
    "definitions_in_bulk",
    "definitions_of_each",
    "delete_view",
    "deliver",
    "discard",
    "discard_draft",
    "draft_of",
    "escalate",
    "export",
    "extend",
    "forbidden_in_bulk",
    "import_",
    "in_bulk",
    "limits",
    "look_again",
    "make_token",
    "mark_handled",
    "migrate",
    "moment_shown",
    "nudge",
    "on_events",
    "on_processes",
    "pace_of",
    "pause",
    "pause_bulk",
    "plan_migration",
    "plan_repair",
    "preview_event",
    "preview_targets",
    "proposals_of",
    "propose_repair",
    "redeliver",
    "redo",
    "refusals",
    "refusals_of",
    "register",
    "register_selection",
    "rename_view",
    "repair",
    "repeat_bulk",
    "restart",
    "resume",
    "resume_bulk",
    "retry",
    "reveal",
    "revoke_token",
    "save_view",
    "send",
    "skip",
    "skip_command",
    "skip_failed",
    "sleeping_work",
    "stage",
    "start_bulk",
    "step_name_at",
    "stored_definition_at",
    "switches_of",
    "targets_of",
    "unmark_handled",
    "unpause",
    "unstage",
]
