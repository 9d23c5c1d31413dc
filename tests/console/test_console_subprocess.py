"""S3: a sub-process is opened in place on the page of a process that it is part of, at any depth, and of any moment."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring.process.steps.workflow import children_of
from monitoring.process.subprocess import path_to, revision_at
from orchestrator.models import Checkpoint, ProcessInstance, StepRun
from orchestrator.testing import Process, registered, started
from tests.apps.nested_processes.processes import (
    Clearing,
    Cupboard,
    Emptied,
    House,
    HouseClearing,
)
from tests.conftest import of, person
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.doing import fresh
from tests.services.explained import explained

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rooms")]

FRAGMENTS = {"HX-Request": "true"}
PART = re.compile(r'<hx-partial hx-target="#([\w-]+)"')


@pytest.fixture(scope="module")
def rooms() -> Iterator[None]:
    with registered(Cupboard, Clearing, HouseClearing):
        yield


def cleared(number: int = 3, locked: str = "") -> ProcessInstance:
    """A house whose rooms are at work; their cupboards wait for somebody."""
    names = [f"部屋{one}" for one in range(number)]
    return started(HouseClearing, House(names, locked)).instance


def element_of(house: ProcessInstance, number: int) -> ProcessInstance:
    """The process of one room."""
    run = StepRun.objects.select_related("child").get(instance=house, item=number)
    assert run.child is not None
    return run.child


def cupboard_of(house: ProcessInstance, number: int) -> ProcessInstance:
    return ProcessInstance.objects.get(parent=element_of(house, number))


def emptied(cupboard: ProcessInstance) -> None:
    Process(cupboard.pk).send(Emptied("ann"))


def text_of(client: Client, process: ProcessInstance, query: str = "") -> str:
    return client.read(f"/processes/{process.pk}/{query}")


def part_of(text: str) -> str:
    """What a page says of the sub-process that is opened in it."""
    return text.partition('id="sub"')[2].partition('id="panel"')[0]


def state_in(text: str, name: str) -> dict[str, str]:
    """What a page says of a diagram."""
    [tag] = re.findall(rf'<div id="{name}"[^>]*>', text)
    return dict(re.findall(r'data-([\w-]+)="([^"]*)"', tag))


def test_s3_an_element_with_a_sub_process_is_opened_in_place(operating: Client) -> None:
    house = cleared()
    room = element_of(house, 1)
    asked, written = "?step=clearing&search=%231", "?step=clearing&amp;search=%231"
    text = text_of(operating, house, asked)
    assert f'href="{written}&amp;sub={room.pk}#sub"' in text
    assert "state-sub" not in text

    opened = text_of(operating, house, f"{asked}&sub={room.pk}")
    part = part_of(opened)
    page = f'href="/processes/{room.pk}/"'
    for said in (page, "Cupboard", "Waiting", "since", f'href="{written}">Close'):
        assert said in part
    assert part.count("data-diagram=") == 1
    shown = state_in(opened, "state-sub")
    its_own = state_in(text_of(operating, room), "state")
    assert (shown["id"], shown["state"]) == (str(room.pk), its_own["state"])
    # In the table, and in the list of all.
    assert opened.count('aria-expanded="true"') == 2


def test_s3_a_step_opens_its_sub_process_from_its_panel(operating: Client) -> None:
    house = cleared(1)
    room, cupboard = element_of(house, 0), cupboard_of(house, 0)
    panel = text_of(operating, room, "?step=cupboard").partition('id="step"')[2]
    assert f"?step=cupboard&amp;sub={cupboard.pk}#sub" in panel.partition("#runs")[0]


def test_s3_a_sub_process_within_a_sub_process_within_a_map(operating: Client) -> None:
    house = cleared()
    room, cupboard = element_of(house, 2), cupboard_of(house, 2)
    above = part_of(text_of(operating, house, f"?sub={room.pk}"))
    assert f"?sub={cupboard.pk}#sub" in above

    text = text_of(operating, house, f"?sub={cupboard.pk}")
    part = part_of(text)
    assert state_in(text, "state-sub")["id"] == str(cupboard.pk)
    assert f'data-sub="{room.pk}"' in part  # back to the one between
    assert "Emptied" in part
    assert path_to(house, str(cupboard.pk)) == [room, cupboard]
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_s3_what_is_no_part_of_a_process_is_said_to_be_none(operating: Client) -> None:
    house, other = cleared(1), cleared(1)
    room, strange = element_of(house, 0), "%22%3E%3Cscript%3E"
    of_other = element_of(other, 0).pk
    none = (of_other, house.pk, uuid4(), "nothing", "%00", "²" * 80, strange)
    for process, asked in [(room, house.pk), *((house, one) for one in none)]:
        text = text_of(operating, process, f"?sub={asked}")
        assert "state-sub" not in text
        assert "<script>" not in text
        if asked != "%00":
            assert "This process has no such sub-process." in part_of(text)


def test_s3_the_error_of_a_sub_process_is_told_where_opened(operating: Client) -> None:
    house = cleared(2, locked="部屋1")
    asked = (f"?sub={cupboard_of(house, number).pk}" for number in (0, 1))
    fine, failed = (part_of(text_of(operating, house, query)) for query in asked)
    assert failed.count("the cupboard of 部屋1 is locked") == 1
    assert "Failed" in failed
    assert "is locked" not in fine


def test_s3_of_the_past_a_sub_process_is_shown_as_it_was(operating: Client) -> None:
    house = cleared(2)
    room = element_of(house, 0)
    emptied(cupboard_of(house, 0))
    assert fresh(room).finished_at is not None

    shown = list[int]()
    for moment in Checkpoint.objects.filter(instance=house).order_by("revision"):
        at = f"?at={moment.revision}"
        text = text_of(operating, house, f"{at}&sub={room.pk}")
        by_then = Checkpoint.objects.filter(instance=room, at__lte=moment.at)
        last = max(by_then.values_list("revision", flat=True), default=0)
        shown.append(last)
        if not last:
            assert "It had not been started yet." in part_of(text)
            assert "state-sub" not in text
            continue
        found = state_in(text, "state-sub")
        assert found["at"] == str(last)
        own = state_in(text_of(operating, room, f"?at={last}"), "state")
        marked = json.loads(html.unescape(own["state"]))
        for node in marked["nodes"].values():  # where it is now is marked on its page
            node["classes"] = [one for one in node["classes"] if one != "has-now"]
        assert json.loads(html.unescape(found["state"])) == marked
        assert f"{room.pk}/?at={last}" in part_of(text)
        assert f"{at}&amp;sub={room.pk}" not in part_of(text)
    assert shown[0] == 0
    assert 0 < shown[-1] <= room.revision
    # The moment's own list leads to it, and the slider's links keep it.
    then = text_of(operating, house, f"?at={len(shown) - 1}&sub={room.pk}")
    assert f"&amp;sub={room.pk}" in then.partition('id="timeline"')[2][:3_000]


def test_s3_the_last_transition_by_a_moment_is_found_despite_missing_numbers() -> None:
    house = cleared(1)
    room = element_of(house, 0)
    emptied(cupboard_of(house, 0))
    room.refresh_from_db()
    rows = Checkpoint.objects.filter(instance=room).order_by("revision")
    times = list(rows.values_list("revision", "at"))
    assert len(times) > 2
    for revision, at in times:
        last = max(one for one, then in times if then <= at)
        assert revision_at(room, at) == last >= revision
    assert revision_at(room, house.started_at) == 0


def test_s3_an_open_page_keeps_the_picture_of_a_sub_process_and_gets_its_state(
    operating: Client,
) -> None:
    house = cleared(2)
    first, second = element_of(house, 0), element_of(house, 1)
    text = text_of(operating, house, f"?sub={first.pk}")
    [drawn] = re.findall(r'data-opened="([^"]+)"', text)

    def sent(query: str) -> list[str]:
        address = f"/processes/{house.pk}/?since=1{query}"
        return PART.findall(operating.read(address, headers=FRAGMENTS))

    same = sent(f"&sub={first.pk}&opened={drawn}")
    assert {"state-sub", "sub-about"} <= set(same)
    assert "sub" not in same
    for other in (f"&sub={second.pk}&opened={drawn}", f"&sub={first.pk}"):
        parts = sent(other)
        assert "sub" in parts
        assert "state-sub" not in parts  # it is within
    assert "sub" in sent(f"&opened={drawn}")
    assert not {"sub", "state-sub"} & set(sent(""))


def test_s3_the_answer_to_a_button_leaves_the_sub_process(operating: Client) -> None:
    house = cleared(1)
    form = {"key": uuid4(), "reason": "late", "revision": house.revision}
    address = f"/processes/{house.pk}/escalate/?sub={element_of(house, 0).pk}"
    answer = operating.post(address, form, headers=FRAGMENTS).text
    assert "Escalated." in answer
    assert {"sub", "state-sub"} & {*PART.findall(answer)} == {"state-sub"}


def statements(client: Client, number: int, at: str) -> int:
    """How many a page takes in which one of so many sub-processes is opened."""
    house = cleared(number)
    address = f"/processes/{house.pk}/?sub={element_of(house, 1).pk}{at}"
    client.get(address)  # graphs and pictures are kept
    with CaptureQueriesContext(connection) as asked:
        client.get(address)
    return len(asked)


@cases("at", "", "&at=2")
def test_s3_many_sub_processes_cost_no_more(at: str, operating: Client) -> None:
    few, many = (statements(operating, number, at) for number in (2, 40))
    # How many more open steps and sub-processes there are.
    assert many <= few + 2


def test_s3_the_newest_sub_processes_are_found_along_an_index() -> None:
    house = cleared(30)
    with explained() as plans:
        now = children_of(house, [])
        then = children_of(house, [], house.changed_at)
    newest = ProcessInstance.objects.filter(parent=house).order_by("-pk")[:20]
    assert now == list(newest)
    assert len(then) <= 20
    assert [plan for plan in plans if "TEMP B-TREE" in plan] == []


def test_s3_who_may_not_see_data_sees_how_a_sub_process_stands_and_no_more() -> None:
    house = cleared(1)
    page = f"/processes/{house.pk}/?sub={element_of(house, 0).pk}"
    part = part_of(of(person("looker", "view_processinstance")).read(page))
    assert "Cupboard" in part
    assert "部屋0" not in part
    of(person("nobody")).read(page, status=403)


@cases("language", "en", "ja")
def test_s3_a_sub_process_is_told_in_the_readers_language(
    operating: Client, language: str
) -> None:
    house = cleared(1)
    operating.cookies["django_language"] = language
    room = part_of(text_of(operating, house, f"?sub={element_of(house, 0).pk}"))
    none = part_of(text_of(operating, house, "?sub=x"))
    english = language == "en"
    assert ("Its own page" in room, "no such sub-process" in none) == (english, english)
