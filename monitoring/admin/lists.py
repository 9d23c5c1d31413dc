"""Lists that only show, and stay quick whatever the size of the tables."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.paginator import Paginator
from django.db import connections
from django.db.models import Model, QuerySet, UUIDField
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.masking import VALUES, sees_data, shown_row
from monitoring.places import place_of, shows
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import newest_keys
from monitoring.queries.texts import translated

MOST = 100
"""Processes whose rows a search finds, and rows that one action takes on."""

LOOKED_AT = 2_000
"""Rows that a list looks at when it is narrowed, and that it pages through: the newest."""


UNASKED = frozenset(
    {*(name for names in VALUES.values() for name in names), "checksum", "body_hash"}
)
"""Columns that no address narrows a list by."""


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

    def get_results(self, request: HttpRequest) -> None:
        """A page of them, also when so few were counted that Django would take all there are by now."""
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.result_list[: self.list_per_page]


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
        # A filter of Django's own is the name of a field.
        filters = {getattr(one, "parameter_name", one) for one in self.list_filter}
        if named & filters:
            return _newest(rows.order_by(*self.ordering or ["-pk"]))
        return rows

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """The row, without what is secret in it; it is shown, and never saved."""
        row = super().get_object(request, object_id, from_field)
        return row and shown_row(row, sees=sees_data(request.user))

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Refuses conditions on values of the application's in an address: what is counted would tell of secrets."""
        if not UNASKED.isdisjoint(lookup.split("__")):
            return False
        return super().lookup_allowed(lookup, value, request)

    def view_on_site(self, row: Any) -> str | None:
        """Where the console shows it; Django puts a link to it on the page of a row."""
        return place_of(row) or None

    @admin.display(description=gettext_lazy("console"))
    def in_console(self, row: Any) -> str:
        """The same as a link, for lists."""
        place = place_of(row)
        return format_html('<a href="{}">{}</a>', place, _("show")) if place else "-"

    @admin.display(description=gettext_lazy("message"))
    def shown_text(self, row: Any) -> str:
        """What the row tells people, for lists."""
        process = getattr(row, "instance", None)
        return translated(row.said, process.definition if process else None)

    def get_list_display(self, request: HttpRequest) -> Any:
        """The columns, and the link to the console where rows have a place there and it has an address."""
        columns = super().get_list_display(request)
        return [*columns, "in_console"] if shows(self.model) else columns

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows that the list is about."""
        return super().get_queryset(request)

    def _nobody(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _nobody


class OfProcessesAdmin(ReadOnlyAdmin):
    """A table whose rows are found by their process."""

    process_field = "instance"
    ordering = ["-id"]
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
        keys = newest_keys(Filters(q=text), MOST)
        return queryset.filter(**{f"{self.process_field}__in": keys}), False


def with_definitions(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows of processes with what names their steps, which is not the graph: that is kept, and large."""
    rows = rows.select_related("instance__definition")
    return rows.defer("instance__definition__graph")


def _newest(rows: QuerySet[Any]) -> QuerySet[Any]:
    """No more than the newest rows, for conditions that no index knows."""
    keys: Any = rows.values("pk")[:LOOKED_AT]
    if connections[rows.db].vendor == "postgresql":
        # As an array they are found first, and the rows then by them: joined, a condition of theirs may be looked up
        # in the whole table by an index of its own.
        sql, given = keys.query.sql_with_params()
        keys = RawSQL(f"SELECT unnest(ARRAY({sql}))", given)  # noqa: S611  the values are parameters
    return rows.filter(pk__in=keys)
