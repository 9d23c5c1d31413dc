"""Every table for looking at, none for changing; what operators may do goes through the engine, with a reason."""

from functools import partial
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.contrib import admin, messages
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet, UUIDField
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.actions import MOST_REVISION
from monitoring.places import place_of, shows
from monitoring.queries.events import received_as
from monitoring.queries.graphs import labels_of
from monitoring.queries.instances import Filters
from monitoring.spoken import spoken
from orchestrator.definition.graph import Graph
from orchestrator.engine.operations import OPERATIONS, ActionRequest, Operation
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Checkpoint,
    Definition,
    Delivery,
    FailureGroup,
    InboxEvent,
    Incident,
    IssuedCommand,
    Notice,
    Occurrence,
    OperatorAction,
    ProcessInstance,
    QueueOutage,
    Status,
    StepRun,
    Worker,
)
from orchestrator.notices.lines import counted, line

MOST = 100
"""Rows that one action takes on."""


LOOKED_AT = 2_000
"""Rows that a list looks at when it is narrowed, and that it pages through: the newest."""


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable at run time
    """Counts no more rows than anybody pages through."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows[:LOOKED_AT].count())


class NewestFirst(ChangeList):
    """A list in its one order: another one would sort the whole table."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        self.params.pop(ORDER_VAR, None)
        return super().get_ordering(request, queryset)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Shows rows; the engine alone writes them.

    Its lists stay quick whatever the size of the tables: filters look at the newest rows, a search goes by an index,
    and columns are not sorted by.
    """

    list_per_page = 50
    show_full_result_count = False
    paginator = BoundedPaginator
    sortable_by = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return NewestFirst

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = self.listed(request)
        named = {parameter.partition("__")[0] for parameter in request.GET}
        if named & {_field_of(one) for one in self.list_filter}:
            return _newest(rows.order_by(*self.ordering or ["-pk"]))
        return rows

    def view_on_site(self, row: Any) -> str | None:
        """Where the console shows it; Django puts a link to it on the page of a row."""
        return place_of(row) or None

    @admin.display(description=gettext_lazy("console"))
    def in_console(self, row: Any) -> str:
        """The same as a link, for lists."""
        place = place_of(row)
        return format_html('<a href="{}">{}</a>', place, _("show")) if place else "-"

    def get_list_display(self, request: HttpRequest) -> Any:
        """The columns, and the link to the console where rows have a place there and it has an address."""
        columns = super().get_list_display(request)
        return [*columns, "in_console"] if shows(self.model) else columns

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows that the list is about."""
        return super().get_queryset(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False


class OfProcessesAdmin(ReadOnlyAdmin):
    """A table whose rows are found by their process."""

    process_field = "instance"
    search_help_text = gettext_lazy("A process id or the beginning of a key.")

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return [self.process_field]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Finds the rows of the processes that are named; a number is that of a row."""
        text = search_term.replace("\0", "").strip()
        if not text:
            return queryset, False
        if text.isdecimal() and not isinstance(self.opts.pk, UUIDField):
            return queryset.filter(pk=int(text[:18])), False
        found = Filters(q=text).applied().order_by("-pk")
        keys = list(found.values_list("pk", flat=True)[:MOST])
        return queryset.filter(**{f"{self.process_field}__in": keys}), False


def with_definitions(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows of processes with what names their steps, which is not the graph: that is kept, and large."""
    rows = rows.select_related("instance__definition")
    return rows.defer("instance__definition__graph")


def _newest(rows: QuerySet[Any]) -> QuerySet[Any]:
    """No more than the newest rows, for conditions that no index knows."""
    keys = rows.values("pk")[:LOOKED_AT]
    return rows.filter(pk__in=keys)


def _field_of(one: Any) -> str:
    """What the parameter of a filter begins with."""
    return str(one if isinstance(one, str) else one.parameter_name)


class KnownValues(admin.SimpleListFilter):
    """A filter whose values are known without asking the table."""

    field = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.field: value}) if value else queryset


class DefinitionName(KnownValues):
    title = gettext_lazy("definition")
    parameter_name = field = "name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = Definition.objects.order_by("name").values_list("name", flat=True)
        return [(name, name) for name in names.distinct()]


class Escalated(admin.SimpleListFilter):
    title = gettext_lazy("escalated")
    parameter_name = "escalation_level"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", gettext_lazy("Yes"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(escalation_level__gt=0) if self.value() else queryset


class StatusThen(KnownValues):
    title = gettext_lazy("status")
    parameter_name = field = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(Status.choices)


