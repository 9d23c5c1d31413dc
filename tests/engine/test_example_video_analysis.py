"""Video analyses from the first step to the last, on the sample films."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from examples.video_analysis import sight
from examples.video_analysis.processes import VideoAnalysis
from orchestrator.models import ProcessInstance
from tests.apps.patterns.desk import finished, results, statuses, visits
from tests.readers import light_readers, with_extra
from tests.services.patience import wait_for
from tests.services.program import management_command

__all__ = ["light_readers"]

pytestmark = pytest.mark.django_db(transaction=True)


def analysed(film: str) -> tuple[ProcessInstance, dict[str, Any]]:
    """Have a film analysed; return its process and the report."""
    process = finished(VideoAnalysis, film)
    return process, results(process)["report"]


@with_extra("moods")
def test_a_film_with_text_goes_through_the_document_pipeline() -> None:
    process, report = analysed("notice.webm")

    assert (process.status, report["kind"]) == ("completed", "document")
    assert report["findings"] == [
        "0.25 s: Invoice 4711 overdue",
        "2.75 s: Pay by Friday / or call 5550 120",
        "references: 4711, 5550 120",
        "said: please refund my order it arrived broken (-0.20)",
    ]
    assert report["doubts"] == []
    assert statuses(process)["count_people"] == "not_taken"


@pytest.mark.once
@with_extra("moods")
def test_a_film_with_faces_goes_through_the_face_pipeline() -> None:
    _, report = analysed("team.webm")

    assert report["kind"] == "faces"
    assert report["findings"] == [
        "1 in the picture at 0.25 s",
        "2 in the picture at 1.75 s",
        "said: thank you the delivery was great (+0.77)",
    ]


@pytest.mark.once
def test_any_other_film_gets_a_general_analysis() -> None:
    process, report = analysed("shapes.webm")

    assert report["kind"] == "general"
    assert report["findings"] == ["480 x 270, 4 s, silent", "no text, no faces"]
    assert statuses(process)["hear_track"] == "not_taken"


@pytest.mark.once
@pytest.mark.parametrize(
    ("film", "kind"), [("notice", "document"), ("team", "faces"), ("shapes", "general")]
)
def test_light_readers_lead_through_the_same_graph(
    light_readers: None, film: str, kind: str
) -> None:
    process, report = analysed(f"{film}.webm")

    assert (process.status, report["kind"]) == ("completed", kind)
    assert all("(light)" in reader for reader in report["readers"])


@pytest.mark.once
def test_it_looks_more_closely_until_it_is_confident() -> None:
    process, _ = analysed("notice.webm")

    looks: list[Any] = [run.result for run in visits(process, "weigh")]
    named = ("interval", "moments", "confidence")
    assert [[look[name] for name in named] for look in looks] == [
        [2.0, 2, 0.0],
        [1.0, 4, 0.667],
        [0.5, 9, 0.875],
    ]


@pytest.mark.once
def test_it_ends_with_a_doubt_when_it_does_not_become_confident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sight, "CONFIDENT", 2.0)

    process, report = analysed("team.webm")

    assert (process.status, len(visits(process, "weigh"))) == ("completed", 4)
    assert report["doubts"] == ["only 94% steady, looking every 0.25 s"]


@pytest.mark.once
@with_extra("speech")
@with_extra("films")
def test_progress_is_told() -> None:
    process, _ = analysed("team.webm")

    (track,) = visits(process, "hear_track")
    said = "thank you the delivery was great"
    assert track.progress == {"done": 2, "total": 2, "message": said}
    progress: Any = visits(process, "weigh")[-1].progress
    assert progress["message"] == "every 0.5 s: 88% steady"


@pytest.mark.once
def test_people_get_bad_films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "damaged.webm"
    shutil.copy(sight.film_named("team.webm"), damaged)
    damaged.write_bytes(damaged.read_bytes()[:40])
    monkeypatch.setattr(sight, "MEDIA", tmp_path)

    process = finished(VideoAnalysis, "damaged.webm")

    assert (process.status, statuses(process)["open_film"]) == ("failed", "failed")


def test_films_stream_in_until_the_end_is_asked_for() -> None:
    stream = management_command("demo_films", "--pause", "0.05", "--seed", "1")
    stream.start()
    wait_for(lambda: ProcessInstance.objects.count() >= 4, 20)

    assert stream.stop() == 0
    films = {process.data["video"] for process in ProcessInstance.objects.all()}
    assert films == {"notice.webm", "shapes.webm", "team.webm"}
