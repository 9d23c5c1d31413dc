"""Where the console's pages are, as people outside reach them."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import NoReverseMatch, get_script_prefix, reverse

log = logging.getLogger(__name__)


def site_url() -> str:
    """The site's public address as the settings have it, without a slash at its end; "" where it is not known."""
    return str(getattr(settings, "PROCESSION_SITE_URL", "") or "").rstrip("/")


def page(name: str, *args: object) -> str:
    """The whole address of a page of the console; "" where it is not known."""
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
    if get_script_prefix() != "/":  # the path has it already
        parts = urlsplit(site)
        site = f"{parts.scheme}://{parts.netloc}"
    return site + path
