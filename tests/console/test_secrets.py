"""S12.3: what is marked as secret stands in no page, fragment, file, row of the admin, or output of a command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.db.models import CharField, TextField

from monitoring.base.masking import names_of
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page
from orchestrator import permissions, registry, secret_names
from orchestrator.definition.secrets import MASK, mask_fields
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import ActionRequest, reveal
from orchestrator.models import (
    BulkOperation,
    Definition,
    FailureGroup,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    Repair,
    StepRun,
)
from orchestrator.notices.item_lines import item_line
from tests.apps.kept_secret.fixtures import Filled, filled, secretive
from tests.apps.kept_secret.processes import (
    CODE,
    DIGEST,
    HUSH,
    NUMBER,
    CardPayment,
    Enrolment,
)
from tests.conftest import of, person
from tests.services.bulk import begun
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.doing import refused
from tests.services.reading import BY_SCRIPT
from tests.services.sizes import FULL, size
from tests.services.telling import gathered

__all__ = ["filled", "secretive"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("filled")]

TELLING = (HUSH, "秘密の言葉", "\\u79d8\\u5bc6", quote("秘密"))
"""What no answer may have in it, however it is spelled."""

HREF = re.compile(r"""(?:href|hx-get)=["']([^"'#]+)""")
FEW = size(usual=6, full=40)
"""Rows of each table whose page in the administration is looked at."""
ROW = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b\d+\b")
"""What tells one row's page from another's: of those that links lead to one is looked at, with `--full` each."""
MOST = 1_200
"""Pages that the crawl looks at; it must come to an end before."""


def told(text: str) -> list[str]:
    """The secrets in an answer."""
    forms = (text, unquote(unescape(text)))
    places = [(form, form.find(word)) for form in forms for word in TELLING]
    return [form[max(at - 80, 0) : at + 80] for form, at in places if at >= 0]


def content(answer: Any) -> str:
    if not answer.streaming:
        return str(answer.content.decode(errors="replace"))
    return b"".join(answer.streaming_content).decode(errors="replace")


def assert_untold(client: Client, *addresses: str, **more: Any) -> None:
    """None of the pages has a secret."""
    for address in addresses:
        assert not told(content(client.get(address, **more))), address


def allow(user: User, *codenames: str) -> User:
    """Give somebody permissions, and read them anew."""
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
    return User.objects.get(pk=user.pk)


def pressed(
    client: Client, pk: UUID, action: str, reason: str = "x", **given: Any
) -> Any:
    """Press a button of a process as its page has it now."""
    form = {"key": uuid4().hex, "reason": reason, "revision": found_again(pk).revision}
    return client.post(f"/processes/{pk}/{action}/", {**form, **given})


EXPORTS = [f"/audit/{name}" for name in ("", "export.jsonl", "export.csv")]


NO_PAGES = "history logout password_change jsi18n static django-rq rq"
FORM_ONLY = re.compile(f"/(?:{'|'.join(words(NO_PAGES))})/")


def crawl(client: Client, *starts: str, far: bool = True) -> dict[str, str]:
    """Pages, and if far all that links lead to, each once for a shape of address, with the live parts of each."""
    waiting, seen, found = list(starts), set[str](), dict[str, str]()
    while waiting:
        address = waiting.pop(0)
        shape = shape_of(address)
        if not FULL and address not in starts:
            shape = ROW.sub("#", shape)
        if shape in seen or FORM_ONLY.search(address):
            continue
        seen.add(shape)
        assert len(seen) < MOST, "the crawl has no end"
        answer = client.get(address)
        text = content(answer)
        found[address] = text
        if answer.status_code in (301, 302):
            waiting.append(urljoin(address, answer["Location"]))
        if not address.startswith("/admin/"):  # whose pages have no live parts
            more = f"{'&' if '?' in address else '?'}since=0"
            live = client.get(address + more, headers=BY_SCRIPT)
            found[f"{address} live"] = content(live)
        for href in HREF.findall(text) if far else ():
            there = urljoin(address, unescape(href))
            parts = urlsplit(there)
            if parts.netloc in ("", "testserver") and parts.scheme in ("", "http"):
                waiting.append(f"{parts.path}?{parts.query}".rstrip("?"))
    return found


FILTERED = ("/admin/", "/definitions/", "/processes/export")


def shape_of(address: str) -> str:
    """Addresses that differ in nothing but which row of a list, or which page of it, they are of."""
    parts = urlsplit(address)
    names = sorted(one.partition("=")[0] for one in parts.query.split("&") if one)
    if names and parts.path.startswith(FILTERED):
        return f"{parts.path}?" if parts.path.endswith("/") else parts.path
    return f"{parts.path}?{names}"


def test_s12_3_no_page_file_or_part_has_a_secret(filled: Filled, admin: Client) -> None:
    enrolments = (filled.enrolled, filled.failed_enrolment)
    every = words("history.jsonl repair/ history-rows ?at=1 ?at=1&beside=now")
    steps = words("hash_password keep_answer enrol")
    elements = words("elements.csv elements.jsonl")
    starts = [
        *words(
            """/ /admin/ /processes/export.csv /processes/export.jsonl /audit/export.csv
        /audit/export.jsonl /find/?q=P-1 /find/?q=no+bank /events/?tab=all
        /events/send/?type=PaymentAsked /events/send/?type=CodeEntered"""
        ),
        *(f"/processes/{pk}/{page}" for pk in filled for page in every),
        *(f"/processes/{pk}/?step={step}" for pk in enrolments for step in steps),
        *(f"/processes/{filled.enrolled}/{one}?step=keep_answer" for one in elements),
        *(
            f"/processes/{run.instance_id}/steps/{run.pk}/result.json"
            for run in StepRun.objects.exclude(result=None)
        ),
        *admin_pages(),
    ]

    found = crawl(admin, *starts)
    drain()  # on a crowded machine the patience of what is kept is over by now

    assert not telling(found)
    assert len(found) > 150
    shown = found[f"/processes/{filled.waiting}/"]
    assert MASK in shown
    assert "A. Person" in shown  # what is not secret is shown
    for part in ("history.jsonl", "history-rows", "repair/"):
        assert MASK in found[f"/processes/{filled.waiting}/{part}"], part


def telling(found: dict[str, str]) -> dict[str, list[str]]:
    """The pages that have secrets, with these."""
    return {address: told(text) for address, text in found.items() if told(text)}


def admin_pages() -> Iterator[str]:
    """The page of every row of ours in the admin."""
    for model in apps.get_app_config("orchestrator").get_models():
        name = model._meta.model_name
        yield f"/admin/orchestrator/{name}/"
        for row in model._default_manager.all()[:FEW]:
            yield f"/admin/orchestrator/{name}/{row.pk}/change/"


def test_a_corrected_copy_begins_without_secrets(filled: Filled, admin: Client) -> None:
    pages = [
        admin.read(f"/events/send/?type={event.type}&copy={event.pk}")
        for event in InboxEvent.objects.all()
    ]
    assert any("A. Person" in page for page in pages) is False  # beside a secret
    assert [page for page in pages if HUSH in page or MASK in page] == []


def test_no_search_of_elements_tells_a_secret(filled: Filled, admin: Client) -> None:
    place = f"/processes/{filled.enrolled}/elements.jsonl?step=keep_answer"

    every = content(admin.get(place)).splitlines()
    found = content(admin.get(f"{place}&search={HUSH}"))

    assert [json.loads(one)["key"] for one in every] == [MASK, MASK]
    assert found == ""


def test_texts_that_are_stored_of_errors_have_no_secret() -> None:
    """Neither a search for words of errors nor a notice can tell one."""
    for model in apps.get_app_config("orchestrator").get_models():
        fields = model._meta.concrete_fields
        texts = [one for one in fields if isinstance(one, CharField | TextField)]
        for row in model._default_manager.all():
            for name in (one.attname for one in texts):
                assert not told(str(getattr(row, name) or "")), (row, name)
    assert MASK in Incident.objects.get(message__contains="no bank takes").message
    assert StepRun.objects.filter(error__contains=MASK).exists()
    assert ProcessInstance.objects.filter(summary__contains=MASK).exists()
    assert all(not told(json.dumps(one.progress)) for one in StepRun.objects.all())


@cases("form", "", " --json")
@cases("text", "show waiting", "show failed", "show failed_enrolment", "list")
def test_no_command_tells_a_secret(
    text: str, form: str, filled: Filled, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(getattr(filled, one, one)) for one in words(text + form)]

    call_command("process", *given)

    said = capsys.readouterr()
    assert said.out
    assert not told(said.out + said.err)


def test_what_is_exported_has_the_secrets_for_those_who_may_have_them_shown(
    filled: Filled, administrator: User, tmp_path: Any
) -> None:
    administrator.is_superuser = False
    administrator.save()
    allow(administrator, "export_processinstance")
    file = tmp_path / "payment.jsonl"
    by = ("--user", "administrator", "--reason", "move", "--output", str(file))

    with pytest.raises(
        CommandError, match="its export needs the permission to have them shown"
    ):
        call_command("process", "export", str(filled.enrolled), *by)
    assert not file.exists()

    allow(administrator, "reveal_secrets")
    call_command("process", "export", str(filled.enrolled), *by)
    assert HUSH in file.read_text()


def test_a_look_is_for_those_who_may_and_needs_a_reason(
    filled: Filled, operating: Client, operator: User
) -> None:
    assert "disabled" in operating.read(f"/processes/{filled.waiting}/secrets/")
    refused = pressed(operating, filled.waiting, "secrets", "a call")
    allow(operator, "reveal_secrets")
    nothing = pressed(operating, filled.waiting, "secrets", "")

    assert (refused.status_code, nothing.status_code) == (403, 400)
    assert not told(content(refused) + content(nothing))
    assert not OperatorAction.objects.filter(action="reveal", result="done").exists()


def test_a_look_is_one_answer_that_nobody_keeps_and_one_row_however_often_pressed(
    filled: Filled, admin: Client
) -> None:
    page, key = f"/processes/{filled.failed}/", uuid4().hex
    before = found_again(filled.failed).revision

    for _ in range(2):
        answer = admin.post(f"{page}secrets/", {"key": key, "reason": "a call"})
        text = unescape(answer.content.decode())
        assert answer.status_code == 200
        assert all(value in text for value in (NUMBER, CODE, "秘密の言葉"))
        assert "no-store" in answer["Cache-Control"]
    row = OperatorAction.objects.get(action="reveal")
    assert (row.reason, row.instance_id) == ("a call", filled.failed)
    assert not told(json.dumps([row.before, row.after], ensure_ascii=False))
    assert found_again(filled.failed).revision == before
    looks = (f"{page}secrets/", f"{page}secrets/?since=0", page, "/audit/")
    assert_untold(admin, *looks, headers=BY_SCRIPT)


def test_the_key_of_a_look_is_its_persons_and_is_over_soon(
    filled: Filled, administrator: User, operator: User
) -> None:
    asks: dict[str, Any] = {"key": uuid4(), "reason": "a call"}
    done = reveal(filled.waiting, request=ActionRequest(administrator, **asks))

    for _ in range(2):
        refused("another action", reveal, filled.waiting, actor=operator, **asks)
        operator = allow(operator, "reveal_secrets")
    OperatorAction.objects.filter(pk=done.pk).update(at="2020-01-01T00:00Z")

    refused("over", reveal, filled.waiting, actor=administrator, **asks)


@cases(
    "where",
    f'pin contains "{HUSH}"',
    'pin != "x"',
    "pin exists",
    'pin > "a"',
    'pin < "zzz"',
    f'pin in ("a", "{NUMBER}")',
    f'card.number = "{NUMBER}"',
    "card.number exists",
    '"card"."number" exists',
    f'card contains "{HUSH}"',
    f'card contains "{NUMBER}"',
    '"p\\\\u0069n" exists',
    '"c\\\\u0061rd"."numbe\\\\u0072" exists',
    f'password contains "{HUSH}"',
    "pin.0 exists",
)
def test_no_condition_finds_by_a_secret(where: str, filled: Filled) -> None:
    assert not process_page(Filters(where=where)).rows
    assert not process_page(Filters(where=where, definition="card-payment")).rows
    others = process_page(Filters(where=f"{where} or amount = 5")).rows
    assert {row.pk for row in others} == {filled.waiting, filled.failed}


def test_a_condition_on_a_secret_says_why_it_finds_nothing(admin: Client) -> None:
    given = urlencode({"definition": "card-payment", "where": "pin exists"})

    answer = admin.read(f"/processes/?{given}")

    assert "pin is secret" in answer
    assert 'value="pin"' not in answer


@cases(
    "lookup",
    *words(
        """processinstance/?data__pin__startswith=x checkpoint/?data__pin__startswith=x
        inboxevent/?body__pin__contains=x inboxevent/?body_hash__startswith=a
        issuedcommand/?body__passphrase__contains=x
        steprun/?result__digest__contains=x
        steprun/?instance__data__password__contains=x
        operatoraction/?after__contains=x bulkoperation/?given__contains=x"""
    ),
)
def test_no_address_of_the_admin_narrows_by_values(lookup: str, admin: Client) -> None:
    answer = admin.get(f"/admin/orchestrator/{lookup}")

    assert answer.status_code in (302, 400)


def stage(client: Client, pk: UUID, value: object, **edit: str) -> Any:
    """Stage an edit of a process, of its data if no other."""
    form = {"edit": "data", **edit, "value": json.dumps(value)}
    return client.post(f"/processes/{pk}/repair/stage/", form)


def test_a_repair_keeps_and_hides_what_is_masked(filled: Filled, admin: Client) -> None:
    before, pk = found_again(filled.waiting).data, filled.waiting
    edited = {**before, "amount": 7, "card": {"number": MASK, "holder": "B. Person"}}

    staged = stage(admin, pk, {**edited, "pin": MASK, "code": MASK})
    page = admin.read(f"/processes/{pk}/repair/")

    assert staged.status_code == 302
    assert not told(page)
    assert "B. Person" in page
    sent = re.search(r'name="edits" value="([^"]*)"', page)
    assert sent is not None
    done = pressed(admin, pk, "repair", edits=unescape(sent[1]))
    assert done.status_code == 302, content(done)
    card = {"number": NUMBER, "holder": "B. Person"}
    assert found_again(pk).data == {**edited, "card": card}
    assert_untold(admin, *EXPORTS, f"/processes/{pk}/")


def found_again(pk: UUID) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=pk)


