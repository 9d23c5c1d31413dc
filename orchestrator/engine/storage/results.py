"""The arguments of a step's function: results of earlier steps and fields of the input, decoded to their types.

Each reading checks a stored result against its checksum; the step of a result that does not match is redone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet

from orchestrator.containers import group_by_key
from orchestrator.definition.annotations import MISSING, takes_none
from orchestrator.definition.codec import decode, digest, encode_as, limited_digest
from orchestrator.definition.workflow.context import AttemptContext, Failure
from orchestrator.definition.workflow.plan import Binding, Plan, Vertex
from orchestrator.definition.workflow.validation.signatures import (
    FROM_FACTORY,
    step_parameters,
)
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.stored_values import read_stored
from orchestrator.exceptions import CorruptInput, InvalidMessage, Skip
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.models.step_run import SKIPPED_BECAUSE
from orchestrator.text import Text, storable_text

GIVEN = (StepStatus.DONE, StepStatus.SKIPPED)
"""The statuses of visits that have a result."""


class StoredResult(NamedTuple):
    """The columns of a visit that its result is read from: for many elements, models would take twice as long."""

    node: str
    kind: str
    item: int | None
    status: str
    result: Any
    checksum: str
    visit: int
    round: int


RecordedVisit = TypeVar("RecordedVisit", StepRun, StoredResult)


class Results:
    """The results and the input of one process, as one session has read or stored them."""

    def __init__(self, instance: ProcessInstance, plan: Plan) -> None:
        self.instance = instance
        self.plan = plan
        self.read: dict[str, Any] = {}
        """The results that this session has read or stored, as JSON values."""

    def learn(self, step: str, result: Any) -> None:
        """Note a result that this session has just stored, as JSON values."""
        self.read[step] = result

    def read_anew(self) -> None:
        """Forget the results, so that they are read anew: another writer has changed the process."""
        self.read.clear()

    def forget(self) -> None:
        """Forget the results and the input, so that they are read anew."""
        self.read_anew()
        definitions.forget_input(self.instance)

    def arguments(
        self, bindings: Iterable[Binding], run: StepRun, context: AttemptContext | None
    ) -> dict[str, Any]:
        """Return the arguments of a function for one visit.

        Raises:
            CorruptInput: a stored result does not match its checksum.
            UnreadableValue: the running code cannot read a stored value.
        """
        bindings = tuple(bindings)
        self._read(b.name for b in bindings if _is_read(run, b))
        found = {}
        for binding in bindings:
            if _is_read(run, binding) and binding.name not in self.read:
                if binding.default is not FROM_FACTORY:
                    found[binding.parameter] = (
                        None if binding.default is MISSING else binding.default
                    )
            else:
                found[binding.parameter] = self._value(binding, run, context)
        return found

    def _value(
        self, binding: Binding, run: StepRun, context: AttemptContext | None
    ) -> Any:
        match binding.source:
            case "result":
                read = _is_read(run, binding)
                return self.result(binding.name) if read else self._own(run)
            case "input":
                return definitions.input_of(self.instance).field(binding.name)
            case "whole_input":
                return definitions.input_of(self.instance).whole()
            case "context":
                return context
            case "constant":
                return deepcopy(binding.default)
            case "error":
                return self._failure(run.node)
            case "item":
                return self._element(binding, run)

    def result(self, step: str) -> Any:
        """Return the result of a step, as its type; it must have been read before.

        A step that skipped itself without a result has None, whatever its type.
        """
        body = self.read[step]
        if body is None:
            return None
        return decode_result(self.plan[step].result_type, body, step)

    def results(self, steps: Iterable[str]) -> dict[str, Any]:
        """Return the results of the steps that have one, as JSON values."""
        self._read(names := list(steps))
        return {name: self.read[name] for name in names if name in self.read}

    def _element(self, binding: Binding, run: StepRun) -> Any:
        given = step_parameters(self.plan[run.node].step)
        annotation = next(
            (one.annotation for one in given if one.name == binding.parameter), MISSING
        )
        form = Any if annotation is MISSING else annotation
        return read_stored(form, run.element, _element_name(run.node))

    def _own(self, run: StepRun) -> Any:
        """The result of the visit that is undone now: each visit and each element of a map has its own."""
        vertex, rows = self.plan[run.node], self.instance.step_runs
        same = {"node": run.node, "visit": run.visit, "item": run.item}
        done = rows.filter(**same, status__in=GIVEN).exclude(kind=StepKind.UNDO)
        form = vertex.result_type if run.item is None else vertex.returns
        return decode_result(form, check_result(done.latest("round")), run.node)

    def _failure(self, step: str) -> Failure:
        """The failure of the step that led to this one."""
        sources = [
            link.source
            for link in self.plan.incoming[step]
            if link.kind in ("error", "deadline")
        ]
        failed = self.instance.step_runs.filter(
            node__in=sources, status=StepStatus.FAILED, item=None, left__isnull=False
        )
        run = failed.order_by("-left", "-id").first()
        if run is None:
            return Failure("", "", "", 0)
        return decode(Failure, run.result)

    def _read(self, steps: Iterable[str]) -> None:
        missing = [step for step in dict.fromkeys(steps) if not self._knows(step)]
        if not missing:
            return
        rows = StepRun.objects.filter(
            instance=self.instance.pk, node__in=missing, status__in=GIVEN
        )
        rows = rows.exclude(kind__in=[StepKind.UNDO, StepKind.JOIN])
        found = _stored_results(rows.order_by("visit", "round"))
        for step, visits in group_by_key((row.node, row) for row in found).items():
            if (last := last_visit(visits)) is not None:
                self.read[step] = self._whole(self.plan[step], last)

    def _whole(self, vertex: Vertex, rows: list[StoredResult]) -> Any:
        """The result of a step's last visit; for a map the list of its elements' results."""
        if vertex.each is None:
            return check_result(rows[0])
        none = takes_none(vertex.returns)
        return [check_result(row) for row in rows if none or not _has_none(row)]

    def _knows(self, step: str) -> bool:
        """Whether the session has a step's last result: a map in a loop may have another by now."""
        vertex = self.plan[step]
        again = vertex.each is not None and vertex.loop is not None
        return step in self.read and not again


