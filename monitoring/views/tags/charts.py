"""The charts of the first page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.template import Library
from django.utils.translation import gettext as _

from monitoring.attention.last_hour import MINUTES, Hour
from monitoring.base.charts import SMALL, area
from monitoring.lists.events.event_volume import TypeVolume
from monitoring.queries.activity import window_word

register = Library()

WIDE = 720, 120
PART = 10
"""Minutes of one row of the chart's table."""


@register.inclusion_tag("monitoring/home/chart.html")
def hour_chart(hour: Hour, until: datetime) -> dict[str, Any]:
    """Return the last hour as a drawing, and as a table for readers who cannot see it."""
    moved, failed = hour.transitions, hour.failures
    return {
        "said": _hour_text(hour),
        "hour": hour,
        "width": WIDE[0],
        "height": WIDE[1],
        "moved": area(moved.each, *WIDE),
        "failed": area(failed.each, *WIDE, most=max(moved.most, failed.most)),
        "parts": [
            (
                until - timedelta(minutes=MINUTES - first),
                sum(moved.each[first : first + PART]),
                sum(hour.ended.each[first : first + PART]),
                sum(failed.each[first : first + PART]),
            )
            for first in range(0, MINUTES, PART)
        ],
    }


@register.inclusion_tag("monitoring/home/spark.html")
def spark(hour: Hour) -> dict[str, Any]:
    """Return the last hour of one definition in a line."""
    moved, failed = _halve(hour.transitions.each), _halve(hour.failures.each)
    return _small_chart(_hour_text(hour), moved, failed)


@register.inclusion_tag("monitoring/home/spark.html")
def volume_spark(row: TypeVolume, window: str) -> dict[str, Any]:
    """Return the events of one type over a window in a line, with those that no process took."""
    said = _("%(type)s: %(number)s in the %(window)s") % {
        "type": row.type,
        "number": row.received[window],
        "window": window_word(window),
    }
    return _small_chart(said, row.each, row.problems, max(row.each, default=0))


def _small_chart(
    said: str, moved: list[int], failed: list[int], most: int = 0
) -> dict[str, Any]:
    width, height = SMALL
    return {
        "said": said,
        "width": width,
        "height": height,
        "moved": area(moved, width, height) if any(moved) else None,
        "failed": area(failed, width, height, most) if any(failed) else None,
    }


def _hour_text(hour: Hour) -> str:
    return _(
        "%(moved)s transitions, %(ended)s processes ended, %(failed)s failures in the last hour"
    ) % {"moved": hour.transitions, "ended": hour.ended, "failed": hour.failures}


def _halve(each: list[int]) -> list[int]:
    """Return half as many numbers, for a small drawing."""
    return [sum(each[at : at + 2]) for at in range(0, len(each), 2)]
