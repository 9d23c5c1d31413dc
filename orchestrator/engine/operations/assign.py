"""Assign: a process gets an owner, or none."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import active_person
from orchestrator.engine.operations.base import Given, Press, ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.exceptions import OperationRefused


class AssignProcess(ProcessOperation):
    """Sets the owner of a process: the operator, another person, or none."""

    name = "assign"
    label = _("Assign")
    done = _("Assigned.")
    may = _("Can assign a process")
    text = _("Names who sees to this process. Leave the name empty for nobody.")
    icon = "person"
    rank = 30
    in_bulk = True
    asks_reason = False
    given = (Given("person", "person", _("To whom")),)
    on_whole = True

    def effect(self, press: Press, person: str) -> dict[str, Any]:
        owner = named(person)
        change = ProcessChange(press.process, press.cause, press.now)
        change.also["owner"] = owner.pk if owner else None
        change.write()
        return {"owner": owner.get_username() if owner else ""}


def named(person: str) -> AbstractBaseUser | None:
    """The active user of that name; None for no name.

    Raises:
        OperationRefused: there is none.
    """
    if not person.strip():
        return None
    found = active_person(person.strip())
    if found is None:
        raise OperationRefused(
            "there is nobody with the name %(who)s", repr(person.strip())
        )
    return found


assign = register(AssignProcess())
