"""The edits of a repair as they are staged: JSON values, read as strictly as all that comes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from orchestrator.definition.codec import check
from orchestrator.exceptions import InvalidMessage, OperationRefused

MOST = 50
"""Edits of one repair."""

MOST_TARGET = 200


class EditKind(models.TextChoices):
    """What an edit does, in words for people. Whatever the order in which they are staged, this is that of a repair."""

    DATA = "data", _("Edit the data")
    """Of a process manager; the value is all of it."""
    MOVE = "move", _("Move to another step")
    """Of a process manager; the target is the step."""
    RETRY = "retry", _("Try again what failed")
    RESULT = "result", _("Edit a result")
    """Of a workflow; the target is the key of the visit, the value is what it gave."""
    SKIP = "skip", _("Skip a step")
    """Of a workflow; the target is the key of the open visit, the value is its result."""
    SKIP_COMMAND = "skip_command", _("Skip a command")
    """Of a process manager; the target is the command's id."""
    REDO = "redo", _("Redo a step")
    """Of a workflow; the target is the step."""
    EVENT = "event", _("Add an event")
    """The target is its type, the value its fields."""


OF_MANAGERS = (EditKind.DATA, EditKind.MOVE, EditKind.SKIP_COMMAND)
OF_WORKFLOWS = (EditKind.RESULT, EditKind.SKIP, EditKind.REDO)
WITH_VALUE = (EditKind.DATA, EditKind.RESULT, EditKind.SKIP, EditKind.EVENT)
WITHOUT_TARGET = (EditKind.DATA, EditKind.RETRY)


@dataclass(frozen=True)
class Edit:
    """One edit; what its target and its value are, its kind says."""

    kind: EditKind
    target: str = ""
    value: Any = None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"edit": str(self.kind)}
        if self.kind not in WITHOUT_TARGET:
            told["target"] = self.target
        if self.kind in WITH_VALUE:
            told["value"] = self.value
        return told

    @property
    def run(self) -> int:
        """The key of the visit that it names; 0, which there is none of, for what is no key."""
        known = self.target.isascii() and self.target.isdecimal()
        return int(self.target[:18]) if known else 0


def read(body: object) -> list[Edit]:
    """Edits from JSON values, in the order in which they are carried out.

    Raises:
        OperationRefused: they are no list of edits, too many, or two of them are of the same thing.
    """
    if not isinstance(body, list) or len(body) > MOST:
        raise OperationRefused("a repair is a list of at most %(number)s edits", MOST)
    try:
        check(body)
    except InvalidMessage as mistake:
        raise OperationRefused(mistake.told) from None
    edits = [_edit(one) for one in body]
    seen: set[tuple[str, str]] = set()
    for edit in edits:
        if edit.kind != EditKind.EVENT and _thing(edit) in seen:
            what = f"{edit.kind} {edit.target}".strip()
            raise OperationRefused("there are two edits of the same: %(what)s", what)
        seen.add(_thing(edit))
    order = list(EditKind)
    return sorted(edits, key=lambda edit: order.index(edit.kind))


def with_one(edits: list[Edit], edit: Edit) -> list[Edit]:
    """The edits with another one, which takes the place of one of the same; an event is one more."""
    if edit.kind == EditKind.EVENT:
        return [*edits, edit]
    others = [one for one in edits if _thing(one) != _thing(edit)]
    return [*others, edit]


def _thing(edit: Edit) -> tuple[str, str]:
    """What an edit is of, however its number is written: a process is moved to one step."""
    target = "" if edit.kind == EditKind.MOVE else edit.run or edit.target
    return str(edit.kind), str(target)


def _edit(body: object) -> Edit:
    if not isinstance(body, Mapping) or body.get("edit") not in EditKind.values:
        known = ", ".join(EditKind.values)
        raise OperationRefused("each edit says what it does: one of %(choices)s", known)
    kind, target = EditKind(body["edit"]), body.get("target", "")
    wanted = {"edit"} | ({"value"} if kind in WITH_VALUE else set())
    wanted |= set() if kind in WITHOUT_TARGET else {"target"}
    if set(body) != wanted:
        fields = ", ".join(sorted(wanted))
        raise OperationRefused("the edit %(name)s is told by %(names)s", kind, fields)
    if not isinstance(target, str) or len(target) > MOST_TARGET:
        raise OperationRefused(
            "the target of %(name)s is a text of at most %(number)s characters",
            kind,
            MOST_TARGET,
        )
    return Edit(kind, target, body.get("value"))
