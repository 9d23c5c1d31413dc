"""Times and time spans in the words of pages."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

AGO = (
    (86400, gettext_noop("%d d ago")),
    (3600, gettext_noop("%d h ago")),
    (60, gettext_noop("%d min ago")),
    (0, gettext_noop("%d s ago")),
)
"""The text for ages from a number of seconds on."""


def span(length: timedelta) -> str:
    """Return a length of time as mm:ss, "7 h 51 min" or "3 d 4 h": hh:mm:ss would look like a time of day."""
    seconds = max(int(length.total_seconds()), 0)
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes:02}:{left:02}"


def exact(length: timedelta) -> str:
    """Return a length of time: tenths of seconds below a minute, whole seconds below a day, else as `span`."""
    seconds = max(length.total_seconds(), 0)
    if seconds < 60:
        return f"{seconds:.1f} s"
    rest = f" {int(seconds) % 60} s" if 3600 <= seconds < 86400 else ""
    return f"{span(length)}{rest}"


def clock(at: datetime) -> str:
    """Return the time of day in the page's zone; for another day the date too."""
    local = timezone.localtime(at)
    today = timezone.localtime().date() == local.date()
    return local.strftime("%H:%M:%S") if today else local.strftime("%Y-%m-%d %H:%M")


def full_time(at: datetime) -> str:
    """Return date, time and zone."""
    local = timezone.localtime(at)
    return local.strftime("%Y-%m-%d %H:%M:%S %Z")


def age_text(at: datetime) -> str:
    """Return the age of a moment, in one unit; "" for the future."""
    seconds = (timezone.now() - at).total_seconds()
    if seconds < 0:
        return ""
    size, text = next(unit for unit in AGO if seconds >= unit[0])
    return _(text) % (seconds // (size or 1))
