"""`manage.py check_upgrade`: what a change of the code does to live processes and waiting messages, told beforehand."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from django.core.management import call_command

from orchestrator import registry, send_event, start_process
from orchestrator.checking.upgrades import upgrade_findings
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.definition.messages import renamed
from orchestrator.models import InboxEvent, IssuedCommand
from orchestrator.testing import registered, run
from tests.apps.upgraded import loans

pytestmark = pytest.mark.django_db

TEXT = Path(loans.__file__).read_text()

ASKED = "class Asked(Event):\n    loan: str\n    euros: int\n"
DATA = "class Data:\n        loan: str\n        euros: int\n"
PAID = "class Paid(Event):\n    loan: str\n    at: str\n"
PAY_OUT = "class PayOut(Command):\n    loan: str\n    euros: int\n"
REPORT = "class Report:\n    points: int\n"
INPUT = "class Input:\n        loan: str\n"
SIGNED = "when(Signed).issue(PayOut).go_to(Step.SIGNED),\n"
OVERDUE = "            after(timedelta(days=1)).escalate(),\n"
OTHER = """class Other(Loan):
    name = "check"
    transitions = Loan.transitions


"""
LETTER = 'then(ask, wait(Rated, "answer", gives="answer"), tell)'

Change = dict[str, str]
"""Texts of the module, and their replacements."""

MATTER: dict[str, tuple[Change, str]] = {
    "a definition is gone": (
        {'name = "loan"': 'name = "credit"'},
        "loan is gone. Live processes: 3",
    ),
    "a workflow is gone": (
        {'name = "check"': 'name = "audit"'},
        "check is gone. Live processes: 1",
    ),
    "a version is gone": (
        {'name = "loan"\n': 'name = "loan"\n    version = 2\n'},
        "loan version 1 is gone. Live processes: 3",
    ),
    "another kind has its name": (
        {
            'name = "check"\n': 'name = "checks"\n',
            "class Rated(": f"{OTHER}class Rated(",
        },
        "check version 1 was a workflow and is none now",
    ),
    "a step is gone": (
        {'"Asked"': '"Open"'},
        "the step Asked is gone. Live processes in it: 2",
    ),
    "a row is new": (
        {OVERDUE: f"{OVERDUE}            when(Paid).go_to(Step.PAID),\n"},
        "has changed under its version: row Asked -> Paid (Paid) is new",
    ),
    "a row has a guard": (
        {SIGNED: f'when(Signed, by="me").go_to(Step.PAID),\n            {SIGNED}'},
        "loan version 1 has changed",
    ),
    "a row issues nothing": (
        {SIGNED: SIGNED.replace(".issue(PayOut)", "")},
        "loan versi",
    ),
    "a deadline is gone": (
        {OVERDUE: ""},
        "a deadline of Asked is gone. Processes that wait for it: 2",
    ),
    "a deadline is later": (
        {"after(timedelta(days=1))": "after(timedelta(days=2))"},
        "the deadlines of Asked were after 1 day and are after 2 days now",
    ),
    "data has a field more": (
        {ASKED: f"{ASKED}    note: str\n", DATA: f"{DATA}        note: str\n"},
        "loan version 1: Data: 3 of the newest 3 cannot be read: note: Field required",
    ),
    "data has a field less": (
        {
            DATA: DATA.replace("        euros: int\n", ""),
            PAY_OUT: PAY_OUT.replace("    euros: int\n", ""),
        },
        "loan version 1: Data: 3 of the newest 3 cannot be read: euros",
    ),
    "data has another type": (
        {"euros: int": "euros: str"},
        "loan version 1: Data: 3 of",
    ),
    "an event has a field more": (
        {PAID: f"{PAID}    iban: str\n"},
        "events Paid: 1 of the newest 1 cannot be read: iban: Field required",
    ),
    "an event has a field less": ({PAID: PAID[:-12]}, "cannot be read: at: Unexpected"),
    "an event has another type": (
        {PAID: f"{PAID[:-4]}int\n"},
        "cannot be read: at: Input",
    ),
    "an event has another name": (
        {"Paid(Event)": "PaidOut(Event)", "when(Paid)": "when(PaidOut)"},
        "events Paid: the type is gone. Waiting: 1",
    ),
    "a command has a field more": (
        {PAY_OUT: f"{PAY_OUT}    by: str\n"},
        "commands PayOut: 1 of the newest 1 cannot be read: by: Field required",
    ),
    "a command has a field less": (
        {PAY_OUT: PAY_OUT.replace("    euros: int\n", "")},
        "commands PayOut: 1 of the newest 1 cannot be read: euros",
    ),
    "a command has another name": (
        {"PayOut": "Transfer"},
        "commands PayOut: the handler is gone. Waiting: 1",
    ),
    "the key is another one": (
        {
            ASKED: f'{ASKED}    bank: str = "b"\n',
            DATA: f'{DATA}        bank: str = ""\n',
            'correlation = "loan"\n    tra': 'correlation = "bank"\n    tra',
        },
        "the correlation key is another one. Live processes with the former key: 3",
    ),
    "a workflow's step is gone": (
        {'"rating", gives': '"points", gives'},
        "the step rating is gone. Live processes in it: 1",
    ),
    "a wait is for another event": (
        {
            'wait(Rated, "rating"': 'wait(Paid, "rating"',
            "rating: Rated": "rating: Paid",
            "rating.points": "1",
        },
        "check version 1 has changed under its version: step rating is",
    ),
    "a wait has another deadline": (
        {"DAY = timedelta(days=1)": "DAY = timedelta(days=3)"},
        "check version 1 has changed",
    ),
    "a result has a field more": (
        {REPORT: f"{REPORT}    by: str\n", "Report(1)": 'Report(1, "me")'},
        "results of look: 1 of the newest 1 cannot be read: by: Field required",
    ),
    "a result has another type": (
        {REPORT: f"{REPORT[:-4]}str\n"},
        "cannot be read: points",
    ),
    "an input has a field more": (
        {INPUT: f"{INPUT}        bank: str\n"},
        "check version 1: Input: 1 of the newest 1 cannot be read: bank",
    ),
    "an input has another type": (
        {INPUT: f"{INPUT[:-4]}int\n", "look(loan: str)": "look(loan: int)"},
        "check version 1: Input: 1 of the newest 1 cannot be read: loan",
    ),
    "a graph is made otherwise": (
        {LETTER: 'then(tell, wait(Rated, "answer", gives="answer"), ask)'},
        "letters version 1: another graph is made from the input of 1 of the newest 1",
    ),
}
"""Each change by its name, with a part of the finding that it must lead to."""

HARMLESS: dict[str, Change] = {
    "a docstring": {"Loans and their checks": "Loans"},
    "an event has a field more with a default": {PAID: f'{PAID}    iban: str = ""\n'},
    "a result has a field more with a default": {REPORT: f'{REPORT}    by: str = ""\n'},
    "an event has another name and its alias": {
        "Paid(Event)": 'PaidOut(Event, aliases="Paid")',
        "when(Paid)": "when(PaidOut)",
    },
    "a function does something else": {"return Report(1)": "return Report(2)"},
    "a step has other retries": {"step(rate)": "step(rate, retries=7)"},
}


def changed(change: Change) -> ModuleType:
    """Return the module with other texts in the place of some."""
    text = TEXT
    for old, new in change.items():
        assert old in text, old
        text = text.replace(old, new)
    module = ModuleType("tests.apps.upgraded.changed")
    sys.modules[module.__name__] = module
    exec(compile(text, "changed.py", "exec"), vars(module))  # noqa: S102  # the test's own text
    return module


@contextmanager
def deployed(module: ModuleType) -> Iterator[None]:
    """Run the code of a module alone."""
    kept, names = dict(registry.command_handlers), dict(renamed)
    with registered():
        registry.definitions.clear()
        registry.reactions, reactions = defaultdict(list), registry.reactions
        for value in vars(module).values():
            if isinstance(value, type) and registry.is_definition(value):
                registry.register_definition(value)
        for command in ("PayOut", "Transfer"):
            registry.command_handlers.pop(command, None)
            if message := vars(module).get(command):
                handler = Handler(
                    lambda command: None, message, True, 4, 300, "default"
                )
                registry.command_handlers[command] = [handler]
        try:
            yield
        finally:
            registry.reactions = reactions
            registry.command_handlers.clear()
            registry.command_handlers.update(kept)
            renamed.clear()
            renamed.update(names)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with deployed(loans):
        yield


@pytest.fixture
def stored() -> None:
    """Store a loan in each step, of which one waits early and one commands, and a check and a letter that wait."""
    for name in ("asked", "signed", "early"):
        asked = loans.Asked(name, 5)
        start_process(loans.Loan, asked, id=name, source="shop")
    start_process(loans.Check, loans.Check.Input("checked"), id="c", source="shop")
    start_process(loans.Letters, loans.Letters.Terms("told"), id="l", source="shop")
    run()
    signed = loans.Signed("signed", "me")
    send_event(signed, id="signature", source="shop")
    send_event(loans.Paid("early", "noon"), id="payment", source="shop")
    run()
    IssuedCommand.objects.update(status="ready", wake_at="2100-01-01T00:00:00Z")
    assert InboxEvent.objects.get(type="Paid").verdict == "parked"


def found(change: Change) -> list[str]:
    with deployed(changed(change)):
        return [one.what for one in upgrade_findings()]


@pytest.mark.usefixtures("stored")
def test_each_change_that_matters_is_told_and_no_other() -> None:
    missed, false = {}, {}
    for name, (change, part) in MATTER.items():
        told = found(change)
        if not any(part in what for what in told):
            missed[name] = told
    for name, change in HARMLESS.items():
        if told := found(change):
            false[name] = told
    assert (missed, false) == ({}, {})


@pytest.mark.usefixtures("stored")
def test_the_command_says_what_to_do_and_ends_with_an_exit_code() -> None:
    out = StringIO()
    call_command("check_upgrade", stdout=out)
    assert out.getvalue() == "Nothing found.\n"
    with deployed(changed({PAID: f"{PAID}    iban: str\n"})):
        with pytest.raises(SystemExit) as ended:
            call_command("check_upgrade", stdout=out)
        assert ended.value.code == 1
        assert "convert the older form with from_older" in out.getvalue()
        told = StringIO()
        with pytest.raises(SystemExit):
            call_command("check_upgrade", "--json", stdout=told)
        assert [sorted(one) for one in json.loads(told.getvalue())] == [
            ["remedy", "what"]
        ]
