"""Staged edits: one draft for each person and process. Staging is no action: it leaves no audit row."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from orchestrator.definition.codec import MAX_BYTES, canonical_json
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.repairing.edits import Edit
from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.models import ProcessInstance, Repair
from orchestrator.text import Text, storable_text

MOST_PROPOSALS = 20
"""Proposals of one process on its page."""


def draft_of(instance: ProcessInstance, user: Any) -> Repair | None:
    """Return the draft or proposal of a person for a process."""
    return Repair.objects.filter(instance=instance, author=user.pk).first()


def proposals_of(instance: ProcessInstance) -> list[Repair]:
    """Return the proposals for a process, the oldest first."""
    rows = Repair.objects.filter(instance=instance, proposed_at__isnull=False)
    return list(rows.order_by("pk")[:MOST_PROPOSALS])


def lock_draft(instance: ProcessInstance, user: Any) -> Repair:
    """Return a person's draft, locked; a new draft if there is none.

    Raises:
        OperationRefused: the person has proposed it; a proposal stays as it is.
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


def store_draft(draft: Repair, edits: list[Edit]) -> None:
    """Store the edits of a draft.

    Raises:
        OperationRefused: the edits are too large.
    """
    body = [edit.to_json() for edit in edits]
    if len(canonical_json(body).encode()) > MAX_BYTES:
        most = MAX_BYTES // 1024
        raise OperationRefused(
            "a repair has at most %(number)s KiB: apply what is staged", most
        )
    draft.edits, draft.changed_at = body, database_now()
    draft.save(update_fields=["edits", "changed_at"])


def unstage(
    instance: ProcessInstance, user: Any, place: int, changed_at: str = ""
) -> None:
    """Remove one edit from a person's draft, if the draft has it.

    Args:
        instance: the process.
        user: the author of the draft.
        place: of the edit among the staged edits.
        changed_at: the time of the last change that the page shows; after another change the place may be that of
            another edit. "" for the present draft.
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
        discard_draft(instance, user)


def discard_draft(instance: ProcessInstance, user: Any) -> None:
    """Delete a person's draft; a proposal stays."""
    rows = Repair.objects.filter(instance=instance, author=user.pk)
    rows.filter(proposed_at=None).delete()


def look_again(instance: ProcessInstance, user: Any, seen: int | None = None) -> None:
    """Set the revision of a draft to the one that its author has looked at.

    Args:
        instance: the process.
        user: the author of the draft.
        seen: the revision of the process on the author's page; None for its present revision.
    """
    revision = instance.revision if seen is None else min(seen, instance.revision)
    rows = Repair.objects.filter(instance=instance, author=user.pk, proposed_at=None)
    rows.update(revision=revision, changed_at=database_now())


def store_proposal(press: Press, edits: list[Edit]) -> Repair:
    """Store edits as a proposal, which stays as it is.

    Raises:
        OperationRefused: the person has another proposal for this process.
    """
    draft = lock_draft(press.process, press.request.actor)
    draft.edits = [edit.to_json() for edit in edits]
    draft.revision = press.process.revision
    draft.reason = storable_text(press.request.reason)
    draft.proposed_at = draft.changed_at = press.now
    draft.save()
    return draft


def lock_proposal(instance: ProcessInstance, pk: str) -> Repair:
    """Return a proposal for a process, locked.

    Raises:
        OperationRefused: no proposal has that id.
    """
    rows = Repair.objects.filter(instance=instance, proposed_at__isnull=False)
    with suppress(ValueError, Repair.DoesNotExist):
        return rows.select_for_update().get(pk=UUID(str(pk)))
    raise OperationRefused(
        Text("this repair is not there any more: it was applied, declined or changed")
    )


OWN_REPAIR = Text(
    "the person who has proposed a repair does not apply it",
    was="whoever has proposed a repair does not apply it",
)


def approval_refusal(row: Repair, user: Any) -> str:
    """Return why a person cannot apply a proposal: it is their own; "" if they can.

    If the author's account is gone, a person with the author's name counts as the author.
    """
    gone = row.author_id is None
    own = row.author_name == str(user)[:150] if gone else row.author_id == user.pk
    return OWN_REPAIR if own else ""
