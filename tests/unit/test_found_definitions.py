"""Definitions are found in the `processes` of an app, a module or a package, and in what it imports of the app."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from orchestrator import registry
from orchestrator.definition import ProcessManager, Workflow, step
from orchestrator.exceptions import InvalidDefinition
from tests.apps.process_managers.processes import Shipping
from tests.unit.shop import Data, Step

DEFINITION = """
from orchestrator.definition import Workflow, step

def sweep() -> None: ...

class {name}(Workflow):
    flow = (step(sweep),)
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of an app; what it brings is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "definitions", {})
    (tmp_path / "depot").mkdir()
    (tmp_path / "depot" / "__init__.py").touch()
    yield tmp_path / "depot"
    for name in [name for name in sys.modules if name.partition(".")[0] == "depot"]:
        del sys.modules[name]


def brought(app: Path, **files: str) -> set[str]:
    """Return the names of the definitions that an app with these files brings, as when Django starts."""
    for name, text in files.items():
        path = app / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
    module = __import__("depot.processes", fromlist=["*"])
    registry.register_module(module, "depot")
    return {name for name, _version in registry.definitions}


def test_a_module_brings_what_it_declares(app: Path) -> None:
    assert brought(app, processes=DEFINITION.format(name="Sweeping")) == {"sweeping"}


def test_a_module_brings_what_it_imports_of_its_app(app: Path) -> None:
    flows = DEFINITION.format(name="Sweeping")
    used = "from depot.flows import Sweeping"
    assert brought(app, flows=flows, processes=used) == {"sweeping"}


def test_a_module_does_not_bring_what_it_imports_of_another_app(app: Path) -> None:
    used = "from tests.apps.process_managers.processes import Shipping"
    assert brought(app, processes=used) == set()


def test_an_app_does_not_bring_what_one_of_a_longer_name_declares(app: Path) -> None:
    other = ModuleType("depot_two.flows")
    exec(DEFINITION.format(name="Sweeping"), vars(other))  # noqa: S102  our own text
    assert vars(other)["Sweeping"].__module__ == "depot_two.flows"

    processes = ModuleType("depot.processes")
    vars(processes)["Sweeping"] = vars(other)["Sweeping"]
    registry.register_module(processes, "depot")

    assert registry.definitions == {}


def test_a_package_brings_what_its_modules_declare_at_any_depth(app: Path) -> None:
    names = {"sweeping": "Sweeping", "floors__mopping": "Mopping"}
    files = {
        f"processes__{at}": DEFINITION.format(name=name) for at, name in names.items()
    }
    (app / "processes" / "floors").mkdir(parents=True)
    (app / "processes" / "floors" / "__init__.py").touch()
    (app / "processes" / "__init__.py").touch()

    assert brought(app, **files) == {"sweeping", "mopping"}


def test_a_class_with_the_rows_of_another_needs_rows_of_its_own() -> None:
    why = (
        "Express: it has no transitions of its own, and Shipping has: it would be Shipping itself. "
        "Write transitions = Shipping.transitions to have the same, under its own name"
    )
    with pytest.raises(InvalidDefinition) as refused:
        type("Express", (Shipping,), {"version": 2})
    assert str(refused.value) == why


def test_a_workflow_with_the_rows_of_another_needs_rows_of_its_own() -> None:
    def sweep() -> None: ...

    class Sweeping(Workflow):
        flow = (step(sweep),)

    with pytest.raises(InvalidDefinition, match="it has no flow of its own, and "):
        type("Mopping", (Sweeping,), {})
    again = type("Mopping", (Sweeping,), {"flow": Sweeping.flow})
    assert again.name == "mopping"  # type: ignore[attr-defined]


def test_a_base_without_rows_shares_its_attributes() -> None:
    base = type("Base", (ProcessManager,), {"Step": Step, "Data": Data})
    assert not base.name  # type: ignore[attr-defined]
