"""The shape of the code: what a program would notice only when it is too late."""

import ast
import hashlib
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache, partial
from itertools import permutations
from pathlib import Path
from types import ModuleType

import grimp
import pytest
from _pytest.fixtures import FixtureFunctionDefinition
from django.core.management import call_command
from packaging.requirements import Requirement

import orchestrator
from orchestrator import definition, testing
from orchestrator.configuration.variables import FAMILIES, NAMES
from orchestrator.testing import plugin
from tests.services.python import printed
from tests.services.words import words

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("orchestrator", "monitoring", "examples", "bench")
PUBLIC = {
    "orchestrator",
    *(f"orchestrator.{n}" for n in words("definition exceptions signals testing")),
}
NAMES_NOT_USED = set(words("utils helpers misc common task tasks saga sagas"))


NAMES_OF_SEVERAL = {
    "Command",  # of the language; each management command, as Django looks for it
    "ReadOnlyAdmin",  # the same twice: examples import public names only
    "Text",  # what the engine says; what a reader of the examples finds in a picture
}

FOUND_BY_NAME = words("""
    __init__ admin apps checks consumers management middleware migrations routing templatetags urls
""")
"""Modules that Django or Channels looks for by name; they are no rooms."""

MOST_ROOMS = {"orchestrator": 12, "monitoring": 15}
"""How many rooms, which are modules and packages, a folder has at most."""

MORE_ROOMS = {
    "orchestrator": 32,  # public modules, settings, and what packages share
}
"""The folders that still have more: how many. These numbers only become smaller."""

MOST_FLOORS = {"orchestrator.engine": (8, 42), "monitoring": (8, 51)}
"""How many floors a package has at most, and how many arrows, each from a room to one below that it imports."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def modules(*packages: str) -> Iterator[Path]:
    paths = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return (path for path in paths if "migrations" not in path.parts)


LISTS = {
    definition: """
        ANY AsyncStepContext Command Decision Event Failure ProcessManager StepContext Workflow after ask case catch
        during each fork ignore join migrates_from needs park reject repeat route run secret sleep start step stored
        then undo wait when
    """,
    orchestrator: """
        Answer CommandContext CorruptInput Envelope Permanent Poll ProcessStart Receipt Retry Skip asend_event
        asend_events astart_process astart_processes handles processes_of reacts_to send_event send_events start_process
        start_processes
    """,
    testing: "Process failing found pass_time registered replaced run started",
}
"""The language, what applications call, and what their tests call."""


@pytest.mark.parametrize("package", LISTS, ids=lambda package: package.__name__)
def test_what_is_public_is_this_list_of_names(package: ModuleType) -> None:
    assert package.__all__ == words(LISTS[package])
    assert all(getattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", [orchestrator, testing], ids=lambda p: p.__name__)
def test_a_name_that_is_not_public_is_an_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_pytest_loads_the_plugin_without_what_its_fixtures_need() -> None:
    program = """
import sys
import pytest
before = set(sys.modules)
import orchestrator.testing.plugin
print(*sorted(set(sys.modules) - before))
"""

    loaded = words(printed(program))
    own = [name for name in loaded if name.startswith("orchestrator")]
    assert own == words("orchestrator orchestrator.testing orchestrator.testing.plugin")
    assert not {"django", "pydantic", "redis", "rq"} & set(loaded)


def test_the_plugins_fixtures_bear_the_packages_name() -> None:
    kind = FixtureFunctionDefinition
    fixtures = [name for name, one in vars(plugin).items() if isinstance(one, kind)]

    assert fixtures
    assert all(name.startswith("procession_") for name in fixtures)


def test_the_language_can_be_used_where_django_is_not_installed() -> None:
    program = """
import sys
for name in ("django", "rq", "django_rq", "redis", "channels", "graphviz", "pygraphviz"):
    sys.modules[name] = None  # importing it now fails
