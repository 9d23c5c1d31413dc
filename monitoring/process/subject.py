"""The address of the object that a process is about, in the application."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlsplit

from django.db import connections, transaction
from django.utils.functional import Promise
from django.utils.http import url_has_allowed_host_and_scheme

from orchestrator import registry
from orchestrator.models import ProcessInstance
from orchestrator.registry import Subject

logger = logging.getLogger(__name__)


def subject_link(instance: ProcessInstance) -> str:
    """Return the address of the object that a process is about; "" for none.

    It takes one statement, where the definition has a subject whose model has `get_absolute_url`. An error of the
    application's code is logged, and the page goes without the link.
    """
    subject = dict(registry.subjects()).get(instance.name)
    if subject is None or not hasattr(subject.model, "get_absolute_url"):
        return ""
    key = instance.correlation_key
    try:
        return _address(subject, key) if key else ""
    except (Exception, SystemExit):  # the application's code may raise anything
        logger.warning("No address for %s %r", subject.model, key, exc_info=True)
        return ""


def _address(subject: Subject, key: str) -> str:
    """Return the address of the object with a key; "" without it, or where the address is not one of a page."""
    rows = subject.model._default_manager.filter(**{subject.field.name: key})
    # An error of the database would else end the transaction of the request.
    within = connections[rows.db].in_atomic_block
    with transaction.atomic(using=rows.db) if within else nullcontext():
        found: Any = rows.first()
        if found is None or subject.key_of(found) != key:
            return ""
        told = found.get_absolute_url()
        address = str(told).strip() if isinstance(told, str | Promise) else ""
    return address if is_page(address) else ""


def is_page(address: str) -> bool:
    """Return whether an address leads to a page: it is relative, or begins with http or https."""
    return url_has_allowed_host_and_scheme(address, {urlsplit(address).netloc})
