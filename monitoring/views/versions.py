"""The versions of a definition, two of them side by side, and the migration from one to the other."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from monitoring.base.access import definition_scope, form_for, page_for
from monitoring.base.graphs import running_class
from monitoring.definition.versions.comparison import (
    compare_versions,
    step_mapping,
    version_row,
)
from monitoring.definition.versions.listing import versions_in_code, versions_page
from monitoring.definition.versions.preview import migration_preview
from monitoring.forms.bulk_form import BulkForm
from monitoring.lists.processes.filters import Filters
from monitoring.views.bulk import begin_from_form
from monitoring.views.page import page
from orchestrator.engine.operations import forbidden_in_bulk, migrate, moment_shown
from orchestrator.models import Definition

MAPPED = "map."
"""The prefix of the parameters that map steps."""

NARROWING = ("step", "status", "q", "where", "owner", "escalated", "overdue")
"""The filters of the processes to migrate."""


@page_for(of=definition_scope)
def index(request: HttpRequest, name: str) -> HttpResponse:
    """The versions of a definition: their processes, and what the running code lacks."""
    return page(request, "versions", page=versions_page(name))


@form_for(of=definition_scope)
def compare(request: HttpRequest, name: str) -> HttpResponse:
    """Two versions side by side, `?from=1&to=2`; the default is the newest two.

    `preview=1` adds the preview of a migration of the matching processes; a post begins the migration.
    """
    shown = versions_page(name)
    stored = {row.number for row in shown.rows}
    numbers = sorted(stored | versions_in_code(name), reverse=True)
    given = request.GET
    old = version_row(name, given.get("from") or str(numbers[min(1, len(numbers) - 1)]))
    new = version_row(name, given.get("to") or str(shown.target or numbers[0]))
    chosen = _step_mapping(given)
    both = compare_versions(old, new, step_mapping(old, new, chosen))
    filters = _filters(request, old)
    refusal, status, form = "", 200, None
    about = filters.stored()
    can = running_class(new) is not None and old.version != new.version
    # Invalid conditions cannot select processes to migrate.
    if filters.mistake:
        can, status = False, 400
    if can and request.method == "POST":
        form = BulkForm(migrate, request.POST, user=request.user)
        answer = begin_from_form(request, form, "processes", about)
        if answer.done:
            return redirect(answer.leads_to)
        refusal, status = str(answer.text), answer.status
    looks = can and ("preview" in given or request.method == "POST")
    return page(
        request,
        "compared",
        status=status,
        of=name,
        numbers=numbers,
        compared=both,
        can=can,
        filters=filters,
        kept=_kept_filters(given),
        looks=looks,
        operation=migrate,
        refusal=refusal or filters.mistake,
        why=forbidden_in_bulk(migrate, request.user, name),
        **(_preview(request, filters, (old, new), chosen, form) if looks else {}),
    )


def _preview(
    request: HttpRequest,
    filters: Filters,
    versions: tuple[Definition, Definition],
    chosen: Mapping[str, str],
    form: BulkForm | None,
) -> dict[str, Any]:
    """Return the context of the preview."""
    about, at = filters.stored(), moment_shown()
    shown = migration_preview(about, at, request.user, versions, chosen)
    if form is None:
        form = BulkForm(migrate, None, user=request.user)
    steps = json.dumps(chosen, ensure_ascii=False)
    for name, value in (("version", versions[1].version), ("steps", steps)):
        form.fields[name].widget = forms.HiddenInput()
        form.fields[name].initial = value
    return {"preview": shown, "found": shown.found, "form": form}


def _filters(request: HttpRequest, old: Definition) -> Filters:
    """Return the filters of live processes of the older version, and of the address."""
    wanted = {"status": "live", **dict(_kept_filters(request.GET))}
    fixed = {"definition": old.name, "version": str(old.version)}
    return Filters.from_query(wanted, request.user, **fixed).by_name()


def _step_mapping(given: QueryDict) -> dict[str, str]:
    """Return the mapping of steps in the address."""
    found = {
        name.removeprefix(MAPPED).replace("\0", "")[:LONGEST]: value.replace("\0", "")
        for name, value in given.dict().items()
        if isinstance(value, str) and name.startswith(MAPPED)
    }
    return {name: value[:LONGEST] for name, value in found.items() if name}


LONGEST = 100
"""The maximum length of a step's name."""


def _kept_filters(given: QueryDict) -> list[tuple[str, str]]:
    """Return the filters of the address, for hidden fields of forms."""
    return [(name, str(given[name])) for name in NARROWING if given.get(name)]
