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


class Mistake(NamedTuple):
    """One line of the app, and what somebody wrote instead."""

    module: str
    right: str
    wrong: str
    code: str


SHIP = "@handles(ShipOrder)\ndef ship(command: "
THANK = "@reacts_to(OrderPaid)\ndef thank(event: OrderPaid) -> "

MISTAKES = {
    "a step by its text": Mistake(
        "processes", ".go_to(Step.PAID)", '.go_to("Paid")', "arg-type"
    ),
    "a command in the place of an event": Mistake(
        "processes", "ignore(OrderPlaced)", "ignore(ShipOrder)", "arg-type"
    ),
    "an event in the place of a command": Mistake(
        "processes", ".issue(ShipOrder)", ".issue(OrderPaid)", "arg-type"
    ),
    "a deadline as a number": Mistake(
        "processes", "after(timedelta(hours=1))", "after(3600)", "arg-type"
    ),
    "a policy that does not exist": Mistake(
        "processes", "retries=2", "retires=2", "call-arg"
    ),
    "choices that are no enumeration": Mistake(
        "processes", '"decision", Answer', '"decision", ["yes", "no"]', "arg-type"
    ),
    "a join's condition that does not exist": Mistake(
        "processes", 'wait_for="all"', 'wait_for="most"', "arg-type"
    ),
    "an error that is none": Mistake(
        "processes", "error=ValueError", 'error="ValueError"', "arg-type"
    ),
    "an outcome's argument": Mistake(
        "processes", "Retry(after=", "Retry(later=", "call-arg"
    ),
    "what a context does not have": Mistake(
        "processes", "context.attempt", "context.attempts", "attr-defined"
    ),
    "the handler of another command": Mistake(
        "handlers",
        f"{SHIP}ShipOrder)",
        f"{SHIP}RequestPayment)",
        "arg-type",
    ),
    "what no handler returns": Mistake(
        "handlers",
        f"{THANK}None:",
        f"{THANK}type[int]:\n    return int",
        "type-var",
    ),
    "the handler of an event": Mistake(
        "handlers", "@handles(ShipOrder)", "@handles(OrderPaid)", "type-var"
    ),
    "a handler called with another command": Mistake(
        "handlers",
        "return ship(ShipOrder(order_id))",
        "return ship(OrderPaid(order_id))",
        "arg-type",
    ),
    "a start by a command": Mistake(
        "handlers",
        "start_process(Order, OrderPlaced(order_id, amount))",
        "start_process(Order, RequestPayment(order_id, amount))",
        "arg-type",
    ),
    "a field of another type": Mistake(
        "handlers",
        "OrderPlaced(order_id, amount)",
        "OrderPlaced(order_id, '3')",
        "arg-type",
    ),
    "an event without its id": Mistake(
        "handlers", ', id=f"paid {order_id}"', "", "call-arg"
    ),
    "what a receipt does not have": Mistake(
        "handlers", "return receipt.process_id", "return receipt.pid", "attr-defined"
    ),
    "a receipt in the place of an id": Mistake(
        "handlers", "id=name).process_id", "id=name)", "return-value"
    ),
    "a name that is not public": Mistake(
        "handlers",
        "from orchestrator import (\n    Answer,",
        "from orchestrator import (\n    Answers as Answer,",
        "attr-defined",
    ),
    "a name that is not public in tests": Mistake(
        "tests",
        "testing import (\n    Process,",
        "testing import (\n    Processes as Process,",
        "attr-defined",
    ),
    "a process begun by its data": Mistake(
        "tests", 'OrderPlaced("A-1", 3)', 'Order.Data("A-1", 3)', "arg-type"
    ),
    "a unit of time that does not exist": Mistake(
        "tests", "pass_time(hours=2)", "pass_time(weeks=2)", "call-arg"
    ),
    "a command sent": Mistake(
        "tests", "order.send(OrderPaid(", "order.send(ShipOrder(", "arg-type"
    ),
    "what a process does not have": Mistake(
        "tests", "order.path", "order.paths", "attr-defined"
    ),
    "a handle compared with a number": Mistake(
        "tests",
        "processes(review) == 0",
        'processes(review) == "0"',
        "comparison-overlap",
    ),
    "an error's class with its count as text": Mistake(
        "tests", "times=2", 'times="2"', "arg-type"
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[str, ...]]]:
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
    errors: dict[str, set[tuple[str, ...]]] = {}
    for package, module, line, code in ERROR.findall(run.stdout):
        errors.setdefault(package, set()).add((module, line, code))
    return errors


def test_an_app_without_mistakes_has_none(
    found: dict[str, set[tuple[str, ...]]],
) -> None:
    assert found.get("faultless", set()) == set()


def test_the_app_could_run() -> None:
    assert processes.Review.plan().ends() == ["close", "blocks", "give_up"]
    assert processes.Order.starting_events() == {"OrderPlaced"}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found_where_it_is(
    found: dict[str, set[tuple[str, ...]]], what: str
) -> None:
    mistake = MISTAKES[what]
    before, _, _ = (APP / f"{mistake.module}.py").read_text().partition(mistake.right)
    line = before.count("\n") + 1

    number = list(MISTAKES).index(what)
    places = found.get(f"mistake_{number}", set())
    assert (mistake.module, str(line), mistake.code) in places
