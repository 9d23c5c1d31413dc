"""The axis of a timeline: time to scale, long gaps folded, everything in its place."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monitoring.process.steps.axis import WIDTH, axis_of

START = datetime(2026, 11, 23, tzinfo=UTC)

seconds = st.floats(0, 1e8, allow_nan=False)


def at(*offsets: float) -> list[datetime]:
    return [START + timedelta(seconds=offset) for offset in offsets]


@given(st.lists(seconds, min_size=1, max_size=60))
def test_s4_4_what_is_later_is_never_further_left(offsets: list[float]) -> None:
    axis = axis_of(at(*offsets))

    places = [axis.x(moment) for moment in sorted(at(*offsets))]

    assert all(left <= right + 1e-6 for left, right in pairwise(places))
    assert all(-1e-6 <= place <= WIDTH + 1e-6 for place in places)
    assert sum(fold.width for fold in axis.folds) <= WIDTH / 2


def test_s4_4_a_long_gap_is_folded_and_the_rest_keeps_its_scale() -> None:
    axis = axis_of(at(0, 1, 2, 3, 86_400, 86_401))

    (fold,) = axis.folds
    widths = [right - left for left, right in pairwise(axis.places)]
    assert fold.length == timedelta(seconds=86_397)
    assert fold.width < WIDTH / 10
    assert len({round(one, 6) for one in widths if one != fold.width}) == 1


def test_s4_4_even_gaps_are_not_folded_however_long() -> None:
    assert axis_of(at(*range(0, 10_000_000, 1_000_000))).folds == []


def test_s4_4_what_happened_at_once_can_still_be_told_apart() -> None:
    axis = axis_of(at(0, 0, 0, 0))
    assert axis.places == [0, *(WIDTH / 3 * one for one in (1, 2, 3))]


def test_s4_4_moments_outside_are_at_the_ends() -> None:
    axis = axis_of(at(10, 20))
    assert axis.x(at(0)[0]) == 0
    assert axis.x(at(30)[0]) == WIDTH
