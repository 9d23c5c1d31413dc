"""S12.1, what may be seen is given by definition too: its processes and its pages, and nothing of any other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db.models import F
from django.urls import resolve, reverse
from django.utils import timezone

from monitoring.admin.grants import grantable_permissions
from monitoring.base.access import definitions_visible_to
from monitoring.lists.failures import resolved_failures
from monitoring.live import sharing
from monitoring.live.consumers import groups_in_query
from monitoring.live.sharing import KEPT
from monitoring.views import instances
from orchestrator.containers import LruCache
from orchestrator.engine.operations import ActionRequest, escalate, mark_handled
from orchestrator.models import (
    BulkOperation,
    DefinitionGrant,
    Incident,
    ProcessInstance,
    SavedView,
)
from orchestrator.testing import Process, registered, started
from tests.apps.nested_processes.processes import (
    Clearing,
    Cupboard,
    House,
    HouseClearing,
)
from tests.apps.process_managers.desk import place
from tests.conftest import of, person
from tests.console.test_console_access import PAGES, address
from tests.console.test_console_sharing import asking
from tests.services.bulk import begun
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.forms_of_actions import failed_order
from tests.services.hired import hire
from tests.services.pressing import pressed

pytestmark = pytest.mark.django_db

ORDERS, PARCELS = "order-listing", "shipping"
VIEW, DATA = "view_processinstance", "view_data_processinstance"
OF_ALL = 'href="/operations/'
"""In the menu of who sees all."""
HIDDEN = "What it is about is not yours to see."
SCRIPT = {"HX-Request": "true"}

OF_ONE = set(
    words(
        """instance instance-picture instance-messages instance-repair instance-history-rows
        instance-elements definition picture versions compare failure-group"""
    )
)
"""The pages of one process, of one definition, or of failures of one cause."""

OF_DATA = {"instance-secrets", "instance-history"}
"""Those of them for which one must see what processes are about."""

LISTS = {*words("instances instances-export waits decisions stalled failures")}


WAITING = tuple(
    words(
        """/waits/? /decisions/? /stalled/? /failures/? /failures/?show=handled&
        /failures/?show=resolved&"""
    )
)
"""Lists of what waits or has failed."""

OF_ALL_SEEN = {"saved-views", "definitions"}
"""Pages of all that their reader sees, whichever it is."""


def let_see(user: User, definition: str, *codenames: str) -> User:
    """Put somebody into a group that may see something of one definition, and read them anew."""
    group, _new = Group.objects.get_or_create(name=f"{definition} people")
    for permission in Permission.objects.filter(codename__in=codenames):
        DefinitionGrant.objects.get_or_create(
            group=group, definition=definition, permission=permission
        )
    user.groups.add(group)
    return User.objects.get(pk=user.pk)


@pytest.fixture
def ann(db: None) -> User:
    """Return somebody who may look at orders, and at nothing else."""
    return let_see(person("ann"), ORDERS, VIEW)


@pytest.fixture
def signed_in(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


@pytest.fixture(scope="module", autouse=True)
def world(module_db: None, parcels: None, nested: None) -> tuple[UUID, ...]:
    """An order that has failed, a parcel, and a house that is cleared, each of its rooms by a part of it."""
    house = started(HouseClearing, House(["hall", "study"]))
    return failed_order().pk, place("SECRET-PARCEL").pk, house.id


@pytest.fixture
def order(world: tuple[UUID, ...]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world[0])


@pytest.fixture
def parcel(world: tuple[UUID, ...]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world[1])


@pytest.fixture
def house(world: tuple[UUID, ...]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world[2])


@pytest.fixture
def room(house: ProcessInstance) -> ProcessInstance:
    return Process(house.pk).children[0].instance


@pytest.fixture(scope="module", autouse=True)
def nested() -> Iterator[None]:
    with registered(Cupboard, Clearing, HouseClearing):
        yield


def about(process: ProcessInstance) -> dict[str, Any]:
    failure = process.incidents.first()
    cause = failure.fingerprint if failure else "0" * 32
    return {"process": process.pk, "cause": cause, "bulk": process.pk}


def of_houses(name: str) -> User:
    """Somebody who may see what house clearings are about, and nothing else."""
    return let_see(person(name), "house-clearing", VIEW, DATA)


@cases("name", *PAGES)
def test_s12_1_only_pages_of_that_definition_are_shown(
    name: str, signed_in: Client, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    own = signed_in.get(address(name, PAGES[name], about(order)))
    words = [PARCELS if word == ORDERS else word for word in PAGES[name]]
    others = signed_in.get(address(name, words, about(parcel)))

    if name in OF_ALL_SEEN:
        assert own.status_code == others.status_code == 200
        assert "SECRET-PARCEL" not in others.content.decode()
        return
    assert others.status_code == (302 if name in LISTS else 403)
    if name in LISTS:
        assert "definition=order-listing" in own["Location"]
    else:
        assert own.status_code == (200 if name in OF_ONE else 403)


@cases("name", *sorted(OF_DATA))
def test_s12_1_what_processes_are_about_is_given_by_definition_too(
    name: str, ann: User, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    client = of(let_see(ann, ORDERS, DATA))

    for process, status in ((order, 200), (parcel, 403)):
        client.read(address(name, PAGES[name], about(process)), status=status)


def test_s12_1_who_sees_all_processes_sees_the_data_of_those_of_one_definition(
    order: ProcessInstance, parcel: ProcessInstance
) -> None:
    client = of(let_see(person("bob", VIEW), ORDERS, DATA))

    for process, hidden in ((order, False), (parcel, True)):
        assert (HIDDEN in client.read(f"/processes/{process.pk}/")) == hidden
    client.read("/processes/")


@cases("headers", {}, SCRIPT)
def test_s12_1_a_list_has_nothing_of_other_definitions_whatever_it_is_asked(
    headers: dict[str, str],
    signed_in: Client,
    order: ProcessInstance,
    parcel: ProcessInstance,
) -> None:
    visits = ",".join(str(p.step_runs.latest("pk").pk) for p in (parcel, order))
    for path in (
        f"/processes/?definition={ORDERS}&since=1&rows={parcel.pk},{order.pk}",
        f"/processes/?definition={ORDERS}&since=1&q=SECRET",
        f"/definitions/{ORDERS}/?since=1&rows={parcel.pk}&definition={PARCELS}",
        f"/processes/export.csv?definition={ORDERS}&q={parcel.pk}",
        f"/processes/{order.pk}/?since=1&sub={parcel.pk}",
        f"/processes/{order.pk}/messages/?since=1&key=1",
        *(f"{path}definition={ORDERS}&since=&rows={visits}" for path in WAITING),
    ):
        text = signed_in.read(path, headers=headers)

        assert "SECRET-PARCEL" not in text, path
        # What was asked for stands in the fields of the page, and nowhere else.
        asked = r'(value|href|data-\w+)="[^"]*"'
        shown = text if path.startswith(WAITING) else re.sub(asked, "", text)
        assert str(parcel.pk) not in shown
        assert PARCELS not in shown or not path.startswith(WAITING)
    for path in ("/processes/?", *WAITING):
        signed_in.read(f"{path}definition={PARCELS}", status=403)


def test_s12_1_a_process_of_several_definitions_says_of_its_parts_only_that_they_are(
    house: ProcessInstance, room: ProcessInstance
) -> None:
    some, every = of(of_houses("carl")), of(person("dora", VIEW))
    page = f"/processes/{house.pk}/"

    assert str(room.pk) in every.read(page)
    alone = some.read(page)
    assert str(room.pk) not in alone
    assert room.name in alone
    opened = [client.read(f"{page}?sub={room.pk}") for client in (some, every)]
    assert ['id="drawing-sub"' in text for text in opened] == [False, True]


@cases("where", "messages/", "elements.csv", "elements.jsonl")
def test_s12_1_neither_messages_nor_files_name_a_part_whose_definition_is_not_seen(
    where: str, house: ProcessInstance, room: ProcessInstance
) -> None:
    step = room.parent_runs.get().node

    def names_it(user: User) -> bool:
        page = f"/processes/{house.pk}/{where}?step={step}"
        return str(room.pk) in of(user).read(page)

    assert not names_it(of_houses("carl"))
    assert names_it(let_see(of_houses("dora"), room.name, VIEW))
    assert names_it(person("erin", VIEW))


@cases("shown", "the room, now", "the room, then", "in its house")
def test_s12_1_no_part_can_be_opened_whose_definition_is_not_seen(
    shown: str, house: ProcessInstance, room: ProcessInstance
) -> None:
    cupboard = ProcessInstance.objects.get(parent=room)
    page = {
        "the room, now": f"/processes/{room.pk}/",
        "the room, then": f"/processes/{room.pk}/?at={room.revision}",
        "in its house": f"/processes/{house.pk}/?sub={room.pk}",
    }[shown]
    # So that it had been started by the moment at which its step was open, whatever the clocks say.
    ProcessInstance.objects.filter(pk=cupboard.pk).update(started_at=room.started_at)
    some = of(let_see(of_houses("carl"), "clearing", VIEW, DATA))

    assert str(cupboard.pk) not in some.read(page)
    assert f'data-sub="{cupboard.pk}"' in of(person("dora", VIEW)).read(page)


def test_s12_1_the_menu_has_definitions_and_no_number_of_all(signed_in: Client) -> None:
    text = signed_in.read("/processes/", follow=True)

    menu = text[text.index("<nav") : text.index("</nav>")]
    lists = ("instances", "waits", "decisions", "failures")
    assert re.findall(r'href="([^"]+)"', menu) == [
        "/",
        reverse("monitoring:definition", args=[ORDERS]),
        *(f"{reverse(f'monitoring:{name}')}?definition={ORDERS}" for name in lists),
    ]
    assert 'class="num' not in menu
    assert PARCELS not in text


def said(page: str, part: str, end: str) -> str:
    """A part of the first page as people read it."""
    found = page.partition(f'id="{part}"')[2].partition(end)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", found.partition(">")[2]).split())


def test_s12_1_the_first_page_says_what_is_wrong_with_that_definition_alone(
    signed_in: Client, operator: User, parcel: ProcessInstance
) -> None:
    """Nothing of others in the sentence, the numbers, the table or the last hour, nor which queues there are."""
    escalate(parcel.pk, request=ActionRequest(operator, uuid4(), "late"))
    text = signed_in.get("/").text

    assert PARCELS not in text
    headline = said(text, "headline", "</section>")
    assert "No worker lives" in headline
    assert "1 failure" in headline
    assert 'id="running"' not in text
    tiles = dict(re.findall(r'data-kind="(\w+)">\s*<b[^>]*>([\d,+]+)</b>', text))
    none = words("stalled overdue decisions retrying")
    assert tiles == {"failures": "1", **dict.fromkeys(none, "0")}
    assert re.findall(r'id="definition-([\w-]+)"', text) == [ORDERS]
    addresses = set(re.findall(r'href="(/[^"#]*)"', text.partition("<main")[2]))
    for path in addresses - {"/"}:
        signed_in.read(unescape(path))


def test_s12_1_numbers_of_several_definitions_lead_to_each_list(ann: User) -> None:
    text = of(let_see(ann, PARCELS, VIEW)).read("/")

    assert "data-kind" not in text
    assert {*re.findall(r'id="definition-([\w-]+)"', text)} == {ORDERS, PARCELS}
    assert f'href="/failures/?definition={ORDERS}"' in text


def test_s12_1_the_first_page_says_that_nothing_that_is_seen_needs_a_person() -> None:
    """Whatever has failed of others."""
    hire()
    text = of(let_see(person("bob"), PARCELS, VIEW)).read("/")

    assert "Nothing that you may see needs a person" in text
    assert "has a worker" not in text
    assert ORDERS not in text


@cases("page", "instances", "waits")
def test_s12_1_no_list_offers_all_definitions(signed_in: Client, page: str) -> None:
    text = signed_in.get(reverse(f"monitoring:{page}"), follow=True).text

    (choice,) = re.findall(r'<select name="definition">(.*?)</select>', text, re.DOTALL)
    assert re.findall(r"<option[^>]*>([^<]*)", choice) == [ORDERS]


def test_s12_1_the_box_finds_what_is_of_that_definition_and_nothing_of_any_other(
    signed_in: Client, operator: User, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    """By id, key, part of a key, the id of a command, the name of a job, words of an error, and id of an operation."""
    failure = order.incidents.latest("pk")
    cause = {"cause": failure.fingerprint}
    operation = begun(operator, cause, 1, selection="failures")
    event, other = parcel.events.latest("pk"), parcel.commands.latest("pk")
    of_the_order = (
        order.pk,
        order.correlation_key,
        order.correlation_key[:-1],
        order.commands.latest("pk").pk,
        f"steprun:{order.step_runs.latest('pk').pk}",
    )
    leads = {
        **dict.fromkeys(of_the_order, f"/processes/{order.pk}/"),
        failure.message[:20]: f"/failures/{failure.fingerprint}/",
        operation.pk: f"/operations/{operation.pk}/",
    }
    step = f"steprun:{parcel.step_runs.latest('pk').pk}"
    jobs = (step, f"issuedcommand:{other.pk}", f"inboxevent:{event.pk}")

    for text, there in leads.items():
        answer = signed_in.get(f"/find/?q={quote(str(text))}")
        assert answer.status_code == 302, text
        assert answer["Location"].startswith(there), text
    for hidden in (parcel.pk, "SECRET", other.pk, *jobs, event.event_id):
        page = signed_in.read(f"/find/?q={quote(str(hidden))}")
        assert "Nothing is called so" in page, hidden


def test_s12_1_the_box_finds_in_each_definition_that_is_seen(
    ann: User, order: ProcessInstance
) -> None:
    """What there is of each is headed by its name, and leads to its list."""
    client = of(let_see(ann, PARCELS, VIEW))
    ProcessInstance.objects.filter(pk=order.pk).update(correlation_key="SECRET-ORDER")
    order.events.filter(verdict="started").update(correlation_key="SECRET-ORDER")

    text = client.read("/find/?q=SECRET")

    heads = [f"Processes · {name}" for name in (ORDERS, PARCELS)]
    assert re.findall(r"<h2>(.*?)</h2>", text) == heads
    for name in (ORDERS, PARCELS):
        assert f"/processes/?definition={name}&amp;q=SECRET" in text
    assert client.get("/find/").status_code == 302


def test_s12_1_views_of_lists_are_saved_and_opened_of_that_definition_alone(
    signed_in: Client, ann: User
) -> None:
    def view(name: str, owner: User | None, **about: str) -> SavedView:
        return SavedView.objects.create(
            name=name, owner=owner, about=about, changed_at=timezone.now()
        )

    def posted(path: str, name: str, query: str = "") -> int:
        form = {"key": str(uuid4()), "name": name, "query": query}
        return signed_in.post(f"/views/{path}/", form).status_code

    view("Ours", None, definition=ORDERS, status="failed")
    others = [
        view("SECRET of parcels", None, definition=PARCELS),
        view("SECRET of all", None, status="failed"),
        view("SECRET of mine", ann, definition=PARCELS),
    ]
    assert posted("save", "Mine", f"definition={ORDERS}&status=live") == 302
    assert posted("save", "Foreign", f"definition={PARCELS}") == 403
    assert posted("save", "Whole", "status=live") == 403
    for path in ("/views/", f"/processes/?definition={ORDERS}"):
        text = signed_in.read(path)
        assert [name in text for name in ("SECRET", "Ours", "Mine")] == [0, 1, 1]
    mine = SavedView.objects.get(name="Mine")
    assert f"definition={ORDERS}" in signed_in.get(f"/views/{mine.pk}/")["Location"]
    for one in others:
        signed_in.read(f"/views/{one.pk}/", status=404)
        assert posted(f"{one.pk}/rename_view", "Renamed") == 404
    assert posted(f"{mine.pk}/rename_view", "Renamed") == 302
    mine.refresh_from_db()
    assert (mine.name, mine.owner) == ("Renamed", ann)


@cases("first", "viewer", "ann")
def test_s12_1_an_answer_is_shared_with_nobody_who_sees_less(
    first: str,
    viewer: User,
    ann: User,
    order: ProcessInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though all have asked before the first was answered; those who see the same are given the same."""
    kept = LruCache[sharing.SharedKey, sharing.SharedAnswer](KEPT)
    monkeypatch.setattr(sharing, "_answers", kept)
    bea = let_see(person("bea"), ORDERS, VIEW)
    people = {"viewer": [viewer, viewer], "ann": [ann, bea]}
    path = f"/processes/{order.pk}/?since=1"
    found: dict[str, list[str]] = {}

    for name in dict.fromkeys([first, *people]):
        for user in people[name]:
            request = asking(user, path=path)
            request.resolver_match = resolve(f"/processes/{order.pk}/")
            answer: Any = instances.detail(request, pk=order.pk)
            found.setdefault(name, []).append(answer.content.decode())

    for mine in found.values():
        assert len(set(mine)) == 1
    assert len(kept._kept) == 2
    [all_seen, _], [one_seen, _] = found["viewer"], found["ann"]
    assert (HIDDEN in all_seen, OF_ALL in all_seen) == (False, True)
    assert (HIDDEN in one_seen, OF_ALL in one_seen) == (True, False)