import orchestrator.definition
"""

    assert printed(program) == ""


def test_examples_import_public_names_only() -> None:
    found = graph().find_matching_direct_imports("examples.** -> orchestrator.**")

    assert {one["imported"] for one in found} <= PUBLIC


@cache
def graph() -> grimp.ImportGraph:
    """Return all imports, also those inside functions and for types alone."""
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def test_modules_are_named_after_what_they_are() -> None:
    paths = modules(*PACKAGES, "tests")

    assert [path for path in paths if path.stem in NAMES_NOT_USED] == []


def test_no_folder_has_more_rooms_than_a_reader_can_survey() -> None:
    counted = dict(rooms_by_folder())
    most = {name: MOST_ROOMS[name.split("/")[0]] for name in counted}

    allowed = most | MORE_ROOMS
    assert {name: n for name, n in counted.items() if n > allowed[name]} == {}
    needless = [n for n in MORE_ROOMS if counted.get(n, 0) <= most.get(n, 0)]
    assert needless == [], "these need no exception any more"


def rooms_by_folder() -> Iterator[tuple[str, int]]:
    for path in {path.parent for path in modules(*MOST_ROOMS)}:
        inside = (p for p in path.iterdir() if p.suffix == ".py" or any(p.glob("*.py")))
        name = str(path.relative_to(ROOT))
        if "management" not in path.parts:
            yield name, len({p.stem for p in inside}.difference(FOUND_BY_NAME))


def test_packages_have_few_floors_and_few_arrows() -> None:
    ties = partial(graph().direct_import_exists, as_packages=True)
    for package, (most_floors, most_arrows) in MOST_FLOORS.items():
        pairs = permutations(graph().find_children(package), 2)
        arrows = [(a, b) for a, b in pairs if ties(importer=a, imported=b)]
        assert max(floor(room, arrows) for room, _ in arrows) <= most_floors, package
        assert len(arrows) <= most_arrows, package


def floor(room: str, arrows: list[tuple[str, str]]) -> int:
    return 1 + max((floor(b, arrows) for a, b in arrows if a == room), default=0)


def test_no_package_has_more_code_than_the_design_allows() -> None:
    """A bound is raised by a line of docs/design.md alone, which tells the reason."""
    counted = Counter[str]()
    for path in modules("orchestrator", "monitoring"):
        counted[package_of(path)] += real_code(path)

    bounds = bounds_of_code()
    assert counted.keys() == bounds.keys()
    assert {name: n for name, n in counted.items() if n > bounds[name]} == {}


def test_modules_and_functions_are_short() -> None:
    """A function's docstring does not count; of 100 functions three may have more than 25 lines."""
    long_modules, lengths = list[str](), list[int]()
    for path in modules("orchestrator", "monitoring"):
        text = path.read_text()
        if text.count("\n") > 400:
            long_modules.append(str(path.relative_to(ROOT)))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                told = ast.get_docstring(node) is not None
                docstring = len(lines_of(node.body[0])) if told else 0
                lengths.append(len(lines_of(node)) - docstring)

    assert long_modules == []
    assert sum(length > 25 for length in lengths) <= 0.03 * len(lengths)


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[: 3 if parts[:2] == ("orchestrator", "engine") else 2])


def real_code(path: Path) -> int:
    """The lines that are neither blank, comment, docstring nor import."""
    text, others = path.read_text(), set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            others.update(lines_of(node))
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            others.update(lines_of(node.body[0]))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    code = {place for place, line in lines if line and not line.startswith("#")}
    return len(code - others)


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def bounds_of_code() -> dict[str, int]:
    row = r"^\| `((?:orchestrator|monitoring)[\w/]*)` \| ([\d,]+) \|$"
    text = (ROOT / "docs" / "design.md").read_text()
    rows = re.findall(row, text, re.MULTILINE)
    return {name: int(most.replace(",", "")) for name, most in rows}


def test_each_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in modules(*PACKAGES):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(ROOT))

    several = {name for name, paths in places.items() if len(paths) > 1}
    assert several <= NAMES_OF_SEVERAL


@pytest.mark.parametrize("folder", ["static/vendor", "tests/browser/vendor"])
def test_vendored_files_are_what_their_list_says(folder: str) -> None:
    vendor = ROOT / folder
    listed = json.loads((vendor / "vendor.json").read_text())

    for entry in listed:
        path = vendor / entry["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"], path
        assert list(path.parent.glob("LICEN[CS]E*")), f"{path.parent} lacks its licence"
    loaded = [one for one in vendor.rglob("*.*") if one.suffix in (".js", ".css")]
    names = {str(path.relative_to(vendor)) for path in loaded}
    assert names == {entry["file"] for entry in listed}


@pytest.mark.django_db
def test_no_model_has_changed_without_a_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_lock_files_name_no_addresses() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        assert "://" not in lock.read_text()


def test_the_tests_run_on_the_versions_that_are_delivered() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


def test_the_bundled_project_is_locked_to_what_is_declared() -> None:
    locked = pins("requirements.lock")

    for requirement in declared("dependencies", "standalone"):
        assert locked[requirement.name.lower()] in requirement.specifier, requirement


def test_single_sign_on_is_locked_to_the_same_versions() -> None:
    locked = pins("requirements-sso.lock")

    assert pins("requirements.lock").items() <= locked.items()
    assert locked.items() <= pins("requirements-dev.lock").items()
    for requirement in declared("sso"):
        assert locked[requirement.name.lower()] in requirement.specifier, requirement


def test_every_dependency_says_up_to_where_it_was_tried() -> None:
    groups = words("dependencies postgres server standalone sso media test lint peers")

    assert [r for r in declared(*groups) if "<" not in str(r.specifier)] == []


def declared(*groups: str) -> list[Requirement]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups_of = pyproject["project"], pyproject["dependency-groups"]
    found = {**project, **project["optional-dependencies"], **groups_of}
    return [Requirement(line) for group in groups for line in found[group]]


def pins(lock: str) -> dict[str, str]:
    pin = r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)"
    return dict(re.findall(pin, (ROOT / lock).read_text(), re.MULTILINE))


def test_nothing_unpickles() -> None:
    assert not {"pickle", "marshal", "shelve"} & graph().modules


def test_every_variable_is_documented() -> None:
    named = {*NAMES, *FAMILIES}
    manual = (ROOT / "docs" / "settings.md").read_text()

    assert {name for name in named if f"`{name}" not in manual} == set()
