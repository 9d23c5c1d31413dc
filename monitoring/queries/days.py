"""Days as an address names them, in the zone of the pages."""

from datetime import date, datetime, time, timedelta

from django.utils import timezone

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
