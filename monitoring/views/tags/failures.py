"""Tags of the pages of failures."""

import json
from typing import Any
from urllib.parse import urlencode

from django.template import Library
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from monitoring.base.charts import SMALL, area
from monitoring.base.masking import command_body, event_body
from monitoring.base.row_addresses import NO_CAUSE
from monitoring.base.translation import translate
from monitoring.lists.failures.failure_group import common_words
from monitoring.lists.failures.trends import Trend
from orchestrator.models import Definition, Incident

register = Library()

LONG = 4_000
"""Characters of a body that are shown."""


@register.simple_tag
def failures_query(definition: str, **given: Any) -> str:
    """Return the parameters of the list of failures; "?" when there are none."""
    named = {"definition": definition, **given}
    return f"?{urlencode({name: value for name, value in named.items() if value})}"


@register.simple_tag
def cause_address(fingerprint: str) -> str:
    """Return the address of the failures of one cause."""
    return reverse("monitoring:failure-group", args=[fingerprint or NO_CAUSE])


@register.simple_tag
def in_common(messages: list[str], definition: Definition | None) -> str:
    """Return the common part of the messages of one cause, in the reader's language."""
    return common_words([translate(message, definition) for message in messages])


@register.filter
def body_of(incident: Incident) -> str:
    """Return the body of the failed command or event as JSON, without secrets and cut; "" for a step."""
    definition = incident.instance.definition if incident.instance else None
    if incident.command:
        body = command_body(incident.command, definition)
    elif incident.event:
        body = event_body(incident.event, definition)
    else:
        return ""
    text = json.dumps(body, ensure_ascii=False, indent=2)
    return text if len(text) <= LONG else f"{text[:LONG]}…"


@register.filter
def dotted(name: str) -> SafeString:
    """Return a dotted name that may be broken before its dots."""
    return format_html_join(
        mark_safe("<wbr>."), "{}", ((part,) for part in name.split("."))
    )


@register.inclusion_tag("monitoring/failures/trend.html")
def trend(of_group: Trend) -> dict[str, Any]:
    """Return the newest failures of a group over time, as a line."""
    number = of_group.number
    if of_group.by_day:
        said = ngettext(
            "The newest failure, in the last 14 days",
            "The newest %(number)s failures by day, in the last 14 days",
            number,
        )
    else:
        said = ngettext(
            "The newest failure, in the last 24 hours",
            "The newest %(number)s failures by hour, in the last 24 hours",
            number,
        )
    return {
        "said": said % {"number": number},
        "width": SMALL[0],
        "height": SMALL[1],
        "failed": area(of_group.each, *SMALL),
    }
