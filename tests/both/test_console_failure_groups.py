"""S5, the failure inbox: failures in groups of one cause, and a group of its own."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring.lists.failures import failures as lists
from monitoring.lists.failures.failure_group import common_words, members_page
from monitoring.lists.failures.failures import failure_groups
from monitoring.views.tags.failures import body_of
from orchestrator import send_event, start_process
from orchestrator.models import Incident, IssuedCommand, ProcessInstance
from orchestrator.testing import failing, pass_time, run
from tests.apps.every_construct.processes import Inquiry, classify
from tests.browser.samples import HARMFUL
from tests.conftest import person
from tests.services.cases import cases
from tests.services.client import Client, Read

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def failed(module_db: None) -> list[ProcessInstance]:
    """Three orders that failed for one cause."""
    placed = [place_order(Destination.BOTH, f"{n} MWh", f"F-{n}") for n in range(3)]
    run()
    found = ProcessInstance.objects.in_bulk([one.process_id for one in placed])
    return [found[one.process_id] for one in placed]


def cause() -> str:
    return str(Incident.objects.open().latest("pk").fingerprint)


def more(number: int, fingerprint: str, message: str = "E: no line") -> None:
    """Have so many open failures of a cause, of the newest process."""
    one = Incident.objects.latest("pk")
    at = one.opened_at + timedelta(seconds=1)
    of = {"kind": "command_failed", "instance_id": one.instance_id, "step": one.step}
    told = {"message": message, "fingerprint": fingerprint, "opened_at": at}
    Incident.objects.bulk_create(Incident(**of, **told) for _ in range(number))


def of(groups: lists.GroupPage) -> list[tuple[str, str]]:
    return [(group.newest.fingerprint, str(group.number)) for group in groups.rows]


def test_s5_1_failures_of_one_cause_are_one_row_with_its_count(read: Read) -> None:
    page = read("/failures/")

    assert page.count("<tr id=") == 1
    assert 'data-number="3"' in page
    assert "order-listing · Awaiting external creation" in page
    assert f'href="/failures/{cause()}/"' in page


def test_s5_1_groups_stand_newest_or_largest_first() -> None:
    first = cause()
    more(1, "b")

    assert of(failure_groups()) == [("b", "1"), (first, "3")]
    assert of(failure_groups("largest")) == [(first, "3"), ("b", "1")]
    assert of(failure_groups("nonsense")) == of(failure_groups())


def test_pages_of_groups_follow_each_other_without_gap_or_repeat(
    failed: list[ProcessInstance], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE", 2)
    for one in ("a", "b", "c", "a"):
        more(1, one)
    seen, before = [], ""
    while True:
        page = failure_groups(before=before)
        seen += of(page)
        if not page.older:
            break
        before = str(page.older)

    assert seen == [("a", "2"), ("c", "1"), ("b", "1"), (cause_of(failed[0]), "3")]
    assert failure_groups("largest").more


def cause_of(process: ProcessInstance) -> str:
    return str(process.incidents.exclude(fingerprint__in="abc").get().fingerprint)


def test_a_flood_of_one_cause_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    own = cause()
    more(40, "flood")
    monkeypatch.setattr(lists, "MANY", 10)
    monkeypatch.setattr(lists, "CAP", 20)

    with CaptureQueriesContext(connection) as asked:
        found = of(failure_groups("largest"))

    assert found == [("flood", "20+"), (own, "3")]
    assert of(failure_groups()) == found
    assert len(asked) < 10


def test_what_no_cause_was_stored_of_is_a_group_too(read: Read) -> None:
    more(2, "")

    assert 'href="/failures/none/"' in read("/failures/")
    assert read("/failures/none/").count('<tr id="incident-') == 2


def test_s5_2_a_group_says_what_is_the_same_and_what_differs(
    failed: list[ProcessInstance],
) -> None:
    page = members_page(cause())
    told = {one.name: one for one in page.compared}

    assert told["destination"].same
    assert told["destination"].values == [("both", 3)]
    assert told["order_id"].all_differ
    assert told["Version"].same
    assert {row.instance for row in page.rows} == set(failed)


def test_s5_2_members_have_traces(failed: list[ProcessInstance], read: Read) -> None:
    page = read(f"/failures/{cause()}/")

    assert page.count('<tr id="incident-') == 3
    for process in failed:
        assert f'href="/processes/{process.pk}/"' in page
    assert page.count("<summary>detail</summary>") == 3


def test_s5_2_each_member_has_what_its_command_says(read: Read) -> None:
    page = read(f"/failures/{cause()}/")

    assert page.count("<summary>body</summary>") == 3
    for number in range(3):
        assert f"&quot;description&quot;: &quot;{number} MWh&quot;" in page
    long = IssuedCommand(type="Noted", body={"text": "x" * 9_000})
    assert len(body_of(Incident(command=long))) == 4_001


def test_s5_2_a_failed_step_leads_to_what_it_got(helpdesk: None, read: Read) -> None:
    with failing(classify, ValueError("no words")):
        process = start_process(Inquiry, Inquiry.Input("T-1")).process_id
        pass_time(hours=1)
    page = read(f"/failures/{cause()}/")

    assert f'href="/processes/{process}/?step=classify"' in page
    assert "<summary>body</summary>" not in page


def test_s5_2_who_may_not_see_data_sees_no_body(client: Client) -> None:
    client.force_login(person("guard", "view_processinstance"))

    page = client.read(f"/failures/{cause()}/")

    assert page.count('<tr id="incident-') == 3
    assert "<summary>body</summary>" not in page
    assert "MWh" not in page


def test_s12_1_who_may_not_see_events_sees_no_body_of_one_without_a_process(
    client: Client, operator: User
) -> None:
    send_event(ListedOnInternal("B-9"), id="lost-1", correlation_key="B-9")
    pass_time(days=2)
    guard = person("guard", "view_processinstance", "view_data_processinstance")
    for reader, sees in ((operator, True), (guard, False)):
        client.force_login(reader)
        page = client.read(f"/failures/{cause()}/")
        assert ("<summary>body</summary>" in page) == sees


def test_pages_of_a_group_follow_each_other(read: Read) -> None:
    more(120, "many")
    seen, address = [], "/failures/many/"
    while True:
        page = read(address)
        seen += re.findall(r'<tr id="incident-(\d+)"', page)
        older = re.search(r'href="(\?before=\d+)"', page)
        if older is None:
            break
        address = f"/failures/many/{older[1]}"

    assert len(seen) == len(set(seen)) == 120


def test_a_group_that_is_over_says_so(read: Read) -> None:
    assert "None of this cause is open any more." in read("/failures/never-seen/")


@cases("text", *HARMFUL)
def test_hostile_text_is_text(text: str, read: Read) -> None:
    more(2, "x", text)
    Incident.objects.filter(fingerprint="x").update(error=text, place=text)
    harm = "<script>alert|<img src=x|<svg/onload|id=planted>"
    for address in ("/failures/", "/failures/x/"):
        assert re.findall(harm, read(address)) == []


def test_what_messages_have_in_common() -> None:
    assert common_words(["E: order 7 is gone"]) == "E: order 7 is gone"
    assert (
        common_words(["E: order 7 is gone", "E: order 8 is gone"])
        == "E: order … is gone"
    )
    assert common_words(["E: no Ann Lee here", "E: no Bo here"]) == "E: no … here"
    assert common_words(["E: one", "another text"]) == "E: one"
    assert common_words([]) == ""


# Retry


def test_s5_3_the_button_of_a_group_leads_to_its_preview(read: Read) -> None:
    address = f"/operations/begin/?action=retry&amp;cause={cause()}"

    for page in ("/failures/", f"/failures/{cause()}/"):
        assert f'href="{address}"' in read(page)


def test_who_may_not_retry_sees_why(viewing: Client) -> None:
    page = viewing.read(f"/failures/{cause()}/")

    assert re.search(r'aria-disabled="true" aria-describedby="begin-retry-why"', page)
