"""The buttons beside waits, and work that waits for a worker."""

from typing import Any, cast

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from monitoring.forms.buttons import Button, form_url
from monitoring.lists.waits.wait import Wait
from monitoring.live.sharing import shared_part
from monitoring.probes.machinery import Machinery, machinery
from monitoring.probes.unserved_work import (
    UnservedWork,
    unserved_visit,
    unserved_work_of,
)
from monitoring.views.tags.acts import buttons_of
from orchestrator.engine.operations import Circumstances, on_processes
from orchestrator.models import ProcessInstance, StepRun

register = template.Library()

MACHINERY = "procession_machinery"
"""The attribute of a request with the state of workers and queues."""


@register.simple_tag(takes_context=True)
def the_unserved_work(
    context: Context, process: ProcessInstance
) -> UnservedWork | None:
    """Return the oldest due work of a process that no worker will do; None without any."""
    return unserved_work_of(process, _machinery(context))


@register.simple_tag(takes_context=True)
def the_unserved_visit(context: Context, run: StepRun) -> UnservedWork | None:
    """Return the work of a visit if it is due and no worker will do it."""
    return unserved_visit(run, _machinery(context))


def _machinery(context: Context) -> Machinery:
    """The state of workers and queues, read once for a page or a part of it."""
    if health := context.get("health"):
        return cast(Machinery, health.machinery)
    request = context.get("request")
    kept = vars(request) if request is not None else {}
    if MACHINERY not in kept:
        kept[MACHINERY] = shared_part(request, machinery)
    return cast(Machinery, kept[MACHINERY])


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
