"""Assign: sets the owner of a process, or removes it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import NO_USER, active_person
from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.process import ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.exceptions import OperationRefused


class AssignProcess(ProcessOperation):
    """Sets the owner of a process: the operator, another person, or none."""

    name = "assign"
    label = _("Assign")
    done = _("Assigned.")
    may = _("Can assign a process")
    text = _("Names the owner of this process. Leave the name empty for no owner.")
    icon = "person"
    rank = 30
    in_bulk = True
    asks_reason = False
    given = (Given("person", "person", _("To whom")),)
    on_whole = True

    def effect(self, press: Press, person: str) -> dict[str, Any]:
        owner = find_person(person)
        change = ProcessChange(press.process, press.cause, press.now)
        change.extra["owner"] = owner.pk if owner else None
        change.write()
        return {"owner": owner.get_username() if owner else ""}


def find_person(person: str) -> AbstractBaseUser | None:
    """Return the active user of a name; None for no name.

    Raises:
        OperationRefused: no active user has the name.
    """
    if not person.strip():
        return None
    found = active_person(person.strip())
    if found is None:
        raise OperationRefused(NO_USER.filled(repr(person.strip())))
    return found


assign = register(AssignProcess())