def element_results(
    instance: ProcessInstance, vertex: Vertex, visit: int, stored: str = ""
) -> dict[int, Any]:
    """Return the stored results of a map's elements, as their type, by the elements' numbers.

    Args:
        instance: the process.
        vertex: the map.
        visit: the number of its visit.
        stored: the name of the map in its rows, if that is another one.

    Raises:
        CorruptInput: a result does not match its checksum.
        UnreadableValue: the running code cannot read a result.
    """
    rows = instance.step_runs.filter(
        node=stored or vertex.name,
        visit=visit,
        kind=StepKind.ITEM,
        status__in=GIVEN,
        redo=False,
    )
    none = takes_none(vertex.returns)
    return {
        row.item or 0: decode_result(vertex.returns, check_result(row), vertex.name)
        for row in _stored_results(rows)
        if none or not _has_none(row)
    }


def decode_result(form: Any, body: Any, step: str) -> Any:
    """Return the stored result of a step as its type.

    Raises:
        UnreadableValue: the running code cannot read it.
    """
    return read_stored(form, body, _result_name(step))


# Each call of a function needs these names, and composing one takes longer than reading a small value.


@lru_cache(maxsize=1024)
def _result_name(step: str) -> Text:
    return Text("the result of %(step)s", step)


@lru_cache(maxsize=1024)
def _element_name(step: str) -> Text:
    return Text("the element of %(step)s", step)


def _is_read(run: StepRun, binding: Binding) -> bool:
    """Whether a parameter gets a step's current result, and not the result of the visit that is undone."""
    undoes = run.kind == StepKind.UNDO and binding.name == run.node
    return binding.source == "result" and not undoes


def _has_none(row: StoredResult) -> bool:
    """Whether an element skipped itself without a result."""
    return row.status == StepStatus.SKIPPED and row.result is None


def _stored_results(rows: QuerySet[StepRun]) -> list[StoredResult]:
    return [StoredResult(*row) for row in rows.values_list(*StoredResult._fields)]