class ActionName(KnownValues):
    title = gettext_lazy("action")
    parameter_name = field = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, operation.label) for name, operation in OPERATIONS.items()]


def with_reason(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    operation: Operation,
) -> HttpResponse | None:
    """Asks for the reason on a page of its own, then asks the engine for each chosen row."""
    rows = list(chosen[: MOST + 1])
    if len(rows) > MOST:
        messages.error(request, _("Choose at most %d rows.") % MOST)
        return None
    reason = request.POST.get("reason", "").strip()
    if "key" in request.POST and (reason or not operation.asks_reason):
        return _carry_out(request, rows, operation, reason)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": operation.label,
        "opts": model_admin.opts,
        "rows": rows,
        "action": request.POST.get("action", ""),
        "key": request.POST.get("key") or uuid4(),
        "missing": "key" in request.POST,
    }
    return TemplateResponse(request, "monitoring/admin/reason.html", context)


def _carry_out(
    request: HttpRequest, rows: list[Any], operation: Any, reason: str
) -> HttpResponse | None:
    """One operation for each row; its key comes from the page's, so that sending the page twice acts once."""
    for row in rows:
        seen = request.POST.get(f"revision-{row.pk}", "")
        try:
            asked = ActionRequest(
                actor=request.user,
                key=uuid5(UUID(request.POST["key"]), str(row.pk)),
                reason=reason,
                expected_revision=min(int(seen), MOST_REVISION)
                if seen.isdecimal()
                else None,
                address=request.META.get("REMOTE_ADDR") or None,
            )
            operation(row.pk, request=asked)
        except (OperationRefused, ValueError) as refused:
            messages.error(request, f"{row}: {spoken(str(refused))}")
        else:
            messages.success(request, _("%s: done.") % row)
    return None


class OperatedAdmin(OfProcessesAdmin):
    """Offers for chosen rows the operators' actions that can be done to many."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = super().get_actions(request)
        for operation in OPERATIONS.values():
            mine = operation.on_many and operation.model is self.model
            if mine and not operation.forbidden(request.user):
                act = partial(_act, operation=operation)
                found[operation.name] = (act, operation.name, operation.label)
        return found


def _act(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    rows: QuerySet[Any],
    *,
    operation: Operation,
) -> HttpResponse | None:
    return with_reason(model_admin, request, rows, operation)


@admin.register(ProcessInstance)
class ProcessInstanceAdmin(OperatedAdmin):
    list_display = [
        "correlation_key",
        "id",
        "name",
        "status",
        "current_step",
        "open_steps",
        "parent_id",
        "owner",
        "revision",
        "changed_at",
    ]
    list_filter = [DefinitionName, "status", Escalated]
    process_field = "pk"
    ordering = ["-id"]

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().listed(request).select_related("owner", "definition")
        return rows.defer("definition__graph")

    @admin.display(description=gettext_lazy("current step"))
    def current_step(self, row: ProcessInstance) -> str:
        return labels_of(row.definition).get(row.step, row.step)


@admin.register(InboxEvent)
class InboxEventAdmin(OperatedAdmin):
    list_display = [
        "type",
        "event_id",
        "source",
        "verdict",
        "process_id",
        "attempt",
        "received_at",
    ]
    list_filter = ["verdict"]
    process_field = "process"
    ordering = ["-id"]
    search_help_text = gettext_lazy(
        "The id that its sender gave it, a process id or the beginning of a key."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Finds events by their own ids before anything else, and beside the row of that number."""
        text = search_term.replace("\0", "").strip()
        if text and (named := received_as(text)):
            numbers = [int(text[:18])] if text.isdecimal() else []
            return queryset.filter(pk__in=[*named, *numbers]), False
        return super().get_search_results(request, queryset, search_term)


@admin.register(Definition)
class DefinitionAdmin(ReadOnlyAdmin):
    list_display = ["name", "version", "kind", "fingerprint", "created_at"]
    list_filter = ["kind"]
    search_fields = ["name", "=fingerprint"]


@admin.register(StepRun)
class StepRunAdmin(OfProcessesAdmin):
    list_display = [
        "step",
        "kind",
        "visit",
        "item",
        "round",
        "instance_id",
        "status",
        "attempt",
        "wake_at",
        "started_at",
        "finished_at",
    ]
    list_filter = ["status", "kind"]
    ordering = ["-id"]

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        return with_definitions(super().listed(request))

    @admin.display(description=gettext_lazy("step"))
    def step(self, row: StepRun) -> str:
        return labels_of(row.instance.definition).get(row.node, row.node)


