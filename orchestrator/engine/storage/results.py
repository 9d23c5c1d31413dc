"""What a step's function is called with: results of earlier steps and fields of the input, read as their types.

A stored result is checked against its checksum whenever it is read; one that does not match is not used, and the step
that gave it is redone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from orchestrator.collecting import group_by_key
from orchestrator.definition.codec import decode, digest, encode_as, seal
from orchestrator.definition.typing import MISSING, takes_none
from orchestrator.definition.workflow.context import AttemptContext, Failure
from orchestrator.definition.workflow.plan import Binding, Plan, Vertex
from orchestrator.definition.workflow.signatures import FROM_FACTORY, taken
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import CorruptInput, InvalidMessage
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.text import Text

GIVEN = (StepStatus.DONE, StepStatus.SKIPPED)
"""Visits that have a result."""


class Results:
    """The values of one process, as one session has read them; it need not read again what it has read or made."""

    def __init__(self, instance: ProcessInstance, plan: Plan) -> None:
        self.instance = instance
        self.plan = plan
        self.read: dict[str, Any] = {}
        """What has been read or made here, as JSON values."""

    def learn(self, step: str, result: Any) -> None:
        """Notes a result that this session has just stored, as JSON values."""
        self.read[step] = result

    def read_anew(self) -> None:
        """Reads the results anew: somebody else has written to the process."""
        self.read.clear()

    def forget(self) -> None:
        """Reads everything anew."""
        self.read_anew()
        definitions.read_again(self.instance)

    def arguments(
        self, bindings: Iterable[Binding], run: StepRun, context: AttemptContext | None
    ) -> dict[str, Any]:
        """The arguments of a function for one visit.

        Raises:
            CorruptInput: a stored result does not match its checksum.
            InvalidMessage: a stored value does not have the declared form.
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
        """The result of a step that has one, as its type; it must have been read before.

        A step that passed itself over without a result has None, whatever its type.
        """
        body = self.read[step]
        return None if body is None else decode(self.plan[step].result_type, body)

    def results(self, steps: Iterable[str]) -> dict[str, Any]:
        """The results of those of the steps that have one, as JSON values."""
        self._read(names := list(steps))
        return {name: self.read[name] for name in names if name in self.read}

    def _element(self, binding: Binding, run: StepRun) -> Any:
        hints = {one.name: one.annotation for one in taken(self.plan[run.node].step)}
        annotation = hints.get(binding.parameter, MISSING)
        return decode(Any if annotation is MISSING else annotation, run.element)

    def _own(self, run: StepRun) -> Any:
        """What the visit gave that is undone now: of several visits and of a map's elements each has its own."""
        vertex, rows = self.plan[run.node], self.instance.step_runs
        same = {"node": run.node, "visit": run.visit, "item": run.item}
        done = rows.filter(**same, status__in=GIVEN).exclude(kind=StepKind.UNDO)
        form = vertex.result_type if run.item is None else vertex.returns
        return decode(form, sound(done.latest("round")))

    def _failure(self, step: str) -> Failure:
        """How the step failed that led to this one."""
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
        found = rows.order_by("visit", "round").only(*READ)
        for step, visits in group_by_key((row.node, row) for row in found).items():
            if (last := last_visit(visits)) is not None:
                self.read[step] = self._whole(self.plan[step], last)

    def _whole(self, vertex: Vertex, rows: list[StepRun]) -> Any:
        """The result of a step: that of its last visit, or of a map the list of its elements' results."""
        if vertex.each is None:
            return sound(rows[0])
        none = takes_none(vertex.returns)
        return [sound(row) for row in rows if none or not _has_none(row)]

    def _knows(self, step: str) -> bool:
        """Whether a result was read or made here, and is still the last: in a loop a map may have another by now."""
        vertex = self.plan[step]
        again = vertex.each is not None and vertex.loop is not None
        return step in self.read and not again


def element_results(
    instance: ProcessInstance, vertex: Vertex, visit: int, stored: str = ""
) -> dict[int, Any]:
    """The results of a map's elements that are stored, as their type, by the elements' numbers.

    Args:
        instance: the process.
        vertex: the map.
        visit: the number of its visit.
        stored: under which name its rows are stored, where that is another one.

    Raises:
        CorruptInput: one is not what was stored.
        InvalidMessage: one does not have the declared form.
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
        row.item or 0: decode(vertex.returns, sound(row))
        for row in rows.only(*READ)
        if none or not _has_none(row)
    }


def _is_read(run: StepRun, binding: Binding) -> bool:
    """Whether a parameter gets what counts as a step's result now, and not the one result that is undone."""
    undoes = run.kind == StepKind.UNDO and binding.name == run.node
    return binding.source == "result" and not undoes


def _has_none(row: StepRun) -> bool:
    """Whether an element passed itself over without a result."""
    return row.status == StepStatus.SKIPPED and row.result is None


READ = (
    "node",
    "kind",
    "item",
    "status",
    "result",
    "checksum",
    "visit",
    "round",
    "instance_id",
)


def last_visit(rows: Iterable[StepRun]) -> list[StepRun] | None:
    """What counts of one step's rows with a result: the last round of its last visit; of a map that of each element.

    Args:
        rows: in the order of visits and rounds. Of a map the row that stands for all of it is among them once it is
            done: elements whose map was not done are nobody's result.

    Returns:
        None when the step has no result.
    """
    last: StepRun | None = None
    elements: dict[int, dict[int, StepRun]] = defaultdict(dict)
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


def sealed(body: Any) -> dict[str, Any]:
    """The columns in which a visit's result is stored: its JSON values, and the checksum that readers ask for."""
    return {"result": body, "checksum": seal(body)}


def result_columns(run: StepRun, annotation: Any, result: Any) -> dict[str, Any]:
    """The columns in which the result of a visit's function is stored.

    Raises:
        InvalidMessage: it is not of the declared type, or cannot be stored.
    """
    try:
        return sealed(encode_as(annotation, result))
    except InvalidMessage as bad:
        raise InvalidMessage(
            Text("the result of %(step)s: %(why)s", run.node, bad)
        ) from None


def intact(run: StepRun) -> bool:
    """Whether a stored result is what was stored."""
    return digest(run.result) == run.checksum


def sound(run: StepRun) -> Any:
    """A stored result, if it is what was stored.

    Raises:
        CorruptInput: it does not match its checksum.
    """
    if not intact(run):
        raise CorruptInput(
            run.node, f"the stored result of {run.node} does not match its checksum"
        )
    return run.result
