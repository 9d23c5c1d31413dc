"""An operator action of one's own, written by the recipe in docs/operating.md: one class in one module."""

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DEFAULT_DB_ALIAS

from orchestrator import permissions
from orchestrator.engine.operations import (
    OPERATIONS,
    ActionRequest,
    cancel,
    refusals,
    register,
)
from orchestrator.models import Checkpoint, OperatorAction, ProcessInstance
from tests.apps.an_operation import remind as module
from tests.apps.an_operation.remind import RemindOfProcess
from tests.apps.process_managers.desk import place
from tests.conftest import of
from tests.services.client import Client
from tests.services.doing import fresh

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

DOCS = Path(__file__).parents[2] / "docs"
ENDED = "The process has ended"


@pytest.fixture(autouse=True)
def remind(db: None) -> Iterator[RemindOfProcess]:
    """Make the action known, and its permission, as when the project starts and migrates."""
    operation = register(RemindOfProcess())
    permissions.create_permissions(DEFAULT_DB_ALIAS)
    yield operation
    del OPERATIONS[operation.name]


@pytest.fixture
def foreman(operator: User) -> User:
    """Return an operator who may remind people too."""
    may = Permission.objects.get(codename="remind_processinstance")
    operator.user_permissions.add(may)
    return User.objects.get(pk=operator.pk)


@pytest.fixture
def site(foreman: User) -> Client:
    return of(foreman)


def address(process: ProcessInstance) -> str:
    return f"/processes/{process.pk}/remind/"


def press(client: Client, process: ProcessInstance, **given: str) -> tuple[int, str]:
    """Press the button on the page as it is now; the status and text of the answer."""
    revision = ProcessInstance.objects.get(pk=process.pk).revision
    form = {"key": uuid4(), "revision": revision, "reason": "it takes long"}
    answer = client.post(address(process), {**form, "whom": "Sato", **given})
    return answer.status_code, unescape(answer.text)


def why_not(page: str) -> str:
    return page.partition('id="remind-button-why"')[2].partition("</span>")[0]


def test_its_permission_is_made() -> None:
    permission = Permission.objects.get(codename="remind_processinstance")

    assert permission.name == "Can remind people of a process"
    assert permission.content_type.model_class() is ProcessInstance


def test_its_button_and_its_dialog_are_on_the_page(site: Client) -> None:
    process = place()
    page = site.read(f"/processes/{process.pk}/")

    button = page.partition('id="remind-button"')[2].partition("</button>")[0]
    assert f'data-url="{address(process)}"' in button
    assert "aria-disabled" not in button
    assert button.rpartition(">")[2].strip() == "Remind"
    dialog = page.partition('id="remind-dialog"')[2].partition("</dialog>")[0]
    for part in ('name="whom"', 'name="reason"', str(RemindOfProcess.text)):
        assert part in dialog


def test_it_is_done_with_an_audit_row_and_a_word_in_the_history(site: Client) -> None:
    process = place()
    assert press(site, process)[0] == 302

    action, page = OperatorAction.objects.get(), site.read(f"/processes/{process.pk}/")
    assert "Reminded." in page
    done = (action.action, action.actor_name, action.result)
    assert done == ("remind", "operator", "done")
    assert (action.reason, action.after["reminded"]) == ("it takes long", "Sato")
    assert Checkpoint.objects.get(revision=2).cause == f"operator:{action.key}"
    history = page.partition('id="history"')[2]
    assert "Remind by operator" in " ".join(history.split())


def test_it_says_why_it_cannot_be_done(site: Client, foreman: User) -> None:
    process = place()
    status, said = press(site, process, whom="1")
    assert status == 409
    assert "No person is called" in said

    cancel(process.pk, request=ActionRequest(foreman, uuid4(), "why"))
    assert refusals([fresh(process)], foreman)[process.pk]["remind"] == ENDED
    assert ENDED in why_not(site.read(f"/processes/{process.pk}/"))
    status, said = press(site, process)
    assert status == 409
    assert ENDED in said
    refused = OperatorAction.objects.filter(action="remind", result="refused")
    assert refused.count() == 2


def test_a_form_without_its_field_is_refused(site: Client) -> None:
    assert press(site, place(), whom="")[0] == 400
    assert not OperatorAction.objects.exists()


def test_who_may_not_is_told_and_refused(viewing: Client) -> None:
    process = place()

    assert "may not do this" in why_not(viewing.read(f"/processes/{process.pk}/"))
    assert press(viewing, process)[0] == 403
    assert OperatorAction.objects.get().result == "refused"


def test_the_recipe_in_the_manual_is_this_module() -> None:
    _, _, code = Path(module.__file__).read_text().partition('"""\n\n')

    assert f"```python\n{code}```" in (DOCS / "operating.md").read_text()
