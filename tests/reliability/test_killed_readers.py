"""Inquiries and films are read while a worker is killed every second: each gets as far as it does on a quiet day."""

import pytest
from django.contrib.auth.models import User

from examples.support_inquiry.intake import take_in
from examples.support_inquiry.models import Ticket
from examples.video_analysis.processes import VideoAnalysis
from orchestrator import start_process
from orchestrator.models import Incident, ProcessInstance, Status, StepKind, StepRun
from tests.apps.patterns.desk import results
from tests.reliability.storm import Storm, press_retry
from tests.services.sizes import size
from tests.services.workers import Workers

Standing = Ticket.Status
IN_THREE_MEDIA = ["late-order.flac", "overdue-invoice.png", "complaint.pdf"]
EVERY_INQUIRY: list[tuple[str, list[str], Standing]] = [
    ("Thank you, everything works very well now!", [], Standing.ANSWERED),
    ("My parcel is late.", [], Standing.ASSIGNED),
    ("Please look at this.", ["damaged-scan.png"], Standing.ASSIGNED),
    ("Where is it?", IN_THREE_MEDIA, Standing.ESCALATED),
]
INQUIRIES = EVERY_INQUIRY[-size(2, full=4) :]
EVERY_FILM = {"notice.webm": "document", "team.webm": "faces", "shapes.webm": "general"}
FILMS = dict([*EVERY_FILM.items()][: size(1, full=3)])
ROUNDS = size(1, full=6)


def hand_in() -> dict[str, Standing]:
    """Hand in inquiries and films; return how each inquiry's ticket should stand in the end."""
    expected = {}
    for _ in range(ROUNDS):
        for text, attachments, standing in INQUIRIES:
            expected[take_in("Mia Sato", text, attachments).ticket] = standing
        for film in FILMS:
            start_process(VideoAnalysis, VideoAnalysis.Input(film))
    return expected


def asking() -> set[object]:
    """Return the ids of the processes that wait for a decision."""
    runs = StepRun.objects.filter(kind=StepKind.ASK, finished_at=None)
    return set(runs.values_list("instance_id", flat=True))


def all_have_come_as_far_as_they_do(person: User) -> bool:
    press_retry(person)
    open_ones = ProcessInstance.objects.exclude(status=Status.COMPLETED)
    waiting = open_ones.filter(status=Status.WAITING).values_list("pk", flat=True)
    return len(waiting) == open_ones.count() and set(waiting) <= asking()


@pytest.mark.full_size("24 inquiries and 18 films", seconds=300)
def test_media_are_read_to_the_end_while_workers_are_killed(
    hands: Workers, administrator: User
) -> None:
    expected = hand_in()
    with Storm(hands, 0.6, steps=4, seed=3).raging() as until:
        until(lambda: all_have_come_as_far_as_they_do(administrator), 75)

    assert StepRun.objects.filter(attempt__gt=1).exists()
    assert dict(Ticket.objects.values_list("ticket", "status")) == expected
    for process in ProcessInstance.objects.filter(name=VideoAnalysis.name):
        assert results(process)["report"]["kind"] == FILMS[process.data["video"]]
    assert not Incident.objects.open().exists()
