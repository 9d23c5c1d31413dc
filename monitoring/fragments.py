"""The live parts of a page, gathered while it is rendered for a reader who has it open already."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe


class Fragments:
    """What is put in the place of the parts that an open page shows; all else of the rendered page is dropped."""

    def __init__(self) -> None:
        self.kept = False
        """Whether what is rendered just now is part of a fragment."""
        self._parts: list[SafeString] = []

    @contextmanager
    def part(self) -> Iterator[None]:
        """Everything rendered within becomes part of one fragment."""
        self.kept = True
        try:
            yield
        finally:
            self.kept = False

    def add(self, target: str, swap: str, html: SafeString) -> None:
        """Add a fragment for the element with the id `target`, put in place by htmx as `swap` says."""
        place = '<hx-partial hx-target="#{}" hx-swap="{}">{}</hx-partial>'
        self._parts.append(format_html(place, target, swap, html))

    @property
    def html(self) -> SafeString:
        return mark_safe("".join(self._parts))  # noqa: S308  templates escaped it
