"""What open pages ask for at once is computed once, and given only to those who would get the same."""

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template import Context, Template
from django.test import RequestFactory
from django.utils import translation

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.live import sharing
from monitoring.live.sharing import ARRIVED, KEPT, share_answer, shared_part
from orchestrator.containers import LruCache
from orchestrator.models import ProcessInstance
from orchestrator.testing import run
from tests.conftest import VIEWER_MAY, person
from tests.services.cases import cases, words
from tests.services.client import Client

pytestmark = pytest.mark.django_db

View = Callable[[HttpRequest], HttpResponse]


@pytest.fixture(autouse=True)
def no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begins with no answers kept."""
    monkeypatch.setattr(sharing, "_answers", LruCache(KEPT))


def asking(user: User, arrived: float = 0.0, path: str = "/?since=1") -> HttpRequest:
    """A request of an open page, which has waited for its turn since `arrived`."""
    about = {"host": "127.0.0.1", "HX-Request": "true"}
    request: Any = RequestFactory().get(path, headers=about)
    request.user, request.session = user, {"own": "mine"}
    request.scope = {ARRIVED: arrived}
    return request  # type: ignore[no-any-return]  # which it is


def counted(about: Callable[[Any], object] = lambda request: "") -> View:
    """A view that says how often it was computed, and something about its request."""
    computed: list[HttpRequest] = []

    @share_answer
    def view(request: HttpRequest) -> HttpResponse:
        computed.append(request)
        return HttpResponse(f"{len(computed)} {about(request)}")

    return view


def answers(view: View, *requests: HttpRequest) -> list[str]:
    return [view(request).content.decode() for request in requests]


def test_pages_that_ask_at_once_are_answered_by_one_computing(viewer: User) -> None:
    view = counted()

    assert answers(view, *[asking(viewer) for _ in range(199)]) == ["1 "] * 199


def test_who_asks_after_the_computing_began_gets_a_newer_answer(viewer: User) -> None:
    view = counted()
    early = asking(viewer)
    answers(view, early)

    assert answers(view, asking(viewer, arrived=time.monotonic())) == ["2 "]
    assert answers(view, early) == ["2 "]


def test_what_all_pages_show_is_computed_once_for_those_who_wait_whatever_their_address(
    viewer: User, operator: User
) -> None:
    numbers = count(1)
    view = counted(lambda request: shared_part(request, numbers.__next__))
    early = [asking(viewer, path=f"/{n}/?since=1") for n in range(3)]
    early.append(asking(operator, path="/9/?since=1"))

    assert answers(view, *early) == ["1 1", "2 1", "3 1", "4 1"]
    later = asking(viewer, path="/8/?since=1", arrived=time.monotonic())
    assert answers(view, later) == ["5 2"]
    assert answers(view, asking(viewer, path="/7/")) == ["6 3"]


def test_a_page_that_is_loaded_or_has_a_form_token_shares_nothing(viewer: User) -> None:
    loaded = [asking(viewer, path="/") for _ in range(2)]
    assert answers(counted(), *loaded) == ["1 ", "2 "]

    first, again = answers(counted(get_token), asking(viewer), asking(viewer))
    assert first[0] != again[0]


def test_only_those_who_may_the_same_share(viewer: User, operator: User) -> None:
    view = counted(lambda it: it.user.has_perm("orchestrator.retry_processinstance"))
    other = person("other", *VIEWER_MAY)

    found = answers(view, *map(asking, [viewer, operator, other, operator]))

    assert found == ["1 False", "2 True", "1 False", "2 True"]


def test_whether_they_may_open_the_admin_is_told_and_names_no_one(viewer: User) -> None:
    view = counted(lambda request: request.user.is_staff)
    other, third = (person(name, *VIEWER_MAY) for name in ("other", "third"))
    third.is_staff = True

    found = answers(view, *map(asking, [viewer, other, third]))

    assert found == ["1 False", "1 False", "2 True"]


def swallowed(request: Any) -> str:
    """Asks for a name, and takes no notice of the refusal."""
    with suppress(Exception):
        return str(request.user)
    return "nobody"


SAID = "{% if request.user.username == 'viewer' %}viewer{% else %}other{% endif %}"
IN_CONDITION = Template(SAID)

PERSONAL: list[Callable[[Any], object]] = [
    lambda request: request.user.pk,
    lambda request: str(request.user),
    lambda request: request.user.get_username(),
    lambda request: getattr(request.user, "email", ""),
    lambda request: hasattr(request.user, "is_partner"),
    lambda request: request.user == request.user,
    lambda request: request.session["own"],
    lambda request: "own" in request.session,
    lambda request: request.COOKIES.get("theme"),
    lambda request: request.user.has_perm("a.b"),
    lambda request: request.user.has_perm("a.b", request),
    lambda request: User.objects.filter(pk=request.user.pk).get(),
    swallowed,
    lambda request: IN_CONDITION.render(Context({"request": request})),
]


@cases("about", *PERSONAL)
def test_what_belongs_to_one_person_is_computed_for_them_and_shared_with_nobody(
    about: Callable[[Any], object], viewer: User, operator: User
) -> None:
    view = counted(about)

    found = answers(view, *map(asking, [viewer, operator, viewer]))

    said = [about(asking(one)) for one in (viewer, operator, viewer)]
    assert found == [f"{2 * n} {text}" for n, text in enumerate(said, 1)]
    assert not sharing._answers._kept


class Guest:
    """Somebody of whom a project keeps no row, or one in a table that is not that of its users."""

    def __init__(self, name: str, pk: int | None) -> None:
        self.name, self.pk = name, pk

    def has_perm(self, permission: str) -> bool:
        return True


class Partner(Guest):
    """Likewise, of another kind."""

    is_partner = True


@pytest.mark.parametrize(
    ("about", "people", "found"),
    [
        ("name", (Guest("Ada", None), Guest("Bob", None)), "2 Ada, 4 Bob"),
        ("name", (Guest("Ada", 1), Partner("Bob", 1)), "2 Ada, 4 Bob"),
        ("name", (Partner("Ada", 1), Guest("Bob", 1)), "2 Ada, 4 Bob"),
        ("is_partner", (Partner("Ada", 1), Guest("Bob", 2)), "2 True, 4 None"),
    ],
)
def test_what_belongs_to_one_person_is_not_anothers_whom_a_project_has_made(
    about: str, people: tuple[Any, Any], found: str
) -> None:
    """Nor is a flag of a project's own people."""
    view = counted(lambda request: getattr(request.user, about, None))
    assert answers(view, *map(asking, people)) == found.split(", ")


