"""A workflow on its diagram: its open steps, the branches not taken, and the steps that it may still visit."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from django.utils.translation import gettext as _

from monitoring.base.graphs import most_attempts
from monitoring.base.statuses import look
from monitoring.base.translation import progress_message
from monitoring.diagrams import DiagramState, NodeState
from monitoring.diagrams.sketch import Part, Sketch
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.steps.step_states import StepState
from monitoring.queries.counts import short_number
from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Graph
from orchestrator.models import ProcessInstance, Status

WORST = ("failed", "retrying", "running", "ready", "waiting", "handled")
"""Statuses by urgency; a part of several steps shows the first status that one of its steps has."""

BEST = ("is-done", "is-possible", "is-off")

NOT_VISITED = StepState()


def workflow_state(
    moment: ProcessMoment, states: Mapping[str, StepState], sketch: Sketch
) -> DiagramState:
    """Return the state of a workflow's diagram.

    Args:
        moment: the shown moment.
        states: the states of its steps.
        sketch: the drawn parts.
    """
    graph = moment.graph
    possible = _possible(graph, moment.instance, states)
    edges = _edges(moment, states, possible)
    ways = Counter(edge.target for edge in graph.edges if edge.kind != "repeat")
    attempts = most_attempts(moment.definition)
    node = partial(
        _part, states=states, possible=possible, attempts=attempts, ways=ways
    )
    drawn = {part.id: _best(part.edges, edges) for part in sketch.parts if part.edges}
    drawn |= {line.id: _best(line.edges, edges) for line in sketch.lines}
    return DiagramState({part.id: node(part) for part in sketch.steps()}, drawn)


def _possible(
    graph: Graph, instance: ProcessInstance, states: Mapping[str, StepState]
) -> set[str]:
    """Return the steps that can still be visited."""
    if instance.finished_at is not None:
        return set()
    after = group_by_key((edge.source, edge.target) for edge in graph.edges)
    waiting = [n for n, s in states.items() if s.open or s.status == "gathering"]
    found = set(waiting)
    while waiting:
        for name in after[waiting.pop()]:
            status = states.get(name, NOT_VISITED).status
            if name not in found and status != "not_taken":
                found.add(name)
                waiting.append(name)
    return found


def _edges(
    moment: ProcessMoment, states: Mapping[str, StepState], possible: set[str]
) -> dict[str, str]:
    """Return the class of every edge, including edges from the start and to the end."""
    found = {}
    for edge in moment.graph.edges:
        if edge.id in moment.taken:
            found[edge.id] = "is-done"
        else:
            open_ends = edge.source in possible and edge.target in possible
            settled = states.get(edge.source, NOT_VISITED).good
            again = edge.kind == "repeat" or not settled
            found[edge.id] = "is-possible" if open_ends and again else "is-off"
    done = moment.instance.status == Status.COMPLETED
    for node in moment.graph.nodes:
        state = states.get(node.id, NOT_VISITED)
        found[f"enter:{node.id}"] = "is-done" if state.visits else "is-off"
        ended = done and state.good
        going = "is-possible" if node.id in possible else "is-off"
        found[f"leave:{node.id}"] = "is-done" if ended else going
    return found


def _best(edges: Iterable[str], states: Mapping[str, str]) -> tuple[str, ...]:
    """Return the class of a line for several edges; one taken edge makes it taken."""
    shown = {states.get(edge, "is-off") for edge in edges}
    return (next((one for one in BEST if one in shown), "is-off"),)


def _part(
    part: Part,
    states: Mapping[str, StepState],
    possible: set[str],
    attempts: Callable[[str], int],
    ways: Mapping[str, int],
) -> NodeState:
    if len(part.members) > 1 or part.shape == "group":
        return _group(part, states, possible)
    name = part.members[0]
    state = states.get(name, NOT_VISITED)
    done, total, lost = _progress(state)
    return NodeState(
        _classes(state, name in possible),
        count=f"{state.visits}\N{MULTIPLICATION SIGN}" if state.visits > 1 else "",
        title=f"{part.label}: {_title(state, name in possible, attempts(name))}",
        note=_note(part, state, attempts(name), ways.get(name, 0)),
        failed=f"\N{MULTIPLICATION SIGN}{short_number(lost)}" if lost else "",
        part=done / total if total and _shows_progress(part, state) else None,
        lost=lost / total if total else 0.0,
    )


def _classes(state: StepState, possible: bool) -> tuple[str, ...]:
    if state.status in ("", "gathering"):
        return ("is-possible",) if possible else ("is-idle",)
    current = ("is-current",) if state.open else ()
    return (f"is-{state.status}", *current)


def _shows_progress(part: Part, state: StepState) -> bool:
    return part.shape == "map" or state.open


def _progress(state: StepState) -> tuple[float, float, int]:
    """Return the done part, the total, and the number of failures."""
    said = state.progress
    numbers = [said.get(name) for name in ("done", "total", "failed")]
    done, total, lost = (n if isinstance(n, int | float) else 0 for n in numbers)
    return min(max(done, 0), total) if total else done, total, int(lost)


def _note(part: Part, state: StepState, attempts: int, ways: int) -> str:
    done, total, _lost = _progress(state)
    if state.status == "retrying":
        return f"{state.attempt}/{attempts}" if attempts else str(state.attempt)
    if state.status == "gathering":
        return f"{state.arrived}/{ways}"
    if part.shape == "map" and state.progress:
        return f"{short_number(int(done))}/{short_number(int(total))}"
    if state.open and total:
        return f"{done / total:.0%}"
    return short_number(int(done)) if state.open and done else ""


def _title(state: StepState, possible: bool, attempts: int) -> str:
    if not state.status:
        return _("still possible") if possible else _("not reached")
    words = [str(look(state.status).word)]
    done, total, lost = _progress(state)
    if state.status == "retrying":
        words.append(_("attempt %(number)d") % {"number": state.attempt})
    if state.blocked_on:
        words.append(_("waits for the redo of %(step)s") % {"step": state.blocked_on})
    if state.visits > 1:
        words.append(_("visited %(number)d times") % {"number": state.visits})
    if total:
        words.append(f"{done:g}/{total:g}")
    if lost:
        words.append(_("%(number)d failed") % {"number": lost})
    if state.open and (message := progress_message(state.progress)):
        words.append(message[:80])
    return ", ".join(words)


def _group(
    part: Part, states: Mapping[str, StepState], possible: set[str]
) -> NodeState:
    """Return the state of a part for several steps: its worst status, and the number of ended steps."""
    some = [states[name] for name in part.members if name in states]
    shown = {state.status for state in some}
    over = [s for s in some if not s.open and s.status != "gathering"]
    lost = sum(state.status in ("failed", "handled") for state in some)
    status = next((one for one in WORST if one in shown), "")
    if not status and len(over) == len(part.members):
        status = "done" if any(state.good for state in some) else "not_taken"
    live = any(name in possible for name in part.members)
    classes = (f"is-{status}",) if status else ("is-possible" if live else "is-idle",)
    current = ("is-current",) if any(state.open for state in some) else ()
    whole = len(part.members)
    return NodeState(
        (*classes, *current),
        title=_("%(label)s: %(done)d of %(all)d steps are over")
        % {"label": part.label, "done": len(over), "all": whole},
        note=f"{short_number(len(over))}/{short_number(whole)}" if some else "",
        failed=f"\N{MULTIPLICATION SIGN}{short_number(lost)}" if lost else "",
        part=max(len(over) - lost, 0) / whole if some else None,
        lost=min(lost, whole) / whole,
    )
