"""Tags for live parts: one template makes both the page and the updates of the open page.

For an update the page is rendered again with `Fragments` in its context, and only its live parts are sent. So the
conditions and loops around a live part hold for both.
"""

from functools import partial
from typing import Any

from django.template import Library, Node, NodeList, TemplateSyntaxError
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.template.context import Context
from django.utils.safestring import SafeString

register = Library()


class LiveNode(Node):
    """A part of a page that is sent again; inside another live part it is plain content."""

    def __init__(
        self,
        nodelist: NodeList,
        target: FilterExpression,
        options: dict[str, FilterExpression],
    ) -> None:
        self.nodelist = nodelist
        self.target = target
        self.options = options

    def render(self, context: Context) -> SafeString:
        fragments = context.get("fragments")
        given = {name: it.resolve(context) for name, it in self.options.items()}
        if fragments is None or fragments.kept or not given.get("when", True):
            return self.nodelist.render(context)
        target, swap = self.target.resolve(context), given.get("swap", "outerMorph")
        fragments.add(target, swap, partial(self.nodelist.render, context))
        return SafeString()


class StillNode(Node):
    """A part of a page that stays as it was loaded; a live answer does not render it."""

    def __init__(self, nodelist: NodeList) -> None:
        self.nodelist = nodelist

    def render(self, context: Context) -> SafeString:
        fragments = context.get("fragments")
        if fragments is not None and not fragments.kept:
            return SafeString()
        return self.nodelist.render(context)


@register.tag
def live(parser: Parser, token: Token) -> LiveNode:
    """Parse `{% live "id" swap="innerMorph" when=changed %}…{% endlive %}`: the part for the element with that id.

    `swap` is the swap style of htmx, by default "outerMorph". If `when` is false, the part is not sent, but live parts
    within it are.
    """
    name, *bits = token.split_contents()
    if not bits:
        raise TemplateSyntaxError(f"{name}: the id of an element is missing")
    target = parser.compile_filter(bits.pop(0))
    options: dict[str, Any] = token_kwargs(bits, parser)
    if bits or options.keys() - {"swap", "when"}:
        raise TemplateSyntaxError(f"{name} knows the options swap and when")
    return LiveNode(_parse_until(parser, "endlive"), target, options)


@register.tag
def still(parser: Parser, token: Token) -> StillNode:
    """Parse `{% still %}…{% endstill %}`: a part that is rendered with the page and with a live part around it."""
    return StillNode(_parse_until(parser, "endstill"))


def _parse_until(parser: Parser, end: str) -> NodeList:
    nodelist = parser.parse((end,))
    parser.delete_first_token()
    return nodelist
