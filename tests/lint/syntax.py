"""Sources read by a real parser, and what is found wrong in them."""

from collections.abc import Iterator
from typing import NamedTuple

import tree_sitter_css
import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

PARSERS = {
    ".css": Parser(Language(tree_sitter_css.language())),
    ".js": Parser(Language(tree_sitter_javascript.language())),
}


class Mistake(NamedTuple):
    """What is wrong, and in which line, counted from 1."""

    line: int
    what: str


def parsed(text: str, suffix: str) -> Node:
    """The root of a source's syntax tree; `suffix` is ".css" or ".js"."""
    return PARSERS[suffix].parse(text.encode()).root_node


def nodes(root: Node) -> Iterator[Node]:
    """A node and everything below it, in the order of the source."""
    yield root
    for child in root.children:
        yield from nodes(child)


def words(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode()


def mistake(node: Node, what: str) -> Mistake:
    return Mistake(node.start_point.row + 1, what)


def syntax_mistakes(root: Node) -> Iterator[Mistake]:
    """What the parser could not read, or found missing."""
    for node in nodes(root):
        if node.is_error:
            yield mistake(node, f"cannot be read: {words(node)[:40]}")
        elif node.is_missing:
            yield mistake(node, f"{node.type} is missing")
