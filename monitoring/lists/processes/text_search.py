"""The search for processes by a text: a process id, an outside id, or the beginning of a business key.

A text in double quotes is a whole key.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from orchestrator.models import OutsideId, ProcessInstance


def whole_key(text: str) -> str:
    """Return the key that a text names whole; "" where it is only the beginning of one."""
    is_quoted = len(text) > 2 and text.startswith('"') and text.endswith('"')
    return text[1:-1] if is_quoted else ""


def has_key_or_id(text: str) -> Q:
    """Return the condition on a process id, or on a business key or its beginning."""
    if key := whole_key(text):
        return Q(correlation_key__in=[key, text])  # a key may have quotes itself
    try:
        return Q(pk=UUID(text)) | Q(correlation_key=text)
    except ValueError:
        some = ~Q(correlation_key="")  # as the index has it
        if connection.vendor == "postgresql":
            return some & Q(correlation_key__startswith=text)
        # SQLite uses no index for LIKE.
        after = f"{text}{chr(sys.maxunicode)}"
        return some & Q(correlation_key__gte=text, correlation_key__lt=after)


def outside_ids(text: str) -> QuerySet[OutsideId]:
    """Return the outside ids with a value, newest processes first."""
    # A range of one value: PostgreSQL would not use the index for the order alone.
    rows = OutsideId.objects.filter(value__range=(text, text))
    return rows.order_by("value", "-process_started_at", "-instance_id")


def keys_with_text(text: str, among: Sequence[UUID] | None) -> QuerySet[Any]:
    """Return the keys of the processes that a text finds, all or among some.

    A union uses an index for each part; a single condition would use none.
    """
    found = ProcessInstance.objects.filter(has_key_or_id(text)).order_by()
    called = outside_ids(text).order_by()
    if among is not None:
        found = found.filter(pk__in=among)
        called = called.filter(instance__in=among)
    return found.values_list("pk").union(called.values_list("instance_id"))