def last_visit(rows: Iterable[RecordedVisit]) -> list[RecordedVisit] | None:
    """Return the rows of a step's current result: the last round of its last visit; for a map that of each element.

    Args:
        rows: the step's rows with a result, in the order of visits and rounds. A done map has a row for the whole map
            among them; the elements of other maps do not count.

    Returns:
        The rows; None when the step has no result.
    """
    last: RecordedVisit | None = None
    elements: dict[int, dict[int, RecordedVisit]] = defaultdict(dict)
    for row in rows:
        if row.item is None:
            last = row
        else:
            elements[row.visit][row.item] = row
    if last is None:
        return None
    if last.kind != StepKind.MAP:
        return [last]
    return [row for _, row in sorted(elements[last.visit].items())]


def seal_result(body: Any) -> dict[str, Any]:
    """Return the columns in which a visit's result is stored: its JSON values, and their checksum."""
    return {"result": body, "checksum": limited_digest(body)}


def result_columns(run: StepRun, annotation: Any, result: Any) -> dict[str, Any]:
    """Return the columns in which the result of a visit's function is stored.

    Raises:
        InvalidMessage: the result is not of the declared type, or cannot be stored.
    """
    try:
        exact = run.kind != StepKind.UNDO  # nothing reads what an undo returns
        return seal_result(encode_as(annotation, result, exact=exact))
    except InvalidMessage as bad:
        told = Text("the result of %(step)s: %(why)s", run.node, bad)
        raise InvalidMessage(
            told, alike=str(told.filled(run.node, bad.alike))
        ) from None


CALLED = (StepKind.STEP, StepKind.ITEM)
"""The kinds of visits that call a function of the application for their result."""


def has_returned(run: StepRun) -> bool:
    """Whether the function of an open visit has returned, and only what follows its result is to be decided."""
    return bool(run.checksum) and run.kind in CALLED and is_intact(run)


def returned_result(run: StepRun, vertex: Vertex) -> Any:
    """Return the result that the function of an open visit has returned, as its type.

    Raises:
        Skip: the function has skipped its step, with that result.
        UnreadableValue: the running code cannot read it.
    """
    why = run.skipped_because
    if why is not None and run.result is None:
        raise Skip(why)
    result = decode_result(vertex.returns, run.result, run.node)
    if why is not None:
        raise Skip(why, result)
    return result


def keep_result(
    run: StepRun, given: Mapping[str, Any], skipped: str | None = None
) -> None:
    """Note with an open visit the columns of the result that its function has returned.

    Args:
        run: the visit.
        given: the columns.
        skipped: why the function has skipped its step; None if it has not.
    """
    if run.kind in CALLED:
        run.result, run.checksum = given["result"], given["checksum"]
        _note_skip(run, skipped)


def drop_result(run: StepRun) -> None:
    """Forget the result of an open visit, so that its function is called again."""
    run.result, run.checksum = None, ""
    _note_skip(run, None)


def _note_skip(run: StepRun, why: str | None) -> None:
    """Note with an open visit why it skipped itself; for None that it did not."""
    if why is None and run.skipped_because is None:
        return
    noted = {} if why is None else {SKIPPED_BECAUSE: storable_text(why)}
    shown = run.progress or {}
    kept = {name: shown[name] for name in shown if name != SKIPPED_BECAUSE}
    run.progress = kept | noted


def returned_columns(run: StepRun) -> dict[str, Any]:
    """Return the columns of the result of an open visit, or of none if its function has not returned."""
    found = {"result": run.result, "checksum": run.checksum}
    if run.kind in CALLED and run.progress is not None:
        found["progress"] = run.progress
    return found


def is_intact(run: StepRun | StoredResult) -> bool:
    """Whether a stored result matches its checksum."""
    return digest(run.result) == run.checksum


def check_result(run: StepRun | StoredResult) -> Any:
    """Return a stored result.

    Raises:
        CorruptInput: the result does not match its checksum.
    """
    if not is_intact(run):
        raise CorruptInput(
            run.node,
            Text("the stored result of %(step)s does not match its checksum", run.node),
        )
    return run.result
