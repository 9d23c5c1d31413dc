"""The days of an address, in the zone of the pages, and the moments of a page, with their zone."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

YEARS = range(1970, 9999)
"""The years in which a day is valid."""


def parse_day(text: str) -> date | None:
    """Parse a day; None for anything else, or a year out of range."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year in YEARS else None


def midnight(day: date, later: int = 0) -> datetime:
    """Return the beginning of a day in the zone of the pages, or of the day some days later."""
    return timezone.make_aware(datetime.combine(day + timedelta(days=later), time.min))


def parse_moment(text: str) -> datetime | None:
    """Parse a moment with its zone; None for anything else, or a moment out of range."""
    try:
        found = parse_datetime(text)
        return found.astimezone(UTC) if found and found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def day_mistakes(since: str, until: str) -> Iterator[str]:
    """Yield the mistakes in the first and the last day of an address, in words."""
    for text in filter(None, (since, until)):
        if parse_day(text) is None:
            yield _("%(text)s is no day: write it as in 2026-11-23.") % {"text": text}
    first, last = parse_day(since), parse_day(until)
    if first and last and first > last:
        yield _("The first day lies after the last: exchange them.")


def between_days(field: str, since: str, until: str) -> Q:
    """Return the condition that a time lies between the first and the last day of an address."""
    found = Q()
    if day := parse_day(since):
        found &= Q(**{f"{field}__gte": midnight(day)})
    if day := parse_day(until):
        found &= Q(**{f"{field}__lt": midnight(day, 1)})
    return found
