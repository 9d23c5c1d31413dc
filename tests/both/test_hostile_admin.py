"""No address of the administration answers bad input with an error of ours; PostgreSQL refuses more than SQLite."""

from collections.abc import Callable, Iterator
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.admin import site
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import Model
from django.test import Client

from tests.conftest import person
from tests.services.cases import cases
from tests.services.sizes import size

pytestmark = pytest.mark.django_db(transaction=True)  # an error ends no other request

HUGE = "9" * 40
HOSTILE = ("\0", HUGE, "²", "-1")
KEYS = (*HOSTILE, "x" * 5_000, "_00", "1", str(uuid4()))


@pytest.fixture
def desk() -> Client:
    """Return a browser of a superuser that gets the page that people get, and not the exception."""
    user = person("root")
    user.is_staff = user.is_superuser = True
    user.save()
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def place(model: type[Model]) -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


def lists(model: type[Model]) -> Iterator[str]:
    """Give the address of the list with each filter, search and page, and with each column, with bad values."""
    filters = site._registry[model].list_filter
    named = [str(getattr(one, "parameter_name", one)) for one in filters]
    for name in ["q", "p", "o", "all", "_to_field", *named]:
        for value in HOSTILE:
            yield f"{place(model)}?{name}={quote(value)}"
    for field in model._meta.fields:
        yield f"{place(model)}?{field.name}=%00"
        yield f"{place(model)}?{field.name}__gte={HUGE}"


def details(model: type[Model]) -> Iterator[str]:
    """Give the addresses of rows, and of what leads to their pages in the console, with keys of no row."""
    kind = ContentType.objects.get_for_model(model).pk
    for key in map(quote, KEYS):
        yield f"/admin/r/{kind}/{key}/"
        yield f"{place(model)}{key}/change/"
    yield from (f"{place(model)}%00/{page}/" for page in ("history", "delete"))


def others() -> Iterator[str]:
    names = ("term", "app_label", "model_name", "field_name", "p")
    for value in map(quote, HOSTILE):
        yield f"/admin/{value}/"
        yield f"/admin/r/{value}/{value}/"
        yield f"/admin/autocomplete/?{'&'.join(f'{name}={value}' for name in names)}"


@cases("addresses", lists, details)
def test_no_bad_input_is_an_error_of_ours(
    desk: Client,
    addresses: Callable[[type[Model]], Iterator[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL", "django.request")
    every = [one for model in site._registry for one in addresses(model)]
    # Usually a third on each database, another one on each.
    asked = every[size(connection.vendor == "sqlite", full=0) :: size(3, full=1)]
    broken = [one[:120] for one in asked if desk.get(one).status_code >= 500]

    assert len(asked) > 100
    assert broken == [], "\n".join(broken)


def test_no_address_beside_the_tables_is_an_error_of_ours(desk: Client) -> None:
    assert [one[:120] for one in others() if desk.get(one).status_code >= 500] == []
