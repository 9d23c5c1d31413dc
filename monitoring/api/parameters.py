"""The parameters of lists. An unknown one is refused, with the nearest known one."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja import Schema
from ninja.errors import ValidationError
from ninja.params.models import Query, QueryModel
from pydantic import BeforeValidator, Field, WrapValidator
from pydantic import ValidationError as Mistake
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function

from monitoring.api.answers import NotAnswered
from monitoring.lists.events.events import TABS
from monitoring.lists.failures.failures import ORDERS as ORDERS_OF_FAILURES
from monitoring.lists.processes.filters import ACTIVITIES, ORDERS
from orchestrator.models import BulkVerdict, Status, Verdict

MOST = 200
"""Rows of a page at most."""


class KnownParameters(QueryModel):
    """The query of an address; unknown and repeated parameters are refused."""

    @classmethod
    def get_request_data(
        cls, request: HttpRequest, api: Any, path_params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the parameters with a value; an empty one counts as absent.

        Raises:
            NotAnswered: a parameter is unknown, or is given twice.
        """
        known: Any = cls.__ninja_flatten_map__  # type: ignore[attr-defined]  # each subclass has its own
        errors: dict[str, list[str]] = {}
        for name in request.GET:
            if name not in known:
                errors[name[:40]] = [_unknown_text(name, known)]
            elif len(request.GET.getlist(name)) > 1:
                errors[name] = [_("It is given twice.")]
        if errors:
            raise NotAnswered.invalid(errors)
        return {name: value for name, value in request.GET.items() if value}


class KnownQuery(Query):  # type: ignore[misc]  # as django-ninja's own are made
    """Marks the argument of a view that comes from the query of its address."""

    _model = KnownParameters

    @classmethod
    def _param_source(cls) -> str:
        return "query"


def _unknown_text(given: str, known: Collection[str]) -> str:
    """Return the refusal of a name or a value, with the nearest known one."""
    near = get_close_matches(given[:40].lower(), known, 1)
    told = {
        "given": given[:40],
        "near": near[0] if near else "",
        "known": ", ".join(known),
    }
    if near:
        return _("“%(given)s” is not known. Did you mean “%(near)s”?") % told
    if not known:
        return _("“%(given)s” is not known: this address has no parameters.") % told
    return _("“%(given)s” is not known. Known are: %(known)s.") % told


def parameter_refusal(error: ValidationError) -> NotAnswered:
    """Return the refusal of unreadable parameters."""
    return NotAnswered.invalid(
        {str(one["loc"][-1]): [one["msg"]] for one in error.errors}
    )


def _refusal(said: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{said}", {"said": said})


class OneOf:
    """Marks a parameter that has one of some values. Another value is refused, with the nearest known one."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def check(self, value: str) -> str:
        """Return the value.

        Raises:
            PydanticCustomError: it is another one.
        """
        if value not in self.values:
            raise _refusal(_unknown_text(value, self.values))
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.values)}


def _error(said: Promise) -> WrapValidator:
    """Replace the refusal of a type by a text."""

    def read(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except Mistake:
            raise _refusal(str(said)) from None

    return WrapValidator(read)


FOLLOW = _error(gettext_lazy("It was not made here: follow the address in “next”."))

Limit = Annotated[
    int, Field(ge=1, le=MOST), _error(gettext_lazy("Write a number from 1 to 200."))
]
"""Rows of a page."""


def check_digits(key: Any) -> Any:
    """Refuse spellings of a key other than digits alone.

    Raises:
        ValueError: it has other characters.
    """
    if isinstance(key, str) and not key.isdecimal():
        raise ValueError("digits are wanted")
    return key


RowKey = Annotated[int, Field(ge=0, lt=10**18), BeforeValidator(check_digits), FOLLOW]
"""The key of the row after which a page begins."""

Id = Annotated[UUID, FOLLOW]
"""The key of the operation after which a page begins."""

Place = Annotated[str, Field(pattern=r"^-?\d+\.\d{6}_[0-9a-f-]{36}$"), FOLLOW]
"""The place of the process after which a page begins: its start, then its id."""

Number = Annotated[int, Field(ge=0, lt=10**9), _error(gettext_lazy("Write a number."))]

FlagParameter = Annotated[bool, _error(gettext_lazy("Write 1 or 0."))]


class NoParameters(Schema):
    """The query of an address without parameters."""


class OfProcesses(Schema):
    """The filters of the list of processes, as in the address of its page."""

    definition: str | None = None
    version: Number | None = None
    graph: str | None = None
    status: Annotated[str, OneOf("live", *Status.values)] | None = None
    step: str | None = None
    doing: Annotated[str, OneOf(*ACTIVITIES)] | None = None
    escalated: str | None = None
    overdue: str | None = None
    stalled: str | None = None
    owner: str | None = None
    q: str | None = None
    where: str | None = None
    columns: str | None = None
    sort: Annotated[str, OneOf(*ORDERS)] | None = None
    before: Place | None = None
    limit: Limit = 50


class OfPage(Schema):
    """A page of a list, which continues below the row `before`."""

    before: RowKey | None = None
    limit: Limit = 50


class OfEvents(OfPage):
    """The filters of the list of events, as in the address of its page."""

    q: str | None = None
    type: str | None = None
    key: str | None = None
    verdict: Annotated[str, OneOf(*Verdict.values)] | None = None
    since: str | None = Field(None, alias="from")
    until: str | None = Field(None, alias="to")
    tab: Annotated[str, OneOf("all", *TABS)] | None = None
    definition: str | None = None
    limit: Limit = 30


class OfFailures(OfPage):
    """The filters of the list of groups of failures."""

    definition: str | None = None
    order: Annotated[str, OneOf(*ORDERS_OF_FAILURES)] | None = None


class OfCause(OfPage):
    """A page of the failures of one cause."""

    limit: Limit = MOST


class OfOperations(Schema):
    """A page of the bulk operations; with `going_on=1` of those that have not ended."""

    going_on: FlagParameter | None = None
    before: Id | None = None
    limit: Limit = 50


class OfItems(Schema):
    """A page of the items of a bulk operation."""

    verdict: Annotated[str, OneOf(*BulkVerdict.values)] | None = None
    after: RowKey | None = None
    limit: Limit = 50


class OfTokens(OfPage):
    """A page of the user's own tokens."""

    limit: Limit = 100
