"""The documentation is true: its examples run, its links lead somewhere, and nothing public is left unmentioned."""

import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import copy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.management import call_command, get_commands
from django.db import transaction
from django.test import Client, override_settings

import orchestrator
from monitoring import checks as console_checks
from orchestrator import definition, exceptions, registry, testing
from orchestrator.checking import checks, settings_checks
from orchestrator.configuration.conf import Conf
from orchestrator.engine import invariants
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import InvalidDefinition
from orchestrator.models import (
    CommandStatus,
    Delivery,
    Incident,
    ProcessInstance,
    Status,
    StepStatus,
    Verdict,
)
from orchestrator.testing import plugin
from tests.services.python import ran
from tests.services.words import words

ROOT = Path(__file__).resolve().parent.parent
MANUAL = ROOT / "docs"
PROMISES = sorted((ROOT / "tests").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(MANUAL.glob("*.md")),
    *PROMISES,
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CHECKS = (checks, settings_checks, console_checks)
PATTERN = re.compile(r"\S+[?\[]\S*|\S*[?\[]\S+")
"""A word that a shell looks for files by; zsh gives up if there is none."""
PATIENCE = 400.0  # seconds, on a machine that has much else to do

page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def manual() -> str:
    return "\n".join(path.read_text() for path in PAGES)


def mentioned(name: str) -> bool:
    return f"`{name}" in manual()


# Examples


@pytest.fixture
def registered() -> Iterator[None]:
    """Forget afterwards what an example has registered."""
    by_type: list[dict[Any, Any]] = [registry.command_handlers, registry.reactions]
    stores = [registry.definitions, *by_type]
    kept = [{name: copy(found) for name, found in s.items()} for s in stores]
    yield
    for store, before in zip(stores, kept, strict=True):
        store.clear()
        store.update(before)
    definitions.forget_definitions()


def run_blocks(page: Path) -> dict[str, Any]:
    """Run a page's Python blocks one after the other, as one module; return its names.

    A block whose first line is "# refused: …" must raise InvalidDefinition with these words.
    """
    module = ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module
    for block in blocks(page, "python"):
        refused = re.match(r"# refused: (.*)\n", block)
        code = compile(block, str(page), "exec")
        how: Any = nullcontext()
        if refused:
            how = pytest.raises(InvalidDefinition, match=re.escape(refused[1]))
        with how:
            exec(code, vars(module))  # noqa: S102  our own page
    return vars(module)


def test_the_language_page_runs(registered: None) -> None:
    run_blocks(MANUAL / "language.md")


@pytest.mark.django_db(transaction=True)
def test_the_claim_of_the_language_page_is_settled(registered: None) -> None:
    example = run_blocks(MANUAL / "language.md")
    definitions.forget_definitions()
    registry.register_definition(example["Claim"])

    process_id = example["file_claim"]("C-1", 900)
    example["assessed"](process_id, 1, True, "message-1")
    drain()

    claim = ProcessInstance.objects.get(pk=process_id)
    assert (claim.status, claim.step) == ("completed", "Settled")


@pytest.mark.django_db
def test_both_kinds_of_the_first_page_on_the_language_run(registered: None) -> None:
    example = run_blocks(MANUAL / "language.md")
    definitions.forget_definitions()
    trial, plan = example["Trial"], example["Plan"]
    approval, advice = example["Approval"], example["Advice"]
    registry.register_definition(trial)
    registry.register_definition(approval)

    customer = testing.started(trial, example["TrialStarted"]("C-1", plan.BASIC))
    customer.send(example["CardAdded"]("C-1", "4111"))
    invoice = testing.started(approval, approval.Input("acme-900"))
    invoice.answer("approve", advice.PAY)
    broken = testing.started(approval, approval.Input("torn-page"))
    broken.finish()

    assert customer.path == ["New", "OnTrial", "Ended"]
    assert invoice.result_of("transfer").startswith("900 sent under ")
    assert broken.result_of("file_unreadable").startswith("torn-page: ")


def test_the_first_page_on_the_language_is_short() -> None:
    first = (MANUAL / "language.md").read_text().partition("\n## Reference\n")[0]

    assert first.count("\n") <= 200


@pytest.mark.django_db
def test_the_tests_of_the_testing_page_pass(
    registered: None, request: pytest.FixtureRequest
) -> None:
    registry.command_handlers.clear()  # other tests' commands bear the same names
    example = run_blocks(MANUAL / "testing.md")
    registry.register_definition(example["Delivery"])
    registry.register_definition(example["Review"])

    pass_all(example, request)
    case = unittest.TestLoader().loadTestsFromTestCase(example["DeliveryTests"])
    outcome = unittest.TextTestRunner(stream=io.StringIO()).run(case)
    assert (outcome.testsRun, outcome.failures, outcome.errors) == (2, [], [])


@pytest.mark.django_db
def test_the_tests_for_those_who_come_from_other_tools_pass(
    registered: None, request: pytest.FixtureRequest
) -> None:
    example = run_blocks(MANUAL / "coming-from.md")
    for name in ("Purchase", "Newsletter"):
        registry.register_definition(example[name])

    pass_all(example, request)


def pass_all(example: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """Run the tests of a page; what one writes is undone before the next."""
    tests = [example[name] for name in example if name.startswith("test_")]
    assert tests
    for test in tests:
        before = transaction.savepoint()
        test(**{name: request.getfixturevalue(name) for name in parameters(test)})
        transaction.savepoint_rollback(before)


def parameters(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    """Lay the README's app out beside nothing but the project; return the environment to use it in."""
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "__init__.py").touch()
    (shop / "processes.py").write_text(blocks(ROOT / "README.md", "python")[0])
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PROCESSION_DATA_DIR": str(tmp_path / "data"),
        "PROCESSION_APPS": "shop",
        "DATABASE_URL": "",
        "REDIS_URL": "",
    }


def manage(environ: dict[str, str], *words: str) -> str:
    done = ran("manage.py", *words, environ=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def readme_commands() -> Iterator[list[str]]:
    """Give the words after `python3 manage.py` of the README's lines that send an event."""
    for block in blocks(ROOT / "README.md", "sh"):
        for line in block.splitlines():
            if "send_event" in line:
                yield shlex.split(line)[2:]


def deliveries(environ: dict[str, str]) -> dict[str, int]:
    rows = json.loads(manage(environ, "status", "--json"))["definitions"]
    return next(row["statuses"] for row in rows if row["name"] == "delivery")


@pytest.mark.timeout(2 * PATIENCE)
def test_the_readme_process_runs(newcomer: dict[str, str], tmp_path: Path) -> None:
    log = (tmp_path / "up.log").open("w")
    up = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", "0"],
        cwd=ROOT,
        env=newcomer,
        stdout=log,
        stderr=log,
    )
    try:
        until = time.monotonic() + PATIENCE
        while "sign in" not in Path(log.name).read_text():
            assert up.poll() is None, Path(log.name).read_text()
            assert time.monotonic() < until, Path(log.name).read_text()
            time.sleep(0.1)

        for words in readme_commands():
            manage(newcomer, *words)
        manage(newcomer, "shell", "-c", blocks(ROOT / "README.md", "python")[1])

        while deliveries(newcomer) != {"completed": 2}:
            assert time.monotonic() < until, manage(newcomer, "status")
        assert "0 violations" in manage(newcomer, "check_invariants")
    finally:
        up.terminate()
        up.wait(PATIENCE)
        log.close()


@pytest.mark.django_db(transaction=True)
def test_the_webhook_example_signs_what_the_site_accepts(client: Client) -> None:
    key = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
    body = json.dumps({"type": "ListedOnInternal", "data": {"order_id": "A-1"}})
    sign = run_blocks(MANUAL / "operating.md")["signed_headers"]
    given: Any = {"content_type": "application/json", "headers": sign(key, "m-1", body)}

    with override_settings(WEBHOOK_SOURCES={"bank": [key]}):
        answers = [client.post("/hooks/bank/", body, **given) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [202, 200]


def test_the_picture_and_table_of_the_order_listing_are_of_today(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def drawn(form: str) -> str:
        call_command("draw", "order-listing", format=form)
        return capsys.readouterr().out

    assert drawn("table") in (MANUAL / "lifecycle.md").read_text()
    stored = (MANUAL / "images" / "order-listing.svg").read_text()
    assert titles(drawn("svg")) == titles(stored)


def titles(svg: str) -> list[str]:
    return re.findall("<title>(.*?)</title>", svg)


# Completeness


def test_every_command_is_described() -> None:
    ours = ("orchestrator", "monitoring", "examples.order_listing")
    commands = [name for name, app in get_commands().items() if app in ours]

    assert {"up", "work", "draw"} <= set(commands)
    assert [name for name in commands if not mentioned(name)] == []


def test_every_setting_is_described_with_its_bounds() -> None:
    lines = (MANUAL / "settings.md").read_text().splitlines()

    for name, field in Conf.model_fields.items():
        [row] = [line for line in lines if line.startswith(f"| `PROCESSION_{name}`")]
        [form] = (one for one in field.metadata if hasattr(one, "must"))
        bounds = form.must.removeprefix("be ")
        assert row.endswith(f"| {bounds} | {field.default} |")


def test_every_system_check_is_described() -> None:
    sources = [Path(str(module.__file__)) for module in CHECKS]
    text = "".join(source.read_text() for source in sources)
    ids = set(re.findall(r"\b(?:orchestrator|monitoring)\.[EW]\d{3}", text))

    assert ids
    assert {name for name in ids if not mentioned(name)} == set()


@pytest.mark.parametrize(
    ("page", "names", "end"),
    [
        ("language.md", [*definition.__all__, *orchestrator.__all__], r"\b"),
        ("testing.md", testing.__all__, r"\("),
    ],
)
def test_what_is_public_is_shown_in_use(page: str, names: list[str], end: str) -> None:
    shown = "\n".join(blocks(MANUAL / page, "python"))

    assert [name for name in names if not re.search(rf"\b{name}{end}", shown)] == []


def test_every_fixture_and_everything_that_a_process_tells_is_described() -> None:
    page = (MANUAL / "testing.md").read_text()
    told = [name for name in vars(testing.Process) if not name.startswith("_")]

    assert [name for name in plugin.__all__ if f"| `{name}` |" not in page] == []
    assert [name for name in told if not re.search(rf"`(\w+\.)?{name}\b", page)] == []


def test_every_status_is_in_the_lifecycle() -> None:
    kinds: Any = (Status, StepStatus, Verdict, CommandStatus, Delivery)
    lifecycle = (MANUAL / "lifecycle.md").read_text()

    values = [value for kind in kinds for value in kind.values]
    assert [value for value in values if f"`{value}`" not in lifecycle] == []


def test_every_kind_of_incident_has_a_remedy() -> None:
    rows = (MANUAL / "operating.md").read_text()

    assert [kind for kind in Incident.Kind.values if f"| `{kind}` |" not in rows] == []


def test_every_invariant_is_described_under_its_number() -> None:
    rows = (MANUAL / "reliability.md").read_text()

    for check in invariants.CHECKS:
        number = (check.__doc__ or "").partition(":")[0]
        assert f"| {number} | `{check.__name__}` |" in rows


def test_every_decision_of_the_design_has_a_price() -> None:
    areas = re.split(r"^## ", (MANUAL / "design.md").read_text(), flags=re.MULTILINE)
    decisions = [text for area in areas for text in area.split("\n### ")[1:]]

    assert decisions
    assert [one.partition("\n")[0] for one in decisions if "*Price:*" not in one] == []


def test_every_error_that_senders_meet_is_named() -> None:
    for name in words(
        "InvalidDefinition InvalidMessage UnknownEventType UnknownDefinition ConflictingEvent Permanent"
    ):
        assert getattr(exceptions, name).__name__ in manual()


@pytest.mark.parametrize("page", PROMISES, ids=lambda path: path.name)
def test_every_test_of_a_promise_exists(page: Path) -> None:
    """A name that ends in "…" stands for all tests that begin so; one that ends in ".py" is a module."""
    modules = list((ROOT / "tests").rglob("test_*.py"))
    places = " ".join(str(path.relative_to(ROOT)) for path in modules)
    functions = " ".join(path.read_text() for path in modules)
    named = re.findall(r"`((?:tests/[\w/]+/)?test_\w+(?:\.py|…)?)`", page.read_text())

    assert named
    for name in named:
        if name.endswith(".py"):
            assert re.search(rf"(?:^|/| ){name}(?: |$)", places), name
        else:
            end = "" if name.endswith("…") else r"\b"
            assert re.search(rf"def {name.rstrip('…')}{end}", functions), name


# Form


@page
def test_no_shell_takes_a_word_of_an_example_for_names_of_files(page: Path) -> None:
    unquoted = [
        re.sub(r"'[^']*'|\"[^\"]*\"|\$\(.*?\)", "", block)
        for block in blocks(page, "sh")
    ]
    assert [word for block in unquoted for word in PATTERN.findall(block)] == []


@page
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert not heading or heading in headings(target), link


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@page
def test_no_page_names_a_place_on_somebodys_machine(page: Path) -> None:
    place = r"(?<!\w)(?:/work|/home|/root|/Users|/tmp)\b"

    assert not re.search(place, page.read_text())


def test_every_page_can_be_reached_from_the_readme() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))

    assert {f"docs/{path.name}" for path in MANUAL.glob("*.md")} <= linked
