"""The edits of a repair: JSON values, read as strictly as the messages of other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from orchestrator.definition.codec import check_json
from orchestrator.exceptions import InvalidMessage, OperationRefused

MOST = 50
"""The most edits of one repair."""

MOST_TARGET = 200


class EditKind(models.TextChoices):
    """The kinds of edit, in the order in which a repair applies them, with words for people."""

    DATA = "data", _("Edit the data")
    """An edit of a process manager; the value is the new data."""
    MOVE = "move", _("Move to another step")
    """An edit of a process manager; the target is the step."""
    RETRY = "retry", _("Try again what failed")
    RESULT = "result", _("Edit a result")
    """An edit of a workflow; the target is the key of the visit, the value is its new result."""
    SKIP = "skip", _("Skip a step")
    """An edit of a workflow; the target is the key of the open visit, the value is its result."""
    SKIP_COMMAND = "skip_command", _("Skip a command")
    """An edit of a process manager; the target is the command's id."""
    REDO = "redo", _("Redo a step")
    """An edit of a workflow; the target is the step."""
    EVENT = "event", _("Add an event")
    """The target is its type, the value its fields."""


OF_MANAGERS = (EditKind.DATA, EditKind.MOVE, EditKind.SKIP_COMMAND)
OF_WORKFLOWS = (EditKind.RESULT, EditKind.SKIP, EditKind.REDO)
WITH_VALUE = (EditKind.DATA, EditKind.RESULT, EditKind.SKIP, EditKind.EVENT)
WITHOUT_TARGET = (EditKind.DATA, EditKind.RETRY)


@dataclass(frozen=True)
class Edit:
    """One edit; its kind says what the target and the value are."""

    kind: EditKind
    target: str = ""
    value: Any = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"edit": str(self.kind)}
        if self.kind not in WITHOUT_TARGET:
            body["target"] = self.target
        if self.kind in WITH_VALUE:
            body["value"] = self.value
        return body

    @property
    def run(self) -> int:
        """The key of the visit that the target names; 0, which no visit has, if the target is no key."""
        known = self.target.isascii() and self.target.isdecimal()
        return int(self.target[:18]) if known else 0


def read_edits(body: object) -> list[Edit]:
    """Return the edits that a JSON value lists, in the order in which a repair applies them.

    Raises:
        OperationRefused: the value is no list of edits, has too many, or has two edits of the same target.
    """
    if not isinstance(body, list) or len(body) > MOST:
        raise OperationRefused("a repair is a list of at most %(number)s edits", MOST)
    try:
        check_json(body)
    except InvalidMessage as mistake:
        raise OperationRefused(mistake.told) from None
    edits = [_edit(one) for one in body]
    seen: set[tuple[str, str]] = set()
    for edit in edits:
        if edit.kind != EditKind.EVENT and _key(edit) in seen:
            what = f"{edit.kind} {edit.target}".strip()
            raise OperationRefused("there are two edits of the same: %(what)s", what)
        seen.add(_key(edit))
    order = list(EditKind)
    return sorted(edits, key=lambda edit: order.index(edit.kind))


def add_edit(edits: list[Edit], edit: Edit) -> list[Edit]:
    """Return the edits with a further edit, which replaces an edit of the same target; an event replaces none."""
    if edit.kind == EditKind.EVENT:
        return [*edits, edit]
    others = [one for one in edits if _key(one) != _key(edit)]
    return [*others, edit]


def _key(edit: Edit) -> tuple[str, str]:
    """The kind and target; the target of a visit without leading zeros, of a move none: a repair has one move."""
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
