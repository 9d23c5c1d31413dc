"""An object of the application in its own pages, and its processes; a process's page, and its object."""

import logging
import re
import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite, sites
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db import connection
from django.http import HttpRequest
from django.template import Context, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch
from django.utils import translation
from uuid6 import uuid7

from examples.order_listing.models import Order
from monitoring.admin import ProcessesMixin
from monitoring.lists.processes.of_object import MOST
from monitoring.process.subject import is_page
from orchestrator.definition import ProcessManager, Workflow, step
from orchestrator.models import DefinitionGrant, ProcessInstance
from orchestrator.testing import started
from tests.conftest import permissions
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.crews import knowing
from tests.services.reading import between

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).parents[2] / "docs/in-your-project.md"
HARM = "<script>alert(1)</script>"


@dataclass(frozen=True)
class About:
    order: str
    note: str = ""


def check(order: str) -> str:
    return order


class Review(Workflow):
    Input, correlation, subject = About, "order", "order_listing.Order"
    flow = (step(check),)

    @staticmethod
    def summary(input: About) -> str:
        return input.note


class Refund(Workflow):
    Input, correlation, subject = About, "order", "order_listing.Order"
    flow = (step(check),)


known = knowing(Review, Refund)


@pytest.fixture
def order(db: None) -> Order:
    return Order.objects.create(order_id="A-1", process_id=uuid7(), destination="both")


def of(definition: Any, note: str = "") -> ProcessInstance:
    return started(definition, About("A-1", note)).instance


def listed(obj: Any, user: Any, template: str = "{% processes_of obj %}") -> str:
    """Return what the tag writes on a page of the application that this user reads."""
    context = Context({"obj": obj})
    if user is not None:
        context["request"] = asked_by(user)
    return Template("{% load procession %}" + template).render(context)


def asked_by(user: Any) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    return request


def links(text: str) -> list[str]:
    return [part.partition('"')[0] for part in text.split('href="')[1:]]


# The tag


def test_a_page_of_the_application_lists_the_processes_of_an_object(
    viewer: User, order: Order
) -> None:
    older, newer = of(Review, "two parcels"), of(Refund)

    text = listed(order, viewer)

    assert links(text) == [f"/processes/{one.pk}/" for one in (newer, older)]
    assert "review: two parcels</a>" in text
    assert text.count("completed") == text.count("<li>") == 2
    with translation.override("ja"):
        assert "完了" in listed(order, viewer)


def test_a_long_list_ends_with_a_link_to_the_consoles(
    viewing: Client, viewer: User, order: Order
) -> None:
    made = [of(Review) for _ in range(MOST)]
    assert "More processes" not in listed(order, viewer)
    made.append(of(Review))

    *shown, more = links(listed(order, viewer))

    assert shown == [f"/processes/{one.pk}/" for one in reversed(made[1:])]
    assert more == "/processes/?q=%22A-1%22"
    longer = started(Review, About("A-10", "")).instance
    page = viewing.get(more).content.decode()
    assert (str(made[0].pk) in page, str(longer.pk) in page) == (True, False)
    assert str(made[0].pk) in viewing.read(more)


@cases(
    "template",
    "{% processes_of obj %}",
    "{% autoescape off %}{% processes_of obj %}{% endautoescape %}",
)
def test_a_summary_is_text(viewer: User, order: Order, template: str) -> None:
    of(Review, HARM)

    text = listed(order, viewer, template)

    assert "&lt;script&gt;" in text
    assert "<script>" not in text


def test_a_list_is_for_readers_who_may_see_processes(
    viewer: User, stranger: User, order: Order
) -> None:
    of(Review)
    inactive = User.objects.create_superuser("gone", is_active=False)

    for reader in (None, AnonymousUser(), stranger, inactive):
        assert listed(order, reader) == ""
    for obj in ("", None, Order(order_id="A-1"), viewer):
        assert listed(obj, viewer) == ""


def test_a_reader_of_one_definition_sees_its_processes_alone(
    stranger: User, order: Order
) -> None:
    mine = [of(Review) for _ in range(MOST + 1)]
    of(Refund)
    group = stranger.groups.create(name="reviewers")
    may = permissions()["view_processinstance"]
    DefinitionGrant.objects.create(group=group, permission_id=may, definition="review")

    *shown, more = links(listed(order, User.objects.get(pk=stranger.pk)))

    assert shown == [f"/processes/{one.pk}/" for one in reversed(mine[1:])]
    assert more == "/processes/?q=%22A-1%22&amp;definition=review"


# The application's admin


