"""Lists of processes under a name: saved, renamed, deleted; for oneself, or with permission for the team.

Of the team's each press leaves an audit row. What somebody keeps for themselves concerns nobody else, and leaves none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import LONGEST_NAME, Operation, checked_name
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import SavedView
from orchestrator.text import Text

MOST_VIEWS = 100
"""Views of one person, and of the team."""

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
        """Carries it out: with permission and an audit row where it is the team's, else for oneself alone."""
        if not team:
            with transaction.atomic():
                return carry_out()
        done: list[SavedView] = []

        def told() -> dict[str, Any]:
            self._check_permission(request)
            done.append(carry_out())
            [view] = done
            after = {"view": view.name, "about": view.about}
            return {"at": database_now(), "after": after}

        action = self._audited(request, told, about)
        # Pressed twice: it was done at the first press.
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
        """Saves it; the same once more changes nothing.

        Args:
            name: what it is called.
            about: the parameters.
            team: whether it is for all.
            request: who wants it.

        Raises:
            OperationRefused: there is another one of that name, there are too many, or the operator may not.
        """
        name = checked_name(name, LONGEST)
        owner = None if team else request.actor

        def carry_out() -> SavedView:
            there = views_of(owner)
            known = there.filter(name=name).first()
            if known is not None and known.about != dict(about):
                raise OperationRefused(TAKEN.filled(repr(name)))
            if known is not None:
                return known
            view = _new(there, owner, name)
            view.about, view.saved_by = dict(about), request.actor_name
            return _stored(view)

        return self._do(request, team, carry_out)


class ExistingViewOperation(ViewOperation):
    """The base of actions on an existing view: a view of the person, or of the team."""

    @abstractmethod
    def effect(self, view: SavedView, *given: Any) -> None:
        """Does it, in the running transaction; the view is locked.

        Raises:
            OperationRefused: it cannot be done.
        """

    def __call__(self, pk: int, *given: Any, request: ActionRequest) -> SavedView:
        """Carries it out.

        Args:
            pk: the view.
            given: what it is told besides.
            request: who wants it, and the revision of the view that the page showed.

        Raises:
            OperationRefused: it is gone, the page is stale, or the operator may not.
        """
        known = SavedView.objects.filter(pk=pk).first()
        # A press that was answered before is answered again, though what it was on may be gone.
        team = known is None or known.owner_id is None
        if known is None and not request.actor.has_perm(self.permission):
            raise OperationRefused(GONE)
        if not team and known is not None and known.owner_id != request.actor.pk:
            raise OperationRefused(GONE)

        def carry_out() -> SavedView:
            view = SavedView.objects.select_for_update().filter(pk=pk).first()
            if view is None:
                raise OperationRefused(GONE)
            if request.expected_revision not in (None, view.revision):
                raise StaleRevision(
                    Text("Somebody has changed this view meanwhile: look again")
                )
            self.effect(view, *given)
            return view

        return self._do(request, team, carry_out, view_id=pk)


class RenameView(ExistingViewOperation):
    """Gives a view another name."""

    name = "rename_view"
    label = _("Rename")
    done = _("Renamed.")

    def effect(self, view: SavedView, *given: Any) -> None:
        [name] = given
        view.name = checked_name(name, LONGEST)
        view.revision += 1
        _stored(view)


class DeleteView(ExistingViewOperation):
    """Deletes a view; the processes in it are not touched."""

    name = "delete_view"
    label = _("Delete the view")
    done = _("Deleted.")

    def effect(self, view: SavedView, *given: Any) -> None:
        view.delete()


def views_of(owner: Any) -> QuerySet[SavedView]:
    """The views of one person; of the team for None."""
    return SavedView.objects.filter(owner=owner)


def _new(there: QuerySet[SavedView], owner: Any, name: str) -> SavedView:
    """One that is not stored yet.

    Raises:
        OperationRefused: there are too many.
    """
    if there.count() >= MOST_VIEWS:
        raise OperationRefused(
            "There are %(number)s views already: delete one first", MOST_VIEWS
        )
    return SavedView(owner=owner, name=name)


def _stored(view: SavedView) -> SavedView:
    """Stores a view as it is now.

    Raises:
        OperationRefused: there is another one of its name, perhaps since a moment ago.
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