def repair_of_a_result(filled: Filled, client: Client, action: str) -> None:
    """Edit a result as its page shows it, with its secrets masked."""
    process = found_again(filled.failed_enrolment)
    run = StepRun.objects.get(instance=process, node="hash_password")
    value = {**mask_fields(run.result, names_of(process.definition)), "person": "E-3"}
    edits = json.dumps([{"edit": "result", "target": str(run.pk), "value": value}])
    done = pressed(client, process.pk, action, edits=edits)
    assert done.status_code == 302, content(done)


def test_the_audit_of_an_edit_has_no_secret(filled: Filled, admin: Client) -> None:
    repair_of_a_result(filled, admin, "repair")

    row = OperatorAction.objects.get(action="repair")
    [[step, before, after]] = row.after["results"]
    assert (step, after) == ("hash_password", {**before, "person": "E-3"})
    assert told(json.dumps(after))  # it is stored as it is
    assert "E-3" in admin.read("/audit/export.jsonl")
    in_admin = f"/admin/orchestrator/operatoraction/{row.pk}/change/"
    page = f"/processes/{filled.failed_enrolment}/"
    assert_untold(admin, *EXPORTS, in_admin, page, f"{page}history.jsonl")


def test_nor_has_that_of_one_that_another_person_has_proposed(
    filled: Filled, admin: Client, operating: Client, operator: User
) -> None:
    allow(operator, "reveal_secrets")
    repair_of_a_result(filled, operating, "propose_repair")

    proposed = str(Repair.objects.get().pk)
    done = pressed(admin, filled.failed_enrolment, "approve_repair", repair=proposed)

    assert done.status_code == 302
    assert OperatorAction.objects.get(action="approve_repair").after["results"]
    assert_untold(admin, *EXPORTS)


