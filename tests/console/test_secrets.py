"""S12.3: what is marked as secret stands in no page, fragment, file, row of the admin, or output of a command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db.models import CharField, TextField

from monitoring.masking import masked, names_of
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import page_of
from orchestrator import secret_names
from orchestrator.definition.secrets import MASK
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest, reveal
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Definition,
    FailureGroup,
    Incident,
    Notice,
    OperatorAction,
    ProcessInstance,
    Repair,
    StepRun,
)
from orchestrator.notices.lines import line
from tests.apps.kept_secret.fixtures import Filled, filled, secretive
from tests.apps.kept_secret.processes import (
    CODE,
    DIGEST,
    HUSH,
    NUMBER,
    CardPayment,
    Enrolment,
)
from tests.conftest import person
from tests.services.bulk import begun
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.sizes import FULL, size

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
    plain = unquote(unescape(text))
    return [
        plain[max(at - 80, 0) : at + 80]
        for word in TELLING
        for at in [plain.find(word)]
        if at >= 0
    ] + [word for word in TELLING if word in text]


def content(answer: Any) -> str:
    if not answer.streaming:
        return str(answer.content.decode(errors="replace"))
    return b"".join(answer.streaming_content).decode(errors="replace")


FORM_ONLY = re.compile(
    r"/(?:history|logout|password_change|jsi18n|static|django-rq|rq)/"
)


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
            live = client.get(address + more, headers={"HX-Request": "true"})
            found[f"{address} live"] = content(live)
        for href in HREF.findall(text) if far else ():
            there = urljoin(address, unescape(href))
            parts = urlsplit(there)
            if parts.netloc in ("", "testserver") and parts.scheme in ("", "http"):
                waiting.append(f"{parts.path}?{parts.query}".rstrip("?"))
    return found


def shape_of(address: str) -> str:
    """Addresses that differ in nothing but which row of a list, or which page of it, they are of."""
    parts = urlsplit(address)
    names = sorted(one.partition("=")[0] for one in parts.query.split("&") if one)
    if names and parts.path.startswith(
        ("/admin/", "/definitions/", "/processes/export")
    ):
        return f"{parts.path}?" if parts.path.endswith("/") else parts.path
    return f"{parts.path}?{names}"


def test_s12_3_no_page_file_or_fragment_has_a_secret(
    filled: Filled, admin: Client
) -> None:
    starts = [
        *words(
            """/ /admin/ /processes/export.csv /processes/export.jsonl /audit/export.csv
        /audit/export.jsonl /find/?q=P-1 /find/?q=no+bank /events/?tab=all"""
        ),
        *(f"/events/send/?type={name}" for name in ("PaymentAsked", "CodeEntered")),
        *(f"/processes/{pk}/ledger.jsonl" for pk in filled),
        *(f"/processes/{pk}/repair/" for pk in filled),
        *(f"/processes/{pk}/ledger-rows" for pk in filled),
        *(f"/processes/{pk}/?at=1" for pk in filled),
        *(
            f"/processes/{pk}/?step={step}"
            for pk in (filled.enrolled, filled.failed_enrolment)
            for step in ("hash_password", "keep_answer", "enrol")
        ),
        *(
            f"/processes/{filled.enrolled}/elements.{form}?step=keep_answer"
            for form in ("csv", "jsonl")
        ),
        *(f"/processes/{pk}/?at=1&beside=now" for pk in filled),
        *(
            f"/processes/{run.instance_id}/steps/{run.pk}/result.json"
            for run in StepRun.objects.exclude(result=None)
        ),
        *admin_pages(),
    ]

    found = crawl(admin, *starts)
    drain()  # on a crowded machine the patience of what is kept is over by now

    wrong = {address: told(text) for address, text in found.items() if told(text)}
    assert not wrong
    assert len(found) > 150
    shown = found[f"/processes/{filled.waiting}/"]
    assert MASK in shown
    assert "A. Person" in shown  # what is not secret is shown
    for part in ("ledger.jsonl", "ledger-rows", "repair/"):
        assert MASK in found[f"/processes/{filled.waiting}/{part}"], part


def admin_pages() -> Iterator[str]:
    """The page of every row of ours in the admin."""
    for model in apps.get_app_config("orchestrator").get_models():
        name = model._meta.model_name
        yield f"/admin/orchestrator/{name}/"
        for row in model._default_manager.all()[:FEW]:
            yield f"/admin/orchestrator/{name}/{row.pk}/change/"


VALUES = {"data", "body", "result", "saved", "element", "before", "after", "edits"}


def test_no_search_among_the_elements_of_a_map_tells_a_secret(
    filled: Filled, admin: Client
) -> None:
    place = f"/processes/{filled.enrolled}/elements.jsonl?step=keep_answer"

    every = content(admin.get(place)).splitlines()
    found = content(admin.get(f"{place}&search={HUSH}"))

    assert [json.loads(one)["key"] for one in every] == [MASK, MASK]
    assert found == ""


def test_texts_that_are_stored_of_errors_have_no_secret() -> None:
    """Neither a search for words of errors nor a notice can tell one."""
    for model in apps.get_app_config("orchestrator").get_models():
        texts = [
            one.attname
            for one in model._meta.concrete_fields
            if isinstance(one, CharField | TextField)
        ]
        for row in model._default_manager.all():
            for name in texts:
                assert not told(str(getattr(row, name) or "")), (row, name)
    assert Incident.objects.filter(message__contains="no bank takes").exists()
    assert MASK in Incident.objects.get(message__contains="no bank").message
    assert StepRun.objects.filter(error__contains=MASK).exists()
    assert ProcessInstance.objects.filter(summary__contains=MASK).exists()
    assert all(not told(json.dumps(one.progress)) for one in StepRun.objects.all())


@cases(
    "arguments",
    ("show", "waiting"),
    ("show", "waiting", "--json"),
    ("show", "failed"),
    ("show", "failed_enrolment"),
    ("show", "failed_enrolment", "--json"),
    ("list",),
    ("list", "--json"),
)
def test_no_command_tells_a_secret(
    arguments: tuple[str, ...], filled: Filled, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(getattr(filled, one, one)) for one in arguments]

    call_command("process", *given)

    said = capsys.readouterr()
    assert said.out
    assert not told(said.out + said.err)


def test_what_is_exported_has_the_secrets_for_those_who_may_have_them_shown(
    filled: Filled, administrator: User, tmp_path: Any
) -> None:
    administrator.is_superuser = False
    administrator.save()
    may = Permission.objects.get(codename="export_processinstance")
    administrator.user_permissions.add(may)
    file = tmp_path / "payment.jsonl"
    command = ["export", str(filled.enrolled), "--user", "administrator", "--reason"]

    with pytest.raises(CommandError, match="must be allowed to have them shown"):
        call_command("process", *command, "move", "--output", str(file))
    assert not file.exists()

    administrator.user_permissions.add(
        Permission.objects.get(codename="reveal_secrets")
    )
    call_command("process", *command, "move", "--output", str(file))
    assert HUSH in file.read_text()


Post = Callable[..., Any]


def test_a_look_is_for_those_who_may_and_needs_a_reason(
    filled: Filled, operating: Client, operator: User
) -> None:
    place = f"/processes/{filled.waiting}/secrets/"

    page = operating.get(place)
    refused = operating.post(place, {"key": uuid4().hex, "reason": "a call"})

    assert page.status_code == 200
    assert "disabled" in page.content.decode()
    assert refused.status_code == 403
    assert not told(refused.content.decode())
    operator.user_permissions.add(Permission.objects.get(codename="reveal_secrets"))
    nothing = operating.post(place, {"key": uuid4().hex, "reason": ""})
    assert nothing.status_code == 400
    assert not told(nothing.content.decode())
    assert not OperatorAction.objects.filter(action="reveal", result="done").exists()


def test_a_look_is_one_answer_that_nobody_keeps_and_one_row_however_often_pressed(
    filled: Filled, admin: Client
) -> None:
    place, key = f"/processes/{filled.failed}/secrets/", uuid4().hex
    before = found_again(filled.failed).revision

    answers = [admin.post(place, {"key": key, "reason": "a call"}) for _ in range(2)]

    for answer in answers:
        text = unescape(answer.content.decode())
        assert answer.status_code == 200
        for value in (NUMBER, CODE, "秘密の言葉"):
            assert value in text
        assert "no-store" in answer["Cache-Control"]
    row = OperatorAction.objects.get(action="reveal")
    assert (row.reason, str(row.instance_id)) == ("a call", str(filled.failed))
    assert not told(json.dumps([row.before, row.after], ensure_ascii=False))
    assert found_again(filled.failed).revision == before
    for path in (place, f"{place}?since=0", f"/processes/{filled.failed}/", "/audit/"):
        again = admin.get(path, headers={"HX-Request": "true"})
        assert not told(again.content.decode())


def test_the_key_of_a_look_is_its_persons_and_is_over_soon(
    filled: Filled, administrator: User, operator: User
) -> None:
    key = uuid4()
    done = reveal(
        filled.waiting, request=ActionRequest(administrator, key, reason="a call")
    )
    with pytest.raises(OperationRefused, match="another action"):
        reveal(filled.waiting, request=ActionRequest(operator, key, reason="too"))
    operator.user_permissions.add(Permission.objects.get(codename="reveal_secrets"))
    other = User.objects.get(pk=operator.pk)
    with pytest.raises(OperationRefused, match="another action"):
        reveal(filled.waiting, request=ActionRequest(other, key, reason="too"))
    OperatorAction.objects.filter(pk=done.pk).update(at="2020-01-01T00:00Z")

    with pytest.raises(OperationRefused, match="over"):
        reveal(filled.waiting, request=ActionRequest(administrator, key, reason="x"))


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
def test_no_condition_tells_a_secret_by_what_it_finds(
    where: str, filled: Filled
) -> None:
    assert not page_of(Filters(where=where)).rows
    assert not page_of(Filters(where=where, definition="card-payment")).rows
    others = page_of(Filters(where=f"{where} or amount = 5")).rows
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


def stage(client: Client, pk: Any, **given: str) -> Any:
    return client.post(f"/processes/{pk}/repair/stage/", {"edit": "data", **given})


def test_a_repair_keeps_what_is_masked_and_shows_it_to_nobody(
    filled: Filled, admin: Client
) -> None:
    row = found_again(filled.waiting)
    before = row.data
    edited = {
        **before,
        "amount": 7,
        "pin": MASK,
        "code": MASK,
        "card": {"number": MASK, "holder": "B. Person"},
    }

    staged = stage(admin, filled.waiting, value=json.dumps(edited))
    page = admin.read(f"/processes/{filled.waiting}/repair/")

    assert staged.status_code == 302
    assert not told(page)
    assert "B. Person" in page
    sent = re.search(r'name="edits" value="([^"]*)"', page)
    assert sent is not None
    edits = unescape(sent[1])
    form = {"key": uuid4().hex, "reason": "typo", "revision": row.revision}
    done = admin.post(f"/processes/{filled.waiting}/repair/", {**form, "edits": edits})
    assert done.status_code == 302, done.content.decode()
    row.refresh_from_db()
    assert row.data == {
        **before,
        "amount": 7,
        "card": {"number": NUMBER, "holder": "B. Person"},
    }
    for path in ("/audit/", "/audit/export.jsonl", f"/processes/{filled.waiting}/"):
        assert not told(content(admin.get(path)))


def found_again(pk: UUID) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=pk)


def repair_of_a_result(filled: Filled, client: Client, action: str) -> Any:
    """Edits a result as its page shows it, with its secrets masked; the answer."""
    pk = filled.failed_enrolment
    process = found_again(pk)
    run = StepRun.objects.get(instance=pk, node="hash_password")
    value = {**masked(run.result, names_of(process.definition)), "person": "E-3"}
    edits = [{"edit": "result", "target": str(run.pk), "value": value}]
    form = {"key": uuid4().hex, "reason": "typo", "revision": process.revision}
    place = f"/processes/{pk}/{action}/"
    return client.post(place, {**form, "edits": json.dumps(edits)})


def test_the_audit_of_an_edited_result_has_no_secret(
    filled: Filled, admin: Client
) -> None:
    done = repair_of_a_result(filled, admin, "repair")

    assert done.status_code == 302
    row = OperatorAction.objects.get(action="repair")
    [[step, before, after]] = row.after["results"]
    assert (step, after) == ("hash_password", {**before, "person": "E-3"})
    assert told(json.dumps(after))  # it is stored as it is
    assert "E-3" in content(admin.get("/audit/export.jsonl"))
    for path in (
        "/audit/",
        "/audit/export.jsonl",
        "/audit/export.csv",
        f"/admin/orchestrator/operatoraction/{row.pk}/change/",
        f"/processes/{filled.failed_enrolment}/",
        f"/processes/{filled.failed_enrolment}/ledger.jsonl",
    ):
        assert not told(content(admin.get(path))), path


def test_nor_has_that_of_one_that_another_person_has_proposed(
    filled: Filled, admin: Client, client: Client, operator: User
) -> None:
    may = ("propose_repair_processinstance", "reveal_secrets")
    operator.user_permissions.add(*Permission.objects.filter(codename__in=may))
    client.force_login(operator)
    proposed = repair_of_a_result(filled, client, "propose_repair")
    assert proposed.status_code == 302, content(proposed)

    done = admin.post(
        f"/processes/{filled.failed_enrolment}/approve_repair/",
        {
            "key": uuid4().hex,
            "reason": "yes",
            "repair": str(Repair.objects.get().pk),
            "revision": found_again(filled.failed_enrolment).revision,
        },
    )

    assert done.status_code == 302
    assert OperatorAction.objects.get(action="approve_repair").after["results"]
    for path in ("/audit/", "/audit/export.jsonl", "/audit/export.csv"):
        assert not told(content(admin.get(path))), path


def test_what_an_operation_on_many_is_given_has_no_secret(
    filled: Filled, admin: Client, administrator: User
) -> None:
    about = {"definition": Enrolment.name, "status": "failed"}
    given = {"person": "E-4", "digest": DIGEST, "answers": [HUSH], "salts": []}
    operation = begun(administrator, about, 1, action="skip_failed", given=[given])
    in_admin = f"/admin/orchestrator/bulkoperation/{operation.pk}/change/"

    shown = content(admin.get(in_admin))

    assert "E-4" in shown
    assert MASK in shown
    operation.refresh_from_db()
    assert operation.given == [given]
    for path in (in_admin, f"/operations/{operation.pk}/", "/operations/", "/audit/"):
        assert not told(content(admin.get(path))), path


def test_nor_is_it_for_those_who_may_not_see_data(
    filled: Filled, client: Client, administrator: User
) -> None:
    about = {"definition": Enrolment.name, "status": "failed"}
    given = {"person": "E-4", "digest": DIGEST, "answers": [], "salts": []}
    operation = begun(administrator, about, 1, action="skip_failed", given=[given])
    reader = person("cleo", "view_processinstance", "view_bulkoperation")
    User.objects.filter(pk=reader.pk).update(is_staff=True)
    client.force_login(reader)

    shown = client.get(f"/admin/orchestrator/bulkoperation/{operation.pk}/change/")

    assert shown.status_code == 200
    assert "not yours to see" in content(shown)
    assert "E-4" not in content(shown)


@cases("guess", CODE, "another")
def test_a_repair_does_not_tell_whether_a_guess_is_right(
    guess: str, filled: Filled, operating: Client, operator: User
) -> None:
    names = ("repair_processinstance", "send_inboxevent")
    operator.user_permissions.add(*Permission.objects.filter(codename__in=names))
    row = found_again(filled.waiting)
    masked = {**row.data, "pin": MASK, "card": {"number": MASK, "holder": ""}}

    staged = stage(operating, row.pk, value=json.dumps({**masked, "code": guess}))
    event = {"edit": "event", "target": "CodeEntered"}
    value = json.dumps({"payment": "P-1", "answer": guess})
    added = operating.post(
        f"/processes/{row.pk}/repair/stage/", {**event, "value": value}
    )
    direct = operating.post(
        f"/processes/{row.pk}/repair/",
        {
            "key": uuid4().hex,
            "reason": "x",
            "revision": row.revision,
            "edits": json.dumps([{"edit": "data", "value": {**masked, "code": guess}}]),
        },
    )
    fields = {"field-payment": "P-1", "field-answer": guess, "event_id": "x"}
    preview = operating.post(
        "/events/send/?type=CodeEntered",
        {"key": uuid4().hex, "preview": "1", "process": str(row.pk), **fields},
    )

    for answer in (staged, added):
        assert answer.status_code == 400
        assert "is secret: leave it as it stands" in answer.content.decode()
    assert direct.status_code == 409
    assert not Repair.objects.exists()
    assert "has secret fields" in preview.content.decode()
    assert "Charging" not in preview.content.decode()


def test_notices_have_no_secret() -> None:
    for group in FailureGroup.objects.all():
        assert not told(group.message)
    for notice in Notice.objects.all():
        assert not told(json.dumps(notice.items, ensure_ascii=False))
        assert not told("".join(line(one) for one in notice.items))


def test_what_the_code_no_longer_knows_stays_masked(
    filled: Filled, admin: Client
) -> None:
    stored = Definition.objects.filter(name="card-payment")
    assert all((one.secrets or {})["names"] for one in stored)
    secret_names.forget()
    with without(CardPayment):
        found = crawl(
            admin,
            *(f"/processes/{pk}/" for pk in filled),
            *(f"/processes/{pk}/repair/" for pk in filled),
            f"/processes/{filled.waiting}/ledger.jsonl",
            "/events/?tab=all",
            "/events/",
            "/failures/",
            "/audit/",
            *admin_pages(),
            far=False,
        )

        wrong = {address: told(text) for address, text in found.items() if told(text)}

    assert not wrong


def without(definition: Any) -> Any:
    """The running code without a definition."""
    from contextlib import contextmanager

    from orchestrator import registry

    @contextmanager
    def gone() -> Iterator[None]:
        place = (definition.name, definition.version)
        del registry.definitions[place]
        handlers = registry.command_handlers.pop("ChargeCard")
        try:
            yield
        finally:
            registry.definitions[place] = definition
            registry.command_handlers["ChargeCard"] = handlers

    return gone()


def test_those_who_may_not_see_data_see_how_processes_stand(
    filled: Filled, viewing: Client, viewer: User
) -> None:
    viewer.user_permissions.remove(
        Permission.objects.get(codename="view_data_processinstance")
    )
    run = StepRun.objects.exclude(result=None).first()
    assert run is not None

    shown = viewing.read(f"/processes/{filled.waiting}/")
    events = viewing.read("/events/?tab=all")

    assert "What it is about is not yours to see." in shown
    for text in (shown, events):
        assert "A. Person" not in text
    for path in (
        f"/processes/{filled.waiting}/ledger.jsonl",
        f"/processes/{filled.waiting}/secrets/",
        f"/processes/{run.instance_id}/steps/{run.pk}/result.json",
    ):
        assert viewing.get(path).status_code == 403
    given = urlencode({"where": "amount = 5"})
    refused = viewing.read(f"/processes/?{given}")
    assert "not yours to see, nor to look for" in refused
    assert str(filled.waiting) not in refused
    begun = viewing.get(f"/operations/begin/?{given}")
    assert begun.status_code == 403


def test_a_permission_that_was_split_off_is_kept_by_those_who_had_the_whole() -> None:
    from django.contrib.auth.models import Group

    from orchestrator import permissions

    viewers = Group.objects.create(name="viewers")
    viewers.permissions.add(Permission.objects.get(codename="view_processinstance"))
    Permission.objects.get(codename="view_data_processinstance").delete()

    permissions.create("default")
    permissions.create("default")

    kept = viewers.permissions.values_list("codename", flat=True)
    assert set(kept) == {"view_processinstance", "view_data_processinstance"}
