"""The schemas of answers: their fields, and the order in which they are written and described."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from monitoring.base.access import EVENTS
from monitoring.base.masking import visible_selection
from monitoring.base.row_addresses import NO_CAUSE
from monitoring.base.translation import translate
from monitoring.lists.failures.failures import AlikeFailures
from monitoring.lists.processes.saved_views import place_of_view
from orchestrator.models import BulkItem, BulkOperation, Incident, SavedView

FailureCause = Annotated[str, BeforeValidator(lambda given: given or NO_CAUSE)]
"""The cause of a failure, as addresses name it."""

Not = Annotated[bool, BeforeValidator(lambda given: not given)]
"""Whether there is no such value, or it is false."""


class FromAttributes(BaseModel):
    """A schema whose fields are attributes of a row; pydantic reads them without a Python call for each."""

    model_config = ConfigDict(from_attributes=True)


def page_schema(
    title: str, base: type[Schema] = Schema, **rows: type[BaseModel]
) -> type[Schema]:
    """Return the schema of a page of a list: its subject, its rows, and the address of the next page.

    Args:
        title: the name of the schema.
        base: the schema of the subject.
        rows: the schema of a row, by the name of the rows.
    """
    told: dict[str, Any] = {name: (list[row], ...) for name, row in rows.items()}  # type: ignore[valid-type]
    return create_model(title, __base__=base, **told, next=(str | None, ...))


def serialize(kind: type[BaseModel], row: Any, request: Any) -> dict[str, Any]:
    """Return the fields of a row, as the user of the request may see them."""
    return kind.model_validate(row, context={"request": request}).model_dump()


class DescribedAction(FromAttributes):
    """An action with its address and its fields; a field in brackets is optional."""

    action: str
    label: str
    permission: str
    method: str
    address: str
    fields: list[str]


class ProcessStanding(FromAttributes):
    """The status of a process."""

    process: UUID = Field(alias="pk")
    status: str
    step: str
    revision: int


class ListedProcess(FromAttributes):
    """A process in a list."""

    process: UUID
    key: str
    definition: str
    version: int
    status: str
    step: str
    summary: str
    owner: str | None
    escalation_level: int
    started: datetime
    changed: datetime
    finished: datetime | None
    revision: int


class OpenVisit(FromAttributes):
    """A step that a process is at."""

    visit: int = Field(alias="pk")
    step: str = Field(alias="node")
    status: str
    kind: str
    number: int = Field(alias="visit")
    element: int | None = Field(alias="item")
    attempt: int
    until: datetime | None = Field(alias="wake_at")


class WithMessage(Schema):
    """A failure with its message in the language of its reader."""

    message: str

    @staticmethod
    def resolve_message(row: Incident) -> str:
        return translate(row.said, row.instance.definition if row.instance else None)


class OpenFailure(WithMessage):
    """A failure of a process whose cause is not gone."""

    failure: int = Field(alias="pk")
    kind: str
    cause: FailureCause = Field(alias="fingerprint")
    since: datetime = Field(alias="opened_at")
    visit: int | None = Field(alias="step_run_id")
    command: UUID | None = Field(alias="command_id")
    event: int | None = Field(alias="event_id")


class ListedTransition(FromAttributes):
    """One transition of a process; `data`, bodies and ids of events are null for users who may not see data."""

    revision: int
    at: datetime
    cause: str
    status: str
    steps: Any
    edges: list[str]
    data: Any
    event: dict[str, Any] | None
    commands: list[dict[str, Any]]


class WholeProcess(ListedProcess):
    """A process with a page of its history; `data` and `result` are null for users who may not see data."""

    visits: list[OpenVisit]
    failures: list[OpenFailure]
    refused: dict[str, str] = Field(description="by action, why it cannot be done now")
    data: Any
    result: Any
    history: list[ListedTransition]
    next: str | None


class ReceivedEvent(FromAttributes):
    """An event without its body."""

    event: int = Field(alias="pk")
    type: str
    source: str
    id: str = Field(alias="event_id")
    key: str = Field(alias="correlation_key")
    verdict: str
    process: UUID | None = Field(alias="process_id")
    received: datetime = Field(alias="received_at")
    error: str


class ListedGroup(Schema):
    """Open failures of one cause."""

    cause: FailureCause = Field(alias="newest.fingerprint")
    number: int = Field(alias="number.number")
    exact: Not = Field(alias="number.at_least")
    newest: int = Field(alias="newest.pk")
    message: str
    definition: str | None = Field(None, alias="definition.name")
    since: datetime = Field(alias="oldest.opened_at")
    last: datetime = Field(alias="newest.opened_at")

    @staticmethod
    def resolve_message(row: AlikeFailures) -> str:
        return WithMessage.resolve_message(row.newest)


class FailureOfCause(WithMessage):
    """A failure in the list of one cause."""

    failure: int = Field(alias="pk")
    process: UUID | None = Field(alias="instance_id")
    since: datetime = Field(alias="opened_at")


class OfOneCause(Schema):
    """The subject of a list of failures."""

    cause: str


class OperationOnMany(Schema):
    """A bulk operation and its progress; `about` has null for values that the user may not see."""

    operation: UUID = Field(alias="pk")
    action: str
    status: str
    revision: int
    by: str = Field(alias="actor_name")
    reason: str
    about: dict[str, Any]
    begun: datetime = Field(alias="created_at")
    ended: datetime | None = Field(alias="finished_at")
    total: int
    done_so_far: int = Field(alias="done")
    failed: int
    skipped: int
    not_allowed: int = Field(alias="refused")

    @staticmethod
    def resolve_about(row: BulkOperation, context: Any) -> dict[str, Any]:
        return visible_selection(row, context["request"].user)


class ItemOfMany(Schema):
    """An item of a bulk operation: one process or event, with its verdict."""

    process: UUID | None = Field(alias="process_id")
    event: int | None = Field(alias="event_id")
    verdict: str
    detail: str | None

    @staticmethod
    def resolve_detail(row: BulkItem, context: Any) -> str | None:
        sees = row.process_id or context["request"].user.has_perm(EVENTS)
        return row.detail if sees else None


class ViewOfList(Schema):
    """A saved view, with the address of its list."""

    view: int = Field(alias="pk")
    name: str
    revision: int
    team: Not = Field(alias="owner_id")
    list: str

    @staticmethod
    def resolve_list(row: SavedView) -> str:
        return place_of_view(row)


class OwnToken(FromAttributes):
    """A token, as its owner may see it."""

    token: int = Field(alias="pk")
    name: str
    created: datetime = Field(alias="created_at")
    expires: datetime = Field(alias="expires_at")
    used: datetime | None = Field(alias="last_used_at")
    revoked: datetime | None = Field(alias="revoked_at")


class BulkPreviewed(Schema):
    """The preview of a bulk operation. An address without filters cannot begin one."""

    shown: int
    shown_at: datetime | None = None
    limits: str | None = None
    left_out: dict[str, int] | None = None
    exact: bool
    narrowed: bool


class DoneAction(Schema):
    """The answer to an action."""

    done: bool
    said: str = Field(description="for people, in their language")
    address: str | None = Field(None, description="of what it has led to")


class SentEvent(DoneAction):
    """The answer to an event that was sent."""

    receipt: int | None = Field(None, description="the number of the event")
    verdict: str | None = Field(None, description="what became of it so far")
    process: UUID | None = None


class RefusedCall(Schema):
    """The answer to a refused call."""

    done: bool
    error: str = Field(
        description="the code of the refusal, the same in every language"
    )
    said: str = Field(description="for people, in their language")
    code: str | None = Field(None, description="what is refused, in docs/texts.md")
    errors: dict[str, list[str]] | None = Field(None, description="by field")


class ProblemDocument(Schema):
    """The answer to a refused call, as a problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    error: str
    code: str | None = None
    errors: dict[str, list[str]] | None = None


PageOfProcesses = page_schema("PageOfProcesses", processes=ListedProcess)
PageOfEvents = page_schema("PageOfEvents", events=ReceivedEvent)
PageOfGroups = page_schema("PageOfGroups", failures=ListedGroup)
PageOfCause = page_schema("PageOfCause", OfOneCause, failures=FailureOfCause)
PageOfOperations = page_schema("PageOfOperations", operations=OperationOnMany)
PageOfItems = page_schema("PageOfItems", OperationOnMany, items=ItemOfMany)
PageOfTokens = page_schema("PageOfTokens", tokens=OwnToken)


DescribedActions = create_model(
    "DescribedActions", __base__=Schema, actions=(list[DescribedAction], ...)
)
SavedViews = create_model("SavedViews", __base__=Schema, views=(list[ViewOfList], ...))
