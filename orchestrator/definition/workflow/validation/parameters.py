"""Binding of steps' parameters by name, when a workflow is declared.

Every parameter gets a source, and the type of the source must fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, NoReturn

from orchestrator.definition.annotations import (
    MISSING,
    Unknown,
    agree,
    element_type,
    field_type,
    hints,
    says_nothing,
    takes_none,
    type_text,
    without_none,
)
from orchestrator.definition.codec import encode_as
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.labels import name_of
from orchestrator.definition.refusals import refuse_row
from orchestrator.definition.workflow.context import (
    AsyncStepContext,
    Failure,
    StepContext,
)
from orchestrator.definition.workflow.plan import Binding, Plan, Vertex
from orchestrator.definition.workflow.rows import name as step_name
from orchestrator.definition.workflow.steps import Step
from orchestrator.definition.workflow.validation.certainty import Certainty
from orchestrator.definition.workflow.validation.signatures import (
    FROM_FACTORY,
    Parameter,
    read_signature,
    step_parameters,
)
from orchestrator.exceptions import InvalidMessage


def bind_parameters(definition: str, plan: Plan, form: type[Any]) -> None:
    """Set the bindings of the vertices.

    Args:
        definition: the name of the class, for messages.
        plan: a plan without cycles.
        form: the workflow's Input.

    Raises:
        InvalidDefinition: a parameter has no fitting source; the error names the row, the step and the parameter.
    """
    asked = dict.fromkeys(
        giver
        for vertex in plan.vertices.values()
        for source in _sources(definition, vertex)
        if (giver := plan.giver(source)) is not None
    )
    certainty = Certainty(plan, asked)
    for name in plan.order:
        _Parameters(definition, plan, form, certainty, plan[name]).bind()


def _sources(definition: str, vertex: Vertex) -> Iterator[object]:
    """The possible sources of a vertex's values: names of results, and steps."""
    for parameter in _all_parameters(definition, vertex):
        yield Stored(parameter.name)
    for step in filter(None, (vertex.step, vertex.undo)):
        yield from (value for _, value in step.args)
    yield from (guard.accepts for guard in vertex.step.guards)


def _all_parameters(definition: str, vertex: Vertex) -> Iterator[Parameter]:
    for step in filter(None, (vertex.step, vertex.undo)):
        runs, read = step.function or step.definition, partial(step_parameters, step)
        yield from read_signature(definition, vertex, runs, read)


