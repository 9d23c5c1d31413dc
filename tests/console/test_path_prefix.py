"""The bundled project under a path of its host: every address that it writes has the prefix."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from websockets.sync.client import connect
from websockets.typing import Origin

from examples.order_listing.messages import Destination
from orchestrator.sign_in import sign_in_path
from tests.services.forms_of_actions import value_for
from tests.services.placing import placed
from tests.services.python import printed
from tests.services.site import Site
from tests.services.valkey import ValkeyServer
from tests.services.wandering import Answer, Wanderer, attributes

pytestmark = pytest.mark.once
served = pytest.mark.django_db(transaction=True)

PREFIX = "/branch/procession"
PASSWORD = "correct horse battery staple"
SEEDS = ("/", "/favicon.ico", "/metrics")
FOR_PROGRAMS = ("/api/openapi.json", "/api/processes/", "/api/failures/")


@pytest.fixture(scope="module")
def site(
    django_db_setup: None, django_db_blocker: object, valkey: ValkeyServer
) -> Iterator[Site]:
    """Serve the test database under the prefix."""
    site = Site()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROCESSION_PATH_PREFIX", PREFIX)
        site.start()
    yield site
    site.stop()


def signed_in(site: Site, user: User) -> Wanderer:
    wanderer = Wanderer()
    answer = wanderer.get(site.url + PREFIX + sign_in_path(user))
    assert (answer.status, answer.headers["Location"]) == (302, f"{PREFIX}/")
    return wanderer


def lacking(answer: Answer) -> set[str]:
    """Return the addresses of an answer that begin with / and lack the prefix."""
    inside = re.compile(rf"{PREFIX}(/|$)")
    return {
        one for one in answer.addresses() if one[0] == "/" and not inside.match(one)
    }


def kind(path: str) -> str:
    """Return one text for paths of one view; files and pages of the administration are much alike."""
    parts = path.removeprefix(PREFIX).split("/")
    if "static" in parts:
        return parts[-1].rpartition(".")[2]
    if "admin" in parts and "rq" not in parts:
        return f"admin {len(parts)}"
    return re.sub(r"[0-9a-f-]{36,}|\d+", "*", path)


@served
def test_no_address_of_any_page_lacks_the_prefix(
    site: Site, administrator: User
) -> None:
    placed(Destination.BOTH, key="A-1")
    top = site.url + PREFIX
    _, value = value_for(administrator)
    program = Wanderer(Authorization=f"Bearer {value}")

    wanderer = signed_in(site, administrator)
    answers = list(wanderer.walk(*(top + seed for seed in SEEDS), kind=kind))
    answers += [program.get(top + address) for address in FOR_PROGRAMS]

    assert {one.url: found for one in answers if (found := lacking(one))} == {}
    assert {one.url: one.status for one in answers if one.status >= 400} == {}
    assert len(answers) > 40


def test_no_script_names_an_address_itself() -> None:
    """Pages tell it their addresses."""
    for script in Path("static/monitoring").glob("*.js"):
        found = re.findall(r"""["'`]/[a-z][^"'`]*""", script.read_text())
        assert found == [], script.name


@served
def test_people_sign_in_and_stay_under_the_prefix(
    site: Site, administrator: User
) -> None:
    administrator.set_password(PASSWORD)
    administrator.save()
    wanderer, page = Wanderer(), f"{PREFIX}/processes/"

    sent = wanderer.get(site.url + page)
    assert sent.headers["Location"] == f"{PREFIX}/sign-in/?next={page}"
    form = wanderer.get(site.url + sent.headers["Location"])
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)
    given = {"username": administrator.username, "password": PASSWORD}
    answer = wanderer.get(form.url, csrfmiddlewaretoken=token, **given)

    assert (answer.status, answer.headers["Location"]) == (302, page)
    assert {cookie.path for cookie in wanderer.cookies} == {PREFIX}
    assert wanderer.get(site.url + page).status == 200


@served
def test_the_socket_of_an_open_page_connects_under_the_prefix(
    site: Site, administrator: User
) -> None:
    wanderer = signed_in(site, administrator)
    page = dict(attributes(wanderer.get(f"{site.url}{PREFIX}/").text))
    cookies = "; ".join(f"{one.name}={one.value}" for one in wanderer.cookies)

    assert page["data-socket"] == f"{PREFIX}/ws/live/"
    with connect(
        f"ws{site.url.removeprefix('http')}{page['data-socket']}?watch=overview",
        origin=Origin(site.url),
        additional_headers={"Cookie": cookies},
    ) as socket:
        assert socket.ping().wait(60)
        assert socket.close_code is None  # as it would be without permission


def test_under_https_a_prefix_changes_names_and_paths_of_cookies(
    tmp_path: Path,
) -> None:
    """Browsers refuse a cookie __Host-… with a path."""
    said = printed(
        "from orchestrator.settings import *; print(SESSION_COOKIE_NAME, CSRF_COOKIE_NAME, SESSION_COOKIE_PATH, "
        "CSRF_COOKIE_PATH, re.match(SECURE_REDIRECT_EXEMPT[0], 'procession/livez') is not None)",
        PATH=os.environ["PATH"],
        PROCESSION_DATA_DIR=str(tmp_path),
        PROCESSION_HTTPS="1",
        PROCESSION_PATH_PREFIX="/procession",
    )

    told = ["__Secure-session", "__Secure-csrf", *["/procession"] * 2, "True"]
    assert said.split() == told
