"""What a newcomer is likely to write wrongly has an answer that says what to write instead."""

import os
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import django
import pytest
from django.conf import settings

from orchestrator.configuration.conf import SettingRefused
from orchestrator.configuration.variables import misspelling_lines, read_variables
from orchestrator.definition import (
    Command,
    ProcessManager,
    Workflow,
    during,
    start,
    when,
)
from orchestrator.definition.declarations.handlers import CommandContext, Handler
from orchestrator.exceptions import InvalidDefinition
from orchestrator.missing_tables import MIGRATE
from orchestrator.serving import CannotStart, child_processes
from orchestrator.serving.child_process import ChildProcess
from orchestrator.serving.child_processes import ChildProcesses
from tests.services.cases import cases, words
from tests.services.loaded import ForkedProcess
from tests.services.patience import A_MINUTE
from tests.services.python import ran
from tests.unit.shop import START, Data, Sent, Step, define, refusal


def pack() -> None: ...


FLOW, GROUPS = (start(pack),), [during(Step.NEW, START)]
SHOP = {"Step": Step, "Data": Data}


@cases(
    "kind, right, name, value, meant",
    *(
        (ProcessManager, SHOP, name, GROUPS, "transitions")
        for name in ("transition", "transitons", "Transitions")
    ),
    (Workflow, {}, "flows", FLOW, "flow"),
    (Workflow, {"flow": FLOW}, "input", Data, "Input"),
    *(
        (ProcessManager, {**SHOP, "transitions": GROUPS}, *misspelt)
        for misspelt in (
            ("finals", [Step.DONE], "final"),
            ("corelation", "order_id", "correlation"),
            ("verson", 2, "version"),
            ("otherwize", None, "otherwise"),
        )
    ),
)
def test_an_attribute_misspelt(
    kind: type[Any], right: dict[str, Any], name: str, value: Any, meant: str
) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        type("Shop", (kind,), {"__module__": __name__, **right, name: value})

    told = f"Shop: it has {name}, which means nothing: write {meant}"
    assert str(refused.value) == told


def test_an_attribute_beside_the_one_it_resembles_is_the_class_s_own() -> None:
    define(version=2, versions=(1, 2))


def test_a_class_that_only_shares_attributes_is_none() -> None:
    type("Shared", (ProcessManager,), {"Step": Step, "Data": Data, "patience": None})


def test_a_comma_forgotten() -> None:
    told = str(refusal(transitions=during(Step.NEW, START)))

    assert told.startswith("Shop: transitions must be several during(...) groups")
    assert "comma" in told


def test_a_row_outside_of_during() -> None:
    told = str(refusal(transitions=(START,)))

    assert told == (
        "Shop: the row 'Ordered -> Unpaid' stands in no step: write it as during(step, ...)"
    )


@cases(
    "attributes, text, hint",
    *(
        ({"packing": [when(Sent).go_to(text)]}, text, hint)  # type: ignore[arg-type]  # the mistake
        for text, hint in (
            ("Done", ": write Step.DONE"),
            ("PACKING", ": write Step.PACKING"),
            ("Pakcing", ": write Step.PACKING"),
            ("Gone", ""),
        )
    ),
    ({"transitions": [during("New", START)]}, "New", ": write Step.NEW"),  # type: ignore[arg-type]  # the mistake
)
def test_a_step_as_a_text(attributes: dict[str, Any], text: str, hint: str) -> None:
    told = str(refusal(**attributes))

    assert told.endswith(f"{text!r} is not one of its steps{hint}")


def test_the_last_go_to_forgotten() -> None:
    stays = when(Sent).set(gift=True)

    assert str(refusal(packing=[stays])) == (
        "Shop: New is a dead end: no final step can be reached from it; "
        "none of the rows of Packing says .go_to(...)"
    )


def test_a_step_without_rows() -> None:
    told = str(refusal(packing=[]))

    assert "Packing has no rows, and is not in final = [...]" in told


def carelessly(command: Command) -> Any:
    """Gives back what its test says."""
    return GIVEN[0]


GIVEN: list[Any] = [None]


@cases("given", "sent", {"sent": 1}, True, 0, {Sent}, ["sent"], b"")
def test_a_handler_that_returns_anything_but_events(given: Any) -> None:
    GIVEN[0] = given
    handler = Handler(carelessly, Command, False, 4, 300, "default")

    with pytest.raises(TypeError) as refused:
        handler(Command(), CommandContext(None, uuid4(), 1, ""))

    told = f"{__name__}.carelessly: a handler returns events, not "
    assert str(refused.value).startswith(told)
    if given == "sent":
        answer = "'sent'; how it went is said by Answer('sent')"
        assert str(refused.value) == f"{told}{answer}"


