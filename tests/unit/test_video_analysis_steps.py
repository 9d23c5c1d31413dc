"""What is seen and heard in the sample films, and what is made of it."""

from itertools import pairwise

import pytest

from examples import readers
from examples.readers import Film, Moment, Unreadable, light
from examples.video_analysis import pipelines, sight
from examples.video_analysis.findings import (
    Analysis,
    Conclusion,
    Page,
    Sampling,
    Sights,
)
from orchestrator import Permanent
from tests.readers import Bystander, with_extra
from tests.services.cases import cases
from tests.services.sizes import size

FILM = Film(4.8, 480, 270, True)


@with_extra("films")
@pytest.mark.parametrize(
    ("film", "second", "lines", "faces"),
    [
        ("notice.webm", 1.0, ["Invoice 4711 overdue"], 0),
        ("notice.webm", 3.0, ["Pay by Friday", "or call 5550 120"], 0),
        ("team.webm", 0.5, [], 1),
        ("team.webm", 3.0, [], 2),
        ("shapes.webm", 2.0, [], 0),
    ],
)
def test_text_is_read_and_faces_are_counted_in_a_frame(
    film: str, second: float, lines: list[str], faces: int
) -> None:
    moment = sight.look(film, second)

    assert (moment.lines, moment.faces) == (lines, faces)
    assert "PyAV" in moment.reader


@with_extra("speech")
@pytest.mark.parametrize(
    ("film", "words"),
    [
        ("notice.webm", "please refund my order it arrived broken"),
        ("team.webm", "thank you the delivery was great"),
    ][: size(1, full=2)],
)
def test_the_words_of_a_sound_track_are_heard(film: str, words: str) -> None:
    assert readers.speech_in(sight.film_named(film)).words == words


@with_extra("films")
def test_the_captions_of_the_light_readers_say_what_the_real_ones_find() -> None:
    for name in ("notice.webm", "team.webm", "shapes.webm"):
        path = sight.film_named(name)
        real = readers.film_of(path)
        assert light.film_of(path) == real
        for second in (0.25, 1.25, 2.25, 3.25):
            seen, said = readers.look_at(path, second), light.look_at(path, second)
            assert (said.lines, said.faces) == (seen.lines, seen.faces)
            assert "light" in said.reader


@with_extra("films")
def test_a_frame_after_the_end_is_unreadable() -> None:
    with pytest.raises(Unreadable, match=r"shapes\.webm ends before 60 s"):
        sight.look("shapes.webm", 60.0)


@cases("name", "../apps.py", "nothing.webm", "")
def test_no_name_leads_out_of_the_folder_of_films(name: str) -> None:
    with pytest.raises(Permanent, match="there is no film"):
        sight.open_film(name)


def test_each_look_is_twice_as_fine_as_the_last_and_stays_inside_the_film() -> None:
    sampling = sight.sample(FILM, None)
    counts = [len(sampling.moments)]
    for _ in range(3):
        sights = Sights(0.0, sampling.interval, len(sampling.moments), [], 0, [])
        sampling = sight.sample(FILM, sights)
        counts.append(len(sampling.moments))
        assert 0 < sampling.moments[0] < sampling.moments[-1] < FILM.seconds

    assert counts == [2, 4, 9, 19]
    assert {round(b - a, 3) for a, b in pairwise(sampling.moments)} == {0.25}


@cases(
    "faces, confidence, sure",
    ([0, 0, 0, 0], 1.0, True),
    ([1, 2], 0.0, False),
    ([1, 2, 2, 2], 0.667, False),
    ([1, 1, 1, 2, 2, 2, 2, 2, 2], 0.875, True),
    ([3], 0.0, False),
)
def test_confidence_is_what_neighbouring_moments_agree_on(
    faces: list[int], confidence: float, sure: bool
) -> None:
    seen = [moment(float(number), [], count) for number, count in enumerate(faces)]

    sights = sight.weigh(Sampling(1.0, []), seen, Bystander())

    assert sights.confidence == confidence
    assert sight.confident(sights) is sure
    assert sights.faces == max(faces)


def moment(second: float, lines: list[str], faces: int = 0) -> Moment:
    return Moment(second, lines, faces, 1.0, "test")


def test_a_text_that_stays_is_one_page() -> None:
    shown = [["one"], ["one"], [], ["two", "three"]]
    seen = [moment(0.5 + number / 2, lines) for number, lines in enumerate(shown)]

    pages = pipelines.gather_pages(seen, Bystander())

    assert pages == [Page(0.5, ["one"]), Page(2.0, ["two", "three"])]


def test_numbers_that_letters_are_filed_by_are_found() -> None:
    pages = [Page(0, ["Invoice 4711 overdue"]), Page(2, ["or call 5550 120 by 5 pm"])]

    assert pipelines.find_references(pages) == ["4711", "5550 120"]


def test_people_are_counted_from_when_they_come() -> None:
    seen = [moment(0.5, [], 1), moment(1.0, [], 1), moment(1.5, [], 2)]

    told = ["1 in the picture at 0.5 s", "2 in the picture at 1.5 s"]
    assert pipelines.count_people(seen) == told


def test_a_film_without_words_has_doubts_about_its_silence_only() -> None:
    sights = Sights(0.9, 0.5, 8, [], 0, ["test"])

    analysis = pipelines.integrate(Conclusion(sights, []), None, None, "no track")

    assert analysis == Analysis([], 0, "", "", 0.0, 0.9, ["no track"], ["test"])
    assert not pipelines.contains_text(analysis)
    assert not pipelines.contains_faces(analysis)
