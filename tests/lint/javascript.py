"""What hurts in JavaScript: loose comparison, what is left from debugging, markup from text, names that are not right.

Names are looked at a file at a time, without scopes: enough for a misspelt name, an import or variable that nothing
uses, and a name that the imported file does not export.
"""

from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node

from tests.lint.syntax import Mistake, mistake, nodes, parsed, words

BROWSER = """
Array Boolean CSS Date Error FormData Intl JSON Map Math MutationObserver Notification Number Object Promise Set String
URL URLSearchParams Uint8Array WeakMap WebSocket clearTimeout console crypto document encodeURIComponent
getComputedStyle getSelection localStorage location navigator parseFloat performance requestAnimationFrame
sessionStorage setInterval setTimeout undefined window
"""
"""The names of the browser that the console uses."""

MARKUP = {"innerHTML", "outerHTML", "insertAdjacentHTML", "write"}
DESTRUCTURED = ("array", "assignment", "object_assignment", "object", "pair", "rest")
PATTERNS = {f"{kind}_pattern" for kind in DESTRUCTURED}
PROPERTY = "shorthand_property_identifier"
NAMES = {"identifier", PROPERTY, f"{PROPERTY}_pattern"}
BINDS = {
    ("arrow_function", "parameter"),
    ("catch_clause", "parameter"),
    ("class_declaration", "name"),
    ("for_in_statement", "left"),
    ("formal_parameters", None),
    ("function_declaration", "name"),
    ("generator_function_declaration", "name"),
    ("import_clause", None),
    ("import_specifier", "alias"),
    ("import_specifier", "name"),
    ("namespace_import", None),
    ("variable_declarator", "name"),
}
"""Where a name is declared: the kind of the node around it, and what it is there."""


def script_mistakes(root: Node, path: Path) -> Iterator[Mistake]:
    """Everything that is refused in the script that was read from `path`."""
    for node in nodes(root):
        refused = _refused(node)
        if refused:
            yield mistake(node, refused)
        if node.type == "import_statement":
            yield from _unexported(node, path)
    yield from _wrong_names(root)


def _refused(node: Node) -> str:
    if node.type == "variable_declaration":
        return "var: say const or let"
    if node.type in {"==", "!="}:
        return f"{node.type} converts its operands: say {node.type}="
    if node.type == "debugger_statement" or words(node) == "console":
        return f"{words(node)} is left from debugging"
    if node.type == "property_identifier" and words(node) in MARKUP:
        return f"{words(node)} makes markup from text"
    return ""


def _wrong_names(root: Node) -> Iterator[Mistake]:
    declared, used = dict[str, Node](), dict[str, Node]()
    for node in nodes(root):
        if node.type in NAMES:
            (declared if _binds(node) else used).setdefault(words(node), node)
    exported = _exported(root)
    for name in declared.keys() - used.keys() - exported:
        yield mistake(declared[name], f"{name} is not used")
    for name in used.keys() - declared.keys() - set(BROWSER.split()):
        yield mistake(used[name], f"{name} is not known")


def _binds(node: Node) -> bool:
    """Whether the name is declared where it stands."""
    while node.parent and node.parent.type in PATTERNS:
        if _role(node) in {"key", "right"}:
            return False
        node = node.parent
    if not node.parent:
        return False
    role = _role(node)
    if node.parent.type == "import_specifier" and role == "name":
        return node.parent.child_by_field_name("alias") is None
    return (node.parent.type, role) in BINDS


def _role(node: Node) -> str | None:
    """What the node is in the one around it."""
    parent = node.parent
    siblings = parent.children if parent else []
    return parent.field_name_for_child(siblings.index(node)) if parent else None


def _exported(root: Node) -> set[str]:
    """The names of the functions, classes and variables that a file exports."""
    found = set[str]()
    for node in root.children:
        made = node.child_by_field_name("declaration")
        if node.type == "export_statement" and made:
            # a function or class has its name itself, variables are called each on its own
            for one in (made, *made.named_children):
                found |= {words(it) for it in one.children_by_field_name("name")}
    return found


def _unexported(node: Node, path: Path) -> Iterator[Mistake]:
    named = words(node.child_by_field_name("source") or node)
    source = path.parent / named.strip("\"'")
    if not source.is_file():
        yield mistake(node, f"{source.name} is not there")
        return
    if "vendor" in source.parts:
        return
    exported = _exported(parsed(source.read_text(encoding="utf-8"), ".js"))
    for one in nodes(node):
        if one.type == "import_specifier":
            name = words(one.child_by_field_name("name") or one)
            if name not in exported:
                yield mistake(one, f"{source.name} does not export {name}")