@admin.register(Checkpoint)
class CheckpointAdmin(OfProcessesAdmin):
    list_display = ["instance_id", "revision", "moved_by", "status", "at"]
    list_filter = [StatusThen]
    ordering = ["-id"]
    fields = readonly_fields = (
        "instance",
        "revision",
        "moved_by",
        "transitions",
        "steps",
        "status",
        "data",
        "checksum",
        "at",
    )

    @admin.display(description=gettext_lazy("cause"))
    def moved_by(self, row: Checkpoint) -> str:
        return row.said

    @admin.display(description=gettext_lazy("transition taken"))
    def transitions(self, row: Checkpoint) -> str:
        """From where to where, as the diagram of its definition says it."""
        graph = Graph.from_json(row.instance.definition.graph)
        labels = {node.id: node.label for node in graph.nodes}
        taken = set(row.edge.split(","))
        moves = [
            f"{labels[edge.source]} → {labels[edge.target]}"
            for edge in graph.edges
            if edge.id in taken
        ]
        return ", ".join(moves) or str(self.get_empty_value_display())


@admin.register(IssuedCommand)
class IssuedCommandAdmin(OfProcessesAdmin):
    list_display = [
        "type",
        "instance_id",
        "revision",
        "delivery",
        "status",
        "attempt",
        "issued_at",
    ]
    list_filter = ["status", "delivery"]
    ordering = ["-instance", "-revision"]

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        """Those of processes, unless the others are asked for: they have no place in the order of processes."""
        rows = super().listed(request)
        match = request.resolver_match
        others = request.GET.get("delivery__exact") == Delivery.REACTION
        if others or (match is not None and match.kwargs):
            return rows
        return rows.filter(instance__isnull=False)


@admin.register(Incident)
class IncidentAdmin(OfProcessesAdmin):
    list_display = [
        "told",
        "kind",
        "instance_id",
        "opened_at",
        "resolved_at",
        "resolution",
    ]
    list_filter = ["kind", "resolved_at"]
    ordering = ["-id"]

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        return with_definitions(super().listed(request))

    @admin.display(description=gettext_lazy("message"))
    def told(self, row: Incident) -> str:
        return spoken(row.message, row.instance.definition if row.instance else None)


@admin.register(OperatorAction)
class OperatorActionAdmin(OfProcessesAdmin):
    list_display = [
        "action",
        "actor_name",
        "instance_id",
        "event_id",
        "result",
        "reason",
        "at",
    ]
    list_filter = [ActionName, "result"]
    ordering = ["-at"]


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """The log of deliveries."""

    list_display = [
        "created_at",
        "recipient",
        "told",
        "status",
        "attempt",
        "error",
        "wake_at",
        "settled_at",
    ]
    list_filter = ["status"]
    ordering = ["-id"]
    fields = readonly_fields = (
        "id",
        "recipient",
        "told",
        "said",
        "status",
        "attempt",
        "error",
        "created_at",
        "begun_at",
        "wake_at",
        "settled_at",
    )

    @admin.display(description=gettext_lazy("tells of"))
    def told(self, row: Notice) -> str:
        return counted(row.counts)

    @admin.display(description=gettext_lazy("text"))
    def said(self, row: Notice) -> str:
        """Each thing in a line, which leads to its process where the console has an address."""
        if not shows(ProcessInstance):
            return format_html_join(
                mark_safe("<br>"), "{}", ([line(item)] for item in row.items)
            )
        lines = ((self._page(item), line(item)) for item in row.items)
        return format_html_join(mark_safe("<br>"), '<a href="{}">{}</a>', lines)

    def _page(self, item: dict[str, Any]) -> str:
        if item["process_id"]:
            return reverse("monitoring:instance", args=[item["process_id"]])
        return reverse("monitoring:failures")


@admin.register(Occurrence)
class OccurrenceAdmin(ReadOnlyAdmin):
    list_display = [
        "at",
        "topics",
        "definition",
        "correlation_key",
        "step",
        "queue",
        "message",
    ]
    ordering = ["-id"]


@admin.register(FailureGroup)
class FailureGroupAdmin(ReadOnlyAdmin):
    list_display = [
        "message",
        "definition",
        "step",
        "error",
        "place",
        "number",
        "first_at",
        "last_at",
    ]
    list_filter = ["kind"]
    ordering = ["-last_at"]


@admin.register(QueueOutage)
class QueueOutageAdmin(ReadOnlyAdmin):
    list_display = ["queue", "since", "seen_at", "told_at"]


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    list_display = ["id", "host", "pid", "queue", "started_at", "seen_at", "swept_at"]
    list_filter = ["host", "queue"]
    search_fields = ["=id", "host"]