def test_s12_1_a_button_pressed_there_is_the_engines_to_allow(
    signed_in: Client, ann: User, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    def escalated(process: ProcessInstance) -> int:
        form = {"key": uuid4(), "reason": "late", "revision": process.revision}
        path = f"/processes/{process.pk}/escalate/"
        return signed_in.post(path, form, headers=SCRIPT).status_code

    assert escalated(order) == 403
    let_see(ann, ORDERS, "escalate_processinstance")
    assert escalated(order) == 200
    assert escalated(parcel) == 403
    order.refresh_from_db()
    assert order.escalation_level == 1


def test_s12_1_both_can_be_given_in_the_admin() -> None:
    assert {VIEW, DATA} <= {one.codename for one in grantable_permissions()}


def failure_of(process: ProcessInstance, cause: str, message: str) -> Incident:
    """Have a process failed for a cause."""
    about = {"instance": process, "message": message, "fingerprint": cause}
    kind, now = Incident.Kind.COMMAND_FAILED, timezone.now()
    found: Incident = Incident.objects.create(kind=kind, opened_at=now, **about)
    return found


def test_s12_1_what_is_handled_or_resolved_is_listed_of_that_definition_alone(
    signed_in: Client, order: ProcessInstance, parcel: ProcessInstance, operator: User
) -> None:
    """Also where no cause was stored, which failures of all definitions share."""
    for process, cause in ((order, "a" * 64), (parcel, "b" * 64)):
        one = failure_of(process, cause, f"handled of {process.name}")
        request = ActionRequest(operator, uuid4(), "it is known")
        mark_handled(cause, one.pk, None, request=request)
        for shared in (cause[:32], ""):
            failure_of(process, shared, f"resolved of {process.name}")
    Incident.objects.filter(message__startswith="resolved of").update(
        resolved_at=F("opened_at"), resolution="retried"
    )

    for show in ("handled", "resolved"):
        text = signed_in.read(f"/failures/?definition={ORDERS}&show={show}")
        assert f"{show} of {ORDERS}" in text
        assert f"{show} of {PARCELS}" not in text
        assert str(parcel.pk) not in text


@cases("cause", "", "%00", "%00%00", "none")
def test_s12_1_failures_without_a_cause_are_selected_by_nobody_who_sees_some_alone(
    cause: str, signed_in: Client, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    """However an address says that they have none: failures of all definitions share it."""
    for process in (order, parcel):
        failure_of(process, "", f"failed of {process.name}")

    page = signed_in.read(f"/operations/begin/?action=retry&cause={cause}", status=403)
    assert "SECRET-PARCEL" not in page


def test_s12_1_resolved_failures_of_a_definition_are_found_beyond_those_of_others(
    signed_in: Client,
    order: ProcessInstance,
    parcel: ProcessInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page looks at a part of all; the next goes on from there."""
    monkeypatch.setattr(resolved_failures, "LOOKED_AT", 3)
    failure_of(order, "c" * 64, "the one of the order")
    for number in range(5):
        failure_of(parcel, f"{number:064}", "one of a parcel")
    Incident.objects.filter(resolved_at=None, message__contains="of ").update(
        resolved_at=F("opened_at"), resolution="retried"
    )

    address, older, seen = f"/failures/?definition={ORDERS}&show=resolved", "", set()
    for _ in range(3):
        page = signed_in.get(f"{address}&before={quote(older)}" if older else address)
        found = page.context["resolved"]
        seen |= {group.last.message for group in found.rows}
        older = found.older or older
    assert "the one of the order" in seen
    assert "one of a parcel" not in seen


def test_s12_1_their_numbers_are_of_that_definition_alone(
    signed_in: Client, order: ProcessInstance
) -> None:
    tallies = signed_in.get(f"/waits/?definition={ORDERS}").context["tallies"]

    numbers = {tally.name: tally.number.number for tally in tallies}
    assert numbers["all"] == order.step_runs.filter(finished_at=None).count()
    assert all(f"definition={ORDERS}" in tally.address for tally in tallies)


def test_s12_1_a_button_is_answered_with_their_list_of_that_definition(
    signed_in: Client, ann: User, order: ProcessInstance
) -> None:
    """And never with that of another one that they may see, where they may not see the same of both."""
    let_see(ann, PARCELS, VIEW)
    for definition, own in ((ORDERS, True), (PARCELS, False)):
        place = f"http://testserver/waits/?definition={definition}"
        address = f"/processes/{order.pk}/escalate/?definition={definition}"
        headers = {**SCRIPT, "HX-Current-URL": place}
        text = signed_in.post(address, {}, headers=headers).text

        assert ('hx-target="#tallies"' in text) == own
        assert "SECRET-PARCEL" not in text


def test_s12_1_an_operation_on_that_definition_is_followed(
    signed_in: Client, ann: User, order: ProcessInstance, operator: User
) -> None:
    """Whoever began it, as long as it can be on nothing else."""
    let_see(ann, ORDERS, "retry_processinstance", "run_bulkoperation")
    path = f"/operations/begin/?definition={ORDERS}&status=failed&action=retry"
    begun = pressed(signed_in, path)

    assert signed_in.get(begun["Location"]).status_code == 200
    [own] = BulkOperation.objects.all()
    assert own.definitions == [ORDERS]
    cause = order.incidents.get().fingerprint
    for selection, about, seen in (
        ("failures", {"cause": cause}, True),
        ("failures", {"cause": "0" * 32}, False),
        ("failures", {"cause": ""}, False),
        ("processes", {"definition": ORDERS}, True),
        ("processes", {"definition": PARCELS}, False),
        ("processes", {"status": "failed"}, False),
        ("failed-items", {"operation": str(own.pk)}, True),
        ("events", {"verdict": "unrouted"}, False),
    ):
        other = BulkOperation.objects.get(pk=own.pk)
        other.pk, other.key, other.definitions = uuid4(), uuid4(), None
        other.selection, other.about = selection, about
        other.save(force_insert=True)
        page = signed_in.get(f"/operations/{other.pk}/")
        assert page.status_code == (200 if seen else 403), about


@cases("page", "waits", "stalled", "decisions")
def test_s12_1_a_button_pressed_from_a_list_of_all_is_answered_with_its_own_page(
    page: str, signed_in: Client, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    headers = {**SCRIPT, "HX-Current-URL": f"http://testserver/{page}/"}

    answer = signed_in.post(f"/processes/{order.pk}/escalate/", {}, headers=headers)

    assert answer.status_code == 400
    of = (str(order.pk), str(parcel.pk), "SECRET-PARCEL")
    assert [one in answer.text for one in of] == [True, False, False]


@cases("granted", [VIEW], [VIEW, DATA])
def test_s12_1_a_repair_that_is_applied_is_refused_on_a_page_of_that_definition(
    granted: list[str], signed_in: Client, ann: User, order: ProcessInstance
) -> None:
    let_see(ann, ORDERS, *granted)
    form = {"key": uuid4(), "reason": "it is wrong", "revision": order.revision}

    answer = signed_in.post(f"/processes/{order.pk}/repair/", form, headers=SCRIPT)

    assert answer.status_code == 400  # nothing is staged
    assert OF_ALL not in answer.content.decode()


@cases("amount", "50 MWh", "51 MWh")
def test_s12_1_no_condition_on_data_is_asked_for_who_may_not_see_it(
    amount: str, signed_in: Client, ann: User, order: ProcessInstance
) -> None:
    let_see(ann, ORDERS, "migrate_processinstance", "run_bulkoperation")
    where = quote(f'quantity = "{amount}"')
    compare = f"/definitions/{ORDERS}/versions/compare/"
    path = f"{compare}?from=2&to=2&preview=1&where={where}"

    assert str(order.pk) not in signed_in.read(path, status=400)
    begun = signed_in.post(path, {"key": uuid4(), "reason": "because"})
    assert begun.status_code == 400
    assert not BulkOperation.objects.exists()


def test_s12_1_elements_are_not_found_by_what_they_are(house: ProcessInstance) -> None:
    step = house.step_runs.get(item=1).node
    path = f"/processes/{house.pk}/elements.csv?step={step}&search="

    def rows(user: User) -> list[int]:
        found = [of(user).read(f"{path}{word}") for word in ("hall", "nowhere")]
        return [text.count("\n") - 1 for text in found]

    assert rows(person("erin", VIEW, DATA)) == [1, 0]
    assert rows(let_see(person("fred"), "house-clearing", VIEW)) == [0, 0]


def test_s12_1_what_a_process_is_part_of_is_not_told_where_it_is_of_another(
    house: ProcessInstance, room: ProcessInstance
) -> None:
    page = f"/processes/{room.pk}/"

    assert str(house.pk) not in of(let_see(person("gus"), room.name, VIEW)).read(page)
    of(let_see(person("hal"), "house-clearing", VIEW)).read(page, status=403)
    assert str(house.pk) in of(person("ida", VIEW)).read(page)


def test_s12_1_a_grant_for_no_definition_is_none(ann: User) -> None:
    DefinitionGrant.objects.update(definition="")

    assert definitions_visible_to(User.objects.get(pk=ann.pk)) == frozenset()


def test_s12_1_the_longest_name_of_a_definition_can_be_followed() -> None:
    name = "d" * 100

    assert list(groups_in_query(f"watch=definition:{name}")) == [f"definition.{name}"]
