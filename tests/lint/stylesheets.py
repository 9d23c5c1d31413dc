"""What hurts in CSS: tokens that are not there or that nothing uses, and a property that is said twice.

Whether properties and values exist is asked of a browser, in tests/browser/test_style_sheets.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tree_sitter import Node

from tests.lint.syntax import Mistake, mistake, nodes, words


def declarations(root: Node) -> Iterator[tuple[Node, str, str]]:
    """Every declaration as node, property and value."""
    for node in nodes(root):
        if node.type == "declaration":
            name, _, value = words(node).rstrip(";").partition(":")
            yield node, name.strip(), value.strip()


def sheet_mistakes(root: Node) -> Iterator[Mistake]:
    """What is wrong within one style sheet."""
    for node, name, value in declarations(root):
        if not value:
            yield mistake(node, f"{name} has no value")
    for block in nodes(root):
        if block.type == "block":
            own = (one for one in declarations(block) if one[0].parent == block)
            said = Counter(name for _, name, _ in own)
            for name in (name for name in said if said[name] > 1):
                yield mistake(block, f"{name} is said twice")


def token_mistakes(roots: Mapping[Path, Node]) -> Iterator[tuple[Path, Mistake]]:
    """Tokens that are used and not there, or there and not used, in all style sheets together."""
    there, used = dict[str, tuple[Path, Node]](), dict[str, tuple[Path, Node]]()
    for path, root in roots.items():
        for node in nodes(root):
            name = words(node)
            if name.startswith("--") and node.type in {"property_name", "plain_value"}:
                place = there if node.type == "property_name" else used
                place.setdefault(name, (path, node))
    for name in used.keys() - there.keys():
        path, node = used[name]
        yield path, mistake(node, f"{name} is not there")
    for name in there.keys() - used.keys():
        path, node = there[name]
        yield path, mistake(node, f"{name} is not used")
