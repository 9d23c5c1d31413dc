"""The tables. Only the engine writes them; all other packages read.

definition -> process instance -> step runs, checkpoints, issued commands, incidents, outside ids
Inbox events name their process, which need not exist yet.
bulk operations -> their items, which name processes or events. Audit rows name their bulk operation.
occurrences and queue outages -> notices; occurrences -> failure groups
Staged repairs belong to a process and a person, until they are applied or discarded.
Access tokens belong to a person. The audit has their names.
Permissions by definition belong to a group of Django's, and have the name of a definition.
Failure marks have the fingerprint of a cause instead of a foreign key: a mark may outlive the incidents.
"""

from orchestrator.models.bulk_operation import (
    BulkItem,
    BulkOperation,
    BulkStatus,
    BulkVerdict,
)
from orchestrator.models.cause import Cause, CauseKind
from orchestrator.models.definition import Definition, DefinitionGrant
from orchestrator.models.inbox_event import InboxEvent, Verdict
from orchestrator.models.incident import FailureGroup, FailureMark, Incident
from orchestrator.models.issued_command import (
    CommandStatus,
    Delivery,
    IssuedCommand,
    command_id,
    in_issue_order,
)
from orchestrator.models.notice import Notice, NoticeStatus, Occurrence, QueueOutage
from orchestrator.models.person import AccessToken, OperatorAction, Repair, SavedView
from orchestrator.models.process_instance import (
    Checkpoint,
    OutsideId,
    ProcessInstance,
    Status,
)
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
    "command_id",
    "in_issue_order",
]
