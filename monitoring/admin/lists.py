"""Read-only lists that stay fast with tables of any size."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.paginator import Paginator
from django.db import connections
from django.db.models import DurationField, Model, QuerySet, UUIDField
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.admin.answers import ConsoleAdmin
from monitoring.base.masking import VALUES, masked_row, sees_data
from monitoring.base.row_addresses import has_place, place_of
from monitoring.base.translation import translate
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import newest_keys

MOST = 100
"""Processes whose rows a search finds, and rows of one action, at most."""

LOOKED_AT = 2_000
"""The newest rows, which filters and pages of a list are limited to."""


UNASKED = frozenset(
    {*(name for names in VALUES.values() for name in names), "checksum", "body_hash"}
)
"""Columns that no address can filter by."""


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable at run time
    """Counts the rows up to a limit."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows[:LOOKED_AT].count())


class NewestFirst(ChangeList):
    """A list with a fixed order, since another order would sort the whole table."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        self.params.pop(ORDER_VAR, None)
        return super().get_ordering(request, queryset)

    def get_results(self, request: HttpRequest) -> None:
        """Limit the only page too, since rows may have come after the count."""
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.result_list[: self.list_per_page]


class ReadOnlyAdmin(ConsoleAdmin):
    """Shows rows that only the engine writes.

    Its lists stay fast with tables of any size: filters are limited to the newest rows, a search uses an index, and no
    column sorts the list.
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
            return _newest_rows(rows.order_by(*self.ordering or ["-pk"]))
        return rows

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the row without its secrets, to show and never to save."""
        row = super().get_object(request, object_id, from_field)
        return row and masked_row(row, sees=sees_data(request.user))

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Refuse filters on values of the application, since the number of matches would reveal secrets."""
        unasked = {f.name for f in self.opts.fields if isinstance(f, DurationField)}
        # Django gives a filter on a duration to the database as it is, and SQLite fails.
        if not (UNASKED | unasked).isdisjoint(lookup.split("__")):
            return False
        return super().lookup_allowed(lookup, value, request)

    def view_on_site(self, row: Any) -> str | None:
        """Return the page of the console for a row; Django shows a link to it."""
        return place_of(row) or None

    @admin.display(description=gettext_lazy("console"))
    def in_console(self, row: Any) -> str:
        """Return the same as a link, for lists."""
        place = place_of(row)
        return format_html('<a href="{}">{}</a>', place, _("show")) if place else "-"

    @admin.display(description=gettext_lazy("message"))
    def shown_text(self, row: Any) -> str:
        """Return the text of the row, for lists."""
        process = getattr(row, "instance", None)
        return translate(row.said, process.definition if process else None)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns, and the link to the console if the console shows such rows."""
        columns = super().get_list_display(request)
        return [*columns, "in_console"] if has_place(self.model) else columns

    def listed(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows of the list before filters."""
        return super().get_queryset(request)

    def _never(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _never


class ProcessRowAdmin(ReadOnlyAdmin):
    """A table that is searched by process."""

    process_field = "instance"
    ordering = ["-id"]
    search_help_text = gettext_lazy("A process id or the beginning of a key.")

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return [self.process_field]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find rows by their process, or one row by its number."""
        text = search_term.replace("\0", "").strip()
        if not text:
            return queryset, False
        if text.isdecimal() and not isinstance(self.opts.pk, UUIDField):
            return queryset.filter(pk=int(text[:18])), False
        keys = newest_keys(Filters(q=text), MOST)
        return queryset.filter(**{f"{self.process_field}__in": keys}), False


def join_definitions(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Add the definitions of the rows, which name their steps, without the large graphs."""
    rows = rows.select_related("instance__definition")
    return rows.defer("instance__definition__graph")


def _newest_rows(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Limit rows to the newest, for filters without an index."""
    keys: Any = rows.values("pk")[:LOOKED_AT]
    if connections[rows.db].vendor == "postgresql":
        # An array makes PostgreSQL find the keys first. With a join it could search the whole table by the index of
        # another condition.
        sql, given = keys.query.sql_with_params()
        keys = RawSQL(f"SELECT unnest(ARRAY({sql}))", given)  # noqa: S611  the values are parameters
    return rows.filter(pk__in=keys)