ORDER = '{"order_id": "A-1", "destination": "internal"}'
OURS = "manage.py"
ANOTHERS = str(Path(django.__file__).with_name("__main__.py"))
"""It does no more than a manage.py that is not ours."""


def environ(folder: Path, **variables: str) -> dict[str, str]:
    """Return the environment of the bundled project with data of its own."""
    own = {
        "DJANGO_SETTINGS_MODULE": "orchestrator.settings",
        "DATABASE_URL": "",
        "PROCESSION_DATA_DIR": str(folder),
        "PROCESSION_DEMO": "",
    }
    return {**os.environ, **own, **variables}


def run(words: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Run Python in the bundled project; return exit code and errors."""
    done = ran(*words, environ=variables)
    return done.returncode, done.stderr


NO_TABLE = """
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from monitoring.views.home import index
request = RequestFactory().get("/")
request.user = User(username="anna", is_superuser=True)
home = index(request)
print(home.status_code, home.content.decode())
browser = Client(raise_request_exception=False, SERVER_NAME="localhost")
signed_in = browser.post("/sign-in/", {"username": "a", "password": "b"})
print(signed_in.status_code, signed_in.content.decode())
"""


def test_no_table_yet(tmp_path: Path) -> None:
    variables, log = environ(tmp_path, PROCESSION_DEMO="1"), tmp_path / "log"

    def ending(*words: str) -> tuple[str, list[str]]:
        """Return how a command ended, and what it said."""
        log.unlink(missing_ok=True)
        command = [sys.executable, *words]
        child = ForkedProcess("command", command, variables, settings.BASE_DIR, log)
        child.start()
        assert child.process
        child.process.wait(A_MINUTE)
        return child.ending, log.read_text().splitlines()

    for command in (
        [OURS, "status"],
        [OURS, "createsuperuser", "--noinput", "--username=a", "--email=a@b.org"],
        [ANOTHERS, "status"],
        [ANOTHERS, "check_invariants", "--json"],
        [ANOTHERS, "check_upgrade"],
        [ANOTHERS, "work"],
        [ANOTHERS, "send_event", "OrderCreated", ORDER],
        [ANOTHERS, "prune", "--keep", "1"],
    ):
        how, said = ending(*command)
        last = said[-1].removeprefix("CommandError: ")
        assert (how, last) == ("exit code 1", MIGRATE), command
        assert not any("Traceback" in line for line in said), command
    how, said = ending(OURS, "shell", "-v", "0", "--no-startup", "-c", NO_TABLE)
    pages = [line for line in said if line.startswith("503 ")]
    assert (how, pages) == ("exit code 0", [f"503 {MIGRATE}"] * 2)


def test_no_table_yet_and_no_definition_either(tmp_path: Path) -> None:
    ended = run(["manage.py", "work"], environ(tmp_path))

    assert ended == (1, f"CommandError: {MIGRATE}\n")


def unknown(folder: Path, apps: str, **files: str) -> str:
    """Return what is said of an event that nothing knows, where these files of packages can be imported."""
    for name, text in files.items():
        *packages, module = name.split("_")
        place = folder / "code"
        for package in packages:
            place /= package
            place.mkdir(parents=True, exist_ok=True)
            (place / "__init__.py").touch()
        (place / f"{module}.py").write_text(text)
    path = str(folder / "code")
    variables = environ(folder / "data", PYTHONPATH=path, PROCESSION_APPS=apps)
    code, said = run(["manage.py", "send_event", "Sold"], variables)

    assert code == 1
    return said.removesuffix("\n")


NOBODY_KNOWS = "CommandError: not sent: no process manager and no event handler knows the event type 'Sold'; "
THE_REST = (
    "PROCESSION_APPS names the apps, or INSTALLED_APPS where the settings are your own"
)
CONFIG = """
from django.apps import AppConfig
class ShopConfig(AppConfig):
    name = "market.shop"
"""


def test_no_app_named(tmp_path: Path) -> None:
    assert unknown(tmp_path, "") == f"{NOBODY_KNOWS}looked into: no app; {THE_REST}"


def test_apps_in_which_nothing_is_found(tmp_path: Path) -> None:
    """Two of them within a package, one of which is named by its configuration."""
    told = unknown(
        tmp_path,
        "kiosk,till,shop.desk,market.shop.apps.ShopConfig",
        kiosk_process="",
        till_processes="",
        shop_desk_views="",
        market_shop_apps=CONFIG,
    )

    lacks = "it has no processes.py and no handlers.py"
    nothing = "nothing is declared in its processes.py"
    assert told == (
        f"{NOBODY_KNOWS}looked into: kiosk ({lacks}), till ({nothing}), shop.desk ({lacks}), market.shop ({lacks}); "
        f"{THE_REST}"
    )


@cases("name", *words("PROCESSION_APP PROCESION_APPS procession_apps PROCESSION_APSS"))
def test_a_variable_misspelt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "kiosk")

    with pytest.raises(SettingRefused) as refused:
        read_variables()

    assert str(refused.value) == f"{name} means nothing: write PROCESSION_APPS."


def test_a_variable_of_somebody_else() -> None:
    others = words("""
        PROCESSION_TESTS PROCESSION_KIOSK_NAME PROCESSOR_APPS
        PROCESSION_WEBHOOK_RATE_HTTPS
    """)
    assert not list(misspelling_lines(dict.fromkeys(others, "kiosk")))


@pytest.mark.parametrize("name", ["kisok", "kiosk.shopp", "kiosk.shop.till"])
def test_an_app_that_does_not_exist(tmp_path: Path, name: str) -> None:
    told = unknown(tmp_path, name, kiosk_views="", kiosk_shop_views="")

    assert told == f"PROCESSION_APPS must list apps that can be imported, not {name!r}."


MISTAKEN = """\
from orchestrator.definition import Workflow, start

def pack() -> None: ...

class Kiosk(Workflow):
    flows = [start(pack)]
"""


def test_an_invalid_definition_is_told_with_its_place(tmp_path: Path) -> None:
    told = unknown(tmp_path, "kiosk", kiosk_processes=MISTAKEN)

    file = tmp_path / "code" / "kiosk" / "processes.py"
    reason = "Kiosk: it has flows, which means nothing: write flow"
    assert told == f"{file}, line 5: {reason}"


def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    told = unknown(tmp_path, "kiosk", kiosk_processes="import tilll")

    *_, place, line, error = told.splitlines()
    assert place.endswith('kiosk/processes.py", line 1, in <module>')
    assert line.strip() == "import tilll"
    assert error == "ModuleNotFoundError: No module named 'tilll'"


def child_that(does: str, tmp_path: Path) -> ChildProcess:
    """Return a child that runs this program."""
    command = [sys.executable, "-c", does]
    return ChildProcess("web", command, {}, tmp_path, tmp_path / "log")


HANGS = "import time; print({!r}, flush=True); time.sleep(600)"


@pytest.mark.parametrize(
    ("does", "patience", "how"),
    [
        ("print('one'); print('no room'); exit(3)", 300, "ended with exit code 3"),
        (HANGS.format("one\nno room"), 0, "does not answer"),
    ],
)
def test_what_does_not_come_up_shows_the_end_of_its_log(
    does: str, patience: float, how: str, tmp_path: Path
) -> None:
    child = child_that(does, tmp_path)
    children = ChildProcesses(lambda line: None, lambda: False)

    def has_not() -> bool:  # though it has written its log
        while not child.log.stat().st_size and child.alive:
            time.sleep(0.01)
        return False

    with pytest.raises(CannotStart) as refused:
        children.start(child, has_not, patience)
    children.end()

    told = f"web {how}: one / no room (all of it in {child.log})"
    assert str(refused.value) == told


def test_what_ends_later_shows_the_end_of_its_log(tmp_path: Path) -> None:
    child = child_that("print('no room'); exit(3)", tmp_path)
    lines: list[str] = []
    children = ChildProcesses(lines.append, lambda: False)

    children.start(child)
    assert child.process is not None
    child.process.wait()
    children.look_after()
    children.end()

    [line] = lines
    assert line.startswith("web ended with exit code 3; starting it again in 0.5 s. ")
    assert line.endswith(f"Its log ends: no room (all of it in {child.log})")


def test_a_slow_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_processes, "SAY_EVERY", 0.01)
    child = child_that(HANGS.format("reading much"), tmp_path)
    lines: list[str] = []
    children = ChildProcesses(lines.append, lambda: False)

    children.start(child, lambda: "Waiting for web: reading much" in lines)
    children.end()

    assert lines[-1] == "Waiting for web: reading much"
