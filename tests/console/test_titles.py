"""The title of each page, which a tab and a screen reader show, has no empty part."""

import re

import pytest

from orchestrator.models import ProcessInstance
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import finished, launch
from tests.apps.patterns.fixtures import flows
from tests.apps.process_managers.desk import underway
from tests.apps.process_managers.fixtures import parcels
from tests.services.client import Client

__all__ = ["flows", "parcels"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows", "parcels")]


def title(page: str) -> str:
    found = re.search("<title>(.*?)</title>", page, re.DOTALL)
    assert found is not None
    return " ".join(found[1].split())


def test_no_part_of_a_title_is_empty(operating: Client) -> None:
    processes: list[ProcessInstance] = [
        *(underway(), finished(p.Chain, 1), launch(p.Chain, 1), finished(p.Chain, -1)),
    ]
    addresses = [
        *("/", "/processes/", "/events/", "/failures/", "/waits/", "/events/send/"),
        *(f"/processes/{one.pk}/" for one in processes),
        *(f"/processes/{one.pk}/?at=1" for one in processes),
        *("/definitions/chain/", "/definitions/shipping/versions/compare/"),
    ]
    titles = {one: title(operating.get(one).content.decode()) for one in addresses}
    assert {one: said for one, said in titles.items() if re.search("· ?·", said)} == {}
