"""S10.4: lists of processes are saved under a name, for oneself or for the team."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.operations import (
    ActionRequest,
    delete_view,
    rename_view,
    save_view,
    saved_views,
)
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import OperatorAction, SavedView
from tests.browser.samples import HARMFUL
from tests.conftest import person
from tests.services.cases import cases
from tests.services.client import Client

pytestmark = pytest.mark.django_db

QUERY = "status=failed&where=amount+%3E+5&columns=started&owner=me"
ABOUT = {
    "status": "failed",
    "where": "amount > 5",
    "columns": "started",
    "owner": "me",
}


def by(user: User, revision: int | None = None) -> ActionRequest:
    return ActionRequest(user, uuid4(), expected_revision=revision)


def post(client: Client, path: str, **given: Any) -> Any:
    given.setdefault("key", str(uuid4()))
    return client.post(path, given)


def page(client: Client, path: str = "/views/") -> str:
    page = client.read(path)
    return unescape(page)


def test_s10_4_a_view_on_data_is_for_those_who_see_data(
    client: Client, operator: User
) -> None:
    save_view("On data", ABOUT, True, request=by(operator))
    save_view("Failed", {"status": "failed"}, True, request=by(operator))
    client.force_login(person("outsider", "view_processinstance"))

    assert "Failed" in page(client)
    assert "On data" not in page(client)
    assert "On data" not in page(client, "/processes/")
    view = SavedView.objects.get(name="On data")
    assert client.get(f"/views/{view.pk}/").status_code == 404


def test_s10_4_a_list_is_saved_and_opened_from_a_link(
    viewing: Client, viewer: User
) -> None:
    shown = viewing.read(f"/processes/?{QUERY}")
    form = shown.partition('id="save-view"')[2].partition("</form>")[0]
    given = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', form))

    saved = post(viewing, "/views/save/", name="Mine", query=unescape(given["query"]))

    assert saved["Location"] == "/views/"
    view = SavedView.objects.get()
    assert (view.owner, view.about) == (viewer, ABOUT)
    opened = viewing.get(f"/views/{view.pk}/")["Location"]
    assert opened.startswith("/processes/?")
    assert viewing.get(opened).context["filters"].parameters() == ABOUT
    assert "Mine" in page(viewing)
    assert "Mine" in page(viewing, "/processes/")


def test_s10_4_ones_own_is_nobody_elses(
    operating: Client, viewer: User, operator: User
) -> None:
    mine = save_view("Mine", ABOUT, False, request=by(viewer))

    assert operating.get(f"/views/{mine.pk}/").status_code == 404
    assert "Mine" not in page(operating) + page(operating, "/processes/")
    for name in ("rename_view", "delete_view"):
        refused = post(operating, f"/views/{mine.pk}/{name}/", name="Yours")
        assert refused.status_code == 409
    save_view("Mine", {}, False, request=by(operator))  # a name is one's own too
    assert SavedView.objects.get(owner=viewer).about == ABOUT


def test_s10_4_those_of_the_team_need_permission_and_are_audited(
    client: Client, viewer: User, operator: User
) -> None:
    client.force_login(operator)
    post(client, "/views/save/", name="Ours", query=QUERY, team="1")
    view = SavedView.objects.get()
    assert view.owner is None
    client.force_login(viewer)

    assert client.get(f"/views/{view.pk}/").status_code == 302
    text = page(client)
    assert text.count("disabled") == 2
    assert "Your account may not do this" in text
    assert "disabled" in page(client, "/processes/").partition('name="team"')[2][:80]
    statuses = [
        post(client, "/views/save/", name="x", query="", team="1").status_code,
        post(client, f"/views/{view.pk}/rename_view/", name="x").status_code,
        post(client, f"/views/{view.pk}/delete_view/").status_code,
    ]
    assert statuses == [403, 403, 403]

    rename_view(view.pk, "All of us", request=by(operator))
    delete_view(view.pk, request=by(operator))

    audit = OperatorAction.objects.order_by("pk")
    assert list(audit.values_list("action", "result", "actor_name")) == [
        ("save_view", "done", "operator"),
        ("save_view", "refused", "viewer"),
        ("rename_view", "refused", "viewer"),
        ("delete_view", "refused", "viewer"),
        ("rename_view", "done", "operator"),
        ("delete_view", "done", "operator"),
    ]
    assert audit[0].after == {"view": "Ours", "about": ABOUT}
    assert audit[4].after["view"] == "All of us"


def test_s10_4_what_is_ones_own_leaves_no_audit_row(viewer: User) -> None:
    mine = save_view("Mine", ABOUT, False, request=by(viewer))
    rename_view(mine.pk, "Still mine", request=by(viewer))
    delete_view(mine.pk, request=by(viewer))

    assert not OperatorAction.objects.exists()
    assert not SavedView.objects.exists()


@cases("team", False, True)
def test_s10_4_pressed_twice_is_once(team: bool, operator: User) -> None:
    saving, renaming, deleting = by(operator), by(operator, 0), by(operator, 1)
    for _ in range(2):
        save_view("One", ABOUT, team, request=saving)
    [view] = SavedView.objects.all()
    rename_view(view.pk, "Two", request=renaming)
    if team:
        rename_view(view.pk, "Two", request=renaming)
    delete_view(view.pk, request=deleting)
    if team:
        delete_view(view.pk, request=deleting)

    assert OperatorAction.objects.count() == (3 if team else 0)
    assert not SavedView.objects.exists()


@cases("team", False, True)
def test_s10_4_a_stale_page_and_a_view_that_is_gone_are_refused(
    team: bool, operator: User
) -> None:
    view = save_view("One", ABOUT, team, request=by(operator))
    rename_view(view.pk, "Two", request=by(operator, 0))

    with pytest.raises(StaleRevision):
        rename_view(view.pk, "Three", request=by(operator, 0))
    with pytest.raises(StaleRevision):
        delete_view(view.pk, request=by(operator, 0))
    delete_view(view.pk, request=by(operator, 1))
    for change in (rename_view, delete_view):
        given = ["Four"] if change is rename_view else []
        with pytest.raises(OperationRefused, match="not there any more"):
            change(view.pk, *given, request=by(operator))


@cases("team", False, True)
def test_s10_4_a_name_is_there_once(team: bool, operator: User) -> None:
    save_view("One", ABOUT, team, request=by(operator))
    other = save_view("Two", {}, team, request=by(operator))

    with pytest.raises(OperationRefused, match="another view of the name 'One'"):
        save_view(" One ", {"status": "live"}, team, request=by(operator))
    with pytest.raises(OperationRefused, match="another view of the name 'One'"):
        rename_view(other.pk, "One", request=by(operator))
    for name in ("", "  ", "x" * 101, "\0"):
        with pytest.raises(OperationRefused, match="at most 100 characters"):
            save_view(name, ABOUT, team, request=by(operator))
    save_view("One", ABOUT, not team, request=by(operator))
    assert SavedView.objects.count() == 3


def test_s10_4_there_are_so_many_and_no_more(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_views, "MOST_VIEWS", 2)
    for name in ("One", "Two", "Two"):
        save_view(name, ABOUT, False, request=by(operator))

    with pytest.raises(OperationRefused, match="There are 2 views already"):
        save_view("Three", ABOUT, False, request=by(operator))
    save_view("Three", ABOUT, True, request=by(operator))  # the team has its own


def test_s10_4_without_permission_nothing_is_stored(viewer: User) -> None:
    with pytest.raises(PermissionMissing):
        save_view("Ours", ABOUT, True, request=by(viewer))

    assert not SavedView.objects.exists()


@cases("text", *HARMFUL)
def test_s10_4_a_harmful_name_is_a_text(text: str, operating: Client) -> None:
    post(operating, "/views/save/", name=text, query="status=live", team="1")

    for path in ("/views/", "/processes/", "/audit/"):
        raw = operating.read(path)
        assert text not in raw or "<" not in text
    assert text in page(operating)


def test_s10_4_what_cannot_be_read_is_not_saved_and_nothing_strange_is(
    operating: Client,
) -> None:
    refused = post(operating, "/views/save/", name="x", query="where=amount+%3E")
    assert refused.status_code == 409
    assert "Say what it is compared with" in unescape(refused.content.decode())
    strange = "before=x&status=live&next=//evil.example&reader=1&started_since=1"
    post(operating, "/views/save/", name="x", query=strange)
    assert SavedView.objects.get().about == {"status": "live"}


def test_s10_4_looking_writes_nothing(operating: Client, operator: User) -> None:
    view = save_view("Mine", ABOUT, False, request=by(operator))

    for path in ("/views/save/", f"/views/{view.pk}/delete_view/"):
        assert operating.get(path).status_code == 405
    page(operating)
    assert SavedView.objects.get().revision == 0


def test_s10_4_with_an_account_its_views_go_and_the_teams_stay(operator: User) -> None:
    save_view("Mine", ABOUT, False, request=by(operator))
    save_view("Ours", ABOUT, True, request=by(operator))

    operator.delete()

    assert SavedView.objects.get().name == "Ours"


def test_s10_4_a_key_is_for_one_view_of_the_team_alone(operator: User) -> None:
    one, two = (
        save_view(name, ABOUT, True, request=by(operator)) for name in ("one", "two")
    )
    press = by(operator)
    delete_view(one.pk, request=press)

    with pytest.raises(OperationRefused, match="used for another action"):
        delete_view(two.pk, request=press)
    assert delete_view(one.pk, request=press).name == "one"

    assert SavedView.objects.get() == two
