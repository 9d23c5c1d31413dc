"""Mutants: the engine with one small change, which some test must notice.

A mutant changes one expression or statement of one function. It is made from the syntax tree, and put into the running
code by exchanging the function's code object, so that no file is written. Docstrings, annotations, decorators,
defaults, logging and the texts of errors stay as they are.

What is changed follows DeMillo, Lipton and Sayward (1978), Hints on Test Data Selection, and the operators that Offutt
and others (1996) found sufficient; dropped keywords and dictionary entries are added for queries and rows.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tests.services.stage import ROOT

COMPARISONS: dict[type[ast.cmpop], Sequence[type[ast.cmpop]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
LOOKUPS = {"lt": "lte", "lte": "lt", "gt": "gte", "gte": "gt"}
"""The ends of a filter's keywords that are exchanged."""

TEXTS = {"Text", "log", "cast"}
"""Calls whose arguments say something to people, or to the type checker."""

UNTOUCHED = {"annotation", "returns", "decorator_list", "pattern"}
"""The parts of a syntax tree that are left as they are."""

LONGEST_TEXT = 90

Change = tuple[ast.AST, ast.AST, ast.AST | None]
"""What stands in place of a node; and the part of the node that is another then, with what it is then, if anything."""


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    Args:
        path: the file, from the project's folder.
        function: the qualified name of the outermost function.
        line: where it is.
        lines: the first and the last line of the statement: a test that runs one of these reaches it.
        number: of the place, counted through the file.
        way: which of the changes of this place.
        before: the code there.
        after: what stands there instead.
        nth: how many of these changes the function has before this one.
    """

    path: str
    function: str
    line: int
    lines: tuple[int, int]
    number: int
    way: int
    before: str
    after: str
    nth: int = 0

    @property
    def name(self) -> str:
        """What stays the same when lines move: the key of the table of survivors."""
        again = f" ({self.nth + 1})" if self.nth else ""
        short = self.path.removeprefix("orchestrator/engine/")
        return f"{short} {self.function}: {self.before} → {self.after}{again}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.before} → {self.after}"


@dataclass
class Spot:
    """A node of a syntax tree that can be changed: where it hangs, and in which statement."""

    function: str
    statement: ast.stmt
    parent: ast.AST
    field: str
    place: int | None
    node: ast.AST

    def put(self, node: ast.AST) -> None:
        if self.place is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.place] = node


def choose_mutants(
    paths: Sequence[Path], seed: int, root: Path = ROOT, number: int | None = None
) -> list[Mutant]:
    """Return so many mutants of some files, chosen by their names: after a change elsewhere they are still the same."""

    def chance(mutant: Mutant) -> str:
        return sha256(f"{seed} {mutant.name}".encode()).hexdigest()

    found = [one for path in paths for one in mutants_of(path, root)]
    return sorted(found, key=chance)[:number]


def mutants_of(path: Path, root: Path = ROOT) -> list[Mutant]:
    """Return all mutants of a file."""
    found: list[Mutant] = []
    seen = Counter[tuple[str, str, str]]()
    name = str(path.relative_to(root))
    for number, spot in enumerate(_spots(ast.parse(path.read_text()))):
        for way, (_, was, new) in enumerate(_changes(spot.node)):
            before, after = _text(was), _text(new)
            if isinstance(was, ast.Constant) and isinstance(spot.parent, ast.expr):
                before = f"{before} of {_text(spot.parent)}"
            key = (spot.function, before, after)
            line = getattr(spot.node, "lineno", spot.statement.lineno)
            lines = _lines(spot.statement)
            found.append(
                Mutant(
                    name, spot.function, line, lines, number, way, before, after,
                    seen[key],
                )
            )  # fmt: skip
            seen[key] += 1
    return found


def install(mutant: Mutant, root: Path = ROOT) -> None:
    """Put a mutant into this process; whoever has imported the function has it, too."""
    dotted = mutant.path.removesuffix(".py").removesuffix("/__init__")
    module = importlib.import_module(dotted.replace("/", "."))
    exchange_code(module, mutant, compiled(mutant, root))


def compiled(mutant: Mutant, root: Path = ROOT) -> CodeType:
    """Return the mutant's whole file, compiled."""
    path = root / mutant.path
    tree = ast.parse(path.read_text())
    spot = list(_spots(tree))[mutant.number]
    for name, function in _functions(tree.body):
        if name == mutant.function and _names_its_class(function):
            # Also where it calls super() no more, it must have the cell of its class.
            cell = ast.Expr(ast.Name("__class__", ast.Load()))
            function.body.append(ast.If(ast.Constant(False), [cell], []))
    spot.put(list(_changes(spot.node))[mutant.way][0])
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)  # fmt: skip


def exchange_code(module: ModuleType, mutant: Mutant, code: CodeType) -> None:
    """Give a function of a module the code that it has in `code`, which is that of its whole file.

    Raises:
        LookupError: the module has no such function, as where a decorator hides it.
    """
    for function in _live(module, mutant.function):
        old = function.__code__
        for new in _codes(code):
            same = (new.co_qualname, new.co_firstlineno)
            if same == (old.co_qualname, old.co_firstlineno):
                function.__code__ = new
                return
    raise LookupError(mutant)


