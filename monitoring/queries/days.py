"""Days as an address names them, in the zone of the pages, and moments as a page has written them, with their zone."""

from datetime import UTC, date, datetime, time, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

YEARS = range(1970, 9999)
"""In which days are looked for."""


def day_of(text: str) -> date | None:
    """The day that a text names; None where it names none, or one of another age."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year in YEARS else None


def midnight(day: date, later: int = 0) -> datetime:
    """The beginning of a day in the zone of the pages."""
    return timezone.make_aware(datetime.combine(day + timedelta(days=later), time.min))


def moment_of(text: str) -> datetime | None:
    """The moment that a text names with its zone; None where it names none, or one that the calendar ends before."""
    try:
        found = parse_datetime(text)
        return found.astimezone(UTC) if found and found.tzinfo else None
    except (ValueError, OverflowError):
        return None
