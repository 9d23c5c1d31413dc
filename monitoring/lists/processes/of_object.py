"""The list of an object's processes, for pages of the application and for its admin."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from monitoring.base.access import definitions_visible_to
from monitoring.base.row_addresses import has_place
from orchestrator import processes_of
from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet

MOST = 10
"""Processes that a list shows."""


logger = logging.getLogger(__name__)


def stored_processes_of(obj: Any) -> ProcessInstanceQuerySet | None:
    """Return the processes of an object; None without an object that is stored, or where its key cannot be read."""
    try:
        return processes_of(obj)
    except (TypeError, ValueError):
        return None
    except Exception:  # the object is the application's
        logger.warning("No processes of an object of %s", type(obj), exc_info=True)
        return None


def render_processes(
    rows: ProcessInstanceQuerySet | None, request: HttpRequest | None
) -> SafeString:
    """Return the newest of an object's processes as a list of links to their pages; "" where there is nothing to see.

    There is nothing without processes, for users who may see none of these, and in a project without an address for
    the console.
    """
    user: Any = getattr(request, "user", None)
    may_look = user is not None and user.is_authenticated and user.is_active
    if rows is None or not may_look or not has_place(ProcessInstance):
        return SafeString("")
    rows, names = rows.defer("data"), definitions_visible_to(user)
    found = list((rows if names is None else rows.filter(name__in=names))[: MOST + 1])
    if not found:
        return SafeString("")
    query = {"q": f'"{found[0].correlation_key}"'}
    if names is not None:  # a reader with grants looks at the list of one definition
        query["definition"] = found[0].name
    address = f"{reverse('monitoring:instances')}?{urlencode(query)}"
    context = {"rows": found[:MOST], "more": address if found[MOST:] else ""}
    return render_to_string("monitoring/parts/of_object.html", context)
