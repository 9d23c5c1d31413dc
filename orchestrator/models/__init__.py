"""The tables. The engine alone writes them; everything else reads.

definition -> process instance -> step runs, checkpoints, issued commands, incidents, outside ids
inbox events point at the process they belong to, known or not yet known.
bulk operations -> their items, which name processes or events; audit rows name the operation they are part of
occurrences and queue outages -> notices; occurrences -> failure groups
staged repairs belong to a process and a person, and are gone when they are applied
access tokens belong to a person; the audit names them by their names
permissions by definition belong to a group of Django's, and name their definition
failure marks name the cause of incidents, without a foreign key: it outlives them
"""

from orchestrator.models.access_token import AccessToken
from orchestrator.models.bulk_operation import (
    BulkItem,
    BulkOperation,
    BulkStatus,
    BulkVerdict,
)
from orchestrator.models.cause import Cause, CauseKind
from orchestrator.models.checkpoint import Checkpoint
from orchestrator.models.definition import Definition
from orchestrator.models.definition_grant import DefinitionGrant
from orchestrator.models.failure_group import FailureGroup
from orchestrator.models.failure_mark import FailureMark
from orchestrator.models.inbox_event import InboxEvent, Verdict
from orchestrator.models.incident import Incident
from orchestrator.models.issued_command import (
    CommandStatus,
    Delivery,
    IssuedCommand,
    as_written,
    command_id,
)
from orchestrator.models.notice import Notice, NoticeStatus
from orchestrator.models.occurrence import Occurrence
from orchestrator.models.operator_action import OperatorAction
from orchestrator.models.outside_id import OutsideId
from orchestrator.models.process_instance import ProcessInstance, Status
from orchestrator.models.queue_outage import QueueOutage
from orchestrator.models.repair import Repair
from orchestrator.models.saved_view import SavedView
from orchestrator.models.step_run import Blocked, Lost, StepKind, StepRun, StepStatus
from orchestrator.models.work import Work
from orchestrator.models.worker import Worker

__all__ = [
    "AccessToken",
    "Blocked",
    "BulkItem",
    "BulkOperation",
    "BulkStatus",
    "BulkVerdict",
    "Cause",
    "CauseKind",
    "Checkpoint",
    "CommandStatus",
    "Definition",
    "DefinitionGrant",
    "Delivery",
    "FailureGroup",
    "FailureMark",
    "InboxEvent",
    "Incident",
    "IssuedCommand",
    "Lost",
    "Notice",
    "NoticeStatus",
    "Occurrence",
    "OperatorAction",
    "OutsideId",
    "ProcessInstance",
    "QueueOutage",
    "Repair",
    "SavedView",
    "Status",
    "StepKind",
    "StepRun",
    "StepStatus",
    "Verdict",
    "Work",
    "Worker",
    "as_written",
    "command_id",
]
