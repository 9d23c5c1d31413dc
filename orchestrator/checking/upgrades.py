"""Findings before a deploy: stored processes and messages with which the running code cannot go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.db.models import Count, Q, QuerySet

from orchestrator import registry
from orchestrator.checking.renamed_graphs import is_renamed, with_current_names
from orchestrator.checking.stored_values import (
    KEEP_TYPE,
    Finding,
    commands_that_wait,
    events_that_wait,
    newest,
    results_of,
    unreadable_results,
    unreadable_values,
)
from orchestrator.containers import group_by_key
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.codec import decode, encode
from orchestrator.definition.declarations.message_forms import decode_message
from orchestrator.definition.graph import Graph
from orchestrator.definition.workflow.plan import Plan
from orchestrator.models import (
    Definition,
    InboxEvent,
    ProcessInstance,
    StepRun,
)

SAMPLED = 200
"""The newest processes of a version whose graphs are made again from their input."""


def upgrade_findings() -> Iterator[Finding]:
    """Yield what the running code changes for live processes and waiting messages, read from the default database."""
    yield from gone_definitions()
    made = dict[registry.DefinitionClass, Definition]()
    for row, number in _stored_definitions():
        if known := registry.definitions.get((row.name, row.version)):
            made[known] = row
            yield from _in_definition(row, number, known)
    for known, row in made.items():
        if issubclass(known, Workflow) and known.static is None and row.is_workflow:
            yield from _in_made_graphs(row, known)
    yield from events_that_wait()
    yield from commands_that_wait()


def gone_definitions() -> Iterator[Finding]:
    """Yield the definitions, and versions of them, that the running code lacks while processes live on them."""
    numbers = Counter[tuple[str, int]]()
    for row, number in _stored_definitions():
        numbers[row.name, row.version] += number
    for (name, version), number in numbers.items():
        if (name, version) not in registry.definitions:
            yield _gone(name, version, number)


def _stored_definitions() -> Iterator[tuple[Definition, int]]:
    """The stored definitions with live processes, and their number."""
    live = ProcessInstance.objects.live().order_by()
    counts = live.values("definition").annotate(number=Count("pk"))
    numbers = {one["definition"]: one["number"] for one in counts}
    used = Definition.objects.filter(pk__in=live.values("definition"))
    for row in used.order_by("name", "version", "pk").iterator():
        yield row, numbers.get(row.pk, 0)


def _in_definition(
    row: Definition, number: int, known: registry.DefinitionClass
) -> Iterator[Finding]:
    """The findings about the live processes of one stored definition."""
    if issubclass(known, Workflow) != row.is_workflow:
        yield Finding(
            f"{row} was a {row.get_kind_display()} and is none now. Live processes: {number}",
            "Give the new definition another name.",
        )
        return
    live = ProcessInstance.objects.live().filter(definition=row)
    if issubclass(known, ProcessManager):
        yield from _in_graph(row, known.graph(), live)
        yield from _in_deadlines(row, known, live)
        yield from unreadable_values(
            f"{row}: Data",
            newest(live, "data"),
            lambda data: decode(known.Data, data),
            "Give a new field a default, or write a version with migrates_from(..., data=...).",
        )
        yield from _in_keys(row, known, live)
    elif known.static is not None:
        yield from _in_workflow(row, known, known.static, live)


def _gone(name: str, version: int, number: int) -> Finding:
    """The finding about a definition, or a version of it, that the running code lacks."""
    others = [known for one, known in registry.definitions if one == name]
    if not others:
        return Finding(
            f"{name} is gone. Live processes: {number}",
            "Keep its class until they have ended, or cancel them.",
        )
    return Finding(
        f"{name} version {version} is gone. Live processes: {number}",
        f"Keep its class beside version {max(others)}, or migrate them before the deploy.",
    )


def _in_graph(
    row: Definition, graph: Graph, live: QuerySet[ProcessInstance]
) -> Iterator[Finding]:
    """The findings about changed rows under one version: what stands in a step that is gone, and any other change."""
    if row.fingerprint == graph.fingerprint() or is_renamed(
        row.graph, graph.fingerprint()
    ):
        return
    names = {node.id for node in graph.nodes}
    open_visits = StepRun.objects.filter(instance__in=live, finished_at=None)
    standing = open_visits.exclude(node__in=names).order_by().values("node")
    for one in standing.annotate(number=Count("instance", distinct=True)):
        yield Finding(
            f"{row}: the step {one['node']} is gone. Live processes in it: {one['number']}",
            "Keep the step, or take them on by Migrate or Repair before the deploy.",
        )
    stored = Graph.from_json(with_current_names(row.graph))
    for step, before, now in _changed_deadlines(stored, graph):
        yield Finding(
            f"{row}: the deadlines of {step} were {before or 'none'} and are {now or 'none'} now",
            "Raise the version. Processes that stand in the step keep the moment that they have.",
        )
    yield Finding(
        f"{row} has changed under its version: {', '.join(_differences(stored, graph))}",
        "Raise the version and keep the old class until its processes have ended.",
    )


def _changed_deadlines(old: Graph, new: Graph) -> Iterator[tuple[str, str, str]]:
    before, now = _deadlines(old), _deadlines(new)
    known = {node.id for node in old.nodes}
    for node in new.nodes:
        if node.id in known and before.get(node.id) != now.get(node.id):
            yield (
                node.id,
                ", ".join(before.get(node.id, ())),
                ", ".join(now.get(node.id, ())),
            )


def _deadlines(graph: Graph) -> dict[str, list[str]]:
    """The deadlines of each step, as the picture has them."""
    timed = (edge for edge in graph.edges if edge.kind == "deadline")
    return group_by_key((edge.source, edge.event or edge.guard) for edge in timed)


def _differences(old: Graph, new: Graph) -> list[str]:
    """The parts in which two graphs differ, the first few by name."""
    found: list[str] = []
    for noun, part in (("step", "nodes"), ("row", "edges"), ("row", "dispositions")):
        before, now = _unnumbered(old, part), _unnumbered(new, part)
        found += [f"{noun} {_label(one)} is gone" for one in before if one not in now]
        found += [f"{noun} {_label(one)} is new" for one in now if one not in before]
    return [*found[:6], f"and {len(found) - 6} more"] if len(found) > 6 else found


def _unnumbered(graph: Graph, part: str) -> list[Any]:
    """The parts of a graph; edges without their number, which a row before them changes."""
    parts = getattr(graph, part)
    return [replace(one, id="") for one in parts] if part == "edges" else list(parts)


def _label(part: Any) -> str:
    if hasattr(part, "source"):
        return f"{part.source} -> {part.target} ({part.event or part.kind})"
    return str(getattr(part, "id", "") or f"{part.step} {part.kind} {part.event}")


def _in_deadlines(
    row: Definition, known: type[ProcessManager], live: QuerySet[ProcessInstance]
) -> Iterator[Finding]:
    """The findings about visits that wait for a deadline that their step no longer has."""
    steps = {str(step): len(known.timers(step)) for step in known.Step}
    waiting = StepRun.objects.filter(
        instance__in=live, finished_at=None, wake_at__isnull=False
    )
    late = Q()
    for step, number in steps.items():
        late |= Q(node=step, deadlines_fired__gte=number)
    counted = waiting.filter(late).order_by().values("node")
    for one in counted.annotate(number=Count("pk")):
        yield Finding(
            f"{row}: a deadline of {one['node']} is gone. Processes that wait for it: {one['number']}",
            "Keep the deadline until they have left the step.",
        )


def _in_keys(
    row: Definition, known: type[ProcessManager], live: QuerySet[ProcessInstance]
) -> Iterator[Finding]:
    """The finding about processes whose key is another one in the running code."""
    started = InboxEvent.objects.filter(process__in=live, verdict="started")
    wrong = 0
    for event in started.select_related("process").order_by("-pk")[:SAMPLED]:
        try:
            message = decode_message(registry.event_class(event.type), event.body)
            key = known.correlation_key(message)
        except Exception:  # noqa: BLE001, S112  # told elsewhere: the type or the body is another one
            continue
        former = event.process.correlation_key
        # A key that is none of the event's values was named by its sender.
        read = former in map(str, encode(message).values())
        wrong += bool(key) and read and former != key
    if wrong:
        yield Finding(
            f"{row}: the correlation key is another one. Live processes with the former key: {wrong}",
            "Raise the version: events find a live process by the key that it began with.",
        )


def _in_workflow(
    row: Definition,
    known: type[Workflow],
    plan: Plan,
    live: QuerySet[ProcessInstance],
) -> Iterator[Finding]:
    """The findings about the live processes of a workflow with one graph."""
    yield from _in_inputs(row, known, live)
    yield from _in_graph(row, known.graph(), live)
    for name, vertex in plan.vertices.items():
        yield from results_of(row, plan, name, vertex, live)


def _in_inputs(
    row: Definition, known: type[Workflow], live: QuerySet[ProcessInstance]
) -> Iterator[Finding]:
    return unreadable_values(
        f"{row}: Input",
        newest(live, "data"),
        lambda data: decode(known.Input, data),
        "Give a new field a default, or write a version with migrates_from(..., data=...).",
    )


def _in_made_graphs(row: Definition, known: type[Workflow]) -> Iterator[Finding]:
    """The findings about a version whose graphs are made from the input: the newest processes get them made again."""
    live = ProcessInstance.objects.live().filter(
        definition__name=row.name, definition__version=row.version
    )
    yield from _in_inputs(row, known, live)
    looked = others = failed = 0
    wrong = Counter[str]()
    for process in live.select_related("definition").newest_first()[:SAMPLED]:
        looked += 1
        try:
            plan = known.plan(decode(known.Input, process.data))
            graph = known.graph(plan)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  # the application's function may raise anything
            failed += 1
            continue
        stored, made = process.definition, graph.fingerprint()
        others += stored.fingerprint != made and not is_renamed(stored.graph, made)
        mine = StepRun.objects.filter(instance=process)
        wrong.update(set(unreadable_results(plan, mine)))
    if others or failed:
        yield Finding(
            f"{row}: another graph is made from the input of {others} of the newest {looked} live processes, and none "
            f"from that of {failed}",
            "Raise the version and keep the old class until its processes have ended.",
        )
    for what, number in wrong.most_common():
        yield Finding(
            f"{row}: {what}, in {number} of the newest {looked} live processes",
            KEEP_TYPE,
        )
