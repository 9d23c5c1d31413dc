"""What users' type checkers make of the public names: an app without mistakes has none, and a mistake is found."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

from tests.data.typed_app import processes

ROOT: Path = settings.BASE_DIR
APP = ROOT / "tests" / "data" / "typed_app"
ERROR = re.compile(r"^(\w+)/(\w+)\.py:(\d+): error: .*\[([a-z-]+)\]$", re.MULTILINE)

Found = dict[str, set[tuple[str, ...]]]
"""The places of mistakes, by the copy of the app."""


class Mistake(NamedTuple):
    """One line of the app, and what somebody wrote instead."""

    module: str
    code: str
    right: str
    wrong: str


SHIP = "@handles(ShipOrder)\ndef ship(command: "
THANK = "@reacts_to(OrderPaid)\ndef thank(event: OrderPaid) -> "
START = "start_process(Order, {}(order_id, amount))"
PUBLIC, FOR_TESTS = "orchestrator import (\n    ", "testing import (\n    "

MISTAKES = {
    what: Mistake(module, code, right, wrong)
    for (module, code), some in {
        ("processes", "arg-type"): [
            ("a step by its text", ".go_to(Step.PAID)", '.go_to("Paid")'),
            ("a command for an event", "ignore(OrderPlaced)", "ignore(ShipOrder)"),
            ("an event for a command", ".issue(ShipOrder)", ".issue(OrderPaid)"),
            ("a deadline as a number", "after(timedelta(hours=1))", "after(3600)"),
            ("choices of no enumeration", '"decision", Answer', '"decision", ["yes"]'),
            ("a join's condition of no kind", 'wait_for="all"', 'wait_for="most"'),
            ("an error that is none", "error=ValueError", 'error="ValueError"'),
        ],
        ("processes", "call-arg"): [
            ("a policy that does not exist", "retries=2", "retires=2"),
            ("an outcome's argument", "Retry(after=", "Retry(later="),
        ],
        ("processes", "attr-defined"): [
            ("what a context does not have", "context.attempt", "context.attempts")
        ],
        ("handlers", "arg-type"): [
            ("another command", f"{SHIP}ShipOrder)", f"{SHIP}RequestPayment)"),
            ("a call with another", "ship(ShipOrder(order", "ship(OrderPaid(order"),
            ("a start", START.format("OrderPlaced"), START.format("RequestPayment")),
            ("a field", "OrderPlaced(order_id, amount)", "OrderPlaced(order_id, '3')"),
        ],
        ("handlers", "type-var"): [
            ("returned by none", f"{THANK}None:", f"{THANK}type[int]:\n    return int"),
            ("the handler of an event", "@handles(ShipOrder)", "@handles(OrderPaid)"),
        ],
        ("handlers", "call-arg"): [
            ("an event without its id", ', id=f"paid {order_id}"', "")
        ],
        ("handlers", "attr-defined"): [
            ("of a receipt", "return receipt.process_id", "return receipt.pid"),
            ("not public", f"{PUBLIC}Answer,", f"{PUBLIC}Answers as Answer,"),
        ],
        ("handlers", "return-value"): [
            ("a receipt in the place of an id", "id=name).process_id", "id=name)")
        ],
        ("tests", "attr-defined"): [
            (
                "not for tests",
                f"{FOR_TESTS}Process,",
                f"{FOR_TESTS}Processes as Process,",
            ),
            ("what a process does not have", "order.path", "order.paths"),
        ],
        ("tests", "arg-type"): [
            ("begun by data", 'OrderPlaced("A-1", 3)', 'Order.Data("A-1", 3)'),
            ("a command sent", "order.send(OrderPaid(", "order.send(ShipOrder("),
            ("a count as text", "times=2", 'times="2"'),
        ],
        ("tests", "call-arg"): [
            ("a unit of time", "pass_time(hours=2)", "pass_time(weeks=2)")
        ],
        ("tests", "comparison-overlap"): [
            ("compared", "processes(review) == 0", 'processes(review) == "0"')
        ],
    }.items()
    for what, right, wrong in some
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Have mypy read the app and a copy of it for each mistake, in one run; return what it finds in each."""
    folder = tmp_path_factory.mktemp("users")
    shutil.copytree(APP, folder / "faultless")
    for number, mistake in enumerate(MISTAKES.values()):
        copy = shutil.copytree(APP, folder / f"mistake_{number}")
        source = copy / f"{mistake.module}.py"
        text = source.read_text()
        assert text.count(mistake.right) == 1, mistake
        source.write_text(text.replace(mistake.right, mistake.wrong))
    (folder / "mypy.ini").write_text("[mypy]\n")  # of a user who has no plugin of ours
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-pretty"),
            *("--follow-imports", "silent", "--show-error-codes"),
            *("--cache-dir", str(ROOT / ".mypy_cache" / "of_users"), "."),
        ],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    errors: Found = {}
    for package, module, line, code in ERROR.findall(run.stdout):
        errors.setdefault(package, set()).add((module, line, code))
    return errors


def test_an_app_without_mistakes_has_none(found: Found) -> None:
    assert found.get("faultless", set()) == set()


def test_the_app_could_run() -> None:
    assert processes.Review.plan().ends() == ["close", "blocks", "give_up"]
    assert processes.Order.starting_events() == {"OrderPlaced"}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found_where_it_is(found: Found, what: str) -> None:
    mistake = MISTAKES[what]
    before, _, _ = (APP / f"{mistake.module}.py").read_text().partition(mistake.right)
    line = before.count("\n") + 1

    number = list(MISTAKES).index(what)
    places = found.get(f"mistake_{number}", set())
    assert (mistake.module, str(line), mistake.code) in places
