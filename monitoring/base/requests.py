"""Requests: their senders, and the numbers and ids in them."""

from contextlib import suppress
from ipaddress import ip_address
from uuid import UUID

from django.http import HttpRequest

MOST_REVISION = 2**31 - 1
"""The largest number of a revision that its column can hold."""


def is_from_script(request: HttpRequest) -> bool:
    """Whether the script of an open page sent the request."""
    return request.headers.get("HX-Request") == "true"


def is_live(request: HttpRequest) -> bool:
    """Whether an open page asks for its changed parts."""
    return is_from_script(request) and "since" in request.GET


def client_address(request: HttpRequest) -> str | None:
    """Return the address of a request's client, for the audit; None where a Unix socket or a proxy gives none."""
    given = request.META.get("REMOTE_ADDR") or ""
    host, _colon, _port = given.rpartition(":")  # some proxies add the port
    for one in (given, host.strip("[]")):
        with suppress(ValueError):
            return str(ip_address(one.partition("%")[0]))  # the database knows no zones
    return None


def parse_uuid(text: object) -> UUID | None:
    """Parse a UUID; None for anything else."""
    try:
        return UUID(str(text))
    except ValueError:
        return None
