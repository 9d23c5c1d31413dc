"""The list of instances: filters that live in the URL, pages by key, rows that stay where they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q
from django.http import QueryDict

from orchestrator.models import Definition, ProcessInstance, Status, StepRun
from orchestrator.models.process_instance import ProcessInstanceQuerySet

PAGE = 50
NEW = 100


@dataclass(frozen=True)
class Filters:
    """What the list is narrowed to; every field but the reader is a parameter of the URL.

    Args:
        owner: a user's name, "me" or "nobody".
        reader: who "me" is.
    """

    definition: str = ""
    version: str = ""
    status: str = ""
    step: str = ""
    escalated: str = ""
    owner: str = ""
    q: str = ""
    reader: Any = None

    @classmethod
    def from_query(
        cls, query: QueryDict, reader: Any = None, **fixed: str
    ) -> "Filters":
        given = {name: _clean(query.get(name, "")) for name in cls._names()}
        return cls(**(given | fixed), reader=reader)

    @classmethod
    def _names(cls) -> list[str]:
        return [named.name for named in fields(cls) if named.name != "reader"]

    def applied(self) -> ProcessInstanceQuerySet:
        """The instances that match, all of them."""
        rows = ProcessInstance.objects.all()
        if self.definition:
            rows = rows.filter(name=self.definition)
        if self.version.isdecimal():
            rows = rows.filter(definition__version=int(self.version[:9]))
        if self.status == "live":
            rows = rows.live()
        elif self.status in Status.values:
            rows = rows.filter(status=self.status)
            rows = (
                rows.live()
                if self.status not in (Status.COMPLETED, Status.CANCELLED)
                else rows
            )
        if self.step:
            rows = rows.filter(self._in_step())
        if self.escalated:
            rows = rows.escalated()
        if self.owner:
            rows = rows.filter(self._owned())
        return rows.filter(self._found()) if self.q else rows

    def _in_step(self) -> Q:
        """In this step: a process manager is in one, a workflow in all that are open, or the last when it has ended."""
        if self.definition and not _is_workflow(self.definition):
            return Q(step=self.step)
        runs = StepRun.objects.filter(instance=OuterRef("pk"), node=self.step)
        runs = runs.filter(finished_at=None, item=None).exclude(kind__in=["", "join"])
        one = Q(definition__kind=Definition.Kind.PROCESS_MANAGER)
        return Q(Exists(runs)) | Q(Q(finished_at__isnull=False) | one, step=self.step)

    def _owned(self) -> Q:
        """Seen to by this person."""
        if self.owner == "nobody":
            return Q(owner=None)
        if self.owner == "me":
            return Q(owner=getattr(self.reader, "pk", None), owner__isnull=False)
        return Q(**{f"owner__{get_user_model().USERNAME_FIELD}": self.owner})

    def _found(self) -> Q:
        """Process id, or the beginning of a correlation key."""
        try:
            return Q(pk=UUID(self.q)) | Q(correlation_key=self.q)
        except ValueError:
            return Q(correlation_key__startswith=self.q)

    def parameters(self, **changed: str) -> dict[str, str]:
        """The filters as parameters of a URL, some of them changed; empty ones are left out."""
        given = {name: getattr(self, name) for name in self._names()}
        values: Mapping[str, str] = {**given, **changed}
        return {name: value for name, value in values.items() if value}

    def chips(self) -> list[tuple[str, str]]:
        """What is set, as pairs of name and value, each shown as a chip that can be removed."""
        return [
            (name, value) for name, value in self.parameters().items() if name != "q"
        ]


@dataclass(frozen=True)
class ListPage:
    """Rows newest first, and the keys from which the pages beside it start."""

    rows: list[ProcessInstance]
    older: str = ""
    first: bool = True
    gone: frozenset[UUID] = field(default_factory=frozenset)
    new: int = 0

    @property
    def new_text(self) -> str:
        return f"{NEW}+" if self.new > NEW else str(self.new)


def page_of(filters: Filters, before: str = "", size: int = PAGE) -> ListPage:
    """The page that starts below the process id `before`, or the newest."""
    rows = _ordered(filters)
    key = _uuid(before)
    if key is not None:
        rows = rows.filter(pk__lt=key)
    found = list(rows[: size + 1])
    older = str(found[size - 1].pk) if len(found) > size else ""
    return ListPage(found[:size], older, first=key is None)


def same_rows(
    filters: Filters, shown: list[str], size: int = PAGE, before: str = ""
) -> ListPage:
    """The rows that a page shows already, in their places, and how many that match it does not show yet.

    Args:
        filters: what the page is narrowed to.
        shown: the process ids of its rows.
        size: rows of a full page; a page that is not full could show any that match.
        before: where the page starts; only the newest page is told of new rows.
    """
    keys = [key for key in map(_uuid, shown[:size]) if key is not None]
    rows = ProcessInstance.objects.select_related("definition", "owner")
    known = rows.defer("definition__graph").in_bulk(keys)
    matching = filters.applied()
    still = set(matching.filter(pk__in=keys).values_list("pk", flat=True))
    newer = matching.filter(pk__gt=min(keys)) if len(keys) >= size else matching
    new = 0 if before else newer.exclude(pk__in=keys).order_by()[: NEW + 1].count()
    gone = frozenset(key for key in keys if key not in still)
    return ListPage([known[key] for key in keys if key in known], gone=gone, new=new)


def _is_workflow(name: str) -> bool:
    rows = Definition.objects.filter(name=name, kind=Definition.Kind.WORKFLOW)
    return rows.exists()


def _clean(text: str) -> str:
    """A parameter without what no text in the tables can contain."""
    return text.replace("\0", "").strip()[:200]


def _ordered(filters: Filters) -> "ProcessInstanceQuerySet":
    rows = filters.applied().select_related("definition", "owner")
    return rows.defer("definition__graph").order_by("-pk")


def _uuid(text: Any) -> UUID | None:
    try:
        return UUID(str(text))
    except ValueError:
        return None