def _live(module: ModuleType, name: str) -> Iterator[FunctionType]:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    if isinstance(found, property):
        several = [found.fget, found.fset]
    elif isinstance(found, cached_property):
        several = [found.func]
    else:
        several = [getattr(found, "__func__", found)]
    for one in several:
        getattr(one, "cache_clear", lambda: None)()
        plain = inspect.unwrap(one) if callable(one) else None
        if isinstance(plain, FunctionType):
            yield plain


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(
    body: Sequence[ast.stmt], of: str = ""
) -> Iterator[tuple[str, Function]]:
    """Yield the outermost functions with their qualified names."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _functions(one.body, f"{of}{one.name}.")
        elif isinstance(one, Function) and one.name not in ("__str__", "__repr__"):
            yield f"{of}{one.name}", one


def _names_its_class(function: Function) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id in ("super", "__class__")
        for node in ast.walk(function)
    )


def _spots(tree: ast.Module) -> Iterator[Spot]:
    for name, function in _functions(tree.body):
        yield from _below(name, function, function)


def _below(name: str, node: ast.AST, statement: ast.stmt) -> Iterator[Spot]:
    for field, value in ast.iter_fields(node):
        if field in UNTOUCHED or isinstance(value, ast.arguments):
            continue
        several = isinstance(value, list)
        for place, one in enumerate(value if several else [value]):
            if not isinstance(one, ast.AST) or _is_text(one):
                continue
            inside = one if isinstance(one, ast.stmt) else statement
            yield Spot(name, inside, node, field, place if several else None, one)
            if not isinstance(one, ast.Raise | ast.JoinedStr | ast.ClassDef):
                yield from _below(name, one, inside)


def _is_text(node: ast.AST) -> bool:
    """Whether a node is a docstring, or says something to people."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_text(node.value)
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and called.id in TEXTS


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement, without those of the statements in it."""
    last = statement.end_lineno or statement.lineno
    inner = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if inner:
        begins = min(getattr(node, "lineno", last) for node in ast.walk(inner[0]))
        last = max(statement.lineno, begins - 1)
    return statement.lineno, last


def _text(node: ast.AST | None) -> str:
    text = "nothing" if node is None else " ".join(ast.unparse(node).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield what can stand in place of a node; the node itself stays as it is."""
    for changes in (_of_statement, _of_condition, _of_value, _of_parts):
        yield from changes(node)


def _of_statement(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Expr(ast.Call()) | ast.Raise() | ast.Delete():
            yield ast.Pass(), node, None
        case ast.Assign(targets) if not any(
            isinstance(part, ast.Name | ast.Tuple) for part in targets
        ):
            yield ast.Pass(), node, None
        case ast.AugAssign(target, operator, value):
            yield ast.Pass(), node, None
            if found := ARITHMETIC.get(type(operator)):
                yield _instead(node, ast.AugAssign(target, found(), value))
        case ast.Return(value) if value is not None and not _is_like_none(value):
            yield _instead(node, ast.Return(ast.Constant(None)))
        case ast.Break():
            yield _instead(node, ast.Continue())
        case ast.Continue():
            yield _instead(node, ast.Break())


def _of_condition(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(left, [operator], right):
            several = COMPARISONS[type(operator)]
            # Two looks at a clock are never equal: the bound itself is of no account.
            for found in several[-1:] if _reads_clock(node) else several:
                yield _instead(node, ast.Compare(left, [found()], right))
        case ast.BoolOp(operator, values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield _instead(node, ast.BoolOp(other, values))
            for place, value in enumerate(values):
                rest = [*values[:place], *values[place + 1 :]]
                less = ast.BoolOp(operator, rest) if len(rest) > 1 else rest[0]
                yield less, value, None
        case ast.UnaryOp(ast.Not(), operand):
            yield _instead(node, operand)
        case ast.IfExp(test, body, orelse) if _is_plain(test):
            opposite = ast.UnaryOp(ast.Not(), test)
            yield ast.IfExp(opposite, body, orelse), test, opposite
        case ast.If(test, body, orelse) if _is_plain(test):
            opposite = ast.UnaryOp(ast.Not(), test)
            yield ast.If(opposite, body, orelse), test, opposite


def _of_value(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Constant(bool() as value):
            yield _instead(node, ast.Constant(not value))
        case ast.Constant(int() | float() as value):
            yield _instead(node, ast.Constant(value + 1))
        case ast.BinOp(left, operator, right) if found := ARITHMETIC.get(
            type(operator)
        ):
            yield _instead(node, ast.BinOp(left, found(), right))


def _of_parts(node: ast.AST) -> Iterator[Change]:
    """Yield calls and dictionaries without one of their parts, and filters that include or exclude the bound."""
    match node:
        case ast.Call(function, arguments, keywords):
            for place, keyword in enumerate(keywords):
                if keyword.arg is None:
                    continue
                before, behind = keywords[:place], keywords[place + 1 :]
                less = ast.Call(function, arguments, [*before, *behind])
                yield less, keyword, None
                start, _, end = keyword.arg.rpartition("__")
                if start and end in LOOKUPS:
                    other = ast.keyword(f"{start}__{LOOKUPS[end]}", keyword.value)
                    several = [*before, other, *behind]
                    yield ast.Call(function, arguments, several), keyword, other
        case ast.Dict(keys, values) if len(keys) > 1:
            for place, (key, value) in enumerate(zip(keys, values, strict=True)):
                if key is not None:
                    others = [*keys[:place], *keys[place + 1 :]]
                    rest = [*values[:place], *values[place + 1 :]]
                    yield ast.Dict(others, rest), ast.Dict([key], [value]), None


def _instead(node: ast.AST, other: ast.AST) -> Change:
    return other, node, other


def _reads_clock(node: ast.AST) -> bool:
    inside = ast.walk(node)
    return any(
        isinstance(one, ast.Call) and "monotonic" in _text(one) for one in inside
    )


def _is_like_none(node: ast.AST) -> bool:
    """Whether a value is None, or one that a caller who asks whether there is one takes for it: False or ""."""
    return isinstance(node, ast.Constant) and not node.value


def _is_plain(node: ast.AST) -> bool:
    """Whether a condition has no other change than its opposite."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr)
