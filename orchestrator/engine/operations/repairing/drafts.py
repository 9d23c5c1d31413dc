"""Staged edits: one draft for each person and process. Staging is no action; it has no effect and no audit row."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from orchestrator.definition.codec import MAX_BYTES, canonical
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.repairing.edits import Edit
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.models import ProcessInstance, Repair
from orchestrator.text import Text, storable_text

MOST_PROPOSALS = 20
"""Proposals of one process that are shown."""


def draft_of(instance: ProcessInstance, user: Any) -> Repair | None:
    """The draft or proposal of a person for a process."""
    return Repair.objects.filter(instance=instance, author=user.pk).first()


def proposals_of(instance: ProcessInstance) -> list[Repair]:
    """The proposals for a process, the oldest first."""
    rows = Repair.objects.filter(instance=instance, proposed_at__isnull=False)
    return list(rows.order_by("pk")[:MOST_PROPOSALS])


def begun(instance: ProcessInstance, user: Any) -> Repair:
    """A person's draft, locked; a new one if there is none.

    Raises:
        OperationRefused: it is proposed, and so stays as it is.
    """
    found, _ = Repair.objects.select_for_update().get_or_create(
        instance=instance,
        author_id=user.pk,
        defaults={
            "author_name": str(user)[:150],
            "revision": instance.revision,
            "changed_at": database_now(),
        },
    )
    if found.proposed_at is not None:
        raise OperationRefused(Text("it is proposed: take that back to change it"))
    return found


def keep(draft: Repair, edits: list[Edit]) -> None:
    """Stores what is staged.

    Raises:
        OperationRefused: it is too large.
    """
    body = [edit.to_json() for edit in edits]
    if len(canonical(body).encode()) > MAX_BYTES:
        most = MAX_BYTES // 1024
        raise OperationRefused(
            "a repair has at most %(number)s KiB: apply what is staged", most
        )
    draft.edits, draft.changed_at = body, database_now()
    draft.save(update_fields=["edits", "changed_at"])


def unstage(
    instance: ProcessInstance, user: Any, place: int, changed_at: str = ""
) -> None:
    """Takes one edit out of a person's draft; one that is not there any more is none to take out.

    Args:
        instance: the process.
        user: whose draft it is.
        place: of the edit among those that are staged.
        changed_at: when the draft was changed last, as the page shows it: pressed twice, the place would be that of the
            next edit. "" for the draft as it is now.
    """
    draft = draft_of(instance, user)
    if draft is None or draft.proposed_at is not None:
        return
    if changed_at not in ("", draft.changed_at.isoformat()):
        return
    left = [edit for at, edit in enumerate(draft.edits) if at != place]
    if left:
        same = Repair.objects.filter(pk=draft.pk, edits=draft.edits, proposed_at=None)
        same.update(edits=left, changed_at=database_now())
    else:
        discard(instance, user)


def discard(instance: ProcessInstance, user: Any) -> None:
    """Gives up all that a person has staged, but for what is proposed."""
    rows = Repair.objects.filter(instance=instance, author=user.pk)
    rows.filter(proposed_at=None).delete()


def look_again(instance: ProcessInstance, user: Any, seen: int | None = None) -> None:
    """Takes what is staged as staged for the process as the person has looked at it.

    Args:
        instance: the process.
        user: whose draft it is.
        seen: its revision on their page, which it may have left meanwhile; None for the one it has now.
    """
    revision = instance.revision if seen is None else min(seen, instance.revision)
    rows = Repair.objects.filter(instance=instance, author=user.pk, proposed_at=None)
    rows.update(revision=revision, changed_at=database_now())


def propose(press: Press, edits: list[Edit]) -> Repair:
    """Stores edits as a proposal: from now on they stay as they are.

    Raises:
        OperationRefused: the person has proposed others for this process.
    """
    draft = begun(press.process, press.request.actor)
    draft.edits = [edit.to_json() for edit in edits]
    draft.revision = press.process.revision
    draft.reason = storable_text(press.request.reason)
    draft.proposed_at = draft.changed_at = press.now
    draft.save()
    return draft


def proposal(instance: ProcessInstance, pk: str) -> Repair:
    """A proposal for a process, locked.

    Raises:
        OperationRefused: there is none of that id.
    """
    rows = Repair.objects.filter(instance=instance, proposed_at__isnull=False)
    with suppress(ValueError, Repair.DoesNotExist):
        return rows.select_for_update().get(pk=UUID(str(pk)))
    raise OperationRefused(
        Text("this repair is not there any more: it was applied, declined or changed")
    )


def is_own(row: Repair, user: Any) -> str:
    """Why a person cannot apply a proposal; "" if they can: it is another person's.

    Where the account is gone that proposed it, another one of that name is taken for the same person.
    """
    gone = row.author_id is None
    own = row.author_name == str(user)[:150] if gone else row.author_id == user.pk
    return Text("whoever has proposed a repair does not apply it") if own else ""
