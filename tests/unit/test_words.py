"""The words of the product: a name has one meaning, and all that people read speaks without pictures."""

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.services.cases import cases, words
from tests.unit.test_docs_sentences import PAGES

ROOT = Path(__file__).parents[2]
MODULES = [
    path
    for package in ("orchestrator", "monitoring")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "migrations" not in path.parts
]
OF_THE_KIND = {
    "act": "a view that carries out an operation",
    "add_arguments": "the options of a sub-command, as Django calls them",
    "Command": "a management command, and what a process manager issues",
    "detail": "a view of one object",
    "index": "a view of a list",
    "run": "a sub-process of a workflow; in orchestrator.testing, the work that is ready",
}
"""Names that several modules have, each with the one meaning that it has there."""

NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CAPITALIZED = re.compile(r"[A-Z]\w*[a-z]\w*")
"""The names of types; those of constants have no small letters."""

VARIABLES = words("ParamSpec TypeVar")
OF_ANY_TYPE = words("M P T")
"""Type variables that any module may have: a model or message, parameters, and a type."""

PICTURES = re.compile(
    r"""\b(?:canary|deaf|foreseen|hitherto|lately|nobody|rung|whoever|whose\ turn
    |come[s]?\ of|came\ of|for\ ever|held\ up|in\ doubt|in\ hand|in\ other\ hands
    |lets?\ go|makes?\ way|of\ one\ (?:that|which|who)|of\ ours|over\ with|puts?\ off|so\ many
    |such\ (?:a\ )?one|what\ is\ held|who\ (?:asks|settles|sees))\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Pictures and turns that the documentation of Django or PostgreSQL would not have."""
OF_COLUMNS = {
    "by how much people have put off its deadlines",
    "stops above so many percent failed",
}
"""Names of columns, which stand in migrations too."""
OPENINGS = words(
    "As By Does For Has Is Lets Nothing Of So That Those What When Where Which Who Whoever Whose"
)
"""No docstring begins with these: the first word is a noun, or says what a function does."""


def test_a_name_has_one_meaning() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, NAMED) and node.name[0] != "_":
                places[node.name].add(str(path.relative_to(ROOT)))

    several = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {n: found for n, found in several.items() if n not in OF_THE_KIND} == {}
    assert OF_THE_KIND.keys() - several.keys() == set()


def test_an_alias_of_a_type_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    aliases = set[str]()
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            alias = alias_name(node)
            if alias:
                aliases.add(alias)
            name = node.name if isinstance(node, NAMED) else alias
            if name:
                places[name].append(str(path.relative_to(ROOT)))

    assert {name: places[name] for name in aliases if len(places[name]) > 1} == {}


def alias_name(node: ast.stmt) -> str:
    """Return the name that a statement gives to a type or a type variable; else an empty text."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            made = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        case ast.AnnAssign(target=ast.Name(id=name)):
            made = ""
        case _:
            return ""
    variable = made in VARIABLES and name not in OF_ANY_TYPE
    return name if variable or CAPITALIZED.fullmatch(name) else ""


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module, also those of its values."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                yield " ".join(str(one.value.value).split())


def comments(path: Path) -> Iterator[str]:
    with tokenize.open(path) as file:
        tokens = tokenize.generate_tokens(file.readline)
        yield from (one.string for one in tokens if one.type == tokenize.COMMENT)


def test_docstrings_and_comments_speak_plainly() -> None:
    found = list[str]()
    for path in MODULES:
        texts = list(docstrings(path))
        found += [f"{path}: {one}" for one in texts if one.split(" ")[0] in OPENINGS]
        for one in (*texts, *comments(path)):
            if PICTURES.search(one.replace('"nobody"', "")):
                found.append(f"{path}: {one}")

    assert found == []


def literals(path: Path) -> Iterator[str]:
    """Yield the sentences in the code of a module, without first wordings, which stay: errors, help, logs and the like.

    A literal without a space is a stored word or a name.
    """
    tree = ast.parse(path.read_text())
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    first = [one.value for call in calls for one in call.keywords if one.arg == "was"]
    told = [one.value for one in ast.walk(tree) if isinstance(one, ast.Expr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in (*first, *told):
            said = " ".join(str(node.value).split())
            if " " in said:
                yield said


def test_errors_help_and_logs_speak_plainly() -> None:
    found = [
        f"{path}: {one}"
        for path in MODULES
        for one in literals(path)
        if one not in OF_COLUMNS and PICTURES.search(one.replace('"nobody"', ""))
    ]
    assert found == []


@cases("page", *(page for page in PAGES if page.name != "texts.md"))
def test_the_documentation_speaks_plainly(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)

    assert PICTURES.findall(" ".join(prose.split())) == []
