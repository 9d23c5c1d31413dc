"""Days as an address names them, in the zone of the pages, and moments as a page has written them, with their zone."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

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


def wrong_days(since: str, until: str) -> Iterator[str]:
    """What is wrong with the first and the last day that an address names."""
    for text in filter(None, (since, until)):
        if day_of(text) is None:
            yield _("%(text)s is no day: write it as in 2026-11-23.") % {"text": text}
    first, last = day_of(since), day_of(until)
    if first and last and first > last:
        yield _("The first day lies after the last: exchange them.")


def between_days(field: str, since: str, until: str) -> Q:
    """That a time lies between the first and the last day that an address names, if it names any."""
    found = Q()
    if day := day_of(since):
        found &= Q(**{f"{field}__gte": midnight(day)})
    if day := day_of(until):
        found &= Q(**{f"{field}__lt": midnight(day, 1)})
    return found