class _Parameters:
    """Binds the parameters of one vertex."""

    def __init__(
        self,
        definition: str,
        plan: Plan,
        form: type[Any],
        certainty: Certainty,
        vertex: Vertex,
    ) -> None:
        self.definition, self.plan, self.form = definition, plan, form
        self.certainty, self.vertex = certainty, vertex
        self.item = vertex.each.item if vertex.each is not None else ""
        self.undoes = False
        self.args: dict[str, Any] = {}

    def bind(self) -> None:
        step, undo = self.vertex.step, self.vertex.undo
        of = name_of(step.function)
        if step.definition is not None:
            of = f"{name_of(step.definition)}.Input"
        if step.question is not None:
            of = f"about= of {step}"
        self.args = dict(step.args)
        self.vertex.bindings = self._bound(step_parameters(step), of)
        self._check_item(of)
        if step.question is not None:
            self._check_question(of)
        if step.guards:
            self.vertex.guard_bindings = tuple(self._guarded(step))
        if undo is not None:
            if undo.is_call and self.vertex.undo_policy.transactional:
                self._invalid(
                    f"{undo} waits outside and undoes a transactional step, inside the commit: write a plain function"
                )
            self.undoes, self.args = True, dict(undo.args)
            found = self._bound(step_parameters(undo), name_of(undo.function))
            self.vertex.undo_bindings = found

    def _check_question(self, of: str) -> None:
        for binding in self.vertex.bindings:
            giver = self.plan[binding.name] if binding.source == "result" else None
            if giver is not None and giver.each is not None:
                self._invalid(
                    f"{of}: {binding.parameter} has a result for each of its elements; name that of the step after it"
                )

    def _invalid(self, reason: str) -> NoReturn:
        refuse_row(self.definition, self.vertex.row, reason)

    def _guarded(self, step: Step) -> Iterator[Binding]:
        """The sources of values that the event's fields must equal."""
        own = hints(step.event) if step.event is not None else {}
        for guard in step.guards:
            of = f"the guard {guard}"
            if guard.field not in own:
                self._invalid(
                    f"{of}: {name_of(step.event)} has no field {guard.field!r}"
                )
            field = Parameter(guard.field, own[guard.field], MISSING)
            if isinstance(guard.accepts, Stored):
                binding = self._chosen(field, guard.accepts, of)
                self._check(field, binding, of)
                yield binding
                continue
            if not guard.accepts:
                self._invalid(f"{of} accepts nothing")
            for value in guard.accepts:
                self._check_constant(field, value, of)

    def _bound(self, wanted: tuple[Parameter, ...], of: str) -> tuple[Binding, ...]:
        bindings = []
        if unknown := self.args.keys() - {one.name for one in wanted}:
            self._invalid(f"args: {of} has no parameter {min(unknown)!r}")
        for parameter in wanted:
            binding = self._binding(parameter)
            if binding is not None:
                self._check(parameter, binding, of)
                bindings.append(binding)
            elif not parameter.optional:
                self._unbound(parameter, of)
        return tuple(bindings)

    def _binding(self, parameter: Parameter) -> Binding | None:
        """The binding of a parameter; None if nothing has its name."""
        name, annotation = parameter.name, without_none(parameter.annotation)
        if name in self.args:
            return self._chosen(parameter, self.args[name], "args")
        if annotation in (StepContext, AsyncStepContext):
            self._check_context(name, annotation)
            return Binding(name, "context")
        if annotation is Failure:
            return Binding(name, "error")
        if self.item and name == self.item:
            return Binding(name, "item")
        if (found := self._named(parameter, Stored(name))) is not None:
            return found
        return Binding(name, "whole_input") if name == "input" else None

    def _check_context(self, parameter: str, annotation: type[Any]) -> None:
        """Refuse an asynchronous context in a plain function, and a plain one in an asynchronous function."""
        step = self.vertex.undo if self.undoes else self.vertex.step
        function = step.function if step is not None else None
        wanted = AsyncStepContext if iscoroutinefunction(function) else StepContext
        if annotation is not wanted:
            how = "asynchronous" if wanted is AsyncStepContext else "a plain function"
            self._invalid(
                f"{name_of(function)} is {how}: annotate {parameter} with {wanted.__name__}"
            )

    def _named(self, parameter: Parameter, source: object) -> Binding | None:
        """The binding to an earlier result or a field of Input; None without either."""
        if (giver := self._giver(source)) is not None:
            made_anew = parameter.default is FROM_FACTORY
            default = MISSING if made_anew else parameter.default
            return Binding(parameter.name, "result", giver, default)
        if isinstance(source, Stored) and source.field in hints(self.form):
            return Binding(parameter.name, "input", source.field)
        return None

    def _chosen(self, parameter: Parameter, source: Any, of: str) -> Binding:
        """The binding that `args` or a guard declares: a result, a field of Input, or a constant."""
        found = self._named(parameter, source)
        if found is not None:
            return found
        if isinstance(source, Stored):
            self._invalid(
                f"{of}: {parameter.name} is stored({source.field!r}), but no result before {self.vertex.name} and no "
                "field of Input has that name"
            )
        if isinstance(source, Step) or callable(source):
            self._invalid(
                f"{of}: {parameter.name} is that of {step_name(source)}, which does not come before {self.vertex.name}"
            )
        return Binding(parameter.name, "constant", default=source)

    def _giver(self, source: object) -> str | None:
        """The vertex before this one that gives this result."""
        giver, own = self.plan.giver(source), self.vertex.name
        if giver is None or (self.undoes and giver == own):
            return giver
        return giver if self.certainty.can_have(own, giver) else None

    def _unbound(self, parameter: Parameter, of: str) -> NoReturn:
        name = parameter.name
        if name in self.plan.results:
            giver = self.plan.results[name]
            self._invalid(
                f"{of} has a parameter {name}, but {giver}, which gives it, does not come before {self.vertex.name}"
            )
        self._invalid(
            f"{of} has a parameter {name}, but no result and no field of Input has that name"
        )

    def _check(self, parameter: Parameter, binding: Binding, of: str) -> None:
        if binding.source == "error":
            self._check_error(parameter, of)
            return
        if binding.source == "constant":
            self._check_constant(parameter, binding.default, of)
            return
        if binding.source == "result":
            self._check_presence(parameter, binding, of)
        given = self._given(binding)
        if not agree(given, parameter.annotation):
            self._invalid(
                f"{of} wants {parameter.name}: {type_text(parameter.annotation)}, but it gets {type_text(given)}"
            )

    def _check_error(self, parameter: Parameter, of: str) -> None:
        incoming = self.plan.incoming[self.vertex.name]
        if self.undoes or not any(link.exceptional for link in incoming):
            self._invalid(
                f"{of} has a parameter {parameter.name}: Failure, but no catch leads to {self.vertex.name}"
            )

    def _check_constant(self, parameter: Parameter, value: Any, of: str) -> None:
        wanted = parameter.annotation
        try:
            form = Any if says_nothing(wanted) else wanted
            encode_as(form, value, exact=False)  # it is not stored
        except InvalidMessage:
            self._invalid(
                f"{of} wants {parameter.name}: {type_text(wanted)}, which {value!r} is not"
            )

    def _check_presence(self, parameter: Parameter, binding: Binding, of: str) -> None:
        if self.undoes and binding.name == self.vertex.name:
            return
        optional = self.plan[binding.name].step.optional
        if optional and not takes_none(parameter.annotation):
            self._invalid(
                f"{of} needs {parameter.name}, but {binding.name} is optional, and gives None when it has failed: "
                f"write {parameter.name}: {type_text(parameter.annotation)} | None"
            )
        if self.certainty.must_have(self.vertex.name, binding.name):
            return
        if binding.default is MISSING and not takes_none(parameter.annotation):
            self._invalid(
                f"{of} needs {parameter.name}, but {binding.name} may have no result then: "
                f"write {parameter.name}: {type_text(parameter.annotation)} | None, or give it a default"
            )

    def _given(self, binding: Binding) -> Any:
        """The annotation of a binding's value."""
        if binding.source == "result":
            giver = self.plan[binding.name]
            element = self.undoes and giver is self.vertex and giver.each is not None
            return giver.returns if element else giver.result_type
        if binding.source == "input":
            return hints(self.form)[binding.name]
        if binding.source == "whole_input":
            return self.form
        return self._element() if binding.source == "item" else Unknown

    def _element(self) -> Any:
        """The annotation of the elements that a map runs over."""
        over = self.vertex.each.over if self.vertex.each is not None else ""
        (link,) = self.plan.incoming[self.vertex.name]
        given = self.plan[link.source].result_type
        return element_type(field_type(given, over) if over else given)

    def _check_item(self, of: str) -> None:
        if self.item and not any(b.source == "item" for b in self.vertex.bindings):
            self._invalid(
                f"{self.vertex.name} runs for each element, but {of} has no {self.item!r} that gets it"
            )
