"""The addresses of the console's pages, as recipients of notices reach them."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import NoReverseMatch, get_script_prefix, reverse

from orchestrator.configuration.site_settings import site_url

log = logging.getLogger(__name__)


def console_address(name: str, *args: object) -> str:
    """Return the absolute URL of a page of the console; "" if it is unknown."""
    site = site_url()
    if not site:
        return ""
    try:
        path = reverse(f"monitoring:{name}", args=args)
    except NoReverseMatch:  # there is no console
        return ""
    except Exception:  # the project's own addresses may not be imported here
        log.exception("notices have no links")
        return ""
    # The prefix of the path is set for each thread, and the forced one is not set in all of them.
    prefix = settings.FORCE_SCRIPT_NAME or get_script_prefix().rstrip("/")
    if prefix:
        parts = urlsplit(site)
        site = f"{parts.scheme}://{parts.netloc}{prefix}"
    return f"{site}/{path.removeprefix(get_script_prefix())}"
