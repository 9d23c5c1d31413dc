"""Taking over what a busy worker holds beside the work that it is at (see `held`), for others to go on with.

The worker may give it up by itself at any moment, so each statement takes only what is still held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from orchestrator.engine.claims import leases
from orchestrator.engine.claims.held import UnstoredResult
from orchestrator.engine.storage.batch import NOW, Statement, database_now, send
from orchestrator.engine.storage.table import Table
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import StepRun, StepStatus


def unbegun(
    queue: str, owner: str, works: Sequence[str], leased_until: datetime | None = None
) -> bool:
    """Makes work due again that was claimed and not begun: uncharged, and as early as what is due first.

    Args:
        queue: whose work it is.
        owner: the boot id of the worker that has claimed it.
        works: its names, all of one kind.
        leased_until: what is leased for longer is left alone: the worker has claimed it anew.

    Returns:
        Whether all of it was still held.
    """
    table = leases.named(works[0])[0]
    key = table.model._meta.pk
    first, before = _front(table)
    sets = f"owner = '', attempt = attempt - 1, wake_at = {first}"
    if "status" in table.fields:
        sets += f", status = {leases.UNBEGUN['status'].sql}"
    marks = ", ".join(["%s"] * len(works))
    where = f"{connection.ops.quote_name(key.column)} IN ({marks}) AND owner = %s"
    keys = [key.get_db_prep_save(leases.named(work)[1], connection) for work in works]
    params = [*before, queue, *keys, owner]
    if leased_until is not None:
        where += " AND wake_at <= %s"
        params.append(connection.ops.adapt_datetimefield_value(leased_until))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table.name} SET {sets} WHERE {where}", params)  # noqa: S608  # names are ours
        return bool(cursor.rowcount == len(works))


def _front(table: Table[Any]) -> tuple[str, list[object]]:
    """The moment of what has been due for longest, at the latest now, with the parameters before the queue's name."""
    first = f"(SELECT MIN(due.wake_at) FROM {table.name} AS due WHERE due.queue = %s AND due.wake_at IS NOT NULL)"  # noqa: S608  # names are ours
    if connection.vendor == "postgresql":
        return f"LEAST({NOW}, {first})", []
    now = connection.ops.adapt_datetimefield_value(database_now())
    return f"MIN(%s, {first})", [now]


def store_returned(owner: str, results: Sequence[UnstoredResult]) -> None:
    """Stores results that a living worker holds, but for those whose rows it has locked: it is storing them itself.

    Waiting for it would have each of the two wait for the other, whose rows are locked in another order.
    """
    keys = [one.key for one in results]
    with transaction.atomic():
        mine = StepRun.objects.filter(
            pk__in=keys, owner=owner, status=StepStatus.RUNNING
        )
        free = mine.select_for_update(skip_locked=True).values_list("pk", flat=True)
        found = set(free)
        send(returned(owner, [one for one in results if one.key in found]))


def returned(owner: str, results: Sequence[UnstoredResult]) -> Iterator[Statement]:
    """Stores results that are held; whoever claims their visits next goes on with them."""
    if not results:
        return
    ready = {"status": StepStatus.READY, "owner": "", "wake_at": database_now()}
    for one in results:
        given = {"result": one.result, "checksum": one.checksum}
        held = {"id": one.key, "owner": owner, "attempt": one.attempt}
        values = {**ready, **given, "attempt": one.attempt - 1}
        yield step_runs.update(values, {**held, "status": StepStatus.RUNNING}, None)
