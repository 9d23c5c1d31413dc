"""Tags of the console's templates: icons, chips, times and values."""

import json
import re
from datetime import datetime, timedelta
from functools import cache
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest
from django.template.context import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

import orchestrator
from monitoring.attention.health import Health, health
from monitoring.base.access import shown_definitions, visible_definitions
from monitoring.base.graphs import labels_of
from monitoring.base.keys import SHEET
from monitoring.base.masking import event_body, names_of
from monitoring.base.moments import age_text, clock, exact, full_time, span
from monitoring.base.statuses import look
from monitoring.base.translation import translate
from monitoring.definition.page import DefinitionPage
from monitoring.diagrams import DiagramState, Drawing, Svg
from monitoring.diagrams.shapes import ICONS
from monitoring.diagrams.words import detail_of
from monitoring.lists.processes.filters import OLDEST, Filters
from monitoring.live.sharing import shared_part
from monitoring.process.steps.elements import VisitFilters
from monitoring.process.steps.trouble import last_line
from monitoring.queries.lists import Search
from orchestrator.definition.secrets import mask_fields
from orchestrator.models import Definition, InboxEvent

register = template.Library()
register.filter("clock_text", clock)
register.filter("detail", detail_of)
register.filter("exact", exact)
register.filter("last_line", last_line)
register.filter("looked", look)
register.simple_tag(age_text, name="spoken_ago")

LONG = 300
"""Characters of a value that are shown in a row."""


BESIDE_SUB = ("at", "beside", *VisitFilters.names(), "before")
"""The parameters of a process's page that stay when a sub-process is opened or closed in it."""


@register.filter
def seen_in(definition: str, request: HttpRequest) -> bool:
    """Whether the reader of a page may see something of a definition's processes."""
    names = visible_definitions(request)
    return names is None or definition in names


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """Return an icon; the word beside it says the same."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{}"/></svg>',
        ICONS[name],
    )


@register.simple_tag
def chip(status: str, word: str = "") -> SafeString:
    """Return a status as a chip: icon, word and colour."""
    shown = look(status)
    return format_html(
        '<span class="chip c-{}">{}{}</span>',
        shown.tone,
        icon(shown.icon),
        word or shown.word,
    )


@register.filter
def looked_word(status: str) -> str:
    return str(look(status).word)


@register.filter
def tone(status: str) -> str:
    """Return the colour class of a status."""
    return look(status).tone


@register.filter
def add_text(before: Any, after: Any) -> str:
    """Return two values as one text."""
    return f"{before}{after}"


@register.filter
def percent(units: float) -> str:
    """Return a place on the axis of a timeline, which has a thousand units, for an attribute."""
    return f"{units / 10:.2f}%"


@register.filter
def unlocalized(number: Any) -> str:
    """Return a number with all its digits for an attribute, in no language; 0 for other values, which JSON may have."""
    return str(number) if isinstance(number, int | float) else "0"


@register.filter
def of(found: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key; "" without one."""
    return found.get(key, "")


@register.filter("start")
def beginning(text: str) -> str:
    """Return the beginning of a text, for a line of its own."""
    return text if len(text) <= 60 else f"{text[:60]}…"


