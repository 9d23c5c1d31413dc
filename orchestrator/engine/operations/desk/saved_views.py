"""Save, rename and delete views of a person, or with the permission those of the team.

An action on a view of the team leaves an audit row; an action on a view of a person leaves none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import LONGEST_NAME, Operation, clean_name
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import SavedView
from orchestrator.text import Text

MOST_VIEWS = 100
"""The most views of one person, and of the team."""

TAKEN = Text("There is another view of the name %(name)s")
GONE = Text("this view is not there any more")

LONGEST = Text("Give the view a name of at most %(number)s characters", LONGEST_NAME)


class ViewOperation(Operation):
    """The base of actions on saved views; one permission covers the views of the team."""

    model = SavedView
    may = _("Can save views for the team")
    asks_reason = False
    permitted_as = "share_savedview"

    def _do(
        self,
        request: ActionRequest,
        team: bool,
        carry_out: Callable[[], SavedView],
        **about: int,
    ) -> SavedView:
        """Carries the action out: for the team with a check of the permission and an audit row."""
        if not team:
            with transaction.atomic():
                return carry_out()
        done: list[SavedView] = []

        def carry_out_for_team() -> dict[str, Any]:
            self._check_permission(request)
            done.append(carry_out())
            [view] = done
            after = {"view": view.name, "about": view.about}
            return {"at": database_now(), "after": after}

        action = self._carry_out_once(request, carry_out_for_team, about)
        # The second press of a key gets the name alone: the first has done it.
        return done[0] if done else SavedView(name=(action.after or {}).get("view", ""))


class SaveView(ViewOperation):
    """Saves the parameters of a list's address under a name."""

    name = "save_view"
    label = _("Save this view")
    done = _("Saved.")
    icon = "done"

    def __call__(
        self, name: str, about: Mapping[str, str], team: bool, *, request: ActionRequest
    ) -> SavedView:
        """Save the view; a view that exists with the same parameters stays as it is.

        Args:
            name: of the view.
            about: the parameters.
            team: whether it is a view of the team.
            request: the actor.

        Raises:
            OperationRefused: another view has the name, there are too many views, or the operator lacks the permission.
        """
        name = clean_name(name, LONGEST)
        owner = None if team else request.actor
        view = SavedView(owner=owner, name=name, about=dict(about))
        view.saved_by = request.actor_name
        return self._do(request, team, lambda: _add(view))


class ExistingViewOperation(ViewOperation):
    """The base of actions on an existing view, of the person or of the team."""

    @abstractmethod
    def effect(self, view: SavedView, *given: Any) -> None:
        """Change the locked view, in the running transaction.

        Raises:
            OperationRefused: the view does not allow it.
        """

    def __call__(self, pk: int, *given: Any, request: ActionRequest) -> SavedView:
        """Carry the action out.

        Args:
            pk: the key of the view.
            given: the values of its fields.
            request: the actor, and the revision of the view that the page showed.

        Raises:
            OperationRefused: the view is gone, the page is stale, or the operator lacks the permission.
        """
        known = SavedView.objects.filter(pk=pk).first()
        # A repeated press gets its first answer, even if the view is gone.
        if known is None and not request.actor.has_perm(self.permission):
            raise OperationRefused(GONE)
        owner = None if known is None else known.owner_id
        if owner not in (None, request.actor.pk):
            raise OperationRefused(GONE)

        def carry_out() -> SavedView:
            view = _lock(pk, request.expected_revision)
            self.effect(view, *given)
            return view

        return self._do(request, owner is None, carry_out, view_id=pk)


class RenameView(ExistingViewOperation):
    """Gives a view another name."""

    name = "rename_view"
    label = _("Rename")
    done = _("Renamed.")

    def effect(self, view: SavedView, *given: Any) -> None:
        [name] = given
        view.name = clean_name(name, LONGEST)
        view.revision += 1
        _store(view)


class DeleteView(ExistingViewOperation):
    """Deletes a view; the processes in its list stay as they are."""

    name = "delete_view"
    label = _("Delete the view")
    done = _("Deleted.")

    def effect(self, view: SavedView, *given: Any) -> None:
        view.delete()


def _add(view: SavedView) -> SavedView:
    """Stores a new view; returns the stored view of its name if that has the same parameters.

    Raises:
        OperationRefused: another view has the name, or there are too many.
    """
    others = SavedView.objects.filter(owner=view.owner)
    if known := others.filter(name=view.name).first():
        if known.about != view.about:
            raise OperationRefused(TAKEN.filled(repr(view.name)))
        return known
    if others.count() >= MOST_VIEWS:
        raise OperationRefused(
            "There are %(number)s views already: delete one first", MOST_VIEWS
        )
    return _store(view)


def _lock(pk: int, seen: int | None) -> SavedView:
    """The view, locked.

    Raises:
        OperationRefused: the view is gone.
        StaleRevision: the page showed another revision of it.
    """
    rows = SavedView.objects.select_for_update().filter(pk=pk)
    view: SavedView | None = rows.first()
    if view is None:
        raise OperationRefused(GONE)
    if seen not in (None, view.revision):
        raise StaleRevision(
            Text("Somebody has changed this view meanwhile: look again")
        )
    return view


def _store(view: SavedView) -> SavedView:
    """Stores a view as it is now.

    Raises:
        OperationRefused: another view has its name, perhaps since a moment ago.
    """
    view.changed_at = database_now()
    try:
        with transaction.atomic():
            view.save()
    except IntegrityError:
        raise OperationRefused(TAKEN.filled(repr(view.name))) from None
    return view


save_view = register(SaveView())
rename_view = register(RenameView())
delete_view = register(DeleteView())
