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
)
from orchestrator.engine.operations.desk import saved_views
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import OperatorAction, SavedView
from tests.browser.samples import HARMFUL
from tests.conftest import of, person
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.doing import refused

pytestmark = pytest.mark.django_db

QUERY = "status=failed&where=amount+%3E+5&columns=started&owner=me"
ABOUT = {"status": "failed", "where": "amount > 5", "columns": "started", "owner": "me"}


def by(user: User, revision: int | None = None) -> ActionRequest:
    return ActionRequest(user, uuid4(), expected_revision=revision)


def saved(
    user: User, name: str = "One", about: Any = None, *, team: bool = True
) -> SavedView:
    about = {"status": "failed"} if about is None else about
    return save_view(name, about, team, request=by(user))


def post(client: Client, path: str, **given: Any) -> Any:
    given.setdefault("key", str(uuid4()))
    return client.post(path, given)


def page(client: Client, path: str = "/views/") -> str:
    return unescape(client.read(path))


def lists(client: Client) -> str:
    """What the page of views and that of processes say."""
    return page(client) + page(client, "/processes/")


def test_s10_4_a_view_on_data_is_for_those_who_see_data(operator: User) -> None:
    view = saved(operator, "On data", ABOUT)
    saved(operator, "Failed")
    client = of(person("outsider", "view_processinstance"))

    assert "Failed" in page(client)
    assert "On data" not in lists(client)
    client.read(f"/views/{view.pk}/", status=404)


def test_s10_4_a_list_is_saved_and_opened(viewing: Client, viewer: User) -> None:
    shown = viewing.read(f"/processes/?{QUERY}")
    form = shown.partition('id="save-view"')[2].partition("</form>")[0]
    given = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', form))

    answer = post(viewing, "/views/save/", name="Mine", query=unescape(given["query"]))

    view = SavedView.objects.get()
    assert (answer["Location"], view.owner, view.about) == ("/views/", viewer, ABOUT)
    opened = viewing.get(f"/views/{view.pk}/")["Location"]
    assert opened.startswith("/processes/?")
    assert viewing.get(opened).context["filters"].parameters() == ABOUT
    for path in ("/views/", "/processes/"):
        assert "Mine" in page(viewing, path)


def test_s10_4_own_is_private(operating: Client, viewer: User, operator: User) -> None:
    mine = saved(viewer, "Mine", team=False)

    operating.read(f"/views/{mine.pk}/", status=404)
    assert "Mine" not in lists(operating)
    for name in ("rename_view", "delete_view"):
        refused = post(operating, f"/views/{mine.pk}/{name}/", name="Yours")
        assert refused.status_code == 409
    saved(operator, "Mine", {}, team=False)  # a name is one's own too
    assert SavedView.objects.get(owner=viewer).about == mine.about


def test_s10_4_those_of_the_team_need_permission_and_are_audited(
    operating: Client, viewing: Client, operator: User
) -> None:
    post(operating, "/views/save/", name="Ours", query=QUERY, team="1")
    view = SavedView.objects.get()
    assert view.owner is None

    viewing.read(f"/views/{view.pk}/", status=302)
    text = page(viewing)
    assert text.count("disabled") == 2
    assert "Your account may not do this" in text
    assert "disabled" in page(viewing, "/processes/").partition('name="team"')[2][:80]
    for path in ("save", f"{view.pk}/rename_view", f"{view.pk}/delete_view"):
        refused = post(viewing, f"/views/{path}/", name="x", query="", team="1")
        assert refused.status_code == 403

    rename_view(view.pk, "All of us", request=by(operator))
    delete_view(view.pk, request=by(operator))

    audit = OperatorAction.objects.order_by("pk")
    names = ("save_view", "rename_view", "delete_view")
    saving, *changing = [(name, "done", "operator") for name in names]
    refusals = [(name, "refused", "viewer") for name in names]
    rows = list(audit.values_list("action", "result", "actor_name"))
    assert rows == [saving, *refusals, *changing]
    assert audit[0].after == {"view": "Ours", "about": ABOUT}
    assert audit[4].after["view"] == "All of us"