@register.filter
def reindented(text: str) -> str:
    """Return stored JSON on several lines; unchanged if it was cut."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


@register.filter
def long_error(error: str) -> bool:
    """Whether an error says more than its last line."""
    return error.strip() != last_line(error)


@register.simple_tag
def moment(at: datetime | None) -> SafeString:
    """Return a moment: time of day, how long ago, and on hovering the date with its zone."""
    if at is None:
        return SafeString("—")
    said = f'<b class="num">{clock(at)}</b> <span class="ago">{escape(age_text(at))}</span>'
    return _time("moment", at, said)


@register.simple_tag
def clock_time(at: datetime) -> SafeString:
    """Return the time of day alone, the rest on hovering."""
    return _time("num", at, clock(at))


def _time(look: str, at: datetime, said: str) -> SafeString:
    """Return the element of a time, with the date and the zone on hovering.

    It has no template, since a list has hundreds of them.
    """
    full = escape(full_time(at))
    return SafeString(
        f'<time class="{look}" datetime="{at.isoformat()}" title="{full}">{said}</time>'
    )


@register.simple_tag
def countdown(until: datetime | None, remaining: timedelta | None = None) -> SafeString:
    """Return the time left, which the page counts down; for a paused process the fixed remainder."""
    if until is None:
        return _paused_time(remaining)
    left = max(until - timezone.now(), timedelta())
    return _time("countdown num", until, span(left))


@register.simple_tag
def deadline(until: datetime, *, bare: bool = False) -> SafeString:
    """Return the time left until a deadline, and after it the time since. The page switches between them by itself.

    Args:
        until: the time of the deadline.
        bare: whether the word before the time left is omitted, since the page has it above.
    """
    look = "deadline is-overdue" if until <= timezone.now() else "deadline"
    word = "" if bare else escape(_("Deadline in"))
    since = f"{icon('waiting')} {escape(_('Overdue since'))} {clock_time(until)}"
    return SafeString(
        f'<span class="{look}" data-until="{until.isoformat()}"><span class="ahead">{word} {countdown(until)}</span> '
        f'<span class="over c-retry">{since} <span class="soft">{elapsed(until)}</span></span></span>'
    )


def _paused_time(remaining: timedelta | None) -> SafeString:
    if remaining is None:
        return SafeString("")
    text = _("%(time)s left when it goes on") % {
        "time": span(max(remaining, timedelta()))
    }
    return format_html("<span>{}</span>", text)


@register.simple_tag
def elapsed(since: datetime | None, until: datetime | None = None) -> SafeString:
    """Return the time since a moment, which the page counts up, or a span that is over."""
    if since is None:
        return SafeString("—")
    if until is not None:
        return format_html('<span class="num">{}</span>', exact(until - since))
    return _time("elapsed num", since, span(timezone.now() - since))


@register.filter
def value(anything: Any) -> str:
    """Return a value of the data as JSON, cut when it is long."""
    if anything == "" or anything is None:
        return "—"
    text = (
        anything
        if isinstance(anything, str)
        else json.dumps(anything, ensure_ascii=False)
    )
    return text if len(text) <= LONG else f"{text[:LONG]}…"


@register.filter
def body(event: InboxEvent, definition: Definition | None = None) -> Any:
    """Return the body of an event without secrets; the definition is that of its process, if it has one."""
    return event_body(event, definition or None)


@register.filter
def discreet(value: Any, definition: Definition) -> Any:
    """Return JSON values of a process of that definition, without secrets."""
    return mask_fields(value, names_of(definition))


@register.filter
def pretty(anything: Any) -> str:
    """Return a body as indented JSON."""
    return json.dumps(anything, ensure_ascii=False, indent=2)


@register.filter
def as_json(anything: Any) -> str:
    """Return JSON for an attribute; the template escapes it."""
    return json.dumps(anything, ensure_ascii=False, separators=(",", ":"))


@register.simple_tag
def query(filters: Search, **changed: str) -> str:
    """Return the filters as a query string, some of them changed."""
    return filters.address(**changed)


class Sorting(NamedTuple):
    """The sorting of a list by a column.

    Args:
        turned: the parameters of the list in reverse order, or sorted by this column.
        how: "ascending" or "descending"; "" for a list with another sorting.
    """

    turned: str
    how: str = ""


BY_START = {"started": OLDEST, "-started": ""}
"""The names of the orders of that column, which lists of any size have."""


@register.simple_tag
def sorting(filters: Filters, column: str, unsorted: bool) -> Sorting:
    """Return the sorting of a list by a column; `unsorted` if the list is too long for the wanted order."""
    names = {sort: name for name, sort in BY_START.items()}
    sort = "" if unsorted else filters.sort
    up, down = column, f"-{column}"
    how = {up: "ascending", down: "descending"}.get(names.get(sort, sort), "")
    newest_first = how == "ascending" or (not how and column in ("started", "changed"))
    turned = down if newest_first else up
    return Sorting(query(filters, sort=BY_START.get(turned, turned)), how)


@register.simple_tag(takes_context=True)
def with_sub(context: Context, pk: Any = "") -> str:
    """Return the address of the same process's page with this sub-process opened, or with none."""
    given = context["request"].GET
    kept = {name: given[name] for name in BESIDE_SUB if given.get(name)}
    return f"?{urlencode({**kept, 'sub': pk} if pk else kept)}"