def skipping(user: User, *answers: str) -> BulkOperation:
    """An operation that would give failed steps a result."""
    about = {"definition": Enrolment.name, "status": "failed"}
    given = {"person": "E-4", "digest": DIGEST, "answers": [*answers], "salts": []}
    return begun(user, about, 1, action="skip_failed", given=[given])


def test_what_many_are_given_has_no_secret(admin: Client, administrator: User) -> None:
    operation = skipping(administrator, HUSH)
    in_admin = f"/admin/orchestrator/bulkoperation/{operation.pk}/change/"

    shown = admin.read(in_admin)

    assert "E-4" in shown
    assert MASK in shown
    assert told(json.dumps(BulkOperation.objects.get().given, ensure_ascii=False))
    more = (f"/operations/{operation.pk}/", "/operations/", "/audit/")
    assert_untold(admin, in_admin, *more)


def test_nor_is_it_for_those_who_may_not_see_data(administrator: User) -> None:
    reader = person("cleo", "view_processinstance", "view_bulkoperation")
    User.objects.filter(pk=reader.pk).update(is_staff=True)
    page = f"/admin/orchestrator/bulkoperation/{skipping(administrator).pk}/change/"

    shown = of(reader).read(page)

    assert "not yours to see" in shown
    assert "E-4" not in shown


