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
    command_id,
    in_issue_order,
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
    "command_id",
    "in_issue_order",
]