@register.simple_tag(takes_context=True)
def subjects_shown(context: Context) -> str:
    """Return the subjects that a page follows besides, for a reader with grants: the definitions that it shows."""
    shown = shown_definitions(context["request"])[:4]
    return "".join(f" definition:{name}" for name in shown)


@register.simple_tag(takes_context=True)
def query_of_shown(context: Context) -> str:
    """Return the parameters of the list for a reader with grants; "" for other readers."""
    shown = shown_definitions(context["request"])[:1]
    return f"?{urlencode({'definition': shown[0]})}" if shown else ""


@register.simple_tag(name="picture")
def diagram(
    drawing: Drawing,
    state: DiagramState,
    label: str,
    linked: bool = False,
    table: str = "",
    second: bool = False,
) -> Svg:
    """Return a diagram as it is now; `second` where the page has another one of the same drawing."""
    return drawing.svg(state, label=label, linked=linked, table=table, named=not second)


@register.simple_tag
def map_picture(page: DefinitionPage, label: str, table: str) -> Svg:
    """Return the map of a definition as it is now; `table` is the id of the table that its groups of steps lead to."""
    return page.drawing.svg(
        page.state,
        label=label,
        linked=True,
        table=table,
        query=page.query,
        layer=page.layer,
    )


@register.simple_tag
def since(at: datetime) -> SafeString:
    """Return the age of a moment in words, which the page counts up."""
    return format_html(
        '<time class="since" datetime="{}">{}</time>', at.isoformat(), age_text(at)
    )


@register.filter
def said(text: str, definition: Definition | None = None) -> str:
    """Return a text of the engine in the reader's language; the definition is that of its process, if it has one."""
    return translate(text, definition or None)


@register.filter
def step_label(step: str, definition: Definition) -> str:
    """Return the label of a step."""
    return labels_of(definition).get(step, step) or "—"


@register.filter
def humps(name: str) -> SafeString:
    """Return a class's name that may be broken where its words begin: "OrderCreated" between r and C."""
    words = re.split(r"(?<=[a-z0-9])(?=[A-Z])", name)
    return format_html_join(mark_safe("<wbr>"), "{}", ((word,) for word in words))


@register.filter
def why(event: InboxEvent) -> str:
    """Return the reason for the verdict of an event."""
    if event.error:
        definition = event.process.definition if event.process else None
        return translate(last_line(event.said), definition)
    words = {
        "parked": _("Its process is not yet in a step that takes it."),
        "unrouted": _("No process has this id or key."),
        "unexpected": _("Its process did not reach a step that takes it."),
        "rejected": _("Its process must not get it in this step."),
        "failed": _("Its handler failed."),
    }
    return words.get(event.verdict, "")


@register.filter
def same_site(address: str | None, request: HttpRequest) -> str:
    """Return the address when it leads to this site, else the console's first page."""
    good = url_has_allowed_host_and_scheme(
        address, {request.get_host()}, request.is_secure()
    )
    return address if good and address else reverse("monitoring:definitions")


@register.simple_tag(takes_context=True)
def the_health(context: Context) -> Health:
    """Return the state of the machinery, read once for a page, and once for all open pages that wait."""
    return context.get("health") or shared_part(context.get("request"), health)


@register.simple_tag
def shown_version() -> str:
    return orchestrator.__version__


@register.inclusion_tag("monitoring/parts/keys.html")
def the_keys() -> dict[str, Any]:
    """Return the effects of the keyboard keys."""
    return {"sheet": SHEET}