class Plain(ProcessesMixin, admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    pass


class Placed(ProcessesMixin, admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    fields = ("business_processes", "description")


def changed(kind: Any, user: User, pk: str | None) -> str:
    """Return the page on which an object is changed, or added."""
    page: Any = kind(Order, AdminSite())
    answer = page.changeform_view(asked_by(user), pk)
    return str(answer.render().content.decode())


@cases("kind", Plain, Placed)
def test_the_admin_shows_the_processes_of_an_object(
    administrator: User, order: Order, kind: Any
) -> None:
    process = of(Review)

    text = changed(kind, administrator, order.pk)

    assert text.count(f'href="/processes/{process.pk}/"') == 1
    assert "Processes:" in text
    places = [text.index(word) for word in ("business_processes", "field-description")]
    assert (places == sorted(places)) == (kind is Placed)


class Changing(Plain):
    """Does what admins of applications do with an object, and with the fields."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["order_id"]

    def get_object(self, *given: Any) -> Any:
        found = super().get_object(*given)
        copied.append(deepcopy(found))
        return found


copied: list[Any] = []


def test_an_admin_with_read_only_fields_of_its_own_has_no_list(
    administrator: User, order: Order
) -> None:
    of(Review)

    assert "business_processes" not in changed(Changing, administrator, order.pk)
    assert "business_processes" not in changed(Changing, administrator, None)


def test_a_copy_of_an_object_has_nothing_of_the_request(
    administrator: User, order: Order
) -> None:
    copied.clear()
    changed(Changing, administrator, order.pk)

    [kept] = [one for name, one in vars(copied[0]).items() if "procession" in name]
    assert vars(kept) == {"rows": None, "request": None}


def test_a_form_that_is_refused_shows_the_processes_of_the_stored_object(
    administrator: User, order: Order
) -> None:
    process, page = of(Review), Plain(Order, AdminSite())
    request = asked_by(administrator)
    found: Any = page.get_object(request, order.pk)

    found.order_id = found.pk = "another"

    assert f'href="/processes/{process.pk}/"' in page.business_processes(found)


def test_the_admin_shows_no_processes_to_others(order: Order) -> None:
    process = of(Review)
    clerk = User.objects.create_user("clerk", is_staff=True)
    of_orders = Permission.objects.filter(content_type__model="order")
    clerk.user_permissions.add(*of_orders)

    for pk in (order.pk, None):
        text = changed(Plain, User.objects.get(pk=clerk.pk), pk)
        assert "Processes:" in text
        assert str(process.pk) not in text


def test_the_code_of_the_documentation_works(
    monkeypatch: pytest.MonkeyPatch, administrator: User, order: Order
) -> None:
    process, site = of(Review), AdminSite()
    monkeypatch.setattr(sites, "site", site)
    monkeypatch.setitem(sys.modules, "shop.models", ModuleType("shop.models"))
    monkeypatch.setattr(sys.modules["shop.models"], "Order", Order, raising=False)
    section = between(PAGE.read_text(), "## From your objects", "\n## ")
    names: dict[str, Any] = {"ProcessManager": ProcessManager}

    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, names)  # noqa: S102  our own page

    assert not names["is_under_way"](order)
    assert isinstance(site.get_model_admin(Order), ProcessesMixin)
    template = between(section, "```html\n", "```")
    context = Context({"order": order, "request": asked_by(administrator)})
    assert str(process.pk) in Template(template).render(context)


# The page of a process


def titled(viewing: Client, process: ProcessInstance) -> str:
    page = viewing.read(f"/processes/{process.pk}/")
    return between(page, "<h1 ", "</h1>").partition(">")[2].strip()


def lead(monkeypatch: pytest.MonkeyPatch, address: Any) -> None:
    """Give orders an address, or a function that makes one."""
    found = address if callable(address) else lambda order: address
    monkeypatch.setattr(Order, "get_absolute_url", found, raising=False)


def test_the_key_of_a_process_leads_to_its_object(
    monkeypatch: pytest.MonkeyPatch, viewing: Client, order: Order
) -> None:
    process = of(Review)
    assert titled(viewing, process) == "A-1"

    lead(monkeypatch, lambda order: f"/orders/{order.pk}/?a&b")

    assert (
        titled(viewing, process)
        == '<a class="subject" href="/orders/A-1/?a&amp;b">A-1</a>'
    )
    order.delete()
    assert titled(viewing, process) == "A-1"


def test_the_link_to_the_object_takes_one_statement(
    monkeypatch: pytest.MonkeyPatch, viewing: Client, order: Order
) -> None:
    process, counted = of(Review), []
    titled(viewing, process)
    for address in (None, "/orders/A-1/"):
        if address:
            lead(monkeypatch, address)
        with CaptureQueriesContext(connection) as asked:
            titled(viewing, process)
        told = [one["sql"] for one in asked]
        counted.append(len([sql for sql in told if "SAVEPOINT" not in sql]))

    assert counted[1] - counted[0] == 1


def fail(order: Order) -> str:
    raise NoReverseMatch("the application has no such page")


def ask_wrongly(order: Order) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")
    return "/orders/"


def end_the_program(order: Order) -> str:
    sys.exit("no such page")


@cases("address", fail, ask_wrongly, end_the_program)
def test_an_error_of_the_application_leaves_the_key_as_text(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    viewing: Client,
    order: Order,
    address: Any,
) -> None:
    process = of(Review)
    lead(monkeypatch, address)

    with caplog.at_level(logging.WARNING, "monitoring.process.subject"):
        assert titled(viewing, process) == "A-1"

    assert "'A-1'" in caplog.text
    assert "Traceback" in caplog.text


def test_a_key_that_the_field_cannot_have_is_text(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    viewing: Client,
    order: Order,
) -> None:
    process = of(Review)
    lead(monkeypatch, "/orders/")
    monkeypatch.setattr(Review, "subject", "order_listing.Order.process_id")

    assert titled(viewing, process) == "A-1"
    assert "'A-1'" in caplog.text


@cases(
    "address",
    "/orders/1/",
    "orders/1/?q=a:b",
    "http://shop.example/1",
    "https://shop.example/1",
    "//shop.example/1",
)
def test_a_page_has_a_relative_address_or_one_of_the_web(address: str) -> None:
    assert is_page(address)


@cases(
    "address",
    "",
    "javascript:alert(1)",
    "JavaScript:x",
    "java\tscript:x",
    "\x01javascript:x",
    "data:text/html,x",
    "///shop.example",
    "mailto:a@b.example",
    "http:///x",
)
def test_another_address_is_no_page(address: str) -> None:
    assert not is_page(address)
