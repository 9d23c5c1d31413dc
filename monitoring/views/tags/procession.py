"""The tag for the application's own templates."""

from typing import Any

from django import template
from django.template.context import Context
from django.utils.safestring import SafeString

from monitoring.lists.processes.of_object import render_processes, stored_processes_of

register = template.Library()


@register.simple_tag(takes_context=True, name="processes_of")
def object_processes(context: Context, obj: Any) -> SafeString:
    """Return the newest processes of an object as a list of links, for readers who may see them; "" for others."""
    return render_processes(stored_processes_of(obj), context.get("request"))