@cases("guess", CODE, "another")
def test_a_repair_does_not_tell_whether_a_guess_is_right(
    guess: str, filled: Filled, operating: Client, operator: User
) -> None:
    allow(operator, "send_inboxevent")
    pk = filled.waiting
    card = {"number": MASK, "holder": ""}
    data = {**found_again(pk).data, "pin": MASK, "card": card, "code": guess}
    entered = {"payment": "P-1", "answer": guess}
    fields = {f"field-{name}": value for name, value in entered.items()}

    staged = stage(operating, pk, data)
    added = stage(operating, pk, entered, edit="event", target="CodeEntered")
    edits = json.dumps([{"edit": "data", "value": data}])
    direct = pressed(operating, pk, "repair", edits=edits)
    asks = {"key": uuid4().hex, "preview": "1", "process": pk, "event_id": "x"}
    preview = operating.post("/events/send/?type=CodeEntered", asks | fields)

    for answer in (staged, added):
        assert answer.status_code == 400
        assert "is secret: leave it as it stands" in content(answer)
    assert direct.status_code == 409
    assert not Repair.objects.exists()
    assert "has secret fields" in content(preview)
    assert "Charging" not in content(preview)


def test_notices_have_no_secret() -> None:
    for group in FailureGroup.objects.all():
        assert not told(group.message)
    [notice] = gathered()
    assert (len(notice.items), len(notice.texts)) == (7, 4)
    stored = [notice.items, notice.texts]
    assert not told(json.dumps(stored, ensure_ascii=False))
    assert not told("".join(item_line(one, notice.texts) for one in notice.items))


