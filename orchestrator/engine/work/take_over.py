"""Taking over the unbegun claims and unstored results of a busy worker (see `worker_slice`): others go on with them.

The worker may release them itself at any moment, so each statement takes only those that it still holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection, transaction

from orchestrator.engine.sql.batch import Statement, send
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.work import leases
from orchestrator.engine.work.worker_slice import UnstoredResult
from orchestrator.models import StepRun, StepStatus


def yield_work(
    owner: str, works: Sequence[str], leased_until: datetime | None = None
) -> bool:
    """Make claimed work that has not begun due again: uncharged, and before all other due work.

    Args:
        owner: the boot id of the worker that has claimed it.
        works: the names of the work, all of one kind.
        leased_until: leave rows with a longer lease alone: the worker has claimed them anew.

    Returns:
        Whether the worker still held all of it.
    """
    table = leases.locate(works[0])[0]
    key = table.model._meta.pk
    sets = f"owner = '', attempt = attempt - 1, wake_at = {leases.front(table).sql}"
    if "status" in table.fields:
        sets += f", status = {leases.UNBEGUN['status'].sql}"
    marks = ", ".join(["%s"] * len(works))
    where = f"{connection.ops.quote_name(key.column)} IN ({marks}) AND owner = %s"
    keys = [key.get_db_prep_save(leases.locate(work)[1], connection) for work in works]
    params = [*keys, owner]
    if leased_until is not None:
        where += " AND wake_at <= %s"
        params.append(connection.ops.adapt_datetimefield_value(leased_until))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table.name} SET {sets} WHERE {where}", params)  # noqa: S608  # names are ours
        return bool(cursor.rowcount == len(works))


def store_returned(owner: str, results: Sequence[UnstoredResult]) -> None:
    """Store the results that a living worker holds. Skip rows that it has locked: it is storing those itself.

    To wait for them could be a deadlock, since the two lock their rows in different orders.
    """
    keys = [one.key for one in results]
    with transaction.atomic():
        mine = StepRun.objects.filter(
            pk__in=keys, owner=owner, status=StepStatus.RUNNING
        )
        free = mine.select_for_update(skip_locked=True).values_list("pk", flat=True)
        found = set(free)
        send(result_writes(owner, [one for one in results if one.key in found]))


def result_writes(owner: str, results: Sequence[UnstoredResult]) -> Iterator[Statement]:
    """Yield the updates that store held results; the next worker that claims the visits goes on with them.

    A visit keeps its place: what follows a finished step does not wait for all that became due while it ran.
    """
    place = leases.front(step_runs)
    ready = {"status": StepStatus.READY, "owner": "", "wake_at": place}
    for one in results:
        given = {"result": one.result, "checksum": one.checksum}
        held = {"id": one.key, "owner": owner, "attempt": one.attempt}
        values = {**ready, **given, "attempt": one.attempt - 1}
        yield step_runs.update(values, {**held, "status": StepStatus.RUNNING}, None)