def test_another_language_or_address_is_another_answer(viewer: User) -> None:
    view = counted()
    answers(view, asking(viewer))

    with translation.override("ja"):
        assert answers(view, asking(viewer)) == ["2 "]
    assert answers(view, asking(viewer, path="/?since=1&status=failed")) == ["3 "]
    assert answers(view, asking(viewer, path="/?since=2")) == ["1 "]


def test_the_request_is_as_before_when_it_was_answered(viewer: User) -> None:
    request = asking(viewer)
    before = request.user, request.session, request.COOKIES

    answers(counted(lambda request: request.user.pk), request)

    after = request.user, request.session, request.COOKIES
    assert list(map(id, after)) == list(map(id, before))


@pytest.mark.parametrize(
    "address",
    words(
        """/ /definitions/order-listing/ /processes/ /processes/{order}/ /waits/ /stalled/
        /decisions/ /events/ /failures/ /failures/?show=handled
        /failures/?show=resolved"""
    ),
)
def test_what_an_open_page_gets_says_nothing_about_its_reader_but_what_they_may(
    address: str, operating: Client
) -> None:
    order = place_order(Destination.BOTH, "50 MWh")
    run()

    place = f"{address.format(order=order.process_id)}{'&' if '?' in address else '?'}"
    operating.get(f"{place}since=0", headers={"HX-Request": "true"})

    # What asks for anything of a person is not kept.
    [(answer, _)] = sharing._answers._kept.values()
    assert b"hx-partial" in answer.content


def test_a_list_of_ones_own_is_not_kept(operating: Client, operator: User) -> None:
    order = place_order(Destination.BOTH, "50 MWh")
    run()
    ProcessInstance.objects.filter(pk=order.process_id).update(owner=operator)
    address = f"/processes/?owner=me&since=0&rows={order.process_id}"

    operating.get(address, headers={"HX-Request": "true"})

    assert not sharing._answers._kept