def test_what_the_code_forgot_stays_masked(filled: Filled, admin: Client) -> None:
    stored = Definition.objects.filter(name="card-payment")
    assert all((one.secrets or {})["names"] for one in stored)
    secret_names.clear_stored_secrets()
    with without(CardPayment):
        found = crawl(
            admin,
            *words("/events/?tab=all /events/ /failures/ /audit/"),
            *(f"/processes/{pk}/{part}" for pk in filled for part in ("", "repair/")),
            f"/processes/{filled.waiting}/history.jsonl",
            *admin_pages(),
            far=False,
        )

        assert not telling(found)


@contextmanager
def without(definition: Any) -> Iterator[None]:
    """The running code without a definition."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(registry.definitions, (definition.name, definition.version))
        patch.delitem(registry.command_handlers, "ChargeCard")
        yield


def test_those_who_may_not_see_data_see_how_processes_stand(filled: Filled) -> None:
    client = of(person("viewer", "view_processinstance", "view_inboxevent"))
    run = StepRun.objects.exclude(result=None).first()
    assert run is not None
    page = f"/processes/{filled.waiting}/"

    shown = client.read(page)

    assert "What it is about is not yours to see." in shown
    assert "A. Person" not in shown + client.read("/events/?tab=all")
    result = f"/processes/{run.instance_id}/steps/{run.pk}/result.json"
    for path in (f"{page}history.jsonl", f"{page}secrets/", result):
        client.read(path, status=403)
    given = urlencode({"where": "amount = 5"})
    refused = client.read(f"/processes/?{given}")
    assert "not yours to see, nor to look for" in refused
    assert str(filled.waiting) not in refused
    client.read(f"/operations/begin/?{given}", status=403)


def test_a_permission_that_was_split_off_is_kept_by_those_who_had_the_whole() -> None:
    viewers = Group.objects.create(name="viewers")
    viewers.permissions.add(Permission.objects.get(codename="view_processinstance"))
    Permission.objects.get(codename="view_data_processinstance").delete()

    permissions.create_permissions("default")
    permissions.create_permissions("default")

    kept = viewers.permissions.values_list("codename", flat=True)
    assert set(kept) == {"view_processinstance", "view_data_processinstance"}
