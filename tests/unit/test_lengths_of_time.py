"""Lengths of time as pages write them."""

from datetime import timedelta

from monitoring.base.moments import exact, span

SAID = {
    timedelta(seconds=-5): ("00:00", "0.0 s"),
    timedelta(seconds=7.25): ("00:07", "7.2 s"),
    timedelta(minutes=59, seconds=59): ("59:59", "59:59"),
    timedelta(hours=1): ("1 h 0 min", "1 h 0 min 0 s"),
    timedelta(hours=7, minutes=51, seconds=6): ("7 h 51 min", "7 h 51 min 6 s"),
    timedelta(hours=23, minutes=59, seconds=59): ("23 h 59 min", "23 h 59 min 59 s"),
    timedelta(days=3, hours=4, minutes=5): ("3 d 4 h", "3 d 4 h"),
}


def test_no_length_looks_like_a_time_of_day() -> None:
    found = {length: (span(length), exact(length)) for length in SAID}
    assert found == SAID
