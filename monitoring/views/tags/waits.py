"""The buttons beside waits."""

from typing import Any

from django import template
from django.utils.safestring import SafeString

from monitoring.forms.buttons import Button, form_url
from monitoring.lists.waits.wait import Wait
from monitoring.views.tags.acts import buttons_of
from orchestrator.engine.operations import Circumstances, on_processes

register = template.Library()


@register.simple_tag
def acts_on_wait(wait: Wait, user: Any) -> SafeString:
    """Return the buttons of a wait: extend its deadline; escalate its process, or acknowledge that; and assign it."""
    if wait.is_over:
        return SafeString("")
    process = Circumstances(wait.instance)
    wanted = {
        "extend": wait.has_deadline and not wait.is_passing,
        "acknowledge": wait.instance.escalation_level > 0,
        "escalate": wait.instance.escalation_level == 0,
        "assign": True,
    }
    known = on_processes()
    return buttons_of(
        Button(
            known[name],
            f"{name}-{wait.run.pk}",
            form_url(known[name], wait.instance, wait.run),
            known[name].refusal(user, process),
            f"{wait.instance} · {wait.label}",
            revision=wait.instance.revision,
        )
        for name, is_wanted in wanted.items()
        if is_wanted
    )