@cases("team", False, True)
def test_s10_4_pressed_twice_is_once_and_ones_own_leaves_no_audit_row(
    team: bool, operator: User
) -> None:
    saving, renaming, deleting = by(operator), by(operator, 0), by(operator, 1)
    for _ in range(2):
        save_view("One", ABOUT, team, request=saving)
    [view] = SavedView.objects.all()
    times = 2 if team else 1
    for _ in range(times):
        rename_view(view.pk, "Two", request=renaming)
    for _ in range(times):
        delete_view(view.pk, request=deleting)

    assert OperatorAction.objects.count() == (3 if team else 0)
    assert not SavedView.objects.exists()


@cases("team", False, True)
def test_s10_4_what_is_stale_or_gone_is_refused(team: bool, operator: User) -> None:
    pk = saved(operator, team=team).pk
    rename_view(pk, "Two", request=by(operator, 0))

    stale: dict[str, Any] = {"error": StaleRevision, "expected_revision": 0}
    refused("", rename_view, pk, "Three", **stale)
    refused("", delete_view, pk, **stale)
    delete_view(pk, request=by(operator, 1))
    refused("not there any more", rename_view, pk, "Three")
    refused("not there any more", delete_view, pk)


@cases("team", False, True)
def test_s10_4_a_name_is_there_once(team: bool, operator: User) -> None:
    saved(operator, team=team)
    other = saved(operator, "Two", team=team)

    twice = "another view of the name 'One'"
    refused(twice, save_view, " One ", {"status": "live"}, team)
    refused(twice, rename_view, other, "One")
    for name in ("", "  ", "x" * 101, "\0"):
        refused("at most 100 characters", save_view, name, {"status": "failed"}, team)
    saved(operator, team=not team)
    assert SavedView.objects.count() == 3


def test_s10_4_there_are_so_many_and_no_more(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_views, "MOST_VIEWS", 2)
    for name in ("One", "Two", "Two"):
        saved(operator, name, team=False)

    refused("There are 2 views already", save_view, "Three", {}, False)
    saved(operator, "Three")  # the team has its own


def test_s10_4_without_permission_nothing_is_stored(viewer: User) -> None:
    refused("", save_view, "One", {}, True, error=PermissionMissing, actor=viewer)
    assert not SavedView.objects.exists()


@cases("text", *HARMFUL)
def test_s10_4_a_harmful_name_is_a_text(text: str, operating: Client) -> None:
    post(operating, "/views/save/", name=text, query="status=live", team="1")

    for path in ("/views/", "/processes/", "/audit/"):
        raw = operating.read(path)
        assert text not in raw or "<" not in text
    assert text in page(operating)


def test_s10_4_neither_unreadable_nor_strange_is_saved(operating: Client) -> None:
    refused = post(operating, "/views/save/", name="x", query="where=amount+%3E")
    assert refused.status_code == 409
    assert "Say what it is compared with" in unescape(refused.content.decode())
    strange = "before=x&status=live&next=//evil.example&reader=1&started_since=1"
    post(operating, "/views/save/", name="x", query=strange)
    assert SavedView.objects.get().about == {"status": "live"}


def test_s10_4_looking_writes_nothing(operating: Client, operator: User) -> None:
    view = saved(operator, team=False)

    for path in ("/views/save/", f"/views/{view.pk}/delete_view/"):
        operating.read(path, status=405)
    page(operating)
    assert SavedView.objects.get().revision == 0


def test_s10_4_with_an_account_its_views_go_and_the_teams_stay(operator: User) -> None:
    saved(operator, "Mine", team=False)
    saved(operator, "Ours")

    operator.delete()

    assert SavedView.objects.get().name == "Ours"


def test_s10_4_a_key_is_for_one_view_of_the_team_alone(operator: User) -> None:
    one, two = saved(operator, "one"), saved(operator, "two")
    press = by(operator)
    delete_view(one.pk, request=press)

    with pytest.raises(OperationRefused, match="used for another action"):
        delete_view(two.pk, request=press)
    assert delete_view(one.pk, request=press).name == "one"

    assert SavedView.objects.get() == two
