"""The live parts of a page, collected while the page is rendered for an open one."""

from collections.abc import Callable

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe


class Fragments:
    """The fragments that replace parts of an open page; the rest of the rendered page is dropped."""

    def __init__(self) -> None:
        self.kept = False
        """Whether a fragment is being rendered now."""
        self._parts: list[SafeString] = []

    def add(self, target: str, swap: str, render: Callable[[], SafeString]) -> None:
        """Add a fragment.

        Args:
            target: the id of the element that it is for.
            swap: how htmx puts it in place.
            render: renders it.
        """
        self.kept = True
        try:
            html = render()
        finally:
            self.kept = False
        place = '<hx-partial hx-target="#{}" hx-swap="{}">{}</hx-partial>'
        self._parts.append(format_html(place, target, swap, html))

    @property
    def html(self) -> SafeString:
        return mark_safe("".join(self._parts))  # noqa: S308  templates escaped it
